"""Clipping norms that a given number of records exceed, from noisy counts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaincinv

from matrixdp.adaptive.budget import FitBudget
from matrixdp.adaptive.grid_records import PrivateRecords
from matrixdp.adaptive.settings import Settings
from matrixdp.privacy import Neighbours
from matrixdp.queries import Query
from matrixdp.sensitivity import FrobeniusBall
from matrixdp.types import Floats


@dataclass(frozen=True)
class Search:
    """A bisection for a radius on a log scale.

    Attributes
    ----------
    least, most : float
        Ends of the bracket.
    above : float
        Number of records that should be longer than the radius.
    steps : int
        Number of bisections, each of one noisy count.
    """

    least: float
    most: float
    above: float
    steps: int

    @property
    def bracket(self) -> tuple[float, float]:
        """Logarithms of both ends."""
        return math.log(self.least), math.log(self.most)

    def cuts(self) -> list[float]:
        """All cut-offs that the bisection can reach."""
        brackets = [self.bracket]
        found: list[float] = []
        for _ in range(self.steps):
            middles = [(low + high) / 2 for low, high in brackets]
            found += map(math.exp, middles)
            pairs = zip(brackets, middles, strict=True)
            brackets = [half for (low, high), middle in pairs for half in ((low, middle), (middle, high))]
        return found


def count_std(mu: float, share: float, steps: int) -> float:
    """Standard deviation of each noisy count, when `share` of ``mu^2`` is spent on `steps` of them."""
    return math.sqrt(steps / share) / mu


def private_radius(
    name: str, private: PrivateRecords, search: Search, budget: FitBudget, *, records: int, share: float
) -> float:
    """Radius that about `search.above` of the records exceed, from noisy counts.

    Parameters
    ----------
    name : str
        Name of the step in reports.
    private : PrivateRecords
        The records.
    search : Search
    budget : FitBudget
    records : int
        The public number of records.
    share : float
        Share of ``mu^2`` for all counts together.

    Privacy
    -------
    One record changes each count by one at most, for either kind of neighbours, so that a count with Gaussian noise
    of standard deviation s is 1/s-GDP. Later counts are chosen from earlier noisy ones alone.
    """
    query = count_query(records, budget.neighbours)
    low, high = search.bracket
    below, beyond = float(records), 0.0  # counts at the ends of the bracket
    above = private.counter(search.cuts())
    for _ in range(search.steps):
        middle = (low + high) / 2
        data = Cut(above, math.exp(middle))
        noisy = budget.release(name, query, data, share=share / search.steps).matrix[0, 0]
        if noisy > search.above:
            low, below = middle, float(noisy)
        else:
            high, beyond = middle, float(noisy)
    part = (below - search.above) / (below - beyond) if below > beyond else 0.5  # linear in the counts
    return math.exp(low + (high - low) * min(max(part, 0.0), 1.0))


def extrapolate_radius(radius: float, found: float, wanted: float, freedom: float) -> float:
    """Radius that a share `wanted` of the records should exceed, from one that a larger share `found` exceeds.

    Squared lengths are modelled as chi-squared with `freedom` degrees of freedom.

    Examples
    --------
    >>> round(extrapolate_radius(1.0, 0.3173, 0.0455, 1.0), 3)  # from one to two standard deviations
    2.0
    """
    if wanted >= found:
        return radius
    longer, shorter = gammaincinv(freedom / 2, [1 - wanted, 1 - found])
    return radius * math.sqrt(longer / shorter)


def count_share(steps: int, settings: Settings, *, features: int, records: int, mu: float) -> float:
    """Share of ``mu^2`` for a radius: what makes its counts exact enough, between a least and a largest one.

    `steps` counts have noise of ``sqrt(steps/share)/mu``. Those aimed at are about ``2.25 features/mu``; for them no
    more than half of the largest share is spent, since a radius that is a little off does little harm where records
    are many.
    """
    most = settings.radius_share
    near = steps * (settings.count_precision / (settings.expected_count * features)) ** 2
    whole = steps * (settings.total_precision / (records * mu)) ** 2
    return min(max(min(near, settings.near_radius_share * most), whole, settings.least_radius_share * most), most)


def searched_count(wanted: float, std: float, records: int, settings: Settings) -> float:
    """How many records should lie above a radius: no fewer than stand out from the counts' noise, at most half."""
    return min(max(wanted, settings.search_precision * std), settings.most_clipped * records)


def target_count(wanted: float, searched: float, records: int, freedom: float, settings: Settings) -> float:
    """How many records should lie above a radius in the end, if more had to be searched for: those wanted, or a few.

    The more freedom their lengths have, the less is cut off of a record, and the worse is a guess at a longer radius.
    """
    if not settings.extrapolate:
        return searched
    return min(searched, max(wanted, settings.few_clipped * (1 - 1 / freedom) * records, 1.0))


def count_query(records: int, neighbours: Neighbours) -> Query:
    """Query for the number of records that are longer than a cut-off; `data` is a `Cut`."""
    return Query((1, 1), FrobeniusBall(1.0), bound=2.0 * records, function=_count, neighbours=neighbours)


@dataclass(frozen=True, eq=False)
class Cut:
    """A private function that counts longer records, and the public cut-off to count at."""

    above: Callable[[float], int]
    at: float


def _count(cut: Cut) -> Floats:
    """Number of records longer than the cut-off, of shape (1, 1)."""
    return np.array([[float(cut.above(cut.at))]])
