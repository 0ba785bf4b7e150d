"""Error bars of an adaptive fit, from its public result alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matrixdp.adaptive.moment import PrivateMoment
from matrixdp.answers.moments import correlation_from_covariance
from matrixdp.types import Floats


@dataclass(frozen=True, eq=False)
class ErrorBars:
    """Standard deviations of the error of each mean, covariance and correlation: shapes (m,), (m, m) and (m, m)."""

    mean: Floats
    covariance: Floats
    correlation: Floats


def error_bars(moment: PrivateMoment) -> ErrorBars:
    """Error bars of a fit; those of correlations to first order, as if the entries' errors were independent."""
    covariance, std = moment.covariance, moment.covariance_std
    variances = np.diagonal(covariance)
    with np.errstate(all="ignore"):
        relative = np.diagonal(std) / variances / 2  # of each standard deviation
        scale = np.sqrt(np.multiply.outer(variances, variances))
        value = correlation_from_covariance(covariance)
        spread = (std / scale) ** 2 + value**2 * np.add.outer(relative**2, relative**2)
    np.fill_diagonal(spread, 0.0)
    return ErrorBars(moment.mean_std, std, np.sqrt(spread))
