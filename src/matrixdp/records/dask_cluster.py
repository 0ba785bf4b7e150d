"""Records worked on by the workers of a Dask cluster.

The function is the one that threads run, its results are exact integers, and those are merged by the caller: which
worker did what, how often it was tried, and in which order the results come cannot change a bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from matrixdp.errors import EngineError, MissingExtraError, ParameterError
from matrixdp.records.opening import OpenOptions, make_engine, register_engine, register_source
from matrixdp.records.records import Records, Task
from matrixdp.records.stored import Engine
from matrixdp.records.tables import library_of
from matrixdp.records.threads import Threads, one_blas_thread
from matrixdp.records.work import InMemoryPart, Part, PartResult, require_columns, require_same_code, run_part

T = TypeVar("T")
_SCHEMES = ("tcp", "tls", "ws", "wss", "ucx", "inproc")
_PATIENCE = 10.0  # seconds to wait for a scheduler, and for its first worker


class Cluster:
    """A Dask cluster, by the address of its scheduler or by a client of it.

    Parameters
    ----------
    client : str or distributed.Client
        Such as ``tcp://10.0.0.5:8786``. Files must be readable by all workers under the same paths.
    """

    def __init__(self, client: Any) -> None:
        self._given = client

    def run(
        self, task: Task[T], parts: Iterable[Part], columns: Sequence[str] | None, *, whole: bool = False
    ) -> Iterator[PartResult[T]]:
        """What the task makes of each part, in any order."""
        listed = list(parts)
        if any(isinstance(part, InMemoryPart) for part in listed):
            raise ParameterError(
                "workers must be threads for data in this process; write them to files that the workers can read."
            )

        def submit(client: Any) -> list[Any]:
            # Sent once, and made again by the scheduler if the worker that holds it is lost.
            shared = client.submit(_same, task, columns, pure=False)
            return [client.submit(_work, shared, number, part, pure=False) for number, part in enumerate(listed)]

        yield from self._collect(submit)

    def run_blocks(self, task: Task[T], blocks: Sequence[Any]) -> Iterator[PartResult[T]]:
        """The same for blocks that the cluster computes itself, given as delayed objects."""
        delayed = _delayed(task, blocks)
        yield from self._collect(lambda client: client.compute(delayed))

    def _collect(self, submit: Callable[[Any], list[Any]]) -> Iterator[PartResult[T]]:
        distributed = _distributed()
        own = isinstance(self._given, str)
        client = self._connect(distributed) if own else self._given
        futures: list[Any] = []
        try:
            _require_workers(client)
            futures = submit(client)
            for future in distributed.as_completed(list(futures), loop=client.loop):
                done = require_same_code(_result(future, distributed))
                future.release()  # a worker need not keep what is merged
                yield done
        finally:
            client.cancel(futures)
            if own:
                client.close()

    def _connect(self, distributed: Any) -> Any:
        try:
            return distributed.Client(self._given, timeout=_PATIENCE, set_as_default=False)
        except (OSError, TimeoutError, ValueError):
            raise EngineError(
                f"workers: no Dask scheduler answers at {self._given}. Start one (dask scheduler), or check the "
                "address."
            ) from None


def _require_workers(client: Any) -> None:
    try:
        client.wait_for_workers(1, timeout=_PATIENCE)
    except TimeoutError:
        address = client.scheduler.address
        raise EngineError(
            f"workers: the scheduler at {address} has none. Start some: dask worker {address}. Nothing was released."
        ) from None


class DaskRecords(Records):
    """A dask array or data frame, of shape (records, features); each block is a part."""

    def __init__(
        self,
        data: Any,
        engine: Engine | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> None:
        self._data, self._engine, self._progress = data, engine, progress
        frame = hasattr(data, "npartitions") and hasattr(data, "columns")
        if not frame and getattr(data, "ndim", None) != 2:
            raise ParameterError("data must be a dask data frame or a dask array of two dimensions.")
        self._frame = frame

    def select(self, names: Sequence[str] | None) -> Records:
        """Only these columns are read, where the frame can leave out the others."""
        if not self._frame or names is None:
            return self
        require_columns(self._data.columns, names)
        return DaskRecords(self._data[list(names)], self._engine, self._progress)

    def map(self, task: Task[T], *, whole: bool = False) -> Iterator[T]:
        """On the cluster that was given, or that of the current client, or on Dask's threads."""
        data = self._data if self._frame else self._data.rechunk({1: -1})
        blocks = data.to_delayed()
        blocks = list(blocks if self._frame else blocks[:, 0])
        for done in self._run(task, blocks):
            if self._progress is not None:
                self._progress(done.rows)
            yield done.result

    def _run(self, task: Task[T], blocks: Sequence[Any]) -> Iterator[PartResult[T]]:
        engine = self._engine
        if engine is None and (client := _current_client()) is not None:
            engine = Cluster(client)
        if isinstance(engine, Cluster):
            return engine.run_blocks(task, blocks)
        import dask

        workers = engine.workers if isinstance(engine, Threads) else None
        return iter(dask.compute(*_delayed(task, blocks), scheduler="threads", num_workers=workers))


@register_engine(lambda workers: isinstance(workers, str) or hasattr(workers, "scheduler"))
def _make_cluster(workers: Any) -> Cluster:
    if isinstance(workers, str) and workers.partition("://")[0] not in _SCHEMES:
        hint = f"; did you mean tcp://{workers}?" if ":" in workers and "://" not in workers else "."
        raise ParameterError(
            "workers must be a number of threads, or a scheduler's address such as tcp://host:8786, "
            f"got {workers!r} instead{hint}"
        )
    return Cluster(workers)


@register_source(lambda data: library_of(data) == "dask")
def _open(data: Any, options: OpenOptions) -> DaskRecords:
    return DaskRecords(data, None if options.workers is None else make_engine(options.workers), options.progress)


def _delayed(task: Task[T], blocks: Sequence[Any]) -> list[Any]:
    from dask import delayed

    shared = delayed(_same, pure=False)(task, None)
    work = delayed(_work_on_block, pure=False)
    return [work(shared, number, block) for number, block in enumerate(blocks)]


def _same(task: Task[T], columns: Sequence[str] | None) -> tuple[Task[T], Sequence[str] | None]:
    return task, columns


def _work_on_block(shared: tuple[Task[T], Sequence[str] | None], number: int, block: Any) -> PartResult[T]:
    return _work(shared, number, InMemoryPart(f"partition {number}", (block,)))


def _work(shared: tuple[Task[T], Sequence[str] | None], number: int, part: Part) -> PartResult[T]:
    task, columns = shared
    with one_blas_thread():
        return run_part(task, number, part, columns)


def _result(future: Any, distributed: Any) -> Any:
    try:
        return future.result()
    except distributed.KilledWorker:
        raise EngineError(
            "workers were lost again and again while they worked on one part. Do they have enough memory? "
            "Nothing was released."
        ) from None
    except distributed.CancelledError:
        raise EngineError(
            "the cluster gave up the work, perhaps since its scheduler ended. Nothing was released."
        ) from None


def _current_client() -> Any:
    try:
        from distributed import default_client
    except ImportError:
        return None
    try:
        return default_client()
    except ValueError:
        return None


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise MissingExtraError("a cluster needs Dask. Install it: pip install 'matrixdp[dask]'") from None
    return distributed
