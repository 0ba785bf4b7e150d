"""Private records outside of memory, looked at anew for each question, with the bits of records in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from matrixdp.bounds import Bounds
from matrixdp.estimators.coordinates import Coordinates
from matrixdp.estimators.records import Clippable, GridRecords, HeldRecords, Sums
from matrixdp.noise import GramSum
from matrixdp.queries.running import MomentSum
from matrixdp.queries.table import Parts, as_records, outside_memory, read_again

T = TypeVar("T")


class PartRecords(Clippable):
    """Records in parts as whole numbers of steps of 1/levels, perhaps in public coordinates.

    Parameters
    ----------
    parts : Parts
        Can be read again and again.
    bounds : Bounds
        The box that is mapped to [-1, 1]^d.
    count : int
        Number of records.
    levels : int
        Half the steps of the grid.
    coordinates : Coordinates, optional

    Privacy
    -------
    Private. Each record is mapped on its own. All questions are answered from exact integers.
    """

    def __init__(
        self, parts: Parts, bounds: Bounds, count: int, levels: int, coordinates: Coordinates | None = None
    ) -> None:
        self._parts, self._bounds = parts, bounds
        self.shape, self.levels, self.coordinates = (count, bounds.size), levels, coordinates

    def counter(self, cuts: Sequence[float]) -> Callable[[float], int]:
        """All cuts are looked at in one pass."""
        ordered = np.unique(np.array(cuts, np.float64))
        above = np.zeros(len(ordered), np.int64)
        for partial in self._parts.map(_CountTask(self._bounds, self.levels, self.coordinates, ordered)):
            above += partial
        counts = dict(zip(ordered.tolist(), above.tolist(), strict=True))
        return lambda cut: counts[cut]

    def excess(self, radius: float, reach: float) -> int:
        """Sum of what squared lengths have beyond a radius, in whole steps."""
        return sum(self._parts.map(_ExcessTask(self._bounds, self.levels, self.coordinates, radius, reach)))

    def split(self, ball: Bounds, public: int) -> tuple[Sums, MomentSum]:
        """Sums over records in the ball, and over the others, moved into it."""
        size = self._bounds.size
        inside = Sums(0, np.zeros(size, np.int64), np.zeros((size, size), np.int64))
        moved = MomentSum(ball, ball, public, constant=True, clip=True, missing="error")
        for sums, others in self._parts.map(_SplitTask(self._bounds, self.levels, self.coordinates, ball, public)):
            inside = inside.plus(sums)
            moved.total.merge(others)
        return inside, moved

    def moved(self, coordinates: Coordinates) -> PartRecords:
        """The same records in public coordinates."""
        return PartRecords(self._parts, self._bounds, len(self), self.levels, coordinates)


def look_at(data: Any, bounds: Bounds) -> tuple[int, Callable[[int], Clippable]]:
    """Number of records, and a function that puts them on the grid of `levels`; the data's errors come from both."""
    if not outside_memory(data):
        array = as_records(data, bounds.size, bounds.names)
        return len(array), lambda levels: GridRecords(bounds, array, levels)
    parts = read_again(data).select(bounds.names)
    count = sum(parts.map(_CheckTask(bounds)))
    return count, lambda levels: PartRecords(parts, bounds, count, levels)


@dataclass(frozen=True, eq=False)
class MappedParts(Parts):
    """Records that are made from others, block by block."""

    parts: Parts
    function: Callable[[Any], Any]

    def map(self, task: Callable[[int, Iterable[Any]], T], *, whole: bool = False) -> Iterator[T]:
        """What the task makes of the records after the function."""
        return self.parts.map(_MappedTask(task, self.function), whole=whole)


@dataclass(frozen=True, eq=False)
class _MappedTask:
    task: Callable[[int, Iterable[Any]], Any]
    function: Callable[[Any], Any]

    def __call__(self, number: int, blocks: Iterable[Any]) -> Any:
        return self.task(number, map(self.function, blocks))


@dataclass(frozen=True, eq=False)
class _CheckTask:
    bounds: Bounds

    def __call__(self, number: int, blocks: Iterable[Any]) -> int:
        bounds, count = self.bounds, 0
        for block in blocks:
            array = as_records(block, bounds.size, bounds.names)
            count += len(bounds.checked(array, clip=True, missing="error"))
        return count


def _held(blocks: Iterable[Any], bounds: Bounds, levels: int, coordinates: Coordinates | None) -> Iterator[HeldRecords]:
    for block in blocks:
        records = GridRecords(bounds, as_records(block, bounds.size, bounds.names), levels)
        yield records if coordinates is None else records.moved(coordinates)


@dataclass(frozen=True, eq=False)
class _CountTask:
    bounds: Bounds
    levels: int
    coordinates: Coordinates | None
    cuts: NDArray[np.float64]

    def __call__(self, number: int, blocks: Iterable[Any]) -> NDArray[np.int64]:
        """How many records are longer than each of the sorted cuts."""
        found = np.zeros(len(self.cuts) + 1, np.int64)
        for records in _held(blocks, self.bounds, self.levels, self.coordinates):
            found += np.bincount(np.searchsorted(self.cuts, records.lengths), minlength=len(found))
        return found[::-1].cumsum()[::-1][1:]


@dataclass(frozen=True, eq=False)
class _ExcessTask:
    bounds: Bounds
    levels: int
    coordinates: Coordinates | None
    radius: float
    reach: float

    def __call__(self, number: int, blocks: Iterable[Any]) -> int:
        held = _held(blocks, self.bounds, self.levels, self.coordinates)
        return sum(records.excess(self.radius, self.reach) for records in held)


@dataclass(frozen=True, eq=False)
class _SplitTask:
    bounds: Bounds
    levels: int
    coordinates: Coordinates | None
    ball: Bounds
    public: int

    def __call__(self, number: int, blocks: Iterable[Any]) -> tuple[Sums, GramSum]:
        size = self.bounds.size
        inside = Sums(0, np.zeros(size, np.int64), np.zeros((size, size), np.int64))
        moved = MomentSum(self.ball, self.ball, self.public, constant=True, clip=True, missing="error")
        for records in _held(blocks, self.bounds, self.levels, self.coordinates):
            sums, others = records.split(self.ball, self.public)
            inside = inside.plus(sums)
            moved.total.merge(others.total)
        return inside, moved.total
