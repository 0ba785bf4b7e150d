"""What a report says about the ledger."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LedgerSummary:
    """Budget of a data set, or of its allowance, before and after a release, and the ledger's last entry.

    Attributes
    ----------
    path, dataset : str
    epsilon, delta : float
        The total budget of the data set.
    left_before, left_after : float
        Epsilon left at the total's delta.
    entry : int
    hash : str
        Number and hash of the last entry.
    allowance : str, optional
        The allowance that paid; the budget is then that of the allowance.
    charged : bool
        Whether this run charged the release; a repeated request is not charged again.
    """

    path: str
    dataset: str
    epsilon: float
    delta: float
    left_before: float
    left_after: float
    entry: int
    hash: str
    allowance: str | None = None
    charged: bool = True
