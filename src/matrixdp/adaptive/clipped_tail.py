"""What clipping to a ball takes from a moment: measured, denoised, and added back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

from matrixdp.adaptive.budget import FitBudget
from matrixdp.adaptive.grid_records import EXCESS_STEPS, PrivateRecords
from matrixdp.adaptive.tail_query import TailMoments
from matrixdp.domain.person import most_rows
from matrixdp.queries import Query
from matrixdp.sensitivity import FrobeniusBall
from matrixdp.types import Floats

_ROUNDING = 1 + 1e-12  # factor on the sensitivity, for rounding in its formula
_FLOAT_ERROR = 4 * float(np.finfo(float).eps)  # an exact sum, and three operations
_CLEAR = 3.0  # standard deviations below which a covariance of the tail is taken for noise
_TINY = float(np.finfo(float).tiny) ** 0.5
_LEAST = 1e-8  # smallest sum of variances, relative to the squared length, that is tilted


@dataclass(frozen=True, eq=False)
class ClippedTail:
    """Noisy moment of what clipping takes, and the standard deviations of its noise.

    Attributes
    ----------
    mean : float64 array of shape (d,)
        What clipping takes from the mean.
    second : float64 array of shape (d, d)
        What it takes from the second moment; positive semidefinite but for its noise.
    mean_std, std, trace_std : float
        Of each entry of the mean, of the second moment off its diagonal, and of its trace.
    """

    mean: Floats
    second: Floats
    mean_std: float
    std: float
    trace_std: float

    def variances(self, count: float) -> Floats:
        """Variance of the noise in each entry of the moment of (1, u); `count` as in `restore_tail`."""
        d = self.mean.size
        found = np.full((d + 1, d + 1), self.std**2) + np.diag(np.full(d + 1, self.std**2))
        found[0] = found[:, 0] = self.mean_std**2
        found[0, 0] = 0.0
        return np.asarray(found / count**2)


def measure_tail(
    records: PrivateRecords,
    radii: tuple[float, float],
    longest: float,
    budget: FitBudget,
    *,
    public: int,
    share: float,
) -> ClippedTail:
    """Noisy moment of what clipping to a ball takes from records, as far as they lie in a larger ball.

    Parameters
    ----------
    records : PrivateRecords
        Private.
    radii : tuple of two floats
        Radii of both balls.
    longest : float
        A length that no record exceeds.
    budget : FitBudget
    public : int
        The public number of records.
    share : float
        Share of ``mu^2``.
    """
    d = records.shape[1]
    query = TailMoments(d, radii, longest, public, neighbours=budget.neighbours, person=budget.person)
    released = budget.release("tail moment", query, records, share=share)
    first, products, squares, trace = np.split(released.matrix[0], np.cumsum([d, d * (d - 1) // 2, d]))
    std, own = float(released.std[0, 0]), float(squares.sum())
    trace_std = std * math.sqrt(d)
    if query.traced:
        both = (own + d * float(trace[0])) / (1 + d)
        squares, trace_std = squares + (both - own) / d, std * math.sqrt(d / (1 + d))
    second = np.diag(squares)
    rows, columns = np.triu_indices(d, 1)
    second[rows, columns] = second[columns, rows] = products / math.sqrt(2)
    factor = math.sqrt(2) * query.radius
    return ClippedTail(first / factor, second, std / factor, std / math.sqrt(2), trace_std)


def measure_excess(
    name: str, records: PrivateRecords, radius: float, limit: float, budget: FitBudget, *, public: int, share: float
) -> tuple[float, float]:
    """Noisy mean of ``min(max(l^2 - r^2, 0), limit)`` over records of length l, and its standard deviation.

    Parameters
    ----------
    name : str
        Name of the step in reports.
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
    either kind of neighbours; and by k times that where k rows of a person count.
    """
    most = most_rows(budget.person)
    query = Query(
        (1, 1),
        FrobeniusBall(most * limit / public * _ROUNDING),
        bound=2.5 * limit,
        function=_Mean(limit, public),
        neighbours=budget.neighbours,
        person=budget.person,
        relative_error=_FLOAT_ERROR,
    )
    released = budget.release(name, query, records.excess(radius, limit), share=share)
    return float(released.matrix[0, 0]), float(released.std[0, 0])


def private_excess(
    records: PrivateRecords, radius: float, limit: float, budget: FitBudget, *, public: int, share: float
) -> float:
    """The number of `measure_excess`, shrunk by its noise."""
    return _shrink(*measure_excess("tail", records, radius, limit, budget, public=public, share=share))


def _shrink(noisy: float, std: float) -> float:
    """A noisy number that cannot be negative, moved towards zero by its noise."""
    return noisy * max(0.0, 1 - (std / noisy) ** 2) if noisy > 0 else 0.0


def restore_tail(
    mean: Floats, covariance: Floats, tail: ClippedTail, radius: float, count: float
) -> tuple[Floats, Floats]:
    """Mean and covariance of clipped records, with what clipping took added back as far as it exceeds its noise.

    Along the directions of the covariance: variances of the tail, and those covariances that noise cannot explain. The
    rest of its trace is added along the directions of long records (`tilt_variances`).

    Parameters
    ----------
    mean, covariance : float64 arrays of shape (d,) and (d, d)
    tail : ClippedTail
    radius : float
        Clipping norm.
    count : float
        Number of records as a fraction of the public number.
    """
    vectors = np.linalg.eigh(covariance)[1]
    lost, std = vectors.T @ tail.second @ vectors / count, tail.std / count
    variances = np.diagonal(lost)
    kept = lost * np.maximum(0.0, 1 - (_CLEAR * std / np.maximum(np.abs(lost), _TINY)) ** 2)
    kept[np.diag_indices(len(kept))] = variances * np.maximum(0.0, 1 - 2 * (std / np.maximum(variances, std)) ** 2)
    trace, found = _shrink(float(np.trace(lost)), tail.trace_std / count), float(np.trace(kept))
    if found > trace:
        kept *= trace / found
    shift, noise = tail.mean / count, mean.size * (tail.mean_std / count) ** 2
    shift = shift * max(0.0, 1 - noise / max(float(shift @ shift), _TINY))
    cross = np.multiply.outer(mean, shift)
    moved = cross + cross.T + np.multiply.outer(shift, shift)
    return mean + shift, restore_excess(covariance, trace - found, radius) + vectors @ kept @ vectors.T - moved


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
    return np.asarray(covariance + (vectors * (min(excess, total) * long / long.sum())) @ vectors.T)


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
