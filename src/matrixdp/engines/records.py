"""Records that are not in memory: where they are, and who works on them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from matrixdp.engines.arrays import Batches, MappedArray, open_array
from matrixdp.engines.cluster import Cluster, DaskRecords
from matrixdp.engines.files import Files, open_files
from matrixdp.engines.part import Done, Part, Task
from matrixdp.engines.spark import SparkRecords
from matrixdp.engines.threads import Threads
from matrixdp.errors import ParameterError, show
from matrixdp.queries.table import Blocks, Parts, outside_memory

T = TypeVar("T")
_SCHEMES = ("tcp", "tls", "ws", "wss", "ucx", "inproc")


class Source(Protocol):
    """Where records are."""

    def parts(self) -> Iterable[Part]:
        """In the records' order."""


class Engine(Protocol):
    """Who works on them."""

    def run(
        self, task: Task[T], parts: Iterable[Part], columns: Sequence[str] | None, *, whole: bool = False
    ) -> Iterator[Done[T]]:
        """What the task makes of each part, in any order."""


@dataclass(frozen=True, eq=False)
class Records(Parts):
    """Records in files, mapped arrays or batches."""

    source: Source
    engine: Engine
    columns: Sequence[str] | None = None
    progress: Callable[[int], object] | None = None

    @property
    def once(self) -> bool:  # type: ignore[override]
        """Whether they come from an iterator, which is used up after one pass."""
        return isinstance(self.source, Batches) and self.source.once

    @property
    def ordered(self) -> bool:  # type: ignore[override]
        """Whether no folder's name says what the records in it are like."""
        return not (isinstance(self.source, Files) and self.source.keyed)

    def select(self, names: Sequence[str] | None) -> Records:
        """Only these columns are read."""
        return replace(self, columns=None if names is None else tuple(names))

    def map(self, task: Task[T], *, whole: bool = False) -> Iterator[T]:
        """What the task makes of each part, in any order."""
        columns = self.columns
        if columns is None and isinstance(self.source, Files):
            columns = self.source.names()  # the first file's, whatever the order in others
        for done in self.engine.run(task, self.source.parts(), columns, whole=whole):
            if self.progress is not None:
                self.progress(done.rows)
            yield done.result


def open_records(
    data: Any,
    *,
    workers: Any = None,
    delimiter: str | None = None,
    progress: Callable[[int], object] | None = None,
) -> Parts:
    """Records that need not fit into memory, for every query, design and estimator that takes an array.

    Parameters
    ----------
    data : path, pattern, list of paths, memory map, iterator, Blocks, dask or Spark data
        A Parquet, Feather or CSV file; a folder of them, in which folders may be named ``key=value``; a pattern such
        as ``records/*.parquet``; a NPY file or `numpy.memmap`; an iterator of arrays or tables (read once) or
        `Blocks`; a dask array or data frame; a Spark data frame.
    workers : int, str or distributed.Client, optional
        A number of threads, by default one a core; or a Dask cluster, by its scheduler's address or by a client. A
        dask array or frame takes the current client, a Spark frame its own cluster.
    delimiter : str, optional
        What separates the columns of a CSV file.
    progress : callable, optional
        Told how many records each part had when it is done.

    Privacy
    -------
    Parts give exact integers, so that the result does not depend on their order, number or size, to the last bit. No
    noise is drawn where the parts are summed. Errors name files and columns, and no value.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> batches = (np.full((3, 2), 0.5) for _ in range(4))
    >>> design = mdp.make_design(mdp.SecondMoment(mdp.Bounds([0, 0], [1, 1]), 12), mdp.Privacy(1, 1e-6))
    >>> design.release(open_records(batches, workers=2)).matrix.shape
    (2, 2)
    """
    if isinstance(data, Parts) and not isinstance(data, Blocks):
        if workers is not None:
            raise ParameterError("workers must be given where the records are opened first, not once more.")
        return data
    if progress is not None and not callable(progress):
        raise ParameterError(
            f"progress must be a function of the number of records done, got {show(progress)} instead."
        )
    library = type(data).__module__.partition(".")[0]
    if library == "dask":
        return DaskRecords(data, None if workers is None else _engine(workers), progress)
    if library == "pyspark":
        if workers is not None:
            raise ParameterError("workers must be left out for a Spark frame, whose own cluster does the work.")
        return SparkRecords(data, progress)
    return Records(_source(data, delimiter), _engine(workers), None, progress)


def check_apart(records: Parts, out: str | os.PathLike[str]) -> None:
    """An error for a folder to write to that holds the records' files, or lies among them."""
    if isinstance(records, Records) and isinstance(records.source, Files):
        records.source.check_apart(out)


def _source(data: Any, delimiter: str | None) -> Source:
    if isinstance(data, np.memmap):
        return MappedArray(data)
    if isinstance(data, str | os.PathLike):
        is_array = Path(data).suffix.lower() == ".npy"
        return open_array(Path(data)) if is_array else open_files(str(data), delimiter=delimiter)
    if outside_memory(data) and isinstance(data, list | tuple):
        return open_files(data, delimiter=delimiter)
    if isinstance(data, Iterator | Blocks):
        return Batches(data)
    raise ParameterError(
        "data must be a path, a pattern, a memory map, an iterator of batches, a dask or a Spark collection, "
        f"got {type(data).__name__} instead; what is in memory is given to the query itself, or as Blocks."
    )


def _engine(workers: Any) -> Threads | Cluster:
    if workers is None or (isinstance(workers, int | np.integer) and not isinstance(workers, bool)):
        if workers is not None and workers < 1:
            raise ParameterError(f"workers must be at least 1 thread, got {show(workers)} instead.")
        return Threads(None if workers is None else int(workers))
    if isinstance(workers, str) and workers.partition("://")[0] not in _SCHEMES:
        hint = f"; did you mean tcp://{workers}?" if ":" in workers and "://" not in workers else "."
        raise ParameterError(
            "workers must be a number of threads, or a scheduler's address such as tcp://host:8786, "
            f"got {workers!r} instead{hint}"
        )
    if not isinstance(workers, str) and not hasattr(workers, "scheduler"):
        raise ParameterError("workers must be a number of threads, a scheduler's address or a distributed.Client.")
    return Cluster(workers)
