"""Source for Spark data frames, processed by Spark itself.

Spark passes each partition to a function as Arrow record batches (``mapInArrow``) and returns one row per partition.
The function is the same as for all other engines, so the integers are the same.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from matrixdp.errors import EngineError, MatrixDPError, ParameterError
from matrixdp.records.opening import OpenOptions, register_source
from matrixdp.records.parts import InMemoryPart, PartResult, run_on_worker, unwrap_results
from matrixdp.records.records import Records, Task
from matrixdp.records.tables import library_of, require_columns

T = TypeVar("T")


class SparkRecords(Records):
    """A Spark data frame; each partition is a part."""

    def __init__(self, frame: Any, progress: Callable[[int], object] | None = None) -> None:
        if not hasattr(frame, "mapInArrow"):
            raise ParameterError("data must be a data frame of Spark 3.3 or later.")
        self._frame, self._progress = frame, progress

    def select(self, names: Sequence[str] | None, *, texts: Sequence[str] = ()) -> Records:
        """Return the same records with only the named columns; None keeps all."""
        if names is None:
            return self
        require_columns(self._frame.columns, names)
        quoted = ["`" + name.replace("`", "``") + "`" for name in names]
        return SparkRecords(self._frame.select(*quoted), self._progress)

    def map(self, task: Task[T], *, whole: bool = False) -> Iterator[T]:
        """Yield the result of `task` on each partition, in any order, from one Spark job."""
        return unwrap_results(self._run(PartitionTask(task)), self._progress)

    def _run(self, task: PartitionTask[T]) -> Iterator[PartResult[T]]:
        for (content,) in self._collect(task):
            result = pickle.loads(content)  # noqa: S301  (written by PartitionTask on the user's own cluster)
            if isinstance(result, MatrixDPError):
                raise result
            yield result

    def _collect(self, task: PartitionTask[T]) -> Any:
        from pyspark.errors import PySparkException

        try:
            return self._frame.mapInArrow(task, "result binary").collect()
        except PySparkException:  # its message may quote the data
            raise EngineError(
                "Spark could not run the task; the reason is in its log. Check that matrixdp and pyarrow are installed "
                "on its Python workers."
            ) from None


@dataclass(frozen=True)
class PartitionTask(Generic[T]):
    """The function that Spark runs on each partition: Arrow batches in, one batch with one pickled result out."""

    task: Task[T]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the pickled `PartResult`, or the pickled error."""
        import pyarrow as pa

        number = _partition_number()
        result: PartResult[T] | MatrixDPError
        try:
            result = run_on_worker(self.task, number, InMemoryPart(f"partition {number}", batches))
        except MatrixDPError as error:  # returned, since Spark would retry the task and wrap the exception
            result = error
        yield pa.RecordBatch.from_pydict({"result": pa.array([pickle.dumps(result)], pa.binary())})


def _partition_number() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        raise EngineError("a PartitionTask can run only inside of a Spark task.")
    return int(context.partitionId())


@register_source(lambda data: library_of(data) == "pyspark")
def _open(data: Any, options: OpenOptions) -> SparkRecords:
    if options.workers is not None:
        raise ParameterError("workers must not be given for a Spark data frame, which its own cluster processes.")
    return SparkRecords(data, options.progress)
