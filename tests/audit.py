"""Audits: a lower confidence bound on the epsilon of a mechanism, from its outputs on two neighbours.

For any event E, (epsilon, delta)-DP says ``P(E) <= e^epsilon Q(E) + delta``. Counting E in independent runs on both
neighbours bounds ``ln((P(E) - delta)/Q(E))`` from below. The event must be chosen before the runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.stats import beta, binom

# False alarms of a run of all statistical tests stay below 1e-6; each audit may use this much of it.
LEVEL = 1e-8


@dataclass(frozen=True)
class Count:
    """How often an event happened in a number of independent runs."""

    hits: int
    runs: int

    def lower(self, level: float) -> float:
        """Clopper and Pearson's lower bound on the probability; wrong with probability `level` at most."""
        return float(beta.ppf(level, self.hits, self.runs - self.hits + 1)) if self.hits else 0.0

    def upper(self, level: float) -> float:
        """Clopper and Pearson's upper bound on the probability; wrong with probability `level` at most."""
        return float(beta.isf(level, self.hits + 1, self.runs - self.hits)) if self.hits < self.runs else 1.0


def measured_epsilon(on_first: Count, on_second: Count, *, delta: float = 0.0, level: float = LEVEL) -> float:
    """Epsilon that the mechanism has at least, at `delta`; too large with probability `level` at most.

    Examples
    --------
    >>> measured_epsilon(Count(900, 1000), Count(100, 1000)) > 1.5
    True
    """
    excess = on_first.lower(level / 2) - delta
    return math.log(excess / on_second.upper(level / 2)) if excess > 0 else -math.inf


def is_caught(p: float, q: float, runs: int, *, claim: float, delta: float = 0.0, miss: float = 1e-6) -> bool:
    """Whether the audit of a mechanism with ``P(E) = p``, ``Q(E) = q`` exceeds `claim` but with probability `miss`."""
    fewest = Count(int(binom.ppf(miss / 2, runs, p)), runs)
    most = Count(int(binom.isf(miss / 2, runs, q)), runs)
    return measured_epsilon(fewest, most, delta=delta) > claim
