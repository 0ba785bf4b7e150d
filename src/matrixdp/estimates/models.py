"""Principal components and regressions of an adaptive fit, with error bars; post-processing.

Error bars come from simulation: the covariance is drawn again about the released one with its error bars.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from matrixdp.adaptive.moment import PrivateMoment
from matrixdp.adaptive.regression import solve_regression
from matrixdp.answers.models import Regression, spread_of_draws
from matrixdp.answers.moments import correlation_from_covariance
from matrixdp.answers.named import NamedEstimate
from matrixdp.checks import check_integer
from matrixdp.domain.bounds import Bounds
from matrixdp.errors import ParameterError, show
from matrixdp.estimates.error_bars import ErrorBars
from matrixdp.types import Floats

_DRAWS = 400  # their spread has an error of about 4%
_LEAST_DRAWS = 40
_WORK = 2e9  # multiplications for all draws together


def fit_components(
    moment: PrivateMoment, std: Floats, names: tuple[str, ...], count: int | None = None
) -> NamedEstimate:
    """Principal components of the standardised numbers, of shape (m + 1, count); variances in the last row."""
    m = len(names)
    if m < 2:
        raise ParameterError("principal components need at least two columns of numbers.")
    number = check_integer(m if count is None else count, "count", at_least=1, at_most=m)
    value = _components(moment.covariance, number)
    draws = _draw(moment.covariance, std, lambda drawn: _components(drawn, number, value[:-1]))
    return NamedEstimate(
        value, spread_of_draws(draws), (*names, "variance"), tuple(f"PC{k + 1}" for k in range(number))
    )


def _components(covariance: Floats, number: int, reference: Floats | None = None) -> Floats:
    """Components of the correlations and their variances; signs are those of `reference`, or of the largest entry."""
    values, vectors = np.linalg.eigh(correlation_from_covariance(covariance, undefined=0.0))
    values, vectors = values[::-1][:number], vectors[:, ::-1][:, :number]
    if reference is None:
        largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(number)]
        signs = np.where(largest < 0, -1.0, 1.0)
    else:
        signs = np.where((vectors * reference).sum(axis=0) < 0, -1.0, 1.0)
    return np.vstack([vectors * signs, np.maximum(values, 0.0)])


def fit_regression(
    moment: PrivateMoment, bars: ErrorBars, names: tuple[str, ...], target: str, on: Sequence[str] | None = None
) -> Regression:
    """Regression of one number on others, with the noise and the sampling error of each coefficient.

    Where records were too few for learned directions, coefficients are zero, their error is unknown (NaN), and the
    intercept is the private mean.
    """
    chosen = choose_features(names, target, on)
    order = np.array([names.index(name) for name in (*chosen, target)])
    part, std = _select(moment, order), bars.covariance[np.ix_(order, order)]
    coefficients = _coefficients(part)
    if part.fitted.learned:
        half = part.bounds.halfwidths
        scaled = std / np.multiply.outer(half, half)
        draws = _draw(part.fitted.unshrunk, scaled, lambda drawn: _coefficients(_with_unshrunk(part, drawn)))
        noise = spread_of_draws(draws)
        noise[0] = np.hypot(noise[0], float(np.hypot.reduce(bars.mean[order] * np.append(coefficients[1:], -1.0))))
    else:
        noise = np.append(bars.mean[order[-1]], np.full(len(chosen), np.nan))
    sampling, explained = _sampling(part, coefficients)
    return Regression(target, ("intercept", *chosen), coefficients, noise, sampling, explained)


def choose_features(names: tuple[str, ...], target: str, on: Sequence[str] | None) -> tuple[str, ...]:
    """The features of a regression: those named, or all columns but the target."""
    if target not in names:
        raise ParameterError(f"target must be one of {', '.join(names[:20])}, got {show(target)} instead.")
    if isinstance(on, str):
        raise ParameterError("on must be a list of columns, got a text instead.")
    chosen = tuple(name for name in names if name != target) if on is None else tuple(on)
    if not chosen:
        raise ParameterError("on must name at least one column besides the target.")
    for name in chosen:
        if name not in names:
            raise ParameterError(f"on must name columns among {', '.join(names[:20])}, got {show(name)} instead.")
    if target in chosen or len(set(chosen)) != len(chosen):
        raise ParameterError("on must name different columns, and not the target.")
    return chosen


def _select(moment: PrivateMoment, order: np.ndarray) -> PrivateMoment:
    """The fit of some of the columns, in this order: a marginal of the fit of all."""
    bounds, fitted, square = moment.bounds, moment.fitted, np.ix_(order, order)
    return replace(
        moment,
        bounds=Bounds(bounds.lower[order], bounds.upper[order]),
        fitted=replace(
            fitted,
            mean=fitted.mean[order],
            mean_std=fitted.mean_std[order],
            covariance=fitted.covariance[square],
            std=fitted.std[square],
            unshrunk=fitted.unshrunk[square],
            noise_shape=fitted.noise_shape[square],
        ),
    )


def _with_unshrunk(moment: PrivateMoment, unshrunk: Floats) -> PrivateMoment:
    return replace(moment, fitted=replace(moment.fitted, unshrunk=unshrunk))


def _coefficients(moment: PrivateMoment) -> Floats:
    """Intercept and slopes for the last column."""
    slopes, intercept = solve_regression(moment, 1)
    return np.concatenate([intercept, slopes[0]])


def _sampling(moment: PrivateMoment, coefficients: Floats) -> tuple[Floats, float]:
    """Standard errors of the coefficients for the population, and the share of the variance that is explained."""
    covariance, slopes = moment.covariance, coefficients[1:]
    features, total = covariance[:-1, :-1], float(covariance[-1, -1])
    residual = total - 2 * float(slopes @ covariance[:-1, -1]) + float(slopes @ features @ slopes)
    residual = min(max(residual, 0.0), total)
    rest = residual / max(moment.records - len(coefficients), 1)
    inverse = np.linalg.pinv(features, rcond=1e-9, hermitian=True)
    centre = moment.mean[:-1]
    variances = np.append(1 + float(centre @ inverse @ centre), np.diagonal(inverse))
    return np.sqrt(np.maximum(rest * variances, 0.0)), 1 - residual / total if total > 0 else 0.0


def _draw(matrix: Floats, std: Floats, fit: Callable[[Floats], Floats]) -> Floats:
    """Results of a fit on matrices that are drawn about a symmetric one, each entry with its error bar."""
    rng = np.random.default_rng(0)  # simulated, and public
    count = int(np.clip(_WORK / max(len(matrix), 1) ** 3, _LEAST_DRAWS, _DRAWS))
    results = []
    for _ in range(count):
        noise = np.triu(rng.standard_normal(matrix.shape) * std)
        results.append(fit(matrix + noise + np.triu(noise, 1).T))
    return np.array(results)
