"""Answers with names for their rows and columns, and a standard deviation for each number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from matrixdp.checks import check_number
from matrixdp.types import Floats

_SMALL = "too few"


@dataclass(frozen=True, eq=False)
class NamedEstimate:
    """Numbers with names and error bars.

    Attributes
    ----------
    value, std : float64 arrays of shape (rows, columns)
        The standard deviation covers the privacy noise only, not sampling error or the bias of clipping. Both are NaN
        where noise hides the number of records that a value is computed from.
    rows, columns : tuple of str
    """

    value: Floats
    std: Floats
    rows: tuple[str, ...]
    columns: tuple[str, ...]

    @property
    def reliable(self) -> NDArray[np.bool_]:
        """Which numbers could be computed."""
        return np.isfinite(self.value)

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
        """Rows, columns, values and standard deviations as lists; None where a number could not be computed."""

        def plain(array: Floats) -> list[list[float | None]]:
            return [[float(x) if np.isfinite(x) else None for x in row] for row in array]

        return {
            "rows": list(self.rows),
            "columns": list(self.columns),
            "value": plain(self.value),
            "std": plain(self.std),
        }

    def __str__(self) -> str:
        """A table, each number with its error bar."""
        cells = [list(map(_cell, *row)) for row in zip(self.value, self.std, strict=True)]
        margin = max((len(name) for name in self.rows), default=0)
        widths = [max(len(name), *(len(row[j]) for row in cells)) for j, name in enumerate(self.columns)]
        lines = [" " * margin + "".join(f"  {name:>{w}}" for name, w in zip(self.columns, widths, strict=True))]
        for name, row in zip(self.rows, cells, strict=True):
            lines.append(f"{name:<{margin}}" + "".join(f"  {cell:>{w}}" for cell, w in zip(row, widths, strict=True)))
        return "\n".join(lines)


def _cell(value: float, std: float) -> str:
    if not np.isfinite(value):
        return _SMALL
    return f"{value:.4g}" + (f" ± {std:.2g}" if std else "")
