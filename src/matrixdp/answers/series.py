"""Numbers over time from a stream, with error bars: means and counts in each period, differences, smoothing.

The noise of different periods is correlated: its covariance over time is ``B B'``, with B the weights of what was
published in each period, times the covariance of the entries of one period. All of it is post-processing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from matrixdp.answers.estimate import Estimate, settle
from matrixdp.answers.moments import ALL, Statistic, divide, find_level_means, read_entry, view_levels
from matrixdp.answers.noise_law import NoiseLaw, Places
from matrixdp.answers.view import LEAST_SIZE, view_moments
from matrixdp.design.design import Design
from matrixdp.errors import ParameterError, show
from matrixdp.plots import open_axes
from matrixdp.queries import Moments, TableMoments
from matrixdp.types import Floats

_STEPS = np.geomspace(0.01, 100.0, 25)  # of the random walk, in units of the noise of a step
_MOST_SMOOTHED = 1000
SMOOTHED = "smoothed: numbers are assumed to change slowly, and bars rest on that"


@dataclass(frozen=True, eq=False)
class Series:
    """A number in each period, for each group, with error bars that are correlated over time.

    Attributes
    ----------
    value, std : float64 arrays of shape (periods, groups)
        NaN where noise hides the number of records.
    limits : pair of float
        Between which the number is known to be.
    covary : callable
        Covariance of the errors in two periods, given by their places, to first order, of shape (groups,).
    """

    what: str  # what it is a series of
    periods: tuple[str, ...]
    groups: tuple[str, ...]
    smoothed: bool
    value: Floats
    std: Floats
    limits: tuple[float, float]
    covary: Callable[[int, int], Floats]

    @property
    def note(self) -> str:
        """How to read it."""
        return SMOOTHED if self.smoothed else "bars of two periods are correlated; a difference has a bar of its own"

    def to_estimate(self) -> Estimate:
        """Values and bars, with one row for each period."""
        return settle(self.value, self.std, self.periods, self.groups, possible=self.limits)

    def to_frame(self, *, long: bool = False, level: float = 0.95) -> Any:
        """The same as a pandas data frame."""
        return self.to_estimate().to_frame(long=long, level=level)

    def difference(self, first: str, second: str) -> Estimate:
        """By how much the number of one period is above that of another, for each group, with its own error bar."""
        for name in (first, second):
            if name not in self.periods:
                known = f"{self.periods[0]} to {self.periods[-1]}"
                raise ParameterError(f"a period must be one of the series ({known}), got {show(name)} instead.")
        i, j = self.periods.index(first), self.periods.index(second)
        value, width = self.value[i] - self.value[j], self.limits[1] - self.limits[0]
        variance = self.std[i] ** 2 + self.std[j] ** 2 - 2 * self.covary(i, j)
        std = np.where(np.isfinite(value), np.sqrt(np.maximum(variance, 0.0)), np.nan)
        return settle(value[:, None], std[:, None], self.groups, ("difference",), possible=(-width, width))

    def plot(self, *, ax: Any = None, title: str = "") -> Any:
        """A line with a 95% band for each group; returns matplotlib axes."""
        ax = open_axes(ax, 7.0, 4.0)
        places = np.arange(len(self.periods))
        for column, group in enumerate(self.groups):
            value, bar = self.value[:, column], 1.96 * self.std[:, column]
            (line,) = ax.plot(places, value, marker="" if self.smoothed else "o", markersize=3, label=group)
            ax.fill_between(places, value - bar, value + bar, color=line.get_color(), alpha=0.18, linewidth=0)
        shown = np.unique(np.linspace(0, len(self.periods) - 1, min(8, len(self.periods))).astype(int))
        ax.set_xticks(shown, [self.periods[i] for i in shown], rotation=30, ha="right")
        ax.set_ylabel(self.what + " (smoothed)" * self.smoothed)
        ax.set_title(title)
        if len(self.groups) > 1:
            ax.legend(fontsize="small")
        return ax

    def __str__(self) -> str:
        return f"{self.what} by period{', smoothed' * self.smoothed}\n{self.to_estimate()}\n{self.note}"

    def __repr__(self) -> str:
        size = f"{len(self.periods)} periods, {len(self.groups)} groups"
        return f"<Series of {self.what}, {size}{', smoothed' * self.smoothed}>"


class _LawOverTime(NoiseLaw):
    """The law of a step's noise in a stack of moments, with other variances along the first of its `leading` axes."""

    def __init__(self, law: NoiseLaw, squares: Floats, leading: int) -> None:
        self.size, self.released, self.scales, self.one = law.size, law.released, law.scales, law
        self._squares, self._leading = squares, leading

    def covariance(self, i: Places, j: Places, k: Places, m: Places) -> Floats:
        """The covariances with the axes of the stack in front."""
        found = self.one.covariance(i, j, k, m)
        return np.asarray(found * self._squares.reshape(-1, *[1] * (self._leading - 1 + np.ndim(found))))


def make_series(
    matrices: Sequence[Floats],
    design: Design,
    periods: tuple[str, ...],
    inverse: Floats,
    *,
    column: str | None,
    by: str | None,
    smooth: bool,
) -> Series:
    """The series of a column's mean, or of the number of records, from the noisy moments of each period.

    `inverse`, (periods, steps), has the weights of what was published: period t has the noise of `design` times the
    norm of row t.
    """
    query: Any = design.query
    if not isinstance(query, Moments | TableMoments):
        raise ParameterError(f"a series needs moments of a table, got {type(query).__name__}; use period() instead.")
    row: Any = None
    groups: tuple[str, ...] = (ALL,)
    if by is None:
        views = [view_moments(matrix, design) for matrix in matrices]
    else:
        found = [view_levels(matrix, design, by) for matrix in matrices]
        views, (_, row, groups) = [one[0] for one in found], found[0]
    stack = np.stack([one.matrix for one in views])
    view = replace(views[0], matrix=stack, law=_LawOverTime(views[0].law, (inverse**2).sum(axis=1), stack.ndim - 2))
    middle, limits = 0.0, (0.0, np.inf)
    if column is not None:
        if view.place(column).levels:
            raise ParameterError(f"column {column!r} must be a number, and it is a category.")
        number = view.numbers.index(column)
        middle, half = float(view.middles[number]), float(view.halfwidths[number])
        limits = (middle - half, middle + half)
    smooth = smooth and len(stack) > 2
    if smooth and len(stack) > _MOST_SMOOTHED:
        raise ParameterError(f"smooth is for at most {_MOST_SMOOTHED} periods, got {len(stack)}.")
    with np.errstate(all="ignore"):
        value, std, covary = (_smooth_all if smooth else _read_all)(view, row, column, inverse)
    what = "records" if column is None else f"mean of {column}"
    return Series(what, periods, tuple(groups), smooth, value + middle, std, limits, covary)


Parts = tuple[Floats, Floats, Callable[[int, int], Floats]]  # values, errors and their covariances


def _read_all(view: Any, row: Any, column: str | None, inverse: Floats) -> Parts:
    """What `means` shows of each period; without a column, the number of records."""
    if column is None:
        found = read_entry(view, 0, _first(row))
    elif row is None:
        found = divide(view, (0, view.place(column).value), (0, view.place(column).observed))
    else:
        found, number = find_level_means(view, row), view.numbers.index(column)
        terms = [(i[..., number], j[..., number], slope[..., number]) for i, j, slope in found.terms]
        spread = np.broadcast_to(found.open, found.value.shape)[..., number]
        found = Statistic(found.value[..., number], terms, spread)
    factor = view.query.records if column is None else 1.0

    def covary(i: int, j: int) -> Floats:
        total: Any = 0.0
        for a, b, slope in found.terms:
            for c, d, other in found.terms:
                slopes = [one[t] if np.ndim(one) else one for one, t in ((slope, i), (other, j))]
                total = total + slopes[0] * slopes[1] * view.law.one.covariance(a, b, c, d)
        return np.atleast_1d(np.asarray(total * factor**2 * (inverse[i] @ inverse[j])))

    value, std = (np.broadcast_to(one, found.value.shape) * factor for one in (found.value, found.std(view.law)))
    return value.reshape(len(inverse), -1), std.reshape(len(inverse), -1), covary


def _smooth_all(view: Any, row: Any, column: str | None, inverse: Floats) -> Parts:
    """Sums over records that are assumed to change slowly, and ratios of them."""
    law, covariance = view.law.one, inverse @ inverse.T

    def read(place: int) -> tuple[Floats, Floats, Floats]:
        """An entry for each group: its standard deviation in a step, and smoothed values with their covariances."""
        values = view.read(_first(row), place).reshape(len(inverse), -1).T
        scale = np.broadcast_to(law.entry_std(_first(row), place), len(values))[:, None]
        means, covariances = _smooth(values / scale, covariance)
        return scale[:, 0], means * scale, covariances * scale[:, :, None] ** 2

    if column is None:
        _, top, upper = read(0)
        records = view.query.records
        std = np.sqrt(np.maximum(np.diagonal(upper, axis1=1, axis2=2), 0.0)).T * records
        return top.T * records, std, lambda i, j: upper[:, i, j] * records**2
    own = view.place(column)
    (scale, top, upper), (size, bottom, lower) = read(own.value), read(own.observed)
    correlation = law.covariance(_first(row), own.value, _first(row), own.observed) / (scale * size)
    enough = bottom > LEAST_SIZE * np.sqrt(np.maximum(np.diagonal(lower, axis1=1, axis2=2), 0.0))
    ratio = np.where(enough, top / bottom, np.nan)

    def covary(i: int, j: int) -> Floats:
        a, b = upper[:, i, j], lower[:, i, j]
        cross = (np.sign(a) + np.sign(b)) / 2 * np.sqrt(np.abs(a * b)) * correlation
        both = a + ratio[:, i] * ratio[:, j] * b - (ratio[:, i] + ratio[:, j]) * cross
        return np.asarray(both / (bottom[:, i] * bottom[:, j]))

    std = np.stack([np.sqrt(np.maximum(covary(t, t), 0.0)) for t in range(len(inverse))])
    return ratio.T, std, covary


def _first(row: Any) -> Any:
    """Coordinates of the groups (`view_levels`), or of the constant."""
    return row[:, 0] if row is not None and row.ndim > 1 else 0


def _smooth(values: Floats, covariance: Floats) -> tuple[Floats, Floats]:
    """Posterior means (groups, periods) and covariances (groups, periods, periods) of a random walk with noise.

    ``E[x | z] = z - S D' (D S D' + tau^2)^-1 D z`` for differences D, and the covariance is ``S`` less the same of S;
    differences of z have the covariance ``D S D' + tau^2``. All is averaged over tau by its likelihood.
    """
    differences = np.diff(np.eye(len(covariance)), axis=0)
    spread = covariance @ differences.T
    eigenvalues, vectors = np.linalg.eigh(differences @ spread)
    rotated = spread @ vectors
    variances = np.maximum(eigenvalues, 0.0) + _STEPS[:, None] ** 2
    found = []
    for value in values:
        turned = vectors.T @ (differences @ value)
        likelihood = -0.5 * (np.log(variances) + turned**2 / variances).sum(axis=1)
        weights = np.exp(likelihood - likelihood.max())
        weights /= weights.sum()
        means = value - (turned / variances) @ rotated.T
        mean = weights @ means
        apart = means - mean
        told = (rotated * (weights @ (1 / variances))) @ rotated.T
        found.append((mean, covariance - told + (apart * weights[:, None]).T @ apart))
    return np.stack([mean for mean, _ in found]), np.stack([one for _, one in found])
