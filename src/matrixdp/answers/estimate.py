"""The one form of an answer: numbers with names and a standard deviation for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from matrixdp.answers.psd import nearest_psd, shrink_psd
from matrixdp.checks import check_number
from matrixdp.display.frames import make_frame, make_long_frame
from matrixdp.display.html import render_card, render_note, render_numbers
from matrixdp.display.numbers import format_estimate
from matrixdp.display.plots import plot_matrix, plot_panels
from matrixdp.display.short_repr import table_repr
from matrixdp.errors import ParameterError, show
from matrixdp.types import Floats

TOO_FEW = "too few"  # noise hides the number of records
_ROUNDING = 1e-9  # an error bar below this share of its number comes from rounding
HIDDEN = "hidden by noise"  # noise hides a variance that is divided by

NOISE_NOTE = "± one standard deviation of the privacy noise; pale: within two of zero, may be noise alone"


@dataclass(frozen=True, eq=False)
class Estimate:
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

    def to_frame(self, *, long: bool = False, level: float = 0.95) -> Any:
        """The values as a pandas data frame with the names of rows and columns.

        Parameters
        ----------
        long : bool
            One row for each number: row, column, value, std, low and high.
        level : float
            Probability that the number without noise is between `low` and `high`.
        """
        if long:
            return make_long_frame(self.value, self.std, self.rows, self.columns, level)
        return make_frame(self.value, self.rows, self.columns)

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
            return plot_panels(self.value, self.std, self.rows, self.columns, level=level, axes=ax)
        if kind != "matrix":
            raise ParameterError(f"kind must be 'matrix' or 'bars', got {show(kind)} instead.")
        options: dict[str, Any] = {"title": title, "ax": ax}
        if alike:
            shade, legend = relate_to_diagonal(self.value, self.std)
            options.update(shade=shade, legend=legend, limit=1.0)
        return plot_matrix(self.value, self.std, self.rows, self.columns, **options)

    def render(self, caption: str = "") -> str:
        """The table as HTML, to be put into a card."""
        return render_numbers(self.value, self.std, self.rows, self.columns, reason=self.reason, caption=caption)

    def _repr_html_(self) -> str:
        return render_card("", self.render(), render_note(NOISE_NOTE))

    def __repr__(self) -> str:
        return table_repr(self, *self.value.shape)

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
        return self.reason(i, j) or format_cell(float(value), float(std))


def format_cell(value: float, std: float) -> str:
    """A number with its error bar, both rounded to the second digit of the error bar.

    Examples
    --------
    >>> format_cell(0.18881, 0.0701), format_cell(25103.4, 931.0), format_cell(0.7071, 5e-15)
    ('0.189 ± 0.070', '25100 ± 930', '0.7071')
    """
    number, bar = format_estimate(value, std if std > _ROUNDING * abs(value) else 0.0)
    return f"{number} ± {bar}" if bar else number


def _find(names: tuple[str, ...], name: Any, what: str) -> int:
    if name not in names:
        raise ParameterError(f"there is no {what} {show(name)}; the {what}s are {', '.join(names[:20])}.")
    return names.index(name)


def relate_to_diagonal(value: Floats, std: Floats) -> tuple[Floats, str]:
    """What the colours of a square matrix show, and how the legend names it.

    A matrix with ones on its diagonal is shown as it is. In any other, such as a covariance of columns with different
    units, each number is divided by the roots of the two diagonal numbers, or of their error bars if these are larger.
    """
    diagonal = np.diagonal(value)
    if np.allclose(diagonal[np.isfinite(diagonal)], 1.0):
        return value, "value"
    size = np.sqrt(np.fmax(np.abs(diagonal), np.diagonal(std)))
    size = np.where(size > 0, size, 1.0)
    return np.clip(value / np.multiply.outer(size, size), -1.0, 1.0), "value relative to the diagonal"
