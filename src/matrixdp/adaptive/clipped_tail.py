"""The mean excess of squared lengths over a clipping norm, and how it is added back to a covariance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

from matrixdp.adaptive.budget import FitBudget
from matrixdp.adaptive.grid_records import EXCESS_STEPS, PrivateRecords
from matrixdp.queries import Query
from matrixdp.sensitivity import FrobeniusBall
from matrixdp.types import Floats

_ROUNDING = 1 + 1e-12  # factor on the sensitivity, for rounding in its formula
_FLOAT_ERROR = 4 * float(np.finfo(float).eps)  # an exact sum, and three operations
_LEAST = 1e-8  # smallest sum of variances, relative to the squared length, that is tilted


def private_excess(
    records: PrivateRecords, radius: float, limit: float, budget: FitBudget, *, public: int, share: float
) -> float:
    """Noisy mean of ``min(max(l^2 - r^2, 0), limit)`` over records of length l, shrunk by its noise.

    Parameters
    ----------
    records : PrivateRecords
        Private.
    radius : float
        Clipping norm r.
    limit : float
        Largest excess of one record.
    budget : FitBudget
    public : int
        The public number of records.
    share : float
        Share of ``mu^2``.

    Privacy
    -------
    A record contributes an integer number of steps from 0 to `limit`, so the exact sum changes by at most `limit`, for
    either kind of neighbours.
    """
    query = Query(
        (1, 1),
        FrobeniusBall(limit / public * _ROUNDING),
        bound=2.5 * limit,
        function=_Mean(limit, public),
        neighbours=budget.neighbours,
        person=budget.person,
        relative_error=_FLOAT_ERROR,
    )
    released = budget.release("tail", query, records.excess(radius, limit), share=share)
    noisy, std = float(released.matrix[0, 0]), float(released.std[0, 0])
    return noisy * max(0.0, 1 - (std / noisy) ** 2) if noisy > 0 else 0.0


def restore_excess(covariance: Floats, excess: float, radius: float) -> Floats:
    """Covariance of clipped records with `excess` added to its trace, along the directions of long records.

    Parameters
    ----------
    covariance : float64 array of shape (d, d)
    excess : float
        Limited to the trace of the covariance.
    radius : float
        Clipping norm.

    Examples
    --------
    >>> restore_excess(np.diag([1.0, 4.0]), 1.0, 3.0).round(2).tolist()
    [[1.13, 0.0], [0.0, 4.87]]
    """
    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values, 0.0)
    total = float(values.sum())
    if excess <= 0 or total <= 0:
        return covariance
    long = tilt_variances(values, radius**2)
    return np.asarray((vectors * (values + min(excess, total) * long / long.sum())) @ vectors.T)


def tilt_variances(values: Floats, square: float) -> Floats:
    """Variances of those Gaussian records whose mean squared length is `square`, if that is more than usual.

    Given its mean squared length, a sample from a Gaussian with variances v most likely looks like one with variances
    ``v/(1 - t v)`` for some t (exponential tilting). So long records lie along leading directions more than others do.
    """
    if not _LEAST * square < float(values.sum()) < square:
        return values
    parts = values / values.max()

    def variances(left: float) -> Floats:  # left = 1 - t max(v)
        return np.asarray(values / (1 - parts + left * parts))

    least = float(values.max()) / (2 * square)  # makes the largest variance alone twice the square
    return variances(brentq(lambda left: float(variances(left).sum()) - square, least, 1.0, xtol=1e-6 * least))


@dataclass(frozen=True)
class _Mean:
    """Mean excess, of shape (1, 1), from a sum in steps."""

    limit: float
    records: int

    def __call__(self, steps: Any) -> Floats:
        return np.array([[float(steps) / EXCESS_STEPS * self.limit / self.records]])
