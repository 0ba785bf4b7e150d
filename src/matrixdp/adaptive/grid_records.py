"""Private records on a grid, in memory, with exact sums; and the same records in other coordinates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from matrixdp.adaptive.coordinates import LEVELS, Coordinates
from matrixdp.adaptive.digits import multiply, to_digits, to_floats
from matrixdp.domain.bounds import Bounds
from matrixdp.domain.person import Person
from matrixdp.domain.row_arithmetic import square_lengths
from matrixdp.errors import ParameterError
from matrixdp.noise import GramSum
from matrixdp.queries.moment_sums import MomentSum, levels
from matrixdp.types import Floats

_BLOCK = 1 << 17  # numbers per block, so that a block stays in the cache
EXCESS_STEPS = 1 << 12  # grid of one record's excess; sums over 2^50 records stay below 2^63
_MOST_FEATURES = 1 << 15  # squared lengths on the grid stay below 2^53
_EPS = float(np.finfo(float).eps)


def check_features(size: int) -> None:
    """Raise for more features than the exact arithmetic allows."""
    if size > _MOST_FEATURES:
        raise ParameterError(f"bounds must be for at most {_MOST_FEATURES} features, got {size} instead.")


def grid_levels(public: int) -> int:
    """Half the number of grid steps for a public number of records: 2^19 up to two million records.

    Sums of ``(q - m)(q - m)'`` over twice as many records stay below 2^62 for any grid point m.
    """
    return min(LEVELS, levels(4 * public))


@dataclass(frozen=True, eq=False)
class Sums:
    """Number of records, ``sum q`` and ``sum q q'`` of integer records q: int64 arrays of shape (d,) and (d, d)."""

    count: int
    total: NDArray[np.int64]
    gram: NDArray[np.int64]

    @classmethod
    def empty(cls, size: int) -> Sums:
        """Sums of no records of `size` features."""
        return cls(0, np.zeros(size, np.int64), np.zeros((size, size), np.int64))

    def __sub__(self, other: Sums) -> Sums:
        return Sums(self.count - other.count, self.total - other.total, self.gram - other.gram)

    def __add__(self, other: Sums) -> Sums:
        return Sums(self.count + other.count, self.total + other.total, self.gram + other.gram)

    def shifted(self, origin: NDArray[np.int64]) -> Sums:
        """Sums of ``q - origin``, origin of shape (d,)."""
        cross = np.multiply.outer(self.total, origin)
        gram = self.gram - cross - cross.T + self.count * np.multiply.outer(origin, origin)
        return Sums(self.count, self.total - self.count * origin, gram)


class _Running:
    """Sums accumulated block by block."""

    def __init__(self, columns: int, limit: int) -> None:
        self._total = np.zeros(columns, np.int64)
        self._gram = GramSum(columns, limit=limit)

    def add(self, block: Floats) -> None:
        self._total += (np.ones(len(block)) @ block).astype(np.int64)  # below 2^53: exact in any order
        self._gram.add(block)

    def sums(self) -> Sums:
        return Sums(self._gram.records, self._total, self._gram.value())


class PrivateRecords(ABC):
    """Private records u of shape (n, d): exact counts by length, and exact moments after clipping to a ball.

    Attributes
    ----------
    shape : (int, int)
    levels : int
        Half the number of grid steps.
    coordinates : Coordinates or None
        Public coordinates that u are in; None for [-1, 1]^d.

    Privacy
    -------
    Private. Each row and its length depend on one record.
    """

    shape: tuple[int, int]
    levels: int
    coordinates: Coordinates | None = None

    def __len__(self) -> int:
        return self.shape[0]

    @abstractmethod
    def counter(self, cuts: Sequence[float]) -> Callable[[float], float]:
        """Function that returns how many records are longer than a cut-off, for the cut-offs given."""

    @abstractmethod
    def excess(self, radius: float, limit: float) -> float:
        """Sum of ``min(max(|u|^2 - radius^2, 0), limit)``, each rounded to whole steps of ``limit/EXCESS_STEPS``."""

    @abstractmethod
    def transform(self, coordinates: Coordinates) -> PrivateRecords:
        """The same records in public coordinates."""

    @abstractmethod
    def moment(self, ball: Bounds, public: int) -> Floats:
        """``(1/public) sum (1, u)(1, u)'`` over records clipped to a ball about the origin.

        A record inside the ball is summed as it is; one outside, or too close to the sphere to tell, is clipped and
        rounded to the grid of the ball. Both sums are exact, so the result does not depend on the order of records.
        """


class InMemoryRecords(PrivateRecords):
    """Private records in memory, with their lengths, of shape (n,)."""

    lengths: Floats

    def counter(self, cuts: Sequence[float]) -> Callable[[float], int]:
        """Count lengths directly."""
        return lambda cut: int(np.count_nonzero(self.lengths > cut))

    def excess(self, radius: float, limit: float) -> int:
        """Sum of the squared lengths' excess over a radius, in whole steps."""
        return int(excess_steps(self.lengths[self.lengths > radius], radius, limit).sum())

    def split(self, ball: Bounds, public: int) -> tuple[Sums, MomentSum]:
        """Sums over records that are certainly in the ball, on the grid, and over the others after clipping."""
        outside = np.flatnonzero(may_be_outside(self.lengths, ball))
        clipped = ball_sum(ball, public)
        clipped.add(self.take(outside))
        return self.sums_without(outside), clipped

    def moment(self, ball: Bounds, public: int) -> Floats:
        """Moments of records clipped to a ball."""
        return moment_of_split(*self.split(ball, public), self.levels, self.coordinates, public)

    @abstractmethod
    def take(self, rows: NDArray[np.intp]) -> Floats:
        """Selected records, of shape (rows, d)."""

    @abstractmethod
    def sums_without(self, rows: NDArray[np.intp]) -> Sums:
        """Sums over all records but these, on the grid; sums whichever are fewer."""


class GridRecords(InMemoryRecords):
    """Records in [-1, 1]^d as integer multiples of 1/levels, with their sums.

    Parameters
    ----------
    bounds : Bounds
        Box that is mapped to [-1, 1]^d.
    array : array of shape (n, d)
        Finite numbers; values outside the bounds are clipped to them.
    levels : int
        Half the number of grid steps.

    Privacy
    -------
    Private. Each record is mapped independently of the others.
    """

    def __init__(self, bounds: Bounds, array: NDArray[np.generic], levels: int) -> None:
        n, d = self.shape = (int(array.shape[0]), bounds.size)
        self.levels = levels
        self.steps = np.empty((n, d), np.float32)  # exact for integers up to 2^24
        self.lengths = np.empty(n)
        running, rows = _Running(d, levels), max(1, _BLOCK // d)
        buffer = np.empty((min(rows, n), d))
        for start in range(0, n, rows):
            part = slice(start, start + rows)
            block = bounds.quantise(array[part], levels, out=buffer[: len(array[part])])
            self.steps[part] = block
            square_lengths(block, out=self.lengths[part])
            running.add(block)
        np.sqrt(self.lengths, out=self.lengths)
        self.lengths /= levels
        self._sums = running.sums()

    def take(self, rows: NDArray[np.intp]) -> Floats:
        """Selected records, of shape (rows, d)."""
        return np.asarray(self.steps[rows], np.float64) / self.levels

    def sums_without(self, rows: NDArray[np.intp]) -> Sums:
        """Sums over all records but these."""
        if 2 * len(rows) <= len(self):
            return self._sums - self._sums_of(rows)
        return self._sums_of(np.setdiff1d(np.arange(len(self)), rows, assume_unique=True))

    def transform(self, coordinates: Coordinates) -> TransformedRecords:
        """The same records in public coordinates."""
        return TransformedRecords(self, coordinates)

    def _sums_of(self, rows: NDArray[np.intp]) -> Sums:
        running, step = _Running(self.shape[1], self.levels), max(1, _BLOCK // self.shape[1])
        for start in range(0, len(rows), step):
            running.add(self.steps[rows[start : start + step]].astype(np.float64))
        return running.sums()


class TransformedRecords(InMemoryRecords):
    """Grid records in public coordinates; their sums follow from those on the grid, by exact arithmetic.

    Privacy
    -------
    Private. Each record is mapped independently of the others.
    """

    def __init__(self, records: GridRecords, coordinates: Coordinates) -> None:
        assert coordinates.levels == records.levels
        self._records, self.coordinates, self.levels = records, coordinates, records.levels
        self.shape = (len(records), len(coordinates.numbers))
        self.lengths = coordinates.lengths(records.steps)

    def take(self, rows: NDArray[np.intp]) -> Floats:
        """Selected records, of shape (rows, k)."""
        assert self.coordinates is not None
        return self.coordinates(self._records.steps[rows])

    def sums_without(self, rows: NDArray[np.intp]) -> Sums:
        """Sums over all records but these, on the grid, before the transform."""
        return self._records.sums_without(rows)

    def transform(self, coordinates: Coordinates) -> TransformedRecords:
        """The original records in other coordinates; transforms do not compose."""
        return TransformedRecords(self._records, coordinates)


def excess_steps(lengths: Floats, radius: float, limit: float) -> NDArray[np.int64]:
    """Excess of squared lengths over a squared radius, up to a limit, in whole steps of ``limit/EXCESS_STEPS``."""
    beyond = np.square(lengths) - radius**2
    return np.asarray(np.rint(np.clip(beyond / limit, 0.0, 1.0) * EXCESS_STEPS).astype(np.int64))


def may_be_outside(lengths: Floats, ball: Bounds) -> NDArray[np.bool_]:
    """Which records are outside a ball, or too close to the sphere to tell."""
    assert ball.radius is not None
    return np.asarray(lengths > ball.radius * (1 - 2 * (ball.size + 16) * _EPS))


def ball_sum(ball: Bounds, public: int, person: Person | None = None) -> MomentSum:
    """Empty sum for records that are clipped to a ball about the origin."""
    return MomentSum(ball, ball, public, constant=True, clip=True, missing="error", person=person)


def moment_of_split(
    inside: Sums, outside: MomentSum, levels: int, coordinates: Coordinates | None, public: int
) -> Floats:
    """``(1/public) sum (1, u)(1, u)'`` from exact sums over records in a ball and over clipped ones."""
    return _moment(inside, levels, coordinates) / public + outside.value()


def _moment(sums: Sums, levels: int, coordinates: Coordinates | None) -> Floats:
    """``sum (1, u)(1, u)'``, of shape (d + 1, d + 1), from exact sums on the grid, rounded once."""
    if coordinates is None:
        total, gram = sums.total / levels, sums.gram / levels**2
    else:
        numbers, unit = coordinates.numbers, coordinates.unit
        centred = sums.shifted(coordinates.origin)
        half = multiply(numbers, to_digits(centred.gram))
        total = to_floats(multiply(numbers, to_digits(centred.total[:, None])))[:, 0] * unit
        gram = to_floats(multiply(numbers, half.transpose(0, 2, 1))) * np.multiply.outer(unit, unit)
    return np.block([[np.full((1, 1), float(sums.count)), total[None]], [total[:, None], gram]])
