"""Numbers from one table in memory: arrays, pandas and polars frames, Arrow tables and batches."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import DataError


def check_same_columns(blocks: Iterable[Any]) -> Iterator[Any]:
    """The blocks, and an error if one has other columns, or another order of them, than the first."""
    first = None
    for block in blocks:
        columns = column_names(block)
        first = columns if first is None else first
        if columns is not None and columns != first:
            raise DataError("blocks must all have the same columns in the same order; arrange them first.")
        yield block


def to_array(data: Any, size: int, names: Sequence[str] | None = None) -> NDArray[np.generic]:
    """Numbers of shape (records, size); columns of a named table are chosen by `names`, where these are given.

    Examples
    --------
    >>> to_array([[1, 2], [3, 4]], 2).shape
    (2, 2)
    """
    columns = column_names(data)
    if is_columnar(data):
        array = np.column_stack(to_columns(data, size, names))
    elif columns is not None:
        array = _from_table(data, choose_columns(columns, size, names))
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


def to_columns(data: Any, size: int, names: Sequence[str] | None = None) -> Sequence[NDArray[np.generic]]:
    """The same numbers of an Arrow table or batch, column by column as they lie in memory, each of shape (records,)."""
    chosen = choose_columns(list(data.schema.names), size, names)
    return [_arrow_column(name, data.column(i if names is None else name)) for i, name in enumerate(chosen)]


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer beyond all floats, which any bounds cut off
        return 1e308 if value > 0 else -1e308


def column_names(data: Any) -> list[Any] | None:
    """Names of a table's columns; None for an array, which has none."""
    if library_of(data) == "polars" and hasattr(data, "collect"):
        raise DataError("a lazy frame must be collected first: data.collect().")
    if library_of(data) == "pyarrow" and hasattr(data, "scanner"):
        raise DataError("an Arrow data set cannot be taken as it is; give the path of its folder.")
    if library_of(data) in ("pandas", "polars") and hasattr(data, "columns"):
        return list(data.columns)
    return list(data.schema.names) if is_columnar(data) else None


def library_of(data: Any) -> str:
    """Name of the library that the type of `data` comes from."""
    return type(data).__module__.partition(".")[0]


def is_columnar(data: Any) -> bool:
    """Whether the data are an Arrow table or batch, whose columns lie in memory one by one."""
    return library_of(data) == "pyarrow" and hasattr(data, "schema")


def choose_columns(columns: list[Any], size: int, names: Sequence[str] | None) -> list[Any]:
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
        if library_of(data) == "pandas":
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
