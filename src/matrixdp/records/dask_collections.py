"""Source for dask arrays and data frames; Dask computes their blocks and runs the tasks on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar

from matrixdp.errors import ParameterError
from matrixdp.records.dask_cluster import Cluster, current_client, identity
from matrixdp.records.opening import OpenOptions, make_engine, register_source
from matrixdp.records.parts import InMemoryPart, PartResult, run_on_worker, unwrap_results
from matrixdp.records.records import Records, Task
from matrixdp.records.tables import library_of, require_columns
from matrixdp.records.threads import Threads

T = TypeVar("T")

# Computes delayed objects of Dask and yields their values.
Compute: TypeAlias = Callable[[list[Any]], Iterator[Any]]


class DaskRecords(Records):
    """A dask array or data frame of shape (records, features); each block of rows is a part."""

    def __init__(self, data: Any, compute: Compute, progress: Callable[[int], object] | None = None) -> None:
        self._data, self._compute, self._progress = data, compute, progress
        self._is_frame = hasattr(data, "npartitions") and hasattr(data, "columns")
        if not self._is_frame and getattr(data, "ndim", None) != 2:
            raise ParameterError("data must be a dask data frame or a dask array of two dimensions.")

    def select(self, names: Sequence[str] | None, *, texts: Sequence[str] = ()) -> Records:
        """Return the same records with only the named columns of a data frame; None keeps all."""
        if not self._is_frame or names is None:
            return self
        require_columns(self._data.columns, names)
        return DaskRecords(self._data[list(names)], self._compute, self._progress)

    def map(self, task: Task[T], *, whole: bool = False) -> Iterator[T]:
        """Yield the result of `task` on each block of rows, in any order."""
        from dask import delayed

        blocks = self._data.to_delayed() if self._is_frame else self._data.rechunk({1: -1}).to_delayed()[:, 0]
        shared, run = delayed(identity, pure=False)(task), delayed(_run_on_block, pure=False)
        results = self._compute([run(shared, number, block) for number, block in enumerate(blocks)])
        return unwrap_results(results, self._progress)


def _run_on_block(task: Task[T], number: int, block: Any) -> PartResult[T]:
    return run_on_worker(task, number, InMemoryPart(f"partition {number}", (block,)))


def _compute_on_threads(workers: int, delayed: list[Any]) -> Iterator[Any]:
    import dask

    return iter(dask.compute(*delayed, scheduler="threads", num_workers=workers))


@register_source(lambda data: library_of(data) == "dask")
def _open(data: Any, options: OpenOptions) -> DaskRecords:
    engine = make_engine(current_client() if options.workers is None else options.workers)
    compute: Compute
    if isinstance(engine, Cluster):
        compute = engine.compute
    elif isinstance(engine, Threads):
        compute = partial(_compute_on_threads, engine.workers)
    else:
        raise ParameterError("workers must be a number of threads or a Dask cluster for a dask array or data frame.")
    return DaskRecords(data, compute, options.progress)
