"""Principal components and regressions of an adaptive fit, with error bars; post-processing.

Error bars come from simulation, as those of `matrixdp.adaptive.error_bars` do: the fit is repeated on records of
several families that have the private mean and covariance, and the largest errors count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace

import numpy as np
from numpy.typing import NDArray

from matrixdp.adaptive.measure import SimulatedRecords
from matrixdp.adaptive.moment import PrivateMoment
from matrixdp.adaptive.postprocess import Fitted
from matrixdp.adaptive.regression import hidden_std, joint_moment, solve_regression
from matrixdp.adaptive.simulation import FAMILIES, FitOptions, fit_simulated, simulate_records, simulated_number
from matrixdp.answers.estimate import Estimate
from matrixdp.answers.models import (
    Regression,
    check_components,
    choose_predictors,
    find_components,
    hide_undetermined,
)
from matrixdp.answers.moments import correlation_from_covariance
from matrixdp.domain.bounds import Bounds
from matrixdp.domain.person import least_sample
from matrixdp.errors import ParameterError, show
from matrixdp.types import Floats

_REPETITIONS = 3  # fits of the same simulated records
_LARGEST = 3  # families whose errors are averaged, in squares


def fit_components(moment: PrivateMoment, names: tuple[str, ...], count: int | None = None) -> Estimate:
    """Principal components of the standardised numbers, of shape (m + 1, count); variances in the last row."""
    number, m = check_components(names, count), len(names)

    def error(fit: PrivateMoment, mean: Floats, covariance: Floats) -> Floats:  # noqa: ARG001
        exact = _components(covariance, m)
        return (_components(fit.covariance, m, exact[:-1]) - exact)[:, :number]

    columns = tuple(f"PC{k + 1}" for k in range(number))
    value = _components(moment.covariance, number)
    return Estimate(value, _simulate_errors(moment, error), (*names, "variance"), columns)


def _components(covariance: Floats, number: int, reference: Floats | None = None) -> Floats:
    """Components of the correlations and their variances; signs are those of `reference`, or of the largest entry."""
    correlation = correlation_from_covariance(covariance, undefined=0.0)
    values, vectors = find_components(correlation, reference)
    return np.vstack([vectors, np.maximum(values, 0.0)])[:, :number]


def fit_regression(
    moment: PrivateMoment, names: tuple[str, ...], target: str, on: Sequence[str] | None = None
) -> Regression:
    """Regression of one number on others, with the error of privacy and of sampling in each coefficient.

    Where records were too few for learned directions, coefficients are zero and the intercept is the private mean.
    """
    if target not in names:
        raise ParameterError(f"target must be one of {', '.join(names[:20])}, got {show(target)} instead.")
    chosen = choose_predictors(names, target, on)
    order = np.array([names.index(name) for name in (*chosen, target)])

    def error(fit: PrivateMoment, mean: Floats, covariance: Floats) -> Floats:
        exact = _least_squares(mean[order], covariance[np.ix_(order, order)])
        return _coefficients(_select(fit, order)) - exact

    part = _select(moment, order)
    coefficients = _coefficients(part)
    sampling, explained = _sampling(part, coefficients)
    stds = np.sqrt(np.maximum(np.diagonal(part.covariance), np.diagonal(part.fitted.std) * part.bounds.halfwidths**2))
    privacy_std = np.maximum(_simulate_errors(moment, error), hidden_std(joint_moment(part), coefficients[1:]))
    privacy_std[1:] = hide_undetermined(privacy_std[1:], stds[:-1], float(stds[-1]))
    return Regression(target, ("intercept", *chosen), coefficients, privacy_std, sampling, explained)


def _select(moment: PrivateMoment, order: NDArray[np.intp]) -> PrivateMoment:
    """The fit of some of the columns, in this order: a marginal of the fit of all."""
    bounds, size, square = moment.bounds, moment.bounds.size, np.ix_(order, order)
    parts = {}
    for field in fields(moment.fitted):
        value = getattr(moment.fitted, field.name)
        shape = np.shape(value)
        parts[field.name] = value[square] if shape == (size, size) else value[order] if shape == (size,) else value
    return replace(moment, bounds=Bounds(bounds.lower[order], bounds.upper[order]), fitted=Fitted(**parts))


def _coefficients(moment: PrivateMoment) -> Floats:
    """Intercept and slopes for the last column."""
    slopes, intercept = solve_regression(moment, 1)
    return np.concatenate([intercept, slopes[0]])


def _least_squares(mean: Floats, covariance: Floats) -> Floats:
    """Intercept and slopes of the last column, without noise."""
    slopes = np.linalg.pinv(covariance[:-1, :-1], rcond=1e-9, hermitian=True) @ covariance[:-1, -1]
    return np.concatenate([[mean[-1] - slopes @ mean[:-1]], slopes])


def _sampling(moment: PrivateMoment, coefficients: Floats) -> tuple[Floats, float]:
    """Standard errors of the coefficients for the population, and the share of the variance that is explained."""
    covariance, slopes = moment.covariance, coefficients[1:]
    features, total = covariance[:-1, :-1], float(covariance[-1, -1])
    residual = total - 2 * float(slopes @ covariance[:-1, -1]) + float(slopes @ features @ slopes)
    residual = min(max(residual, 0.0), total)
    rest = residual / max(least_sample(moment.records, moment.person) - len(coefficients), 1)
    inverse = np.linalg.pinv(features, rcond=1e-9, hermitian=True)
    centre = moment.mean[:-1]
    variances = np.append(1 + float(centre @ inverse @ centre), np.diagonal(inverse))
    return np.sqrt(np.maximum(rest * variances, 0.0)), 1 - residual / total if total > 0 else 0.0


def _simulate_errors(moment: PrivateMoment, error: Callable[[PrivateMoment, Floats, Floats], Floats]) -> Floats:
    """Root mean square errors of fits of simulated records that have the private mean and covariance.

    `error` compares a fit with the mean and covariance of the simulated records, in the units of the data.
    """
    fitted, bounds = moment.fitted, moment.bounds
    options = FitOptions.of(moment)
    units = np.multiply.outer(bounds.halfwidths, bounds.halfwidths)
    number = simulated_number(moment.records, bounds.size)
    found = []
    for seed, family in enumerate(FAMILIES):
        rng = np.random.default_rng(seed)  # public
        records = SimulatedRecords.of(simulate_records(family, fitted.mean, fitted.covariance, number, rng))
        mean, covariance = records.moments
        exact = (bounds.midpoint + bounds.halfwidths * mean, covariance * units)
        fits = [fit_simulated(records, options, rng) for _ in range(_REPETITIONS)]
        found.append(np.mean([np.square(error(replace(moment, fitted=fit), *exact)) for fit in fits], axis=0))
    return np.asarray(np.sqrt(np.mean(np.sort(found, axis=0)[-_LARGEST:], axis=0)))
