"""One part of the records, and the function that every engine runs on it.

Whoever runs a part, threads or a cluster, gets the same result: BLAS has one thread, errors show no values, and results
of workers with other code are refused.
"""

import csv
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Event, RLock
from typing import Any, Generic, ParamSpec, TypeAlias, TypeVar

import numpy as np

from matrixdp.errors import DataError, EngineError
from matrixdp.records.tables import count_rows
from matrixdp.version import __version__

P = ParamSpec("P")
T = TypeVar("T")

# A function of a part's number and its blocks (arrays or tables), which returns a result for the part.
Task: TypeAlias = Callable[[int, Iterable[Any]], T]


def sanitise_errors(place: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call `function`; its errors name `place` and contain nothing that quotes the data."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        sanitised = _sanitised(place, error)
    raise sanitised  # not inside of `except`, where the original error would be kept as its context


def _sanitised(place: str, error: Exception) -> BaseException:
    """The exception to raise in place of `error`."""
    match error:
        case DataError():
            named = not place or str(error).startswith(place)
            return DataError(str(error) if named else f"{place}: {error}")  # a copy has no cause and no context
        case UnicodeDecodeError():
            return wrong_encoding(place, error.encoding)
        case csv.Error():
            return DataError(f"{place} cannot be read as CSV. Check its quotes and line ends.")
        case FileNotFoundError():
            return DataError(f"{place} does not exist, or was removed. Restore it, or leave it out.")
        case MemoryError():
            return DataError(
                f"{place} needs more memory than there is. Write it with smaller row groups or batches, or use a "
                "machine with more memory."
            )
        case OSError():
            reason = error.strerror if error.errno else "it is damaged or truncated"
            return DataError(f"{place} cannot be read: {reason}.")
    if not type(error).__module__.startswith("pyarrow"):
        return error
    if type(error).__name__ == "ArrowCancelled":
        return KeyboardInterrupt()
    return DataError(f"{place} cannot be read: it is damaged, truncated, or not in the format that its name suggests.")


def wrong_encoding(place: str, encoding: str = "utf-8") -> DataError:
    """The error for a file in another encoding."""
    name = "UTF-8" if encoding.startswith("utf-8") else encoding
    return DataError(
        f'{place} is not {name}: set encoding = "cp1252" under [files] in the schema, or the encoding in which it was '
        'written, such as "latin-1" or "utf-16".'
    )


# Packages whose code tasks run on workers; a contract test traces them. Others, such as reports, change no result.
RUN_BY_WORKERS = frozenset(
    {"adaptive", "checks", "design", "device", "domain", "errors", "mechanisms"}
    | {"noise", "queries", "records", "sensitivity", "serialise", "types"}
)


@lru_cache(maxsize=1)
def code_fingerprint() -> str:
    """Version of the package and a digest of the modules in `RUN_BY_WORKERS`, as in ``1.0.0 (1f2e3d4c5b6a)``."""
    folder = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder)
        if name.parts[0].removesuffix(".py") in RUN_BY_WORKERS:
            digest.update(name.as_posix().encode() + b"\0" + path.read_bytes())
    return f"{__version__} ({digest.hexdigest()[:12]})"


_lock = RLock()  # reentrant: a context may end in the garbage collector while its thread is inside
_users = 0  # contexts that are open now
_limits: Any = None  # of the first of them, undone by the last


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread until the last of several overlapping contexts ends, if threadpoolctl is installed."""
    global _users, _limits
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        yield
        return
    with _lock:
        limits = threadpool_limits(1)  # by each context: the limits may have been changed since the first
        if _users == 0:
            _limits = limits
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limits.restore_original_limits()


class Part(ABC):
    """Some of the records, read by one task. Can be pickled and sent to another process.

    Attributes
    ----------
    place : str
        Where the records are, for error messages.
    in_process : bool
        Whether they are in the memory of this process, so that they should not be sent to a cluster.
    """

    place: str
    in_process = False

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
        return iter(self.content)


@dataclass(frozen=True)
class PartResult(Generic[T]):
    """What a task returned for one part, the part's number of records, and the `code_fingerprint` that ran it."""

    result: T
    rows: int
    code: str


def run_part(task: Task[T], number: int, part: Part, stop: Event | None = None) -> PartResult[T]:
    """Run `task` on one part, until `stop` is set; errors name the file and show no private value."""
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


def run_on_worker(task: Task[T], number: int, part: Part) -> PartResult[T]:
    """Run `task` on one part in a worker process, which runs one task per core."""
    with one_blas_thread():
        return run_part(task, number, part)


def unwrap_results(results: Iterable[PartResult[T]], progress: Callable[[int], object] | None) -> Iterator[T]:
    """Yield the results of the parts as they arrive, and report the number of records of each to `progress`."""
    for part in results:
        if part.code != code_fingerprint():
            raise EngineError(
                f"workers must run matrixdp {code_fingerprint()}, like this process, got {part.code} instead. "
                "Install the same version on the workers."
            )
        if progress is not None:
            progress(part.rows)
        yield part.result
