"""A block of records whose columns of numbers and categories are read as a schema describes them.

A value means the same whatever the others are: one record cannot change how another is read. Messages show no values.
"""

from __future__ import annotations

import decimal
import numbers
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain.columns import NO, YES, Category, Columns, YesNo
from matrixdp.errors import DataError
from matrixdp.records.tables import (
    choose_columns,
    column_names,
    column_numbers,
    count_rows,
    factorise,
    is_missing,
    library_of,
    take_column,
)

_UNKNOWN, _MISSING, _WRONG = -1, -2, -3  # not among the levels, missing, and neither text nor number
_INTEGER = re.compile(r"[+-]?[0-9]{1,30}(\.0*)?")
# Binary digits of floats of Arrow and polars.
_DIGITS = {"halffloat": 11, "float16": 11, "float": 24, "float32": 24, "double": 53, "float64": 53}


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
        return column_numbers(name, self.column(name))

    def codes(self, column: Category | YesNo) -> NDArray[np.signedinteger[Any]]:
        """Position of each value of a category among its `level_names`, of shape (rows,), in some type of integers."""
        values = self.column(column.name)
        _check_precision(column, values)
        unique, places = factorise(values)
        small: Any = np.int8 if len(column.level_names) < 1 << 7 else np.intp  # bytes are read several times faster
        found: NDArray[np.signedinteger[Any]] = np.array([*map(_coder(column), unique), _MISSING], small).take(places)
        if not found.size or found.min() >= 0:
            return found
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
            return take_column(self._data, name)
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
        if is_missing(value):
            return _MISSING
        if as_levels or not isinstance(value, numbers.Real | decimal.Decimal | np.bool_):
            return _WRONG
        return numeric.get(value, _UNKNOWN)

    return code


def _check_precision(column: Category | YesNo, values: Any) -> None:
    """Raise a `DataError` if `values` are floats of too few binary digits to hold the levels exactly."""
    kind: Any = values.type if library_of(values) == "pyarrow" else getattr(values, "dtype", None)
    kind = getattr(kind, "value_type", getattr(getattr(kind, "categories", None), "dtype", kind))  # of a dictionary
    if getattr(kind, "kind", "") == "f":  # a type of NumPy or pandas
        digits: int | None = {2: 11, 4: 24}.get(kind.itemsize, 53)
    else:
        digits = _DIGITS.get(str(kind).lower())
    if digits is None or not isinstance(column, Category):
        return
    if any(isinstance(level, int) and abs(level) >= 2**digits for level in column.levels):
        raise DataError(
            f"column {column.name!r} must hold integers: in a column of floats its levels of 2^{digits} and more are "
            "rounded. Convert it to integers or to text."
        )
