"""The interface of records that are read in parts, and its simplest implementation."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

from matrixdp.errors import DataError, ParameterError
from matrixdp.records.tables import check_same_columns

T = TypeVar("T")

# A function of a part's number and its blocks (arrays or tables), which returns a result for the part.
Task: TypeAlias = Callable[[int, Iterable[Any]], T]


class Records(ABC):
    """Records in parts that are processed independently: in threads, or on other machines.

    Results must be combined in a way that depends neither on the order of the parts nor on where one ends and the
    next begins.

    Attributes
    ----------
    once : bool
        Whether the records can be read only once, as from an iterator.
    ordered : bool
        Whether the order of the records is public. It is not where folders named ``key=value`` sort them by a value.
    read_options : mapping
        How the records are read, as JSON content: the public options that are not the default, by name. A request id
        that is used again must come with the same.
    """

    once: bool = False
    ordered: bool = True
    read_options: Mapping[str, Any] = MappingProxyType({})

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

    def check_output(self, out: str | os.PathLike[str]) -> None:  # noqa: B027  (most records are not in folders)
        """Raise a `ParameterError` if the output folder `out` contains the records, or is inside of their folder."""


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
        """Yield the result of `task` on all blocks, which form one part."""
        yield task(0, self)

    def __iter__(self) -> Iterator[Any]:
        return check_same_columns(self.read())


class CountTask:
    """Counts the records of one part."""

    def __call__(self, number: int, blocks: Iterable[Any]) -> int:
        """The number of records."""
        return sum(block.num_rows if hasattr(block, "num_rows") else len(block) for block in blocks)


def require_public_order(records: Records) -> None:
    """Raise a `DataError` if the order of the records is private, for answers with one row per record."""
    if not records.ordered:
        raise DataError(
            "records in folders named key=value are ordered by the key, so the order of the rows would reveal it. "
            "For a query with one row per record, give files whose order is public."
        )


def require_rereadable(records: Records) -> Records:
    """Return `records`; raise a `ParameterError` if they can be read only once."""
    if records.once:
        raise ParameterError(
            "data must be readable more than once, which an iterator is not. Give Blocks(function), where the function "
            "returns a new iterator, or files."
        )
    return records
