"""Tables that estimators are given: their columns by name, and as numbers with one indicator for each level."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from matrixdp.domain.columns import Category, Columns, Number, YesNo
from matrixdp.errors import DataError, ParameterError
from matrixdp.records.table_columns import TableBlock
from matrixdp.types import Floats

_BLOCK = 1 << 20  # numbers of expanded records that are in memory at a time


@dataclass(frozen=True, eq=False)
class ExpandedColumns:
    """The features of a model on a table: each number as it is, each category as indicators of its levels.

    Parameters
    ----------
    columns : Columns
    reference : bool
        Whether the first level of each category is left out, as the one that others are compared with.
    """

    columns: Columns
    reference: bool

    def __post_init__(self) -> None:
        if not self.names:
            raise ParameterError("bounds must have at least one number, or a category of two levels.")

    def levels(self, column: Category | YesNo) -> tuple[str, ...]:
        """The levels that have an indicator."""
        return column.level_names[int(self.reference) :]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of numbers, and "column=level"."""
        found: list[str] = []
        for column in self.columns:
            number = isinstance(column, Number)
            found += [column.name] if number else [f"{column.name}={level}" for level in self.levels(column)]
        return tuple(found)

    def apply(self, X: Any, function: Callable[[Floats], Floats], *, fill: Floats) -> Floats:
        """Result of a function on the expanded records of X, block by block; `fill` replaces missing numbers."""
        return np.concatenate([function(block) for block in self._expand(X, fill)])

    def _expand(self, X: Any, fill: Floats) -> Iterator[Floats]:
        block = TableBlock(read_table(X, self.columns), self.columns)
        if not block.size:
            raise DataError("X must have at least one record.")
        values = [
            self._numbers(block, column) if isinstance(column, Number) else block.codes(column)
            for column in self.columns
        ]
        step = max(1, _BLOCK // len(self.names))
        for start in range(0, block.size, step):
            rows = slice(start, min(start + step, block.size))
            out = np.zeros((rows.stop - start, len(self.names)))
            place = 0
            for column, found in zip(self.columns, values, strict=True):
                if isinstance(column, Number):
                    out[:, place] = np.where(np.isfinite(found[rows]), found[rows], fill[place])
                    place += 1
                else:
                    codes, width = found[rows] - int(self.reference), len(self.levels(column))
                    at = np.flatnonzero(codes >= 0)
                    out[at, place + codes[at]] = 1.0
                    place += width
            yield out

    @staticmethod
    def _numbers(block: TableBlock, column: Number) -> NDArray[np.generic]:
        found = block.numbers(column.name)
        if not column.missing and not np.isfinite(found).all():
            raise DataError(
                f"column {column.name!r} has a missing value, and its description does not allow one. Allow it "
                "(missing = true) and fit again, or drop such records."
            )
        return found


def read_table(X: Any, columns: Columns) -> dict[str, Any]:
    """The described columns of a table in memory, each as it is stored; those of a sparse matrix as values."""
    if sparse.issparse(X):
        return _read_one_hot(X, columns)
    block = TableBlock(X, columns)
    return {name: block.column(name) for name in columns.names}


def _read_one_hot(X: Any, columns: Columns) -> dict[str, Any]:
    """Columns of a sparse matrix that has one column for each number and one for each level, as described.

    A row without any level of a category is one in which it is missing. The matrix is not made dense: there is one
    number for each record and column of the description.
    """
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
    """Levels of a category from its indicators, None where it is missing."""
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
