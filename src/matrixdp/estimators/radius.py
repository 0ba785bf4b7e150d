"""A cut-off above which about a given number of records lie, by a noisy bisection of counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from matrixdp.estimators.spending import Spending
from matrixdp.noise.covariance import Floats
from matrixdp.queries import Query
from matrixdp.sensitivity import FrobeniusBall


@dataclass(frozen=True)
class Search:
    """Where to look for a radius, and how.

    Attributes
    ----------
    least, most : float
        Ends of the bracket, which is halved on a log scale.
    above : float
        How many records should lie above the radius.
    steps : int
    """

    least: float
    most: float
    above: float
    steps: int


def count_std(mu: float, share: float, steps: int) -> float:
    """Standard deviation of each noisy count, when `share` of ``mu^2`` is spent on `steps` of them."""
    return math.sqrt(steps / share) / mu


def private_radius(
    name: str, lengths: Floats, search: Search, spending: Spending, *, records: int, share: float
) -> float:
    """A radius that about `search.above` of the records exceed.

    Parameters
    ----------
    name : str
        Under which the step is reported.
    lengths : float64 array of shape (n,)
        Private; each depends on one record.
    search : Search
    spending : Spending
    records : int
        The public number of records.
    share : float
        Share of ``mu^2`` for all counts together.

    Privacy
    -------
    One record changes each count by one at most, for either kind of neighbours, so that a count with Gaussian noise
    of standard deviation s is 1/s-GDP. Later counts are chosen from earlier noisy ones alone.
    """
    low, high = math.log(search.least), math.log(search.most)
    below, beyond = float(records), 0.0  # counts at the ends of the bracket
    for _ in range(search.steps):
        middle = (low + high) / 2
        query = Query(
            (1, 1),
            FrobeniusBall(1.0),
            bound=2.0 * records,
            function=_Above(math.exp(middle)),
            neighbours=spending.neighbours,
        )
        noisy = spending.release(name, query, lengths, share=share / search.steps).matrix[0, 0]
        if noisy > search.above:
            low, below = middle, float(noisy)
        else:
            high, beyond = middle, float(noisy)
    part = (below - search.above) / (below - beyond) if below > beyond else 0.5  # of the bracket, by its counts
    return math.exp(low + (high - low) * min(max(part, 0.0), 1.0))


@dataclass(frozen=True)
class _Above:
    """How many numbers exceed a cut-off, of shape (1, 1)."""

    cut: float

    def __call__(self, lengths: Any) -> Floats:
        return np.array([[float(np.count_nonzero(np.asarray(lengths) > self.cut))]])
