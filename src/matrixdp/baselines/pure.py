"""Mechanisms with delta 0: Laplace noise (Dwork, McSherry, Nissim, Smith 2006) and the exponential mechanism.

The latter is drawn exactly, for a whole matrix and for the first principal component (PPCA). For a matrix (McSherry &
Talwar 2007; after Blum, Ligett, Roth 2008) the quality of an output S is ``-||X - S||_F``, and its density ``exp(-rate
||X - S||_F)`` up to a normaliser that does not depend on X, since S ranges over all matrices: S - X has a uniform
direction and, in d dimensions, a radius of the Gamma law of shape d. Both are drawn in floating-point numbers, so for
comparison only, but not by a Markov chain, whose guarantee holds only in the limit.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from matrixdp.checks import check_integer
from matrixdp.errors import ParameterError, show
from matrixdp.mechanisms.mechanism import check_stream
from matrixdp.noise import Stream, draw_normal
from matrixdp.noise.envelope import exp_bounds
from matrixdp.noise.matrix import SQRT2, triangle_to_vector, vector_to_triangle
from matrixdp.privacy import Neighbours, Privacy
from matrixdp.queries import Identity, MatrixQuery, SecondMoment
from matrixdp.release.registered import MechanismRelease, check_arguments, pure_cost, register_mechanism
from matrixdp.sensitivity import max_quadratic
from matrixdp.types import Floats

BEST_WEIGHT = 2 ** (1 / 3)
_BITS = 44
_HEADROOM = 61
_EPS = float(np.finfo(float).eps)
MAX_BITS = 52
_TERMS = 20
# Each of the nested steps of the series rounds four times, by 2^-53 at most; their sum over the factorials is below
# 4 e 2^-53, the rest of the series below 1/21!, and the uniform number lies in a step of 2^-53.
_ERROR = 2.0**-48


def _grid(query: Identity | SecondMoment, privacy: Privacy) -> tuple[float, Floats, int, float]:
    """The L1 sensitivity, the bound on each entry as a vector, the noise's scale ``2^bits``, and steps per unit.

    On this grid neighbours differ by at most ``epsilon 2^bits`` in L1: each entry may move by one step through
    rounding, and by twice the error of its floats.
    """
    check_arguments(query, privacy)
    sensitivity, epsilon = l1_sensitivity(query), privacy.epsilon
    bound = answer_to_vector(query, np.broadcast_to(query.magnitude, query.shape), weight=BEST_WEIGHT)
    largest = float(bound.max()) * epsilon / sensitivity
    bits = min(_BITS, _HEADROOM - max(0, math.ceil(math.log2(largest))))
    floats = 2 * (query.relative_error + 8 * _EPS) * float(bound.sum()) / sensitivity
    left = epsilon * (1 - floats - 64 * _EPS) - bound.size * 2.0**-bits
    if left <= 0:
        raise ParameterError(
            f"epsilon must be larger for {bound.size} entries of these bounds, got {epsilon:g} instead: "
            "rounding alone would use it."
        )
    return sensitivity, bound, bits, left / sensitivity * 2.0**bits


@register_mechanism("Laplace", cost=pure_cost, tasks=("records", "second-moment"), check=_grid)
def laplace(
    query: Identity | SecondMoment,
    privacy: Privacy,
    data: Any,
    *,
    stream: Stream | None = None,
    simulation: bool = False,
) -> MechanismRelease:
    """The answer with independent Laplace noise in every entry, of one scale, ``l1_sensitivity/epsilon``.

    Parameters are those of `matrixdp.Design.release`; delta is not used. Of a second moment one triangle is drawn, with
    `BEST_WEIGHT` times the noise on the diagonal: this minimises the mean square error over the whole matrix if all
    features have the same range.

    Privacy
    -------
    epsilon-DP, delta 0, for the query's neighbours. The noise is made of exact integers: ``floor(k + L) = k +
    floor(L)`` for an integer k, so the release is a post-processing of the ideal mechanism applied to the rounded
    answer, and rounding is included in the sensitivity.
    """
    sensitivity, bound, bits, factor = _grid(query, privacy)
    check_stream(stream, simulation=simulation)
    answer = answer_to_vector(query, query.evaluate(data, clip=True, missing="error"), weight=BEST_WEIGHT)
    steps = np.rint(np.clip(answer, -bound, bound) * factor).astype(np.int64)
    noisy = ((steps + draw_laplace(stream or Stream(), bits, steps.size)).astype(np.float64) + 0.5) / factor
    matrix = query.finish(vector_to_answer(query, noisy, weight=BEST_WEIGHT))
    known: dict[str, Any] = {"comparison_only": False, "simulation": simulation}
    std = np.full(steps.size, math.sqrt(2) * 2.0**bits / factor)
    known["std"] = vector_to_answer(query, std, weight=BEST_WEIGHT)
    known["parameters"] = {"scale": 2.0**bits / factor, "sensitivity": sensitivity}
    return MechanismRelease(query, matrix, "Laplace", privacy, privacy.epsilon, 0.0, **known)


def l1_sensitivity(query: Identity | SecondMoment, *, weight: float = BEST_WEIGHT) -> float:
    """Largest change of the answer in L1, with entries below the diagonal times `weight`; rounded up.

    For records in a box (halfwidths c) the sum of widths, and for a second moment ``(sum c_i^2 + weight sum_{i<j} c_i
    c_j)/N``, which is attained by a corner and the midpoint; `docs/rivals.md` has the proof. With a radius the former
    is still the supremum and the latter a bound.
    """
    if isinstance(query, Identity):
        half, radius = query.bounds.halfwidths, query.bounds.radius
        if radius is None or radius**2 >= float((half**2).sum()):
            return 2 * float(half.sum()) * (1 + 64 * _EPS)
        # In a ball each coordinate of the longest record is at a common level or at its bound.
        c = np.sort(half)
        used = np.concatenate([[0.0], np.cumsum(c**2)])[:-1]
        level = np.sqrt(np.maximum(radius**2 - used, 0.0) / np.arange(c.size, 0, -1))
        first = int(np.argmax(level <= c))
        return 2 * (float(np.minimum(c, level[first]).sum()) * (1 + 64 * _EPS)) * (1 + 64 * _EPS)
    if not isinstance(query, SecondMoment):
        raise ParameterError(
            f"query must be Identity or SecondMoment for Laplace noise, got {type(query).__name__} instead."
        )
    if not 0 < weight <= 2:
        raise ParameterError(f"weight must be greater than 0 and at most 2, got {show(weight)} instead.")
    change = query.record_change(query.neighbours)
    c, radius = change.halfwidths, change.radius
    value = weight / 2 * float(c.sum()) ** 2 + (1 - weight / 2) * float((c**2).sum())
    if radius is not None:
        # Cauchy-Schwarz: the triangle's weights times the Frobenius norm of the change.
        m = c.size
        norm = math.sqrt(m + weight**2 * m * (m - 1) / 4) * change.frobenius * query.records
        value = min(value, norm)
    return value / query.records * (1 + 64 * _EPS)


def answer_to_vector(query: MatrixQuery, matrix: Floats, *, weight: float = SQRT2) -> Floats:
    """All entries, or the lower triangle of a symmetric answer with its off-diagonal entries times `weight`."""
    return triangle_to_vector(matrix, weight) if query.symmetric else matrix.reshape(-1)


def vector_to_answer(query: MatrixQuery, vector: Floats, *, weight: float = SQRT2) -> Floats:
    """The matrix of the query's shape whose entries `answer_to_vector` gave."""
    return vector_to_triangle(vector, query.shape[0], weight) if query.symmetric else vector.reshape(query.shape)


def draw_laplace(stream: Stream, bits: int, size: int) -> NDArray[np.int64]:
    """Exact draws of ``floor(L)``, L with the density ``exp(-|x|/2^bits)/2^(bits+1)``, of shape (size,).

    ``floor(E)`` of an exponential E of scale ``t = 2^bits`` is ``place + t whole``, where place is uniform on
    ``0..t-1`` and kept with probability ``exp(-place/t)``, and whole counts the successes of coins of probability
    ``1/e`` before the first failure (Canonne, Kamath, Steinke 2020). A coin compares a uniform number with the
    exponential in float64, whose error is bounded; where the bound is not enough, in integer interval arithmetic with
    as many more bits as needed. The sign is one more bit: ``floor(-E)`` is ``~floor(E)``. `bits` is from 0 to 52.
    """
    bits = check_integer(bits, "bits", at_least=0, at_most=MAX_BITS)
    wholes, places = np.zeros((2, size), np.int64)
    signs = -(stream.words(size) & np.uint64(1)).astype(np.int64)
    going = pending = np.arange(size)
    while going.size:
        going = going[flip_exponential(stream, np.ones(going.size, np.int64), 0)]
        wholes[going] += 1
    while bits and pending.size:
        candidates = (stream.words(pending.size) >> np.uint64(64 - bits)).astype(np.int64)
        kept = flip_exponential(stream, candidates, bits)
        places[pending[kept]] = candidates[kept]
        pending = pending[~kept]
    return np.asarray((wholes << bits) + places ^ signs)


def flip_exponential(stream: Stream, exponents: NDArray[np.int64], bits: int) -> NDArray[np.bool_]:
    """Coins that succeed with probability ``exp(-exponent/2^bits)``, exactly; exponents from 0 to ``2^bits``."""
    heights = stream.words(exponents.size)
    uniform = (heights >> np.uint64(11)).astype(np.float64) * 2.0**-53
    above = _exponential(exponents.astype(np.float64) * 2.0**-bits) - uniform
    result = above > 0
    for i in np.flatnonzero(np.abs(above) <= _ERROR):
        result[i] = _settle(stream, int(exponents[i]), bits, int(heights[i]))
    return result


def _exponential(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """``exp(-x)`` for x from 0 to 1, by its series, nested."""
    value = np.ones_like(x)
    for term in range(_TERMS, 0, -1):
        value = 1 - x * (1 / term) * value
    return value


def _settle(stream: Stream, exponent: int, bits: int, height: int) -> bool:
    """True if a uniform number with the 64 first bits `height` lies below ``exp(-exponent/2^bits)``."""
    digits = 64
    while True:
        low, high = exp_bounds(exponent, 1 << bits, digits + 8)
        if (height + 1) << 8 <= low:
            return True
        if height << 8 >= high:
            return False
        height, digits = height << 64 | stream.bits(64), digits + 64


@register_mechanism("exponential", cost=pure_cost, tasks=("records", "second-moment"), comparison_only=True)
def exponential(
    query: MatrixQuery,
    privacy: Privacy,
    data: Any,
    *,
    stream: Stream | None = None,
    simulation: bool = False,
    halved: bool = False,
) -> MechanismRelease:
    """The answer to any query with noise of uniform direction and Gamma radius.

    Parameters
    ----------
    query, privacy, data, stream, simulation
        As for `matrixdp.Design.release`; delta is not used.
    halved : bool
        Use epsilon/2, as the textbook's general form does for a normaliser that depends on the data. Here the
        normaliser does not, so half the budget is unused.

    Privacy
    -------
    epsilon-DP (epsilon/2 when halved), delta 0, for the query's neighbours: the exponents of neighbours differ by
    ``rate ||D||_F`` at most. Floating-point noise: for comparison only.
    """
    check_arguments(query, privacy)
    check_stream(stream, simulation=simulation)
    epsilon = privacy.epsilon / 2 if halved else privacy.epsilon
    scale = query.sensitivity.frobenius / epsilon
    answer = answer_to_vector(query, query.evaluate(data, clip=True, missing="error"))
    noisy = vector_to_answer(query, answer + scale * draw_radial(stream or Stream(), answer.size, 1)[0])
    known: dict[str, Any] = {"comparison_only": True, "simulation": simulation}
    known["std"] = vector_to_answer(query, np.full(answer.size, scale * math.sqrt(answer.size + 1)))
    known["parameters"] = {"scale": scale, "mean_radius": scale * answer.size}
    return MechanismRelease(query, query.finish(noisy), "exponential", privacy, epsilon, 0.0, **known)


@register_mechanism("PPCA", cost=pure_cost, tasks=("components",), comparison_only=True)
def ppca(
    query: SecondMoment, privacy: Privacy, data: Any, *, stream: Stream | None = None, simulation: bool = False
) -> MechanismRelease:
    """The first component, by Chaudhuri, Sarwate, Sinha (2012).

    It is a unit vector v of shape (m, 1) with density proportional to ``exp(concentration v'Av)``, A the second moment
    that is asked for. Parameters are those of `matrixdp.Design.release`; delta is not used.

    Privacy
    -------
    epsilon-DP, delta 0, for the query's neighbours (`concentration`). Drawn exactly by rejection, in floating-point
    numbers: for comparison only.
    """
    check_arguments(query, privacy)
    rate = concentration(query, privacy.epsilon)
    check_stream(stream, simulation=simulation)
    moment = query.evaluate(data, clip=True, missing="error")
    vector = draw_bingham(stream or Stream(), rate * moment).T.copy()
    known: dict[str, Any] = {"comparison_only": True, "simulation": simulation, "parameters": {"concentration": rate}}
    return MechanismRelease(query, vector, "PPCA", privacy, privacy.epsilon, 0.0, **known)


def concentration(query: SecondMoment, epsilon: float) -> float:
    """Largest factor on ``v'Av`` that is epsilon-DP.

    One record moves the quality by ``((v'x)^2 - (v'y)^2)/N``, between -q/N and q/N, q the largest ``|x|^2`` of the
    domain. The loss is the factor times the width of that range (Dong, Durfee, Rogers 2020), so the factor is
    ``epsilon N/(2q)``; for add/remove neighbours the quality moves in one direction only, and it is ``epsilon N/q``.
    """
    if not isinstance(query, SecondMoment):
        raise ParameterError(f"query must be SecondMoment for PPCA, got {type(query).__name__} instead.")
    directions = 1 if query.neighbours is Neighbours.ADD_REMOVE else 2
    return epsilon * query.records / (directions * largest_norm(query))


def largest_norm(query: Identity | SecondMoment) -> float:
    """Largest ``|x|^2`` of a record, measured from the query's centre."""
    change = query.bounds if isinstance(query, Identity) else query.record_change(query.neighbours)
    return max_quadratic(1.0, change.halfwidths, change.radius).value


def draw_bingham(stream: Stream, matrix: Floats, size: int = 1) -> Floats:
    """Unit vectors with density proportional to ``exp(x' matrix x)``, of shape (size, m); x and -x are equally likely.

    This is the Bingham distribution, sampled exactly by rejection (Kent, Ganeiban, Mardia 2013). With ``B = max
    eigenvalue - A`` the density is ``exp(-x'Bx)``, and for every b > 0::

        exp(-u) <= exp(-(m - b)/2) (m/b)^(m/2) (1 + 2u/b)^(-m/2),    u = x'Bx >= 0

    where ``(x'(I + 2B/b)x)^(-m/2)`` is the density of a normalised Gaussian of covariance ``(I + 2B/b)^-1``. The best b
    solves ``sum 1/(b + 2 lambda_i) = 1``, lambda the eigenvalues of B; acceptance stays high at any concentration.
    """
    eigenvalues, vectors = np.linalg.eigh(matrix)
    rates = eigenvalues[-1] - eigenvalues
    m = rates.size
    b = _best_b(rates)
    spread = 1 / np.sqrt(1 + 2 * rates / b)
    offset = (m - b) / 2 - m / 2 * math.log(m / b)
    kept: list[Floats] = []
    missing = size
    while missing > 0:
        normals = draw_normal(stream, (2 * missing + 8, m)) * spread
        points = normals / np.linalg.norm(normals, axis=1, keepdims=True)
        u = points**2 @ rates
        accepted = np.log(draw_uniform(stream, len(points))) < offset - u + m / 2 * np.log1p(2 * u / b)
        kept.append(points[accepted])
        missing -= len(kept[-1])
    return np.asarray(np.concatenate(kept)[:size] @ vectors.T)


def _best_b(rates: Floats) -> float:
    """The root of ``sum 1/(b + 2 rates) = 1``; it lies between 1, since one rate is zero, and m."""
    if rates.size == 1 or not rates.any():
        return float(rates.size)
    return float(brentq(lambda b: float((1 / (b + 2 * rates)).sum()) - 1, 1.0, float(rates.size)))


def draw_radial(stream: Stream, dimension: int, size: int) -> Floats:
    """Draws with density proportional to ``exp(-|z|)``, of shape (size, dimension)."""
    return draw_directions(stream, dimension, size) * draw_gamma(stream, dimension, size)[:, None]


def draw_uniform(stream: Stream, size: int) -> Floats:
    """Uniform numbers strictly between 0 and 1, of shape (size,)."""
    return np.asarray((stream.words(size) >> np.uint64(12)) * 2.0**-52 + 2.0**-53)


def draw_gamma(stream: Stream, shape: int, size: int) -> Floats:
    """Gamma variables of integer `shape` and unit scale, as sums of exponentials; of shape (size,)."""
    logs = np.log(draw_uniform(stream, shape * size))
    return np.asarray(-logs.reshape(size, shape).sum(axis=1))


def draw_directions(stream: Stream, dimension: int, size: int) -> Floats:
    """Uniform points on the unit sphere, of shape (size, dimension)."""
    normals = draw_normal(stream, (size, dimension))
    return np.asarray(normals / np.linalg.norm(normals, axis=1, keepdims=True))
