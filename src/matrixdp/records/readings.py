"""Records that are read more than once, and must be the same each time.

The weight of a row depends on how many rows its person had when the ids were counted. If the rows are others when their
values are read, one person may weigh far more than the sensitivity says. So each reading is measured: the number of its
rows, and sums over them of keyed hashes of their ids and of all that they hold, modulo 2^64. Sums depend neither on the
order of the rows nor on how they are divided into parts. The key is secret and new for each release: readings with
other rows have the same 128 bits by a chance of about 2^-128, or 2^-(128 - 2k) where every row is there a multiple of
2^k times more or less often.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import DataError
from matrixdp.records.ids import Hashes, IdHash, hash_texts, mix_once, odd_factors, split_ids, sum_words
from matrixdp.records.parts import Task
from matrixdp.records.people import People, measure_ids
from matrixdp.records.records import DerivedRecords, IdentifiedBlock, Records
from matrixdp.records.tables import column_names, column_numbers, factorise, read_numbers, take_column

T = TypeVar("T")
Reading: TypeAlias = NDArray[np.uint64]  # number of rows, two sums over ids, two sums over rows
_STEP = 1 << 16  # numbers that are hashed at a time


@dataclass(frozen=True, eq=False)
class CountedBlock:
    """Records of a block, and how many rows the person of each has; 0 for people of other shards."""

    data: Any = field(repr=False)
    counts: NDArray[np.int64] = field(repr=False)

    def __len__(self) -> int:
        return len(self.counts)


def split_rows(block: Any) -> tuple[Any, NDArray[np.int64] | None]:
    """The records of a block, and how many rows the person of each has; None where people are not counted."""
    if isinstance(block, CountedBlock):
        return block.data, block.counts
    return (block.data if isinstance(block, IdentifiedBlock) else block), None


@dataclass(frozen=True, eq=False)
class SameRecords(DerivedRecords):
    """Records of which a reading that differs from the ids that were counted, or from the first reading, is an error.

    `hash` and `expected` are the hash of the ids, and what a reading of them must measure. With `people`, blocks come
    as `CountedBlock`. With `whole`, all that rows hold is compared with the first reading, which `first` keeps for all
    objects that were made of this one. The error is raised once the results of all parts have been taken.
    """

    origin: Records
    hash: IdHash | None = None
    expected: Reading | None = field(default=None, repr=False)
    people: People | None = field(default=None, repr=False)
    whole: bool = True
    key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    first: list[Reading] = field(default_factory=list, repr=False)

    def of(self, people: People, *, whole: bool = True) -> SameRecords:
        """The same records, each row with how many rows its person has."""
        return replace(self, hash=people.hash, expected=people.reading, people=people, whole=whole)

    def select(self, names: Sequence[str] | None, *, texts: Sequence[str] = ()) -> SameRecords:
        """The same records with only the named columns, and the ids."""
        if self.hash is not None and names is not None:
            names, texts = (*names, self.hash.column), (*texts, self.hash.column)
        return replace(self, origin=self.origin.select(names, texts=texts), first=[])

    def map(self, task: Task[T], *, whole: bool = False) -> Iterator[T]:
        """Yield the results of the task; at the end raise a `DataError` if the records were not the same."""
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
                hashes, _ = self.hash(ids)
                mine = hashes if self.people is None else hashes[self.people.has(hashes)]
                reading[:3] += measure_ids(mine, self.hash.key)
            if self.key is not None:
                words = hash_rows(data, self.key) + hashes
                reading[3:] += sum_words(words, self.key)
            yield data if self.people is None else CountedBlock(data, self.people.find(hashes))


def hash_rows(data: Any, key: bytes) -> Hashes:
    """A keyed hash of all that each row holds, of shape (rows,): the sum of hashes of its values.

    The bits depend on the values alone, not on how the table stores them or on other rows.
    """
    names = list(data) if isinstance(data, Mapping) else column_names(data)
    array = read_numbers(data) if names is None else None
    if array is not None and array.ndim == 2 and array.dtype.kind in "biuf":
        factors, found = odd_factors(key, array.shape[1]), np.empty(len(array), np.uint64)
        step = max(1, _STEP // max(1, array.shape[1]))
        for start in range(0, len(array), step):
            words = _words(array[start : start + step].T)
            found[start : start + step] = mix_once(words, factors[:, None]).sum(axis=0)
        return found
    columns = list(array.T) if array is not None else [take_column(data, name) for name in names or ()]
    total: Hashes = np.zeros(1, np.uint64)
    for column, factor in zip(columns, odd_factors(key, len(columns)), strict=True):
        total = total + mix_once(_column_words(column, key), factor)
    return total


def _words(numbers: NDArray[np.generic]) -> Hashes:
    return np.ascontiguousarray(numbers, np.float64).view(np.uint64)


def _column_words(column: Any, key: bytes) -> Hashes:
    """64 bits for each value of a column: those of a number, or the hash of anything else."""
    try:
        return _words(column_numbers("", column))
    except DataError:  # which are not numbers
        unique, places = factorise(column)
        return np.asarray(np.append(hash_texts(list(map(str, unique)), key)[0], np.uint64(0))[places], np.uint64)
