"""Clipping norms that a given number of records exceed, from noisy counts."""

from __future__ import annotations

import math

from matrixdp.adaptive.measure import Measurements
from matrixdp.adaptive.settings import Settings


def find_first_radius(measure: Measurements, settings: Settings) -> float:
    """Step 1: clipping norm about the midpoint that balances clipping error and noise.

    Spends `radius_share`; nothing where the counts would be lost in their noise, and the radius is public.
    """
    d, mu, longest = measure.size, measure.mu, math.sqrt(measure.size)
    if count_std(settings.bisections, settings.radius_share, mu) > settings.lost_counts * measure.public:
        return settings.public_radius * longest
    return find_radius("radius", measure, d / mu, (longest / settings.span, longest), settings)


def find_radius(
    name: str, measure: Measurements, balanced: float, bracket: tuple[float, float], settings: Settings
) -> float:
    """Radius in a bracket that about `clip_factor` times the balanced number of records exceed, at most half of them.

    Where that number is too small to be counted with the noise, the search is for a larger one. Spends `radius_share`.
    """
    share, steps = settings.radius_share, settings.bisections
    countable = settings.search_precision * count_std(steps, share, measure.mu)
    above = min(max(settings.clip_factor * balanced, countable), measure.public / 2)
    return bisect_radius(name, measure, bracket, above, steps, share)


def count_std(counts: int, share: float, mu: float) -> float:
    """Standard deviation of the noise in each of some counts that together spend `share` of ``mu^2``."""
    return math.sqrt(counts / share) / mu


def bisect_radius(
    name: str, measure: Measurements, bracket: tuple[float, float], above: float, steps: int, share: float
) -> float:
    """Radius that about `above` of the records exceed, by bisection of noisy counts on a log scale.

    Parameters
    ----------
    name : str
        Name of the step in reports.
    measure : Measurements
    bracket : tuple of two floats
        Least and most.
    above : float
    steps : int
        Number of counts.
    share : float
        Share of ``mu^2`` for all counts together.

    Privacy
    -------
    Later counts are chosen from earlier noisy ones alone.
    """
    low, high = map(math.log, bracket)
    below, beyond = float(measure.public), 0.0  # counts at the ends of the bracket
    count = measure.counter(name, bisection_cuts(low, high, steps), share / steps)
    for _ in range(steps):
        middle = (low + high) / 2
        noisy = count(math.exp(middle))
        if noisy > above:
            low, below = middle, noisy
        else:
            high, beyond = middle, noisy
    part = (below - above) / (below - beyond) if below > beyond else 0.5  # linear in the counts
    return math.exp(low + (high - low) * min(max(part, 0.0), 1.0))


def bisection_cuts(low: float, high: float, steps: int) -> list[float]:
    """All cut-offs that a bisection can reach, from the logarithms of its bracket."""
    if not steps:
        return []
    middle = (low + high) / 2
    halves = (bisection_cuts(*half, steps - 1) for half in ((low, middle), (middle, high)))
    return [math.exp(middle), *(cut for half in halves for cut in half)]
