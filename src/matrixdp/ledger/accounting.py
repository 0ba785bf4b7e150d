"""Costs of events, and the totals that they are charged against.

A data set has three accounts, ``mu^2``, epsilon and delta, each with a total that is fixed at registration. An event
has one or more payment options, each with an amount for every account; an option is allowed if no account exceeds its
total. ``docs/composition.md`` proves that the three totals together guarantee the data set's (epsilon, delta) for any
adaptive choice of events. In short: the first account is a stretch of Brownian motion, the second composes by addition,
and the third bounds the probability of everything else.

The three totals are fixed separately for a reason. A ledger that checked only ``gdp_delta(mu=sqrt(sum mu_i^2),
epsilon=epsilon) + sum delta_i <= delta`` would let the analyst decide, after seeing earlier outputs, which of the two
to spend; that breaks the guarantee.

Amounts are integer multiples of a unit of ``2^-192``: what is spent is rounded up, what is allowed is rounded down, and
sums are exact, while those of floats depend on their order and may be rounded down. Doubles of at least ``2^-139``, and
squares of doubles of at least ``2^-43``, are integer multiples of the unit, so in practice nothing is rounded at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from fractions import Fraction
from functools import singledispatch

from matrixdp.errors import ParameterError, show
from matrixdp.gdp import gdp_delta, gdp_epsilon, gdp_mu, pure_mu
from matrixdp.ledger.composition import composed_epsilon, composed_mu
from matrixdp.ledger.values import Approximate, Event, Gaussian, Plan, Pure, Reserve
from matrixdp.privacy import Privacy

_BITS = 192


def units_above(value: float | Fraction) -> int:
    """`value` in units, rounded up."""
    return -units_below(-value)


def units_below(value: float | Fraction) -> int:
    """`value` in units, rounded down."""
    return int(Fraction(value) * 2**_BITS // 1)


def square_above(value: float) -> int:
    """The square of `value` in units, rounded up."""
    return units_above(Fraction(value) ** 2)


def square_below(value: float) -> int:
    """The square of `value` in units, rounded down."""
    return units_below(Fraction(value) ** 2)


def float_below(units: int) -> float:
    """The value of `units` as a float, rounded down."""
    return _round_down(Fraction(units, 2**_BITS))


def float_above(units: int) -> float:
    """The value of `units` as a float, rounded up."""
    return 0.0 - float_below(-units)


def root_below(units: int) -> float:
    """The square root of `units` as a float, rounded down (to within one unit in the last place)."""
    shift = 128
    return _round_down(Fraction(math.isqrt(units << shift), 2 ** ((_BITS + shift) // 2)))


def root_above(units: int) -> float:
    """The square root of `units` as a float, rounded up (to within one unit in the last place)."""
    root = root_below(units)
    while square_below(root) < units:
        root = math.nextafter(root, math.inf)
    return root


def _round_down(value: Fraction) -> float:
    number = float(value)
    return math.nextafter(number, -math.inf) if Fraction(number) > value else number


@dataclass(frozen=True)
class Amount:
    """Amounts of the three accounts, in exact units."""

    mu_squared: int = 0
    epsilon: int = 0
    delta: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.mu_squared + other.mu_squared, self.epsilon + other.epsilon, self.delta + other.delta)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(self.mu_squared - other.mu_squared, self.epsilon - other.epsilon, self.delta - other.delta)

    def scale(self, factor: Fraction) -> Amount:
        """The amount times `factor`, rounded down."""
        return Amount(*(int(units * factor) for units in astuple(self)))

    def within(self, total: Amount) -> bool:
        """Whether no account exceeds `total`."""
        return self.mu_squared <= total.mu_squared and self.epsilon <= total.epsilon and self.delta <= total.delta

    def to_json(self) -> list[str]:
        """Units as decimal text, since they exceed the integers that many JSON parsers support."""
        return [str(units) for units in astuple(self)]

    @classmethod
    def from_json(cls, texts: list[str]) -> Amount:
        """The amount that `to_json` wrote."""
        return cls(*map(int, texts))

    def limit(self, most: Amount) -> Amount:
        """The smaller of the two amounts in each account, and at least 0."""
        pairs = zip(astuple(self), astuple(most), strict=True)
        return Amount(*(max(0, min(pair)) for pair in pairs))


NOTHING = Amount()


def total_amount(privacy: Privacy, reserve: Reserve) -> Amount:
    """Totals of the three accounts that together guarantee `privacy`, rounded down.

    Privacy
    -------
    ``mu`` is the largest one for which `mu`-GDP implies the part of (epsilon, delta) beside the reserve.
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
    """Largest epsilon, at the delta of `privacy`, of a Gaussian release that `mu` pays for, rounded down."""
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
def payment_options(event: Event) -> Sequence[Amount]:
    """Alternative amounts that pay for `event`, the preferred one first; all rounded up."""
    raise ParameterError(f"event must be Gaussian, Pure, Approximate or Plan, got {show(event)} instead.")


@payment_options.register
def _(event: Gaussian) -> Sequence[Amount]:
    return [Amount(mu_squared=square_above(event.mu))]


@payment_options.register
def _(event: Pure) -> Sequence[Amount]:
    return _reserve_or_gaussian(units_above(event.epsilon), pure_mu(event.epsilon))


@payment_options.register
def _(event: Approximate) -> Sequence[Amount]:
    delta = Amount(delta=units_above(event.delta))
    return [option + delta for option in payment_options(Pure(event.epsilon))]


@payment_options.register
def _(event: Plan) -> Sequence[Amount]:
    others = [part for part in event.events if not isinstance(part, Gaussian)]
    fixed = Amount(
        mu_squared=sum(square_above(part.mu) for part in event.events if isinstance(part, Gaussian)),
        delta=sum(units_above(part.delta) for part in others if isinstance(part, Approximate)),
    )
    if not others:
        return [fixed]
    epsilons = tuple(part.epsilon for part in others)
    reserve, *gaussian = _reserve_or_gaussian(
        units_above(composed_epsilon(epsilons, event.delta)), composed_mu(epsilons)
    )
    # Only the payment from the reserve composes the epsilons at the plan's own delta; the Gaussian account needs none.
    # The composed epsilon may be zero, where delta alone covers the plan.
    return [reserve + fixed + Amount(delta=units_above(event.delta)), *(option + fixed for option in gaussian)]


def _reserve_or_gaussian(epsilon: int, mu: float) -> list[Amount]:
    """Payment from the reserve, which is preferred as it was set aside for this, or from the Gaussian account."""
    reserve = Amount(epsilon=epsilon)
    return [reserve, Amount(mu_squared=square_above(mu))] if math.isfinite(mu) else [reserve]


def _difference_below(whole: float, part: float) -> float:
    return float_below(units_below(whole) - units_above(part))
