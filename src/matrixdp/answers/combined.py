"""Intervals from several synthetic tables of one release."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from matrixdp.checks import check_integer
from matrixdp.errors import ParameterError
from matrixdp.intervals import LEVEL
from matrixdp.types import Floats


@dataclass(frozen=True, eq=False)
class Combined:
    """Numbers with their standard errors, of sampling and noise together, and the ends of their 95% intervals."""

    value: Floats
    std: Floats
    low: Floats
    high: Floats


def combine(estimates: ArrayLike, variances: ArrayLike, *, rows: int, records: int) -> Combined:
    """One estimate and its interval from the same analysis of each of several synthetic tables.

    With q the mean of the m estimates, u that of their variances times ``rows/records``, and b the variance of the
    estimates, the variance of q is ``T = u + (1 + 1/m) b`` and the interval ``q +- t sqrt(T)``, for Student's t with
    ``(m - 1) (1 + u/((1 + 1/m) b))^2`` degrees of freedom. This is Rubin's rule for missing values: u stands for
    sampling the records, and b for the noise of the release. Tables have no sampling error of their own.

    Parameters
    ----------
    estimates, variances : arrays of shape (m, ...)
        Estimates from m tables of `Release.synthetic`, at least 2, and the squares of their usual standard errors.
    rows : int
        Number of rows of each table.
    records : int
        The public number of records, or of people, of the release.
    """
    values, own = np.asarray(estimates, float), np.asarray(variances, float)
    if values.ndim < 1 or len(values) < 2 or values.shape != own.shape:
        raise ParameterError(
            "estimates and variances must have the same shape, with one entry for each of at least 2 tables; "
            f"got the shapes {values.shape} and {own.shape}."
        )
    if not (np.isfinite(values).all() and np.isfinite(own).all() and (own >= 0).all()):
        raise ParameterError("estimates must be finite, and variances finite and not negative.")
    from scipy.special import stdtrit  # here, since scipy.special takes long to import

    scale = check_integer(rows, "rows", at_least=1) / check_integer(records, "records", at_least=1)
    m, mean, sampling = len(values), values.mean(axis=0), own.mean(axis=0) * scale
    between = (1 + 1 / m) * values.var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = np.where(between > 0, (m - 1) * (1 + sampling / between) ** 2, np.inf)
    std = np.sqrt(sampling + between)
    half = stdtrit(np.minimum(freedom, 1e9), (1 + LEVEL) / 2) * std
    return Combined(mean, std, mean - half, mean + half)
