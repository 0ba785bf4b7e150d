"""Exact moments of the vectors of a table, by group, of records or people that come in any number of pieces.

Levels of records are counted, not multiplied as columns of zeros and ones. Categories with few levels are counted
together, as one category whose levels are their combinations.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.device import is_device_block
from matrixdp.domain import Category, Columns, Number, Person, YesNo
from matrixdp.domain.columns import Bins
from matrixdp.errors import DataError
from matrixdp.queries.cuda_sums import sums_on_device
from matrixdp.queries.sums import BITS, sorted_runs, start_sum, sum_levels
from matrixdp.records import split_rows
from matrixdp.records.tables import TableBlock
from matrixdp.types import Floats

Codes = NDArray[np.integer[Any]]
Integers = NDArray[np.int64]
_LEAST, _MOST = 1 << 19, 1 << 20  # entries of z built at a time: more than the least only so that
_RUN = 1 << 9  # there are as many rows for each group
_MOST_COMBINED = 1 << 8  # levels of a combination
_MOST_SUMS = 1 << 12  # levels of a combination in all groups, so that sums fit in a processor's cache
_MOST_COUNTS = 1 << 18  # the same for two combinations


@dataclass(frozen=True, eq=False)
class TableTask:
    """Sums one part of the records: the same function in a thread, in a worker process and on another machine.

    Coordinates are in the order of their kinds: the constant, all values, all indicators of values, all levels.
    """

    columns: Columns
    by: tuple[str, ...]
    records: int  # the public number of all of them
    clip: bool
    missing: str  # for numbers that their description does not allow to be missing
    person: Person | None = None  # blocks then say how many rows each has
    cuts: tuple[Floats, ...] = ()  # an array on the grid for each number: values are counted in the bins between them
    bins: int = 0  # of each number, as levels

    @property
    def on_device(self) -> bool:
        """True if blocks may be on a GPU."""
        return self.person is None and not self.cuts and not self.bins

    @property
    def bin_unit(self) -> int:
        """Weight of one row in a bin: of people, as large as floats can sum exactly."""
        return 1 if self.person is None else 1 << min(BITS, 52 - (2 * self.records).bit_length())

    def start(self) -> TableSum:
        """Sums without records."""
        return TableSum(self)

    def __call__(self, number: int, blocks: Iterable[Any]) -> TableSum:
        """The part's exact sums."""
        total, used = self.start(), self.used
        step = min(max(256, _LEAST // total.size, total.least_rows), max(256, _MOST // total.size))
        z, raw = np.empty((total.size, step)), np.empty((len(used.numbers), step))
        for data in blocks:
            if self.person is None and is_device_block(data):
                total.add_on_device(data, self)
                continue
            mine, counts = split_rows(data)
            block = TableBlock(mine, self.columns)
            numbers = [block.numbers(column.name) for column in used.numbers]
            codes = [block.codes(column) for column in used.categories]
            own = [block.codes(column) for column in self.groups]
            groups = np.ravel_multi_index(own, level_widths(self.groups)) if own else None
            pieces = -(-block.size // step)
            for piece in range(pieces):
                rows = slice(block.size * piece // pieces, block.size * (piece + 1) // pieces)
                here = slice(rows.stop - rows.start)
                total.add(
                    self,
                    [column[rows] for column in numbers],
                    [code[rows] for code in codes],
                    None if groups is None else groups[rows],
                    None if counts is None else counts[rows],
                    (z[:, here], raw[:, here]),
                )
        if total.levels is not None:
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
    def measured(self) -> Columns:
        """The columns of z: those used, and the bins of a number after it."""
        return self.used.with_bins(self.bins)

    def on_grid(self, z: Floats) -> dict[str, tuple[Floats, NDArray[np.bool_] | slice]]:
        """Values of each number in z, of shape (coordinates, rows), and the rows that have one."""
        observed, numbers = count(1 + len(self.used.numbers)), enumerate(self.used.numbers, start=1)
        return {one.name: (z[i], z[next(observed)] > 0 if one.missing else slice(None)) for i, one in numbers}

    def join(self, codes: Sequence[Codes], z: Floats) -> list[Codes]:
        """Codes of all categories, those of the bins of a number in its place; z is of shape (coordinates, rows)."""
        if not self.bins:
            return [*codes]
        own, found, numbers = iter(codes), [], self.on_grid(z)
        for column in self.measured.categories:
            if not isinstance(column, Bins):
                found.append(next(own))
                continue
            values, there = numbers[column.number.name]
            code = np.full(len(values), len(column.levels))  # the last one, for missing values
            code[there] = np.searchsorted(to_grid(column.cuts, column.number, self.records), values[there])
            found.append(code)
        return found

    @cached_property
    def groups(self) -> list[Category | YesNo]:
        """The columns of the groups."""
        return [self.columns.category(name) for name in self.by]

    def fill(
        self, z: Floats, raw: Floats, numbers: Sequence[NDArray[Any]], order: NDArray[np.intp] | None = None
    ) -> None:
        """Write integer coordinates but levels into z of shape (coordinates, rows), in some order; `raw` is memory."""
        grid, used, m = sum_levels(self.records), self.used, len(numbers)
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


class TableSum:
    """Exact sums of ``z z'`` over records, one for each group; of people, each row has the weight of its person.

    `size` is the number of coordinates that are multiplied: all but levels, which are counted; of people, all. There
    are enough rows for each group if `least_rows` are added at a time.
    """

    def __init__(self, task: TableTask) -> None:
        widths, groups = level_widths(task.measured.categories), math.prod(level_widths(task.groups))
        *firsts, end = (task.dense + np.cumsum([0, *widths])).tolist()
        self.limit, self._firsts, self.levels = sum_levels(task.records), firsts, None
        self.size, self.least_rows = end, 0
        if task.person is None:
            self.size, self.least_rows = task.dense, _RUN * groups
            self.levels = LevelSums(widths, groups, task.dense - 1)  # sums of the constant are counts
        self.sums = [start_sum(self.size, task.records, task.person) for _ in range(groups)]
        self.bins, self.bin_unit = np.zeros(sum(cuts.size + 1 for cuts in task.cuts), np.int64), task.bin_unit

    @property
    def records(self) -> int:
        """Number of rows so far, in all groups."""
        return sum(one.records for one in self.sums)

    def add(
        self,
        task: TableTask,
        numbers: list[NDArray[Any]],
        codes: list[Codes],
        groups: Codes | None,
        counts: Integers | None,
        memory: tuple[Floats, Floats],
    ) -> None:
        """Add rows: numbers and codes by column, groups, rows of each one's person; `memory` for z and for numbers."""
        z, raw = memory
        order, runs = None, [(0, 0, z.shape[1])]
        if groups is not None:
            order, runs = sorted_runs(groups)
            codes, groups = [code.take(order) for code in codes], groups.take(order)
            counts = None if counts is None else counts[order]
        task.fill(z[: task.dense], raw, numbers, order)
        codes = task.join(codes, z)
        self._count(task, z, counts)
        if self.levels is None:
            z[task.dense :] = 0.0
            for place, values in zip(self._firsts, codes, strict=True):
                z[place + values.astype(np.intp), np.arange(z.shape[1])] = self.limit
        else:
            self.levels.add(codes, groups, z[1:])
        for group, first, last in runs:
            self.sums[group].add(z[:, first:last].T, None if counts is None else counts[first:last])

    def _count(self, task: TableTask, z: Floats, counts: NDArray[np.int64] | None) -> None:
        """Count the values that are there, in z, in their bins; of people, with the weights of their rows."""
        weights: Any = None
        if task.person is not None and counts is not None and task.cuts:
            weights = np.where(counts > 0, task.person.weights(counts, self.bin_unit), 0)
        first = 0
        for (values, there), cuts in zip(task.on_grid(z).values(), task.cuts, strict=False):
            places = np.searchsorted(cuts, values[there])
            found = np.bincount(places, None if weights is None else weights[there], minlength=cuts.size + 1)
            self.bins[first : first + found.size] += found.astype(np.int64)
            first += found.size

    def add_on_device(self, data: Any, task: TableTask) -> None:
        """Add records that are on a GPU."""
        assert self.levels is not None
        if task.cuts or task.bins:
            raise DataError("shapes, bins: data on a GPU must be moved to the memory of the host to count in bins.")
        for group, total, records in sums_on_device(data, task, self.limit):
            first = self.size  # levels come after all other coordinates
            self.sums[group].add_sum(total[:first, :first], records)
            self.levels.sums[group] += total[first:, 1:first] // self.limit  # divisible: each level is 0 or the limit
            self.levels.counts[group] += total[first:, first:] // self.limit**2

    def add_public(self, weight: int) -> None:
        """Add a public record to the first group, with a weight in units: first levels, and no values."""
        self.sums[0].add_public(weight, [0, *self._firsts])

    def merge(self, other: TableSum) -> None:
        """Add the sums of other rows."""
        for mine, theirs in zip(self.sums, other.sums, strict=True):
            mine.merge(theirs)
        self.bins += other.bins
        if self.levels is not None and other.levels is not None:
            self.levels.merge(other.levels)

    def value(self, group: int) -> NDArray[Any]:
        """The sum of a group: the coordinates that are not levels, then the levels."""
        if self.levels is None:
            return np.asarray(self.sums[group].value())
        counts = self.levels.counts[group] * self.limit**2
        sums = np.column_stack([np.diagonal(counts), self.levels.sums[group] * self.limit])
        return np.block([[self.sums[group].value(), sums.T], [sums, counts]])


def to_grid(edges: Floats, column: Number, records: int) -> Floats:
    """Edges of bins where values are integers; those at the bounds next to them, so that a bound is alone."""
    places, grid = (edges - column.lower) / (column.upper - column.lower), sum_levels(records)
    return np.clip((2 * places - 1) * grid, 0.5 - grid, grid - 0.5)


def level_widths(columns: Iterable[Category | YesNo]) -> list[int]:
    """Number of levels of each category."""
    return [len(column.level_names) for column in columns]


def combine_categories(widths: Sequence[int], groups: int) -> list[slice]:
    """Neighbouring categories that are counted together, as long as there are few combinations of their levels."""
    most = min(_MOST_COMBINED, _MOST_SUMS // groups, math.isqrt(_MOST_COUNTS // groups))
    found, first = list[slice](), 0
    for last in range(1, len(widths) + 1):
        if last == len(widths) or math.prod(widths[first : last + 1]) > most:
            found.append(slice(first, last))
            first = last
    return found


class LevelSums:
    """Sums by level in each group, complete after `collect`.

    `counts`, of shape (groups, levels, levels), are the numbers of records that have both levels, and `sums`, of shape
    (groups, levels, coordinates), sums of integer coordinates over the records that have a level.
    """

    def __init__(self, widths: Sequence[int], groups: int, coordinates: int) -> None:
        self._combined = combine_categories(widths, groups)
        self._widths = [tuple(widths[some]) for some in self._combined]
        self.counts = np.zeros((groups, sum(widths), sum(widths)), np.int64)
        self.sums = np.zeros((groups, sum(widths), coordinates), np.int64)
        self._pending_sums: dict[int, Integers] = {}  # by combination, of shape (groups, size, coordinates)
        self._pending_counts: dict[tuple[int, int], Integers] = {}  # by two of them, of shape (groups, size, size)

    def add(self, codes: Sequence[Codes], groups: Codes | None, vectors: Floats) -> None:
        """Add codes of shape (rows,) by category; `vectors`, (coordinates, rows), are integers with sums below 2^53."""
        number, sizes = len(self.counts), [math.prod(widths) for widths in self._widths]
        first = 0 if groups is None else groups.astype(np.intp)
        own = [np.ravel_multi_index(codes[a], widths) for a, widths in zip(self._combined, self._widths, strict=True)]
        for a, size in enumerate(sizes):
            key = first * size + own[a]
            sums = np.empty((len(vectors), number * size), np.int64)
            for row, found in zip(vectors, sums, strict=True):
                found[:] = np.bincount(key, row, minlength=number * size)
            self._pending_sums[a] = self._pending_sums.get(a, 0) + sums.T.reshape(number, size, len(vectors))
            for b, other in enumerate(sizes[a:], start=a):
                both, shape = (key, (number, size)) if a == b else (key * other + own[b], (number, size, other))
                counts = np.bincount(both, minlength=math.prod(shape)).reshape(shape)
                self._pending_counts[a, b] = self._pending_counts.get((a, b), 0) + counts

    def collect(self) -> None:
        """Write the totals of combinations to `counts` and `sums`."""
        ends = np.cumsum([sum(widths) for widths in self._widths], dtype=int).tolist()
        places = [slice(end - sum(widths), end) for end, widths in zip(ends, self._widths, strict=True)]
        for a, sums in self._pending_sums.items():
            self.sums[:, places[a]] += sum_by_level(sums, self._widths[a])
        for (a, b), counts in self._pending_counts.items():
            if a == b and len(self._widths[a]) == 1:  # a category, which may have many levels
                levels = np.arange(places[a].start, places[a].stop)
                self.counts[:, levels, levels] += counts
                continue
            both = counts if a != b else counts[:, :, None] * np.eye(counts.shape[1], dtype=np.int64)
            half = sum_by_level(both, self._widths[a])
            found = sum_by_level(half.transpose(0, 2, 1), self._widths[b])
            self.counts[:, places[b], places[a]] += found
            if a != b:
                self.counts[:, places[a], places[b]] += found.transpose(0, 2, 1)
        self._pending_sums, self._pending_counts = {}, {}

    def merge(self, other: LevelSums) -> None:
        """Add the sums of other records."""
        self.collect()
        other.collect()
        self.counts += other.counts
        self.sums += other.sums


def sum_by_level(sums: Integers, widths: Sequence[int]) -> Integers:
    """From sums by combination, of shape (groups, combinations, k), to those by level, of shape (groups, levels, k)."""
    cells, axes = sums.reshape(len(sums), *widths, sums.shape[2]), range(1, 1 + len(widths))
    return np.concatenate([cells.sum(axis=tuple(axis for axis in axes if axis != own)) for own in axes], axis=1)
