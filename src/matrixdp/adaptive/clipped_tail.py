"""What clipping took away from the mean of the squared lengths, as one noisy number, and how it is given back."""

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

_ROUNDING = 1 + 1e-12  # on the sensitivity, for the floats of its own formula
_FLOAT_ERROR = 4 * float(np.finfo(float).eps)  # an exact sum, and three operations
_LEAST = 1e-8  # of a square that variances must have, or there is nothing to tell directions by


def private_excess(
    private: PrivateRecords, radius: float, reach: float, budget: FitBudget, *, records: int, share: float
) -> float:
    """The mean of ``min(max(l^2 - r^2, 0), reach)`` over records of length l, shrunk towards zero by its noise.

    Parameters
    ----------
    private : PrivateRecords
        The records.
    radius : float
        r, to which records are clipped.
    reach : float
        Beyond which more of a square is not counted.
    budget : FitBudget
    records : int
        The public number of records.
    share : float
        Of ``mu^2``.

    Privacy
    -------
    A record adds a whole number of steps from 0 to `reach`, so the exact sum changes by `reach` at most, for either
    kind of neighbours.
    """
    query = Query(
        (1, 1),
        FrobeniusBall(reach / records * _ROUNDING),
        bound=2.5 * reach,
        function=_Mean(reach, records),
        neighbours=budget.neighbours,
        relative_error=_FLOAT_ERROR,
    )
    released = budget.release("tail", query, private.excess(radius, reach), share=share)
    noisy, std = float(released.matrix[0, 0]), float(released.std[0, 0])
    return noisy * max(0.0, 1 - (std / noisy) ** 2) if noisy > 0 else 0.0


def restore_excess(covariance: Floats, excess: float, radius: float) -> Floats:
    """The covariance of clipped records with `excess` more in its trace, along the directions of long ones.

    Parameters
    ----------
    covariance : float64 array of shape (d, d)
    excess : float
        At most the trace itself is given back.
    radius : float
        To which records were clipped.

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
    """Variances of Gaussian records that are longer than most: their sum is `square`, if it was less.

    Of all that a Gaussian with the variances v may look like, given its mean squared length, one with ``v/(1 - t v)``
    for some t is the likeliest (exponential tilting). So long records lie along leading directions more than others.
    """
    if not _LEAST * square < float(values.sum()) < square:
        return values
    parts = values / values.max()

    def variances(left: float) -> Floats:  # left = 1 - t max(v)
        return np.asarray(values / (1 - parts + left * parts))

    least = float(values.max()) / (2 * square)  # where the largest alone is twice the square
    return variances(brentq(lambda left: float(variances(left).sum()) - square, least, 1.0, xtol=1e-6 * least))


@dataclass(frozen=True)
class _Mean:
    """A sum of steps over the public number of records, of shape (1, 1)."""

    reach: float
    records: int

    def __call__(self, steps: Any) -> Floats:
        return np.array([[int(steps) / EXCESS_STEPS * self.reach / self.records]])
