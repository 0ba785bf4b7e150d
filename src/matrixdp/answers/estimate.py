"""The one form of an answer: numbers with names and a standard deviation for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.answers.psd import nearest_psd, shrink_psd
from matrixdp.display import (
    Numbers,
    align_columns,
    interval,
    join_cells,
    make_frame,
    render_card,
    render_note,
    render_numbers,
    table_repr,
)
from matrixdp.errors import ParameterError, show
from matrixdp.plots import plot_matrix, plot_panels
from matrixdp.types import Floats

TOO_FEW = "too few"  # noise hides the number of records
HIDDEN = "hidden by noise"  # noise hides a variance that is divided by

NOISE_NOTE = "± one standard deviation of the privacy noise; pale: within two of zero, may be noise alone"


@dataclass(frozen=True, eq=False)
class Estimate(Numbers):
    """Numbers with names and error bars; a vector is one column.

    Attributes
    ----------
    value, std : float64 arrays of shape (rows, columns)
        The standard deviation covers the privacy noise only, not sampling error or the bias of clipping. Both are NaN
        where noise hides what a value is computed from.
    rows, columns : tuple of str
    reasons : object array of shape (rows, columns), optional
        Why a number is not given, in words; by default "too few" records.
    """

    std: Floats
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    unknown: str = TOO_FEW

    @property
    def reliable(self) -> NDArray[np.bool_]:
        """Which numbers could be computed."""
        return np.isfinite(self.value)

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Bounds that contain the number without noise with probability `level`."""
        return interval(self.value, self.std, level)

    def nearest_psd(self) -> Floats:
        """The nearest positive semidefinite matrix in the norm of the noise; `answers.nearest_psd` has the details."""
        return nearest_psd(self.value, self.std)

    def shrunk(self) -> Floats:
        """A positive semidefinite matrix with less expected error where noise dominates; see `answers.shrink_psd`."""
        return shrink_psd(self.value, self.std)

    def __getitem__(self, key: str | tuple[str, str]) -> Any:
        """A number by the names of its row and column, or all numbers of a row as a dict."""
        row, column = key if isinstance(key, tuple) else (key, None)
        i = _find(self.rows, row, "row")
        if column is None:
            return dict(zip(self.columns, self.value[i].tolist(), strict=True))
        return float(self.value[i, _find(self.columns, column, "column")])

    def column(self, name: str) -> Estimate:
        """One of the columns alone."""
        j = _find(self.columns, name, "column")
        parts = [None if one is None else one[:, j : j + 1] for one in (self.value, self.std, self.reasons)]
        return Estimate(parts[0], parts[1], self.rows, (name,), parts[2])  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, Any]:
        """Rows, columns, values and standard deviations as lists; None for what is not given, with `reasons` why."""

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

    def to_frame(self, *, long: bool = False, level: float = 0.95) -> Any:
        """The values as a pandas data frame with the names of rows and columns.

        Parameters
        ----------
        long : bool
            One row for each number: row, column, value, std, low and high.
        level : float
            Probability that the number without noise is between `low` and `high`.
        """
        return make_frame(self, long=long, level=level)

    def plot(self, *, kind: str | None = None, ax: Any = None, title: str = "", level: float = 0.95) -> Any:
        """The numbers drawn with matplotlib; returns the axes.

        Parameters
        ----------
        kind : 'matrix' or 'bars', optional
            A heat map in which numbers within two error bars of zero fade, or a panel of error bars for each column. By
            default a heat map where rows and columns have the same names.
        ax : matplotlib axes, optional
            To draw into; for bars one for each column.
        title : str
            Of a heat map.
        level : float
            Probability that the number without noise is within an error bar.
        """
        alike = self.rows == self.columns
        kind = kind or ("matrix" if alike else "bars")
        if kind == "bars":
            return plot_panels(self, level=level, axes=ax)
        if kind != "matrix":
            raise ParameterError(f"kind must be 'matrix' or 'bars', got {show(kind)} instead.")
        options: dict[str, Any] = {"title": title, "ax": ax}
        if alike:
            shade, legend = relate_to_diagonal(self.value, self.std)
            options.update(shade=shade, legend=legend, limit=1.0)
        return plot_matrix(self, **options)

    def render(self, caption: str = "") -> str:
        """The table as HTML, to be put into a card."""
        return render_numbers(self, caption)

    def _repr_html_(self) -> str:
        return render_card("", self.render(), render_note(NOISE_NOTE))

    def __repr__(self) -> str:
        return table_repr(self, *self.value.shape)

    def __str__(self) -> str:
        """A table, each number with its error bar."""
        lines = [[name, *cells] for name, cells in zip(self.rows, join_cells(self), strict=True)]
        return "\n".join(align_columns([["", *self.columns], *lines]))


def _find(names: tuple[str, ...], name: Any, what: str) -> int:
    if name not in names:
        raise ParameterError(f"there is no {what} {show(name)}; the {what}s are {', '.join(names[:20])}.")
    return names.index(name)


def relate_to_diagonal(value: Floats, std: Floats) -> tuple[Floats, str]:
    """What the colours of a square matrix show, and how the legend names it.

    Unless its diagonal has ones, each number is divided by the roots of the two diagonal numbers, or of their error
    bars.
    """
    diagonal = np.diagonal(value)
    if np.allclose(diagonal[np.isfinite(diagonal)], 1.0):
        return value, "value"
    size = np.sqrt(np.fmax(np.abs(diagonal), np.diagonal(std)))
    size = np.where(size > 0, size, 1.0)
    return np.clip(value / np.multiply.outer(size, size), -1.0, 1.0), "value relative to the diagonal"
