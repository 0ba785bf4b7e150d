"""Columns of numbers and categories in a block of records, each read on its own, value by value.

Nothing is read through one array for several columns, and a value means the same whatever the others are: one record
cannot change how another is read. Messages show no values.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain.columns import Category, Columns, YesNo
from matrixdp.errors import DataError
from matrixdp.records.tables import choose_columns, column_names, is_columnar, library_of, read_numbers
from matrixdp.types import Floats

_YES, _NO = ("yes", "true", "y", "t", "1"), ("no", "false", "n", "f", "0")
_UNKNOWN, _MISSING = -1, -2


class TableBlock:
    """A block of records whose columns are read by name; without names, in the order of the description.

    Parameters
    ----------
    data : Arrow table or batch, pandas or polars data frame, mapping of columns, array, or sequence of rows
    columns : Columns
    """

    def __init__(self, data: Any, columns: Columns) -> None:
        self._data = data
        self._columns = columns
        self._rows: list[Any] | None = None
        names = list(data) if isinstance(data, Mapping) else column_names(data)
        if names is not None:
            choose_columns(names, len(columns.names), columns.names)
            self.size = self._count()
            return
        if not isinstance(data, np.ndarray):
            data = self._rows = [tuple(row) for row in data]
            self.size, widths = len(data), {len(row) for row in data}
        else:
            if data.ndim != 2:
                raise DataError(f"records must be a table of two dimensions, got {data.ndim} instead.")
            self.size, widths = len(data), {data.shape[1]}
        if widths - {len(columns.names)}:
            raise DataError(
                f"records must have {len(columns.names)} columns, as described; a table whose columns have names may "
                "have more."
            )

    def _count(self) -> int:
        if isinstance(self._data, Mapping):
            sizes = {len(column) for column in self._data.values()}
            if len(sizes) != 1:
                raise DataError("all columns of the table must have the same number of values.")
            return sizes.pop()
        return int(self._data.num_rows) if is_columnar(self._data) else len(self._data)

    def numbers(self, name: str) -> Floats:
        """Values of a column of numbers, NaN where they are missing or infinite, of shape (rows,)."""
        column = self._column(name)
        values: Any
        if is_columnar(self._data):
            from matrixdp.records.tables import arrow_numbers

            values = arrow_numbers(name, column)
        elif library_of(column) == "pandas" and column.dtype.kind in "biuf":
            values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        elif library_of(column) == "polars":
            if not (column.dtype.is_numeric() or str(column.dtype) in ("Boolean", "Null")):
                raise _not_numbers(name)
            values = column.cast(float).to_numpy()
        else:
            values = read_numbers(_plain_list(name, column))
        values = np.asarray(values)
        if values.dtype.kind not in "biuf":
            raise _not_numbers(name)
        values = values.astype(np.float64)
        with np.errstate(invalid="ignore"):
            values[~np.isfinite(values)] = np.nan
        return np.asarray(values)

    def codes(self, column: Category | YesNo) -> NDArray[np.intp]:
        """Position of each value of a category among its `level_names`, of shape (rows,)."""
        values = self._column(column.name)
        found = _arrow_codes(values, column) if is_columnar(self._data) else _other_codes(values, column)
        missing, unknown = found == _MISSING, found == _UNKNOWN
        last = len(column.level_names) - 1
        if missing.any():
            if not column.missing:
                raise DataError(
                    f"column {column.name!r} has a missing value, and its description does not allow one. Allow it "
                    "(missing = true), or drop such records."
                )
            found[missing] = last
        if unknown.any():
            if not getattr(column, "other", False):
                remedy = "Add its level, or a level for all others (other = true)."
                if isinstance(column, YesNo):
                    remedy = "Map it to yes or no first."
                raise DataError(f"column {column.name!r} has a value that is not among its levels. {remedy}")
            found[unknown] = last - column.missing
        return found

    def _column(self, name: str) -> Any:
        data = self._data
        if is_columnar(data) or isinstance(data, Mapping) or library_of(data) in ("pandas", "polars"):
            return data.column(name) if is_columnar(data) else data[name]
        place = self._columns.names.index(name)
        return [row[place] for row in self._rows] if self._rows is not None else data[:, place]


def _not_numbers(name: str) -> DataError:
    return DataError(f"column {name!r} must hold numbers. Describe it as a category with its levels, or leave it out.")


def _plain_list(name: str, values: Any) -> Any:
    """Values with None and pandas' NA as NaN; anything but numbers is a `DataError`."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        return values
    listed = values.tolist() if hasattr(values, "tolist") else list(values)
    plain = [math.nan if _is_missing(value) else value for value in listed]
    if not all(isinstance(value, numbers.Real) for value in plain):
        raise _not_numbers(name)
    return plain


def _is_missing(value: Any) -> bool:
    if value is None or value is np.ma.masked or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and math.isnan(value)


def _lookup(column: Category | YesNo) -> dict[Any, int]:
    """From values to codes. Equal values have the same code, whatever their types: 1, 1.0 and True."""
    if isinstance(column, YesNo):
        words = dict.fromkeys(_YES, 1) | dict.fromkeys(_NO, 0)
        return {**words, 1: 1, 0: 0}
    plain: dict[Any, int] = {level: code for code, level in enumerate(column.levels)}
    return plain | {str(level): code for level, code in plain.items()}


def _code_of(value: Any, lookup: Mapping[Any, int], *, fold: bool) -> int:
    if _is_missing(value) or (isinstance(value, str) and not value):
        return _MISSING
    try:
        return lookup.get(value.strip().lower() if fold and isinstance(value, str) else value, _UNKNOWN)
    except TypeError:  # a value that cannot be hashed
        return _UNKNOWN


def _code_unique(values: Sequence[Any], column: Category | YesNo) -> NDArray[np.intp]:
    """Codes of a few values."""
    lookup, fold = _lookup(column), isinstance(column, YesNo)
    return np.array([_code_of(value, lookup, fold=fold) for value in values], np.intp)


def _check_precision(column: Category | YesNo, digits: int) -> None:
    """Raise a `DataError` if floats of so many binary digits do not hold the levels exactly."""
    levels = column.levels if isinstance(column, Category) else ()
    if any(isinstance(level, int) and abs(level) >= 2**digits for level in levels):
        raise DataError(
            f"column {column.name!r} must hold integers: in a column of floats its levels of 2^{digits} and more are "
            "rounded. Convert it to integers or to text."
        )


def _check_text(column: Category | YesNo, *, text: bool) -> None:
    """Raise a `DataError` if the column holds numbers and the levels are texts."""
    if not text and isinstance(column, Category) and isinstance(column.levels[0], str):
        raise DataError(
            f"column {column.name!r} holds numbers, and its levels are texts. Write its levels as integers, or convert "
            "the column to text."
        )


def _arrow_codes(values: Any, column: Category | YesNo) -> NDArray[np.intp]:
    import pyarrow as pa

    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    kind = values.type
    types = pa.types
    if types.is_dictionary(kind):
        unique, indices = values.dictionary, values.indices
        kind = kind.value_type
    else:
        encoded = values.dictionary_encode()
        unique, indices = encoded.dictionary, encoded.indices
    _check_kind(
        column,
        text=types.is_string(kind) or types.is_large_string(kind),
        digits={"halffloat": 11, "float": 24, "double": 53}.get(str(kind)),
        null=types.is_null(kind),
    )
    codes = np.concatenate([_code_unique(unique.to_pylist(), column), [_MISSING]])
    places = indices.fill_null(len(codes) - 1) if indices.null_count else indices
    return np.asarray(codes[places.to_numpy(zero_copy_only=False)], np.intp)


def _check_kind(column: Category | YesNo, *, text: bool, digits: int | None, null: bool = False) -> None:
    if null:
        return
    _check_text(column, text=text)
    if digits is not None:
        _check_precision(column, digits)


def _other_codes(values: Any, column: Category | YesNo) -> NDArray[np.intp]:
    library = library_of(values)
    if library == "polars":
        kind = str(values.dtype)
        text = kind.startswith(("String", "Categorical", "Enum", "Utf8"))
        _check_kind(column, text=text, digits={"Float32": 24, "Float64": 53}.get(kind), null=kind == "Null")
        unique = values.unique()
        codes = _code_unique(unique.to_list(), column)
        plain = values.cast(str) if text else values
        known = unique.cast(str) if text else unique
        position = dict(zip(known.to_list(), codes.tolist(), strict=True))
        return np.array([position[value] for value in plain.to_list()], np.intp)
    if library == "pandas":
        return _pandas_codes(values, column)
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        digits = {2: 11, 4: 24, 8: 53}.get(values.dtype.itemsize, 53) if values.dtype.kind == "f" else None
        _check_kind(column, text=False, digits=digits)
        unique, places = np.unique(values, return_inverse=True)
        return _code_unique(unique.tolist(), column)[places]
    listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
    return _code_unique(listed, column)


def _pandas_codes(values: Any, column: Category | YesNo) -> NDArray[np.intp]:
    kind = values.dtype
    if hasattr(values, "cat"):
        codes = np.concatenate([_code_unique(values.cat.categories.tolist(), column), [_MISSING]])
        return np.asarray(codes[values.cat.codes.to_numpy()], np.intp)
    if kind.kind in "iufb":
        digits = {2: 11, 4: 24, 8: 53}.get(kind.itemsize, 53) if kind.kind == "f" else None
        _check_kind(column, text=False, digits=digits)
    listed = values.tolist()
    lookup, fold = _lookup(column), isinstance(column, YesNo)
    return np.fromiter((_code_of(value, lookup, fold=fold) for value in listed), np.intp, len(listed))
