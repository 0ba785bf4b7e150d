"""The ledger: a file that records the privacy budget of each data set and prevents overspending.

A data set is registered with a total (epsilon, delta). Every release is charged as an event before its noise is drawn,
and refused if it would exceed the total.
"""

from matrixdp.ledger.ledger import Ledger
from matrixdp.ledger.values import (
    Allowance,
    Approximate,
    Charge,
    Counts,
    Event,
    Gaussian,
    Head,
    Plan,
    Pure,
    Receipt,
    Registration,
    Remaining,
    Reserve,
    Step,
    Summary,
)

__all__ = [
    "Allowance",
    "Approximate",
    "Charge",
    "Counts",
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
    "Step",
    "Summary",
]
