"""Frozen values that a ledger returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from matrixdp.ledger.accounting import Reserve
from matrixdp.ledger.events import Event
from matrixdp.privacy import Neighbours, Privacy


@dataclass(frozen=True)
class Registration:
    """A registered data set: its total, its neighbours and its reserve."""

    dataset: str
    privacy: Privacy
    neighbours: Neighbours
    reserve: Reserve


@dataclass(frozen=True)
class Remaining:
    """The budget that a data set has left, rounded down.

    Parameters
    ----------
    dataset : str
    mu : float
        The largest Gaussian event that can still be charged.
    epsilon, delta : float
        The same as a guarantee: a Gaussian release that is (epsilon, delta)-DP, at the `delta` of the data set,
        still fits.
    reserve : Reserve
        The part of the reserve that is left.
    """

    dataset: str
    mu: float
    epsilon: float
    delta: float
    reserve: Reserve


@dataclass(frozen=True)
class Receipt:
    """Proof that an event was charged: the number of its entry, and the hash of that entry."""

    dataset: str
    event: Event
    request: str | None
    entry: int
    hash: str


@dataclass(frozen=True)
class Charge:
    """A past charge, and whether its release was stored.

    `actor`, `purpose` and `version` say who charged it, why, and with which matrixdp; matrixdp 0.1 did not record them.
    """

    entry: int
    time: str
    dataset: str
    event: Event
    description: Mapping[str, Any]
    request: str | None
    released: bool
    allowance: str | None = None
    actor: str | None = None
    purpose: str | None = None
    version: str | None = None


@dataclass(frozen=True)
class Counts:
    """How many charges a data set or an allowance has.

    Parameters
    ----------
    charges : int
    unfinished : int
        Charges without a stored release: in progress, or interrupted.
    last_charge, oldest_unfinished : str or None
        Times of the last charge, and of the oldest one without a release.
    """

    charges: int
    unfinished: int
    last_charge: str | None
    oldest_unfinished: str | None
