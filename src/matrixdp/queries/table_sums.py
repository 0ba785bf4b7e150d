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
from matrixdp.queries.cuda_sums import device_table, sums_on_device
from matrixdp.queries.level_sums import Codes, LevelSums, SortedRows, code_type, join_codes
from matrixdp.queries.moment_sums import levels
from matrixdp.queries.sums import GramSum, PeopleSum
from matrixdp.records.people import People
from matrixdp.records.table_columns import TableBlock
from matrixdp.types import Floats

_LEAST, _MOST = 1 << 19, 1 << 20  # entries of z built at a time: more than the least only so that
_RUN = 1 << 9  # there are as many rows for each group


@dataclass(frozen=True, eq=False)
class TableTask:
    """Sums one part of the records: the same function in a thread, in a worker process and on another machine.

    Coordinates are in the order of their kinds: the constant, all values, all indicators of values, all levels.
    `records` is the public number of all records, and `missing` is for numbers that their description does not allow to
    be missing. Where there is a `person`, `people` knows how many rows each has.
    """

    columns: Columns
    by: tuple[str, ...]
    records: int
    clip: bool
    missing: str
    person: Person | None = None
    people: People | None = None

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
            mine, counts = (data, None) if self.people is None else self.people.split(data)
            block = TableBlock(mine, self.columns)
            numbers = [block.numbers(column.name) for column in used.numbers]
            codes = total.level_codes([block.codes(column) for column in used.categories])
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
        total.collect()
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

    def level_codes(self, codes: list[Codes]) -> list[Codes]:
        """Codes of the combinations of categories that are counted together, from those of all categories."""
        return [one.code(codes) for one in self.levels.combinations]

    def add(self, task: TableTask, rows: _Rows, z: Floats, raw: Floats) -> None:
        """Add some records; `z` and `raw` are memory for their coordinates and for their numbers, a row for each."""
        ordered = self.levels.sort(rows.codes, rows.groups)
        task.fill(z, raw, rows.numbers, ordered.order)
        for group, first, last in ordered.runs(z.shape[1]):
            self.dense[group].add(z[:, first:last].T)
        self.levels.add(rows.codes, ordered, z[1:])

    def add_on_device(self, data: Any, task: TableTask) -> None:
        """Add records that are on a GPU."""
        table = device_table(data, task.columns)
        for group, total, records in sums_on_device(
            table, task.columns, task.by, self.limit, clip=task.clip, missing=task.missing
        ):
            first = self.size  # levels come after all other coordinates
            self.dense[group].add_sum(total[:first, :first], records)
            self.levels.sums[group] += total[first:, 1:first] // self.limit  # divisible: each level is 0 or the limit
            self.levels.counts[group] += total[first:, first:] // self.limit**2

    def collect(self) -> None:
        """Bring the sums into the form in which they are merged."""
        self.levels.collect()

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
        self._dense, self._widths = task.dense, level_widths(task.used.categories)
        self.size, limit = self._dense + sum(self._widths), levels(task.records)
        groups = math.prod(level_widths(task.groups))
        self.sums = [PeopleSum(self.size, limit=limit, person=person) for _ in range(groups)]

    @property
    def records(self) -> int:
        """Number of rows so far, in all groups."""
        return sum(one.records for one in self.sums)

    def level_codes(self, codes: list[Codes]) -> list[Codes]:
        """The codes as they are."""
        return codes

    def add(self, task: TableTask, rows: _Rows, z: Floats, raw: Floats) -> None:
        """Add some rows."""
        assert rows.counts is not None
        task.fill(z[: self._dense], raw, rows.numbers)
        self._fill_levels(z[self._dense :], rows.codes)
        if rows.groups is None:
            self.sums[0].add(z.T, rows.counts)
            return
        ordered = SortedRows(rows.groups, None, len(self.sums), 1)
        assert ordered.order is not None
        z, counts = np.take(z, ordered.order, axis=1), rows.counts[ordered.order]
        for group, first, last in ordered.runs(len(counts)):
            self.sums[group].add(z[:, first:last].T, counts[first:last])

    def _fill_levels(self, z: Floats, codes: list[Codes]) -> None:
        """Write the levels of some rows, one row per column, into z of shape (levels, number of rows)."""
        z[...] = 0.0
        place, rows = 0, np.arange(z.shape[1])
        for width, values in zip(self._widths, codes, strict=True):
            z[place : place + width][values, rows] = self.sums[0].limit
            place += width

    def add_public(self, weight: int) -> None:
        """Add a public record to the first group, with a weight in units: first levels, and no values."""
        firsts = [self._dense + sum(self._widths[:i]) for i in range(len(self._widths))]
        self.sums[0].add_public([0, *firsts], weight)

    def collect(self) -> None:
        """Do nothing: all sums are in one form."""

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
