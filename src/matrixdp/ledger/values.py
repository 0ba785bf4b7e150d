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
    """The budget that a data set or one of its allowances has left, rounded down.

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
    allowance : str, optional
        The allowance that has this left; without one, it is the part of the data set's total that is neither spent nor
        allotted.
    """

    dataset: str
    mu: float
    epsilon: float
    delta: float
    reserve: Reserve
    allowance: str | None = None


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
    """A past charge, and whether its release was stored."""

    entry: int
    time: str
    dataset: str
    event: Event
    description: Mapping[str, Any]
    request: str | None
    released: bool
