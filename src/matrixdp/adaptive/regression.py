"""Regression coefficients from a joint private moment of features and targets."""

from __future__ import annotations

import math

import numpy as np

from matrixdp.adaptive.moment import PrivateMoment
from matrixdp.adaptive.posterior import posterior_coefficients
from matrixdp.adaptive.postprocess import Fitted
from matrixdp.adaptive.settings import Settings, settings_for
from matrixdp.adaptive.shrinkage import nearest_of_same_trace
from matrixdp.errors import ParameterError
from matrixdp.types import Floats

_MOST_PENALTY = 1e60  # for features in [-1, 1]; makes all coefficients zero


def solve_regression(moment: PrivateMoment, targets: int, *, alpha: float = 0.0) -> tuple[Floats, Floats]:
    """Coefficients of shape (targets, m) and intercepts of shape (targets,), from a joint private moment.

    Post-processing. Averages two estimates whose errors differ: ridge regression on the shrunk covariance, with a
    penalty of the size of the noise in the coordinates in which it is isotropic (without it, noisy small eigenvalues
    would make coefficients large); and `posterior_coefficients` of the unshrunk covariance. Where records were too few
    for learned coordinates, coefficients are zero and intercepts are the private mean.

    Parameters
    ----------
    moment : PrivateMoment
        Fitted with ``aim='regression'``; its last features are the targets.
    targets : int
    alpha : float
        Ridge penalty in the data's units, for sums over records.
    """
    fitted, d = moment.fitted, moment.bounds.size
    if isinstance(targets, bool) or not isinstance(targets, int | np.integer) or not 1 <= targets < d:
        raise ParameterError(f"targets must be an integer from 1 to {d - 1}, got {targets!r} instead.")
    m = d - int(targets)
    location = moment.mean
    if not fitted.learned:
        return np.zeros((targets, m)), location[m:]
    settings = settings_for("regression")
    half = moment.bounds.halfwidths
    with np.errstate(over="ignore"):
        penalty = np.diag(np.minimum(alpha / moment.records / half[:m] ** 2, _MOST_PENALTY))
    ridge = settings.noise_ridge * fitted.noise_std * math.sqrt(d) * fitted.noise_shape[:m, :m]
    gram = fitted.covariance[:m, :m] + ridge + penalty
    shrunk = np.linalg.lstsq(gram, fitted.covariance[:m, m:], rcond=None)[0]
    weight = settings.posterior_weight
    scaled = (1 - weight) * shrunk + weight * _posterior(fitted, m, penalty, moment.records, settings)
    coefficients = np.asarray((scaled * half[m:] / half[:m, None]).T)
    return coefficients, location[m:] - coefficients @ location[:m]


def _posterior(fitted: Fitted, features: int, penalty: Floats, records: int, settings: Settings) -> Floats:
    """Posterior coefficients for each target, of shape (features, targets)."""
    m, scale = features, fitted.noise_shape
    seen = nearest_of_same_trace(fitted.unshrunk)
    columns = [
        posterior_coefficients(
            seen[:m, :m] + penalty,
            fitted.unshrunk[:m, k],
            scale[:m, :m],
            target=(scale[:m, k], float(scale[k, k])),
            variance=float(seen[k, k]),
            std=fitted.noise_std,
            records=records,
            settings=settings,
        )
        for k in range(m, len(seen))
    ]
    return np.column_stack(columns)
