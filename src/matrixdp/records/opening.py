"""`open_records`: from a path, an iterator or a distributed data frame to `Records`; arrays and blocks as sources."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.device import load_cupy
from matrixdp.domain.file_rules import FileRules
from matrixdp.errors import DataError, ParameterError, show
from matrixdp.records.clusters import LIBRARIES, make_engine
from matrixdp.records.files import are_tables, open_files
from matrixdp.records.parts import InMemoryPart, Part, Threads
from matrixdp.records.records import Blocks, Records, Source, StoredRecords, require_public_order, split_rows
from matrixdp.records.tables import check_same_columns, library_of, to_array

_PART_ENTRIES = 1 << 24
_MAX_HEADER_BYTES = 10_000  # of a NPY file; NumPy parses no longer one, but reads it first


def is_out_of_core(data: Any) -> bool:
    """Return whether `data` are read in parts: paths, memory maps, iterators, dask collections, Spark data frames."""
    known = isinstance(data, Records | Source | np.memmap | Iterator)
    return known or library_of(data) in LIBRARIES or are_tables(data)


def open_records(
    data: Any,
    *,
    workers: Any = None,
    rules: FileRules | None = None,
    progress: Callable[[int], object] | None = None,
    device: str | None = None,
    sql: str | None = None,
) -> Records:
    """Open records that need not fit into memory; queries, designs and estimators take them in place of an array.

    Parameters
    ----------
    data : path, pattern, list of paths, URL, memory map, iterator, Blocks, dask collection, Spark data frame or Source
        A Parquet, Feather, CSV (also compressed) or Excel file; a folder of them, which may have folders named
        ``key=value``; a pattern such as ``records/*.parquet``; a `numpy.memmap`; an iterator of arrays or tables, which
        is read once, or `Blocks`; a dask array or data frame; a Spark data frame; any object with
        ``__arrow_c_stream__``, such as a DuckDB relation; or a table in a database:
        ``postgresql://USER@HOST/DATABASE?table=NAME``, ``duckdb:///FILE?table=NAME``, ``sqlite:///FILE?table=NAME``.
    workers : int, str, distributed.Client or Engine, optional
        A number of threads, by default one per core; or a Dask cluster, given by its scheduler's address or a client.
        By default, a dask array or data frame uses the current client. A Spark data frame uses its own cluster.
    rules : FileRules, optional
        How files are written: their separator, decimal commas, words for missing values, dates as numbers.
    progress : callable, optional
        Called with the number of records of each part when the part is done.
    device : 'cuda', optional
        Moves the records to a GPU block by block, where moments and moments of tables are summed: the same integers.
        For records that threads of this process read.
    sql : str, optional
        The query whose rows are the records, for the URL of a database without ``table``.

    Privacy
    -------
    The results of the parts are exact integers, so their sum does not depend on the order, number or size of the
    parts. Workers that sum the parts draw no noise. Errors name files and columns, and show no values.

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
            raise ParameterError("workers must be given to the first open_records; these records are already open.")
        return data
    if progress is not None and not callable(progress):
        raise ParameterError(
            f"progress must be a function that takes a number of records, got {show(progress)} instead."
        )
    if library_of(data) in LIBRARIES:
        opened: Records = LIBRARIES[library_of(data)].open(data, workers, progress)
    elif is_out_of_core(data):
        source = _find_source(data, rules=rules, sql=sql)
        opened = StoredRecords(source, make_engine(workers), progress=progress)
    else:
        raise ParameterError(
            "data must be a path, a pattern, a memory map, an iterator of blocks, a dask collection or a Spark data "
            f"frame, got {type(data).__name__} instead. Data in memory need not be opened: pass them on as they are, "
            "or as Blocks."
        )
    if device is None:
        return opened
    if device != "cuda":
        raise ParameterError(f"device must be 'cuda' or None, got {show(device)} instead.")
    load_cupy()  # raises an error if there is none
    if not isinstance(opened, StoredRecords) or not isinstance(opened.engine, Threads):
        raise ParameterError("device must be left out for records on a cluster: its workers sum them.")
    return replace(opened, engine=Threads(opened.engine.workers, on_device=True))


def _find_source(data: Any, **options: Any) -> Source:
    if isinstance(data, Source):
        return data
    if are_tables(data):
        return open_files(data, **options)
    return MappedArray(data) if isinstance(data, np.memmap) else BlockSource(data)


def as_records(data: Any) -> Records:
    """Return any data as `Records`; data in memory form one part."""
    if isinstance(data, Records):
        return data
    return open_records(data) if is_out_of_core(data) else Blocks(lambda: (data,))


def read_array(data: Any, size: int, names: Sequence[str] | None = None) -> NDArray[np.generic]:
    """Read all records into one array of shape (records, size), in their order; columns of tables may have `names`."""
    if not is_out_of_core(data):
        return to_array(data, size, names)
    records = as_records(data)
    require_public_order(records)
    arrays = dict(records.select(names).map(partial(read_part, size, names)))
    return np.concatenate([np.empty((0, size)), *(arrays[number] for number in sorted(arrays))])


def read_part(
    size: int, names: Sequence[str] | None, number: int, blocks: Iterable[Any]
) -> tuple[int, NDArray[np.generic]]:
    """Task that reads one part into memory."""
    arrays = [to_array(split_rows(block)[0], size, names).copy() for block in blocks]
    return number, np.concatenate(arrays) if arrays else np.empty((0, size))


@dataclass(frozen=True, eq=False)
class MappedArray(Source):
    """A memory-mapped array of shape (records, features)."""

    array: np.memmap[Any, Any]

    def parts(self, columns: Sequence[str] | None, texts: Sequence[str] = ()) -> list[Part]:
        array: Any = self.array
        if array.ndim != 2 or array.dtype.kind not in "biuf":
            raise DataError(
                "records must be a two-dimensional array of real numbers, got an array of "
                f"{array.ndim} dimensions and type {array.dtype} instead."
            )
        step = max(1, _PART_ENTRIES // max(1, array.shape[1]))
        pieces = (np.asarray(array[start : start + step]) for start in range(0, len(array), step))
        return [InMemoryPart(str(array.filename or ""), (piece,)) for piece in pieces]


def load_npy(path: Path) -> np.memmap[Any, Any]:
    """Map a NPY file into memory; raise a `DataError` if it is damaged, before anything of its claimed size is read."""
    try:
        with path.open("rb") as file:
            start = file.read(12)
        wide = start[6:7] != b"\x01"  # the version determines the size of the header's length
        if int.from_bytes(start[8 : 12 if wide else 10], "little") > _MAX_HEADER_BYTES:
            raise ValueError
        mapped: np.memmap[Any, Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError:
        raise
    except Exception:  # NumPy parses the header as Python, which can fail in many ways
        wrong = f"{path} must be a NPY file of numbers, but it is damaged or contains something else."
        raise DataError(wrong) from None
    return mapped


class BlockSource(Source):
    """Blocks from an iterator, which can be read once, or from `Blocks`, which can be read again."""

    def __init__(self, blocks: Iterable[Any]) -> None:
        self._blocks, self._exhausted = blocks, False
        self.once, self.read_options = isinstance(blocks, Iterator), getattr(blocks, "read_options", {})

    def parts(self, columns: Sequence[str] | None, texts: Sequence[str] = ()) -> Iterator[Part]:
        if self._exhausted:
            raise ParameterError("an iterator can be read only once. Use Blocks(function), or files.")
        self._exhausted = self.once
        blocks = check_same_columns(self._blocks)
        return (InMemoryPart(f"block {number}", (_copy(block),)) for number, block in enumerate(blocks))


def _copy(block: Any) -> Any:
    """Copy a block, since its memory may be reused for the next one; Arrow tables are immutable."""
    if isinstance(block, Mapping):
        return {name: _copy(column) for name, column in block.items()}
    return block.copy() if hasattr(block, "copy") else block
