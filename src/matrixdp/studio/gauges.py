"""Budgets as shares of a total, for bars. Gaussian releases add up as squares of mu, so shares are of mu^2."""

from __future__ import annotations

from dataclasses import dataclass

from matrixdp.ledger import Allowance, Event, Gaussian, Summary


@dataclass(frozen=True)
class Gauge:
    """Shares of a total, from 0 to 1: what is spent, what is allotted and not spent, and what a release would take."""

    spent: float
    allotted: float = 0.0
    next: float = 0.0

    @property
    def left(self) -> float:
        """The rest."""
        return max(0.0, 1.0 - self.spent - self.allotted - self.next)


def measure_dataset(summary: Summary, event: Event | None = None) -> Gauge:
    """The gauge of a data set, with a release that would be charged to what is not allotted."""
    total = summary.total_mu
    unspent, free = (_share(found.mu, total) for found in (summary.unspent, summary.left))
    return Gauge(1 - unspent, unspent - free, min(free, _measure(event, total)))


def measure_allowance(allowance: Allowance, event: Event | None = None) -> Gauge:
    """The gauge of an allowance, with a release that would be charged to it."""
    left = _share(allowance.left.mu, allowance.mu)
    return Gauge(1 - left, 0.0, min(left, _measure(event, allowance.mu)))


def _measure(event: Event | None, total: float) -> float:
    return _share(event.mu, total) if isinstance(event, Gaussian) else 0.0


def _share(mu: float, total: float) -> float:
    return min(1.0, (mu / total) ** 2) if total > 0 else 0.0
