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
from matrixdp.domain.person import Person, most_rows
from matrixdp.privacy import Neighbours
from matrixdp.queries import Query
from matrixdp.sensitivity import FrobeniusBall
from matrixdp.types import Floats


@dataclass(frozen=True)
class Goal:
    """The clipping norm that a step needs.

    Attributes
    ----------
    clipped : float
        Number of records that should be longer than it.
    least, most : float
        Bracket of the search.
    bisections : int
        Number of noisy counts.
    freedom : float
        Squared lengths vary like chi-squared numbers with that many degrees of freedom.
    longest : float
        Length that no record exceeds.
    """

    clipped: float
    least: float
    most: float
    bisections: int
    freedom: float
    longest: float


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


def find_radius(
    name: str, records: PrivateRecords, goal: Goal, settings: Settings, budget: FitBudget, *, public: int
) -> float:
    """Radius that about `goal.clipped` records exceed. Spends `count_share`.

    Where that number is too small to be counted with the noise, the search is for a larger one, and the radius is
    extrapolated from there.
    """
    share = count_share(goal.bisections, settings, features=records.shape[1], public=public, mu=budget.effective_mu)
    countable = settings.search_precision * count_std(goal.bisections, share, budget.effective_mu)
    above = min(max(goal.clipped, countable), settings.most_clipped * public)
    search = Search(goal.least, goal.most, above, goal.bisections)
    radius = private_radius(name, records, search, budget, public=public, share=share)
    wanted = clipped_share(goal, settings, public)
    return min(extrapolate_radius(radius, above / public, wanted, goal.freedom), max(radius, goal.longest))


def clipped_share(goal: Goal, settings: Settings, public: int) -> float:
    """Share of the records that should be longer than the radius: `goal.clipped` of them, but not too few or many."""
    few = settings.few_clipped * (1 - 1 / goal.freedom) * public
    return min(max(goal.clipped, few, 1.0) / public, settings.most_clipped)


def count_share(counts: int, settings: Settings, *, features: int, public: int, mu: float) -> float:
    """Share of ``mu^2`` for the counts of one radius: what makes them exact enough, within limits.

    About features/mu records are to be clipped, and the counts should resolve that number; where records are few, they
    should at least resolve the number of all records.
    """
    clipped = counts * (settings.count_precision / features) ** 2
    everything = counts * (settings.total_precision / (public * mu)) ** 2
    share = max(min(clipped, settings.usual_radius_share), everything, settings.least_radius_share)
    return min(share, settings.radius_share)


def count_std(counts: int, share: float, mu: float) -> float:
    """Standard deviation of the noise in each of some counts that together spend `share` of ``mu^2``."""
    return math.sqrt(counts / share) / mu


def private_radius(
    name: str, records: PrivateRecords, search: Search, budget: FitBudget, *, public: int, share: float
) -> float:
    """Radius that about `search.above` of the records exceed, from noisy counts.

    Parameters
    ----------
    name : str
        Name of the step in reports.
    records : PrivateRecords
        Private.
    search : Search
    budget : FitBudget
    public : int
        The public number of records.
    share : float
        Share of ``mu^2`` for all counts together.

    Privacy
    -------
    One record changes each count by one at most, for either kind of neighbours, so that a count with Gaussian noise
    of standard deviation s is 1/s-GDP. So does one person, who counts as the share of their rows that are longer; where
    k rows of a person count, the change is at most k. Later counts are chosen from earlier noisy ones alone.
    """
    query = count_query(public, budget.neighbours, budget.person)
    low, high = search.bracket
    below, beyond = float(public), 0.0  # counts at the ends of the bracket
    above = records.counter(search.cuts())
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


def step_down(
    name: str,
    records: PrivateRecords,
    radius: float,
    cuts: list[float],
    budget: FitBudget,
    *,
    public: int,
    share: float,
) -> float:
    """`radius`, or 1.5 times the last of the falling `cuts` which fewer than half of the records exceed.

    Stops at the first cut-off that more exceed; every count spends `share`.

    Privacy
    -------
    As `private_radius`; how many counts are taken depends on noisy ones alone.
    """
    query, above = count_query(public, budget.neighbours, budget.person), records.counter(cuts)
    for cut in cuts:
        noisy = budget.release(name, query, Cut(above, cut), share=share).matrix[0, 0]
        if noisy > public / 2:
            break
        radius = 1.5 * cut
    return radius


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


def count_query(records: int, neighbours: Neighbours, person: Person | None = None) -> Query:
    """Query for the number of records that are longer than a cut-off; `data` is a `Cut`."""
    most = FrobeniusBall(float(most_rows(person)))
    return Query((1, 1), most, bound=2.0 * records, function=_count, neighbours=neighbours, person=person)


@dataclass(frozen=True, eq=False)
class Cut:
    """A private function that counts longer records, and the public cut-off to count at."""

    above: Callable[[float], float]
    at: float


def _count(cut: Cut) -> Floats:
    """Number of records longer than the cut-off, of shape (1, 1)."""
    return np.array([[float(cut.above(cut.at))]])
