"""Audits of privacy guarantees: attacks on designs, exact replays of fits, measurements of black boxes.

`docs/audit.md` shows how to audit a query or mechanism of your own.
"""

from matrixdp.audit.attack import Attack, attack, distance_between, worst_record_pair
from matrixdp.audit.domains import BoxDomain, Domain, Family, RecordDomain, find_domain
from matrixdp.audit.measure import (
    Count,
    Measurement,
    draw_tradeoff,
    is_caught,
    measure,
    measured_epsilon,
    measured_mu,
    tradeoff,
)
from matrixdp.audit.replay import Replay, ReplayStep, replay

__all__ = [
    "Attack",
    "BoxDomain",
    "Count",
    "Domain",
    "Family",
    "Measurement",
    "RecordDomain",
    "Replay",
    "ReplayStep",
    "attack",
    "distance_between",
    "draw_tradeoff",
    "find_domain",
    "is_caught",
    "measure",
    "measured_epsilon",
    "measured_mu",
    "replay",
    "tradeoff",
    "worst_record_pair",
]
