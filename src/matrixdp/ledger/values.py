"""Frozen values that a ledger takes and returns.

An event is the guarantee of a release. It says what was released, not what it costs: `matrixdp.ledger.accounting`
decides that.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, get_args

from matrixdp.checks import check_number
from matrixdp.errors import LedgerError, ParameterError, show
from matrixdp.privacy import RECORD, Neighbours, Privacy, Unit


@dataclass(frozen=True)
class Gaussian:
    """A release that is `mu`-GDP, as every release with Gaussian noise is for some `mu`.

    Examples
    --------
    >>> Gaussian(mu=0.25)
    Gaussian(mu=0.25)
    """

    kind: ClassVar[str] = "gaussian"
    mu: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", check_number(self.mu, "mu", above=0))


@dataclass(frozen=True)
class Pure:
    """A release by any epsilon-DP mechanism, such as Laplace noise.

    Examples
    --------
    >>> Pure(epsilon=0.1)
    Pure(epsilon=0.1)
    """

    kind: ClassVar[str] = "pure"
    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_number(self.epsilon, "epsilon", above=0))


@dataclass(frozen=True)
class Approximate:
    """A release by any (epsilon, delta)-DP mechanism, with no other known guarantee.

    Examples
    --------
    >>> Approximate(epsilon=0.1, delta=1e-9)
    Approximate(epsilon=0.1, delta=1e-09)
    """

    kind: ClassVar[str] = "approximate"
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_number(self.epsilon, "epsilon", above=0))
        rule = "strictly between 0 and 1 (Pure has delta = 0)"
        object.__setattr__(self, "delta", check_number(self.delta, "delta", above=0, below=1, rule=rule))


@dataclass(frozen=True, init=False)
class Plan:
    """Several releases whose events are all fixed before the first release.

    Parameters
    ----------
    events : iterable of Gaussian, Pure or Approximate
    delta : float
        An additional delta at which the epsilons of the events are composed when the plan is paid for from the
        reserve. With 0, they add up.

    Privacy
    -------
    Because the events are fixed, they compose by their privacy loss distribution, which costs less than charging them
    one by one. The mechanisms may still be chosen adaptively; their events may not.

    Examples
    --------
    >>> Plan([Pure(0.1)] * 3).events
    (Pure(epsilon=0.1), Pure(epsilon=0.1), Pure(epsilon=0.1))
    """

    kind: ClassVar[str] = "plan"
    events: tuple[Gaussian | Pure | Approximate, ...]
    delta: float

    def __init__(self, events: Iterable[Gaussian | Pure | Approximate], delta: float = 0.0) -> None:
        parts = tuple(events)
        if not parts or not all(isinstance(part, Gaussian | Pure | Approximate) for part in parts):
            raise ParameterError(
                f"events must be one or more of Gaussian, Pure and Approximate, got {show(parts)} instead."
            )
        object.__setattr__(self, "events", parts)
        object.__setattr__(self, "delta", check_number(delta, "delta", at_least=0, below=1))


Event = Gaussian | Pure | Approximate | Plan


def event_to_json(event: Event) -> dict[str, Any]:
    """`event` as JSON content that `event_from_json` reads, such as ``{"kind": "gaussian", "mu": 0.25}``."""
    if not isinstance(event, Event):
        raise ParameterError(f"event must be Gaussian, Pure, Approximate or Plan, got {show(event)} instead.")
    content = {"kind": event.kind, **vars(event)}
    return {**content, "events": [event_to_json(part) for part in event.events]} if isinstance(event, Plan) else content


def event_from_json(content: Mapping[str, Any]) -> Event:
    """The event that `event_to_json` wrote, or a `LedgerError` if `content` is not one."""
    values = {name: value for name, value in content.items() if name != "kind"}
    kinds: dict[str, type[Event]] = {kind.kind: kind for kind in get_args(Event)}
    try:
        if values.get("events") is not None:
            values["events"] = [event_from_json(part) for part in values["events"]]
        found = kinds[content["kind"]](**values)
    except (TypeError, KeyError, AttributeError, ParameterError) as error:
        raise LedgerError(f"an entry holds an event that cannot be read: {content!r}.") from error
    return found


@dataclass(frozen=True)
class Reserve:
    """The part of a data set's total that is set aside for events that are not Gaussian.

    Parameters
    ----------
    epsilon, delta : float
        At least 0. The epsilons and deltas of such events add up. An event with a delta always needs `delta`; the
        epsilon of any event can also be paid from the Gaussian account, at ``pure_mu(epsilon)``.

    Examples
    --------
    >>> Reserve(epsilon=0.5, delta=1e-7)
    Reserve(epsilon=0.5, delta=1e-07)
    """

    epsilon: float = 0.0
    delta: float = 0.0

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta"):
            object.__setattr__(self, name, check_number(getattr(self, name), f"the reserve's {name}", at_least=0))


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
    payers : tuple of str
        The people and groups who may charge it; everybody, if it is empty.
    """

    dataset: str
    name: str
    mu: float
    epsilon: float
    delta: float
    left: Remaining
    returned: bool
    payers: tuple[str, ...] = ()

    def is_for(self, names: Collection[str]) -> bool:
        """Whether somebody with these names (their own, and those of their groups) may charge it."""
        return not self.payers or not set(self.payers).isdisjoint(names)


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
class Step:
    """A step of a stream: its name, the hash of what it published, and when it was recorded."""

    name: str
    digest: str
    time: str


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
