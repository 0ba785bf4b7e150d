"""Columns of numbers and categories in a block of records, each read on its own, value by value.

Nothing is read through one array for several columns, and a value means the same whatever the others are: one record
cannot change how another is read. Messages show no values.
"""

from __future__ import annotations

import decimal
import math
import numbers
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain.columns import NO, YES, Category, Columns, YesNo
from matrixdp.errors import DataError
from matrixdp.records.tables import (
    arrow_numbers,
    choose_columns,
    column_names,
    count_rows,
    is_columnar,
    library_of,
    not_numbers,
    number_as_float,
    read_numbers,
)

_UNKNOWN, _MISSING, _WRONG = -1, -2, -3  # not among the levels, missing, and neither text nor number
_INTEGER = re.compile(r"[+-]?[0-9]{1,30}(\.0*)?")
_DIGITS = {2: 11, 4: 24, 8: 53}  # binary digits of floats, by their size in bytes


class TableBlock:
    """A block of records whose columns are read by name; without names, in the order of the description.

    Parameters
    ----------
    data : Arrow table or batch, pandas or polars data frame, mapping of columns, array, or sequence of rows
        A row is a sequence of values, or a mapping of names to values.
    columns : Columns
    """

    def __init__(self, data: Any, columns: Columns) -> None:
        self._columns = columns
        if hasattr(data, "toarray"):  # a sparse matrix of SciPy
            data = data.toarray()
        names = list(data) if isinstance(data, Mapping) else column_names(data)
        self._named = names is not None
        if names is not None:
            choose_columns(names, len(columns.names), columns.names)
            self._data = data
            self.size = _count_rows(data, columns.names)
        else:
            self._data = data if isinstance(data, np.ndarray) else _read_rows(data, columns.names)
            self.size = len(self._data)
            _check_widths(self._data, len(columns.names))

    def numbers(self, name: str) -> NDArray[np.generic]:
        """Values of a column of numbers, of shape (rows,); those that are missing are NaN or infinite."""
        column = self.column(name)
        library, kind = library_of(column), getattr(column, "dtype", None)
        values: Any
        if library == "pyarrow":
            values = arrow_numbers(name, _decode(column))
        elif library == "pandas" and kind is not None and kind.kind in "biuf":
            values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        elif library == "polars":
            if not (column.dtype.is_numeric() or str(column.dtype) in ("Boolean", "Null")):
                raise not_numbers(name)
            values = column.cast(float).to_numpy()
        elif isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
            values = read_numbers(column)
        else:
            values = _read_values(name, _listed(column))
        return np.asarray(values)

    def codes(self, column: Category | YesNo) -> NDArray[np.signedinteger[Any]]:
        """Position of each value of a category among its `level_names`, of shape (rows,), in some type of integers."""
        found = _codes(self.column(column.name), column)
        if not found.size or found.min() >= 0:
            return found
        found = found.copy()
        missing, unknown = found == _MISSING, found == _UNKNOWN
        last = len(column.level_names) - 1
        if (found == _WRONG).any():
            raise _wrong_type(column)
        if missing.any():
            if not column.missing:
                raise DataError(
                    f"column {column.name!r} has a missing value, and its description does not allow one. Allow it "
                    "(missing = true), or drop such records."
                )
            found[missing] = last
        if unknown.any():
            if not getattr(column, "other", False):
                remedy = "Spaces and capital letters count. Add its level, or a level for all others (other = true)."
                if isinstance(column, YesNo):
                    remedy = "It must be yes, no, true, false, y, n, t, f, 1 or 0; for other words use a category."
                raise DataError(f"column {column.name!r} has a value that is not among its levels. {remedy}")
            found[unknown] = last - column.missing
        return found

    def column(self, name: str) -> Any:
        """The values of a column, as they are stored."""
        if self._named:
            return self._data.column(name) if is_columnar(self._data) else self._data[name]
        place = self._columns.names.index(name)
        return self._data[:, place] if isinstance(self._data, np.ndarray) else [row[place] for row in self._data]


def _count_rows(data: Any, names: Sequence[str]) -> int:
    if not isinstance(data, Mapping):
        return count_rows(data)
    columns = [data[name] for name in names]
    if any(isinstance(column, str) or not hasattr(column, "__len__") for column in columns):
        raise DataError("the columns of a mapping must be lists or arrays.")
    if any(getattr(column, "ndim", 1) != 1 for column in columns):
        raise DataError("the columns of a mapping must have one dimension.")
    sizes = {len(column) for column in columns}
    if len(sizes) != 1:
        raise DataError("all columns of the table must have the same number of values.")
    return sizes.pop()


def _read_rows(data: Any, names: Sequence[str]) -> list[tuple[Any, ...]]:
    """Rows as tuples; a mapping is read by name, and a name that it does not have is a missing value."""
    if isinstance(data, str | bytes) or not isinstance(data, Iterable):
        raise DataError(f"records must be a table, got {type(data).__name__} instead.")
    rows = []
    for row in data:
        if isinstance(row, Mapping):
            rows.append(tuple(row.get(name) for name in names))
        elif isinstance(row, str | bytes) or not isinstance(row, Iterable):
            raise DataError("each record must be a sequence of values, one for each column, or a mapping of names.")
        else:
            rows.append(tuple(row))
    return rows


def _check_widths(data: Any, width: int) -> None:
    if isinstance(data, np.ndarray):
        if data.ndim != 2:
            raise DataError(f"records must be a table of two dimensions, got {data.ndim} instead.")
        widths = {data.shape[1]}
    else:
        widths = {len(row) for row in data}
    if widths - {width}:
        raise DataError(
            f"records must have {width} columns, as described; a table whose columns have names may have more."
        )


def _wrong_type(column: Category | YesNo) -> DataError:
    if isinstance(column, Category) and isinstance(column.levels[0], str):
        return DataError(
            f"column {column.name!r} must hold texts, as its levels are texts, and it holds numbers or other values. "
            "Convert it to text, or write its levels as integers."
        )
    return DataError(f"column {column.name!r} must hold integers or texts. Convert dates and other values first.")


def _listed(column: Any) -> list[Any]:
    return column.tolist() if hasattr(column, "tolist") else list(column)


def _read_values(name: str, values: list[Any]) -> NDArray[np.float64]:
    """Python values as floats, each on its own; anything but numbers and missing values is a `DataError`."""
    if set(map(type, values)) <= {float, int, bool}:
        try:
            return np.array(values, np.float64)
        except OverflowError:  # an integer beyond the range of floats
            pass
    plain = [math.nan if _is_missing(value) else value for value in values]
    if not all(isinstance(value, numbers.Real | np.bool_) for value in plain):
        raise not_numbers(name)
    return np.array([number_as_float(value) for value in plain], np.float64)


def _is_missing(value: Any) -> bool:
    if value is None or value is np.ma.masked or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return isinstance(value, decimal.Decimal) and value.is_nan()


def _coder(column: Category | YesNo) -> Callable[[Any], int]:
    """The function from a value to its code. Equal values have the same code, whatever their types: 1, 1.0 and True.

    An empty text is a missing value, as it is in CSV. Texts of integers, such as "1" and "1.0", are read as integers
    where the levels are integers, and words for yes and no in any case; other texts must match exactly.
    """
    texts: dict[str, int]
    numeric: dict[Any, int]
    as_levels = isinstance(column, Category) and isinstance(column.levels[0], str)
    if isinstance(column, YesNo):
        texts, numeric = dict.fromkeys(YES, 1) | dict.fromkeys(NO, 0), {0: 0, 1: 1}
    else:
        texts = {level: code for code, level in enumerate(column.levels) if isinstance(level, str)}
        numeric = {level: code for code, level in enumerate(column.levels) if isinstance(level, int)}

    def text_code(text: str) -> int:
        if as_levels:
            return texts.get(text, _UNKNOWN) if text else _MISSING
        text = text.strip().lower()
        if not text:
            return _MISSING
        if texts:
            return texts.get(text, _UNKNOWN)
        return numeric.get(int(text.partition(".")[0]), _UNKNOWN) if _INTEGER.fullmatch(text) else _UNKNOWN

    def code(value: Any) -> int:
        if isinstance(value, str):
            return text_code(value)
        if _is_missing(value):
            return _MISSING
        if as_levels or not isinstance(value, numbers.Real | decimal.Decimal | np.bool_):
            return _WRONG
        return numeric.get(value, _UNKNOWN)

    return code


def _code_each(values: Iterable[Any], column: Category | YesNo) -> NDArray[np.intp]:
    return np.array([*map(_coder(column), values)], np.intp)


def _check_precision(column: Category | YesNo, digits: int | None) -> None:
    """Raise a `DataError` if floats of so many binary digits do not hold the levels exactly."""
    if digits is None or not isinstance(column, Category):
        return
    if any(isinstance(level, int) and abs(level) >= 2**digits for level in column.levels):
        raise DataError(
            f"column {column.name!r} must hold integers: in a column of floats its levels of 2^{digits} and more are "
            "rounded. Convert it to integers or to text."
        )


def _float_digits(kind: Any) -> int | None:
    """Binary digits of a type of floats of NumPy or pandas; None for other types."""
    return _DIGITS.get(kind.itemsize, 53) if getattr(kind, "kind", "O") == "f" else None


def _codes(values: Any, column: Category | YesNo) -> NDArray[np.signedinteger[Any]]:
    """Codes of a column, with negative ones for values that have none."""
    match library_of(values):
        case "pyarrow":
            return _arrow_codes(values, column)
        case "pandas":
            return _pandas_codes(values, column)
        case "polars":
            return _polars_codes(values, column)
    if isinstance(values, np.ma.MaskedArray):
        _check_precision(column, _float_digits(values.dtype))
        return _list_codes(values.tolist(), column)
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        _check_precision(column, _float_digits(values.dtype))
        unique, places = np.unique(values, return_inverse=True)
        return _code_each(unique.tolist(), column)[places]
    return _list_codes(_listed(values), column)


def _list_codes(values: list[Any], column: Category | YesNo) -> NDArray[np.intp]:
    """Codes of Python values; equal values are coded once."""
    try:
        unique = dict.fromkeys(values)
    except (TypeError, ValueError, ArithmeticError):  # a value that cannot be hashed
        return _code_each(values, column)
    codes = dict(zip(unique, _code_each(unique, column).tolist(), strict=True))
    return np.fromiter(map(codes.__getitem__, values), np.intp, len(values))


def _decode(values: Any) -> Any:
    """Arrow values without a dictionary."""
    import pyarrow as pa

    return values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values


def _arrow_codes(values: Any, column: Category | YesNo) -> NDArray[np.signedinteger[Any]]:
    import pyarrow as pa

    if isinstance(values, pa.ChunkedArray):
        chunks = [_arrow_codes(chunk, column) for chunk in values.chunks]
        return np.concatenate([np.empty(0, np.intp), *chunks])
    if pa.types.is_null(values.type):
        return np.full(len(values), _MISSING, np.intp)
    if pa.types.is_nested(values.type):
        raise _wrong_type(column)
    if not pa.types.is_dictionary(values.type):
        values = values.dictionary_encode()
    kind = values.type.value_type
    _check_precision(column, {"halffloat": 11, "float": 24, "double": 53}.get(str(kind)))
    small = np.int8 if len(column.level_names) < 1 << 7 else np.intp  # a table of bytes is read several times faster
    codes = np.append(_code_each(values.dictionary.to_pylist(), column), _MISSING).astype(small)
    places = values.indices
    if places.null_count:  # of an index type that may be too small for another number
        places = places.cast(pa.int64()).fill_null(len(codes) - 1)
    return np.asarray(codes.take(places.to_numpy()))


def _pandas_codes(values: Any, column: Category | YesNo) -> NDArray[np.intp]:
    import pandas as pd

    kind = values.cat.categories.dtype if isinstance(values.dtype, pd.CategoricalDtype) else values.dtype
    _check_precision(column, _float_digits(kind))
    if isinstance(values.dtype, pd.CategoricalDtype):
        places, unique = values.cat.codes.to_numpy(), values.cat.categories
    else:
        try:
            places, unique = pd.factorize(values)
        except (TypeError, ValueError, ArithmeticError):  # a value that cannot be hashed
            return _code_each(values.tolist(), column)
    return np.asarray(np.append(_code_each(unique.tolist(), column), _MISSING)[places])


def _polars_codes(values: Any, column: Category | YesNo) -> NDArray[np.intp]:
    import polars as pl

    kind = str(values.dtype)
    _check_precision(column, {"Float16": 11, "Float32": 24, "Float64": 53}.get(kind))
    if values.dtype.is_nested():
        raise _wrong_type(column)
    if kind == "Object":
        return _list_codes(values.to_list(), column)
    if kind.startswith(("Categorical", "Enum")):
        values = values.cast(pl.String)
    known = values.drop_nulls().unique()
    codes = pl.Series(_code_each(known.to_list(), column), dtype=pl.Int64)
    found = values.replace_strict(known, codes, default=None, return_dtype=pl.Int64)
    return np.array(found.fill_null(_MISSING), np.intp)
