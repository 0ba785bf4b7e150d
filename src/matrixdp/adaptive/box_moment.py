"""Noisy moments of all records of a box, without clipping: no bias, and a diagonal that costs no privacy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from matrixdp.adaptive.ball_moment import BallMoment, BallMoments, positive_count
from matrixdp.adaptive.budget import FitBudget
from matrixdp.adaptive.grid_records import PrivateRecords
from matrixdp.domain.bounds import Bounds
from matrixdp.domain.person import Person
from matrixdp.mechanisms.mechanism import NoisyAnswer
from matrixdp.privacy import Neighbours
from matrixdp.types import Floats

_BEYOND = 1.01  # radius of a ball that contains the box, in units of its corners' length


class BoxMoments(BallMoments):
    """`Moments` of `PrivateRecords` in [-1, 1]^d, without a radius.

    Privacy
    -------
    As `Moments`: records are on a grid within the box, and their sum is exact.
    """

    def evaluate(self, data: Any, *, clip: bool, missing: str) -> Floats:
        """Moments of all records, none of them clipped."""
        assert isinstance(data, PrivateRecords)
        assert data.coordinates is None
        self.check_number(len(data))
        d = self.bounds.size
        radius = _BEYOND * math.sqrt(d)
        return data.moment(Bounds(np.full(d, -radius), np.full(d, radius), radius=radius), self.records)


def box_query(size: int, public: int, neighbours: Neighbours, ratio: float, person: Person | None = None) -> BoxMoments:
    """Query for moments in [-1, 1]^d; `ratio` is the square of the constant before each record, in units of d."""
    bounds = Bounds(np.full(size, -1.0), np.full(size, 1.0))
    return BoxMoments(bounds, public, neighbours=neighbours, person=person, mean_share=ratio / (1 + ratio))


def box_moment(
    name: str, records: PrivateRecords, budget: FitBudget, *, share: float, public: int, ratio: float
) -> BallMoment:
    """Noisy moment of records in [-1, 1]^d, none of them clipped.

    Parameters
    ----------
    name : str
        Name of the step in reports.
    records : PrivateRecords
        Private, in their original coordinates.
    budget : FitBudget
    share : float
        Share of ``mu^2``.
    public : int
        The public number of records.
    ratio : float
        Square of the constant that goes before each record, in units of d.

    Privacy
    -------
    `Moments` of records in a box, with the noise of "Squares beside a moment" in docs/mathematics.md.
    """
    d = records.shape[1]
    released = budget.release(
        name, box_query(d, public, budget.neighbours, ratio, budget.person), records, share=share, structured=True
    )
    return measured(released, public)


def measured(released: NoisyAnswer, public: int) -> BallMoment:
    """A release of `BoxMoments`, over the noisy number of records where that is private."""
    count, query = 1.0, released.design.query
    if not query.public_number:
        count = positive_count(float(released.matrix[0, 0]), float(released.std[0, 0]), public)
    second, std = released.matrix / count, released.std / count
    second[0, 0] = 1.0
    variances = released.design.colcov.variances
    constant, off = math.sqrt(variances[1] / variances[0]), float(variances[1]) / count / math.sqrt(2)
    diagonal = np.asarray(np.diagonal(std)[1:] ** 2)
    trace_std = math.sqrt(trace_variance(diagonal, off, constant, query.neighbours))
    return BallMoment(second, constant, off, trace_std, count, diagonal)


def pool_moments(first: BallMoment, other: BallMoment) -> BallMoment:
    """Average of two box moments with independent noise, entry by entry, by their precisions."""
    assert first.diagonal is not None
    assert other.diagonal is not None
    d = first.mean.size
    entries, means = _pool(first.std, other.std), _pool(first.std / first.constant, other.std / other.constant)
    squares, trace = _pool(first.diagonal**0.5, other.diagonal**0.5), _pool(first.trace_std, other.trace_std)
    weights = np.full((d + 1, d + 1), entries[0])
    weights[0] = weights[:, 0] = means[0]
    weights[np.diag_indices(d + 1)] = np.append(1.0, squares[0])
    second = weights * first.second + (1 - weights) * other.second
    count = float(entries[0] * first.count + (1 - entries[0]) * other.count)
    std = float(entries[1])
    return BallMoment(second, std / float(means[1]), std, float(trace[1]), count, squares[1] ** 2)


def _pool(first: float | Floats, other: float | Floats) -> tuple[Floats, Floats]:
    """Weight of the first of two numbers with these standard deviations, and that of their average."""
    precision = np.asarray(first) ** -2.0 + np.asarray(other) ** -2.0
    return np.asarray(np.asarray(first) ** -2.0 / precision), np.asarray(precision**-0.5)


def trace_variance(diagonal: Floats, std: float, constant: float, neighbours: Neighbours) -> float:
    """Variance of the noise in the trace: its precision is ``1 + d + 2 c^2`` instead of 1 for replaced records."""
    d = diagonal.size
    precision = 1 + d + 2 * constant**2 if neighbours is Neighbours.REPLACE else 1.0
    return max(2 * d * std**2 / precision, float(diagonal.sum()) / d)


def expected_noise(size: int, ratio: float, records: float) -> tuple[float, Floats, float]:
    """Standard deviation off the diagonal, variances on it, and constant, of a box moment of replaced records.

    `records` is the number of records times mu.
    """
    std, alpha = size * (1 + ratio) / records, ratio * size
    part = (1 - 1 / size) / (1 + 1.5 * size + 2 * alpha) + 1 / size / (1 + size + 2 * alpha)
    return std, np.full(size, 2 * std**2 * part), math.sqrt(alpha)
