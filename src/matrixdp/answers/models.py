"""Models fitted to the moments of a table: linear regression and discriminant analysis.

All of it is post-processing. Error bars come from simulation: noise is drawn again about the released moments, which
are public, and the spread of the results is reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from matrixdp.answers.estimate import HIDDEN, NOISE_NOTE, Estimate
from matrixdp.answers.noise_draws import draw_again, robust_spread
from matrixdp.answers.pairs import Pairs, Variable, choose_variables, pseudo_inverse
from matrixdp.answers.table_view import TableView, select_groups
from matrixdp.checks import check_number
from matrixdp.design.design import Design
from matrixdp.display import format_number, load_pandas, render_card, render_note, render_table, table_repr
from matrixdp.domain.person import least_sample
from matrixdp.errors import ParameterError
from matrixdp.plots import clean_label, plot_bars
from matrixdp.types import Floats

_NORMAL = 1.96
_REACH = 1.0  # of slopes, in units of the one with which a feature would explain the target alone


@dataclass(frozen=True, eq=False)
class Regression:
    """A linear regression.

    Attributes
    ----------
    target : str
    names : tuple of str
        "intercept", the numbers, and "column=level" for all levels of a category but the first, its reference.
    coefficients : float64 array of shape (m + 1,)
    noise_std : float64 array of shape (m + 1,)
        Standard deviation of the error that privacy causes in each coefficient. NaN where noise hides the coefficient:
        features are nearly collinear, and the interval would be wider than what slopes can be (`hide_undetermined`).
    sampling_std : float64 array of shape (m + 1,)
        Standard error of each coefficient for the population from which the records are a sample.
    r_squared : float
        Share of the target's variance that is explained.
    """

    target: str
    names: tuple[str, ...]
    coefficients: Floats
    noise_std: Floats
    sampling_std: Floats
    r_squared: float

    @property
    def std(self) -> Floats:
        """Standard error of each coefficient, with both noise and sampling."""
        return np.hypot(self.noise_std, self.sampling_std)

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Bounds that contain the coefficient of the population with probability `level`; NaN where noise hides it."""
        reach = float(ndtri((1 + check_number(level, "level", above=0, below=1)) / 2)) * self.std
        return self.coefficients - reach, self.coefficients + reach

    def to_frame(self, *, level: float = 0.95) -> Any:
        """A pandas data frame with value, noise_std, sampling_std, low and high of each coefficient."""
        low, high = self.interval(level)
        columns = {"value": self.coefficients, "noise_std": self.noise_std, "sampling_std": self.sampling_std}
        return load_pandas().DataFrame({**columns, "low": low, "high": high}, index=list(self.names))

    def plot(self, *, ax: Any = None, level: float = 0.95) -> Any:
        """The coefficients without the intercept, with error bars for noise and sampling; returns matplotlib axes."""
        title = f"coefficients for {clean_label(self.target)}"
        ax = plot_bars(self.coefficients[1:], self.std[1:], self.names[1:], title=title, level=level, ax=ax)
        ax.set_xlabel(f"bars: {level:.0%} of noise and sampling")
        return ax

    def _repr_html_(self) -> str:
        low, high = self.interval()
        head = ("", "coefficient", "noise std", "sampling std", "95% low", "95% high")
        columns = zip(self.coefficients, self.noise_std, self.sampling_std, low, high, strict=True)
        rows = [(name, *(format_number(x, 4) for x in row)) for name, row in zip(self.names, columns, strict=True)]
        note = render_note("The bounds cover privacy noise and sampling.")
        return render_card(f"Regression of {self.target}, R² {self.r_squared:.3f}", render_table(head, rows), note)

    def __repr__(self) -> str:
        return table_repr(self, len(self.names), 5)

    def __str__(self) -> str:
        """A table of coefficients."""
        low, high = self.interval()
        value = np.column_stack([self.coefficients, self.noise_std, self.sampling_std, low, high])
        columns = ("coefficient", "noise std", "sampling std", "95% low", "95% high")
        table = Estimate(value, np.zeros_like(value), self.names, columns, np.full(value.shape, HIDDEN, object))
        return f"{self.target}, R^2 {self.r_squared:.3f}\n{table}"


@dataclass(frozen=True, eq=False)
class Discriminant:
    """Linear discriminant analysis of a category.

    Attributes
    ----------
    target : str
    classes : tuple of str
    names : tuple of str
        The features, as for `Regression`, without the intercept.
    coefficients : float64 array of shape (classes, features)
    intercepts : float64 array of shape (classes,)
    coefficient_std, intercept_std : float64 arrays of the same shapes
        Standard deviation of the privacy noise in the difference from the mean over all classes; scores that differ by
        the same number in all classes classify alike.
    """

    target: str
    classes: tuple[str, ...]
    names: tuple[str, ...]
    coefficients: Floats
    intercepts: Floats
    coefficient_std: Floats
    intercept_std: Floats

    @property
    def named(self) -> Estimate:
        """Coefficients and intercepts with their names, of shape (features + 1, classes)."""
        value = np.column_stack([self.intercepts, self.coefficients]).T
        std = np.column_stack([self.intercept_std, self.coefficient_std]).T
        return Estimate(value, std, ("intercept", *self.names), self.classes)

    def to_frame(self, *, long: bool = False, level: float = 0.95) -> Any:
        """The coefficients as a pandas data frame, one column a class; as `Estimate.to_frame`."""
        return self.named.to_frame(long=long, level=level)

    def plot(self, *, ax: Any = None, level: float = 0.95) -> Any:
        """The coefficients without the intercepts, a panel of error bars for each class; returns matplotlib axes."""
        estimate = Estimate(self.coefficients.T, self.coefficient_std.T, self.names, self.classes)
        return estimate.plot(kind="bars", ax=ax, level=level)

    def _repr_html_(self) -> str:
        title = f"Linear discriminant analysis of {self.target}"
        return render_card(title, self.named.render(), render_note(NOISE_NOTE))

    def __repr__(self) -> str:
        return table_repr(self, *self.named.value.shape)

    def __str__(self) -> str:
        """A table of the scores."""
        return f"scores of {self.target}\n{self.named}"

    def scores(self, features: Floats) -> Floats:
        """Scores of records, of shape (records, classes); `features` are in the order of `names`."""
        return np.asarray(features @ self.coefficients.T + self.intercepts)

    def predict(self, features: Floats) -> NDArray[Any]:
        """The class with the largest score for each record."""
        return np.asarray(np.array(self.classes)[np.argmax(self.scores(features), axis=1)])


def hide_undetermined(slope_std: Floats, feature_std: Floats, target_std: float) -> Floats:
    """Standard deviations of slopes, NaN where a 95% interval reaches further than a feature can matter.

    That is the slope with which a feature would explain the target alone, times `_REACH`.

    Parameters
    ----------
    slope_std, feature_std : float64 arrays of shape (m,)
    target_std : float
    """
    return np.where(_NORMAL * slope_std * feature_std >= _REACH * target_std, np.nan, slope_std)


def regression(
    matrix: Floats, design: Design, target: str, features: Sequence[str] | None = None, group: Any = None
) -> Regression:
    """Regression of a number on numbers and categories; by default on all other columns.

    Where noise makes the moments of the features indefinite or nearly so, directions that noise hides get no weight.
    What this may take from a coefficient is part of `noise_std`: there, a slope may be anything that the variance of
    the target allows.
    """
    view = select_groups(matrix, design, group)
    fit = RegressionFit(view, target, features)
    spread = robust_spread(np.array([fit.solve(noisy) for noisy in draw_again(view)]))
    return fit.describe(view.matrix, fit.find_bars(view.matrix, spread))


class RegressionFit:
    """A linear regression as a function of the moments of a table.

    Parameters
    ----------
    view : TableView
    target : str
    features : sequence of str, optional
        By default all other columns.
    """

    def __init__(self, view: TableView, target: str, features: Sequence[str] | None = None) -> None:
        place = view.number(target)
        variables = choose_variables(view, features, target)
        self._view, self._target, self._count = view, target, len(variables)
        self._pairs = Pairs(view, (*variables, Variable(target, place.value, place.observed)))
        self._middles = np.array([view.middle(variable.column) for variable in variables])
        self._target_middle = view.middle(target)
        self._names = ("intercept", *(variable.name for variable in variables))

    def solve(self, matrix: Floats, *, noisy: bool = True) -> Floats:
        """The coefficients, of shape (m + 1,); `noisy` says whether the moments have noise."""
        moments = self._pairs.moments(matrix, noisy=noisy)
        slopes = moments.inverse(self._count) @ moments.covariance[:-1, -1]
        centre = moments.mean[:-1] + self._middles
        return np.concatenate([[self._target_middle + moments.mean[-1] - slopes @ centre], slopes])

    def find_bars(self, matrix: Floats, spread: Floats) -> Floats:
        """Error bars of the coefficients for noisy moments, if noise spreads them by `spread`; NaN if it hides one."""
        moments = self._pairs.moments(matrix)
        centre = moments.mean[:-1] + self._middles
        least = np.maximum(np.diagonal(moments.covariance), np.diagonal(moments.noise))  # variances, or their noise
        hidden = least[-1] * moments.hidden_inverse(self._count)
        unknown = np.append(centre @ hidden @ centre, np.diagonal(hidden))
        bars: Floats = np.hypot(spread, np.sqrt(np.maximum(unknown, 0.0)))
        bars[1:] = hide_undetermined(bars[1:], np.sqrt(least[:-1]), float(np.sqrt(least[-1])))
        return bars

    def describe(self, matrix: Floats, noise_std: Floats, *, noisy: bool = True) -> Regression:
        """The regression, with these error bars."""
        coefficients = self.solve(matrix, noisy=noisy)
        moments = self._pairs.moments(matrix, noisy=noisy)
        s, c = moments.covariance[:-1, :-1], moments.covariance[:-1, -1]
        slopes = coefficients[1:]
        total = max(float(moments.covariance[-1, -1]), 0.0)
        residual = min(max(float(total - 2 * slopes @ c + slopes @ s @ slopes), 0.0), total)
        rows = least_sample(float(matrix[0, 0]) * self._view.query.records, self._view.query.person)
        sampling = residual / max(rows - self._count - 1, 1.0)
        inverse = moments.inverse(self._count)
        centre = moments.mean[:-1] + self._middles
        variances = np.append(1 + float(centre @ inverse @ centre), np.diagonal(inverse))
        explained = 1 - residual / total if total > 0 else 0.0
        sampling_std = np.sqrt(sampling * np.maximum(variances, 0.0))
        return Regression(self._target, self._names, coefficients, noise_std, sampling_std, float(explained))


def discriminant(
    matrix: Floats,
    design: Design,
    target: str,
    features: Sequence[str] | None = None,
    group: Any = None,
    *,
    error_bars: bool = True,
) -> Discriminant:
    """Linear discriminant analysis: class means and the covariance that the classes share.

    Without `error_bars`, which are simulated, they are NaN.
    """
    view = select_groups(matrix, design, group)
    place = view.category(target)
    variables = choose_variables(view, features, target)
    pairs = Pairs(view, variables)
    kept = [k for k in range(len(place.levels)) if view.stands_out(0, place.value + k)]
    if not kept:
        raise ParameterError("no class is large enough to stand out from its noise; use a larger epsilon.")
    classes = place.value + np.array(kept)
    values, observed = (np.array([getattr(one, name) for one in variables]) for name in ("value", "observed"))
    middles = np.array([view.middle(variable.column) for variable in variables])
    least = np.array([view.std([(0, int(one), 1.0)]) for one in classes])

    def fit(noisy: Floats) -> Floats:
        """Intercepts, then coefficients, of shape (classes, 1 + features)."""
        moments = pairs.moments(noisy)
        sizes = noisy[np.ix_(classes, observed)]
        means = np.where(sizes > 0, noisy[np.ix_(classes, values)] / np.where(sizes > 0, sizes, 1.0), 0.0)
        shares = np.maximum(noisy[0, classes], least)
        weights = shares / shares.sum()
        apart = means - moments.mean
        inverse = pseudo_inverse(moments.covariance - (apart.T * weights) @ apart, moments.noise)
        coefficients = means @ inverse
        squares = np.einsum("ij,ij->i", coefficients, means)
        intercepts = np.log(weights) - 0.5 * squares - coefficients @ middles
        return np.column_stack([intercepts, coefficients])

    found = fit(view.matrix)
    std = np.full_like(found, np.nan)
    if error_bars:
        draws = np.array([fit(noisy) for noisy in draw_again(view)])
        std = robust_spread(draws - draws.mean(axis=1, keepdims=True))
    names = tuple(variable.name for variable in variables)
    return Discriminant(
        target, tuple(place.levels[k] for k in kept), names, found[:, 1:], found[:, 0], std[:, 1:], std[:, 0]
    )
