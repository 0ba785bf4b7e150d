"""How many rows each person has: one pass over the ids, before the records are summed.

The ids of each part are counted where the part is; the counts of all parts are merged here. People are divided by
their hashes into shards of a bounded size, which are counted and summed one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain.person import Person
from matrixdp.errors import DataError
from matrixdp.records.ids import Hashes, IdHash, split_ids
from matrixdp.records.records import Records, require_rereadable

_SHARD = 1 << 23  # people whose numbers of rows are held at a time
_PENDING = 1 << 20  # hashes of rows that are kept before they are counted


class IdCounts:
    """Running numbers of rows by id."""

    def __init__(self) -> None:
        self.hashes = np.empty(0, np.uint64)  # each once, in increasing order
        self.rows = np.empty(0, np.int64)
        self.collided = False
        self._seconds: Hashes | None = None
        self._pending: list[tuple[Hashes, NDArray[np.int64] | None, Hashes | None]] = []
        self._waiting = 0

    def add(self, first: Hashes, second: Hashes | None) -> None:
        """Count the rows of a block, given by both hashes of their ids."""
        self._append(first, None, second)

    def merge(self, other: IdCounts) -> None:
        """Add the counts of another part."""
        other.count()
        self.collided |= other.collided
        self._append(other.hashes, other.rows, other._seconds)

    def _append(self, first: Hashes, rows: NDArray[np.int64] | None, second: Hashes | None) -> None:
        self._pending.append((first, rows, second))
        self._waiting += len(first)
        if self._waiting > max(_PENDING, 2 * len(self.hashes)):
            self.count()

    def count(self) -> None:
        """Bring `hashes` and `rows` up to date."""
        if not self._pending:
            return
        pending = [*self._pending, (self.hashes, self.rows, self._seconds)]
        self._pending, self._waiting = [], 0
        firsts = np.concatenate([first for first, _, _ in pending])
        plain = all(second is None for _, _, second in pending)
        if plain and all(rows is None or not len(rows) for _, rows, _ in pending):  # nothing moves along with a hash
            firsts.sort()
            starts = _starts(firsts)
            self.hashes, self.rows = firsts[starts], np.diff(starts, append=len(firsts))
            return
        order = np.argsort(firsts, kind="stable")  # in linear time for a few sorted pieces
        firsts = firsts[order]
        starts = _starts(firsts)
        rows = np.concatenate([np.ones(len(first), np.int64) if rows is None else rows for first, rows, _ in pending])
        self.hashes, self.rows = firsts[starts], np.add.reduceat(rows[order], starts) if len(starts) else rows
        if not plain:
            seconds = np.concatenate(
                [np.zeros(len(first), np.uint64) if second is None else second for first, _, second in pending]
            )[order]
            same = firsts[1:] == firsts[:-1]
            self.collided |= bool((same & (seconds[1:] != seconds[:-1])).any())
            self._seconds = seconds[starts]


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
        counts.count()
        return counts


@dataclass(frozen=True, eq=False)
class People:
    """The people of one shard, and how many rows each of them has. Can be pickled and sent to another process.

    Attributes
    ----------
    hash : IdHash
    shard, shards : int
    hashes : uint64 array of shape (people,)
        In increasing order.
    rows : int64 array of shape (people,)
    """

    hash: IdHash
    shard: int
    shards: int
    hashes: Hashes
    rows: NDArray[np.int64]

    def split(self, block: Any) -> tuple[Any, NDArray[np.int64]]:
        """The records of a block, and how many rows their person has; 0 for people of other shards.

        Raises
        ------
        DataError
            For a person who was not there when the ids were counted.
        """
        ids, data = split_ids(block, self.hash.column)
        found = self._table.find(self.hash(ids)[0])
        if self.shards == 1 and not found.all():
            raise changed()
        return data, found

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
        self._values = np.zeros(size, np.int64)  # zero where no hash is
        self._hashes = np.zeros(size, np.uint64)
        self._hashes[places], self._values[places] = hashes, values

    def find(self, hashes: Hashes) -> NDArray[np.int64]:
        """The value of each hash, 0 for those that are not there."""
        places = (hashes >> self._shift).astype(np.int64)
        found = self._values[places]
        rest = np.flatnonzero((self._hashes[places] != hashes) & (found > 0))
        while rest.size:
            places[rest] += 1
            there = self._values[places[rest]]
            found[rest] = there
            rest = rest[(self._hashes[places[rest]] != hashes[rest]) & (there > 0)]
        return found


def changed() -> DataError:
    """The error for records that are not the same when they are read again."""
    return DataError("the records changed while they were read, or differ from one reading to the next.")


def count_people(records: Records, person: Person, people: int) -> Iterator[People]:
    """Yield the shards of all people; each takes one pass over the ids.

    Parameters
    ----------
    records : Records
    person : Person
    people : int
        A public number near that of the people, which determines the number of shards.
    """
    require_rereadable(records)
    ids = records.select([person.column], texts=[person.column])
    shards = -(-people // _SHARD)
    key = IdHash(person.column)
    for shard in range(shards):
        counts = _count(ids, _CountTask(key, shard, shards))
        while counts.collided:  # about once in 10^5 times for 10^7 people with texts as ids
            if shard:
                raise DataError("two ids share a hash. Repeat the release; nothing was charged.")
            key = IdHash(person.column)
            counts = _count(ids, _CountTask(key, shard, shards))
        yield People(key, shard, shards, counts.hashes, counts.rows)


def _count(ids: Records, task: Callable[[int, Iterable[Any]], IdCounts]) -> IdCounts:
    total = IdCounts()
    for counts in ids.map(task):
        total.merge(counts)
    total.count()
    return total
