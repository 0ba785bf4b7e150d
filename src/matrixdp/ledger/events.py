"""Events: the guarantees of the releases that are charged to a data set.

An event is a frozen value that says what was released, not what it costs: `matrixdp.ledger.accounting` decides that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, get_args

from matrixdp.checks import check_number
from matrixdp.errors import LedgerError, ParameterError, show


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
