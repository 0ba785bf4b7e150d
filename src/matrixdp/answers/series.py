"""Numbers over time from a stream, with error bars: means and counts in each period, differences, smoothing.

The noise of different periods is correlated: its covariance over time is ``B B'``, with B the weights of what was
published in each period, times the covariance of the entries of one period. All of it is post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from matrixdp.answers.estimate import Estimate, settle
from matrixdp.answers.moments import ALL
from matrixdp.answers.view import LEAST_SIZE, MomentView, view_moments
from matrixdp.design.design import Design
from matrixdp.errors import ParameterError, show
from matrixdp.plots import open_axes
from matrixdp.queries import Moments, TableMoments
from matrixdp.types import Floats

_STEPS = np.geomspace(0.01, 100.0, 25)  # of the random walk, in units of the noise of a step
_MOST_SMOOTHED = 1000
SMOOTHED = "smoothed: numbers are assumed to change slowly, and bars rest on that"


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over records for each group and period, in standard deviations of a step's noise, with their errors.

    `value` has shape (groups, periods), and `covariance`, over time, (groups, periods, periods).
    """

    value: Floats
    covariance: Floats


@dataclass(frozen=True, eq=False)
class Series:
    """A number in each period, for each group, with error bars that are correlated over time.

    Attributes
    ----------
    what : str
        What it is a series of.
    periods, groups : tuple of str
    smoothed : bool
    value, std : float64 arrays of shape (periods, groups)
        NaN where noise hides the number of records.
    """

    what: str
    periods: tuple[str, ...]
    groups: tuple[str, ...]
    smoothed: bool
    value: Floats
    std: Floats
    limits: tuple[float, float]
    top: Sums
    bottom: Sums | None
    scales: tuple[float, float, float]  # of both sums, and the correlation of their noise
    middle: float

    @property
    def note(self) -> str:
        """How to read it."""
        return SMOOTHED if self.smoothed else "bars of two periods are correlated; use difference() to compare them"

    def to_estimate(self) -> Estimate:
        """Values and bars, with one row for each period."""
        return settle(self.value, self.std, self.periods, self.groups, possible=_as_arrays(*self.limits))

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
        value = self.value[i] - self.value[j]
        variance = self._covary(i, i) + self._covary(j, j) - 2 * self._covary(i, j)
        std = np.where(np.isfinite(value), np.sqrt(np.maximum(variance, 0.0)), np.nan)
        width = self.limits[1] - self.limits[0]
        return settle(
            value[:, None], std[:, None], self.groups, (f"{first} - {second}",), possible=_as_arrays(-width, width)
        )

    def _covary(self, i: int, j: int) -> Floats:
        """Covariance of the errors in two periods, to first order, of shape (groups,)."""
        return _covary(self.top, self.bottom, self.scales, self.value - self.middle, i, j)

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
        ax.set_ylabel(self.what + (" (smoothed)" if self.smoothed else ""))
        ax.set_title(title)
        if len(self.groups) > 1:
            ax.legend(fontsize="small")
        return ax

    def __str__(self) -> str:
        return f"{self.what} by period{', smoothed' * self.smoothed}\n{self.to_estimate()}\n{self.note}"

    def __repr__(self) -> str:
        size = f"{len(self.periods)} periods, {len(self.groups)} groups"
        return f"<Series of {self.what}, {size}{', smoothed' * self.smoothed}>"


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
    """The series of a column's mean, or of the number of records.

    `matrices` are the noisy moments of each period, and `inverse`, of shape (periods, periods), the weights of what was
    published in them: the noise of period t is that of `design` times the norm of row t.
    """
    query: Any = design.query
    if not isinstance(design.query, Moments | TableMoments):
        raise ParameterError(f"a series needs moments of a table, got {type(query).__name__}; use period() instead.")
    grouped = by is not None and by in getattr(query, "by", ())
    views = [view_moments(matrix, design, by=[str(by)] if grouped else ()) for matrix in matrices]
    view = views[0]
    if by is None or grouped:
        places: Any = np.zeros(1, np.intp)
        groups = (ALL,) if by is None else query.columns.category(by).level_names
    else:
        places, groups = view.levels(by), view.place(by).levels
    if column is None:
        top, bottom, middle, limits = (places, places), None, 0.0, (0.0, np.inf)
    else:
        place = view.place(column)
        if place.levels:
            raise ParameterError(f"column {column!r} must be a number, and it is a category.")
        number = view.numbers.index(column)
        half = float(view.halfwidths[number])
        middle = float(view.middles[number])
        limits = (middle - half, middle + half)
        top, bottom = (np.full_like(places, place.value), places), (np.full_like(places, place.observed), places)
    covariance = inverse @ inverse.T
    sums, scale = _read_sums(views, top, covariance, smooth=smooth)
    if bottom is None:
        counted, scales = None, (scale * query.records, 0.0, 0.0)
        value = sums.value.T * scales[0]
    else:
        counted, size = _read_sums(views, bottom, covariance, smooth=smooth)
        law, one = view.law, 0
        both = float(law.covariance(top[0][one], top[1][one], bottom[0][one], bottom[1][one]))
        scales = (scale, size, both / (scale * size))
        own = np.sqrt(np.maximum(np.diagonal(counted.covariance, axis1=1, axis2=2), 0.0))
        enough = counted.value > LEAST_SIZE * own
        with np.errstate(all="ignore"):
            ratio = np.where(enough, sums.value * scale / (counted.value * size), np.nan)
        value = ratio.T + middle
    variance = np.array([_covary(sums, counted, scales, value - middle, t, t) for t in range(len(periods))])
    std = np.where(np.isfinite(value), np.sqrt(np.maximum(variance, 0.0)), np.nan)
    what = "records" if column is None else f"mean of {column}"
    parts: dict[str, Any] = {"limits": limits, "top": sums, "bottom": counted, "scales": scales, "middle": middle}
    return Series(what, periods, tuple(groups), smooth, value, std, **parts)


def _as_arrays(low: float, high: float) -> tuple[Floats, Floats]:
    return np.array(low), np.array(high)


def _covary(
    top: Sums, bottom: Sums | None, scales: tuple[float, float, float], ratio: Floats, i: int, j: int
) -> Floats:
    """Covariance of the errors of a number in two periods, for each group; `ratio` has shape (periods, groups)."""
    first, second, correlation = scales
    upper = top.covariance[:, i, j] * first**2
    if bottom is None:
        return upper
    with np.errstate(all="ignore"):
        size_i, size_j = bottom.value[:, i] * second, bottom.value[:, j] * second
        lower = bottom.covariance[:, i, j] * second**2
        signs = np.sign(top.covariance[:, i, j] * bottom.covariance[:, i, j])
        cross = signs * np.sqrt(np.abs(upper * lower)) * correlation
        both = upper + ratio[i] * ratio[j] * lower - (ratio[i] + ratio[j]) * cross
        return np.asarray(both / (size_i * size_j))


def _read_sums(views: Sequence[MomentView], place: Any, covariance: Floats, *, smooth: bool) -> tuple[Sums, float]:
    """Entries of the moments over time, and the standard deviation of their noise in a step."""
    scale = float(np.ravel(views[0].law.entry_std(*place))[0])
    value = np.stack([np.atleast_1d(view.read(*place)).reshape(-1) for view in views], axis=1) / scale
    if not smooth or len(views) < 3:
        return Sums(value, np.broadcast_to(covariance, (len(value), *covariance.shape))), scale
    if len(views) > _MOST_SMOOTHED:
        raise ParameterError(f"smooth is for at most {_MOST_SMOOTHED} periods, got {len(views)}.")
    found = [_smooth(one, covariance) for one in value]
    return Sums(np.stack([mean for mean, _ in found]), np.stack([cov for _, cov in found])), scale


def _smooth(value: Floats, covariance: Floats) -> tuple[Floats, Floats]:
    """Posterior mean and covariance under a random walk of unknown step, averaged over it by its likelihood.

    ``E[x | z] = z - S D' (D S D' + tau^2)^-1 D z`` for differences D, and the covariance is ``S`` less the same of S;
    differences of z have the covariance ``D S D' + tau^2``, from which the likelihood of tau follows.
    """
    differences = np.diff(np.eye(len(value)), axis=0)
    spread = covariance @ differences.T
    eigenvalues, vectors = np.linalg.eigh(differences @ spread)
    turned, rotated = vectors.T @ (differences @ value), spread @ vectors
    variances = np.maximum(eigenvalues, 0.0) + _STEPS[:, None] ** 2
    likelihood = -0.5 * (np.log(variances) + turned**2 / variances).sum(axis=1)
    weights = np.exp(likelihood - likelihood.max())
    weights /= weights.sum()
    means = value - (turned / variances) @ rotated.T
    mean = weights @ means
    apart = means - mean
    told = (rotated * (weights @ (1 / variances))) @ rotated.T
    return mean, covariance - told + (apart * weights[:, None]).T @ apart
