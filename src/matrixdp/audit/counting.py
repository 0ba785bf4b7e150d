"""Confidence bounds on epsilon and mu, from how often an event happens under two neighbours.

For any event E, (epsilon, delta)-DP says ``P(E) <= e^epsilon Q(E) + delta``, and `mu`-GDP says ``Phi^-1(P(E)) -
Phi^-1(Q(E)) <= mu``. Counting E in independent runs on both neighbours bounds both from below. The event must be chosen
before the runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import ndtri
from scipy.stats import beta, binom


@dataclass(frozen=True)
class Count:
    """How often an event happened in a number of independent runs.

    Attributes
    ----------
    hits, runs : int
    """

    hits: int
    runs: int

    def lower(self, level: float) -> float:
        """Clopper and Pearson's lower bound on the probability; wrong with probability `level` at most."""
        return float(beta.ppf(level, self.hits, self.runs - self.hits + 1)) if self.hits else 0.0

    def upper(self, level: float) -> float:
        """Clopper and Pearson's upper bound on the probability; wrong with probability `level` at most."""
        return float(beta.isf(level, self.hits + 1, self.runs - self.hits)) if self.hits < self.runs else 1.0


def measured_epsilon(on_first: Count, on_second: Count, *, delta: float = 0.0, level: float) -> float:
    """Epsilon that a mechanism has at least, at `delta`; too large with probability `level` at most.

    Examples
    --------
    >>> measured_epsilon(Count(900, 1000), Count(100, 1000), level=1e-8) > 1.5
    True
    """
    excess = on_first.lower(level / 2) - delta
    return math.log(excess / on_second.upper(level / 2)) if excess > 0 else -math.inf


def measured_mu(on_first: Count, on_second: Count, *, level: float) -> float:
    """Mu that a mechanism has at least; too large with probability `level` at most.

    Examples
    --------
    >>> 1.9 < measured_mu(Count(900, 1000), Count(100, 1000), level=1e-8) < 2.56
    True
    """
    return float(ndtri(on_first.lower(level / 2)) - ndtri(on_second.upper(level / 2)))


def is_caught(
    p: float, q: float, runs: int, *, claim: float, level: float, delta: float = 0.0, miss: float = 1e-6
) -> bool:
    """Whether measuring an event with ``P(E) = p``, ``Q(E) = q`` exceeds `claim`, except with probability `miss`."""
    fewest = Count(int(binom.ppf(miss / 2, runs, p)), runs)
    most = Count(int(binom.isf(miss / 2, runs, q)), runs)
    return measured_epsilon(fewest, most, delta=delta, level=level) > claim
