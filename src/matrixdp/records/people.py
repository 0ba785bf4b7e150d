"""How many rows each person has: one pass over the ids, before the records are summed.

The ids of each part are counted where the part is; the counts of all parts are merged here. People are divided by
their hashes into shards of a bounded size, which are counted and summed one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain.person import Person
from matrixdp.errors import DataError
from matrixdp.records.ids import Hashes, IdHash, split_ids, sum_words
from matrixdp.records.records import Records, require_rereadable

_SHARD = 1 << 23  # people whose numbers of rows are held at a time
_PENDING_IN_PART, _PENDING = 1 << 20, 1 << 24  # hashes of rows that are kept before they are counted


class IdCounts:
    """Running numbers of rows by id; the hashes of up to `pending` rows are kept before they are counted."""

    def __init__(self, pending: int = _PENDING_IN_PART) -> None:
        self.hashes = np.empty(0, np.uint64)  # each once, in increasing order
        self.rows = np.empty(0, np.int64)
        self.collided = False
        self._seconds: Hashes | None = None
        self._most, self._waiting = pending, 0
        self._pending: list[tuple[Hashes, Hashes | None]] = []

    def add(self, first: Hashes, second: Hashes | None) -> None:
        """Count the rows of a block, given by both hashes of their ids."""
        self._pending.append((first, second))
        self._waiting += len(first)
        if self._waiting > max(self._most, len(self.hashes)):
            self.count()

    def merge(self, other: IdCounts) -> None:
        """Add the counts of another part."""
        for first, second in other._pending:
            self.add(first, second)
        self.collided |= other.collided
        self._join(other.hashes, other.rows, other._seconds)

    def count(self) -> None:
        """Bring `hashes` and `rows` up to date."""
        pending, self._pending, self._waiting = self._pending, [], 0
        if not pending:
            return
        firsts = np.concatenate([first for first, _ in pending])
        if all(second is None for _, second in pending):
            firsts.sort()  # several times faster than finding the order
            starts = _starts(firsts)
            self._join(firsts[starts], np.diff(starts, append=len(firsts)), None)
        else:
            seconds = np.concatenate([_or_zeros(second, len(first)) for first, second in pending])
            self._join(firsts, np.ones(len(firsts), np.int64), seconds)

    def _join(self, hashes: Hashes, rows: NDArray[np.int64], seconds: Hashes | None) -> None:
        """Add numbers of rows, by hashes in any order."""
        if not len(hashes):
            return
        if seconds is not None or self._seconds is not None:
            seconds = np.concatenate([_or_zeros(self._seconds, len(self.hashes)), _or_zeros(seconds, len(hashes))])
        hashes, rows = np.concatenate([self.hashes, hashes]), np.concatenate([self.rows, rows])
        order = np.argsort(hashes, kind="stable")  # in linear time for two sorted pieces
        hashes = hashes[order]
        starts = _starts(hashes)
        self.hashes, self.rows = hashes[starts], np.add.reduceat(rows[order], starts)
        if seconds is not None:
            seconds = seconds[order]
            same = hashes[1:] == hashes[:-1]
            self.collided |= bool((same & (seconds[1:] != seconds[:-1])).any())
            self._seconds = seconds[starts]


def _or_zeros(seconds: Hashes | None, size: int) -> Hashes:
    """Second hashes; those of integers are zero."""
    return np.zeros(size, np.uint64) if seconds is None else seconds


def _starts(ordered: Hashes) -> NDArray[np.intp]:
    """Where each run of equal numbers begins."""
    new = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return np.flatnonzero(new)


@dataclass(frozen=True, eq=False)
class _CountTask:
    """Counts the ids of one part that belong to one shard."""

    hash: IdHash
    shard: int
    shards: int

    def __call__(self, number: int, blocks: Iterable[Any]) -> IdCounts:
        counts = IdCounts()
        for block in blocks:
            first, second = self.hash(split_ids(block, self.hash.column)[0])
            if self.shards > 1:
                mine = first % np.uint64(self.shards) == self.shard
                first, second = first[mine], None if second is None else second[mine]
            counts.add(first, second)
        return counts


@dataclass(frozen=True, eq=False)
class People:
    """The people of one shard, by their hashes in increasing order, and how many rows each of them has.

    Can be pickled and sent to another process.
    """

    hash: IdHash
    shard: int
    shards: int
    hashes: Hashes = field(repr=False)  # clusters write tasks that fail into their logs
    rows: NDArray[np.int64] = field(repr=False)

    def has(self, hashes: Hashes) -> NDArray[np.bool_] | slice:
        """Which hashes belong to this shard."""
        return slice(None) if self.shards == 1 else hashes % np.uint64(self.shards) == self.shard

    def find(self, hashes: Hashes) -> NDArray[np.int64]:
        """How many rows the people with these hashes have; 0 for those who are not in this shard."""
        return self._table.find(hashes)

    @cached_property
    def reading(self) -> Hashes:
        """What `measure_ids` gives for all rows of these people."""
        return measure_ids(self.hashes, self.hash.key, self.rows)

    def sizes(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The numbers of rows that people have, each once, and how many people have as many."""
        return np.unique(self.rows, return_counts=True)

    @cached_property
    def _table(self) -> _HashTable:
        return _HashTable(self.hashes, self.rows)


class _HashTable:
    """Open addressing with linear probing, for hashes that are evenly distributed."""

    def __init__(self, hashes: Hashes, values: NDArray[np.int64]) -> None:
        bits = max(1, int(2 * len(hashes)).bit_length())  # at most half of the places are taken
        self._shift = np.uint64(64 - bits)
        homes = (hashes >> self._shift).astype(np.int64)
        order = np.arange(len(hashes))
        places = order + np.maximum.accumulate(homes - order) if len(hashes) else order
        size = max(1 << bits, int(places[-1]) + 1 if len(hashes) else 0) + 1
        self._entries = np.zeros((size, 2), np.uint64)  # hash and value side by side; a value of zero where no hash is
        self._entries[places, 0], self._entries[places, 1] = hashes, values

    def find(self, hashes: Hashes) -> NDArray[np.int64]:
        """The value of each hash, 0 for those that are not there."""
        places = (hashes >> self._shift).astype(np.int64)
        entries = self._entries.take(places, axis=0)
        found = entries[:, 1].astype(np.int64)
        rest = np.flatnonzero((entries[:, 0] != hashes) & (found > 0))
        while rest.size:
            places[rest] += 1
            entries = self._entries.take(places[rest], axis=0)
            found[rest] = entries[:, 1]
            rest = rest[(entries[:, 0] != hashes[rest]) & (entries[:, 1] > 0)]
        return found


def measure_ids(hashes: Hashes, key: bytes, rows: NDArray[np.int64] | None = None) -> Hashes:
    """The number of rows, and two keyed sums over their hashed ids, of shape (3,); each id is there `rows` times."""
    total = len(hashes) if rows is None else int(rows.sum())
    return np.append(np.uint64(total), sum_words(hashes, key, 1 if rows is None else rows))


def count_people(records: Records, person: Person, people: int) -> Iterator[People]:
    """Yield the shards of all people; each takes one pass over the ids.

    `people` is a public number near that of the people, which determines the number of shards.
    """
    require_rereadable(records)
    ids = records.select([person.column], texts=[person.column])
    shards = -(-people // _SHARD)
    key = IdHash(person.column)
    for shard in range(shards):
        while (counts := _count(ids, _CountTask(key, shard, shards))).collided:  # once in 10^5 for 10^7 people
            if shard:
                raise DataError("two ids share a hash. Repeat the release; nothing was charged.")
            key = IdHash(person.column)
        yield People(key, shard, shards, counts.hashes, counts.rows)


def _count(ids: Records, task: _CountTask) -> IdCounts:
    total = IdCounts(_PENDING)
    for counts in ids.map(task):
        total.merge(counts)
    total.count()
    return total


def number_of_people(records: Records, person: Person, *, rows: int) -> int:
    """How many people there are, for releases where their number is public; `rows` bounds the number of rows."""
    return sum(len(people.rows) for people in count_people(records, person, max(rows, 1)))
