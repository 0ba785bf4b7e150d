"""Exact moments of the vectors of a table, by group, of records or people that come in any number of pieces."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.device import is_device_block
from matrixdp.domain.columns import Category, Columns, YesNo
from matrixdp.domain.person import Person
from matrixdp.queries.cuda_sums import sums_on_device
from matrixdp.queries.level_sums import Codes, LevelSums, code_type, join_codes
from matrixdp.queries.sums import GramSum, PeopleSum, levels, sorted_runs
from matrixdp.records import split_rows
from matrixdp.records.tables import TableBlock
from matrixdp.types import Floats

_LEAST, _MOST = 1 << 19, 1 << 20  # entries of z built at a time: more than the least only so that
_RUN = 1 << 9  # there are as many rows for each group


@dataclass(frozen=True, eq=False)
class TableTask:
    """Sums one part of the records: the same function in a thread, in a worker process and on another machine.

    Coordinates are in the order of their kinds: the constant, all values, all indicators of values, all levels.
    `records` is the public number of all records, and `missing` is for numbers that their description does not allow to
    be missing. Where there is a `person`, blocks say how many rows each has.
    """

    columns: Columns
    by: tuple[str, ...]
    records: int
    clip: bool
    missing: str
    person: Person | None = None

    @property
    def on_device(self) -> bool:
        """True if blocks may be on a GPU."""
        return self.person is None

    def start(self) -> TableSum | PeopleTableSum:
        """Sums without records."""
        return TableSum(self) if self.person is None else PeopleTableSum(self, self.person)

    def __call__(self, number: int, blocks: Iterable[Any]) -> TableSum | PeopleTableSum:
        """The part's exact sums."""
        total, used = self.start(), self.used
        step = min(max(256, _LEAST // total.size, total.least_rows), max(256, _MOST // total.size))
        z, raw = np.empty((total.size, step)), np.empty((len(used.numbers), step))
        for data in blocks:
            if isinstance(total, TableSum) and is_device_block(data):
                total.add_on_device(data, self)
                continue
            mine, counts = split_rows(data)
            block = TableBlock(mine, self.columns)
            numbers = [block.numbers(column.name) for column in used.numbers]
            codes = [block.codes(column) for column in used.categories]
            groups = self.group_numbers(block)
            pieces = -(-block.size // step)
            for piece in range(pieces):
                rows = slice(block.size * piece // pieces, block.size * (piece + 1) // pieces)
                here = slice(rows.stop - rows.start)
                part = _Rows(
                    [column[rows] for column in numbers],
                    [code[rows] for code in codes],
                    None if groups is None else groups[rows],
                    None if counts is None else counts[rows],
                )
                total.add(self, part, z[:, here], raw[:, here])
        if isinstance(total, TableSum):
            total.levels.collect()
        return total

    @property
    def texts(self) -> list[str]:
        """Names of the columns that may hold strings."""
        return [column.name for column in self.columns.categories]

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

    def group_numbers(self, block: TableBlock) -> Codes | None:
        """The number of each record's group; None without groups."""
        groups, count = None, 1
        for column in self.groups:
            width = len(column.level_names)
            groups, count = join_codes(groups, block.codes(column), count, width), count * width
        return None if groups is None else groups.astype(code_type(count))

    def fill(
        self, z: Floats, raw: Floats, numbers: Sequence[NDArray[Any]], order: NDArray[np.intp] | None = None
    ) -> None:
        """Write the integer coordinates that are not levels into z of shape (coordinates, rows), in some order.

        `raw` is memory for the values.
        """
        grid, used, m = levels(self.records), self.used, len(numbers)
        z[0] = grid
        if used.bounds is None:
            return
        there = {}
        for i, (column, values) in enumerate(zip(used.numbers, numbers, strict=True)):
            if order is None:
                raw[i] = values
            elif values.dtype == np.float64:
                np.take(values, order, out=raw[i], mode="clip")  # all places exist, so that none is clipped
            else:
                raw[i] = values.take(order)
            if column.missing:
                there[i] = np.isfinite(raw[i])
                np.copyto(raw[i], used.bounds.midpoint[i], where=~there[i])
        used.bounds.quantise(raw.T, grid, out=z[1 : 1 + m].T, clip=self.clip, missing=self.missing)
        for place, (i, observed) in enumerate(there.items(), start=1 + m):
            z[1 + i] *= observed
            np.multiply(observed, float(grid), out=z[place])


@dataclass(frozen=True, eq=False)
class _Rows:
    """Some rows of a table, read: numbers and codes by column, the group of each row, how many its person has."""

    numbers: list[NDArray[Any]]
    codes: list[Codes]
    groups: Codes | None
    counts: NDArray[np.int64] | None


class TableSum:
    """Exact sums of ``z z'`` over records, one for each group.

    `size` is the number of coordinates that are multiplied: all but levels, which are counted. There are enough rows
    for each group if `least_rows` are added at a time.
    """

    def __init__(self, task: TableTask) -> None:
        self.limit = levels(task.records)
        widths, groups = level_widths(task.used.categories), math.prod(level_widths(task.groups))
        self.size, self.least_rows = task.dense, _RUN * groups
        self.dense = [GramSum(task.dense, limit=self.limit) for _ in range(groups)]
        self.levels = LevelSums(widths, groups, task.dense - 1)  # sums of the constant are counts

    @property
    def records(self) -> int:
        """Number of records so far, in all groups."""
        return sum(one.records for one in self.dense)

    def add(self, task: TableTask, rows: _Rows, z: Floats, raw: Floats) -> None:
        """Add some records; `z` and `raw` are memory for their coordinates and for their numbers, a row for each."""
        codes = [one.code(rows.codes) for one in self.levels.combinations]
        ordered = self.levels.sort(codes, rows.groups)
        task.fill(z, raw, rows.numbers, ordered.order)
        for group, first, last in ordered.runs(z.shape[1]):
            self.dense[group].add(z[:, first:last].T)
        self.levels.add(codes, ordered, z[1:])

    def add_on_device(self, data: Any, task: TableTask) -> None:
        """Add records that are on a GPU."""
        for group, total, records in sums_on_device(data, task, self.limit):
            first = self.size  # levels come after all other coordinates
            self.dense[group].add_sum(total[:first, :first], records)
            self.levels.sums[group] += total[first:, 1:first] // self.limit  # divisible: each level is 0 or the limit
            self.levels.counts[group] += total[first:, first:] // self.limit**2

    def merge(self, other: TableSum) -> None:
        """Add the sums of other records."""
        for mine, theirs in zip(self.dense, other.dense, strict=True):
            mine.merge(theirs)
        self.levels.merge(other.levels)

    def value(self, group: int) -> NDArray[np.int64]:
        """The sum of a group: the coordinates that are not levels, then the levels."""
        counts = self.levels.counts[group] * self.limit**2
        sums = np.column_stack([np.diagonal(counts), self.levels.sums[group] * self.limit])
        return np.block([[self.dense[group].value(), sums.T], [sums, counts]])


class PeopleTableSum:
    """Exact sums of ``z z'`` over people, one for each group: each row has the weight of its person.

    It has the attributes and methods of `TableSum`; levels are multiplied like all other coordinates.
    """

    least_rows = 0

    def __init__(self, task: TableTask, person: Person) -> None:
        ends = task.dense + np.cumsum([0, *level_widths(task.used.categories)])
        self._dense, self._firsts, self.size = task.dense, ends[:-1].tolist(), int(ends[-1])
        limit, groups = levels(task.records), math.prod(level_widths(task.groups))
        self.sums = [PeopleSum(self.size, limit=limit, person=person) for _ in range(groups)]

    @property
    def records(self) -> int:
        """Number of rows so far, in all groups."""
        return sum(one.records for one in self.sums)

    def add(self, task: TableTask, rows: _Rows, z: Floats, raw: Floats) -> None:
        """Add some rows."""
        assert rows.counts is not None
        task.fill(z[: self._dense], raw, rows.numbers)
        z[self._dense :] = 0.0
        every = np.arange(z.shape[1])
        for place, values in zip(self._firsts, rows.codes, strict=True):
            z[place + values.astype(np.intp), every] = self.sums[0].limit
        if rows.groups is None:
            self.sums[0].add(z.T, rows.counts)
            return
        order, runs = sorted_runs(rows.groups)
        z, counts = np.take(z, order, axis=1), rows.counts[order]
        for group, first, last in runs:
            self.sums[group].add(z[:, first:last].T, counts[first:last])

    def add_public(self, weight: int) -> None:
        """Add a public record to the first group, with a weight in units: first levels, and no values."""
        self.sums[0].add_public(weight, [0, *self._firsts])

    def merge(self, other: PeopleTableSum) -> None:
        """Add the sums of other rows."""
        for mine, theirs in zip(self.sums, other.sums, strict=True):
            mine.merge(theirs)

    def value(self, group: int) -> Floats:
        """The sum of a group: the coordinates that are not levels, then the levels."""
        return self.sums[group].value()


def level_widths(columns: Iterable[Category | YesNo]) -> list[int]:
    """Number of levels of each category."""
    return [len(column.level_names) for column in columns]
