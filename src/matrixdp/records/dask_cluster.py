"""Engine that processes parts on the workers of a Dask cluster.

Tasks return exact integers, which the caller merges: the result does not depend on which worker ran a task, on how
often it was retried, or on the order in which results arrive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from matrixdp.errors import EngineError, MissingExtraError, ParameterError, install_hint
from matrixdp.records.opening import register_engine
from matrixdp.records.parts import Part, PartResult, run_on_worker
from matrixdp.records.records import Task

T = TypeVar("T")
_SCHEMES = ("tcp", "tls", "ws", "wss", "ucx", "inproc")
_TIMEOUT = 10.0  # seconds to wait for the scheduler, and for its first worker


class Cluster:
    """A Dask cluster.

    Parameters
    ----------
    client : str or distributed.Client
        The scheduler's address, such as ``tcp://10.0.0.5:8786``, or a client. All workers must be able to read the
        files under the same paths.
    """

    def __init__(self, client: Any) -> None:
        self._client = client

    def run(self, task: Task[T], parts: Iterable[Part], *, whole: bool = False) -> Iterator[PartResult[T]]:
        """Yield the result of `task` on each part, in any order."""
        listed = []
        for part in parts:
            if part.in_process:
                raise ParameterError(
                    "workers must be a number of threads for data in the memory of this process. To use a cluster, "
                    "write the data to files that its workers can read."
                )
            listed.append(part)

        def submit(client: Any) -> list[Any]:
            # As a future of its own, the task is sent once, and recomputed if the worker that holds it is lost.
            shared = client.submit(identity, task, pure=False)
            return [
                client.submit(run_on_worker, shared, number, part, pure=False) for number, part in enumerate(listed)
            ]

        return self._results(submit)

    def compute(self, delayed: list[Any]) -> Iterator[Any]:
        """Compute delayed objects and yield their values, in any order."""
        return self._results(lambda client: client.compute(delayed))

    def _results(self, submit: Callable[[Any], list[Any]]) -> Iterator[Any]:
        """Yield the results of the futures that `submit` creates as they complete."""
        distributed = _import_distributed()
        with self._connect(distributed) as client:
            _require_workers(client)
            futures = submit(client)
            try:
                for future in distributed.as_completed(list(futures), loop=client.loop):
                    result = _result(future, distributed)
                    future.release()  # lets the worker free its copy
                    yield result
            finally:
                client.cancel(futures)

    @contextmanager
    def _connect(self, distributed: Any) -> Iterator[Any]:
        """Give the client, and close it at the end if it was made here from an address."""
        if not isinstance(self._client, str):
            yield self._client
            return
        try:
            client = distributed.Client(self._client, timeout=_TIMEOUT, set_as_default=False)
        except (OSError, TimeoutError, ValueError):
            raise EngineError(
                f"workers: no Dask scheduler answers at {self._client}. Start one (dask scheduler), or check the "
                "address."
            ) from None
        try:
            yield client
        finally:
            client.close()


def identity(value: T) -> T:
    """Return `value`; run as a task, it stores the value on a worker."""
    return value


def current_client() -> Any:
    """Return the current `distributed.Client`, or None."""
    try:
        from distributed import default_client

        return default_client()
    except (ImportError, ValueError):
        return None


def _require_workers(client: Any) -> None:
    try:
        client.wait_for_workers(1, timeout=_TIMEOUT)
    except TimeoutError:
        address = client.scheduler.address
        raise EngineError(
            f"workers: the scheduler at {address} has no workers. Start some: dask worker {address}. "
            "Nothing was released."
        ) from None


def _result(future: Any, distributed: Any) -> Any:
    try:
        return future.result()
    except distributed.KilledWorker:
        raise EngineError(
            "workers were lost repeatedly while they processed the same part. Check that they have enough memory. "
            "Nothing was released."
        ) from None
    except distributed.CancelledError:
        raise EngineError(
            "the cluster cancelled the tasks, perhaps because its scheduler stopped. Nothing was released."
        ) from None


def _import_distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise MissingExtraError(f"a Dask cluster requires Dask. {install_hint('dask')}") from None
    return distributed


@register_engine(lambda workers: isinstance(workers, str) or hasattr(workers, "scheduler"))
def _make_cluster(workers: Any) -> Cluster:
    if isinstance(workers, str) and workers.partition("://")[0] not in _SCHEMES:
        hint = f"; did you mean tcp://{workers}?" if ":" in workers and "://" not in workers else "."
        raise ParameterError(
            "workers must be a number of threads, or a scheduler's address such as tcp://host:8786, "
            f"got {workers!r} instead{hint}"
        )
    return Cluster(workers)
