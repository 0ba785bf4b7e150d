"""The one form of an answer: numbers with names, each with an error bar and an interval, or a plausible range."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from matrixdp.answers.psd import nearest_psd
from matrixdp.checks import check_integer
from matrixdp.display import ARRAYS, Numbers, align_columns, join_cells, render_card, render_note, table_repr
from matrixdp.errors import ParameterError, show
from matrixdp.intervals import LEVEL, Range
from matrixdp.plots import plot_matrix, plot_panels
from matrixdp.types import Floats

TOO_FEW = "too few"  # noise hides the number of records
HIDDEN = "hidden by noise"  # noise hides a variance that is divided by

NOISE_NOTE = "± one standard deviation of the privacy noise; pale: within two of zero, may be noise alone"
CUT_NOTE = "[low, high]: the 95% interval, where ± would reach beyond what is possible, or noise hides the number"
RANGE_NOTE = "~ and [low, high]: a plausible range, where noise hides the number; it depends on what tables are like"


@dataclass(frozen=True, eq=False)
class Estimate(Numbers):
    """Numbers with names and error bars; a vector is one column.

    Attributes
    ----------
    value, std : float64 arrays of shape (rows, columns)
        Each value is possible: a mean is within its bounds, a share is not negative. The standard deviation is that of
        the privacy noise, without sampling error and the bias of clipping. It is NaN where noise hides a number; the
        value is then a guess, and `interval` says what it may be.
    rows, columns : tuple of str
    plausible : bool array of shape (rows, columns)
        Which intervals are plausible ranges, which depend on what tables are like (`Release.draws`).
    reasons : array of shape (rows, columns), or str
        Why a number is not given at all, in words; by default "too few" records.
    """

    std: Floats
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    reasons: Any = TOO_FEW

    @property
    def reliable(self) -> NDArray[np.bool_]:
        """Which numbers stand out from noise far enough to have an error bar."""
        return np.isfinite(self.value) & np.isfinite(self.std)

    def scale(self, factor: float) -> Estimate:
        """All numbers times a factor."""
        return self._each(lambda array: array * factor if array.dtype == float else array)

    def list_notes(self) -> list[str]:
        """How to read the intervals that are not after ±, as far as there are any."""
        found = {CUT_NOTE: (self.ranged & ~self.plausible).any(), RANGE_NOTE: self.plausible.any()}
        return [note for note, holds in found.items() if holds]

    def nearest_psd(self) -> Floats:
        """The nearest positive semidefinite matrix in the norm of the noise; `answers.nearest_psd` has the details."""
        return nearest_psd(self.measured, self.std)

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
        return self.cut(slice(None), slice(j, j + 1))

    def to_dict(self) -> dict[str, Any]:
        """Rows, columns and numbers as lists: values, standard deviations, and ends of intervals or plausible ranges.

        None for what is not given, with `reasons` why.
        """
        low, high = self.interval()
        facts: dict[str, Any] = {"rows": list(self.rows), "columns": list(self.columns)}
        for name, array in {"value": self.value, "std": self.std, "low": low, "high": high}.items():
            facts[name] = [[x if math.isfinite(x) else None for x in row] for row in array.tolist()]
        facts["plausible"] = self.plausible.tolist()
        if not np.isfinite(self.value).all():
            m, n = self.value.shape
            facts["reasons"] = [[self.reason(i, j) or None for j in range(n)] for i in range(m)]
        return facts

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

    def _repr_html_(self) -> str:
        return render_card("", self.render(), *(render_note(note) for note in (NOISE_NOTE, *self.list_notes())))

    def __repr__(self) -> str:
        return table_repr(self, *self.value.shape)

    def __str__(self) -> str:
        """A table, each number with its error bar."""
        lines = [[name, *cells] for name, cells in zip(self.rows, join_cells(self), strict=True)]
        return "\n".join(align_columns([["", *self.columns], *lines]))


def settle(
    value: Floats,
    std: Any,
    rows: tuple[str, ...],
    columns: tuple[str, ...],
    possible: tuple[Any, Any],
    ranges: Callable[[], Range | None] | None = None,
    *,
    plausible: bool = False,
    reasons: Any = TOO_FEW,
) -> Estimate:
    """Measured numbers as an estimate, by the rule of `matrixdp.intervals`: possible, and with a range where hidden.

    Numbers that noise hides are NaN. `ranges` gives what they may be, or None for all that is `possible` (the least and
    the largest numbers, as arrays or for all); without it, they stay hidden. `plausible` says that they are from draws.
    """
    (least, most), hidden = possible, ~np.isfinite(value)
    shown, bars = np.where(hidden, np.nan, np.clip(value, least, most)), np.where(hidden, np.nan, std)
    firm = Estimate(shown, bars, rows, columns, reasons, least, most, measured=value)
    if ranges is None or not hidden.any():
        return firm
    with np.errstate(invalid="ignore"):
        room = np.where(np.isfinite(most - least), most - least, np.nan)
    whole, found = Range(least + room / 2, least + 0 * room, least + room), ranges()
    told = np.zeros(value.shape, bool) if found is None else np.isfinite(found.median)
    parts = (np.where(told, *pair) for pair in zip(found or whole, whole, strict=True))
    median, low, high = (np.where(hidden, np.clip(one, least, most), np.nan) for one in parts)
    shown = np.where(hidden, median, shown)
    return replace(firm, value=shown, low=low, high=high, plausible=hidden & told & plausible)


def join(parts: Sequence[Estimate], rows: tuple[str, ...], columns: tuple[str, ...], axis: int = 0) -> Estimate:
    """Estimates below each other or, for axis 1, side by side."""
    names = ("value", "std", *ARRAYS)
    arrays = {name: np.concatenate([getattr(part, name) for part in parts], axis) for name in names}
    return Estimate(rows=rows, columns=columns, **arrays)


def _find(names: tuple[str, ...], name: Any, what: str) -> int:
    if name not in names:
        raise ParameterError(f"there is no {what} {show(name)}; the {what}s are {', '.join(names[:20])}.")
    return names.index(name)


def relate_to_diagonal(value: Floats, std: Floats) -> tuple[Floats, str]:
    """A square matrix over the roots of its diagonal or their bars, unless that has ones; how a legend names it."""
    diagonal = np.diagonal(value)
    if np.allclose(diagonal[np.isfinite(diagonal)], 1.0):
        return value, "value"
    size = np.sqrt(np.fmax(np.abs(diagonal), np.diagonal(std)))
    size = np.where(size > 0, size, 1.0)
    return np.clip(value / np.multiply.outer(size, size), -1.0, 1.0), "value relative to the diagonal"


# Intervals from several synthetic tables of one release


@dataclass(frozen=True, eq=False)
class Combined:
    """Numbers with their standard errors, of sampling and noise together, and the ends of their 95% intervals."""

    value: Floats
    std: Floats
    low: Floats
    high: Floats


def combine(estimates: ArrayLike, variances: ArrayLike, *, rows: int, records: int) -> Combined:
    """One estimate and its interval from the same analysis of each of several synthetic tables.

    With q the mean of the m estimates, u that of their variances times ``rows/records``, and b the variance of the
    estimates, the variance of q is ``T = u + (1 + 1/m) b`` and the interval ``q +- t sqrt(T)``, for Student's t with
    ``(m - 1) (1 + u/((1 + 1/m) b))^2`` degrees of freedom. This is Rubin's rule for missing values: u stands for
    sampling the records, and b for the noise of the release. Tables have no sampling error of their own.

    Parameters
    ----------
    estimates, variances : arrays of shape (m, ...)
        Estimates from m tables of `Release.synthetic`, at least 2, and the squares of their usual standard errors.
    rows : int
        Number of rows of each table.
    records : int
        The public number of records, or of people, of the release.
    """
    values, own = np.asarray(estimates, float), np.asarray(variances, float)
    if values.ndim < 1 or len(values) < 2 or values.shape != own.shape:
        raise ParameterError(
            "estimates and variances must have the same shape, with one entry for each of at least 2 tables; "
            f"got the shapes {values.shape} and {own.shape}."
        )
    if not (np.isfinite(values).all() and np.isfinite(own).all() and (own >= 0).all()):
        raise ParameterError("estimates must be finite, and variances finite and not negative.")
    scale = check_integer(rows, "rows", at_least=1) / check_integer(records, "records", at_least=1)
    m, mean, sampling = len(values), values.mean(axis=0), own.mean(axis=0) * scale
    between = (1 + 1 / m) * values.var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = np.where(between > 0, (m - 1) * (1 + sampling / between) ** 2, np.inf)
    std = np.sqrt(sampling + between)
    half = stdtrit(np.minimum(freedom, 1e9), (1 + LEVEL) / 2) * std
    return Combined(mean, std, mean - half, mean + half)
