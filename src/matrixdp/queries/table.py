"""Records from arrays and tables, whole, block by block, or in parts that are worked on apart from each other."""

from __future__ import annotations

import numbers
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import DataError, ParameterError

T = TypeVar("T")
_ELSEWHERE = ("dask", "pyspark")


class Parts(ABC):
    """Records in parts that are worked on apart from each other: in threads, or on other machines.

    What is made of the parts must not depend on their order, nor on where one ends and the next begins.
    """

    once = False  # whether the records can be read a single time only
    ordered = True  # whether the records' order is public, and not that of one of their values

    def select(self, names: Sequence[str] | None) -> Parts:
        """The same records, of which only the columns named need be read."""
        return self

    @abstractmethod
    def map(self, task: Callable[[int, Iterable[Any]], T], *, whole: bool = False) -> Iterator[T]:
        """What `task` makes of each part's number and blocks (arrays or tables), in any order.

        The task may be sent to another process, and run again there if that one fails. With `whole`, parts are the
        same whatever the number of workers; otherwise a few large ones may be split among them.
        """


@dataclass(frozen=True, eq=False)
class Blocks(Parts):
    """Records that come block by block, so that moments of them need not fit into memory.

    Parameters
    ----------
    read : callable
        Gives, anew each time it is called, the blocks: arrays or tables of shape (some records, features). A block is
        done with when the next one is asked for.

    Examples
    --------
    >>> [block.shape for block in Blocks(lambda: (np.zeros((rows, 2)) for rows in (3, 1)))]
    [(3, 2), (1, 2)]
    """

    read: Callable[[], Iterable[Any]]

    def map(self, task: Callable[[int, Iterable[Any]], T], *, whole: bool = False) -> Iterator[T]:
        """All blocks are one part."""
        yield task(0, self)

    def __iter__(self) -> Iterator[Any]:
        return same_columns(self.read())


def same_columns(blocks: Iterable[Any]) -> Iterator[Any]:
    """The blocks, and an error if one has other columns, or another order of them, than the first."""
    first = None
    for block in blocks:
        columns = _column_names(block)
        first = columns if first is None else first
        if columns is not None and columns != first:
            raise DataError("blocks must all have the same columns in the same order; arrange them first.")
        yield block


def as_parts(data: Any) -> Parts:
    """Records as parts: those in memory are one, files and the like are opened by `matrixdp.engines`.

    Examples
    --------
    >>> list(as_parts([[1, 2], [3, 4]]).map(lambda number, blocks: [len(block) for block in blocks]))
    [[2]]
    """
    if isinstance(data, Parts):
        return data
    if outside_memory(data):
        from matrixdp.engines import open_records

        return open_records(data)
    return Blocks(lambda: (data,))


def read_again(data: Any) -> Parts:
    """Records as parts that can be read as often as needed, or an error."""
    parts = as_parts(data)
    if parts.once:
        raise ParameterError(
            "data must be readable more than once, which an iterator is not. Give Blocks(function), whose function "
            "makes the iterator anew, or files."
        )
    return parts


def check_order(parts: Parts) -> None:
    """An error where the records' order shows one of their values, and the answer would have a row a record."""
    if not parts.ordered:
        raise DataError(
            "records in folders named key=value are ordered by the key, so that rows would show it, and a record with "
            "another key would move all rows behind it. Give files whose order is public for such a query."
        )


def outside_memory(data: Any) -> bool:
    """Whether the data are parts, or need `matrixdp.engines`: paths, memory maps, iterators, Dask and Spark."""
    paths = isinstance(data, list | tuple) and bool(data) and all(isinstance(item, str | os.PathLike) for item in data)
    return paths or isinstance(data, Parts | str | os.PathLike | Iterator | np.memmap) or _library(data) in _ELSEWHERE


def as_records(data: Any, size: int, names: Sequence[str] | None = None) -> NDArray[np.generic]:
    """Numbers of shape (records, size); columns of a named table are chosen by `names`, where these are given.

    Examples
    --------
    >>> as_records([[1, 2], [3, 4]], 2).shape
    (2, 2)
    """
    if outside_memory(data):
        parts = as_parts(data)
        check_order(parts)
        arrays = dict(parts.select(names).map(_Gather(size, names)))
        return np.concatenate([np.empty((0, size)), *(arrays[number] for number in sorted(arrays))])
    columns = _column_names(data)
    if is_columnar(data):
        array = np.column_stack(as_columns(data, size, names))
    elif columns is not None:
        array = _from_table(data, choose(columns, size, names))
    else:
        if hasattr(data, "toarray"):  # a sparse matrix of SciPy
            data = data.toarray()
        if isinstance(data, np.ma.MaskedArray):
            data = np.ma.filled(data.astype(np.float64), np.nan)
        try:
            array = np.asarray(data)
        except ValueError:
            raise DataError("records must form a rectangular table.") from None
        if array.dtype.kind == "O" and all(isinstance(value, numbers.Real) for value in array.flat):
            array = np.array([_as_float(value) for value in array.flat]).reshape(array.shape)
    if array.dtype.kind not in "biuf":
        raise DataError(f"records must be real numbers, got a table of {array.dtype} instead.")
    if array.ndim != 2 or array.shape[1] != size:
        columns_found = array.shape[1] if array.ndim == 2 else f"{array.ndim} dimensions"
        raise DataError(f"records must be a table of {size} columns, as the bounds have, got {columns_found} instead.")
    return array


def as_columns(data: Any, size: int, names: Sequence[str] | None = None) -> Sequence[NDArray[np.generic]]:
    """The same numbers of an Arrow table or batch, column by column as they lie in memory, each of shape (records,)."""
    chosen = choose(list(data.schema.names), size, names)
    return [_arrow_column(name, data.column(i if names is None else name)) for i, name in enumerate(chosen)]


@dataclass(frozen=True)
class _Gather:
    """The task that brings records into memory."""

    size: int
    names: Sequence[str] | None

    def __call__(self, number: int, blocks: Iterable[Any]) -> tuple[int, NDArray[np.generic]]:
        arrays = [as_records(block, self.size, self.names).copy() for block in blocks]
        return number, np.concatenate(arrays) if arrays else np.empty((0, self.size))


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer beyond all floats, which any bounds cut off
        return 1e308 if value > 0 else -1e308


def _column_names(data: Any) -> list[Any] | None:
    if _library(data) == "polars" and hasattr(data, "collect"):
        raise DataError("a lazy frame must be collected first: data.collect().")
    if _library(data) == "pyarrow" and hasattr(data, "scanner"):
        raise DataError("an Arrow data set cannot be taken as it is; give the path of its folder.")
    if _library(data) in ("pandas", "polars") and hasattr(data, "columns"):
        return list(data.columns)
    return list(data.schema.names) if is_columnar(data) else None


def _library(data: Any) -> str:
    return type(data).__module__.partition(".")[0]


def is_columnar(data: Any) -> bool:
    """Whether the data are an Arrow table or batch, whose columns lie in memory one by one."""
    return _library(data) == "pyarrow" and hasattr(data, "schema")


def choose(columns: list[Any], size: int, names: Sequence[str] | None) -> list[Any]:
    """The columns that bounds are for: those that they name, or all."""
    if names is None:
        if len(columns) != size:
            raise DataError(
                f"the table must have {size} columns, as the bounds do, got {len(columns)} instead; "
                "name the bounds' features to choose."
            )
        return columns
    twice = [name for name in names if columns.count(name) > 1]
    if twice:
        raise DataError(f"the table's columns must have names of their own; {twice[0]!r} occurs twice.")
    missing = [name for name in names if name not in columns]
    if missing:
        raise DataError(
            f"the table must have a column {missing[0]!r}, as the bounds do; "
            f"it has {', '.join(map(str, columns[:20]))}."
        )
    return list(names)


def _from_table(data: Any, columns: list[Any]) -> NDArray[np.generic]:
    chosen = data if columns == list(data.columns) else data[columns]
    try:
        if _library(data) == "pandas":
            _require_numbers(columns, [dtype.kind in "biuf" for dtype in chosen.dtypes])
            return np.asarray(chosen.to_numpy(dtype=np.float64, na_value=np.nan))
        import polars

        _require_numbers(columns, [dtype.is_numeric() or dtype == polars.Boolean for dtype in chosen.dtypes])
        return np.asarray(chosen.cast(polars.Float64).to_numpy())
    except DataError:
        raise
    except (TypeError, ValueError):
        raise DataError("the table's columns must be numbers; encode text and categories first.") from None


def _require_numbers(columns: list[Any], numbers: list[bool]) -> None:
    """An error for dates, texts and the like, which NumPy would take for numbers."""
    for name, number in zip(columns, numbers, strict=True):
        if not number:
            raise DataError(f"column {name!r} must hold numbers; encode texts, dates and the like first.")


def _arrow_column(name: str, column: Any) -> NDArray[np.generic]:
    """A column's values as numbers, NaN where they are missing."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if pa.types.is_boolean(kind) or pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
    elif not (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
        raise DataError(f"column {name!r} must hold numbers, got {kind} instead; encode it, or leave it out.")
    return np.asarray(column.to_numpy(zero_copy_only=False))
