"""How many rows each person has, and records that are read more than once, which must be the same each time.

The ids are counted in one pass, before the records are summed: those of each part where the part is; the counts of all
parts are merged here. People are divided by their hashes into shards of a bounded size, which are counted and summed
one after the other.

The weight of a row depends on how many rows its person had when the ids were counted. If the rows are others when their
values are read, one person may weigh far more than the sensitivity says. So each reading is measured: the number of its
rows, and sums over them of keyed hashes of their ids and of all that they hold, modulo 2^64. Sums depend neither on the
order of the rows nor on how they are divided into parts. The key is secret and new for each release: readings with
other rows have the same 128 bits by a chance of about 2^-128, or 2^-(128 - 2k) where every row is there a multiple of
2^k times more or less often.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from matrixdp.device import is_device_block
from matrixdp.domain.person import Person
from matrixdp.errors import DataError, ParameterError
from matrixdp.records.ids import Hashes, IdHash, hash_texts, mix_once, odd_factors, sum_words
from matrixdp.records.parts import Task
from matrixdp.records.records import DerivedRecords, OwnedBlock, Records, require_rereadable, split_rows
from matrixdp.records.tables import column_names, column_numbers, factorise, read_numbers, take_column

T = TypeVar("T")
Reading: TypeAlias = NDArray[np.uint64]  # number of rows, two sums over ids, two sums over rows
_SHARD = 1 << 23  # people whose numbers of rows are held at a time
_PENDING_IN_PART, _PENDING = 1 << 20, 1 << 24  # hashes of rows that are kept before they are counted


class IdCounts:
    """Running numbers of rows by id; the hashes of up to `pending` rows are kept before they are counted."""

    def __init__(self, pending: int = _PENDING_IN_PART) -> None:
        self._both = np.empty((1, 0), np.uint64)  # hashes, of which the first are each there once, in increasing order
        self.rows = np.empty(0, np.int64)
        self.collided = False
        self._most, self._waiting = pending, 0
        self._pending: list[Hashes] = []

    @property
    def hashes(self) -> Hashes:
        """The hashes of all ids, in increasing order."""
        return np.asarray(self._both[0])

    def add(self, both: Hashes) -> None:
        """Count the rows of a block, given by both hashes of their ids."""
        self._pending.append(both)
        self._waiting += both.shape[1]
        if self._waiting > max(self._most, len(self.rows)):
            self.count()

    def merge(self, other: IdCounts) -> None:
        """Add the counts of another part."""
        for both in other._pending:
            self.add(both)
        self.collided |= other.collided
        self._join(other._both, other.rows)

    def count(self) -> None:
        """Bring `hashes` and `rows` up to date."""
        if not self._pending:
            return
        both, self._pending, self._waiting = _place_beside(self._pending), [], 0
        if len(both) > 1:
            self._join(both, np.ones(both.shape[1], np.int64))
        else:  # integers
            both[0].sort()  # several times faster than finding the order
            starts = _starts(both[0])
            self._join(both.take(starts, axis=1), np.diff(starts, append=both.shape[1]))

    def _join(self, both: Hashes, rows: NDArray[np.int64]) -> None:
        """Add numbers of rows, by hashes in any order."""
        if not len(rows):
            return
        both, rows = _place_beside([self._both, both]), np.concatenate([self.rows, rows])
        order = np.argsort(both[0], kind="stable")  # in linear time for two sorted pieces
        both = both.take(order, axis=1)
        starts = _starts(both[0])
        if len(both) > 1:
            same, other = (one[1:] == one[:-1] for one in both)
            self.collided |= bool((same & ~other).any())
        self._both, self.rows = both.take(starts, axis=1), np.add.reduceat(rows[order], starts)


def _place_beside(blocks: Sequence[Hashes]) -> Hashes:
    """Hashes of all blocks: both of shape (2, rows), or the first alone, of shape (1, rows), if no block has others."""
    height = max(map(len, blocks))
    alike = (one if len(one) == height else np.pad(one, ((0, height - len(one)), (0, 0))) for one in blocks)
    return np.concatenate([*alike], axis=1)


def _starts(ordered: Hashes) -> NDArray[np.intp]:
    """Where each run of equal numbers begins."""
    new = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return np.flatnonzero(new)


def split_ids(block: Any, column: str) -> tuple[Any, Any]:
    """The ids of a block, and the block without them where they are given apart."""
    if is_device_block(block):
        rule = "must be moved to the memory of the host to count the rows of people."
        raise ParameterError(f"person: data on a GPU {rule}")
    if isinstance(block, OwnedBlock) and block.ids is not None:
        return block.ids, block.data
    names = column_names(block)
    if names is None:
        raise DataError(
            f"person: the data must have a column {column!r}, and these have no names of columns. Give a table, or "
            "with_ids(data, ids)."
        )
    if names.count(column) != 1:
        raise DataError(f"person: the data must have one column {column!r} of ids.")
    return take_column(block, column), block


def count_ids(key: IdHash, shard: int, shards: int, number: int, blocks: Iterable[Any]) -> IdCounts:  # noqa: ARG001
    """Task that counts the ids of one part that belong to one shard."""
    counts = IdCounts()
    for block in blocks:
        both = key(split_ids(block, key.column)[0])
        counts.add(both[:, _of_shard(both[0], shard, shards)])
    return counts


def _of_shard(hashes: Hashes, shard: int, shards: int) -> NDArray[np.bool_] | slice:
    return slice(None) if shards == 1 else hashes % np.uint64(shards) == shard


@dataclass(frozen=True, eq=False)
class People:
    """The people of one shard, by their hashes in increasing order, and how many rows each of them has."""

    hash: IdHash
    shard: int
    shards: int
    hashes: Hashes = field(repr=False)  # clusters write tasks that fail into their logs
    rows: NDArray[np.int64] = field(repr=False)

    @cached_property
    def reading(self) -> Hashes:
        """What `measure_ids` gives for all rows of these people."""
        return measure_ids(self.hashes, self.hash.key, self.rows)

    @cached_property
    def _index(self) -> tuple[np.uint64, NDArray[np.int64], Hashes, NDArray[np.int64]]:
        """How far hashes are shifted for their first bits, where those with each begin, and all with one at the end."""
        shift = np.uint64(64 - max(1, len(self.hashes).bit_length()))
        counts = np.bincount((self.hashes >> shift).astype(np.int64), minlength=1 << (64 - int(shift)))
        return shift, np.cumsum(counts) - counts, np.append(self.hashes, ~np.uint64(0)), np.append(self.rows, 0)

    def find(self, hashes: Hashes) -> NDArray[np.int64]:
        """How many rows the people with these hashes have; 0 for those who are not in this shard."""
        shift, starts, known, rows = self._index
        places = starts.take((hashes >> shift).astype(np.int64))
        later = np.flatnonzero(known.take(places) < hashes)
        while later.size:
            places[later] += 1
            later = later[known.take(places[later]) < hashes[later]]
        return np.where(known.take(places) == hashes, rows.take(places), 0)


def measure_ids(hashes: Hashes, key: bytes, rows: NDArray[np.int64] | None = None) -> Hashes:
    """The number of rows, and two keyed sums over their hashed ids, of shape (3,); each id is there `rows` times."""
    total = len(hashes) if rows is None else int(rows.sum())
    return np.append(np.uint64(total), sum_words(hashes, key, 1 if rows is None else rows))


def count_people(records: Records, person: Person, people: int) -> Iterator[People]:
    """Yield the shards of all people; each takes one pass over the ids.

    `people` is a public number near that of the people, which determines the number of shards.
    """
    shards = -(-people // _SHARD)
    key = IdHash(person.column)
    for shard in range(shards):
        counts = count_rows_by_id(records, key, shard, shards)
        if counts.collided:  # as they do once in 10^5 for 10^7 people
            raise DataError("two ids share a hash. Repeat the release; nothing was charged.")
        yield People(key, shard, shards, counts.hashes, counts.rows)


def count_rows_by_id(records: Records, key: IdHash, shard: int = 0, shards: int = 1) -> IdCounts:
    """How many rows each person of a shard has, by the hash of their id; takes one pass over the ids."""
    ids = require_rereadable(records).select([key.column], texts=[key.column])
    counts = IdCounts(_PENDING)
    for part in ids.map(partial(count_ids, key, shard, shards)):
        counts.merge(part)
    counts.count()
    return counts


def number_of_people(records: Records, person: Person, *, rows: int) -> int:
    """How many people there are, for releases where their number is public; `rows` bounds the number of rows."""
    return sum(len(people.rows) for people in count_people(records, person, max(rows, 1)))


@dataclass(frozen=True, eq=False)
class SameRecords(DerivedRecords):
    """Records of which a reading that differs from the ids that were counted, or from the first reading, is an error.

    It is raised once the results of all parts have been taken. With `people`, blocks come as `OwnedBlock`.
    """

    origin: Records
    hash: IdHash | None = None
    expected: Reading | None = field(default=None, repr=False)  # what a reading of the ids must measure
    people: People | None = field(default=None, repr=False)
    whole: bool = True  # whether all that rows hold is compared with the first reading
    key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    first: list[Reading] = field(default_factory=list, repr=False)  # shared by all objects that were made of this one

    def of(self, people: People, *, whole: bool = True) -> SameRecords:
        """The same records, each row with how many rows its person has."""
        return replace(self, hash=people.hash, expected=people.reading, people=people, whole=whole)

    def select(self, names: Sequence[str] | None, *, texts: Sequence[str] = ()) -> SameRecords:
        if self.hash is not None and names is not None:
            names, texts = (*names, self.hash.column), (*texts, self.hash.column)
        return replace(self, origin=self.origin.select(names, texts=texts), first=[])

    def map(self, task: Task[T], *, whole: bool = False) -> Iterator[T]:
        total = np.zeros(5, np.uint64)
        key = self.key if self.whole else None
        for result, reading in self.origin.map(_ReadingTask(task, self.hash, self.people, key), whole=whole):
            total += reading
            yield result
        self.check(total)

    def check(self, reading: Reading) -> None:
        """Raise a `DataError` unless a reading is the expected one."""
        if not self.first:
            self.first.append(reading)
        same = self.expected is None or np.array_equal(reading[:3], self.expected)
        if not same or (self.whole and not np.array_equal(reading[3:], self.first[0][3:])):
            raise DataError("the records changed while they were read, or differ from one reading to the next.")


@dataclass(frozen=True, eq=False)
class _ReadingTask:
    """Runs another task on the blocks of a part, and measures them."""

    task: Task[Any]
    hash: IdHash | None
    people: People | None
    key: bytes | None = field(repr=False)  # None where rows are not compared

    def __call__(self, number: int, blocks: Iterable[Any]) -> tuple[Any, Reading]:
        reading = np.zeros(5, np.uint64)
        return self.task(number, self._read(blocks, reading)), reading

    def _read(self, blocks: Iterable[Any], reading: Reading) -> Iterator[Any]:
        for block in blocks:
            data, hashes = split_rows(block)[0], np.zeros(1, np.uint64)
            if self.hash is not None:
                ids, data = split_ids(block, self.hash.column)
                hashes = self.hash(ids)[0]
                people = self.people
                mine = hashes if people is None else hashes[_of_shard(hashes, people.shard, people.shards)]
                reading[:3] += measure_ids(mine, self.hash.key)
            if self.key is not None:
                words = hash_rows(data, self.key) + hashes
                reading[3:] += sum_words(words, self.key)
            yield data if self.people is None else OwnedBlock(data, counts=self.people.find(hashes))


def hash_rows(data: Any, key: bytes) -> Hashes:
    """A keyed hash of all that each row holds, of shape (rows,): the sum of hashes of its values.

    The bits depend on the values alone, not on how the table stores them or on other rows.
    """
    names = column_names(data)
    columns = list(read_numbers(data).T) if names is None else [take_column(data, name) for name in names]
    total: Hashes = np.zeros(1, np.uint64)
    for column, factor in zip(columns, odd_factors(key, len(columns)), strict=True):
        total = total + mix_once(_column_words(column, key), factor)
    return total


def _column_words(column: Any, key: bytes) -> Hashes:
    """64 bits for each value of a column: those of a number, or the hash of anything else."""
    try:
        return np.ascontiguousarray(column_numbers("", column), np.float64).view(np.uint64)
    except DataError:  # which are not numbers
        unique, places = factorise(column)
        return np.asarray(np.append(hash_texts(list(map(str, unique)), key)[0], np.uint64(0))[places], np.uint64)
