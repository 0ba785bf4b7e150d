"""Records from NumPy arrays, pandas, polars and Arrow tables, as one array of records x features."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import DataError


@dataclass(frozen=True, eq=False)
class Blocks:
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

    def __iter__(self) -> Iterator[Any]:
        return iter(self.read())


def as_records(data: Any, size: int, names: Sequence[str] | None = None) -> NDArray[np.generic]:
    """Numbers of shape (records, size); columns of a named table are chosen by `names`, where these are given.

    Examples
    --------
    >>> as_records([[1, 2], [3, 4]], 2).shape
    (2, 2)
    """
    if isinstance(data, Blocks):
        arrays = [as_records(block, size, names).copy() for block in data]
        return np.concatenate(arrays) if arrays else np.empty((0, size))
    columns = _column_names(data)
    if columns is not None:
        array = _from_table(data, _choose(columns, size, names))
    else:
        if hasattr(data, "toarray"):  # a sparse matrix of SciPy
            data = data.toarray()
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


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer beyond all floats, which any bounds cut off
        return 1e308 if value > 0 else -1e308


def _column_names(data: Any) -> list[Any] | None:
    library = type(data).__module__.partition(".")[0]
    if library == "pandas" and hasattr(data, "columns"):
        return list(data.columns)
    if library == "polars" and hasattr(data, "columns"):
        return list(data.columns)
    if library == "pyarrow" and hasattr(data, "column_names"):
        return list(data.column_names)
    return None


def _choose(columns: list[Any], size: int, names: Sequence[str] | None) -> list[Any]:
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
    library = type(data).__module__.partition(".")[0]
    if library == "pandas":
        _require_numbers({name: data[name].dtype for name in columns})
    try:
        if library == "pandas":
            return np.asarray(data[columns].to_numpy(dtype=np.float64, na_value=np.nan))
        if library == "polars":
            return np.asarray(data.select(columns).to_numpy())
        return np.column_stack([_arrow_column(data.column(name)) for name in columns])
    except (TypeError, ValueError):
        raise DataError("the table's columns must be numbers; encode text and categories first.") from None


def _require_numbers(dtypes: dict[Any, Any]) -> None:
    """An error for dates, texts and the like, which NumPy would take for numbers."""
    for name, dtype in dtypes.items():
        if dtype.kind not in "biuf":
            raise DataError(f"column {name!r} must hold numbers, got {dtype} instead; encode it first.")


def _arrow_column(column: Any) -> NDArray[np.generic]:
    return np.asarray(column.to_numpy())
