"""Models fitted to moments: linear regression, discriminant analysis and principal components; post-processing.

Error bars come from simulation: noise is drawn again about the released moments, which are public, and the spread of
the results is reported.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from matrixdp.answers.draws import draw_range
from matrixdp.answers.estimate import HIDDEN, NOISE_NOTE, TOO_FEW, Estimate, join, settle
from matrixdp.answers.noise_law import DRAWS, robust_spread
from matrixdp.answers.view import MomentView, view_moments
from matrixdp.checks import check_integer
from matrixdp.design.design import Design
from matrixdp.display import render_card, render_note, table_repr
from matrixdp.domain.person import least_sample
from matrixdp.errors import ParameterError, show
from matrixdp.intervals import Pair, Range, extend_range, interval
from matrixdp.types import Floats

FIT = ("share explained", "residual std")
SEPARATION = 6.0  # of two principal components, in standard deviations of the noise that mixes them
_NORMAL = 1.96
_REACH = 1.0  # of slopes, in units of the one with which a feature would explain the target alone
_HIDDEN = 1.5  # standard deviations of the noise, for a variance that it hides


@dataclass(frozen=True, eq=False)
class Regression:
    """A linear regression.

    Attributes
    ----------
    terms : Estimate of shape (m + 1, 2)
        Coefficient, with the error bar of the privacy noise, and "sampling std", the standard error for the population
        of which the records are a sample; of "intercept", the numbers, and "column=level" for all levels of a category
        but the first, its reference. Where features are nearly collinear, noise hides which of them matters
        (`hide_undetermined`), and a coefficient has a plausible range.
    fit : Estimate of shape (2, 1)
        "share explained", R^2, and "residual std", the standard deviation of what is not explained.
    """

    target: str
    terms: Estimate
    fit: Estimate

    names = property(attrgetter("terms.rows"), doc="The terms.")

    coefficients = property(lambda self: self.terms.value[:, 0], doc="Of each term, of shape (m + 1,).")
    noise_std = property(lambda self: self.terms.std[:, 0], doc="Their errors by privacy; NaN where noise hides one.")
    sampling_std = property(lambda self: self.terms.value[:, 1], doc="Their standard errors for the population.")

    @property
    def r_squared(self) -> float:
        """Share of the target's variance that is explained; `fit` has its range."""
        return float(self.fit.value[0, 0])

    @property
    def std(self) -> Floats:
        """Standard error of each coefficient, with both noise and sampling; NaN where noise hides it."""
        return np.asarray(np.hypot(self.noise_std, self.sampling_std))

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Bounds that contain the coefficient of the population with probability `level`, or what is plausible."""
        firm, whole = interval(self.coefficients, self.std, level), self.terms.interval(level)
        reach = interval(np.zeros(()), whole[1][:, 1], level)  # of the largest plausible sampling error
        plausible = self.terms.plausible[:, 0]
        low, high = (np.where(plausible, end[:, 0] + by, one) for end, by, one in zip(whole, reach, firm, strict=True))
        return low, high

    @property
    def named(self) -> Estimate:
        """The terms with the 95% bounds of the coefficients of the population, of shape (m + 1, 4)."""
        ends = np.column_stack(self.interval())
        bounds = Estimate(ends, np.full_like(ends, np.nan), self.names, ("95% low", "95% high"), reasons=HIDDEN)
        return join((self.terms, bounds), self.names, self.terms.columns + bounds.columns, 1)

    def _repr_html_(self) -> str:
        notes = "The bounds cover privacy noise and sampling.", *self.terms.list_notes()
        tables = self.named.render(), self.fit.render()
        return render_card(f"Regression of {self.target}", *tables, *map(render_note, notes))

    def __repr__(self) -> str:
        return table_repr(self, len(self.names), 4)

    def __str__(self) -> str:
        """A table of coefficients."""
        return f"{self.target}\n{self.fit}\n{self.named}"


@dataclass(frozen=True, eq=False)
class Discriminant:
    """Linear discriminant analysis of a category, `target`.

    `terms`, of shape (features + 1, classes), has the scores of each class: "intercept", and the coefficients of the
    features, as for `Regression`. Error bars are those of the difference from the mean over all classes; scores that
    differ by the same number in all classes classify alike.
    """

    target: str
    terms: Estimate

    classes = property(attrgetter("terms.columns"), doc="The levels that are told apart.")

    @property
    def names(self) -> tuple[str, ...]:
        """The features."""
        return self.terms.rows[1:]

    def _repr_html_(self) -> str:
        title = f"Linear discriminant analysis of {self.target}"
        return render_card(title, self.terms.render(), render_note(NOISE_NOTE))

    def __repr__(self) -> str:
        return table_repr(self, *self.terms.value.shape)

    def __str__(self) -> str:
        """A table of the scores."""
        return f"scores of {self.target}\n{self.terms}"

    def scores(self, features: Floats) -> Floats:
        """Scores of records, of shape (records, classes); `features` are in the order of `names`."""
        intercepts, coefficients = self.terms.value[0], self.terms.value[1:]
        return np.asarray(features @ coefficients + intercepts)

    def predict(self, features: Floats) -> NDArray[Any]:
        """The class with the largest score for each record."""
        return np.asarray(np.array(self.classes)[np.argmax(self.scores(features), axis=1)])


def hide_undetermined(slope_std: Floats, feature_std: Floats, target_std: Any) -> Floats:
    """Errors of slopes, (..., m); NaN where a 95% interval reaches further than what explains the target alone."""
    return np.where(_NORMAL * slope_std * feature_std >= _REACH * target_std, np.nan, slope_std)


# Variables, and their means and covariances


class Variables(NamedTuple):
    """Coordinates of z that a model uses: numbers and levels of categories, named "column=level"."""

    columns: tuple[str, ...]  # of each
    names: tuple[str, ...]
    values: NDArray[np.intp]  # of shape (n,), as for `Place`, as is `observed`
    observed: NDArray[np.intp]

    def middles(self, view: MomentView) -> Floats:
        """Middles of the bounds, 0 for levels, of shape (n,)."""
        known = dict(zip(view.numbers, view.middles.tolist(), strict=True))
        return np.array([known.get(name, 0.0) for name in self.columns])


def list_variables(view: MomentView, columns: Iterable[str], *, reference: Iterable[str] = ()) -> Variables:
    """One variable for a number, and one for each level of a category; not for the first if it is in `reference`."""
    found: list[tuple[str, str, int, int]] = []
    for name in columns:
        place = view.place(name)
        if not place.levels:
            found.append((name, name, place.value, place.observed))
            continue
        levels = [(name, f"{name}={level}", place.value + k, 0) for k, level in enumerate(place.levels)]
        found += levels[int(name in reference) :]
    owners, names, values, observed = zip(*found, strict=True) if found else ((),) * 4
    return Variables(owners, names, np.array(values, np.intp), np.array(observed, np.intp))


def choose_predictors(names: Sequence[str], target: str, on: Sequence[str] | None) -> tuple[str, ...]:
    """The predictors of a model: those named, or all columns but the target."""
    if isinstance(on, str):
        raise ParameterError(
            "on must be a list of columns, as in ['age', 'bmi'], got a string instead.", parameter="on"
        )
    chosen = tuple(name for name in names if name != target) if on is None else tuple(on)
    if not chosen:
        raise ParameterError("on must name at least one column besides the target.", parameter="on")
    for name in chosen:
        if name not in names:
            known = ", ".join(names[:20])
            raise ParameterError(f"on must name columns among {known}, got {show(name)} instead.", parameter="on")
    if target in chosen or len(set(chosen)) != len(chosen):
        raise ParameterError("on must name different columns, and not the target.", parameter="on")
    return chosen


def _list_predictors(view: MomentView, target: str, on: Sequence[str] | None) -> tuple[tuple[str, ...], Variables]:
    """The columns and the variables that predict a target."""
    for name in () if on is None or isinstance(on, str) else on:
        view.place(name)  # raises for a column of groups
    chosen = choose_predictors(tuple(view.places), target, on)
    found = list_variables(view, chosen, reference=chosen)
    if not found.names:
        raise ParameterError("on must have at least one number, or a category of two levels.", parameter="on")
    return chosen, found


class PairMoments(NamedTuple):
    """Means, covariances and noise of products of variables, (..., n) and twice (..., n, n), where both are there."""

    mean: Floats
    covariance: Floats
    noise: Floats


def pair_moments(view: MomentView, variables: Variables) -> PairMoments:
    """Moments of variables, without the bias of noise in squared means."""
    x, r = variables.values, variables.observed
    products, sizes = np.ix_(x, x), np.ix_(r, r)
    released, rows = view.law.released, np.arange(x.size)
    least = np.maximum(np.sqrt(released[sizes]), 1e-300)  # the smallest share of records to divide by
    size = np.maximum(view.read(*sizes), least)
    first = view.read(*np.ix_(x, r)) / size
    covariance = view.read(*products) / size - first * first.mT
    covariance[..., rows, rows] += view.law.covariance(x, r, x, r) / size[..., rows, rows] ** 2
    symmetric = (covariance + covariance.mT) / 2
    return PairMoments(first[..., rows, rows], symmetric, np.sqrt(released[products]) / size)


def split_inverse(covariance: Floats, noise: Floats) -> Pair:
    """Inverse over the directions whose variance stands out from the noise, in units of the noise; and over the others.

    The variance of the others is taken to be `_HIDDEN` standard deviations of the noise. All are of shape (..., n, n).
    """
    scale = _find_scale(covariance, noise)
    outer = scale[..., None, :] * scale[..., None]
    values, vectors = np.linalg.eigh(covariance / outer)
    unit = np.median((noise / outer).reshape(*scale.shape[:-1], -1), axis=-1)
    kept = values > np.maximum(unit * np.sqrt(scale.shape[-1]), 1e-12)[..., None]
    kept[..., -1] |= ~kept.any(axis=-1) & (values[..., -1] > 0)
    directions, weights = vectors / scale[..., None], np.where(kept, 1 / np.where(kept, values, 1.0), 0.0)
    hidden = directions * ~kept[..., None, :]
    rest = hidden @ hidden.mT / np.maximum(_HIDDEN * unit, 1e-300)[..., None, None]
    return (directions * weights[..., None, :]) @ directions.mT, rest


def _find_scale(covariance: Floats, noise: Floats) -> Floats:
    """Standard deviation of each variable, from its variance or the noise in it, if either is positive; (..., n)."""
    square = np.diagonal(np.maximum(covariance, noise), axis1=-2, axis2=-1)
    return np.sqrt(np.where(square > 0, square, 1.0))


def simulate(view: MomentView, statistic: Callable[[MomentView], Floats], count: int = DRAWS) -> Floats:
    """A statistic of moments with noise drawn again about those of a view, of shape (count, ...)."""
    return np.concatenate([statistic(replace(view, matrix=stack)) for stack in view.law.stacks(view.matrix, count)])


# Regression


def regression(
    matrix: Floats, design: Design, target: str, on: Sequence[str] | None = None, group: Any = None
) -> Regression:
    """Regression of a number on others, by default all, and categories; directions that noise hides get no weight."""
    view = view_moments(matrix, design, group)
    fit = RegressionFit(view, target, on)
    spread = robust_spread(simulate(view, lambda noisy: fit.solve(noisy).coefficients))
    return fit.describe(view, fit.solve(view).find_bars(spread), plausible=True)


class Solution(NamedTuple):
    """Regressions from stacks of moments: the terms of each, of shape (..., m + 1), and how well it fits, (...)."""

    coefficients: Floats
    sampling: Floats  # standard errors for the population
    hidden: Floats  # variances of what noise leaves open
    scale: Floats  # standard deviations of the features and the target, or of their noise
    share: Floats
    residual: Floats

    def find_bars(self, spread: Floats) -> Floats:
        """Error bars of the coefficients of noisy moments, if noise spreads them by `spread`; NaN if it hides one."""
        bars: Floats = np.hypot(spread, np.sqrt(np.maximum(self.hidden, 0.0)))
        bars[..., 1:] = hide_undetermined(bars[..., 1:], self.scale[..., :-1], self.scale[..., -1:])
        return bars


class RegressionFit:
    """A linear regression on some columns, by default all others, as a function of moments."""

    def __init__(self, view: MomentView, target: str, on: Sequence[str] | None = None) -> None:
        if view.place(target).levels:
            raise ParameterError(f"column {target!r} must hold numbers, and it is a category.")
        columns, predictors = _list_predictors(view, target, on)
        self._target, self._names = target, ("intercept", *predictors.names)
        self._variables = list_variables(view, (*columns, target), reference=columns)
        self._middles = self._variables.middles(view)

    @np.errstate(over="ignore", invalid="ignore")  # of variances that are hidden, in moments without noise
    def solve(self, view: MomentView) -> Solution:
        """The regression."""
        moments = pair_moments(view, self._variables)
        s, c = moments.covariance[..., :-1, :-1], moments.covariance[..., :-1, -1]
        inverse, hidden = split_inverse(s, moments.noise[..., :-1, :-1])
        slopes, centre = (inverse @ c[..., None])[..., 0], moments.mean + self._middles
        intercept = centre[..., -1] - (slopes * centre[..., :-1]).sum(axis=-1)
        total = np.maximum(moments.covariance[..., -1, -1], 0.0)
        explained = 2 * (slopes * c).sum(axis=-1) - np.einsum("...i,...ij,...j->...", slopes, s, slopes)
        residual = np.clip(total - explained, 0.0, total)
        size = view.read(0, 0) * view.query.records
        rows = np.vectorize(partial(least_sample, person=view.query.person))(size)
        variances = _join_intercept(inverse, centre[..., :-1])
        variances[..., 0] += 1
        sampling = (residual / np.maximum(rows - len(self._names), 1.0))[..., None] * np.maximum(variances, 0.0)
        scale = _find_scale(moments.covariance, moments.noise)
        return Solution(
            np.concatenate([intercept[..., None], slopes], axis=-1),
            np.sqrt(sampling),
            _join_intercept(scale[..., -1:, None] ** 2 * hidden, centre[..., :-1]),
            scale,
            np.where(total > 0, 1 - residual / np.where(total > 0, total, 1.0), 0.0),
            np.sqrt(residual),
        )

    def describe(self, view: MomentView, noise_std: Floats, *, plausible: bool = False) -> Regression:
        """The regression with these error bars; what these leave open, and how well it fits, may be from draws."""
        found, most = self.solve(view), float(view.halfwidths[view.numbers.index(self._target)])
        named = partial(name_regression, self._target, self._names, found.coefficients, noise_std, most=most)
        if not plausible:
            return named(found.sampling, np.array([found.share, found.residual]))

        def draw(*names: str) -> Range | None:
            return draw_range(view, lambda drawn: np.stack(attrgetter(*names)(self.solve(drawn)), axis=-1))

        return named(ranges=(partial(draw, "coefficients", "sampling"), partial(draw, "share", "residual")))


def name_regression(
    target: str,
    names: tuple[str, ...],
    coefficients: Floats,
    noise_std: Floats,
    sampling: Any = np.nan,
    shares: Any = np.nan,
    *,
    most: float,
    ranges: tuple[Callable[[], Range | None], Callable[[], Range | None]] | tuple[None, None] = (None, None),
) -> Regression:
    """A regression, with its `shares`: R^2 and the standard deviation of the rest, which is at most `most`.

    What is NaN, or noise hides, has plausible `ranges`: of the terms, (m + 1, 2), and of the shares, (2,).
    """
    shown = np.where(np.isfinite(noise_std), coefficients, np.nan)
    value, std = np.stack(np.broadcast_arrays(shown, sampling), 1), np.stack(np.broadcast_arrays(noise_std, np.nan), 1)
    columns, possible = ("coefficient", "sampling std"), (np.array([-math.inf, 0.0]), math.inf)
    terms = settle(value, std, names, columns, possible, ranges[0], plausible=True, reasons=HIDDEN)
    ends = np.array([0.0, np.nan]), np.array([1.0, np.nan])  # of the scale of R^2

    def find_fit() -> Range | None:
        found = ranges[1] and ranges[1]()
        return found and Range(*(part[:, None] for part in extend_range(found, ends)))

    within, found = (0.0, np.array([[1.0], [most]])), ranges[1] and find_fit
    fit = settle(np.broadcast_to(shares, 2)[:, None], np.nan, FIT, (target,), within, found, plausible=True)
    return Regression(target, terms, fit)


def _join_intercept(inverse: Floats, centre: Floats) -> Floats:
    """Variances of intercept and slopes, (..., m + 1), for slopes whose covariance is `inverse`, about `centre`."""
    own = np.einsum("...i,...ij,...j->...", centre, inverse, centre)
    return np.concatenate([own[..., None], np.diagonal(inverse, axis1=-2, axis2=-1)], axis=-1)


# Discriminant analysis


def discriminant(
    matrix: Floats, design: Design, target: str, on: Sequence[str] | None = None, group: Any = None
) -> Discriminant:
    """Linear discriminant analysis: class means and the covariance that classes share."""
    view = view_moments(matrix, design, group)
    levels = view.levels(target)
    _, variables = _list_predictors(view, target, on)
    kept = np.flatnonzero(view.stands_out(0, levels))
    if not kept.size:
        raise ParameterError("no class is large enough to stand out from its noise; use a larger epsilon.")
    classes, middles = levels[kept], variables.middles(view)
    least = view.law.entry_std(0, classes)

    def fit(noisy: MomentView) -> Floats:
        """Intercepts, then coefficients, of shape (..., classes, 1 + features)."""
        moments = pair_moments(noisy, variables)
        sizes = noisy.read(classes[:, None], variables.observed)
        sums = noisy.read(classes[:, None], variables.values)
        means = np.where(sizes > 0, sums / np.where(sizes > 0, sizes, 1.0), 0.0)
        shares = np.maximum(noisy.read(0, classes), least)
        weights = shares / shares.sum(axis=-1, keepdims=True)
        apart = means - moments.mean[..., None, :]
        between = (apart * weights[..., None]).mT @ apart
        coefficients = means @ split_inverse(moments.covariance - between, moments.noise)[0]
        intercepts = np.log(weights) - 0.5 * (coefficients * means).sum(axis=-1) - coefficients @ middles
        return np.concatenate([intercepts[..., None], coefficients], axis=-1)

    draws, names = simulate(view, fit), tuple(view.places[target].levels[k] for k in kept)
    std = robust_spread(draws - draws.mean(axis=1, keepdims=True))
    return Discriminant(target, Estimate(fit(view).T, std.T, ("intercept", *variables.names), names))


# Principal components


def components(
    matrix: Floats, design: Design, count: int | None = None, group: Any = None, *, plausible: bool = True
) -> Estimate:
    """Principal components of the numbers, standardised, of shape (numbers + 1, count); variances in the last row.

    Where variances are closer than `SEPARATION` deviations of the noise that mixes two, ranges are plausible, or NaN.
    """
    view = view_moments(matrix, design, group)
    names = view.numbers
    number = check_components(names, count)
    variables = list_variables(view, names)

    def standardise(noisy: MomentView) -> Floats:
        moments = pair_moments(noisy, variables)
        scale = _find_scale(moments.covariance, moments.noise)
        return np.asarray(moments.covariance / scale[..., None, :] / scale[..., None])

    released, drawn = standardise(view), simulate(view, standardise)
    values, vectors = find_components(released)
    gaps = np.abs(values - values[:, None])
    mixing = robust_spread(vectors.T @ (drawn - released) @ vectors)
    np.fill_diagonal(gaps, np.inf)
    nearest = np.argmin(gaps / np.maximum(mixing, 1e-300), axis=1)
    drawn_values, drawn_vectors = find_components(drawn, vectors)
    with np.errstate(divide="ignore"):
        apart = (mixing**2 / np.where(np.isinf(gaps), np.inf, values[:, None] - values)).sum(axis=1)
    value = np.vstack([vectors, np.maximum(values - apart, 0.0)])  # noise moves variances apart
    std = robust_spread(np.concatenate([drawn_vectors, drawn_values[:, None]], axis=1))

    def find(possible: MomentView) -> Floats:
        variances, directions = find_components(standardise(possible), vectors)
        return np.concatenate([directions, variances[:, None]], axis=1)[..., :number]

    reasons = np.empty(value.shape, object)
    for k, other in enumerate(nearest.tolist()):
        if gaps[k, other] < SEPARATION * mixing[k, other]:
            value[:, k], std[:, k], reasons[:, k] = np.nan, np.nan, f"not separated from PC{other + 1}"
    ranges = partial(draw_range, view, find) if plausible else None
    return name_components(names, value[:, :number], std[:, :number], ranges, reasons[:, :number])


def name_components(
    names: tuple[str, ...],
    value: Floats,
    std: Floats,
    ranges: Callable[[], Range | None] | None = None,
    reasons: Any = TOO_FEW,
) -> Estimate:
    """Loadings and, in the last row, variances of components with names."""
    own = np.arange(len(value))[:, None] < len(names)
    possible = np.where(own, -1.0, 0.0), np.where(own, 1.0, float(len(names)))
    titles = tuple(f"PC{k + 1}" for k in range(value.shape[1]))
    return settle(value, std, (*names, "variance"), titles, possible, ranges, plausible=True, reasons=reasons)


def check_components(names: Sequence[str], count: int | None) -> int:
    """The number of principal components: `count`, or one for each column."""
    if len(names) < 2:
        raise ParameterError("principal components need at least two columns of numbers.")
    return check_integer(len(names) if count is None else count, "count", at_least=1, at_most=len(names))


def find_components(correlation: Floats, reference: Floats | None = None) -> tuple[Floats, Floats]:
    """Variances, the largest first, and directions as columns, of shapes (..., n) and (..., n, n).

    The largest entry of a direction is positive, or its product with the same column of `reference`.
    """
    values, vectors = (array[..., ::-1] for array in np.linalg.eigh(correlation))
    if reference is None:
        places = np.abs(vectors).argmax(axis=-2, keepdims=True)
        signs = np.take_along_axis(vectors, places, axis=-2)
    else:
        signs = (vectors * reference).sum(axis=-2, keepdims=True)
    return values, vectors * np.where(signs < 0, -1.0, 1.0)
