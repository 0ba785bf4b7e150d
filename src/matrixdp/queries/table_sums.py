"""Exact moments of the vectors of a table, by group, of records that come in any number of pieces."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.device import is_device_block
from matrixdp.domain.columns import Category, Columns, YesNo
from matrixdp.noise.sums import GramSum
from matrixdp.queries.cuda_tables import device_table, sums_on_device
from matrixdp.queries.level_sums import LevelSums
from matrixdp.queries.moment_sums import levels
from matrixdp.records.table_columns import TableBlock
from matrixdp.types import Floats

_LEAST, _MOST = 1 << 19, 1 << 20  # entries of z built at a time: more than the least only so that
_RUN = 1 << 9  # there are as many rows for each group


class TableSum:
    """Exact sums of ``z z'``, one for each group.

    Parameters
    ----------
    dense : int
        Number of coordinates that are not levels: the constant, values and their indicators.
    widths : sequence of int
        Number of levels of each category.
    groups : int
    limit : int
        Largest absolute value of a coordinate; that of a level that a record has.
    """

    def __init__(self, dense: int, widths: Sequence[int], groups: int, limit: int) -> None:
        self.limit = limit
        self.dense = [GramSum(dense, limit=limit) for _ in range(groups)]
        self.levels = LevelSums(widths, groups, dense)

    @property
    def records(self) -> int:
        """How many there were so far, in all groups."""
        return sum(one.records for one in self.dense)

    def add_on_device(self, data: Any, task: TableTask) -> None:
        """Add records that are on a GPU."""
        table, grid = device_table(data, task.columns), levels(task.records)
        for group, total, records in sums_on_device(
            table, task.columns, task.by, grid, clip=task.clip, missing=task.missing
        ):
            first = self.dense[group].columns  # levels come after all other coordinates
            self.dense[group].add_sum(total[:first, :first], records)
            self.levels.sums[group] += total[first:, :first] // self.limit  # divisible: each level is 0 or the limit
            self.levels.counts[group] += total[first:, first:] // self.limit**2

    def merge(self, other: TableSum) -> None:
        """Add the sums of other records."""
        for mine, theirs in zip(self.dense, other.dense, strict=True):
            mine.merge(theirs)
        self.levels.merge(other.levels)

    def value(self, group: int) -> NDArray[np.int64]:
        """The sum of a group: the coordinates that are not levels, then the levels."""
        counts = self.levels.counts[group] * self.limit**2
        sums = self.levels.sums[group] * self.limit
        return np.block([[self.dense[group].value(), sums.T], [sums, counts]])


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
        groups = math.prod(level_widths(self.groups))
        return TableSum(self.dense, level_widths(self.used.categories), groups, levels(self.records))

    def __call__(self, number: int, blocks: Iterable[Any]) -> TableSum:
        """The part's exact sums."""
        total, used = self.start(), self.used
        size, count = total.dense[0].columns, len(total.dense)
        step = min(max(256, _LEAST // size, _RUN * count), max(256, _MOST // size))
        z, raw = np.empty((size, step)), np.empty((len(used.numbers), step))
        vectors, sorted_vectors = np.empty((step, size)), np.empty((step, size))
        for data in blocks:
            if is_device_block(data):
                total.add_on_device(data, self)
                continue
            block = TableBlock(data, self.columns)
            numbers = [block.numbers(column.name) for column in used.numbers]
            codes = [block.codes(column) for column in used.categories]
            combined = [one.code(codes) for one in total.levels.combinations]
            groups = self.group_numbers(block)
            pieces = -(-block.size // step)
            for piece in range(pieces):
                rows = slice(block.size * piece // pieces, block.size * (piece + 1) // pieces)
                here = slice(rows.stop - rows.start)
                self.fill(z[:, here], raw[:, here], [column[rows] for column in numbers])
                out, chosen = vectors[here], [code[rows] for code in combined]
                out[...] = z[:, here].T
                order, by_group = (None, None) if groups is None else sort_groups(groups[rows], count)
                if order is not None:  # rows of one group together; all of them exist, so that none is clipped
                    out = np.take(out, order, axis=0, out=sorted_vectors[here], mode="clip")
                    chosen = [code.take(order) for code in chosen]
                for group, first, last in runs(by_group) if by_group is not None else [(0, 0, None)]:
                    total.dense[group].add(out[first:last])
                total.levels.add(chosen, by_group, out)
        total.levels.collect()
        return total

    @cached_property
    def used(self) -> Columns:
        """The columns without those of the groups."""
        return self.columns.without(self.by)

    @property
    def dense(self) -> int:
        """Number of coordinates that are not levels."""
        return 1 + len(self.used.numbers) + sum(one.missing for one in self.used.numbers)

    @cached_property
    def groups(self) -> list[Category | YesNo]:
        """The columns of the groups."""
        return [self.columns.category(name) for name in self.by]

    def group_numbers(self, block: TableBlock) -> NDArray[np.intp] | None:
        """The number of each record's group; None without groups."""
        groups: NDArray[np.intp] | None = None
        for column in self.groups:
            codes = block.codes(column).astype(np.intp)
            groups = codes if groups is None else groups * len(column.level_names) + codes
        return groups

    def fill(self, z: Floats, raw: Floats, numbers: Sequence[NDArray[Any]]) -> None:
        """Write the integer coordinates that are not levels into z of shape (coordinates, rows).

        `raw` is memory for the values.
        """
        grid, used, m = levels(self.records), self.used, len(numbers)
        z[0] = grid
        if used.bounds is None:
            return
        there = {}
        for i, (column, values) in enumerate(zip(used.numbers, numbers, strict=True)):
            raw[i] = values
            if column.missing:
                there[i] = np.isfinite(raw[i])
                np.copyto(raw[i], used.bounds.midpoint[i], where=~there[i])
        used.bounds.quantise(raw.T, grid, out=z[1 : 1 + m].T, clip=self.clip, missing=self.missing)
        for place, (i, observed) in enumerate(there.items(), start=1 + m):
            z[1 + i] *= observed
            np.multiply(observed, float(grid), out=z[place])


def sort_groups(groups: NDArray[np.intp], count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The order of rows by group, and the groups in that order."""
    small = np.uint8 if count <= 1 << 8 else np.uint16 if count <= 1 << 16 else np.intp  # sorted in linear time
    sizes = np.bincount(groups, minlength=count)
    return np.argsort(groups.astype(small), kind="stable"), np.repeat(np.arange(count), sizes)


def level_widths(columns: Iterable[Category | YesNo]) -> list[int]:
    """Number of levels of each category."""
    return [len(column.level_names) for column in columns]


def runs(groups: NDArray[np.intp]) -> Iterator[tuple[int, int, int]]:
    """Each group of a sorted vector with its first place and the place after its last."""
    ends = [*(np.flatnonzero(np.diff(groups)) + 1).tolist(), len(groups)]
    first = 0
    for last in ends:
        yield int(groups[first]), first, last
        first = last
