"""Measurements of records for shares of a budget: of private ones by releases, of simulated ones in arrays.

Moments are noisy, and come with the law of their noise.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from operator import attrgetter

import numpy as np

from matrixdp.adaptive import queries
from matrixdp.adaptive.budget import FitBudget
from matrixdp.adaptive.coordinates import LEVELS, Coordinates
from matrixdp.adaptive.records import PrivateRecords
from matrixdp.design import isotropic, make_design
from matrixdp.domain.person import Person, most_rows
from matrixdp.mechanisms.mechanism import NoisyAnswer
from matrixdp.privacy import Neighbours, Privacy
from matrixdp.types import Floats


@dataclass(frozen=True, eq=False)
class NoisyMoment:
    """Noisy ``(1/N) sum (1, u)(1, u)'`` of records u, of shape (d + 1, d + 1), and the size of its noise."""

    second: Floats
    constant: float  # c: for ``(c, u)`` in place of ``(1, u)`` the noise is isotropic but for the diagonal
    std: float  # of the noise off the diagonal
    trace_std: float = math.nan  # in the trace of ``sum u u'/N``
    count: float = 1.0  # of records, as a fraction of the public number; noisy where the number is private
    diagonal: Floats | None = None  # (d,), variances on the diagonal of ``sum u u'/N`` in the box; else twice std^2

    @property
    def mean(self) -> Floats:
        """Mean of u, of shape (d,)."""
        return self.second[0, 1:]

    def over(self, count: float) -> NoisyMoment:
        """The same sums over another number of records, a fraction of the public number."""
        factor = self.count / count
        second, diagonal = self.second * factor, None if self.diagonal is None else self.diagonal * factor**2
        second[0, 0] = 1.0
        stds = {"std": self.std * factor, "trace_std": self.trace_std * factor}
        return replace(self, second=second, count=count, diagonal=diagonal, **stds)

    def transform(self, matrix: Floats | None = None, centre: Floats | float = 0.0) -> tuple[Floats, Floats]:
        """Moment of ``(1, A (u - m))``, by default of (1, u), and the variance of the noise in each entry.

        Noise ``K G K'``, G symmetric with variance s^2 off the diagonal and 2 s^2 on it, has the variances ``s^2 (L_ii
        L_jj + L_ij^2)``, ``L = K K'``; what is more exact on the diagonal is subtracted.
        """
        turn = np.eye(len(self.second)) if matrix is None else turn_moment(matrix, centre)
        own = turn.copy()
        own[:, 0] /= self.constant
        spread = own @ own.T
        sizes = np.diagonal(spread)
        variances = self.std**2 * (np.multiply.outer(sizes, sizes) + spread**2)
        if self.diagonal is not None:
            squares = own[:, 1:] ** 2
            variances = variances - (squares * (2 * self.std**2 - self.diagonal)) @ squares.T
        return turn @ self.second @ turn.T, variances

    def trace_variance(self, matrix: Floats) -> float:
        """Variance of the noise in the trace of ``sum A u (A u)'/N`` for A of shape (k, d), but for that of the centre.

        It is ``2 s^2 |A'A|^2``, less what the trace of ``sum u u'/N`` is more exact than the sum of its parts.
        """
        shape = matrix.T @ matrix
        scale = float(np.trace(shape)) / len(shape)
        return 2 * self.std**2 * (float(np.square(shape).sum()) - len(shape) * scale**2) + (self.trace_std * scale) ** 2

    def add_noise(self, rng: np.random.Generator, public: int, *, public_number: bool) -> NoisyMoment:
        """The moment with simulated noise of its own law; for moments of simulated records."""
        d = len(self.second) - 1
        noise = rng.standard_normal((d + 1, d + 1)) * self.std
        noise[1:, 0] /= self.constant
        lower = np.tril(noise, -1)
        noise = lower + lower.T
        alone = rng.standard_normal(d)
        own = 2 * self.std**2 if self.diagonal is None else float(self.diagonal[0])
        even = self.trace_std**2 / d
        rest = max((own - even / d) / (1 - 1 / d), 0.0) if d > 1 else 0.0
        diagonal = math.sqrt(rest) * (alone - alone.mean()) + math.sqrt(even) * alone.mean()
        noise[np.arange(1, d + 1), np.arange(1, d + 1)] = diagonal
        noisy = replace(self, second=self.second + noise)
        if public_number:
            return noisy
        std = math.sqrt(2) * self.std / self.constant**2
        return noisy.over(positive_count(1 + std * float(rng.standard_normal()), std, public))


def turn_moment(matrix: Floats, centre: Floats | float) -> Floats:
    """The matrix that maps ``(1, u)`` to ``(1, A (u - m))``, of shape (d + 1, d + 1)."""
    turn = np.eye(len(matrix) + 1)
    turn[1:, 1:], turn[1:, 0] = matrix, -matrix @ np.broadcast_to(centre, len(matrix))
    return turn


def positive_count(noisy: float, std: float, public: int) -> float:
    """Noisy fraction of the public number of records, but at least its noise and at least one record."""
    return max(noisy, std, 1 / public)


def read_moment(released: NoisyAnswer, public: int) -> NoisyMoment:
    """Moment from a release of `ball_query` or `box_query`, over the noisy number of records where that is private."""
    query, design = released.design.query, released.design
    if isinstance(query, queries.TracedMoments):
        d, std = query.moments.bounds.size, float(released.std[0, 0])
        trace_std = std * math.sqrt(d / (1 + d * query.weight))
        return NoisyMoment(query.matrix(released.matrix[0]), query.constant, std / math.sqrt(2), trace_std)
    variance = float(design.colcov.variances[1])
    off, constant = variance / math.sqrt(2), math.sqrt(variance / design.colcov.variances[0])
    diagonal, trace_std = None, variance * math.sqrt(len(released.matrix) - 1)
    if isinstance(query, queries.BoxMoments):
        diagonal = np.asarray(np.diagonal(released.std)[1:] ** 2)
        trace_std = math.sqrt(_trace_variance(diagonal, off, constant, query.neighbours))
    noisy = NoisyMoment(released.matrix, constant, off, trace_std, diagonal=diagonal)
    count = positive_count(float(released.matrix[0, 0]), float(released.std[0, 0]), public)
    return noisy.over(1.0 if query.public_number else count)


def ball_noise(
    second: Floats, radius: float, ratio: float, reach: float, neighbours: Neighbours, *, traced: bool
) -> NoisyMoment:
    """An exact moment, of shape (d + 1, d + 1), with the law of the noise that `ball_query` has.

    `reach` is the public number of records times mu; the trace is `traced`, measured too, where that number is public.
    """
    d = len(second) - 1
    std = (1 + ratio) * radius**2 / reach * (math.sqrt(2) if neighbours is Neighbours.REPLACE else 1.0)
    trace_std = std * math.sqrt(d / (1 + d * (1 + 2 * ratio)) if traced else d)
    return NoisyMoment(second, math.sqrt(ratio) * radius, std / math.sqrt(2), trace_std)


def box_noise(second: Floats, ratio: float, reach: float, neighbours: Neighbours = Neighbours.REPLACE) -> NoisyMoment:
    """An exact moment with the law of the noise that `box_query` has; parameters as for `ball_noise`.

    For replaced records the squares have the precision ``1 + 1.5 d + 2 c^2``, relative to that of ``K G K'``, and their
    sum has ``1 + d + 2 c^2``.
    """
    d = len(second) - 1
    std, square = d * (1 + ratio) / reach, ratio * d
    part = (1 - 1 / d) / (1 + 1.5 * d + 2 * square) + 1 / d / (1 + d + 2 * square)
    if neighbours is not Neighbours.REPLACE:
        std, part = std / math.sqrt(2), _added_squares(d, ratio)
    diagonal, constant = np.full(d, 2 * std**2 * part), math.sqrt(square)
    trace_std = math.sqrt(_trace_variance(diagonal, std, constant, neighbours))
    return NoisyMoment(second, constant, std, trace_std, diagonal=diagonal)


def _trace_variance(diagonal: Floats, std: float, constant: float, neighbours: Neighbours) -> float:
    """Variance of the noise in the trace: its precision is ``1 + d + 2 c^2`` instead of 1 for replaced records."""
    d = diagonal.size
    precision = 1 + d + 2 * constant**2 if neighbours is Neighbours.REPLACE else 1.0
    return max(2 * d * std**2 / precision, float(diagonal.sum()) / d)


@lru_cache(maxsize=256)
def _added_squares(size: int, ratio: float) -> float:
    """Variance of a square, relative to that of ``K G K'``, where records are added or removed."""
    query = queries.box_query(size, 1000, Neighbours.ADD_REMOVE, ratio=ratio)
    design = make_design(query, Privacy(1.0, 1e-6), allocation="uniform")
    return float(design.std[1, 1] ** 2 / design.colcov.variances[1] ** 2)


def share_count(*moments: NoisyMoment) -> tuple[NoisyMoment, ...]:
    """The same moments over one number of records, if it is private: the average of their noisy ones by precisions."""
    if all(moment.count == 1.0 for moment in moments):
        return moments
    precisions = np.array([(moment.constant**2 / (moment.std * moment.count)) ** 2 for moment in moments])
    count = float(precisions @ [moment.count for moment in moments] / precisions.sum())
    return tuple(moment.over(count) for moment in moments)


class PrivateMeasurements:
    """Noisy answers about private records in [-1, 1]^d, or in other public coordinates; all that a fit sees of them.

    `public` is the number of records, or about it unless it is a `public_number`; `mu` is that of the whole fit for one
    row that counts, and `levels` half the number of grid steps of the records.

    Privacy
    -------
    Reads the records through `budget.release` alone: every answer has its share of the budget, and whatever is chosen
    in between is a function of earlier noisy answers.
    """

    def __init__(self, records: PrivateRecords, budget: FitBudget, public: int) -> None:
        self.records, self.budget, self.size, self.levels = records, budget, records.shape[1], records.levels
        self.public, self.public_number = public, budget.public_number
        self.mu = budget.privacy.mu / most_rows(budget.person)
        self._kind = public, budget.neighbours, budget.person

    remaining = property(attrgetter("budget.remaining"), doc="Share of the budget, as ``mu^2``, that is not spent yet.")

    def transform(self, coordinates: Coordinates) -> PrivateMeasurements:
        """The same records in public coordinates, from the same budget."""
        return PrivateMeasurements(self.records.transform(coordinates), self.budget, self.public)

    def scales(self, name: str, share: float) -> tuple[Floats, Floats, float, float]:
        """Noisy means of values and of squares in [-1, 1], of shape (d,), and the standard deviation of either."""
        query = queries.scales_query(self.size, *self._kind)
        released = self.budget.release(name, query, self.records, share=share)
        return queries.read_scales(released.matrix[0], released.std[0], self.public, public_number=self.public_number)

    def counter(self, name: str, cuts: Sequence[float], share: float) -> Callable[[float], float]:
        """Function from one of the cut-offs to the noisy number of longer records; each call spends `share`."""
        query, above = queries.count_query(*self._kind), self.records.counter(cuts)
        return lambda cut: float(self.budget.release(name, query, above(cut), share=share).matrix[0, 0])

    def excess(self, name: str, radius: float, limit: float, share: float) -> tuple[float, float]:
        """Noisy mean of ``min(max(l^2 - radius^2, 0), limit)`` over lengths l, and its standard deviation."""
        query = queries.excess_query(limit, *self._kind)
        released = self.budget.release(name, query, self.records.excess(radius, limit), share=share)
        return float(released.matrix[0, 0]), float(released.std[0, 0])

    def ball(self, name: str, radius: float, ratio: float, share: float) -> NoisyMoment:
        """Noisy moment of records clipped to a ball; `ratio` as for `ball_query`."""
        query = queries.ball_query(self.size, radius, *self._kind, ratio=ratio)
        return read_moment(self.budget.release(name, query, self.records, share=share), self.public)

    def box(self, name: str, ratio: float, share: float) -> NoisyMoment:
        """Noisy moment of records in their box, none of them clipped; `ratio` as for `box_query`."""
        query = queries.box_query(self.size, *self._kind, ratio=ratio)
        return read_moment(self.budget.release(name, query, self.records, share=share, structured=True), self.public)


def check_designs(budget: FitBudget, size: int, public: int) -> None:
    """Raise the errors that designs of a fit can have, before it is charged: likeliest with the whole budget."""
    kind = public, budget.neighbours, budget.person
    ball = queries.ball_query(size, 1.0, *kind)
    for query in (queries.count_query(*kind), queries.scales_query(size, *kind), ball):
        make_design(query, budget.privacy, allocation=isotropic())
    make_design(queries.box_query(size, *kind), budget.privacy, allocation="uniform")


@dataclass(frozen=True, eq=False)
class SimulatedRecords:
    """Public records in [-1, 1]^d, of shape (n, d), with their moment."""

    array: Floats

    @cached_property
    def second(self) -> Floats:
        """Moment of (1, x), of shape (d + 1, d + 1)."""
        mean = self.array.mean(axis=0)
        return np.block([[np.ones((1, 1)), mean[None]], [mean[:, None], self.array.T @ self.array / len(self.array)]])

    @property
    def moments(self) -> tuple[Floats, Floats]:
        """Mean and covariance, over n, of shape (d,) and (d, d)."""
        mean = self.second[0, 1:]
        return mean, self.second[1:, 1:] - np.multiply.outer(mean, mean)


class SimulatedMeasurements:
    """`PrivateMeasurements` of simulated records, with public noise of the public number, for which few may stand."""

    def __init__(
        self,
        records: SimulatedRecords,
        public: int,
        mu: float,
        neighbours: Neighbours,
        rng: np.random.Generator,
        person: Person | None = None,
    ) -> None:
        self.public_number = neighbours is Neighbours.REPLACE and (person is None or person.rows is None)
        self.records, self.neighbours, self.rng, self.levels = records, neighbours, rng, LEVELS
        self.size, self.public, self.mu = records.array.shape[1], public, mu
        self.lengths = np.sqrt(np.einsum("ij,ij->i", records.array, records.array))
        self.coordinates = Coordinates.of(np.eye(self.size), np.zeros(self.size))
        self._spent: list[float] = []

    @property
    def remaining(self) -> float:
        """Share of the budget that is not spent yet."""
        return 1.0 - math.fsum(self._spent)

    def _spend(self, share: float) -> float:
        """The public number of records times the mu of a share, which is spent."""
        self._spent.append(share)
        return self.public * self.mu * math.sqrt(share)

    def transform(self, coordinates: Coordinates) -> SimulatedMeasurements:
        """The same records in public coordinates."""
        placed, moved = (self.records.array - coordinates.centre) @ coordinates.matrix.T, copy.copy(self)
        moved.coordinates, moved.lengths = coordinates, np.sqrt(np.einsum("ij,ij->i", placed, placed))
        return moved

    def scales(self, name: str, share: float) -> tuple[Floats, Floats, float, float]:
        """Noisy means of values and squares, and the standard deviation of either."""
        row, query = queries.scales_row(self.records.second), queries.scales_query(self.size, 1, self.neighbours)
        std = np.full(row.size, query.sensitivity.frobenius / self._spend(share))
        noisy = row + std * self.rng.standard_normal(row.size)
        return queries.read_scales(noisy, std, self.public, public_number=self.public_number)

    def counter(self, name: str, cuts: Sequence[float], share: float) -> Callable[[float], float]:
        """Noisy counts."""

        def count(cut: float) -> float:
            longer, std = float(np.count_nonzero(self.lengths > cut)), self.public / self._spend(share)
            return self.public / len(self.lengths) * longer + std * float(self.rng.standard_normal())

        return count

    def excess(self, name: str, radius: float, limit: float, share: float) -> tuple[float, float]:
        """Noisy mean excess and its standard deviation."""
        std = limit / self._spend(share)
        exact = float(np.clip(self.lengths**2 - radius**2, 0.0, limit).mean())
        return exact + std * float(self.rng.standard_normal()), std

    def ball(self, name: str, radius: float, ratio: float, share: float) -> NoisyMoment:
        """Noisy moment in a ball: of all records, less what clipping takes from the long ones."""
        outside, matrix, centre = self.lengths > radius, self.coordinates.matrix, self.coordinates.centre
        turn = turn_moment(matrix, centre)
        long, lost = (self.records.array[outside] - centre) @ matrix.T, 1 - radius / self.lengths[outside]
        exact = turn @ self.records.second @ turn.T
        exact[1:, 1:] -= (long * (lost * (2 - lost))[:, None]).T @ long / len(self.lengths)
        exact[0, 1:] -= lost @ long / len(self.lengths)
        exact[1:, 0] = exact[0, 1:]
        law = ball_noise(exact, radius, ratio, self._spend(share), self.neighbours, traced=self.public_number)
        return law.add_noise(self.rng, self.public, public_number=self.public_number)

    def box(self, name: str, ratio: float, share: float) -> NoisyMoment:
        """Noisy moment of the box."""
        law = box_noise(self.records.second, ratio, self._spend(share), self.neighbours)
        return law.add_noise(self.rng, self.public, public_number=self.public_number)


Measurements = PrivateMeasurements | SimulatedMeasurements
