"""Records of a table as numbers, with one indicator for each level of a category, for models."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from matrixdp.domain import Bounds, Category, Column, Columns, Number, YesNo
from matrixdp.errors import DataError, ParameterError
from matrixdp.records.tables import TableBlock
from matrixdp.types import Floats

_BLOCK = 1 << 20  # numbers of expanded records that are in memory at a time


@dataclass(frozen=True, eq=False)
class ExpandedColumns:
    """The features of a model on a table: each number as it is, each category as indicators of its levels."""

    columns: Columns
    reference: bool  # whether the first level of each category is left out, with which others are compared

    def __post_init__(self) -> None:
        if not self.names:
            raise ParameterError("bounds must have at least one number, or a category of two levels.")

    def features(self, column: Column) -> dict[str, tuple[float, float]]:
        """Names of the features of a column, its own or "column=level", with their bounds."""
        if isinstance(column, Number):
            return {column.name: (column.lower, column.upper)}
        levels = column.level_names[int(self.reference) :]
        # About their midpoint, the indicators of a category have together at most the length 1.
        return {f"{column.name}={level}": (0.0 if len(levels) == 1 else -1.0, 1.0) for level in levels}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of all features."""
        return tuple(name for column in self.columns for name in self.features(column))

    @cached_property
    def bounds(self) -> Bounds:
        """Bounds of all features."""
        return Bounds(*np.transpose([ends for column in self.columns for ends in self.features(column).values()]))

    def apply(self, X: Any, function: Callable[[Floats], Floats], *, fill: Floats | None) -> Floats:
        """Result of a function on the expanded records of X, block by block; `fill` replaces missing numbers."""
        records = ExpandedRecords(read_table(X, self.columns), [self])
        if not records.size:
            raise DataError("X must have at least one record.")
        return np.concatenate([function(block) for block in records.blocks(fill)])


class ExpandedRecords:
    """Records of a table in memory, read once and expanded block by block; `parts` are features, perhaps targets."""

    def __init__(self, data: Any, parts: Sequence[ExpandedColumns]) -> None:
        block = TableBlock(data, Columns([column for part in parts for column in part.columns]))
        self.size, self._width = block.size, sum(len(part.names) for part in parts)
        self._values: list[tuple[ExpandedColumns, Column, NDArray[Any]]] = [
            (part, column, _read_numbers(block, column) if isinstance(column, Number) else block.codes(column))
            for part in parts
            for column in part.columns
        ]

    def blocks(self, fill: Floats | None = None) -> Iterator[Floats]:
        """Arrays of shape (some records, features); missing numbers are replaced by those of `fill`."""
        step = max(1, _BLOCK // self._width)
        for start in range(0, self.size, step):
            rows = slice(start, min(start + step, self.size))
            out = np.zeros((rows.stop - start, self._width))
            place = 0
            for part, column, values in self._values:
                width, found = len(part.features(column)), values[rows]
                if isinstance(column, Number):
                    out[:, place] = found
                    if fill is not None:
                        np.copyto(out[:, place], fill[place], where=~np.isfinite(out[:, place]))
                else:
                    codes = found - int(part.reference)
                    there = np.flatnonzero(codes >= 0)
                    out[there, place + codes[there]] = 1.0
                place += width
            yield out


def expand_block(parts: Sequence[ExpandedColumns], block: Any) -> Floats:
    """One block of a table that is read in parts as an array of shape (records of the block, features)."""
    empty = np.empty((0, sum(len(part.names) for part in parts)))
    return np.concatenate([empty, *ExpandedRecords(block, parts).blocks()])


def _read_numbers(block: TableBlock, column: Number) -> NDArray[np.generic]:
    found = block.numbers(column.name)
    if not column.missing and not np.isfinite(found).all():
        raise DataError(
            f"column {column.name!r} has a missing value (NaN or infinity), and its description does not allow one. "
            "Allow it (missing = true), or drop such records."
        )
    return found


def read_table(X: Any, columns: Columns) -> dict[str, Any]:
    """The described columns of a table in memory, each as it is stored; those of a sparse matrix as values."""
    if sparse.issparse(X):
        return _read_one_hot(X, columns)
    return TableBlock(X, columns).values


def _read_one_hot(X: Any, columns: Columns) -> dict[str, Any]:
    """Columns of a sparse matrix, which stays sparse: one for each number, and one for each level, as described."""
    widths = [1 if isinstance(column, Number) else len(column.level_names) for column in columns]
    if X.ndim != 2 or X.shape[1] != sum(widths):
        raise DataError(
            f"a sparse X must have {sum(widths)} columns: one for each number and one for each level of a category "
            "(those for other and missing values last), in the order in which bounds describe them."
        )
    if X.dtype.kind not in "biuf":
        raise DataError("a sparse X must hold real numbers.")
    stored = X.tocsc()
    if not stored.has_canonical_format:
        stored = stored.copy()
        stored.sum_duplicates()
    found: dict[str, Any] = {}
    place = 0
    for column, width in zip(columns, widths, strict=True):
        part = stored[:, place : place + width]
        place += width
        if isinstance(column, Number):
            found[column.name] = part.toarray().reshape(-1)
        else:
            found[column.name] = _read_levels(part.tocoo(), column)
    return found


def _read_levels(part: Any, column: Category | YesNo) -> list[str | None]:
    """Levels of a category from its indicators, None where it is missing or no indicator is set."""
    there = part.data != 0
    rows, levels = part.row[there], part.col[there]
    if not (part.data[there] == 1).all():
        raise DataError(f"the indicators of column {column.name!r} must be 0 or 1 in a sparse X.")
    if np.bincount(rows, minlength=1).max() > 1:
        raise DataError(f"column {column.name!r} must have at most one level in each row of a sparse X.")
    names = np.array([*column.level_names, None], object)
    if column.missing:
        names[-2] = None
    codes = np.full(part.shape[0], len(names) - 1)
    codes[rows] = levels
    return names[codes].tolist()  # type: ignore[no-any-return]
