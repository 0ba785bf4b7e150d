"""Frozen values that a ledger returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from matrixdp.ledger.accounting import Reserve
from matrixdp.ledger.events import Event
from matrixdp.privacy import RECORD, Neighbours, Privacy, Unit


@dataclass(frozen=True)
class Head:
    """Number and hash of the last entry of a ledger. Entries are numbered from 1.

    If a copy is kept outside of the ledger, `Ledger.verify(anchor=...)` proves that no entry up to it was altered.
    """

    entry: int
    hash: str


@dataclass(frozen=True)
class Registration:
    """A registered data set: its total, its neighbours, its reserve, and what its releases protect."""

    dataset: str
    privacy: Privacy
    neighbours: Neighbours
    reserve: Reserve
    unit: Unit = RECORD


@dataclass(frozen=True)
class Remaining:
    """The budget that a data set or one of its allowances has left, rounded down.

    Parameters
    ----------
    dataset : str
    mu : float
        The largest Gaussian event that can still be charged.
    epsilon, delta : float
        The same as a guarantee: a Gaussian release that is (epsilon, delta)-DP, at the data set's delta, still fits.
    reserve : Reserve
        The part of the reserve that is left.
    allowance : str, optional
        Whose rest this is; without one, it is the part of the total that is neither spent nor allotted.
    """

    dataset: str
    mu: float
    epsilon: float
    delta: float
    reserve: Reserve
    allowance: str | None = None


@dataclass(frozen=True)
class Allowance:
    """A part of a data set's total that was set apart under a name.

    Parameters
    ----------
    dataset, name : str
    mu : float
        Its size: the largest Gaussian event that fitted at first, rounded down.
    epsilon, delta : float
        Its size as a guarantee, at the `delta` of the data set: that of all charges to it together.
    left : Remaining
        What can still be charged to it; nothing once it was returned.
    returned : bool
        Whether the unspent rest was returned to the data set.
    """

    dataset: str
    name: str
    mu: float
    epsilon: float
    delta: float
    left: Remaining
    returned: bool


@dataclass(frozen=True)
class Counts:
    """Charges of a data set: how many, and how many of them have no stored release (in progress, or interrupted).

    `last_charge` and `oldest_unfinished` are the times of the last charge and of the first one without a release.
    """

    charges: int
    unfinished: int
    last_charge: str | None
    oldest_unfinished: str | None


@dataclass(frozen=True)
class Summary:
    """The state of a data set.

    Parameters
    ----------
    registration : Registration
    total_mu, spent_mu : float
        The total of Gaussian events, rounded down, and what is spent of it, rounded up.
    spent_epsilon : float
        The epsilon that a total as large as what is spent would have, at the data set's delta, rounded up. It is not a
        guarantee, since a total must be fixed before releases are chosen.
    unspent, left : Remaining
        What is not spent; and what is not allotted, either: what a charge without an allowance can use.
    allowances : tuple of Allowance
        All of them, in the order of their names.
    counts : Counts
    restored_from : int or None
        The last entry of the backup from which the ledger was restored, until `settle` says what was spent since.
    """

    registration: Registration
    total_mu: float
    spent_mu: float
    spent_epsilon: float
    unspent: Remaining
    left: Remaining
    allowances: tuple[Allowance, ...]
    counts: Counts
    restored_from: int | None = None


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
    """A past charge, what its release protects, and whether the release was stored.

    `actor`, `purpose` and `version` say who charged it, why, and with which matrixdp.
    `options` are those of its request, which a repeat must have again; without a request id there are none.
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
    unit: Unit = RECORD
    options: Mapping[str, Any] | None = None
