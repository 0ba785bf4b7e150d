"""Exact sums by the levels of categories: numbers of records for two levels, and sums of coordinates for one.

Levels are counted, not multiplied as columns of zeros and ones. Categories with few levels are counted together, as one
category whose levels are their combinations. Rows are sorted by group, and within a group by one code.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.types import Floats

Codes = NDArray[np.integer[Any]]
_SMALL = 1 << 16  # codes below are sorted in linear time
Integers = NDArray[np.int64]
_MOST_COMBINED = 1 << 8  # levels of a combination
_MOST_SUMS = 1 << 12  # levels of a combination in all groups, so that sums fit in a processor's cache
_MOST_COUNTS = 1 << 18  # the same for two combinations


def code_type(count: int) -> type[np.integer[Any]]:
    """A small type of integers for codes from 0 to `count` - 1, whose sums and products are less than `count`."""
    return np.uint16 if count < _SMALL else np.intp


class SortedRows:
    """The order of some rows by group and by a code.

    `groups` and `codes`, integers of shape (rows,), are all 0 where they are None; there are `count` groups and `size`
    codes.
    """

    def __init__(self, groups: Codes | None, codes: Codes | None, count: int, size: int) -> None:
        self.groups, self._count, self._size = groups, count, size
        self._key = groups if codes is None else join_codes(groups, codes, count, size)

    @cached_property
    def order(self) -> NDArray[np.intp] | None:
        """Former places of the sorted rows, of shape (rows,); None if they need no sorting."""
        key = self._key
        if key is None or key.dtype.itemsize <= 2:
            return None if key is None else np.argsort(key, kind="stable")
        low = np.argsort((key % _SMALL).astype(np.uint16), kind="stable")  # digit by digit, each in linear time
        high = key.take(low) // _SMALL
        return low.take(np.argsort(high.astype(code_type(self._count * self._size // _SMALL + 1)), kind="stable"))

    @cached_property
    def sizes(self) -> NDArray[np.intp]:
        """Number of rows in each group with each code, of shape (count * size,)."""
        assert self._key is not None
        return np.bincount(self._key, minlength=self._count * self._size)

    def runs(self, rows: int) -> Iterator[tuple[int, int, int]]:
        """Each group that has rows with its first place and the place after its last."""
        if self.groups is None:
            yield 0, 0, rows
            return
        ends = self.sizes.reshape(self._count, self._size).sum(axis=1).cumsum()
        first = 0
        for group in np.flatnonzero(np.diff(ends, prepend=0)).tolist():
            yield group, first, int(ends[group])
            first = int(ends[group])


def join_codes(groups: Codes | None, codes: Codes, count: int, size: int) -> Codes:
    """``groups * size + codes``, one code for both, of shape (rows,)."""
    if groups is None:
        return codes
    kind = code_type(count * size)
    joined = groups.astype(kind)
    joined *= kind(size)
    joined += codes.astype(kind, copy=False)
    return joined


class Combination:
    """Some neighbouring categories that are counted together.

    `first` is the number of the first of them, `start` the position of its first level among all levels, and `widths`
    are their numbers of levels.
    """

    def __init__(self, first: int, start: int, widths: Sequence[int]) -> None:
        self.first, self.widths, self.size = first, tuple(widths), math.prod(widths)
        ends = start + np.cumsum(widths)
        self.places = [slice(int(end) - width, int(end)) for end, width in zip(ends, widths, strict=True)]

    def code(self, codes: Sequence[Codes]) -> Codes:
        """Code of the combination of each row, from the codes of all categories."""
        kind = code_type(self.size)
        total = codes[self.first].astype(kind)
        for width, more in zip(self.widths[1:], codes[self.first + 1 :], strict=False):
            total *= kind(width)
            total += more.astype(kind)
        return total


def combine_categories(widths: Sequence[int], groups: int) -> list[Combination]:
    """Neighbouring categories together, as long as there are few combinations."""
    most = min(_MOST_COMBINED, _MOST_SUMS // groups, math.isqrt(_MOST_COUNTS // groups))
    found: list[Combination] = []
    first = start = 0
    for last in range(1, len(widths) + 1):
        if last < len(widths) and math.prod(widths[first : last + 1]) <= most:
            continue
        found.append(Combination(first, start, widths[first:last]))
        start += sum(widths[first:last])
        first = last
    return found


class LevelSums:
    """Sums by level in each group, complete after `collect`.

    `counts`, of shape (groups, levels, levels), are the numbers of records that have both levels, and `sums`, of shape
    (groups, levels, coordinates), sums of integer coordinates over the records that have a level.
    """

    def __init__(self, widths: Sequence[int], groups: int, coordinates: int) -> None:
        self.combinations = combine_categories(widths, groups)
        self.counts = np.zeros((groups, sum(widths), sum(widths)), np.int64)
        self.sums = np.zeros((groups, sum(widths), coordinates), np.int64)
        self._pending_sums: dict[int, Integers] = {}  # by combination, of shape (groups, size, coordinates)
        self._pending_counts: dict[tuple[int, int], Integers] = {}  # by two combinations, of shape (groups, sizes)

    def sort(self, codes: Sequence[Codes], groups: Codes | None) -> SortedRows:
        """The order of some rows by group and by the first combination, from the codes of all combinations."""
        size = self.combinations[0].size if self.combinations else 1
        return SortedRows(groups, codes[0] if codes else None, len(self.counts), size)

    def add(self, codes: Sequence[Codes], rows: SortedRows, vectors: Floats) -> None:
        """Add some records, which `sort` sorted.

        `codes` has one array for each combination, of the rows before they are sorted. `vectors`, of shape
        (coordinates, rows), are those of the sorted rows: integers whose sums are below 2^53.
        """
        groups = len(self.counts)
        keys = [
            join_codes(rows.groups, code, groups, one.size) for one, code in zip(self.combinations, codes, strict=True)
        ]
        for number, (one, key) in enumerate(zip(self.combinations, keys, strict=True)):
            found = np.zeros((len(vectors), groups * one.size))
            if number == 0:  # all rows with one key are together
                cells = np.flatnonzero(rows.sizes)
                starts = (np.cumsum(rows.sizes) - rows.sizes)[cells]
                found[:, cells] = np.add.reduceat(vectors, starts, axis=1)
            else:
                assert rows.order is not None
                where = key.take(rows.order).astype(np.intp)
                for row, sums in zip(vectors, found, strict=True):
                    sums[:] = np.bincount(where, row, minlength=len(sums))
            new = found.T.astype(np.int64).reshape(groups, one.size, -1)
            self._pending_sums[number] = self._pending_sums.get(number, 0) + new
        for a, b in self._pairs:
            both, size = keys[a], self.combinations[a].size
            if b != a:
                more = self.combinations[b].size
                both, size = join_codes(both, codes[b], groups * size, more), size * more
            counts = np.bincount(both, minlength=groups * size).reshape(groups, -1)
            self._pending_counts[a, b] = self._pending_counts.get((a, b), 0) + counts

    def collect(self) -> None:
        """Write the totals of combinations to `counts` and `sums`."""
        for number, found in self._pending_sums.items():
            one = self.combinations[number]
            cells = found.reshape(len(found), *one.widths, -1)
            for axis, place in enumerate(one.places):
                self.sums[:, place] += _sum_others(cells, 1 + axis, cells.ndim - 1)
        for (a, b), counts in self._pending_counts.items():
            both = [self.combinations[number] for number in dict.fromkeys((a, b))]
            places = [place for one in both for place in one.places]
            cells = counts.reshape(len(counts), *(width for one in both for width in one.widths))
            split = len(both[0].places)
            # Pairs within a combination are taken once: from its pair with the next one, or from the last pair.
            inner = range(0 if b <= a + 1 else split, len(places) if (a, b) == self._pairs[-1] else split)
            for i, place in enumerate(places):
                if i in inner:
                    own = np.arange(place.start, place.stop)
                    self.counts[:, own, own] += _sum_others(cells, 1 + i)
                for j in range(i + 1, len(places)):
                    if i < split <= j or (i in inner and j in inner):
                        found = _sum_others(cells, 1 + i, 1 + j)
                        self.counts[:, place, places[j]] += found
                        self.counts[:, places[j], place] += found.transpose(0, 2, 1)
        self._pending_sums, self._pending_counts = {}, {}

    def merge(self, other: LevelSums) -> None:
        """Add the sums of other records."""
        self.collect()
        other.collect()
        self.counts += other.counts
        self.sums += other.sums

    @cached_property
    def _pairs(self) -> list[tuple[int, int]]:
        """Combinations that are counted together: each with each other one, or one alone if there is no other."""
        count = len(self.combinations)
        return [(0, 0)] if count == 1 else list(combinations(range(count), 2))


def _sum_others(cells: Integers, *kept: int) -> Integers:
    """Sum over all axes but the first one, the groups, and those that are kept."""
    return np.asarray(cells.sum(axis=tuple(axis for axis in range(1, cells.ndim) if axis not in kept)))
