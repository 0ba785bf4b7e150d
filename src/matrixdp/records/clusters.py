"""Dask and Spark: a Dask cluster as an engine for files, and collections of Dask and Spark as records.

Tasks return exact integers, which the caller merges: the result does not depend on which worker ran a task, on how
often it was retried, or on the order in which results arrive. Dask and Spark run the same function on their own blocks.
"""

import pickle
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self, TypeVar

import numpy as np

from matrixdp.errors import EngineError, MatrixDPError, ParameterError, import_extra, show
from matrixdp.records.parts import InMemoryPart, Part, PartResult, Task, Threads, run_on_worker, unwrap_results
from matrixdp.records.records import Engine, Records
from matrixdp.records.tables import choose_columns, pa

T = TypeVar("T")
_SCHEMES = ("tcp", "tls", "ws", "wss", "ucx", "inproc")
_TIMEOUT = 10.0  # seconds to wait for the scheduler, and for its first worker


class Cluster:
    """A Dask cluster, by its scheduler's address or a client. All workers must find the files under the same paths."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def run(self, task: Task[T], parts: Iterable[Part], *, whole: bool = False) -> Iterator[PartResult[T]]:
        """Yield the result of `task` on each part, in any order."""
        listed = list(parts)
        if any(part.in_process for part in listed):
            raise ParameterError(
                "workers must be a number of threads for data in the memory of this process. To use a cluster, "
                "write the data to files that its workers can read."
            )

        def submit(client: Any) -> list[Any]:
            # As a future of its own, the task is sent once, and recomputed if the worker that holds it is lost.
            shared, send = client.submit(identity, task, pure=False), partial(client.submit, run_on_worker, pure=False)
            return [send(shared, number, part) for number, part in enumerate(listed)]

        return self.collect(submit)

    def collect(self, submit: Callable[[Any], list[Any]]) -> Iterator[Any]:
        """Yield the results of the futures that `submit` makes of a client, as they complete."""
        distributed = import_extra("distributed", "a Dask cluster requires Dask", "dask")
        with ExitStack() as opened:
            client = self._client
            if isinstance(client, str):
                try:
                    client = distributed.Client(client, timeout=_TIMEOUT, set_as_default=False)
                except (OSError, TimeoutError, ValueError):
                    raise EngineError(
                        f"workers: no Dask scheduler answers at {client}. Start one (dask scheduler), or check the "
                        "address."
                    ) from None
                opened.enter_context(client)
            try:
                client.wait_for_workers(1, timeout=_TIMEOUT)
            except TimeoutError:
                address = client.scheduler.address
                raise EngineError(
                    f"workers: the scheduler at {address} has no workers. Start some: dask worker {address}. "
                    "Nothing was released."
                ) from None
            futures = submit(client)
            try:
                for future in distributed.as_completed(list(futures), loop=client.loop):
                    result = future.result()
                    future.release()  # lets the worker free its copy
                    yield result
            except distributed.KilledWorker:
                raise EngineError(
                    "workers were lost repeatedly while they processed the same part. Check that they have enough "
                    "memory. Nothing was released."
                ) from None
            except distributed.CancelledError:
                raise EngineError(
                    "the cluster cancelled the tasks, perhaps because its scheduler stopped. Nothing was released."
                ) from None
            finally:
                client.cancel(futures)


def identity(value: T) -> T:
    """Return `value`; run as a task, it stores the value on a worker."""
    return value


def make_engine(workers: Any) -> Engine:
    """Return the engine for `workers`, as given to `open_records`."""
    if workers is None:
        return Threads()
    if isinstance(workers, int | np.integer) and not isinstance(workers, bool):
        if workers < 1:
            raise ParameterError(f"workers must be at least 1 thread, got {show(workers)} instead.")
        return Threads(int(workers))
    if isinstance(workers, str) and workers.partition("://")[0] not in _SCHEMES:
        hint = f"; did you mean tcp://{workers}?" if ":" in workers and "://" not in workers else "."
        raise ParameterError(
            "workers must be a number of threads, or a scheduler's address such as tcp://host:8786, "
            f"got {workers!r} instead{hint}"
        )
    if isinstance(workers, str) or hasattr(workers, "scheduler"):
        return Cluster(workers)
    if hasattr(workers, "run"):
        return workers  # type: ignore[no-any-return]
    raise ParameterError(
        "workers must be a number of threads, the address of a Dask scheduler or a distributed.Client, "
        f"got {show(workers)} instead."
    )


@dataclass(frozen=True, eq=False)
class Collection(Records):
    """A collection that its own library divides into parts."""

    data: Any
    progress: Callable[[int], object] | None = None

    @classmethod
    @abstractmethod
    def open(cls, data: Any, workers: Any, progress: Callable[[int], object] | None) -> Self:
        """The collection as records; arguments are those of `open_records`."""

    def select(self, names: Sequence[str] | None, *, texts: Sequence[str] = ()) -> Records:
        if names is None or not hasattr(self.data, "columns"):
            return self
        return replace(self, data=self._choose(choose_columns(list(self.data.columns), len(names), names)))

    def map(self, task: Task[T], *, whole: bool = False) -> Iterator[T]:
        return unwrap_results(self._run(task), self.progress)

    def _choose(self, names: list[str]) -> Any:
        return self.data[names]

    @abstractmethod
    def _run(self, task: Task[T]) -> Iterator[PartResult[T]]:
        """The results of all parts."""


@dataclass(frozen=True, eq=False)
class DaskRecords(Collection):
    """A dask array or data frame of shape (records, features); each block of rows is a part."""

    engine: Cluster | Threads = field(default_factory=Threads)

    @classmethod
    def open(cls, data: Any, workers: Any, progress: Callable[[int], object] | None) -> Self:
        if workers is None:
            with suppress(ImportError, ValueError):
                from distributed import default_client

                workers = default_client()
        engine = make_engine(workers)
        if not isinstance(engine, Cluster | Threads):
            rule = "must be a number of threads or a Dask cluster for a dask array or data frame."
            raise ParameterError(f"workers {rule}")
        return cls(data, progress, engine)

    def __post_init__(self) -> None:
        if not hasattr(self.data, "columns") and getattr(self.data, "ndim", None) != 2:
            raise ParameterError("data must be a dask data frame or a dask array of two dimensions.")

    def _run(self, task: Task[T]) -> Iterator[PartResult[T]]:
        import dask

        frame = hasattr(self.data, "columns")
        blocks = self.data.to_delayed() if frame else self.data.rechunk({1: -1}).to_delayed()[:, 0]
        shared, run = dask.delayed(identity, pure=False)(task), dask.delayed(_run_on_block, pure=False)
        delayed = [run(shared, number, block) for number, block in enumerate(blocks)]
        if isinstance(self.engine, Cluster):
            return self.engine.collect(lambda client: client.compute(delayed))
        return iter(dask.compute(*delayed, scheduler="threads", num_workers=self.engine.workers))


def _run_on_block(task: Task[T], number: int, block: Any) -> PartResult[T]:
    return run_on_worker(task, number, InMemoryPart(f"partition {number}", (block,)))


@dataclass(frozen=True, eq=False)
class SparkRecords(Collection):
    """A Spark data frame; each partition is a part."""

    @classmethod
    def open(cls, data: Any, workers: Any, progress: Callable[[int], object] | None) -> Self:
        if workers is not None:
            raise ParameterError("workers must not be given for a Spark data frame, which its own cluster processes.")
        return cls(data, progress)

    def __post_init__(self) -> None:
        if not hasattr(self.data, "mapInArrow"):
            raise ParameterError("data must be a data frame of Spark 3.3 or later.")

    def _choose(self, names: list[str]) -> Any:
        return self.data.select(*("`" + name.replace("`", "``") + "`" for name in names))

    def _run(self, task: Task[T]) -> Iterator[PartResult[T]]:
        for (content,) in self._collect(partial(run_partition, task)):
            result = pickle.loads(content)  # noqa: S301  (written by `run_partition` on the user's own cluster)
            if isinstance(result, MatrixDPError):
                raise result
            yield result

    def _collect(self, task: Callable[[Iterable[Any]], Iterator[Any]]) -> Any:
        """The rows that one Spark job gives for the task."""
        from pyspark.errors import PySparkException

        try:
            return self.data.mapInArrow(task, "result binary").collect()
        except PySparkException:  # its message may quote the data
            raise EngineError(
                "Spark could not run the task; the reason is in its log. Check that matrixdp and pyarrow are installed "
                "on its Python workers."
            ) from None


def run_partition(task: Task[T], batches: Iterable[Any]) -> Iterator[Any]:
    """What Spark runs on each partition: yield one Arrow batch with the pickled `PartResult`, or the pickled error."""
    number = _partition_number()
    result: PartResult[T] | MatrixDPError
    try:
        result = run_on_worker(task, number, InMemoryPart(f"partition {number}", batches))
    except MatrixDPError as error:  # returned, since Spark would retry the task and wrap the exception
        result = error
    yield pa.RecordBatch.from_pydict({"result": pa.array([pickle.dumps(result)], pa.binary())})


def _partition_number() -> int:
    from pyspark import TaskContext

    return int(TaskContext.get().partitionId())


LIBRARIES: dict[str, type[Collection]] = {"dask": DaskRecords, "pyspark": SparkRecords}
