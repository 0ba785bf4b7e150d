"""Noisy moments of records clipped to a ball."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from matrixdp.adaptive.budget import FitBudget
from matrixdp.adaptive.grid_records import PrivateRecords
from matrixdp.adaptive.shrinkage import clean_spectrum
from matrixdp.adaptive.trace_query import TracedMoments
from matrixdp.domain.bounds import Bounds
from matrixdp.domain.person import Person
from matrixdp.privacy import Neighbours
from matrixdp.queries import Moments
from matrixdp.types import Floats

_TINY = float(np.finfo(float).tiny)
_BOX = 8.0  # halfwidth of the box about a ball, in radii: a tight one would turn the directions of clipped records
# Up to nine layers of digits, of which two are not rounded, a division and a sum; the units are powers of two.
_FLOAT_ERROR = 8 * float(np.finfo(float).eps)


class BallMoments(Moments):
    """`Moments` of `PrivateRecords`, which clip and sum themselves.

    Privacy
    -------
    As `Moments`: the term of each record lies in the ball and depends on that record alone, and the sum is exact.
    """

    @property
    def relative_error(self) -> float:
        """Relative rounding error of exact sums as floats."""
        return _FLOAT_ERROR

    def evaluate(self, data: Any, *, clip: bool, missing: str) -> Floats:
        """Moments of the records, clipped to the ball."""
        assert isinstance(data, PrivateRecords)
        self.check_number(len(data))
        return data.moment(self.bounds, self.records)


@dataclass(frozen=True, eq=False)
class BallMoment:
    """Noisy ``(1/N) sum (1, u)(1, u)'`` of clipped records u, and the size of its noise.

    For ``(c, u)`` in place of ``(1, u)``, c being `constant`, the noise is isotropic.

    Attributes
    ----------
    second : float64 array of shape (d + 1, d + 1)
        The entry (0, 0) is one.
    constant : float
    std : float
        Standard deviation of the isotropic noise off the diagonal.
    trace_std : float
        Standard deviation of the noise in the trace of ``sum u u'/N``.
    count : float
        Number of records as a fraction of the public number; noisy where the number is private.
    diagonal : float64 array of shape (d,), optional
        Variance of the noise on the diagonal of ``sum u u'/N``; twice that off the diagonal by default.
    """

    second: Floats
    constant: float
    std: float
    trace_std: float = math.nan
    count: float = 1.0
    diagonal: Floats | None = None

    @property
    def mean(self) -> Floats:
        """Mean of u, of shape (d,)."""
        return self.second[0, 1:]

    def transform(self, matrix: Floats, centre: Floats) -> tuple[Floats, Floats]:
        """Moment of ``(1, A (u - m))``, and the variance of the noise in each entry, both of shape (d + 1, d + 1).

        Noise of the form ``K G K'``, G symmetric with variance s^2 off the diagonal and 2 s^2 on it, has the variances
        ``s^2 (L_ii L_jj + L_ij^2)``, ``L = K K'``; what is more exact on the diagonal is subtracted.
        """
        d = len(matrix)
        turn = np.eye(d + 1)
        turn[1:, 1:] = matrix
        turn[1:, 0] = -matrix @ centre
        own = turn.copy()
        own[:, 0] /= self.constant
        spread = own @ own.T
        sizes = np.diagonal(spread)
        variances = self.std**2 * (np.multiply.outer(sizes, sizes) + spread**2)
        if self.diagonal is not None:
            squares = own[:, 1:] ** 2
            variances = variances - (squares * (2 * self.std**2 - self.diagonal)) @ squares.T
        return turn @ self.second @ turn.T, variances


def denoise(
    second: Floats, constant: float, std: float, spectrum: Callable[[Floats, float], Floats] = clean_spectrum
) -> tuple[Floats, Floats]:
    """Mean and covariance from a noisy moment of ``(1, u)``, after shrinking its eigenvalues.

    The whole matrix is shrunk, so that a mean far from the origin, which dominates the leading eigenvector, is kept.
    The mean is the first column of the result over the square root of its first entry; the covariance is then a Schur
    complement, hence positive semidefinite.

    Parameters
    ----------
    second : float64 array of shape (d + 1, d + 1)
    constant, std : float
        As for `BallMoment`.
    spectrum : callable
        Non-negative eigenvalues without noise, from noisy ones and the noise's standard deviation.
    """
    scale = np.ones(len(second))
    scale[0] = constant
    values, vectors = np.linalg.eigh(second * np.multiply.outer(scale, scale))
    clean = (vectors * spectrum(values, std)) @ vectors.T
    mean = clean[0, 1:] / math.sqrt(max(float(clean[0, 0]), _TINY))
    return mean, clean[1:, 1:] - np.multiply.outer(mean, mean)


def ball_moment(
    name: str,
    records: PrivateRecords,
    radius: float,
    budget: FitBudget,
    *,
    share: float,
    public: int,
    ratio: float = 0.25,
) -> BallMoment:
    """Noisy moment of records clipped to a ball about the origin.

    Parameters
    ----------
    name : str
        Name of the step in reports.
    records : PrivateRecords
        Private.
    radius : float
    budget : FitBudget
    share : float
        Share of ``mu^2``.
    public : int
        The public number of records.
    ratio : float
        Square of the constant that goes before each record, in units of ``radius^2``.

    Privacy
    -------
    The query clips each record to the ball, so the only assumption is that each row depends on one record. By (5) of
    docs/mathematics.md the noise of a diagonal entry is ``sqrt(2)(1 + ratio) radius^2/(N mu)`` for replaced records,
    and ``(1 + ratio) radius^2/(N mu)`` for added or removed ones; where k rows of a person count, k times that. Where
    the number of records is public, the trace is measured a second time at no cost (`TracedMoments`).
    """
    d = records.shape[1]
    query = ball_query(d, radius, public, budget.neighbours, ratio, budget.person)
    released = budget.release(name, query, records, share=share)
    if isinstance(query, TracedMoments):
        std = float(released.std[0, 0])
        trace_std = std * math.sqrt(d / (1 + d * query.weight))
        return BallMoment(query.matrix(released.matrix[0]), query.constant, std / math.sqrt(2), trace_std)
    variances = released.design.colcov.variances
    count = positive_count(float(released.matrix[0, 0]), float(released.std[0, 0]), public)
    second = released.matrix / count
    second[0, 0] = 1.0
    std = float(variances[1]) / count
    return BallMoment(second, math.sqrt(variances[1] / variances[0]), std / math.sqrt(2), std * math.sqrt(d), count)


def positive_count(noisy: float, std: float, public: int) -> float:
    """Noisy fraction of the public number of records, but at least its noise and at least one record."""
    return max(noisy, std, 1 / public)


def ball_query(
    size: int, radius: float, public: int, neighbours: Neighbours, ratio: float = 0.25, person: Person | None = None
) -> BallMoments | TracedMoments:
    """Query for moments in a ball about the origin, with the trace as well where their number is public."""
    bounds = Bounds(np.full(size, -_BOX * radius), np.full(size, _BOX * radius), radius=radius)
    moments = BallMoments(bounds, public, neighbours=neighbours, person=person, mean_share=ratio / (1 + ratio))
    return TracedMoments(moments, ratio) if moments.public_number else moments
