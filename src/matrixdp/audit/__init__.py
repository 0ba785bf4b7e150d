"""Audits of privacy guarantees: attacks on designs, exact replays of fits, measurements of black boxes.

`docs/audit.md` shows how to audit a query or mechanism of your own.
"""

from matrixdp.audit.attack import Attack, attack, distance_between
from matrixdp.audit.counting import Count, is_caught, measured_epsilon, measured_mu
from matrixdp.audit.domains import BoxDomain, RecordDomain, find_domain
from matrixdp.audit.families import Domain, Family
from matrixdp.audit.measure import Measurement, measure
from matrixdp.audit.replay import Replay, ReplayStep, replay
from matrixdp.audit.search import worst_record_pair
from matrixdp.audit.tradeoff import draw_tradeoff, tradeoff

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
