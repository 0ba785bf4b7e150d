"""`open_records`: from a path, an iterator or a distributed frame to `Records`.

Each kind of source registers itself here (`register_source`), and so does each kind of worker (`register_engine`).
Neither this module nor anything below it knows the kinds by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import ParameterError, show
from matrixdp.records.records import Blocks, Records, require_public_order
from matrixdp.records.stored import Engine
from matrixdp.records.tables import to_array


@dataclass(frozen=True, kw_only=True)
class OpenOptions:
    """How records are to be read; the arguments of `open_records`."""

    workers: Any = None
    delimiter: str | None = None
    progress: Callable[[int], object] | None = None


Opener = TypeVar("Opener", bound=Callable[[Any, OpenOptions], Records])
EngineMaker = TypeVar("EngineMaker", bound=Callable[[Any], Engine])
_SOURCES: list[tuple[Callable[[Any], bool], Callable[[Any, OpenOptions], Records]]] = []
_ENGINES: list[tuple[Callable[[Any], bool], Callable[[Any], Engine]]] = []


def register_source(recognises: Callable[[Any], bool]) -> Callable[[Opener], Opener]:
    """Decorator: use a function to open the data that `recognises` is true for."""

    def register(opener: Opener) -> Opener:
        _SOURCES.append((recognises, opener))
        return opener

    return register


def register_engine(recognises: Callable[[Any], bool]) -> Callable[[EngineMaker], EngineMaker]:
    """Decorator: use a function to make the engine for the `workers` that `recognises` is true for."""

    def register(make: EngineMaker) -> EngineMaker:
        _ENGINES.append((recognises, make))
        return make

    return register


def make_engine(workers: Any) -> Engine:
    """The engine that `workers` stands for."""
    for recognises, make in _ENGINES:
        if recognises(workers):
            return make(workers)
    raise ParameterError("workers must be a number of threads, a scheduler's address or a distributed.Client.")


def is_out_of_core(data: Any) -> bool:
    """Whether `data` are records to be read in parts: paths, memory maps, iterators, Dask and Spark collections."""
    return isinstance(data, Records) or any(recognises(data) for recognises, _ in _SOURCES)


def open_records(
    data: Any,
    *,
    workers: Any = None,
    delimiter: str | None = None,
    progress: Callable[[int], object] | None = None,
) -> Records:
    """Records that need not fit into memory, for every query, design and estimator that takes an array.

    Parameters
    ----------
    data : path, pattern, list of paths, memory map, iterator, Blocks, dask or Spark data
        A Parquet, Feather or CSV file; a folder of them, in which folders may be named ``key=value``; a pattern such
        as ``records/*.parquet``; a NPY file or `numpy.memmap`; an iterator of arrays or tables (read once) or
        `Blocks`; a dask array or data frame; a Spark data frame.
    workers : int, str or distributed.Client, optional
        A number of threads, by default one a core; or a Dask cluster, given by its scheduler's address or by a client.
        A dask array or frame uses the current client by default, a Spark frame its own cluster.
    delimiter : str, optional
        Column separator of CSV files.
    progress : callable, optional
        Called with the number of records of each part when it is done.

    Privacy
    -------
    Parts give exact integers, so that the result does not depend on their order, number or size, to the last bit. No
    noise is drawn where the parts are summed. Errors name files and columns, never a value.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> batches = (np.full((3, 2), 0.5) for _ in range(4))
    >>> design = mdp.make_design(mdp.SecondMoment(mdp.Bounds([0, 0], [1, 1]), 12), mdp.Privacy(1, 1e-6))
    >>> design.release(open_records(batches, workers=2)).matrix.shape
    (2, 2)
    """
    if isinstance(data, Records) and not isinstance(data, Blocks):
        if workers is not None:
            raise ParameterError("workers must be given where the records are opened first, not once more.")
        return data
    if progress is not None and not callable(progress):
        raise ParameterError(
            f"progress must be a function of the number of records done, got {show(progress)} instead."
        )
    for recognises, opener in _SOURCES:
        if recognises(data):
            return opener(data, OpenOptions(workers=workers, delimiter=delimiter, progress=progress))
    raise ParameterError(
        "data must be a path, a pattern, a memory map, an iterator of batches, a dask or a Spark collection, "
        f"got {type(data).__name__} instead; what is in memory is given to the query itself, or as Blocks."
    )


def as_records(data: Any) -> Records:
    """Any data as `Records`; those in memory form one part.

    Examples
    --------
    >>> list(as_records([[1, 2], [3, 4]]).map(lambda number, blocks: [len(block) for block in blocks]))
    [[2]]
    """
    if isinstance(data, Records):
        return data
    return open_records(data) if is_out_of_core(data) else Blocks(lambda: (data,))


def read_array(data: Any, size: int, names: Sequence[str] | None = None) -> NDArray[np.generic]:
    """All records as one array of shape (records, size), in their order, wherever they are stored.

    Columns of a named table are chosen by `names`, where these are given.

    Examples
    --------
    >>> read_array([[1, 2], [3, 4]], 2).shape
    (2, 2)
    """
    if not is_out_of_core(data):
        return to_array(data, size, names)
    records = as_records(data)
    require_public_order(records)
    arrays = dict(records.select(names).map(_ReadTask(size, names)))
    return np.concatenate([np.empty((0, size)), *(arrays[number] for number in sorted(arrays))])


@dataclass(frozen=True)
class _ReadTask:
    """Copies the records of one part into memory."""

    size: int
    names: Sequence[str] | None

    def __call__(self, number: int, blocks: Iterable[Any]) -> tuple[int, NDArray[np.generic]]:
        arrays = [to_array(block, self.size, self.names).copy() for block in blocks]
        return number, np.concatenate(arrays) if arrays else np.empty((0, self.size))
