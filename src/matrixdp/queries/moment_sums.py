"""Exact moments of records that come in any number of pieces."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.device import is_device_block
from matrixdp.domain.bounds import Bounds
from matrixdp.domain.person import Person
from matrixdp.queries.cuda_sums import DeviceGrid, device_records, moment_on_device
from matrixdp.queries.sums import GramSum, PeopleSum
from matrixdp.records import is_columnar, to_array, to_columns
from matrixdp.records.people import People
from matrixdp.types import Floats

_BLOCK = 1 << 19  # entries quantised at a time
_MAX_BITS = 20


def levels(records: int) -> int:
    """Grid steps from the midpoint to a bound: as many as exact int64 sums of products allow, from 2^7 to 2^19."""
    spare = (62 - math.ceil(math.log2(2 * records))) // 2
    return 1 << min(_MAX_BITS - 1, max(7, spare))


class MomentSum:
    """Running ``sum x x'`` over records, quantised about the midpoint of the task's `box`, by exact integer sums.

    The order and the partition of the records cannot change a bit of it.
    """

    def __init__(self, task: MomentTask) -> None:
        self._task, self._grid = task, levels(task.records)
        size = task.bounds.size + task.constant
        self.total: Any = GramSum(size, limit=self._grid)
        if task.person is not None:
            self.total = PeopleSum(size, limit=self._grid, person=task.person)
        self._step = max(256, _BLOCK // task.bounds.size // 256 * 256)
        self._buffer = np.empty(0)

    @property
    def records(self) -> int:
        """Number of records so far."""
        return int(self.total.records)

    def merge(self, other: GramSum | PeopleSum) -> None:
        """Add the sum over other records."""
        self.total.merge(other)

    def add_public(self, weight: int) -> None:
        """Add a public record at the midpoint, with a weight in units: only the constant is not zero."""
        self.total.add_public([0] * self._task.constant, weight)

    def add(self, array: NDArray[np.generic], counts: NDArray[np.int64] | None = None) -> None:
        """Add records, of shape (rows, features); with a person, `counts` are the numbers of rows of theirs."""
        rows, columns = array.shape
        for start in range(0, rows, self._step):
            block = array[start : start + self._step]
            # Contiguous, apart from the constant: several times faster to work on than part of each row.
            whole = self._memory(len(block), columns)
            self._quantise(block, out=whole)
            if self._task.constant:
                out = self._memory(len(block), columns + 1, after=whole.size)
                out[:, 0] = self._grid
                out[:, 1:] = whole
            self._add(out if self._task.constant else whole, counts, start)

    def add_columns(self, columns: Sequence[NDArray[np.generic]], counts: NDArray[np.int64] | None = None) -> None:
        """Add records that are given column by column, each of shape (rows,)."""
        if self._task.box.radius is not None:  # lengths of records are sums, whose bits must not depend on the layout
            self.add(np.column_stack(columns), counts)
            return
        first = int(self._task.constant)
        size = len(columns) + first
        for start in range(0, len(columns[0]), self._step):
            rows = min(self._step, len(columns[0]) - start)
            out = self._memory(size, rows)
            block = self._memory(len(columns), rows, after=out.size)
            for row, column in zip(block, columns, strict=True):
                row[:] = column[start : start + rows]
            out[:first] = self._grid
            self._quantise(block.T, out=out[first:].T)
            self._add(out.T, counts, start)

    def _add(self, block: Floats, counts: NDArray[np.int64] | None, start: int) -> None:
        if counts is None:
            self.total.add(block)
        else:
            self.total.add(block, counts[start : start + len(block)])

    def add_on_device(self, block: Any) -> None:
        """Add records that are on a GPU."""
        task = self._task
        grid = DeviceGrid(task.bounds, task.box, self._grid, task.constant, task.clip, task.missing)
        records = device_records(block, task.bounds.size, task.bounds.names)
        self.total.add_sum(moment_on_device(records, grid), len(records))

    def _memory(self, rows: int, columns: int, *, after: int = 0) -> Floats:
        """A matrix in the reused buffer, `after` entries from its start."""
        size = rows * columns
        if self._buffer.size < after + size:
            self._buffer = np.empty(2 * size + max(rows, columns))
        return self._buffer[after : after + size].reshape(rows, columns)

    def _quantise(self, block: NDArray[np.generic], out: Floats) -> None:
        bounds, box, clip, missing = self._task.bounds, self._task.box, self._task.clip, self._task.missing
        if box is not bounds:
            block = np.clip(bounds.checked(block, clip=clip, missing=missing), bounds.lower, bounds.upper)
        box.quantise(block, self._grid, out=out, clip=clip or box is not bounds, missing=missing)

    def value(self) -> Floats:
        """``(1/records) sum x x'``, the public number of records being that of the query."""
        unit = self._task.box.steps(self._grid)
        if self._task.constant:
            unit = np.concatenate([[1.0 / self._grid], unit])
        return np.asarray(self.total.value() * unit[:, None] * unit / self._task.records)


@dataclass(frozen=True, eq=False)
class MomentTask:
    """Sums one part of the records: the same function in a thread, in a worker process and on another machine.

    `records` is the public number of all records; with `constant`, each gets a 1 put before it. Where there is a
    `person`, rows are weighted by how many the person has, which `people` knows.
    """

    bounds: Bounds
    box: Bounds
    records: int
    constant: bool
    clip: bool
    missing: str
    person: Person | None = None
    people: People | None = None

    @property
    def on_device(self) -> bool:
        """True if blocks may be on a GPU."""
        return self.person is None

    def start(self) -> MomentSum:
        """A sum without records."""
        return MomentSum(self)

    def __call__(self, number: int, blocks: Iterable[Any]) -> GramSum | PeopleSum:
        """The part's exact sum, of a few kilobytes."""
        moments = self.start()
        for block in blocks:
            if is_device_block(block):
                moments.add_on_device(block)
                continue
            data, counts = (block, None) if self.people is None else self.people.split(block)
            if is_columnar(data):
                moments.add_columns(to_columns(data, self.bounds.size, self.bounds.names), counts)
            else:
                moments.add(to_array(data, self.bounds.size, self.bounds.names), counts)
        total: GramSum | PeopleSum = moments.total
        return total
