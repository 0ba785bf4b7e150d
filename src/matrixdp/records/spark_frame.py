"""Partitions of a Spark data frame, worked on where they are.

Spark hands each partition to the function as batches of Arrow (``mapInArrow``); what comes back is one row a
partition. The function is the one that threads run; its integers are those of every other engine.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from matrixdp.errors import EngineError, MatrixDPError, ParameterError
from matrixdp.records.opening import OpenOptions, register_source
from matrixdp.records.records import Records, Task
from matrixdp.records.tables import library_of
from matrixdp.records.threads import one_blas_thread
from matrixdp.records.work import InMemoryPart, require_columns, require_same_code, run_part

T = TypeVar("T")


class SparkRecords(Records):
    """A Spark data frame; each partition is a part."""

    def __init__(self, frame: Any, progress: Callable[[int], object] | None = None) -> None:
        if not hasattr(frame, "mapInArrow"):
            raise ParameterError("data must be a Spark data frame of version 3.3 or later.")
        self._frame, self._progress = frame, progress

    def select(self, names: Sequence[str] | None) -> Records:
        """Only these columns are read."""
        if names is None:
            return self
        require_columns(self._frame.columns, names)
        quoted = ["`" + name.replace("`", "``") + "`" for name in names]
        return SparkRecords(self._frame.select(*quoted), self._progress)

    def map(self, task: Task[T], *, whole: bool = False) -> Iterator[T]:
        """One job; a partition that is tried again counts once."""
        for (content,) in self._collect(PartitionTask(task)):
            done = pickle.loads(content)  # noqa: S301  (from our own function, by way of the user's own cluster)
            if isinstance(done, MatrixDPError):
                raise done
            require_same_code(done)
            if self._progress is not None:
                self._progress(done.rows)
            yield done.result

    def _collect(self, function: Any) -> Any:
        from pyspark.errors import PySparkException

        try:
            return self._frame.mapInArrow(function, "done binary").collect()
        except PySparkException:  # its text may quote the data
            raise EngineError(
                "Spark could not finish the work, and its log says why. Do its Python workers have matrixdp and "
                "pyarrow?"
            ) from None


@dataclass(frozen=True)
class PartitionTask(Generic[T]):
    """What Spark runs on each partition: batches of Arrow in, one batch with one pickled result out."""

    task: Task[T]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """The result, or the error that there was."""
        import pyarrow as pa

        number = _partition()
        try:
            with one_blas_thread():
                done: Any = run_part(self.task, number, InMemoryPart(f"partition {number}", batches), None)
        except MatrixDPError as error:  # as a value: an exception would be tried again, and buried in Spark's own
            done = error
        yield pa.RecordBatch.from_pydict({"done": pa.array([pickle.dumps(done)], pa.binary())})


@register_source(lambda data: library_of(data) == "pyspark")
def _open(data: Any, options: OpenOptions) -> SparkRecords:
    if options.workers is not None:
        raise ParameterError("workers must be left out for a Spark frame, whose own cluster does the work.")
    return SparkRecords(data, options.progress)


def _partition() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        raise EngineError("this function runs inside of a Spark task only.")
    return int(context.partitionId())
