"""Audits of privacy guarantees: attacks on designs, exact replays of fits, measurements of black boxes.

`docs/audit.md` shows how to audit a query or mechanism of your own.
"""

from matrixdp.audit.attack import Attack, attack, distance_between, worst_record_pair
from matrixdp.audit.domains import Family, find_domain
from matrixdp.audit.measure import Count, Measurement, draw_tradeoff, measure, measured_epsilon, measured_mu, tradeoff
from matrixdp.audit.replay import Replay, ReplayStep, replay

__all__ = [
    "Attack",
    "Count",
    "Family",
    "Measurement",
    "Replay",
    "ReplayStep",
    "attack",
    "distance_between",
    "draw_tradeoff",
    "find_domain",
    "measure",
    "measured_epsilon",
    "measured_mu",
    "replay",
    "tradeoff",
    "worst_record_pair",
]
