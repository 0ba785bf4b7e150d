"""What private answers cannot show of records, for error bars: a few at the end of their bounds, or a full box."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from matrixdp.adaptive.simulated_fit import (
    REPETITIONS,
    FitOptions,
    likeliest,
    public_seed,
    repeat_fit,
    simulated_number,
)
from matrixdp.adaptive.statistics import Statistics
from matrixdp.domain.person import most_rows
from matrixdp.noise import Stream
from matrixdp.types import Floats

if TYPE_CHECKING:
    from matrixdp.adaptive.moment import PrivateMoment
    from matrixdp.adaptive.postprocess import Fitted

NORMAL = 1.96  # error bars in half a 95% interval
_UNSEEN = 1.5  # records at the end of their bounds that may be overlooked, over 1/mu: the noise of a private count
TOGETHER = 0.5  # part of the error bars of two variances by which their covariance may move


def overlooked_errors(moment: PrivateMoment) -> Statistics:
    """What overlooked records at the further end of their bounds contribute, and what was taken from a covariance.

    For pairs of features it is one record: others are rarely at the end of the bounds of both. Where k rows of a person
    count, all of them may be there.
    """
    fitted, half = moment.fitted, moment.bounds.halfwidths
    most = most_rows(moment.person)
    reach, unseen = 1 + np.abs(fitted.mean), max(_UNSEEN / moment.privacy.mu, 1.0)
    record = most * np.multiply.outer(reach, reach) / moment.records
    turned = _turned_correlations(fitted.covariance, np.diagonal(record))
    np.fill_diagonal(record, np.minimum(unseen * np.diagonal(record), 1.0))
    taken = likeliest(fitted) - fitted.covariance
    length, spread = _short_of_corners(moment)
    return {
        "mean": np.minimum(unseen * most / moment.records, 1.0) * reach + length,
        "second_moment": record,
        "covariance": np.hypot(record, taken) + _spread_pairs(spread),
        "correlation": turned,
        "eigenvalue": np.hypot(float(np.max(half**2 * np.diagonal(record))), _eigenvalues(taken, half)),
    }


def _turned_correlations(covariance: Floats, record: Floats) -> Floats:
    """How far one record moves correlations that adds `record` to the variances of its features, of shape (d, d).

    The record lies where it moves them most: at the ends of both bounds, against the sign of the correlation. In error
    bars, so that an interval reaches that far.
    """
    variances = np.maximum(np.diagonal(covariance), 0.0)
    before = np.sqrt(np.multiply.outer(variances, variances))
    after = np.sqrt(np.multiply.outer(variances + record, variances + record))
    added = np.sqrt(np.multiply.outer(record, record))
    correlation = np.abs(np.divide(covariance, before, out=np.zeros_like(covariance), where=before > 0))
    return np.asarray(correlation + (added - correlation * before) / after) / NORMAL


def _spread_pairs(own: Floats) -> Floats:
    """Error bars of variances on the diagonal, and beside it what follows for covariances of moderate correlation."""
    return np.sqrt(np.multiply.outer(own, own)) * np.where(np.eye(len(own), dtype=bool), 1.0, TOGETHER)


def _short_of_corners(moment: PrivateMoment) -> tuple[Floats, Floats]:
    """How far means and variances are from those of records at the corners of the box, where a fit finds as little.

    With few records all of them are clipped, and what is found of a full box is not told from little. Zero where the
    fit would have found more: longer records for means, and more variance for variances. Means are as far from the
    bounds as the fit loses of the length of corners. In error bars, of shape (d,) each.
    """
    fitted, d = moment.fitted, moment.bounds.size
    seed = public_seed(fitted)
    number = simulated_number(moment.records, d)
    corners = np.random.default_rng(seed).choice([-1.0, 1.0], (number, d))
    fits = repeat_fit(corners, FitOptions.of(moment), Stream(seed), REPETITIONS)
    noise = 2 * float(np.linalg.norm(np.diagonal(fitted.std)))
    squares, variances = (min(float(np.trace(one(fit))) for fit in fits) for one in (_second, likeliest))
    length, spread = np.zeros(d), np.zeros(d)
    if float(np.trace(fitted.second)) + noise >= squares:
        length = (1 - np.sqrt(min(max(squares, 0.0) / d, 1.0))) * (1 - np.abs(fitted.mean))
    if float(np.trace(likeliest(fitted))) + noise >= variances:
        spread = np.maximum(1 - np.diagonal(fitted.covariance), 0.0)
    return np.asarray(length / NORMAL), np.asarray(spread / NORMAL)


def _second(fitted: Fitted) -> Floats:
    return fitted.second


def _eigenvalues(matrix: Floats, half: Floats) -> Floats:
    """Eigenvalues in the data's units, the largest first."""
    return np.asarray(np.linalg.eigvalsh(matrix * np.multiply.outer(half, half))[::-1], np.float64)
