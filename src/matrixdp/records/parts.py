"""One part of the records, and the function that every engine runs on it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from threading import Event
from typing import Any, Generic, TypeVar

import numpy as np

from matrixdp.records.blas import one_blas_thread
from matrixdp.records.fingerprint import code_fingerprint, require_same_code
from matrixdp.records.read_errors import sanitise_errors
from matrixdp.records.records import Task

T = TypeVar("T")


class Part(ABC):
    """Some of the records, read by one task. Can be pickled and sent to another process.

    Attributes
    ----------
    in_process : bool
        Whether the records are in the memory of this process, so that they should not be sent to a cluster.
    """

    in_process = False

    @property
    @abstractmethod
    def place(self) -> str:
        """Where the records are, for error messages."""

    @abstractmethod
    def blocks(self) -> Iterator[Any]:
        """Iterate over the records in blocks: arrays or tables of shape (some records, features)."""


@dataclass(frozen=True, eq=False)
class InMemoryPart(Part):
    """Blocks that are in memory already."""

    place: str = ""
    content: Iterable[Any] = ()
    in_process = True

    def blocks(self) -> Iterator[Any]:
        """Iterate over the blocks."""
        return iter(self.content)


@dataclass(frozen=True)
class PartResult(Generic[T]):
    """Result of a task on one part.

    Attributes
    ----------
    result
        What the task returned.
    rows : int
        Number of records in the part.
    code : str
        `code_fingerprint` of the process that ran the task.
    """

    result: T
    rows: int
    code: str


def run_part(task: Task[T], number: int, part: Part, stop: Event | None = None) -> PartResult[T]:
    """Run `task` on one part.

    Parameters
    ----------
    task : callable
        Maps the part's number and its blocks to a result.
    number : int
    part : Part
    stop : Event, optional
        Interrupts the task before its next block once it is set.

    Privacy
    -------
    Errors name the file and show no private value.
    """
    rows = 0

    def counted_blocks() -> Iterator[Any]:
        nonlocal rows
        for block in part.blocks():
            if stop is not None and stop.is_set():
                raise KeyboardInterrupt
            yield block
            rows += count_rows(block)

    with np.errstate(all="ignore"):  # a warning would reveal something about the data
        result = sanitise_errors(part.place, task, number, counted_blocks())
    return PartResult(result, rows, code_fingerprint())


def count_rows(block: Any) -> int:
    """Number of records in a block: an array, a table, or a mapping of columns."""
    if isinstance(block, Mapping):  # of columns
        block = next(iter(block.values()), ())
    return getattr(block, "num_rows", None) or len(block)


def run_on_worker(task: Task[T], number: int, part: Part) -> PartResult[T]:
    """Run `task` on one part in a worker process, which runs one task per core."""
    with one_blas_thread():
        return run_part(task, number, part)


def unwrap_results(results: Iterable[PartResult[T]], progress: Callable[[int], object] | None) -> Iterator[T]:
    """Yield the results of the parts as they arrive, and report the number of records of each to `progress`."""
    for part in results:
        require_same_code(part.code)
        if progress is not None:
            progress(part.rows)
        yield part.result
