"""What events cost, and what a data set can pay.

A data set has three accounts, each with a total that is fixed when it is registered: ``mu^2``, epsilon and
delta. An event is paid for by an amount from each, in one of a few ways; a way of paying is allowed when no
account passes its total. That the three totals together give the data set's (epsilon, delta) for any
adaptive choice of events is proved in ``docs/ledger.md``. In short: the first account is a stretch of
Brownian motion, the second composes by adding up, the third is the probability that anything else happens.

The totals are fixed apart from one another for a reason. A ledger that checked only ``gdp_delta(sqrt(sum
mu^2), epsilon) + sum delta_i <= delta`` would let the analyst decide, after seeing earlier outputs, which
of the two to spend; that breaks the guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch

from matrixdp.checks import check_number
from matrixdp.errors import ParameterError, show
from matrixdp.ledger.composition import composed_epsilon, composed_mu
from matrixdp.ledger.events import Approximate, Event, Gaussian, Plan, Pure
from matrixdp.ledger.units import (
    float_below,
    square_above,
    square_below,
    units_above,
    units_below,
)
from matrixdp.privacy import Privacy, gdp_delta, gdp_epsilon, gdp_mu, pure_mu


@dataclass(frozen=True)
class Amount:
    """Privacy spent or allowed, in exact units (see `matrixdp.ledger.units`)."""

    mu_squared: int = 0
    epsilon: int = 0
    delta: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.mu_squared + other.mu_squared, self.epsilon + other.epsilon, self.delta + other.delta)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(self.mu_squared - other.mu_squared, self.epsilon - other.epsilon, self.delta - other.delta)

    def within(self, total: Amount) -> bool:
        """Whether no account passes `total`."""
        return self.mu_squared <= total.mu_squared and self.epsilon <= total.epsilon and self.delta <= total.delta


@dataclass(frozen=True)
class Reserve:
    """The part of a data set's total that is kept for events which are not Gaussian.

    Parameters
    ----------
    epsilon, delta : float
        At least 0. Such events draw on them by plain addition. An event with a delta always needs `delta`;
        for its epsilon, and for a pure one, the Gaussian account can pay as well, at ``pure_mu(epsilon)``.

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


def total_amount(privacy: Privacy, reserve: Reserve) -> Amount:
    """The totals of the three accounts that together guarantee `privacy`, rounded down.

    Privacy
    -------
    ``mu`` is the largest for which `mu`-GDP implies what the reserve leaves of (epsilon, delta).

    Examples
    --------
    >>> from matrixdp.ledger.units import root_below
    >>> privacy = Privacy(epsilon=1, delta=1e-6)
    >>> root_below(total_amount(privacy, Reserve()).mu_squared) == privacy.mu
    True
    """
    if reserve.epsilon > privacy.epsilon or reserve.delta > privacy.delta:
        raise ParameterError(f"the reserve must be part of {privacy}, got {reserve} instead.")
    if reserve == Reserve():
        mu = privacy.mu
    elif reserve.delta == privacy.delta:
        mu = 0.0
    else:
        mu = gdp_mu(
            epsilon=_difference_below(privacy.epsilon, reserve.epsilon),
            delta=_difference_below(privacy.delta, reserve.delta),
        )
    return Amount(square_below(mu), units_below(reserve.epsilon), units_below(reserve.delta))


def remaining_epsilon(mu: float, privacy: Privacy) -> float:
    """Largest epsilon that a Gaussian release can have at `privacy`'s delta with `mu`, rounded down.

    Examples
    --------
    >>> privacy = Privacy(epsilon=1, delta=1e-6)
    >>> remaining_epsilon(privacy.mu, privacy), round(remaining_epsilon(privacy.mu / 2, privacy), 4)
    (1.0, 0.4752)
    """
    if mu == privacy.mu:
        return privacy.epsilon
    if mu == 0.0 or gdp_delta(mu=mu, epsilon=0.0) <= privacy.delta:
        return 0.0
    epsilon, step = gdp_epsilon(mu=mu, delta=privacy.delta), math.ulp(1.0)
    while gdp_mu(epsilon=epsilon, delta=privacy.delta) > mu:
        epsilon *= 1 - step
        step *= 2
    return epsilon


@singledispatch
def ways_to_pay(event: Event) -> Sequence[Amount]:
    """The amounts with any one of which `event` is paid for, the preferred one first; all rounded up.

    Examples
    --------
    >>> len(ways_to_pay(Gaussian(0.1))), len(ways_to_pay(Pure(0.1)))
    (1, 2)
    """
    raise ParameterError(f"event must be Gaussian, Pure, Approximate or Plan, got {show(event)} instead.")


@ways_to_pay.register
def _(event: Gaussian) -> Sequence[Amount]:
    return [Amount(mu_squared=square_above(event.mu))]


@ways_to_pay.register
def _(event: Pure) -> Sequence[Amount]:
    return _either(units_above(event.epsilon), pure_mu(event.epsilon))


@ways_to_pay.register
def _(event: Approximate) -> Sequence[Amount]:
    delta = Amount(delta=units_above(event.delta))
    return [way + delta for way in ways_to_pay(Pure(event.epsilon))]


@ways_to_pay.register
def _(event: Plan) -> Sequence[Amount]:
    fixed = sum((way for part in event.events if isinstance(part, Gaussian) for way in ways_to_pay(part)), Amount())
    others = [part for part in event.events if not isinstance(part, Gaussian)]
    deltas = sum(units_above(part.delta) for part in others if isinstance(part, Approximate))
    fixed += Amount(delta=deltas)
    if not others:
        return [fixed]
    epsilons = tuple(part.epsilon for part in others)
    ways = _either(units_above(composed_epsilon(epsilons, event.delta)), composed_mu(epsilons))
    # Only the way through the reserve composes epsilons at the plan's own delta; the Gaussian one needs none.
    return [way + fixed + Amount(delta=units_above(event.delta) if way.epsilon else 0) for way in ways]


def _either(epsilon: int, mu: float) -> list[Amount]:
    """From the reserve, which was set aside for this, before the Gaussian account."""
    return [
        Amount(epsilon=epsilon),
        *([Amount(mu_squared=square_above(mu))] if math.isfinite(mu) else []),
    ]


def _difference_below(whole: float, part: float) -> float:
    return float_below(units_below(whole) - units_above(part))
