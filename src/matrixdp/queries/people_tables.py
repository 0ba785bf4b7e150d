"""Exact moments of the vectors of a table over people, by group: each row has the weight of its person."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from matrixdp.domain.person import Person
from matrixdp.queries.moment_sums import levels
from matrixdp.queries.people_sums import PeopleSum
from matrixdp.queries.sorted_rows import SortedRows
from matrixdp.queries.table_sums import TableTask, level_widths
from matrixdp.records.people import People
from matrixdp.records.table_columns import TableBlock
from matrixdp.types import Floats

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
