"""Tables in memory and their columns as arrays: NumPy, pandas, polars, Arrow tables and batches, lists, mappings.

A column is read on its own, and a value means the same whatever the others are: one record cannot change how another is
read. Messages show no values.
"""

import decimal
import math
import numbers
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain.columns import NO, YES, Category, Columns, YesNo
from matrixdp.errors import DataError, import_extra

_LARGEST = 1e308
_UNKNOWN, MISSING_CODE, _WRONG = -1, -2, -3  # not among the levels, missing, and neither text nor number
_INTEGER = re.compile(r"[+-]?[0-9]{1,30}(\.0*)?")
_PLAIN = re.compile(r"0|-?[1-9][0-9]{0,14}")  # as an integer is written, and a float holds it
_DIGITS = {"halffloat": 11, "float": 24, "double": 53}  # binary digits of floats of Arrow


class _Pyarrow:
    """The package pyarrow, imported where it is used, since it is optional and slow to import."""

    def __getattr__(self, name: str) -> Any:
        module = import_extra("pyarrow", "reading files and columns of polars requires pyarrow", "files")
        found = import_module(f"pyarrow.{name}") if name in ("compute", "csv", "parquet") else getattr(module, name)
        return self.__dict__.setdefault(name, found)  # found faster the next time


pa: Any = _Pyarrow()


def library_of(data: Any) -> str:
    """Return the name of the library that defines the type of `data`."""
    return type(data).__module__.partition(".")[0]


def is_columnar(data: Any) -> bool:
    """Return whether `data` is an Arrow table or record batch, which is stored column by column."""
    return library_of(data) == "pyarrow" and hasattr(data, "schema")


def value_type(kind: Any) -> Any:
    """The Arrow type of the values of a column, also where they are in a dictionary."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def is_text_type(kind: Any) -> bool:
    """Return whether an Arrow type is one of texts, perhaps in a dictionary."""
    kind = value_type(kind)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def column_names(data: Any) -> list[Any] | None:
    """Return the names of a table's columns, or None for an array or a sequence of rows."""
    library = library_of(data)
    if library == "polars" and hasattr(data, "collect"):
        raise DataError("data must be a polars DataFrame, got a LazyFrame instead. Collect it first: data.collect().")
    if library == "pyarrow" and hasattr(data, "scanner"):
        raise DataError("data must be an Arrow table, got a pyarrow Dataset instead. Give the path of its folder.")
    if isinstance(data, Mapping):
        return list(data)
    if library in ("pandas", "polars") and hasattr(data, "columns"):
        return list(data.columns)
    return list(data.schema.names) if is_columnar(data) else None


def take_column(data: Any, name: str) -> Any:
    """A column of a table or of a mapping, as it is stored."""
    return data.column(name) if is_columnar(data) else as_arrow(data[name])


def _take_columns(data: Any, names: Sequence[str]) -> dict[str, Any]:
    columns = {name: take_column(data, name) for name in names}
    if isinstance(data, Mapping):
        if any(isinstance(column, str) or not hasattr(column, "__len__") for column in columns.values()):
            raise DataError("the columns of a mapping must be lists or arrays.")
        if any(getattr(column, "ndim", 1) != 1 for column in columns.values()):
            raise DataError("the columns of a mapping must have one dimension.")
        if len(set(map(len, columns.values()))) > 1:
            raise DataError("all columns of the table must have the same number of values.")
    return columns


def as_arrow(column: Any) -> Any:
    """A column of polars as one of Arrow, or as a list where Arrow has no such type; others as they are."""
    if library_of(column) != "polars":
        return column
    listed = str(column.dtype) in ("Object", "Int128")
    return column.to_list() if listed else pa.chunked_array([column.to_arrow()])


def count_rows(block: Any) -> int:
    """Number of records in a block: an array, a table, or a mapping of columns."""
    if isinstance(block, Mapping):
        block = next(iter(block.values()), ())
    return int(block.num_rows) if hasattr(block, "num_rows") else len(block)


def check_same_columns(blocks: Iterable[Any]) -> Iterator[Any]:
    """Yield the blocks; raise a `DataError` if the columns of one differ from those of the first."""
    first = None
    for block in blocks:
        columns = column_names(block)
        first = columns if first is None else first
        if columns is not None and columns != first:
            raise DataError("blocks must all have the same columns in the same order.")
        yield block


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


def to_array(data: Any, size: int, names: Sequence[str] | None = None) -> NDArray[np.generic]:
    """Return a table as an array of shape (records, size); with `names`, its columns are selected by name."""
    columns = column_names(data)
    if columns is None:
        array = read_numbers(data)
    elif hasattr(data, "dtypes") and all(  # without a mark for missing values beside the numbers, and without a copy
        str(kind) in ("float64", "Float64") and library_of(kind) in ("numpy", "polars") for kind in data.dtypes
    ):
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


def to_columns(data: Any, size: int, names: Sequence[str] | None = None) -> Sequence[NDArray[np.generic]]:
    """Return the columns of a table as arrays of shape (records,), those of Arrow without a copy where possible."""
    chosen = choose_columns(column_names(data) or [], size, names)
    if names is None and is_columnar(data):
        columns = data.columns
    elif names is None and hasattr(data, "iloc"):  # where two columns may have one name
        columns = [data.iloc[:, i] for i in range(size)]
    else:
        columns = _take_columns(data, chosen).values()
    return [column_numbers(name, column) for name, column in zip(chosen, columns, strict=True)]


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


def _round_long_doubles(values: Any) -> NDArray[np.float64]:
    """Long doubles as floats, the finite ones as finite ones."""
    return np.asarray(np.where(np.isfinite(values), np.clip(values, -_LARGEST, _LARGEST), values), np.float64)


def _number_as_float(value: Any) -> float:
    if isinstance(value, np.longdouble):
        return float(_round_long_doubles(value))
    try:
        return float(value)
    except OverflowError:  # an integer beyond the range of floats; any bounds clip it
        return _LARGEST if value > 0 else -_LARGEST


def plain_numbers(column: Any) -> NDArray[Any] | None:
    """A column of integers or floats as an array, exactly; None for other types, and for most with missing values."""
    if library_of(column) == "pyarrow":
        values = value_type(column.type)
        plain = pa.types.is_integer(values) or pa.types.is_floating(values)
        return np.asarray(column.cast(values).to_numpy(zero_copy_only=False)) if plain else None
    kind: Any = getattr(column, "dtype", None)
    if getattr(kind, "kind", "") not in tuple("iuf") or np.ma.isMaskedArray(column):
        return None
    if library_of(column) == "pandas" and not isinstance(kind, np.dtype):  # with a mark for missing values
        return None if column.isna().any() else np.asarray(column.to_numpy(f"{kind.kind}{kind.itemsize}"))
    return np.asarray(column) if library_of(column) == "pandas" or isinstance(column, np.ndarray) else None


def column_numbers(name: str, column: Any) -> NDArray[np.generic]:
    """Values of a column of numbers, of shape (rows,), NaN where one is missing; anything else is a `DataError`."""
    library, plain = library_of(column), plain_numbers(column)
    if plain is not None:
        return read_numbers(plain)
    if library == "pyarrow":
        kind = value_type(column.type)
        if not (pa.types.is_null(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind)):
            raise _not_numbers(name, kind)
        return np.asarray(column.cast(kind).cast(pa.float64()).to_numpy(zero_copy_only=False))
    if library == "pandas" and column.dtype.kind in "biuf":
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
        return read_numbers(column)
    values = _listed(column)
    if set(map(type, values)) <= {float, int, bool}:
        try:
            return np.array(values, np.float64)
        except OverflowError:  # an integer beyond the range of floats
            pass
    values = [math.nan if is_missing(value) else value for value in values]
    if not all(isinstance(value, numbers.Real | np.bool_) for value in values):
        raise _not_numbers(name)
    return np.array([_number_as_float(value) for value in values], np.float64)


def _not_numbers(name: str, kind: object = None) -> DataError:
    found = "" if kind is None else f", got {kind} instead"
    return DataError(
        f"column {name!r} must hold numbers{found}. Turn dates, and numbers that are stored as text, into numbers; "
        'describe text as a category or as yes/no (Columns with Category or YesNo, type = "category" or "yes/no" in a '
        "schema); or leave the column out."
    )


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
            if column.dtype.kind != "O":  # of texts, pandas before 3.0 compares what is before a zero byte
                places, unique = pd.factorize(column)
                return unique.tolist(), places
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
    return chunks[0].dictionary.to_pylist(), np.concatenate(found)


def _factorise_list(values: list[Any]) -> tuple[list[Any], NDArray[np.intp]]:
    try:
        places = {value: place for place, value in enumerate(dict.fromkeys(values))}
    except (TypeError, ValueError, ArithmeticError):  # a value that cannot be hashed
        return values, np.arange(len(values))
    return list(places), np.fromiter(map(places.__getitem__, values), np.intp, len(values))


class TableBlock:
    """A block of records whose columns are read as `columns` describe them: by name or, without names, in their order.

    `data` are what `to_array` takes, or rows that are sequences or mappings. `values` are the columns as stored.
    """

    def __init__(self, data: Any, columns: Columns) -> None:
        if hasattr(data, "toarray"):  # a sparse matrix of SciPy
            data = data.toarray()
        names, known = columns.names, column_names(data)
        if known is not None:
            choose_columns(known, len(names), names)
            self.values = _take_columns(data, names)
        elif isinstance(data, np.ndarray):
            if data.ndim != 2:
                raise DataError(f"records must be a table of two dimensions, got {data.ndim} instead.")
            _check_widths({data.shape[1]}, len(names))
            self.values = dict(zip(names, data.T, strict=True))
        else:
            rows = _read_rows(data, names)
            _check_widths(set(map(len, rows)), len(names))
            self.values = {name: [row[i] for row in rows] for i, name in enumerate(names)}
        self.size = len(self.values[names[0]])

    def numbers(self, name: str) -> NDArray[np.generic]:
        """Values of a column, of shape (rows,); those that are missing are NaN or infinite."""
        return column_numbers(name, self.values[name])

    def codes(self, column: Category | YesNo) -> NDArray[np.signedinteger[Any]]:
        """Position of each value of a category among its `level_names`, of shape (rows,), in some type of integers."""
        values = self.values[column.name]
        _check_precision(column, values)
        found = find_codes(column, values)
        if not found.size or found.min() >= 0:
            return found
        missing, unknown = found == MISSING_CODE, found == _UNKNOWN
        last = len(column.level_names) - 1
        if (found == _WRONG).any():
            what = "hold integers or texts. Convert dates and the like, and floats of 2^53 and more, which are rounded."
            if isinstance(column, Category) and isinstance(column.levels[0], str):
                what = (
                    "hold texts, as its levels are texts, and it holds numbers or other values. Convert it to text, or "
                    "write its levels as integers."
                )
            raise DataError(f"column {column.name!r} must {what}")
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


def find_codes(column: Category | YesNo, values: Any) -> NDArray[np.signedinteger[Any]]:
    """Position of each value among the levels; -1 for one that is not among them, -2 if it is missing, -3 if wrong."""
    unique, places = factorise(values)
    small: Any = np.int8 if len(column.level_names) < 1 << 7 else np.intp  # bytes are read several times faster
    found: NDArray[np.signedinteger[Any]] = np.array([*map(_coder(column), unique), MISSING_CODE], small).take(places)
    return found


def _check_widths(widths: set[int], width: int) -> None:
    if widths - {width}:
        raise DataError(
            f"records must have {width} columns, as described; a table whose columns have names may have more."
        )


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


def _coder(column: Category | YesNo) -> Callable[[Any], int]:
    """The function from a value to its code. Equal values have the same code, whatever their types: 1, 1.0 and True.

    An empty text is a missing value, as it is in CSV. Texts of integers, such as "1" and "1.0", are read as integers
    where the levels are integers, and words for yes and no in any case; other texts must match exactly. Integers are
    levels of texts that are written like them.
    """
    texts: dict[str, int]
    numeric: dict[Any, int]
    if isinstance(column, YesNo):
        texts, numeric = dict.fromkeys(YES, 1) | dict.fromkeys(NO, 0), {0: 0, 1: 1}
    else:
        texts = {level: code for code, level in enumerate(column.levels) if isinstance(level, str)}
        numeric = {int(text): code for text, code in texts.items() if _PLAIN.fullmatch(text)}
        numeric |= {level: code for code, level in enumerate(column.levels) if isinstance(level, int)}
    exact, large = isinstance(column, Category) and bool(texts), max(map(abs, numeric), default=0) >= 1 << 53

    def text_code(text: str) -> int:
        text = text if exact else text.strip().lower()
        if not texts and _INTEGER.fullmatch(text):
            return numeric.get(int(text.partition(".")[0]), _UNKNOWN)
        return texts.get(text, _UNKNOWN if text else MISSING_CODE)

    def code(value: Any) -> int:
        if isinstance(value, str):
            return text_code(value)
        if is_missing(value):
            return MISSING_CODE
        rounded = large and isinstance(value, float | np.floating) and 1 << 53 <= abs(float(value)) < math.inf
        if rounded or not numeric or not isinstance(value, numbers.Real | decimal.Decimal | np.bool_):
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
