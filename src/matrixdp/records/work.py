"""One part of the records, and the one function that every engine runs on it."""

from __future__ import annotations

import csv
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Event
from typing import Any, Generic, TypeVar

import numpy as np

from matrixdp.errors import DataError, EngineError, ParameterError
from matrixdp.records.records import Task
from matrixdp.version import __version__

T = TypeVar("T")

# Packages and modules whose code tasks run on workers; an edit to a report or a command changes no integer.
RUN_BY_WORKERS = frozenset(
    {"adaptive", "checks", "design", "domain", "errors", "noise", "privacy", "queries", "records", "release"}
    | {"sensitivity", "serialise", "types"}
)


class Part(ABC):
    """Some of the records, which one task reads. Can be sent to another process."""

    @property
    @abstractmethod
    def place(self) -> str:
        """Where they are, for messages."""

    @abstractmethod
    def blocks(self, columns: Sequence[str] | None) -> Iterator[Any]:
        """Arrays or tables of some records each; of a table, the columns named, or all."""


@dataclass(frozen=True, eq=False)
class InMemoryPart(Part):
    """StoredRecords in memory already."""

    place: str = ""
    held: Iterable[Any] = ()

    def blocks(self, columns: Sequence[str] | None) -> Iterator[Any]:
        """As they are; the task chooses the columns."""
        return iter(self.held)


@dataclass(frozen=True)
class PartResult(Generic[T]):
    """What became of a part.

    Attributes
    ----------
    result
        Of the task.
    rows : int
        How many records the part had.
    code : str
        Which software did it.
    """

    result: T
    rows: int
    code: str


@lru_cache(maxsize=1)
def code_fingerprint() -> str:
    """The version, and a digest of the modules that tasks run: workers with other code may compute other integers."""
    folder = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder)
        if name.parts[0].removesuffix(".py") in RUN_BY_WORKERS:
            digest.update(name.as_posix().encode() + b"\0" + path.read_bytes())
    return f"{__version__} ({digest.hexdigest()[:12]})"


def run_part(
    task: Task[T], number: int, part: Part, columns: Sequence[str] | None, stop: Event | None = None
) -> PartResult[T]:
    """What `task` makes of a part; errors name the file and show no private value.

    Parameters
    ----------
    task : callable
        From the part's number and its blocks to a result.
    number : int
    part : Part
    columns : names, optional
    stop : Event, optional
        Set when the result is not wanted any more.
    """
    rows = 0

    def counted() -> Iterator[Any]:
        nonlocal rows
        for block in part.blocks(columns):
            if stop is not None and stop.is_set():
                raise KeyboardInterrupt
            yield block
            rows += getattr(block, "num_rows", None) or len(block)

    def work() -> T:
        with np.errstate(all="ignore"):  # a warning would speak of private data
            return task(number, counted())

    result = sanitise_errors(part.place, work)
    return PartResult(result, rows, code_fingerprint())


def require_columns(columns: Iterable[str], names: Iterable[str]) -> None:
    """An error unless a frame has the columns named."""
    missing = [name for name in names if name not in columns]
    if missing:
        raise ParameterError(f"data must have a column {missing[0]!r}, as the bounds do.")


def require_same_code(done: PartResult[T]) -> PartResult[T]:
    """An error for a result of other software, whose integers might be others."""
    if done.code != code_fingerprint():
        raise EngineError(
            f"workers must run matrixdp {code_fingerprint()}, as this process does, got {done.code} instead. "
            "Install it there."
        )
    return done


def sanitise_errors(place: str, function: Callable[[], T]) -> T:
    """The function's result; errors of readers and tasks name the place, and hold nothing that quotes the data."""
    try:
        return function()
    except Exception as error:
        found = _told(place, error)
    raise found  # out here: otherwise it would carry the error that it replaces


def _told(place: str, error: Exception) -> BaseException:
    """What to raise instead of an error."""
    match error:
        case DataError():
            known = not place or str(error).startswith(place)
            return DataError(str(error) if known else f"{place}: {error}")  # without what it may have come from
        case UnicodeDecodeError():
            return DataError(f"{place} is not encoded as UTF-8. Save it as UTF-8.")
        case csv.Error():
            return DataError(f"{place} cannot be read as CSV. Check its quotes and line ends.")
        case FileNotFoundError():
            return DataError(f"{place} is not there, or not any more. Put it back, or leave it out.")
        case OSError():
            reason = error.strerror if error.errno else "it is damaged or cut short"
            return DataError(f"{place} cannot be read: {reason}.")
    if not type(error).__module__.startswith("pyarrow"):
        return error
    if type(error).__name__ == "ArrowCancelled":
        return KeyboardInterrupt()
    return DataError(f"{place} cannot be read: it is damaged, cut short, or not what its name says.")
