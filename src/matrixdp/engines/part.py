"""One part of the records, and the one function that every engine runs on it."""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from typing import Any, Generic, TypeVar

import numpy as np

from matrixdp.errors import DataError
from matrixdp.version import __version__

T = TypeVar("T")
Task = Callable[[int, Iterable[Any]], T]


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
class Held(Part):
    """Records in memory already."""

    place: str = ""
    held: Iterable[Any] = ()

    def blocks(self, columns: Sequence[str] | None) -> Iterator[Any]:
        """As they are; the task chooses the columns."""
        return iter(self.held)


@dataclass(frozen=True)
class Done(Generic[T]):
    """What became of a part.

    Attributes
    ----------
    result
        Of the task.
    rows : int
        How many records the part had.
    version : str
        Of the software that did it.
    """

    result: T
    rows: int
    version: str = __version__


def run_part(
    task: Task[T], number: int, part: Part, columns: Sequence[str] | None, stop: Event | None = None
) -> Done[T]:
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
            rows += block.num_rows if hasattr(block, "num_rows") else len(block)
            yield block

    with discreet(part.place), np.errstate(all="ignore"):  # a warning would speak of private data
        result = task(number, counted())
    return Done(result, rows)


@contextmanager
def discreet(place: str) -> Iterator[None]:
    """Errors of readers and tasks, with the place, and without what they quote from the data."""
    try:
        yield
    except DataError as error:
        if not place or str(error).startswith(place):
            raise
        raise DataError(f"{place}: {error}") from None
    except UnicodeDecodeError:
        raise DataError(f"{place} is not encoded as UTF-8. Save it as UTF-8.") from None
    except csv.Error:
        raise DataError(f"{place} cannot be read as CSV. Check its quotes and line ends.") from None
    except FileNotFoundError:
        raise DataError(f"{place} is not there, or not any more. Put it back, or leave it out.") from None
    except OSError as error:
        reason = error.strerror if error.errno else "it is damaged or cut short"
        raise DataError(f"{place} cannot be read: {reason}.") from None
    except Exception as error:
        if not type(error).__module__.startswith("pyarrow"):
            raise
        if type(error).__name__ == "ArrowCancelled":
            raise KeyboardInterrupt from None
        raise DataError(f"{place} cannot be read: it is damaged, cut short, or not what its name says.") from None
