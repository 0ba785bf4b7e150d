"""Private records out of core, read again for each query; results have the same bits as in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from matrixdp.adaptive.coordinates import Coordinates
from matrixdp.adaptive.device_records import DeviceGridRecords
from matrixdp.adaptive.grid_records import (
    GridRecords,
    InMemoryRecords,
    PrivateRecords,
    Sums,
    ball_sum,
    grid_levels,
    moment_of_split,
)
from matrixdp.device import is_device_block
from matrixdp.domain.bounds import Bounds
from matrixdp.noise import GramSum
from matrixdp.queries.cuda_sums import device_records
from matrixdp.queries.moment_sums import MomentSum
from matrixdp.records import Records, as_records, is_out_of_core, require_rereadable, to_array
from matrixdp.types import Floats

T = TypeVar("T")


class OutOfCoreRecords(PrivateRecords):
    """Records in parts as integer multiples of 1/levels, in public coordinates if given.

    Parameters
    ----------
    parts : Records
        Records that can be read more than once.
    bounds : Bounds
        Box that is mapped to [-1, 1]^d.
    count : int
        Number of records.
    levels : int
        Half the number of grid steps.
    coordinates : Coordinates, optional

    Privacy
    -------
    Private. Each record is mapped independently of the others. All answers come from exact integers.
    """

    def __init__(
        self, parts: Records, bounds: Bounds, count: int, levels: int, coordinates: Coordinates | None = None
    ) -> None:
        self._parts, self._grid = parts, (bounds, levels, coordinates)
        self.shape, self.levels, self.coordinates = (count, bounds.size), levels, coordinates

    def counter(self, cuts: Sequence[float]) -> Callable[[float], int]:
        """Count for all cut-offs in one pass."""
        ordered = np.unique(np.array(cuts, np.float64))
        above = np.zeros(len(ordered), np.int64)
        for partial in self._parts.map(CountTask(*self._grid, ordered)):
            above += partial
        counts = dict(zip(ordered.tolist(), above.tolist(), strict=True))
        return lambda cut: counts[cut]

    def excess(self, radius: float, limit: float) -> int:
        """Sum of the squared lengths' excess over a radius, in whole steps."""
        return sum(self._parts.map(ExcessTask(*self._grid, radius, limit)))

    def split(self, ball: Bounds, public: int) -> tuple[Sums, MomentSum]:
        """Sums over records in the ball, and over the others after clipping."""
        inside, clipped = Sums.empty(self.shape[1]), ball_sum(ball, public)
        for sums, others in self._parts.map(SplitTask(*self._grid, ball, public)):
            inside += sums
            clipped.total.merge(others)
        return inside, clipped

    def moment(self, ball: Bounds, public: int) -> Floats:
        """Moments of records clipped to a ball."""
        return moment_of_split(*self.split(ball, public), self.levels, self.coordinates, public)

    def transform(self, coordinates: Coordinates) -> OutOfCoreRecords:
        """The same records in public coordinates."""
        return OutOfCoreRecords(self._parts, self._grid[0], len(self), self.levels, coordinates)


def validate_records(data: Any, bounds: Bounds) -> tuple[int, Callable[[int], PrivateRecords]]:
    """Number of records, and a function that returns them on the grid for a public number of them.

    Raises for unsuitable data.
    """
    if is_device_block(data):
        on_device = device_records(data, bounds.size, bounds.names)
        return len(on_device), lambda public: DeviceGridRecords(bounds, on_device, grid_levels(public))
    if not is_out_of_core(data):
        array = to_array(data, bounds.size, bounds.names)
        return len(array), lambda public: GridRecords(bounds, array, grid_levels(public))
    parts = require_rereadable(as_records(data)).select(bounds.names)
    count = sum(parts.map(CheckTask(bounds)))
    return count, lambda public: OutOfCoreRecords(parts, bounds, count, grid_levels(public))


@dataclass(frozen=True, eq=False)
class CheckTask:
    """Counts the records of one part, and raises for unsuitable ones."""

    bounds: Bounds

    def __call__(self, number: int, blocks: Iterable[Any]) -> int:
        """Number of records."""
        bounds, count = self.bounds, 0
        for block in blocks:
            array = to_array(block, bounds.size, bounds.names)
            count += len(bounds.checked(array, clip=True, missing="error"))
        return count


@dataclass(frozen=True, eq=False)
class _GridTask:
    """Base of tasks on parts: puts each block on the grid, and into public coordinates if given."""

    bounds: Bounds
    levels: int
    coordinates: Coordinates | None

    def in_memory(self, blocks: Iterable[Any]) -> Iterator[InMemoryRecords]:
        """Grid records of each block."""
        for block in blocks:
            records = GridRecords(self.bounds, to_array(block, self.bounds.size, self.bounds.names), self.levels)
            yield records if self.coordinates is None else records.transform(self.coordinates)


@dataclass(frozen=True, eq=False)
class CountTask(_GridTask):
    """Counts records of one part that are longer than sorted cut-offs."""

    cuts: NDArray[np.float64]

    def __call__(self, number: int, blocks: Iterable[Any]) -> NDArray[np.int64]:
        """How many records are longer than each of the sorted cut-offs."""
        found = np.zeros(len(self.cuts) + 1, np.int64)
        for records in self.in_memory(blocks):
            found += np.bincount(np.searchsorted(self.cuts, records.lengths), minlength=len(found))
        return found[::-1].cumsum()[::-1][1:]


@dataclass(frozen=True, eq=False)
class ExcessTask(_GridTask):
    """Sums the excess of the records of one part."""

    radius: float
    limit: float

    def __call__(self, number: int, blocks: Iterable[Any]) -> int:
        """Sum in whole steps."""
        return sum(records.excess(self.radius, self.limit) for records in self.in_memory(blocks))


@dataclass(frozen=True, eq=False)
class SplitTask(_GridTask):
    """Sums the records of one part that are in a ball, and the others after clipping."""

    ball: Bounds
    public: int

    def __call__(self, number: int, blocks: Iterable[Any]) -> tuple[Sums, GramSum]:
        """Both sums."""
        inside, clipped = Sums.empty(self.bounds.size), ball_sum(self.ball, self.public)
        for records in self.in_memory(blocks):
            sums, others = records.split(self.ball, self.public)
            inside += sums
            clipped.total.merge(others.total)
        return inside, clipped.total
