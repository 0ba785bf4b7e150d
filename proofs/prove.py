"""Proves inequalities about the numbers of matrixdp in ball arithmetic: `python -m proofs.prove numbers.json`.

It shares no code with the package, and knows it by the numbers of `export.py` alone. A comparison of two balls is true
only if it holds for all numbers in them, so that whatever is counted as proved has been proved for these numbers, up
to errors of Arb and of this file. Fractions are exact. Floats are used in one place: to search for weights, of which
any give a lower bound.
"""

import argparse
import itertools
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx

UNIT = Fraction(1, 1 << 53)  # largest relative error of an operation with floats
NORMAL = Fraction(1, 1 << 1022)  # the smallest delta that is accepted

Claim = tuple[str, Iterable[bool]]


def ball(value: Any) -> arb:
    """A number of the file, or a fraction, as a ball; floats and integers are exact."""
    if isinstance(value, str):
        value = float.fromhex(value) if "x" in value else int(value)
    if isinstance(value, Fraction):
        return arb(value.numerator) / arb(value.denominator)
    return arb(value)


def fraction(value: str | int) -> Fraction:
    """A number of the file as an exact fraction."""
    return Fraction(float.fromhex(value)) if isinstance(value, str) else Fraction(value)


def decided(statement: Callable[[], tuple[arb, arb]]) -> bool:
    """Whether the first of two numbers is at most the second, with as many digits as it takes."""
    before = ctx.prec
    try:
        for ctx.prec in (128, 512, 2048, 8192):
            left, right = statement()
            if left <= right or left > right:
                return bool(left <= right)
        return False
    finally:
        ctx.prec = before


# The sampler: docs/noise.md, "The envelope" and "The float comparison".


def gaussian(y: arb) -> arb:
    """``exp(-y^2/2)``."""
    return (-(y * y) / 2).exp()


def read_cells(table: dict[str, Any]) -> dict[int, tuple[int, list[int]]]:
    """{signed block: (number of certain cells, floors of the cut ones)}, from the masks."""
    found: dict[int, tuple[int, list[int]]] = {}
    bits, sign_bit = table["place_bits"], 1 << table["cell_bits"]
    for index in range(2 * table["tail"]):
        word = (int(table["masks"][index]) ^ (index << bits)) >> bits & (2 * sign_bit - 1)
        signed = (word ^ sign_bit) - sign_bit
        certain, floors = found.get(signed, (0, []))
        if index < 2 * table["certain"]:
            found[signed] = certain + 1, floors
        else:
            level = fraction(table["level"][index - 2 * table["certain"]])
            found[signed] = certain, [*floors, int(level) if level.denominator == 1 else -1]
    return found


def prove_sampler(table: dict[str, Any]) -> Iterator[Claim]:
    """The cells cover the curve, each point once, and a comparison of floats is right where it decides."""
    ctx.prec = 256
    blocks, per_unit, height = table["blocks"], table["blocks_per_unit"], table["height"]
    curve = [height * gaussian(arb(k) / per_unit) for k in range(blocks + 1)]
    cells = read_cells(table)
    both = [(k, cells.get(signed, (-1, []))) for k in range(blocks) for signed in (k, ~k)]
    yield "every block of both signs has cells", [sorted(cells) == list(range(-blocks, blocks))]
    yield "certain cells lie under the curve", [arb(certain) <= curve[k + 1] for k, (certain, _) in both]
    yield (
        "the floors of the cut cells follow each other",
        [floors == list(range(certain, certain + len(floors))) for _, (certain, floors) in both],
    )
    yield "certain and cut cells reach above the curve", [arb(one + len(cut)) >= curve[k] for k, (one, cut) in both]
    room = 1 << table["cell_bits"]
    larger = sum(int((curve[k] * (height + 1) / height).lower().ceil().unique_fmpz()) for k in range(blocks))
    yield "all cells and the tail fit, and no larger height does", [table["tail"] + 1 <= room, larger + 1 > room]

    end, step = Fraction(blocks, per_unit), Fraction(table["blocks_per_superblock"], per_unit)
    first = 2 * table["blocks_per_superblock"] * height * gaussian(ball(end))
    yield "no acceptance probability in the tail is above 0.002", [first <= ball(Fraction(2, 1000))]
    # f(y + step)/f(y) = exp(-step y - step^2/2) falls with y, so the first superblock decides about all.
    yield "the curve halves from each superblock to the next", [ball(-step * end - step**2 / 2).exp() * 2 <= 1]
    yield (
        "the stored bound of the tail holds after rounding a height",
        [first <= ball(table["tail_bound"]) * ball(1 - UNIT)],
    )
    yield (
        "the exponential is enclosed, to two steps",
        [
            decided(lambda p=p, q=q, bits=bits, x=low: (ball(x), (arb(-p) / q).exp() * arb(2) ** bits))
            and decided(lambda p=p, q=q, bits=bits, x=high: ((arb(-p) / q).exp() * arb(2) ** bits, ball(x)))
            and int(high) - int(low) <= 2
            for p, q, bits, low, high in table["exponentials"]
        ],
    )
    yield from prove_comparison(table)


def prove_comparison(table: dict[str, Any]) -> Iterator[Claim]:
    """The float comparison errs by less than `error`, on the processor and in the form that a GPU computes."""
    height, start = table["height"], 2 * table["certain"]
    reach = arb(1) / (2 * table["blocks_per_unit"])  # half the width of a block
    finest = table["finest"]
    # The place is known to 2^-finest, and |f'| is at most exp(-1/2); a height is rounded to a float.
    fixed = height * arb("-0.5").exp() * arb(2) ** -finest + arb(2) ** -53
    limit, cpu, gpu = ball(table["error"]), [], []
    remainders: dict[str, arb] = {}
    for i in range(2 * table["tail"] - start):
        centre = ball(table["centre"][i])
        key = table["centre"][i].lstrip("-")
        if key not in remainders:
            remainders[key] = height * largest_derivative(abs(centre), reach) * reach**5 / 120
        exact, level = height * gaussian(centre), ball(table["level"][i])
        hermite = [arb(1), -centre, centre**2 - 1, 3 * centre - centre**3, centre**4 - 6 * centre**2 + 3]
        error, size = remainders[key] + fixed, arb(1)
        for k, he in enumerate(hermite):
            stored = ball(table["polynomials"][k][i])
            true = exact * he * arb(2) ** (-k * finest) / arb([1, 1, 2, 6, 24][k]) - (level if k == 0 else 0)
            most = (reach * arb(2) ** finest) ** k
            error, size = error + abs(stored - true) * most, size + abs(stored) * most
        error += size * ball(10 * UNIT / (1 - 10 * UNIT))  # Horner's rule with eight operations, and a difference
        cpu.append(error <= limit * 2 / 3)
        # On a GPU: F (1 - z (1 - z/2 (1 - z/3 (1 - z/4)))) - level - u with z = h (c + h/2).
        z = reach * (abs(centre) + reach / 2)
        stored = ball(table["curve"][i])
        remainder = stored * z**5 / 120 * z.exp()
        rounding = (stored * z.exp() + level + 2) * ball(24 * UNIT / (1 - 24 * UNIT))
        gpu.append(abs(stored - exact) * z.exp() + remainder + rounding + fixed <= limit)
    yield "the float comparison errs by less than two thirds of its bound", cpu
    yield "the float comparison of a GPU errs by less than its bound", gpu
    unused = range(2 * table["tail"] - start, len(table["level"]))
    yield (
        "cells beyond the cut ones are never accepted by a comparison",
        [fraction(table["curve"][i]) == 0 and fraction(table["level"][i]) >= 2 for i in unused],
    )


def largest_derivative(centre: arb, reach: arb, pieces: int = 16) -> arb:
    """Bound on ``|He_5(y)| exp(-y^2/2)``, the fifth derivative, for y within `reach` of the centre."""
    width = reach / pieces
    most = arb(0)
    for k in range(pieces):
        y = centre - reach + (2 * k + 1) * width + arb(0, width.upper())
        most = most.max(abs((y**5 - 10 * y**3 + 15 * y) * gaussian(y)).upper())
    return most


# Calibrations: docs/mathematics.md, section 1.


def smallest_delta(mu: arb, epsilon: arb) -> arb:
    """``Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)``, by Balle and Wang."""
    a, b = (epsilon / mu - mu / 2, epsilon / mu + mu / 2)
    root = arb(2).sqrt()
    return ((a / root).erfc() - epsilon.exp() * (b / root).erfc()) / 2


def meets(mu: Any, epsilon: Any, delta: Any) -> bool:
    """Whether mu-GDP implies (epsilon, delta)-DP."""
    return decided(lambda: (smallest_delta(ball(mu), ball(epsilon)), ball(delta)))


def prove_calibrations(table: dict[str, Any]) -> Iterator[Claim]:
    """Everything that is rounded is rounded to the side of more privacy, and by little."""
    yield "mu of (epsilon, delta) gives (epsilon, delta)", [meets(mu, e, d) for e, d, mu in table["mu"]]
    more = 1 + Fraction(1, 10**9)
    yield "a mu that is larger by 1e-9 does not", [not meets(fraction(mu) * more, e, d) for e, d, mu in table["mu"]]
    yield "epsilon of (mu, delta) is enough", [meets(mu, e, d) for mu, d, e in table["epsilon"]]
    yield "delta of (mu, epsilon) is enough", [meets(mu, e, d) for mu, e, d in table["delta"]]
    yield (
        "mu of a pure guarantee is enough",
        [
            decided(lambda e=e, mu=mu: ((ball(mu) / arb(8).sqrt()).erfc() / 2, 1 / (1 + ball(e).exp())))
            for e, mu in table["pure"]
        ],
    )
    yield (
        "a composed mu covers its parts",
        [sum(fraction(one) ** 2 for one in some) <= fraction(mu) ** 2 for some, mu in table["composed"]],
    )
    yield (
        "a share of mu^2 is not exceeded",
        [fraction(part) ** 2 <= fraction(share) * fraction(mu) ** 2 for mu, share, part in table["shares"]],
    )
    yield (
        "a share of a guarantee meets the guarantee that it states",
        [meets(mu, epsilon, delta) for _, delta, _, epsilon, mu in table["parts"]],
    )
    yield from prove_quadrature(table)


def prove_quadrature(table: dict[str, Any]) -> Iterator[Claim]:
    """Gauss-Legendre quadrature of ``1 - x R(x)`` over an interval of length mu < 1 has no error that counts.

    With the ellipse of parameter 4 about the interval, on which ``|1 - z R(z)| <= 1 + |z| R(Re z)``, the error of n
    nodes is at most ``64/15 M 4^-2n/(1 - 1/16)`` (Trefethen). The integrand decreases, and is at least 1/(x^2 + 3).
    """
    ctx.prec = 256
    count = len(table["nodes"])
    true = [arb.legendre_p_root(count, k, weight=True) for k in range(count)]
    pairs = list(zip(true, reversed(table["nodes"]), reversed(table["weights"]), strict=True))
    yield "nodes of the quadrature", [abs(ball(node) - one) <= ball(4 * UNIT) for (one, _), node, _ in pairs]
    yield (
        "errors of the weights are below half of the margin",
        weigh_errors([(node, one, ball(w) - one) for (node, one), _, w in pairs]),
    )
    left, farthest = arb("-1.0625"), arb(40)
    mills = (left / arb(2).sqrt()).erfc() / 2 * (2 * arb.pi()).sqrt() / gaussian(left)
    most = 1 + (farthest + arb("1.0625")) * mills
    error = arb(64) / 15 * most * arb(4) ** (-2 * count) / (1 - arb(1) / 16) * (farthest**2 + 3) / 2
    yield "the relative error of the quadrature is below 1e-22, up to b = 40", [error <= arb(10) ** -22]
    beyond = ((farthest - 1) / arb(2).sqrt()).erfc() / 2
    yield "beyond, delta is below the smallest that is accepted", [beyond <= ball(NORMAL)]


def weigh_errors(rule: list[tuple[arb, arb, arb]]) -> Iterator[bool]:
    """Whether the errors of the weights change an integral by at most half of ``32 u (1 + a^2 + b^2)`` of it.

    `rule` has node, weight and error. The integrand ``g = -R'``, its slope ``-g'`` and ``g''`` decrease, so their
    values at the ends of a range bound them: for a from -1/2 to 3 and mu up to 1 range by range, beyond by
    ``1/(x^2 + 3) < g(x) < 1/(x^2 + 1)``. The errors nearly sum to zero, and are symmetric, so what is left of them
    grows with ``mu^2 g''``.
    """

    def mills(x: arb) -> arb:
        return (x / arb(2).sqrt()).erfc() * (arb.pi() / 2).sqrt() * (x * x / 2).exp()

    def integrand(x: arb) -> arb:
        return 1 - x * mills(x)

    ctx.prec = 96
    step = Fraction(1, 10)
    common = abs(sum((error for _, _, error in rule), arb(0)))
    tilt = abs(sum((error * node for node, _, error in rule), arb(0)))
    spread = sum((abs(error) * node**2 for node, _, error in rule), arb(0))
    for k, j in itertools.product(range(35), range(1, 11)):
        a, mu = k * step - Fraction(1, 2), j * step
        left, right = ball(a), ball(a + step)
        slope = (1 + left**2) * mills(left) - left
        curvature = left**2 + 2 - (left**3 + 3 * left) * mills(left)
        wrong = common * integrand(left) + slope * ball(mu / 2) * tilt + curvature * ball(mu / 2) ** 2 / 2 * spread
        whole = sum((weight * integrand(right + ball(mu) * (node + 1) / 2) for node, weight, _ in rule), arb(0))
        nearest = Fraction(0) if a * (a + step) <= 0 else min(abs(a), abs(a + step))
        squares = nearest**2 + max(a + mu - step, Fraction(0)) ** 2
        yield bool(wrong <= ball(16 * UNIT * (1 + squares)) * whole)
    most = sum((abs(error) for _, _, error in rule), arb(0))
    yield bool(most * 19 / 10 <= 2 * ball(16 * UNIT * (1 + 9 + 9)))


# The least error of Gaussian noise: docs/optimality.md.


def orbits(d: int, replace: bool) -> Iterator[tuple[list[Fraction], Fraction]]:
    """Squared lengths of the parts of a change: off the diagonal, traceless, trace; and that of the mean's change.

    Changes between records with entries -1, 0 and 1, or from none to such a record, up to permutations and signs.
    """
    if not replace:
        for k in range(d + 1):
            yield [Fraction(k * k - k), k - Fraction(k * k, d), Fraction(k * k, d)], Fraction(k)
        return
    zeros = range(d + 1) if d <= 12 else (0, 1, d)
    for zero in zeros:
        for first, other in itertools.product(range((zero + 1) // 2, zero + 1), range(d - zero + 1)):
            second, same = zero - first, d - zero - other
            x, y, inner = same + other + first, same + other + second, same - other
            diagonal, trace = Fraction(first + second), Fraction((first - second) ** 2, d)
            parts = [x * x + y * y - 2 * inner * inner - diagonal, diagonal - trace, trace]
            yield parts, Fraction(4 * other + first + second)


def closed_form(d: int) -> tuple[list[list[Fraction]], list[Fraction], bool]:
    """Three changes of a replaced record, weights for which the bound is attained, and whether it is.

    It is attained by noise of precisions w if all three changes have the same distance, and if the mean squares of the
    parts are in the ratio of ``n_k/w_k^2``: then the Cauchy-Schwarz inequality is an equality.
    """
    n, odd = Fraction(d * (d - 1), 2), d % 2
    w = [Fraction(1), 1 + Fraction(3 * d, 2) - Fraction(2 * odd, d), 1 + d - Fraction(2 * odd, d)]
    reach = Fraction(2 * d * d - 2 * odd)
    larger, smaller, trace = (d + odd) // 2, (d - odd) // 2, Fraction(odd, d)
    corners, middle = [reach, Fraction(0), Fraction(0)], [Fraction(d * d - d), Fraction(0), Fraction(d)]
    changes = [corners, middle, [larger**2 + smaller**2 - Fraction(d), d - trace, trace]]
    tight = all(sum(a * b for a, b in zip(w, change, strict=True)) == reach for change in changes)
    wanted = [n / w[0] ** 2, (d - 1) / w[1] ** 2, 1 / w[2] ** 2]
    halves = wanted[1] / changes[2][1]
    midpoint = (wanted[2] - halves * changes[2][2]) / middle[2]
    rest = (wanted[0] - halves * changes[2][0] - midpoint * middle[0]) / reach
    return changes, [rest, midpoint, halves], tight


def least_error(d: int, replace: bool, constant: bool) -> arb:
    """Lower bound on the total squared error at distance one, from weights on the changes that this function finds."""
    if replace and not constant and d not in (1, 3):
        changes, exact, _ = closed_form(d)
        found = [(change, Fraction(0)) for change in changes]
    else:
        found, exact = list(orbits(d, replace)), []
    squares = [[*parts, 2 * mean] if constant else parts for parts, mean in found]
    dimensions = [d * (d - 1) // 2, d - 1, 1, *([d] if constant else [])]
    joint = constant and not replace  # the number of records and the trace are one part of two dimensions
    if not exact:
        weights = find_weights(np.array(squares, float), np.array(dimensions, float), joint)
        exact = [Fraction(one) for one in weights.tolist()]
    total = sum(exact)
    means = [sum(w * row[k] for w, row in zip(exact, squares, strict=True)) / total for k in range(len(dimensions))]
    roots = [(ball(n * q)).sqrt() for n, q in zip(dimensions, means, strict=True)]
    if joint:
        # M = [[1, c], [c, q]] with q the mean square and c the mean of the trace part, both over sqrt(d).
        cross = ball(sum(w * mean for w, (_, mean) in zip(exact, found, strict=True)) / total) / arb(d).sqrt()
        determinant = ball(means[2]) - cross * cross
        roots[2] = (1 + ball(means[2]) + 2 * determinant.nonnegative_part().sqrt()).sqrt()
    bound = sum(roots, arb(0))
    return bound * bound


def find_weights(squares: np.ndarray, dimensions: np.ndarray, joint: bool) -> np.ndarray:
    """Weights, in floats, that nearly maximise the bound: each grows with the derivative of the bound by it."""
    p = np.full(len(squares), 1 / len(squares))
    length = np.sqrt(squares[:, 2])
    for _ in range(20_000):
        q = p @ squares
        slopes = np.sqrt(np.divide(dimensions, q, out=np.zeros_like(q), where=q > 0))
        gradient = squares @ slopes
        total = float(np.sqrt(dimensions * q).sum())
        if joint:
            moment = np.array([[1.0, p @ length], [p @ length, q[2]]])
            values, vectors = np.linalg.eigh(moment)
            inverse = (vectors / np.sqrt(np.maximum(values, 1e-300))) @ vectors.T
            own = inverse[0, 0] + 2 * inverse[0, 1] * length + inverse[1, 1] * squares[:, 2]
            gradient += own - squares[:, 2] * slopes[2]
            total += float(np.sqrt(np.maximum(values, 0)).sum()) - float(np.sqrt(q[2]))
        p = p * np.maximum(gradient, 0) / total
        p /= p.sum()
        if gradient.max() <= total * (1 + 1e-12):
            break
    return p


def prove_limits(table: dict[str, Any]) -> Iterator[Claim]:
    """Lower bounds are lower bounds, and the closed forms of docs/optimality.md hold."""
    ctx.prec = 128
    yield (
        "limits of moments in a box are proved by weights",
        [ball(value) <= least_error(d, replace, constant) for d, replace, constant, value in table["box"]],
    )
    balls = []
    for d, radius, value in table["ball"]:
        k = Fraction(d * (d + 1), 2) - 1
        first, second = 2 * (k - Fraction(d - 1, (d + 1) ** 2)), Fraction(4 * d, (d + 1) ** 2)
        q = [(2 * first + second * (1 - Fraction(1, d))), second / d]
        bound = (ball(k * q[0] / (first + second)).sqrt() + ball(q[1] / (first + second)).sqrt()) ** 2
        balls.append(ball(value) <= bound * ball(radius) ** 4 and min(first, second) >= 0)
    yield (
        "the closed form is optimal for 2 to 200 features, other than 3",
        [min(closed_form(d)[1]) >= 0 and closed_form(d)[2] for d in range(2, 201) if d != 3],
    )
    yield "limits of moments in a ball are proved by weights", balls


# Designs: docs/mathematics.md, "Squares beside a moment".


def bound_distance(design: dict[str, Any]) -> arb:
    """Bound on the distance of neighbours for the noise as it is stored, with standard directions."""
    half = [ball(c) for c in design["halfwidths"]]
    factors = [ball(a) for a in design["whitening"]]
    alpha = factors.pop(0) ** 2 if design["constant"] else arb(0)
    plain = [(a * c) ** 2 for a, c in zip(factors, half, strict=True)]
    if design["squares"] is None:
        weights, strengths, shift = plain, [arb(0) for _ in half], arb(0)
    else:
        stored, strengths, shift = design["squares"]
        weights = [ball(w) * c * c for w, c in zip(stored, half, strict=True)]
        strengths, shift = [ball(s) for s in strengths], ball(shift)
    loss = arb(0) if design["squares"] is None else 2 * shift - shift**2 * sum((1 / s for s in strengths), arb(0))
    tau = [a.max(b) for a, b in zip(plain, weights, strict=True)]
    total = sum(tau, arb(0))
    ratios = [w / t for w, t in zip(weights, tau, strict=True)]
    least = arb(1)
    gain = arb(0)
    for s, r, t in zip(strengths, ratios, tau, strict=True):
        least, gain = least.min(r), gain.max(s * r * r * t)

    def replaced(s: arb) -> arb:
        return 2 * (alpha + s) ** 2 - 2 * (alpha - s).max(arb(0)) ** 2

    if design["replace"]:
        open_part = (arb(1) / 2 - loss).max(arb(0)) + 2 * loss * (1 - least)
        apart = replaced(total / 2) + gain * total + open_part * total**2
        squared = replaced(total).max(apart)
    else:
        curvature, slope = 1 - loss * least**2, 2 * alpha + gain
        place = total
        if curvature < 0:
            place = total.min(slope / (-2 * curvature))
        squared = alpha**2 + slope * place + curvature * place**2
        if not (curvature > 0 or curvature < 0):  # a parabola whose direction is open: the end, and its slack
            squared = (alpha**2 + slope * total).max(alpha**2) + abs(curvature) * total**2
    return squared.sqrt() / design["records"]


def variances(design: dict[str, Any]) -> list[list[arb]]:
    """Variance of each entry of the released matrix, from the precision of what is measured."""
    factors = [ball(a) for a in design["whitening"]]
    size = len(factors)
    result = [[1 / (2 * (a * b) ** 2) for b in factors] for a in factors]
    first = size - len(design["halfwidths"])
    precision = arb_mat(size, size)
    for i, a in enumerate(factors):
        precision[i, i] = a**4
    if design["squares"] is not None:
        weights, strengths, shift = design["squares"]
        weights, strengths, shift = [ball(w) for w in weights], [ball(s) for s in strengths], ball(shift)
        loss = 2 * shift - shift**2 * sum((1 / s for s in strengths), arb(0))
        for i, j in itertools.product(range(len(weights)), repeat=2):
            own = strengths[i] if i == j else arb(0)
            precision[first + i, first + j] += weights[i] * weights[j] * (own - loss)
    inverse = precision.inv()
    for i in range(size):
        result[i][i] = inverse[i, i]
    if design["constant"] and design["replace"]:
        result[0][0] = arb(0)
    return result


def prove_designs(designs: list[dict[str, Any]]) -> Iterator[Claim]:
    """Designs of moments spend no more than they say, have the noise that they say, and the excess."""
    ctx.prec = 256
    slack = arb(1) + arb(10) ** -9
    spent, errors, excess, below = [], [], [], []
    known: dict[tuple[int, bool, bool], arb] = {}
    for design in designs:
        ideal, distance = (ball(one) for one in design["distance"])
        epsilon, delta, mu = design["privacy"]
        covered = meets(mu, epsilon, delta) and distance <= ball(mu)
        spent.append(bool(bound_distance(design) <= ideal * (1 + ball(8 * UNIT)) and ideal <= distance and covered))
        total = arb(0)
        right = True
        for own, stds, units in zip(variances(design), design["std"], design["units"], strict=True):
            for variance, std, unit in zip(own, stds, units, strict=True):
                square = ball(std) ** 2
                right = right and bool(variance <= square * slack and square <= variance * slack)
                total += variance / ball(unit) ** 2
        errors.append(right)
        kind = len(design["halfwidths"]), design["replace"], design["constant"]
        if kind not in known:
            known[kind] = least_error(*kind)
        least = known[kind] / (ball(mu) * design["records"]) ** 2
        below.append(bool(ball(design["limit"]) <= least * slack))
        excess.append(bool(total <= ball(design["excess"]) * ball(design["limit"]) * slack))
    yield "no neighbours are further apart than a design claims, nor than its budget", spent
    yield "standard deviations are those of the noise, to 1e-9", errors
    yield "the limit of a design is a lower bound, to 1e-9", below
    yield "the total error of a design is at most its excess times its limit, to 1e-9", excess


PARTS: dict[str, Callable[[Any], Iterator[Claim]]] = {
    "sampler": prove_sampler,
    "calibrations": prove_calibrations,
    "limits": prove_limits,
    "designs": prove_designs,
}


def prove(numbers: dict[str, Any]) -> list[tuple[str, str, int, int]]:
    """(part, claim, cases proved, cases) of every claim."""
    found = []
    for part, claims in PARTS.items():
        for claim, cases in claims(numbers[part]):
            results = list(cases)
            found.append((part, claim, sum(map(bool, results)), len(results)))
    return found


def main() -> int:
    """Print every claim and how many of its cases are proved; 1 if any is not."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("numbers", type=Path, help="the file that export.py wrote")
    found = prove(json.loads(parser.parse_args().numbers.read_text("utf-8")))
    width = max(len(claim) for _, claim, _, _ in found)
    for part, claim, proved, cases in found:
        print(f"{part:13} {claim:{width}}  {proved} of {cases}{'' if proved == cases > 0 else '  NOT PROVED'}")
    missing = sum(not (proved == cases > 0) for _, _, proved, cases in found)
    print(f"{sum(row[2] for row in found)} inequalities proved; claims that are not: {missing}")
    return int(missing > 0)


if __name__ == "__main__":
    sys.exit(main())
