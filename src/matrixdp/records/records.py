"""The interface of records that are read in parts, and the classes that implement it."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from matrixdp.device import is_device_block
from matrixdp.errors import DataError, ParameterError
from matrixdp.records.parts import Part, PartResult, Task, map_blocks, unwrap_results
from matrixdp.records.tables import check_same_columns, column_names, count_rows, to_array

T = TypeVar("T")


class Origin:
    """What records, and the source that they are stored in, tell about themselves."""

    once: bool = False  # whether they can be read only once, as from an iterator
    ordered: bool = True  # whether their order is public; not where folders named key=value sort them, or in a database
    # How they are read, as JSON content: the public options that are not the default, by name. A request id that is
    # used again must come with the same.
    read_options: Mapping[str, Any] = MappingProxyType({})

    def check_output(self, out: str | os.PathLike[str]) -> None:
        """Raise a `ParameterError` if the output folder `out` contains the records, or is inside of their folder."""


class Records(Origin, ABC):
    """Records in parts that are processed independently: in threads, or on other machines.

    Results must be combined in a way that depends neither on the order of the parts nor on where one ends and the
    next begins.
    """

    def select(self, names: Sequence[str] | None, *, texts: Sequence[str] = ()) -> Records:
        """Return the same records with only the named columns; None keeps all.

        The columns `texts` are read as text from files that do not say the type of a column; others as numbers.
        """
        return self

    @abstractmethod
    def map(self, task: Task[T], *, whole: bool = False) -> Iterator[T]:
        """Yield the result of `task` on each part, in any order.

        The task may be sent to another process and run again there after a failure. With `whole`, the parts are the
        same for any number of workers; otherwise a few large parts may be split among the workers.
        """


class DerivedRecords(Records):
    """Records that come from `origin`, and tell about themselves what it tells."""

    origin: Origin
    once = property(attrgetter("origin.once"))
    ordered = property(attrgetter("origin.ordered"))
    read_options = property(attrgetter("origin.read_options"))

    def check_output(self, out: str | os.PathLike[str]) -> None:
        self.origin.check_output(out)


@dataclass(frozen=True, eq=False)
class Blocks(Records):
    """Records that a function produces block by block, so that they need not fit into memory.

    Parameters
    ----------
    read : callable
        Returns an iterable of blocks each time it is called: arrays or tables of shape (some records, features). A
        block may be overwritten once the next one is requested.
    read_options : mapping
        Public options of the function, as JSON content by name, such as ``{"month": "2031-03"}``. A release with a
        request id is returned again only for the same options.

    Examples
    --------
    >>> import numpy as np
    >>> [block.shape for block in Blocks(lambda: (np.zeros((rows, 2)) for rows in (3, 1)))]
    [(3, 2), (1, 2)]
    """

    read: Callable[[], Iterable[Any]]
    read_options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not callable(self.read):
            raise ParameterError(
                f"read must be a function that returns the blocks, got {type(self.read).__name__} instead; "
                "for a list of blocks give Blocks(lambda: blocks)."
            )

    def map(self, task: Task[T], *, whole: bool = False) -> Iterator[T]:
        yield task(0, self)

    def __iter__(self) -> Iterator[Any]:
        return check_same_columns(self.read())


@dataclass(frozen=True, eq=False)
class OwnedBlock:
    """Records, as an array or table, with whose they are."""

    data: Any = field(repr=False)
    ids: Any = field(default=None, repr=False)  # where they are not one of the columns
    counts: NDArray[np.int64] | None = field(default=None, repr=False)  # rows of the person; 0 in other shards

    def __len__(self) -> int:
        return count_rows(self.data)


def split_rows(block: Any) -> tuple[Any, NDArray[np.int64] | None]:
    """The records of a block, and how many rows the person of each has; None where people are not counted."""
    return (block.data, block.counts) if isinstance(block, OwnedBlock) else (block, None)


def with_ids(data: Any, ids: Any) -> Blocks:
    """Records in memory whose ids are given apart, for arrays and lists, which have no names of columns.

    Parameters
    ----------
    data : array or table of shape (records, features)
    ids : array_like of shape (records,)
        Integers or texts that say whose row it is.

    Examples
    --------
    >>> len(list(with_ids([[0, 1], [2, 3], [4, 5]], ["ann", "bob", "ann"])))
    1
    """
    if getattr(ids, "ndim", 1) != 1 or len(ids) != count_rows(data):
        raise DataError("ids must be one for each row of the data.")
    return Blocks(lambda: (OwnedBlock(data, ids),))


@dataclass(frozen=True, eq=False)
class MappedRecords(DerivedRecords):
    """Records computed from others, block by block."""

    origin: Records
    function: Callable[[Any], Any]  # from a block to another one; can be pickled
    named: bool = False  # whether columns keep their names, so that they can be selected
    reads: tuple[str, ...] = ()  # columns that the function needs besides

    def select(self, names: Sequence[str] | None, *, texts: Sequence[str] = ()) -> Records:
        wanted = None if names is None else (*names, *(name for name in self.reads if name not in names))
        return replace(self, origin=self.origin.select(wanted, texts=(*texts, *self.reads))) if self.named else self

    def map(self, task: Task[T], *, whole: bool = False) -> Iterator[T]:
        return self.origin.map(partial(map_blocks, task, self.function), whole=whole)


def order_columns(order: Sequence[int], width: int, block: Any) -> Any:
    """The block with some of its `width` columns in an order; one whose columns have names as it is."""
    if isinstance(block, OwnedBlock):
        return replace(block, data=order_columns(order, width, block.data))
    if column_names(block) is not None:
        return block
    return (block if is_device_block(block) else to_array(block, width))[:, list(order)]


def count_records(number: int, blocks: Iterable[Any]) -> int:  # noqa: ARG001
    """Task that counts the records of one part."""
    return sum(map(count_rows, blocks))


def require_public_order(records: Records) -> None:
    """Raise a `DataError` if the order of the records is private, for answers with one row per record."""
    if not records.ordered:
        raise DataError(
            "the order of the records is not public: folders named key=value sort them by the key, and a database "
            "has no order. For a query with one row per record, give files whose order is public."
        )


def require_rereadable(records: Records) -> Records:
    """Return `records`; raise a `ParameterError` if they can be read only once."""
    if records.once:
        raise ParameterError(
            "data must be readable more than once, which an iterator is not. Give Blocks(function), where the function "
            "returns a new iterator, or files."
        )
    return records


class Source(Origin, ABC):
    """Where records are stored, and how they are divided into parts."""

    @abstractmethod
    def parts(self, columns: Sequence[str] | None, texts: Sequence[str] = ()) -> Iterable[Part]:
        """Divide the records into parts, in their order.

        Parts of files contain only `columns`, in this order; None keeps all, in the order of the first file. The
        columns `texts` of CSV files are read as text. Sources in which columns have no names ignore both arguments.
        """


class Engine(Protocol):
    """Runs tasks on parts."""

    def run(self, task: Task[T], parts: Iterable[Part], *, whole: bool = False) -> Iterator[PartResult[T]]:
        """Yield the result of `run_part` for each part, in any order; `whole` as for `Records.map`."""


@dataclass(frozen=True, eq=False)
class StoredRecords(DerivedRecords):
    """Records of one source, processed by one engine."""

    origin: Source
    engine: Engine
    columns: Sequence[str] | None = None
    progress: Callable[[int], object] | None = None  # called with the number of records of each part that is done
    texts: Sequence[str] = ()

    def select(self, names: Sequence[str] | None, *, texts: Sequence[str] = ()) -> StoredRecords:
        return replace(self, columns=None if names is None else tuple(names), texts=tuple(texts))

    def map(self, task: Task[T], *, whole: bool = False) -> Iterator[T]:
        parts = self.origin.parts(self.columns, self.texts)
        return unwrap_results(self.engine.run(task, parts, whole=whole), self.progress)
