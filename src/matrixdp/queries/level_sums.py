"""Exact sums by the levels of categories: numbers of records for two levels, and sums of coordinates for one.

Levels are counted, not multiplied as columns of zeros and ones. Categories with few levels are counted together, as one
category whose levels are their combinations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from matrixdp.types import Floats

Integers = NDArray[np.int64]
_MOST_COMBINED = 1 << 8  # levels of a combination
_MOST_SUMS = 1 << 12  # levels of a combination in all groups, so that sums fit in a processor's cache
_MOST_COUNTS = 1 << 18  # the same for two combinations


class Combination:
    """Some neighbouring categories that are counted together.

    Parameters
    ----------
    first : int
        Number of the first of these categories.
    start : int
        Position of its first level among all levels.
    widths : sequence of int
        Numbers of levels.
    """

    def __init__(self, first: int, start: int, widths: Sequence[int]) -> None:
        self.first, self.widths, self.size = first, tuple(widths), math.prod(widths)
        ends = start + np.cumsum(widths)
        self.places = [slice(int(end) - width, int(end)) for end, width in zip(ends, widths, strict=True)]

    def code(self, codes: Sequence[NDArray[np.signedinteger]]) -> NDArray[np.intp]:
        """Code of the combination of each row, from the codes of all categories."""
        total = codes[self.first].astype(np.intp)
        for width, more in zip(self.widths[1:], codes[self.first + 1 :], strict=False):
            total *= width
            total += more
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
    """Sums by level in each group.

    Parameters
    ----------
    widths : sequence of int
        Number of levels of each category.
    groups, coordinates : int

    Attributes
    ----------
    counts : int64 array of shape (groups, levels, levels)
        Records that have both levels.
    sums : int64 array of shape (groups, levels, coordinates)
        Sums of integer coordinates over the records that have a level.

    Both are complete after `collect`.
    """

    def __init__(self, widths: Sequence[int], groups: int, coordinates: int) -> None:
        self.combinations = combine_categories(widths, groups)
        self.counts = np.zeros((groups, sum(widths), sum(widths)), np.int64)
        self.sums = np.zeros((groups, sum(widths), coordinates), np.int64)
        self._pending_sums: dict[int, Integers] = {}  # by combination, of shape (groups, size, coordinates)
        self._pending_counts: dict[tuple[int, int], Integers] = {}  # by two combinations, of shape (groups, sizes)

    def add(self, codes: Sequence[NDArray[np.intp]], groups: NDArray[np.intp] | None, vectors: Floats) -> None:
        """Add some records.

        Parameters
        ----------
        codes : sequence of arrays of shape (rows,)
            One for each combination.
        groups : array of shape (rows,), optional
            Sorted.
        vectors : contiguous float64 array of shape (rows, coordinates)
            Integers whose sums are below 2^53.
        """
        first, last = (0, 0) if groups is None else (int(groups[0]), int(groups[-1]))
        here, span = slice(first, last + 1), last + 1 - first
        relative = None if groups is None or span == 1 else groups - first
        keys = [
            code if relative is None else relative * one.size + code
            for one, code in zip(self.combinations, codes, strict=True)
        ]
        for number, (one, key) in enumerate(zip(self.combinations, keys, strict=True)):
            found = _sum_by(key, span * one.size, vectors)
            self._sums_of(number)[here] += found.reshape(span, one.size, -1).astype(np.int64)
        for a, b in self._pairs:
            size, key = self.combinations[a].size, keys[a]
            if b != a:
                size, key = size * self.combinations[b].size, key * self.combinations[b].size + codes[b]
            self._counts_of(a, b)[here] += np.bincount(key, minlength=span * size).reshape(span, -1)

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

    def _sums_of(self, number: int) -> Integers:
        if number not in self._pending_sums:
            groups, _, coordinates = self.sums.shape
            self._pending_sums[number] = np.zeros((groups, self.combinations[number].size, coordinates), np.int64)
        return self._pending_sums[number]

    def _counts_of(self, a: int, b: int) -> Integers:
        if (a, b) not in self._pending_counts:
            size = math.prod(self.combinations[number].size for number in dict.fromkeys((a, b)))
            self._pending_counts[a, b] = np.zeros((len(self.counts), size), np.int64)
        return self._pending_counts[a, b]


def _sum_by(key: NDArray[np.intp], size: int, vectors: Floats) -> Floats:
    """Sum of the vectors with each key, of shape (size, coordinates): all coordinates of a row are added at once."""
    rows = len(key)
    ones, starts = _one_per_row(rows)
    indicators = csr_array((ones, key.astype(np.int32), starts), shape=(rows, size))
    return np.asarray(indicators.T @ vectors)


@lru_cache(maxsize=8)
def _one_per_row(rows: int) -> tuple[Floats, NDArray[np.int32]]:
    """Values and starts of the rows of a sparse matrix with a one in each row."""
    return np.ones(rows), np.arange(rows + 1, dtype=np.int32)


def _sum_others(cells: Integers, *kept: int) -> Integers:
    """Sum over all axes but the first one, the groups, and those that are kept."""
    return np.asarray(cells.sum(axis=tuple(axis for axis in range(1, cells.ndim) if axis not in kept)))
