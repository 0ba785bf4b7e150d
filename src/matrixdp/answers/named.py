"""Answers with names for their rows and columns, and a standard deviation for each number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from matrixdp.checks import check_number
from matrixdp.types import Floats

TOO_FEW = "too few"  # noise hides the number of records
HIDDEN = "hidden by noise"  # noise hides a variance that is divided by


@dataclass(frozen=True, eq=False)
class NamedEstimate:
    """Numbers with names and error bars.

    Attributes
    ----------
    value, std : float64 arrays of shape (rows, columns)
        The standard deviation covers the privacy noise only, not sampling error or the bias of clipping. Both are NaN
        where noise hides what a value is computed from.
    rows, columns : tuple of str
    reasons : object array of shape (rows, columns), optional
        Why a number is not given, in words; by default "too few" records.
    """

    value: Floats
    std: Floats
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    reasons: NDArray[np.object_] | None = None

    @property
    def reliable(self) -> NDArray[np.bool_]:
        """Which numbers could be computed."""
        return np.isfinite(self.value)

    def reason(self, row: int, column: int) -> str:
        """Why a number is not given; empty where it is."""
        if np.isfinite(self.value[row, column]):
            return ""
        return TOO_FEW if self.reasons is None else str(self.reasons[row, column])

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Bounds that contain the number without noise with probability `level`."""
        level = check_number(level, "level", above=0, below=1)
        reach = float(ndtri((1 + level) / 2)) * self.std
        return self.value - reach, self.value + reach

    def __getitem__(self, key: str | tuple[str, str]) -> Any:
        """A number by the names of its row and column, or all numbers of a row as a dict."""
        row, column = key if isinstance(key, tuple) else (key, None)
        i = self.rows.index(row)
        if column is None:
            return dict(zip(self.columns, self.value[i].tolist(), strict=True))
        return float(self.value[i, self.columns.index(column)])

    def to_dict(self) -> dict[str, Any]:
        """Rows, columns, values and standard deviations as lists; None where a number could not be computed.

        If there are such numbers, `reasons` says why.
        """

        def plain(array: Floats) -> list[list[float | None]]:
            return [[float(x) if np.isfinite(x) else None for x in row] for row in array]

        facts: dict[str, Any] = {
            "rows": list(self.rows),
            "columns": list(self.columns),
            "value": plain(self.value),
            "std": plain(self.std),
        }
        if not self.reliable.all():
            m, n = self.value.shape
            facts["reasons"] = [[self.reason(i, j) or None for j in range(n)] for i in range(m)]
        return facts

    def __str__(self) -> str:
        """A table, each number with its error bar."""
        m, n = self.value.shape
        cells = [[self._cell(i, j) for j in range(n)] for i in range(m)]
        margin = max((len(name) for name in self.rows), default=0)
        widths = [max(len(name), *(len(row[j]) for row in cells)) for j, name in enumerate(self.columns)]
        lines = [" " * margin + "".join(f"  {name:>{w}}" for name, w in zip(self.columns, widths, strict=True))]
        for name, row in zip(self.rows, cells, strict=True):
            lines.append(f"{name:<{margin}}" + "".join(f"  {cell:>{w}}" for cell, w in zip(row, widths, strict=True)))
        return "\n".join(lines)

    def _cell(self, i: int, j: int) -> str:
        value, std = self.value[i, j], self.std[i, j]
        return self.reason(i, j) or f"{value:.4g}" + (f" ± {std:.2g}" if std else "")
