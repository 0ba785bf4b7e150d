"""Models fitted to the moments of a table: linear regression, discriminant analysis, principal components.

All of it is post-processing. Error bars come from simulation: noise is drawn again about the released moments, which
are public, and the spread of the results is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from matrixdp.answers.named import NamedEstimate
from matrixdp.answers.tables import TableView, select_groups
from matrixdp.checks import check_integer, check_number
from matrixdp.design.design import Design
from matrixdp.errors import ParameterError
from matrixdp.types import Floats

DRAWS = 1000  # of the noise, for error bars: their own error is about 3%
_QUARTILE = float(ndtri(0.75))
_FAR = 5.0  # standard deviations at which a draw is cut off, where a fit has poles


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
        Standard deviation of the privacy noise in each coefficient.
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
        """Bounds that contain the coefficient of the population with probability `level`."""
        reach = float(ndtri((1 + check_number(level, "level", above=0, below=1)) / 2)) * self.std
        return self.coefficients - reach, self.coefficients + reach

    def __str__(self) -> str:
        """A table of coefficients."""
        low, high = self.interval()
        value = np.column_stack([self.coefficients, self.noise_std, self.sampling_std, low, high])
        columns = ("coefficient", "noise std", "sampling std", "95% low", "95% high")
        table = NamedEstimate(value, np.zeros_like(value), self.names, columns)
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
    """

    target: str
    classes: tuple[str, ...]
    names: tuple[str, ...]
    coefficients: Floats
    intercepts: Floats

    def scores(self, features: Floats) -> Floats:
        """Scores of records, of shape (records, classes); `features` are in the order of `names`."""
        return np.asarray(features @ self.coefficients.T + self.intercepts)

    def predict(self, features: Floats) -> NDArray[Any]:
        """The class with the largest score for each record."""
        return np.asarray(np.array(self.classes)[np.argmax(self.scores(features), axis=1)])


def regression(
    matrix: Floats, design: Design, target: str, features: Sequence[str] | None = None, group: Any = None
) -> Regression:
    """Regression of a number on numbers and categories; by default on all other columns.

    Where noise makes the moments of the features indefinite or nearly so, directions that noise hides get no weight.
    """
    view = select_groups(matrix, design, group)
    place = view.number(target)
    variables = _variables(view, features, target)
    pairs = _Pairs(view, (*variables, _Variable(target, place.value, place.observed)))
    middles = np.array([view.middle(variable.column) for variable in variables])
    target_middle = view.middle(target)

    def fit(noisy: Floats) -> Floats:
        moments = pairs.moments(noisy)
        slopes = moments.inverse(len(variables)) @ moments.covariance[:-1, -1]
        centre = moments.mean[:-1] + middles
        return np.concatenate([[target_middle + moments.mean[-1] - slopes @ centre], slopes])

    coefficients = fit(view.matrix)
    moments = pairs.moments(view.matrix)
    s, c = moments.covariance[:-1, :-1], moments.covariance[:-1, -1]
    slopes = coefficients[1:]
    total = max(float(moments.covariance[-1, -1]), 0.0)
    residual = min(max(float(total - 2 * slopes @ c + slopes @ s @ slopes), 0.0), total)
    rows = max(float(view.matrix[0, 0]) * view.query.records, 1.0)
    sampling = residual / max(rows - len(variables) - 1, 1.0)
    inverse = moments.inverse(len(variables))
    centre = moments.mean[:-1] + middles
    intercept = sampling * (1 + float(centre @ inverse @ centre))
    sampling_std = np.sqrt(np.concatenate([[max(intercept, 0.0)], sampling * np.maximum(np.diagonal(inverse), 0.0)]))
    names = ("intercept", *(variable.name for variable in variables))
    explained = 1 - residual / total if total > 0 else 0.0
    return Regression(target, names, coefficients, _noise_std(view, fit), sampling_std, float(explained))


def discriminant(
    matrix: Floats, design: Design, target: str, features: Sequence[str] | None = None, group: Any = None
) -> Discriminant:
    """Linear discriminant analysis: class means and the covariance that the classes share."""
    view = select_groups(matrix, design, group)
    place = view.category(target)
    variables = _variables(view, features, target)
    moments = _Pairs(view, variables).moments(view.matrix)
    shares = view.matrix[0, place.value : place.value + len(place.levels)]
    kept = [k for k in range(len(place.levels)) if view.stands_out(0, place.value + k)]
    if not kept:
        raise ParameterError("no class is large enough to stand out from its noise; use a larger epsilon.")
    shares = np.maximum(shares, 0.0)
    means = np.zeros((len(place.levels), len(variables)))
    for k in kept:
        row = view.matrix[place.value + k]
        means[k] = [_safe_ratio(row[one.value], row[one.observed]) for one in variables]
    weights = shares[kept] / shares[kept].sum()
    apart = means[kept] - moments.mean
    within = moments.covariance - (apart.T * weights) @ apart
    inverse = _pseudo_inverse(within, moments.noise)
    middles = np.array([view.middle(variable.column) for variable in variables])
    coefficients = means[kept] @ inverse
    intercepts = np.log(weights) - 0.5 * np.einsum("ij,ij->i", coefficients, means[kept]) - coefficients @ middles
    names = tuple(variable.name for variable in variables)
    return Discriminant(target, tuple(place.levels[k] for k in kept), names, coefficients, intercepts)


def components(matrix: Floats, design: Design, count: int | None = None, group: Any = None) -> NamedEstimate:
    """Principal components of the numbers, standardised, of shape (numbers + 1, count); variances in the last row."""
    view = select_groups(matrix, design, group)
    names = view.numbers
    if len(names) < 2:
        raise ParameterError("principal components need at least two columns of numbers.")
    number = check_integer(len(names) if count is None else count, "count", at_least=1, at_most=len(names))
    variables = [_Variable(name, view.number(name).value, view.number(name).observed) for name in names]
    pairs = _Pairs(view, variables)
    reference: list[Floats] = []

    def fit(noisy: Floats) -> Floats:
        moments = pairs.moments(noisy)
        scale = np.sqrt(np.maximum(np.diagonal(moments.covariance), np.diagonal(moments.noise)))
        values, vectors = np.linalg.eigh(moments.covariance / scale / scale[:, None])
        values, vectors = values[::-1][:number], vectors[:, ::-1][:, :number]
        anchor = reference[0] if reference else vectors
        signs = np.where((vectors * anchor).sum(axis=0) < 0, -1.0, 1.0)
        if not reference:
            signs = np.where(vectors[np.abs(vectors).argmax(axis=0), np.arange(number)] < 0, -1.0, 1.0)
            reference.append(vectors * signs)
        return np.vstack([vectors * signs, np.maximum(values, 0.0)])

    value = fit(view.matrix)
    return NamedEstimate(value, _noise_std(view, fit), (*names, "variance"), tuple(f"PC{k + 1}" for k in range(number)))


@dataclass(frozen=True)
class _Variable:
    """A coordinate of z: a number or a level."""

    column: str
    value: int
    observed: int
    name: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name or self.column)


@dataclass(frozen=True, eq=False)
class _Moments:
    """Means and covariances of variables, and the standard deviation of the noise in each product."""

    mean: Floats
    covariance: Floats
    noise: Floats

    def inverse(self, count: int) -> Floats:
        """`_pseudo_inverse` of the covariance of the first `count` variables."""
        return _pseudo_inverse(self.covariance[:count, :count], self.noise[:count, :count])


class _Pairs:
    """Moments of variables, each over the records in which both are there, as a function of the noisy matrix.

    What does not depend on the matrix is computed once.
    """

    def __init__(self, view: TableView, variables: Sequence[_Variable]) -> None:
        x = np.array([variable.value for variable in variables])
        r = np.array([variable.observed for variable in variables])
        variances = view.structure.variances(view.design.noise)[: len(view.matrix)] * view.merged
        self._products, self._firsts, self._sizes = np.ix_(x, x), np.ix_(x, r), np.ix_(r, r)
        self._least = np.maximum(np.sqrt(variances[self._sizes]), 1e-300)  # the smallest share of records to divide by
        self._noise, self._mean_variances = np.sqrt(variances[self._products]), variances[x, r]

    def moments(self, matrix: Floats) -> _Moments:
        """The moments, without the bias of noise in squared means."""
        size = np.maximum(matrix[self._sizes], self._least)
        first = matrix[self._firsts] / size
        covariance = matrix[self._products] / size - first * first.T
        rows = np.arange(len(size))
        covariance[rows, rows] += self._mean_variances / np.diagonal(size) ** 2
        return _Moments(np.diagonal(first).copy(), (covariance + covariance.T) / 2, self._noise / size)


def _variables(view: TableView, features: Sequence[str] | None, target: str) -> list[_Variable]:
    names = [name for name in view.places if name != target] if features is None else list(features)
    if not names:
        raise ParameterError("features must be at least one column besides the target.")
    if target in names or len(set(names)) != len(names):
        raise ParameterError("features must be different columns, and not the target.")
    found: list[_Variable] = []
    for name in names:
        place = view.places.get(name)
        if place is None:
            view.number(name)  # raises
        assert place is not None
        if not place.levels:
            found.append(_Variable(name, place.value, place.observed))
        else:
            found += [
                _Variable(name, place.value + k, 0, f"{name}={level}")
                for k, level in enumerate(place.levels)
                if k  # the first level is the reference
            ]
    if not found:
        raise ParameterError("features must have at least one number, or a category of two levels.")
    return found


def _pseudo_inverse(covariance: Floats, noise: Floats) -> Floats:
    """Inverse over the directions whose variance stands out from the noise, in units of the noise."""
    scale = np.sqrt(np.maximum(np.diagonal(covariance), np.diagonal(noise)))
    values, vectors = np.linalg.eigh(covariance / scale / scale[:, None])
    level = float(np.median(noise / scale / scale[:, None])) * np.sqrt(len(covariance))
    kept = values > max(level, 1e-12)
    if not kept.any():
        kept[-1] = values[-1] > 0
    inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
    return np.asarray(inverse / scale / scale[:, None])


def _noise_std(view: TableView, fit: Callable[[Floats], Floats]) -> Floats:
    """Spread of a fit over noise that is drawn again about the released moments."""
    rng = np.random.default_rng(0)  # the noise is simulated and public
    structure, noise = view.structure, view.design.noise
    size = structure.largest(noise, view.design.query.magnitude).size
    p = view.matrix.shape[0]
    results = []
    for _ in range(DRAWS):
        drawn = structure.combine(noise, rng.standard_normal(size))[:p] * np.sqrt(view.merged)
        if view.whole:
            drawn[0, 0] = 0.0
        results.append(fit(view.matrix + drawn))
    drawn_fits = np.array(results)
    low, middle, high = np.quantile(drawn_fits, [0.25, 0.5, 0.75], axis=0)
    reach = _FAR * (high - low) / 2 / _QUARTILE
    return np.asarray(np.clip(drawn_fits, middle - reach, middle + reach).std(axis=0))


def _safe_ratio(top: float, bottom: float) -> float:
    return top / bottom if bottom > 0 else 0.0
