"""The queries of a fit, each with the proof of its sensitivity: counts, scales, excesses, and moments."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np

from matrixdp.adaptive.records import EXCESS_STEPS, PrivateRecords
from matrixdp.domain.bounds import Bounds
from matrixdp.domain.person import Person, most_rows
from matrixdp.privacy import Neighbours
from matrixdp.queries import MatrixQuery, Moments, Query
from matrixdp.sensitivity import FrobeniusBall
from matrixdp.serialise import builtin_kind
from matrixdp.types import Floats

_ROUNDING = 1 + 1e-12  # factor on the sensitivity, for rounding in its formula
_EPS = float(np.finfo(float).eps)
_AROUND = 8.0  # halfwidth of the box about a ball, in radii: a tight one would turn the directions of clipped records
_SQUARES = 1.66  # weight of squares relative to values; up to 1.665 squares are free
_BEYOND = 1.01  # radius of a ball that contains the box, in units of its corners' length


def count_query(records: int, neighbours: Neighbours, person: Person | None = None) -> Query:
    """Query for the number of records that are longer than a cut-off; `data` is that number.

    Privacy
    -------
    One record changes a count by one at most, for either kind of neighbours. So does one person, who counts as the
    share of their rows that are longer; where k rows of a person count, the change is at most k.
    """
    most, to_matrix = FrobeniusBall(float(most_rows(person))), lambda longer: np.array([[float(longer)]])
    return Query((1, 1), most, bound=2.0 * records, function=to_matrix, neighbours=neighbours, person=person)


def scales_query(
    size: int,
    records: int,
    neighbours: Neighbours,
    person: Person | None = None,
    function: Callable[[Any], Floats] | None = None,
) -> Query:
    """Query for the number of records and the means of values and squares in [-1, 1]^d, as in `scales_row`.

    `function` makes a row of the data, of shape (1, 1 + 2d); by default they are `PrivateRecords`.

    Privacy
    -------
    A feature z in [-1, 1] enters as ``(z, b (z^2 - 1/2))``. Between two values its change has the square
    ``d^2 (1 + b^2 s^2)``, ``d = z - z'``, ``s = z + z'``, ``|s| <= 2 - |d|``: at most 4, as for z alone, when ``b^2 <=
    (2 + d)/(d^2 (2 - d))`` for all d, which is 2.77. So ``2 sqrt(m)/N`` bounds the change of the answer between
    replaced records. An added or removed record changes the squared answer by at most ``1 + b^2/4`` a feature, and 1
    for the count. Where k rows of a person count, the change is at most k times the larger of both.
    """
    replaced, added = 4 * size, 1 + size * (1 + _SQUARES**2 / 4)
    rows = person is not None and person.rows is not None
    square = max(replaced, added) if rows else replaced if neighbours is Neighbours.REPLACE else added
    most = FrobeniusBall(most_rows(person) * math.sqrt(square) / records * _ROUNDING)
    function = function or (lambda data: scales_row(whole_moment(data, records))[None])
    kind: Any = {"neighbours": neighbours, "person": person}
    # Exact sums that are rounded once, and six operations.
    return Query((1, 2 * size + 1), most, bound=4.0, function=function, relative_error=16 * _EPS, **kind)


def scales_row(moment: Floats) -> Floats:
    """Number, means of values and weighted means of centred squares, of shape (1 + 2d,), from a moment of (1, x)."""
    return np.concatenate([moment[0], _SQUARES * (np.diagonal(moment)[1:] - moment[0, 0] / 2)])


def read_scales(noisy: Floats, std: Floats, public: int, *, public_number: bool) -> tuple[Floats, Floats, float, float]:
    """Means of values and squares from a noisy row of `scales_query`, and the standard deviation of either's noise."""
    size = noisy.size // 2
    count = 1.0 if public_number else max(float(noisy[0]), float(std[0]), 1 / public)
    mean = np.clip(noisy[1 : size + 1] / count, -1.0, 1.0)
    square = np.clip(noisy[size + 1 :] / _SQUARES / count + 0.5, 0.0, 1.0)
    return mean, square, float(std[-1]) / count, float(std[-1]) / _SQUARES / count


def excess_query(limit: float, records: int, neighbours: Neighbours, person: Person | None = None) -> Query:
    """Query for the mean excess of squared lengths; `data` is the sum in steps of ``limit/EXCESS_STEPS``.

    Privacy
    -------
    A record contributes an integer number of steps from 0 to `limit`, so the exact sum changes by at most `limit`, for
    either kind of neighbours; and by k times that where k rows of a person count.
    """
    most, mean = FrobeniusBall(most_rows(person) * limit / records * _ROUNDING), ExcessMean(limit, records)
    kind: Any = {"neighbours": neighbours, "person": person}
    # An exact sum, and three operations.
    return Query((1, 1), most, bound=2.5 * limit, function=mean, relative_error=4 * _EPS, **kind)


@dataclass(frozen=True)
class ExcessMean:
    """Mean excess, of shape (1, 1), from a sum in steps."""

    limit: float
    records: int

    def __call__(self, steps: Any) -> Floats:
        return np.array([[float(steps) / EXCESS_STEPS * self.limit / self.records]])


class BallMoments(Moments):
    """`Moments` of `PrivateRecords`, which clip and sum themselves.

    Privacy
    -------
    As `Moments`: the term of each record lies in the ball and depends on that record alone, and the sum is exact.
    """

    @property
    def relative_error(self) -> float:
        """Relative rounding error of exact sums as floats: nine layers of digits, seven of them rounded; a division."""
        return 8 * _EPS

    def evaluate(self, data: Any, *, clip: bool, missing: str) -> Floats:
        assert isinstance(data, PrivateRecords)
        self.check_number(len(data))
        return data.moment(self.bounds, self.records)


def ball_query(
    size: int, radius: float, public: int, neighbours: Neighbours, person: Person | None = None, *, ratio: float = 0.25
) -> BallMoments | TracedMoments:
    """Query for moments in a ball about the origin, with the trace as well where their number is public.

    `ratio` is the square of the constant that goes before each record, in units of ``radius^2``.

    Privacy
    -------
    The query clips each record to the ball, so the only assumption is that each row depends on one record. By (5) of
    docs/sensitivity.md the noise of a diagonal entry is ``sqrt(2)(1 + ratio) radius^2/(N mu)`` for replaced records,
    and ``(1 + ratio) radius^2/(N mu)`` for added or removed ones; where k rows of a person count, k times that.
    """
    bounds = Bounds(np.full(size, -_AROUND * radius), np.full(size, _AROUND * radius), radius=radius)
    moments = BallMoments(bounds, public, neighbours=neighbours, person=person, mean_share=ratio / (1 + ratio))
    return TracedMoments(moments, ratio) if moments.public_number else moments


@builtin_kind
@dataclass(frozen=True, eq=False)
class TracedMoments(MatrixQuery):
    """Mean, second moment and ``|x|^2`` of records in a ball about the origin, as one row.

    The entries are ``sqrt(2) c0 E x_i``, ``sqrt(2) E x_i x_j`` (i < j), ``E x_i^2`` and ``sqrt(k) E |x|^2``, with
    ``y = c0^2/r^2`` at most 1, `ratio`, and ``k = 1 + 2 y``. The `moments` are in a ball of radius r, for replaced
    records.

    Privacy
    -------
    With ``a = |u|^2``, ``b = |v|^2``, ``w = u'v`` the squared change, times N^2, is ``2 c0^2 (a + b - 2 w) + a^2 + b^2
    - 2 w^2 + k (a - b)^2``, at most ``2 c0^2 (a + b) + 2 c0^4 + a^2 + b^2 + k (a - b)^2`` for any w. That is convex in
    (a, b), so largest at a corner of [0, r^2]^2: ``2 (c0^2 + r^2)^2`` at (r^2, r^2), and no more at (r^2, 0) as long as
    ``k <= 1 + 2 y``. So the trace is free: the bound is that of (5) in docs/sensitivity.md.
    """

    moments: Moments
    ratio: float
    side = "columns"

    neighbours = property(attrgetter("moments.neighbours"))  # replaced records
    person = property(attrgetter("moments.person"))

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
        sizes = math.sqrt(2 * self.ratio) * square, math.sqrt(2) * square, square, math.sqrt(self.weight) * square
        return np.repeat(sizes, [d, d * (d - 1) // 2, d, 1])[None]

    @property
    def relative_error(self) -> float:
        """Relative rounding error of exact integers as floats, and of the sum in the trace."""
        return (self.moments.bounds.size + 8) * _EPS

    def evaluate(self, data: Any, *, clip: bool, missing: str) -> Floats:
        """The row of moments and trace, of shape (1, d (d + 3)/2 + 1), from exact integer sums."""
        matrix = self.moments.evaluate(data, clip=clip, missing=missing)
        diagonal, root = np.diagonal(matrix)[1:], math.sqrt(2)
        first, products = root * self.constant * matrix[0, 1:], root * matrix[1:, 1:][np.triu_indices(diagonal.size, 1)]
        return np.concatenate([first, products, diagonal, [math.sqrt(self.weight) * float(diagonal.sum())]])[None]

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


class BoxMoments(BallMoments):
    """`Moments` of `PrivateRecords` in [-1, 1]^d, without a radius.

    Privacy
    -------
    As `Moments`: records are on a grid within the box, and their sum is exact.
    """

    def evaluate(self, data: Any, *, clip: bool, missing: str) -> Floats:
        assert isinstance(data, PrivateRecords)
        self.check_number(len(data))
        return whole_moment(data, self.records)


def whole_moment(data: PrivateRecords, public: int) -> Floats:
    """Moment of (1, x) of all records in [-1, 1]^d, none of them clipped, of shape (d + 1, d + 1)."""
    assert data.grid.coordinates is None
    d = data.shape[1]
    radius = _BEYOND * math.sqrt(d)
    return data.moment(Bounds(np.full(d, -radius), np.full(d, radius), radius=radius), public)


def box_query(
    size: int, public: int, neighbours: Neighbours, person: Person | None = None, *, ratio: float = 1 / 8
) -> BoxMoments:
    """Query for moments in [-1, 1]^d; `ratio` is the square of the constant before each record, in units of d."""
    bounds = Bounds(np.full(size, -1.0), np.full(size, 1.0))
    return BoxMoments(bounds, public, neighbours=neighbours, person=person, mean_share=ratio / (1 + ratio))
