"""One part of the records, the function that every engine runs on it, and the engine of threads.

Whoever runs a part, threads or a cluster, gets the same result: BLAS has one thread, errors show no values, and results
of workers with other code are refused.
"""

import csv
import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from threading import Event, RLock
from typing import Any, Generic, ParamSpec, TypeAlias, TypeVar

import numpy as np

from matrixdp.device import load_cupy
from matrixdp.errors import DataError, EngineError
from matrixdp.records.tables import column_numbers, count_rows, is_columnar, pa
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


def map_blocks(task: Task[T], function: Callable[[Any], Any], number: int, blocks: Iterable[Any]) -> T:
    """Task that maps the blocks of a part by a function before another task gets them."""
    return task(number, map(function, blocks))


class Threads:
    """A pool of threads, by default one per core that this process may use, with BLAS on one thread in each.

    With `on_device`, they move blocks to the GPU for a task that says ``on_device = True``, as it can work there.
    """

    def __init__(self, workers: int | None = None, *, on_device: bool = False) -> None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        self.workers: int = workers or cores or 1
        self.on_device = on_device

    def run(self, task: Task[T], parts: Iterable[Part], *, whole: bool = False) -> Iterator[PartResult[T]]:
        """Yield the result of `task` on each part; fewer parts than threads are split into blocks, unless `whole`."""
        if self.on_device and getattr(task, "on_device", False):
            task = partial(map_blocks, task, _to_device)
        if not whole and isinstance(parts, Sequence) and len(parts) < self.workers:
            parts = _split_into_blocks(parts)
        stop, running = Event(), set[Future[PartResult[T]]]()
        with one_blas_thread(), ThreadPoolExecutor(self.workers, thread_name_prefix="matrixdp") as pool:
            try:
                numbered, run = enumerate(parts), partial(run_part, task, stop=stop)
                most = self.workers + 1  # at most one part is queued, to bound the memory
                while running := running | {pool.submit(run, *one) for one in islice(numbered, most - len(running))}:
                    finished, running = wait(running, return_when=FIRST_COMPLETED)
                    yield from (future.result() for future in finished)
            finally:
                stop.set()
                pool.shutdown(wait=True, cancel_futures=True)


def _to_device(block: Any) -> Any:
    """Numbers of a block on the device; columns of texts stay in the memory of the host."""
    cupy = load_cupy()
    if is_columnar(block):
        moved = dict(zip(block.schema.names, block.columns, strict=True))
        for name, kind in zip(block.schema.names, block.schema.types, strict=True):
            if pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind):
                moved[name] = cupy.asarray(column_numbers(name, moved[name]))
        return moved
    return cupy.asarray(block) if isinstance(block, np.ndarray) and block.dtype.kind in "biuf" else block


def _split_into_blocks(parts: Iterable[Part]) -> Iterator[Part]:
    """Read the parts one after the other; each block becomes a part of its own."""
    for part in parts:
        blocks = part.blocks()
        while (block := sanitise_errors(part.place, next, blocks, None)) is not None:
            yield InMemoryPart(part.place, (block,))
