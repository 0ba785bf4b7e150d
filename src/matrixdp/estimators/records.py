"""Private records on a grid, with exact sums of them, read once; and the same in other coordinates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from matrixdp.bounds import Bounds
from matrixdp.errors import DataError
from matrixdp.estimators.coordinates import LEVELS, Coordinates
from matrixdp.estimators.digits import multiply, to_digits, to_floats
from matrixdp.noise import GramSum
from matrixdp.noise.covariance import Floats
from matrixdp.queries.running import MomentSum, levels

_BLOCK = 1 << 17  # numbers worked on at a time: they stay in the cache
_MOST = 1 << 15  # features: squared lengths on the grid stay below 2^53
_EPS = float(np.finfo(float).eps)


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

    def less(self, other: Sums) -> Sums:
        """The sums without those of some of the records."""
        return Sums(self.count - other.count, self.total - other.total, self.gram - other.gram)

    def about(self, origin: NDArray[np.int64]) -> Sums:
        """The sums of ``q - origin``."""
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


class Clippable(ABC):
    """Records u of shape (n, d) whose moments in any ball about the origin are known exactly.

    Privacy
    -------
    Private. Each row and its length depend on one record.
    """

    shape: tuple[int, int]
    lengths: Floats

    def __len__(self) -> int:
        return self.shape[0]

    @abstractmethod
    def take(self, rows: NDArray[np.intp]) -> Floats:
        """Some of the records, of shape (rows, d)."""

    @abstractmethod
    def moment_without(self, rows: NDArray[np.intp]) -> Floats:
        """``sum (1, u)(1, u)'`` over all other records, of shape (d + 1, d + 1): an exact sum, rounded once."""

    def moment(self, bounds: Bounds, public: int) -> Floats:
        """``(1/public) sum (1, u)(1, u)'`` over records moved into the ball of `bounds` about the origin.

        A record in the ball stays as it is; one outside, or not surely inside, is moved and put on the grid of the
        ball. Both sums are exact, so that the order and the number of either cannot matter.
        """
        assert bounds.radius is not None
        outside = np.flatnonzero(self.lengths > bounds.radius * (1 - 2 * (self.shape[1] + 16) * _EPS))
        moved = MomentSum(bounds, bounds, public, constant=True, clip=True, missing="error")
        moved.add(self.take(outside))
        return self.moment_without(outside) / public + moved.value()


class GridRecords(Clippable):
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
        if d > _MOST:
            raise DataError(f"records must have at most {_MOST} features, got {d} instead.")
        self.levels = levels
        self.steps = np.empty((n, d), np.float32)  # holds whole numbers up to 2^24
        self.lengths = np.empty(n)
        running, rows = _Running(d, levels), max(1, _BLOCK // d)
        buffer = np.empty((min(rows, n), d))
        for start in range(0, n, rows):
            part = slice(start, start + rows)
            block = bounds.quantise(array[part], levels, out=buffer[: len(array[part])])
            self.steps[part] = block
            np.einsum("ij,ij->i", block, block, out=self.lengths[part])
            running.add(block)
        np.sqrt(self.lengths, out=self.lengths)
        self.lengths /= levels
        self._sums = running.sums()

    def take(self, rows: NDArray[np.intp]) -> Floats:
        """Some of the records, of shape (rows, d)."""
        return np.asarray(self.steps[rows], np.float64) / self.levels

    def moment_without(self, rows: NDArray[np.intp]) -> Floats:
        """``sum (1, u)(1, u)'`` over all other records."""
        sums = self.sums_without(rows)
        return _assemble(sums.count, sums.total / self.levels, sums.gram / self.levels**2)

    def sums_without(self, rows: NDArray[np.intp]) -> Sums:
        """Sums over all records but some; adds up whichever are fewer."""
        if 2 * len(rows) <= len(self):
            return self._sums.less(self._sums_of(rows))
        return self._sums_of(np.setdiff1d(np.arange(len(self)), rows, assume_unique=True))

    def _sums_of(self, rows: NDArray[np.intp]) -> Sums:
        running, step = _Running(self.shape[1], self.levels), max(1, _BLOCK // self.shape[1])
        for start in range(0, len(rows), step):
            running.add(self.steps[rows[start : start + step]].astype(np.float64))
        return running.sums()


class MovedRecords(Clippable):
    """Records in public coordinates; their sums follow from those of the records, by exact arithmetic.

    Privacy
    -------
    Private. Each record is mapped on its own.
    """

    def __init__(self, records: GridRecords, coordinates: Coordinates) -> None:
        assert coordinates.levels == records.levels
        self._records, self._coordinates = records, coordinates
        self.shape = (len(records), len(coordinates.numbers))
        self.lengths = coordinates.lengths(records.steps)

    def take(self, rows: NDArray[np.intp]) -> Floats:
        """Some of the records, of shape (rows, k)."""
        return self._coordinates(self._records.steps[rows])

    def moment_without(self, rows: NDArray[np.intp]) -> Floats:
        """``sum (1, u)(1, u)'`` over all other records."""
        numbers, unit = self._coordinates.numbers, self._coordinates.unit
        sums = self._records.sums_without(rows).about(self._coordinates.origin)
        total = to_floats(multiply(numbers, to_digits(sums.total[:, None])))[:, 0]
        half = multiply(numbers, to_digits(sums.gram))
        gram = to_floats(multiply(numbers, half.transpose(0, 2, 1)))
        return _assemble(sums.count, total * unit, gram * np.multiply.outer(unit, unit))


def _assemble(count: int, total: Floats, gram: Floats) -> Floats:
    return np.block([[np.full((1, 1), float(count)), total[None]], [total[:, None], gram]])
