"""Moments of records in a ball together with their trace, which is free when records are replaced."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from matrixdp.domain.person import Person
from matrixdp.privacy import Neighbours
from matrixdp.queries import MatrixQuery, Moments
from matrixdp.sensitivity import FrobeniusBall
from matrixdp.serialise import builtin_kind
from matrixdp.types import Floats

_ROUNDING = 1 + 1e-12  # factor on the sensitivity, for rounding in its formula
_EPS = float(np.finfo(float).eps)


@builtin_kind
@dataclass(frozen=True, eq=False)
class TracedMoments(MatrixQuery):
    """Mean, second moment and ``|x|^2`` of records in a ball about the origin, as one row.

    The entries are ``sqrt(2) c0 E x_i``, ``sqrt(2) E x_i x_j`` (i < j), ``E x_i^2`` and ``sqrt(k) E |x|^2``, with
    ``y = c0^2/r^2`` at most 1 and ``k = 1 + 2 y``.

    Parameters
    ----------
    moments : Moments
        In a ball of radius r, for replaced records.
    ratio : float
        y in the formula above.

    Privacy
    -------
    With ``a = |u|^2``, ``b = |v|^2``, ``w = u'v`` the squared change, times N^2, is ``2 c0^2 (a + b - 2 w) + a^2 + b^2
    - 2 w^2 + k (a - b)^2``, at most ``2 c0^2 (a + b) + 2 c0^4 + a^2 + b^2 + k (a - b)^2`` for any w. That is convex in
    (a, b), so largest at a corner of [0, r^2]^2: ``2 (c0^2 + r^2)^2`` at (r^2, r^2), and no more at (r^2, 0) as long as
    ``k <= 1 + 2 y``. So the trace is free: the bound is that of (5) in docs/mathematics.md.

    Examples
    --------
    >>> from matrixdp.domain.bounds import Bounds
    >>> query = TracedMoments(Moments(Bounds([-1, -1], [1, 1], radius=1.0), 10), 0.25)
    >>> query.shape, round(query.sensitivity.frobenius * 10 / math.sqrt(2), 6)
    ((1, 6), 1.25)
    """

    moments: Moments
    ratio: float
    side = "columns"

    @property
    def neighbours(self) -> Neighbours:  # type: ignore[override]
        """Neighbours of the moments: replaced records."""
        return self.moments.neighbours

    @property
    def person(self) -> Person | None:  # type: ignore[override]
        """The person of the moments."""
        return self.moments.person

    @property
    def radius(self) -> float:
        """Radius of the ball."""
        return float(self.moments.bounds.radius or math.nan)

    @property
    def constant(self) -> float:
        """Constant before each record: c0."""
        return math.sqrt(self.ratio) * self.radius

    @property
    def weight(self) -> float:
        """Squared weight of the trace: k."""
        return 1 + 2 * self.ratio

    @cached_property
    def shape(self) -> tuple[int, int]:
        """(1, d (d + 3)/2 + 1) for d features."""
        d = self.moments.bounds.size
        return 1, d * (d + 3) // 2 + 1

    @cached_property
    def sensitivity(self) -> FrobeniusBall:
        """Largest change when one record is replaced."""
        square = self.radius**2 * (1 + self.ratio)
        return FrobeniusBall(math.sqrt(2) * square / self.moments.records * _ROUNDING)

    @cached_property
    def magnitude(self) -> Floats:
        """Largest absolute value of each entry, rounded up for records that exceed the radius by rounding."""
        d, square = self.moments.bounds.size, self.radius**2 * (1 + 1e-9)
        first = np.full(d, math.sqrt(2 * self.ratio) * square)
        products = np.full(d * (d - 1) // 2, math.sqrt(2) * square)
        squares = np.full(d, square)
        return np.concatenate([first, products, squares, [math.sqrt(self.weight) * square]])[None]

    @property
    def relative_error(self) -> float:
        """Relative rounding error of exact integers as floats, and of the sum in the trace."""
        return (self.moments.bounds.size + 8) * _EPS

    def evaluate(self, data: Any, *, clip: bool, missing: str) -> Floats:
        """The row of moments and trace, of shape (1, d (d + 3)/2 + 1), from exact integer sums."""
        matrix = self.moments.evaluate(data, clip=clip, missing=missing)
        d = len(matrix) - 1
        diagonal = np.diagonal(matrix)[1:]
        rows, columns = np.triu_indices(d, 1)
        parts = [
            math.sqrt(2) * self.constant * matrix[0, 1:],
            math.sqrt(2) * matrix[1:, 1:][rows, columns],
            diagonal,
            np.array([math.sqrt(self.weight) * float(diagonal.sum())]),
        ]
        return np.concatenate(parts)[None]

    def matrix(self, row: Floats) -> Floats:
        """Noisy moment of ``(1, x)``, of shape (d + 1, d + 1); both measurements of the trace are averaged."""
        d = self.moments.bounds.size
        first, products, squares, trace = np.split(row, np.cumsum([d, d * (d - 1) // 2, d]))
        own, other = float(squares.sum()), float(trace[0]) / math.sqrt(self.weight)
        both = (own + d * self.weight * other) / (1 + d * self.weight)  # variances d and 1/k
        matrix = np.diag(np.concatenate([[1.0], squares + (both - own) / d]))
        rows, columns = np.triu_indices(d, 1)
        matrix[rows + 1, columns + 1] = matrix[columns + 1, rows + 1] = products / math.sqrt(2)
        matrix[0, 1:] = matrix[1:, 0] = first / math.sqrt(2) / self.constant
        return matrix
