"""Regression coefficients from a joint private moment of features and targets."""

from __future__ import annotations

import numpy as np

from matrixdp.adaptive.moment import PrivateMoment
from matrixdp.adaptive.posterior import posterior_coefficients
from matrixdp.adaptive.postprocess import Fitted
from matrixdp.adaptive.shrinkage import nearest_of_same_trace
from matrixdp.checks import check_integer
from matrixdp.types import Floats

_MOST_PENALTY = 1e60  # for features in [-1, 1]; makes all coefficients zero


def solve_regression(moment: PrivateMoment, targets: int, *, alpha: float = 0.0) -> tuple[Floats, Floats]:
    """Coefficients of shape (targets, m) and intercepts of shape (targets,), from a joint private moment.

    Post-processing: `posterior_coefficients` of the covariance before shrinkage. Where records were too few for learned
    coordinates, coefficients are zero and intercepts are the private mean.

    Parameters
    ----------
    moment : PrivateMoment
        Fitted with ``aim='regression'``; its last features are the targets.
    targets : int
    alpha : float
        Ridge penalty in the data's units, for sums over records.
    """
    fitted, d = moment.fitted, moment.bounds.size
    m = d - check_integer(targets, "targets", at_least=1, at_most=d - 1)
    location = moment.mean
    if not fitted.learned:
        return np.zeros((targets, m)), location[m:]
    half = moment.bounds.halfwidths
    with np.errstate(over="ignore"):
        penalty = np.diag(np.minimum(alpha / moment.records / half[:m] ** 2, _MOST_PENALTY))
    scaled = _posterior(fitted, m, penalty, moment.records)
    coefficients = np.asarray((scaled * half[m:] / half[:m, None]).T)
    return coefficients, location[m:] - coefficients @ location[:m]


def _posterior(fitted: Fitted, features: int, penalty: Floats, records: int) -> Floats:
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
        )
        for k in range(m, len(seen))
    ]
    return np.column_stack(columns)
