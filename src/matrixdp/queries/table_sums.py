"""Exact moments of the vectors of a table, by group, of records that come in any number of pieces."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain.columns import Category, Columns, YesNo
from matrixdp.noise.sums import GramSum
from matrixdp.queries.cuda_sums import is_device_block
from matrixdp.queries.cuda_tables import device_table, sums_on_device
from matrixdp.queries.moment_sums import levels
from matrixdp.records.table_columns import TableBlock
from matrixdp.types import Floats

_BLOCK = 1 << 19  # entries of z built at a time


class TableSum:
    """Exact sums of ``z z'``, one for each group."""

    def __init__(self, size: int, groups: int, limit: int) -> None:
        self.sums = [GramSum(size, limit=limit) for _ in range(groups)]

    @property
    def records(self) -> int:
        """How many there were so far, in all groups."""
        return sum(one.records for one in self.sums)

    def add_on_device(self, data: Any, task: TableTask) -> None:
        """Add records that are on a GPU."""
        table, grid = device_table(data, task.columns), levels(task.records)
        for group, total, records in sums_on_device(
            table, task.columns, task.by, grid, clip=task.clip, missing=task.missing
        ):
            self.sums[group].add_sum(total, records)

    def merge(self, other: TableSum) -> None:
        """Add the sums of other records."""
        for mine, theirs in zip(self.sums, other.sums, strict=True):
            mine.merge(theirs)


@dataclass(frozen=True, eq=False)
class TableTask:
    """Sums one part of the records: the same function in a thread, in a worker process and on another machine.

    Coordinates are in the order of their kinds: the constant, all values, all indicators of values, all levels.

    Attributes
    ----------
    columns : Columns
    by : tuple of str
    records : int
        The public number of all records.
    clip, missing
        As for `release`; `missing` is for numbers that their description does not allow to be missing.
    """

    columns: Columns
    by: tuple[str, ...]
    records: int
    clip: bool
    missing: str

    on_device = True  # blocks may be on a GPU

    def start(self) -> TableSum:
        """Sums without records."""
        used = self._used
        observed, of_levels = sum(one.missing for one in used.numbers), sum(_widths(used.categories))
        size = 1 + len(used.numbers) + observed + of_levels
        return TableSum(size, math.prod(_widths(self._by)), levels(self.records))

    def __call__(self, number: int, blocks: Iterable[Any]) -> TableSum:
        """The part's exact sums."""
        total, used = self.start(), self._used
        size = total.sums[0].columns
        step = max(256, _BLOCK // size)
        z = np.empty((size, step))
        for data in blocks:
            if is_device_block(data):
                total.add_on_device(data, self)
                continue
            block = TableBlock(data, self.columns)
            numbers = [block.numbers(column.name) for column in used.numbers]
            codes = [block.codes(column) for column in used.categories]
            order, groups = self._sort(block)
            for start in range(0, block.size, step):
                rows = slice(start, min(start + step, block.size))
                out = z[:, : rows.stop - start]
                self._fill(out, numbers, codes, rows if order is None else order[rows])
                for group, first, last in _runs(groups[rows]) if groups is not None else [(0, 0, None)]:
                    total.sums[group].add(out[:, first:last].T)
        return total

    @cached_property
    def _used(self) -> Columns:
        return self.columns.without(self.by)

    @cached_property
    def _by(self) -> list[Category | YesNo]:
        return [self.columns.category(name) for name in self.by]

    def _sort(self, block: TableBlock) -> tuple[NDArray[np.intp] | None, NDArray[np.intp] | None]:
        """The order of the rows by group, and the groups in that order; None without groups."""
        if not self.by:
            return None, None
        groups = np.zeros(block.size, np.intp)
        for column in self._by:
            groups = groups * len(column.level_names) + block.codes(column)
        few = math.prod(_widths(self._by)) < 1 << 15  # small integers are sorted in linear time
        order = np.argsort(groups.astype(np.int16) if few else groups, kind="stable")
        return order, groups[order]

    def _fill(
        self,
        z: Floats,
        numbers: Sequence[NDArray[Any]],
        codes: Sequence[NDArray[np.intp]],
        rows: slice | NDArray[np.intp],
    ) -> None:
        """Write the integer vectors of some rows, one per column, into z of shape (p, number of rows)."""
        grid, used, m = levels(self.records), self._used, len(numbers)
        z[0] = grid
        place = 1 + m
        if used.bounds is not None:
            raw = np.empty((m, z.shape[1]))
            there = {}
            for i, (column, values) in enumerate(zip(used.numbers, numbers, strict=True)):
                raw[i] = values[rows]
                if column.missing:
                    there[i] = np.isfinite(raw[i])
                    np.copyto(raw[i], used.bounds.midpoint[i], where=~there[i])
            used.bounds.quantise(raw.T, grid, out=z[1 : 1 + m].T, clip=self.clip, missing=self.missing)
            for i, observed in there.items():
                z[1 + i] *= observed
                np.multiply(observed, float(grid), out=z[place])
                place += 1
        z[place:] = 0.0
        numbers_of_rows = np.arange(z.shape[1])
        for width, values in zip(_widths(used.categories), codes, strict=True):
            block = z[place : place + width]
            block[values[rows], numbers_of_rows] = grid
            place += width


def _widths(columns: Iterable[Category | YesNo]) -> list[int]:
    """Number of levels of each category."""
    return [len(column.level_names) for column in columns]


def _runs(groups: NDArray[np.intp]) -> Iterator[tuple[int, int, int]]:
    """Each group of a sorted vector with its first place and the place after its last."""
    ends = [*(np.flatnonzero(np.diff(groups)) + 1).tolist(), len(groups)]
    first = 0
    for last in ends:
        yield int(groups[first]), first, last
        first = last
