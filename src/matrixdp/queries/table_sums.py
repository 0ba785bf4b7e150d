"""Exact moments of the vectors of a table, by group, of records that come in any number of pieces."""

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
from matrixdp.noise.sums import GramSum
from matrixdp.queries.cuda_sums import device_table, sums_on_device
from matrixdp.queries.level_sums import Codes, LevelSums, SortedRows, code_type, join_codes
from matrixdp.queries.moment_sums import levels
from matrixdp.queries.people import PeopleSum
from matrixdp.records.people import People
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
        self.levels = LevelSums(widths, groups, dense - 1)  # sums of the constant are counts

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
                chosen = [code[rows] for code in combined]
                ordered = total.levels.sort(chosen, None if groups is None else groups[rows])
                out = z[:, here]
                self.fill(out, raw[:, here], [column[rows] for column in numbers], ordered.order)
                for group, first, last in ordered.runs(out.shape[1]):
                    total.dense[group].add(out[:, first:last].T)
                total.levels.add(chosen, ordered, out[1:])
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


def level_widths(columns: Iterable[Category | YesNo]) -> list[int]:
    """Number of levels of each category."""
    return [len(column.level_names) for column in columns]


_BLOCK = 1 << 19  # entries of z built at a time


class PeopleTableSum:
    """Weighted sums of ``z z'``, one for each group."""

    def __init__(self, size: int, groups: int, limit: int, person: Person) -> None:
        self.sums = [PeopleSum(size, limit=limit, person=person) for _ in range(groups)]

    @property
    def records(self) -> int:
        """How many rows there were so far, in all groups."""
        return sum(one.records for one in self.sums)

    def merge(self, other: PeopleTableSum) -> None:
        """Add the sums of other rows."""
        for mine, theirs in zip(self.sums, other.sums, strict=True):
            mine.merge(theirs)

    def value(self, group: int) -> Floats:
        """The sum of a group: the coordinates that are not levels, then the levels."""
        return self.sums[group].value()


@dataclass(frozen=True, eq=False)
class PeopleTableTask:
    """Sums one part of the rows: the same function in a thread, in a worker process and on another machine.

    Attributes
    ----------
    table : TableTask
        The columns, and how values are read.
    person : Person
    people : People or None
        How many rows each person has.
    """

    table: TableTask
    person: Person
    people: People | None = None

    def start(self) -> PeopleTableSum:
        """Sums without rows."""
        table = self.table
        size = table.dense + sum(level_widths(table.used.categories))
        return PeopleTableSum(size, math.prod(level_widths(table.groups)), levels(table.records), self.person)

    def public_places(self) -> list[int]:
        """Where a public record has ones: the constant and the first level of each category; its values are missing."""
        widths = level_widths(self.table.used.categories)
        return [0, *(self.table.dense + sum(widths[:i]) for i in range(len(widths)))]

    def __call__(self, number: int, blocks: Iterable[Any]) -> PeopleTableSum:
        """The part's exact sums."""
        assert self.people is not None
        total, table, used = self.start(), self.table, self.table.used
        size, groups = total.sums[0].columns, len(total.sums)
        step = max(256, _BLOCK // size)
        z, raw = np.empty((size, step)), np.empty((len(used.numbers), step))
        for data in blocks:
            rows_of_data, counts = self.people.split(data)
            block = TableBlock(rows_of_data, table.columns)
            numbers = [block.numbers(column.name) for column in used.numbers]
            codes = [block.codes(column) for column in used.categories]
            of_groups = table.group_numbers(block)
            for start in range(0, block.size, step):
                rows = slice(start, min(start + step, block.size))
                out = z[:, : rows.stop - start]
                table.fill(out[: table.dense], raw[:, : rows.stop - start], [column[rows] for column in numbers])
                self._fill_levels(out[table.dense :], [code[rows] for code in codes])
                weighed = counts[rows]
                if of_groups is None:
                    total.sums[0].add(out.T, weighed)
                    continue
                by_group = SortedRows(of_groups[rows], None, groups, 1)
                assert by_group.order is not None
                out, weighed = np.take(out, by_group.order, axis=1), weighed[by_group.order]
                for group, first, last in by_group.runs(len(weighed)):
                    total.sums[group].add(out[:, first:last].T, weighed[first:last])
        return total

    def _fill_levels(self, z: Floats, codes: list[Any]) -> None:
        """Write the levels of some rows, one row per column, into z of shape (levels, number of rows)."""
        z[...] = 0.0
        place, rows = 0, np.arange(z.shape[1])
        for width, values in zip(level_widths(self.table.used.categories), codes, strict=True):
            z[place : place + width][values, rows] = levels(self.table.records)
            place += width
