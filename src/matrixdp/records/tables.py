"""Conversion of tables in memory to arrays: NumPy, pandas, polars, Arrow tables and record batches."""

from __future__ import annotations

import numbers
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import DataError, ParameterError

_LARGEST = 1e308


def check_same_columns(blocks: Iterable[Any]) -> Iterator[Any]:
    """Yield the blocks; raise a `DataError` if the columns of one differ from those of the first."""
    first = None
    for block in blocks:
        columns = column_names(block)
        first = columns if first is None else first
        if columns is not None and columns != first:
            raise DataError("blocks must all have the same columns in the same order.")
        yield block


def to_array(data: Any, size: int, names: Sequence[str] | None = None) -> NDArray[np.generic]:
    """Return a table as an array of shape (records, size); with `names`, its columns are selected by name.

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
        array = read_numbers(data)
    if array.dtype.kind not in "biuf":
        raise DataError(f"records must be real numbers, got a table of {array.dtype} instead.")
    if array.ndim != 2 or array.shape[1] != size:
        columns_found = array.shape[1] if array.ndim == 2 else f"{array.ndim} dimensions"
        raise DataError(f"records must be a table of {size} columns, like the bounds, got {columns_found} instead.")
    return array


def to_columns(data: Any, size: int, names: Sequence[str] | None = None) -> Sequence[NDArray[np.generic]]:
    """Return the columns of an Arrow table or batch as arrays of shape (records,), without a copy where possible."""
    chosen = choose_columns(list(data.schema.names), size, names)
    return [arrow_numbers(name, data.column(i if names is None else name)) for i, name in enumerate(chosen)]


def read_numbers(data: Any) -> NDArray[np.generic]:
    """Return an array or nested sequence as an array; masked entries become NaN.

    Numbers beyond the range of floats become large floats, which any bounds clip. Where entries are not real numbers,
    the array has another type than numbers.
    """
    if hasattr(data, "toarray"):  # a sparse matrix of SciPy
        data = data.toarray()
    if isinstance(data, np.ma.MaskedArray):
        data = np.ma.filled(data.astype(np.float64), np.nan)
    try:
        array = np.asarray(data)
    except ValueError:
        raise DataError("records must form a rectangular table.") from None
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        return _round_long_doubles(array)
    if array.dtype.kind == "O" and all(isinstance(value, numbers.Real) for value in array.flat):
        array = np.array([number_as_float(value) for value in array.flat]).reshape(array.shape)
    return array


def _round_long_doubles(array: NDArray[np.generic]) -> NDArray[np.float64]:
    """Long doubles as floats, the finite ones as finite ones."""
    values: Any = array
    return np.asarray(np.where(np.isfinite(values), np.clip(values, -_LARGEST, _LARGEST), values), np.float64)


def number_as_float(value: Any) -> float:
    """Return a real number as a float; beyond the range of floats, as a large one, which any bounds clip."""
    if isinstance(value, np.longdouble):
        return float(_round_long_doubles(np.asarray(value)))
    try:
        return float(value)
    except OverflowError:  # an integer beyond the range of floats; any bounds clip it
        return _LARGEST if value > 0 else -_LARGEST


def column_names(data: Any) -> list[Any] | None:
    """Return the names of a table's columns, or None for an array."""
    if library_of(data) == "polars" and hasattr(data, "collect"):
        raise DataError("data must be a polars DataFrame, got a LazyFrame instead. Collect it first: data.collect().")
    if library_of(data) == "pyarrow" and hasattr(data, "scanner"):
        raise DataError("data must be an Arrow table, got a pyarrow Dataset instead. Give the path of its folder.")
    if library_of(data) in ("pandas", "polars") and hasattr(data, "columns"):
        return list(data.columns)
    return list(data.schema.names) if is_columnar(data) else None


def library_of(data: Any) -> str:
    """Return the name of the library that defines the type of `data`."""
    return type(data).__module__.partition(".")[0]


def count_rows(block: Any) -> int:
    """Number of records in a block: an array, a table, or a mapping of columns."""
    if isinstance(block, Mapping):
        block = next(iter(block.values()), ())
    return int(block.num_rows) if hasattr(block, "num_rows") else len(block)


def is_text_type(kind: Any) -> bool:
    """Return whether an Arrow type is one of texts."""
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def not_numbers(name: str, kind: object = None) -> DataError:
    """The error for a column that must hold numbers, and holds another `kind` of values, as its type says."""
    found = "" if kind is None else f", got {kind} instead"
    return DataError(
        f"column {name!r} must hold numbers{found}. Turn dates, and numbers that are stored as text, into numbers; "
        'describe text as a category or as yes/no (Columns with Category or YesNo, type = "category" or "yes/no" in a '
        "schema); or leave the column out."
    )


def is_columnar(data: Any) -> bool:
    """Return whether `data` is an Arrow table or record batch, which is stored column by column."""
    return library_of(data) == "pyarrow" and hasattr(data, "schema")


def choose_columns(columns: list[Any], size: int, names: Sequence[str] | None) -> list[Any]:
    """Return the columns that `names` selects, or all `size` columns if `names` is None."""
    if names is None:
        if len(columns) != size:
            raise DataError(
                f"the table must have {size} columns, like the bounds, got {len(columns)} instead. "
                "Give the bounds names to select columns."
            )
        return columns
    counts = Counter(columns)
    duplicated = [name for name in names if counts[name] > 1]
    if duplicated:
        raise DataError(f"the names of the table's columns must be unique, but {duplicated[0]!r} occurs twice.")
    missing = [name for name in names if not counts[name]]
    if missing:
        raise DataError(
            f"the table must have a column {missing[0]!r}, which the bounds name; "
            f"it has {', '.join(map(str, columns[:20]))}."
        )
    return list(names)


def require_columns(columns: Iterable[str], names: Iterable[str]) -> None:
    """Raise a `ParameterError` unless a data frame has the named columns."""
    known = set(columns)
    missing = [name for name in names if name not in known]
    if missing:
        raise ParameterError(f"data must have a column {missing[0]!r}, which the bounds name.")


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
        raise DataError("the columns of the table must be numbers. Encode text and categories first.") from None


def _require_numbers(columns: list[Any], numbers: list[bool]) -> None:
    """Raise a `DataError` for dates, text and other columns that NumPy might convert to numbers."""
    for name, number in zip(columns, numbers, strict=True):
        if not number:
            raise not_numbers(name)


def arrow_numbers(name: str, column: Any) -> NDArray[np.generic]:
    """Return the values of a column as numbers, NaN where they are missing."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if pa.types.is_boolean(kind) or pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
    elif not (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
        raise not_numbers(name, kind)
    return np.asarray(column.to_numpy(zero_copy_only=False))
