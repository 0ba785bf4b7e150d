"""The ledger: privacy spent is never lost, never overdrawn.

A `Ledger` is a file. A data set is registered in it with a total (epsilon, delta); every release is charged
to it as an event before its noise is drawn, and refused if the total would be overdrawn.
"""

from matrixdp.ledger.accounting import Reserve
from matrixdp.ledger.chain import Head
from matrixdp.ledger.events import Approximate, Event, Gaussian, Plan, Pure
from matrixdp.ledger.ledger import Ledger
from matrixdp.ledger.values import Charge, Receipt, Registration, Remaining

__all__ = [
    "Approximate",
    "Charge",
    "Event",
    "Gaussian",
    "Head",
    "Ledger",
    "Plan",
    "Pure",
    "Receipt",
    "Registration",
    "Remaining",
    "Reserve",
]
