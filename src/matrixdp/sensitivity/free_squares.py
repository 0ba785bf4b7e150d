"""Squares of the features, measured more precisely beside a second moment at no cost to privacy.

With whitened records ``u = A x`` and weights e such that ``diag(e) - A'A`` is positive semidefinite, let ``a_i = e_i
x_i^2``, ``t_i = e_i c_i^2`` (c the halfwidths) and ``T = sum t_i``. Alpha is the whitened square of the constant that
moments put before a record, or 0. Beside the whitened moment, the squares may have the precision ``k diag(1/t) - g
11'`` in units of a:

- where a record is replaced, ``g = 1/2`` and ``k = (F(T) - F(T/2))/T``, ``F(s) = 2 (alpha + s)^2 - 2 max(alpha - s,
  0)^2``, which is ``3 T/2 + 2 alpha`` for ``alpha <= T/2``; the squared distance is at most ``F(T)``;
- where one is added or removed, ``k = 2 (alpha + T)`` and ``g = k/T``; the distance is at most ``alpha + T``.

The proofs are in `docs/mathematics.md`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from matrixdp.noise.structure import Squares
from matrixdp.privacy import Neighbours
from matrixdp.sensitivity.distance import Distance, column_norms
from matrixdp.sensitivity.quadratic import dominate, good_vertex, repair_dominance
from matrixdp.types import Factor, Floats, is_diagonal


@dataclass(frozen=True)
class RecordLengths:
    """Squared lengths of the parts of a whitened record, from which the distance of neighbours follows.

    `constant` is alpha, what two records have in common; `fixed` what every record has: the constant, and one level of
    each category of a table; `total` is T, the largest sum of the squares a. A record may move between `groups`, each
    with a matrix of its own.
    """

    constant: float
    fixed: float
    total: float
    neighbours: Neighbours
    groups: int = 1

    def replaced(self, s: float) -> float:
        """F(s), largest squared distance of two moments whose records have ``sum a`` of s on average, and the same a.

        It is ``2 (fixed + s)^2 - 2 max(constant - s, 0)^2``: records share the constant, but not their levels.
        """
        return 2 * (self.fixed + s) ** 2 - 2 * max(self.constant - s, 0.0) ** 2

    def free_gain(self) -> tuple[float, float]:
        """K and g: squares may have the precision ``k diag(1/t) - g 11'`` at no cost."""
        total = self.total
        alone = 2 * (self.fixed + total)
        if self.neighbours is Neighbours.ADD_REMOVE:
            return alone, alone / total
        gain = (self.replaced(total) - self.replaced(total / 2)) / total
        if self.groups == 1:
            return gain, 0.5
        gain = min(gain, alone)
        return gain, gain / total

    def bound(self, gain: float, loss: float, missing: float = 0.0) -> float:
        """Largest squared distance of neighbours, squares included, for squares of any precision.

        `gain` is k or more, `loss` is g, and `missing` says how much less than g the squares may lose.
        """
        total = self.total
        alone = _largest_alone(self.fixed, gain, loss - missing, total)
        if self.neighbours is Neighbours.ADD_REMOVE:
            return alone
        apart = self.replaced(total / 2) + gain * total + (max(0.0, 0.5 - loss) + missing) * total**2
        bound = max(self.replaced(total), apart)
        return bound if self.groups == 1 else max(bound, 2 * alone)


def free_squares(factor: Factor, alpha: float, halfwidths: Floats, neighbours: Neighbours) -> Squares:
    """The most precise squares beside a moment whitened by `factor`, for records in a box of `halfwidths`.

    `alpha` is the whitened square of the constant before each record, or 0.
    """
    if is_diagonal(factor):
        weights = np.array(column_norms(factor, halfwidths.size))
    else:
        scaled = factor * halfwidths
        weights = dominate(scaled.T @ scaled)[0] / halfwidths**2
    sizes = weights * halfwidths**2
    total = float(sizes.sum())
    gain, loss = RecordLengths(alpha, alpha, total, neighbours).free_gain()
    strengths = gain / sizes
    return Squares(weights, strengths, shift_of(strengths, loss))


def shift_of(strengths: Floats, loss: float) -> float:
    """The shift with which the sum of squares of these strengths loses a precision of `loss`."""
    inverse = float((1 / strengths).sum())
    return (1 - math.sqrt(max(0.0, 1 - loss * inverse))) / inverse


def _largest_alone(fixed: float, gain: float, loss: float, total: float) -> float:
    """Largest ``(fixed + s)^2 + gain s - loss s^2`` over ``0 <= s <= total``: squared length of one record's part."""
    curvature = 1 - loss
    s = total if curvature >= 0 else min(total, (2 * fixed + gain) / (-2 * curvature))
    return fixed**2 + (2 * fixed + gain) * s + curvature * s**2


def squares_distance(
    factor: Factor, alpha: float, halfwidths: Floats, neighbours: Neighbours, squares: Squares
) -> Distance:
    """Distance of neighbours in the whitened sum of ``(1, x)(1, x)'`` together with the squares, as they are.

    The bound holds for any `squares`. For those of `free_squares`, a diagonal factor and no constant, a corner of the
    box and its midpoint attain it.
    """
    exact, scaled, diagonal = squares.weights * halfwidths**2, factor * halfwidths, is_diagonal(factor)
    # ``e_i c_i^2`` for the smallest e above the weights for which ``diag(e) - A'A`` is certainly semidefinite.
    if diagonal:
        extents = np.maximum(exact, column_norms(factor, halfwidths.size) * halfwidths**2)
    else:
        extents = repair_dominance(exact, scaled.T @ scaled)
    total = float(extents.sum())
    shrunk = exact / extents
    gain = float((squares.strengths * shrunk * exact).max())
    # A negative loss, which only an altered design has, adds to the distance; smaller weights take nothing from that.
    loss, missing = squares.loss, 2 * max(squares.loss, 0.0) * (1 - float(shrunk.min()))
    longest = total if diagonal else good_vertex(scaled)
    corner = float((squares.strengths * exact**2).sum()) - loss * float(exact.sum()) ** 2
    bound = RecordLengths(alpha, alpha, total, neighbours).bound(gain, loss, missing)
    attained = (alpha + longest) ** 2 + corner
    if neighbours is Neighbours.REPLACE:  # a corner and the midpoint
        attained = (alpha + longest) ** 2 - alpha**2 + corner
    value = math.sqrt(bound)
    return Distance(value, min(math.sqrt(max(attained, 0.0)), value))
