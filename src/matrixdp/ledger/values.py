"""What a ledger gives back: plain frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from matrixdp.ledger.accounting import Reserve
from matrixdp.ledger.events import Event
from matrixdp.privacy import Neighbours, Privacy


@dataclass(frozen=True)
class Registration:
    """What was fixed for a data set: its total, its neighbours and the part of the total kept in reserve."""

    dataset: str
    privacy: Privacy
    neighbours: Neighbours
    reserve: Reserve


@dataclass(frozen=True)
class Remaining:
    """What a data set has left, rounded down.

    Parameters
    ----------
    dataset : str
    mu : float
        The largest Gaussian event that can still be charged.
    epsilon, delta : float
        The same as a guarantee: a Gaussian release that is (epsilon, delta)-DP at the data set's `delta`
        still fits.
    reserve : Reserve
        What is left of the reserve.
    """

    dataset: str
    mu: float
    epsilon: float
    delta: float
    reserve: Reserve


@dataclass(frozen=True)
class Receipt:
    """Proof that an event was charged: the entry that holds it, and that entry's hash."""

    dataset: str
    event: Event
    request: str | None
    entry: int
    hash: str


@dataclass(frozen=True)
class Charge:
    """A charge in the ledger's history, and whether its release was stored."""

    entry: int
    time: str
    dataset: str
    event: Event
    description: Mapping[str, Any]
    request: str | None
    released: bool
