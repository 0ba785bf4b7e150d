"""Private records on a grid, with exact sums of them, read once; and the same in other coordinates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from matrixdp.adaptive.coordinates import LEVELS, Coordinates
from matrixdp.adaptive.digits import multiply, to_digits, to_floats
from matrixdp.domain.bounds import Bounds
from matrixdp.domain.row_arithmetic import square_lengths
from matrixdp.errors import ParameterError
from matrixdp.noise import GramSum
from matrixdp.queries.moment_sums import MomentSum, levels
from matrixdp.types import Floats

_BLOCK = 1 << 17  # numbers worked on at a time: they stay in the cache
EXCESS_STEPS = 1 << 12  # sums over 2^50 records stay below 2^63
_MOST = 1 << 15  # features: squared lengths on the grid stay below 2^53
_EPS = float(np.finfo(float).eps)


def check_features(size: int) -> None:
    """An error for more features than the grid's arithmetic allows."""
    if size > _MOST:
        raise ParameterError(f"bounds must be for at most {_MOST} features, got {size} instead.")


def grid_levels(public: int) -> int:
    """Half the steps of the grid for a public number of records: 2^19 up to two million of them.

    Sums of ``(q - m)(q - m)'`` over twice as many records stay below 2^62, wherever m is on the grid.
    """
    return min(LEVELS, levels(4 * public))


@dataclass(frozen=True, eq=False)
class Sums:
    """Number of records, ``sum q`` and ``sum q q'``, of whole numbers: int64 arrays of shape (d,) and (d, d)."""

    count: int
    total: NDArray[np.int64]
    gram: NDArray[np.int64]

    @classmethod
    def empty(cls, size: int) -> Sums:
        """Of no records."""
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
    """Sums that grow block by block."""

    def __init__(self, columns: int, limit: int) -> None:
        self._total = np.zeros(columns, np.int64)
        self._gram = GramSum(columns, limit=limit)

    def add(self, block: Floats) -> None:
        self._total += (np.ones(len(block)) @ block).astype(np.int64)  # below 2^53: exact in any order
        self._gram.add(block)

    def sums(self) -> Sums:
        return Sums(self._gram.records, self._total, self._gram.value())


class PrivateRecords(ABC):
    """Records u of shape (n, d) whose moments in any ball about the origin are known exactly.

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
    def counter(self, cuts: Sequence[float]) -> Callable[[float], int]:
        """A function that says how many records are longer than one of the cuts."""

    @abstractmethod
    def excess(self, radius: float, reach: float) -> int:
        """Sum of ``min(max(|u|^2 - radius^2, 0), reach)``, each in whole steps of ``reach/EXCESS_STEPS``."""

    @abstractmethod
    def split(self, ball: Bounds, public: int) -> tuple[Sums, MomentSum]:
        """Sums over records that surely lie in the ball, on the records' grid, and over the others, moved into it."""

    @abstractmethod
    def transform(self, coordinates: Coordinates) -> PrivateRecords:
        """The same records in public coordinates."""

    def moment(self, ball: Bounds, public: int) -> Floats:
        """``(1/public) sum (1, u)(1, u)'`` over records moved into the ball about the origin.

        A record in the ball stays as it is; one outside, or not surely inside, is moved and put on the grid of the
        ball. Both sums are exact, so that the order and the number of either cannot matter.
        """
        inside, outside = self.split(ball, public)
        return _moment(inside, self.levels, self.coordinates) / public + outside.value()


class InMemoryRecords(PrivateRecords):
    """Records in memory, with their lengths, of shape (n,)."""

    lengths: Floats

    def counter(self, cuts: Sequence[float]) -> Callable[[float], int]:
        """Counts the lengths."""
        return lambda cut: int(np.count_nonzero(self.lengths > cut))

    def excess(self, radius: float, reach: float) -> int:
        """Sum of what squared lengths have beyond a radius, in whole steps."""
        beyond = np.square(self.lengths[self.lengths > radius]) - radius**2
        return int(np.rint(np.clip(beyond / reach, 0.0, 1.0) * EXCESS_STEPS).astype(np.int64).sum())

    def split(self, ball: Bounds, public: int) -> tuple[Sums, MomentSum]:
        """Sums over records in the ball, and over the others, moved into it."""
        assert ball.radius is not None
        outside = np.flatnonzero(self.lengths > ball.radius * (1 - 2 * (self.shape[1] + 16) * _EPS))
        moved = ball_sum(ball, public)
        moved.add(self.take(outside))
        return self.sums_without(outside), moved

    @abstractmethod
    def take(self, rows: NDArray[np.intp]) -> Floats:
        """Some of the records, of shape (rows, d)."""

    @abstractmethod
    def sums_without(self, rows: NDArray[np.intp]) -> Sums:
        """Sums over all other records on their grid; adds up whichever are fewer."""


class GridRecords(InMemoryRecords):
    """Records in [-1, 1]^d as whole numbers of steps of 1/levels, and sums of them.

    Parameters
    ----------
    bounds : Bounds
        The box that is mapped to [-1, 1]^d.
    array : array of shape (n, d)
        Finite numbers; what lies outside is moved to the bounds.
    levels : int
        Half the steps of the grid.

    Privacy
    -------
    Private. Each record is mapped on its own.
    """

    def __init__(self, bounds: Bounds, array: NDArray[np.generic], levels: int) -> None:
        n, d = self.shape = (int(array.shape[0]), bounds.size)
        self.levels = levels
        self.steps = np.empty((n, d), np.float32)  # holds whole numbers up to 2^24
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
        """Some of the records, of shape (rows, d)."""
        return np.asarray(self.steps[rows], np.float64) / self.levels

    def sums_without(self, rows: NDArray[np.intp]) -> Sums:
        """Sums over all other records."""
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
    """Records in public coordinates; their sums follow from those of the records, by exact arithmetic.

    Privacy
    -------
    Private. Each record is mapped on its own.
    """

    def __init__(self, records: GridRecords, coordinates: Coordinates) -> None:
        assert coordinates.levels == records.levels
        self._records, self.coordinates, self.levels = records, coordinates, records.levels
        self.shape = (len(records), len(coordinates.numbers))
        self.lengths = coordinates.lengths(records.steps)

    def take(self, rows: NDArray[np.intp]) -> Floats:
        """Some of the records, of shape (rows, k)."""
        assert self.coordinates is not None
        return self.coordinates(self._records.steps[rows])

    def sums_without(self, rows: NDArray[np.intp]) -> Sums:
        """Sums over all other records on their grid, before they were moved."""
        return self._records.sums_without(rows)

    def transform(self, coordinates: Coordinates) -> TransformedRecords:
        """The records themselves in other coordinates."""
        return TransformedRecords(self._records, coordinates)


def ball_sum(ball: Bounds, public: int) -> MomentSum:
    """A sum, without records yet, of those that are moved into a ball about the origin."""
    return MomentSum(ball, ball, public, constant=True, clip=True, missing="error")


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
