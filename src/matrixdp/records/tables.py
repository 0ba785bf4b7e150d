"""Tables in memory and their columns as arrays: NumPy, pandas, polars, Arrow tables and record batches, lists.

A column is read on its own, and a value means the same whatever the others are: one record cannot change how another is
read. Messages show no values.
"""

from __future__ import annotations

import decimal
import math
import numbers
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import DataError, ParameterError, import_extra

_LARGEST = 1e308


class _Pyarrow:
    """The package pyarrow, imported where it is used, since it is optional and slow to import."""

    def __getattr__(self, name: str) -> Any:
        module = import_extra("pyarrow", "reading files requires pyarrow", "files")
        return import_module(f"pyarrow.{name}") if name in ("compute", "csv", "parquet") else getattr(module, name)


pa: Any = _Pyarrow()


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
    if columns is None:
        array = read_numbers(data)
    elif not is_columnar(data) and all(_is_plain(kind) for kind in data.dtypes):  # without a copy, where possible
        chosen = choose_columns(columns, size, names)
        array = np.asarray((data if chosen == columns else data[chosen]).to_numpy())
    else:
        array = np.column_stack(to_columns(data, size, names))
    if array.dtype.kind not in "biuf":
        raise DataError(f"records must be real numbers, got a table of {array.dtype} instead.")
    if array.ndim != 2 or array.shape[1] != size:
        columns_found = array.shape[1] if array.ndim == 2 else f"{array.ndim} dimensions"
        raise DataError(f"records must be a table of {size} columns, like the bounds, got {columns_found} instead.")
    return array


def _is_plain(kind: Any) -> bool:
    """Whether a type of pandas or polars is one of floats, without a mark for missing values beside the numbers."""
    return str(kind) in ("float64", "Float64") and library_of(kind) in ("numpy", "polars")


def to_columns(data: Any, size: int, names: Sequence[str] | None = None) -> Sequence[NDArray[np.generic]]:
    """Return the columns of a table as arrays of shape (records,), those of Arrow without a copy where possible."""
    chosen = choose_columns(column_names(data) or [], size, names)
    if is_columnar(data):
        return [column_numbers(name, data.column(i if names is None else name)) for i, name in enumerate(chosen)]
    if names is None and hasattr(data, "iloc"):  # where two columns may have one name
        return [column_numbers(name, data.iloc[:, i]) for i, name in enumerate(chosen)]
    return [column_numbers(name, data[name]) for name in chosen]


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
        array = np.array([_number_as_float(value) for value in array.flat]).reshape(array.shape)
    return array


def _round_long_doubles(array: NDArray[np.generic]) -> NDArray[np.float64]:
    """Long doubles as floats, the finite ones as finite ones."""
    values: Any = array
    return np.asarray(np.where(np.isfinite(values), np.clip(values, -_LARGEST, _LARGEST), values), np.float64)


def _number_as_float(value: Any) -> float:
    """A real number as a float; beyond the range of floats, as a large one, which any bounds clip."""
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


def take_column(data: Any, name: str) -> Any:
    """A column of a table or of a mapping, as it is stored."""
    return data.column(name) if is_columnar(data) else data[name]


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
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _not_numbers(name: str, kind: object = None) -> DataError:
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


def column_numbers(name: str, column: Any) -> NDArray[np.generic]:
    """Values of a column of numbers, of shape (rows,), NaN where one is missing; anything else is a `DataError`."""
    library, kind = library_of(column), getattr(column, "dtype", None)
    if library == "pyarrow":
        return _arrow_numbers(name, column)
    if library == "pandas" and kind is not None and kind.kind in "biuf":
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if library == "polars":
        if not (column.dtype.is_numeric() or str(column.dtype) in ("Boolean", "Null")):
            raise _not_numbers(name)
        return np.asarray(column.cast(float).to_numpy())
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
        return read_numbers(column)
    values = _listed(column)
    if set(map(type, values)) <= {float, int, bool}:
        try:
            return np.array(values, np.float64)
        except OverflowError:  # an integer beyond the range of floats
            pass
    plain = [math.nan if is_missing(value) else value for value in values]
    if not all(isinstance(value, numbers.Real | np.bool_) for value in plain):
        raise _not_numbers(name)
    return np.array([_number_as_float(value) for value in plain], np.float64)


def _arrow_numbers(name: str, column: Any) -> NDArray[np.generic]:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if pa.types.is_boolean(kind) or pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
    elif not (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
        raise _not_numbers(name, kind)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def is_missing(value: Any) -> bool:
    """Whether a Python value stands for one that is missing."""
    if value is None or value is np.ma.masked or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return isinstance(value, decimal.Decimal) and value.is_nan()


def _listed(column: Any) -> list[Any]:
    """Python values of a column; dates of NumPy stay its own, whose integers would pass for numbers."""
    dates = isinstance(column, np.ndarray) and column.dtype.kind in "Mm"
    return column.tolist() if hasattr(column, "tolist") and not dates else list(column)


def factorise(column: Any) -> tuple[list[Any], NDArray[np.integer[Any]]]:
    """The different values of a column as Python values, and the place of each row's value among them.

    A place is -1 where the value is missing; a value may also be None or NaN. Values that cannot be hashed are listed
    one by one. Equal values are one, whatever their types: 1, 1.0 and True.
    """
    match library_of(column):
        case "pyarrow":
            return _factorise_arrow(column)
        case "pandas":
            import pandas as pd

            if isinstance(column.dtype, pd.CategoricalDtype):
                return column.cat.categories.tolist(), column.cat.codes.to_numpy()
            try:
                places, unique = pd.factorize(column)
                return unique.tolist(), places
            except (TypeError, ValueError, ArithmeticError):  # a value that cannot be hashed
                return _factorise_list(column.tolist())
        case "polars" if not column.dtype.is_nested() and str(column.dtype) != "Object":
            import polars as pl

            if str(column.dtype).startswith(("Categorical", "Enum")):
                column = column.cast(pl.String)
            known = column.drop_nulls().unique()
            numbered = pl.Series(range(len(known)), dtype=pl.Int64)
            found = column.replace_strict(known, numbered, default=None, return_dtype=pl.Int64)
            return known.to_list(), np.asarray(found.fill_null(-1))
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf" and not isinstance(column, np.ma.MaskedArray):
        unique, places = np.unique(column, return_inverse=True)
        return unique.tolist(), places
    return _factorise_list(_listed(column))


def _factorise_arrow(column: Any) -> tuple[list[Any], NDArray[np.integer[Any]]]:
    if pa.types.is_nested(column.type):
        return _factorise_list(column.to_pylist())
    if pa.types.is_null(column.type) or not len(column):
        return [], np.full(len(column), -1)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    chunks = column.unify_dictionaries().chunks if isinstance(column, pa.ChunkedArray) else [column]
    indices = [chunk.indices for chunk in chunks]
    # An index type may be too small for another number.
    found = [(one.cast(pa.int64()).fill_null(-1) if one.null_count else one).to_numpy() for one in indices]
    return chunks[0].dictionary.to_pylist(), found[0] if len(found) == 1 else np.concatenate(found)


def _factorise_list(values: list[Any]) -> tuple[list[Any], NDArray[np.intp]]:
    try:
        places = {value: place for place, value in enumerate(dict.fromkeys(values))}
    except (TypeError, ValueError, ArithmeticError):  # a value that cannot be hashed
        return values, np.arange(len(values))
    return list(places), np.fromiter(map(places.__getitem__, values), np.intp, len(values))
