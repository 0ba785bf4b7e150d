"""Costs of events, and the totals that they are charged against.

A data set has three accounts, ``mu^2``, epsilon and delta, each with a total that is fixed at registration. An event
has one or more payment options, each with an amount for every account; an option is allowed if no account exceeds its
total. ``docs/composition.md`` proves that the three totals together guarantee the data set's (epsilon, delta) for any
adaptive choice of events, and why one condition for all three would not.

Amounts are integer multiples of a unit of ``2^-192``: what is spent is rounded up, what is allowed is rounded down, and
sums are exact, while those of floats depend on their order and may be rounded down. Doubles of at least ``2^-139``, and
squares of doubles of at least ``2^-43``, are integer multiples of the unit, so in practice nothing is rounded at all.

Epsilon-DP releases whose epsilons are all fixed in advance compose by their privacy loss distribution. Each is at worst
a randomised response (Kairouz, Oh, Viswanath 2015): its privacy loss is ``+epsilon`` with probability ``e^epsilon /
(1 + e^epsilon)`` and ``-epsilon`` otherwise, so that ``delta(epsilon) = sum over losses l > epsilon of P(l)
(1 - e^(epsilon - l))``. Each epsilon is rounded up to a lattice. All sums have positive terms, so their relative error
is below a known multiple of the machine precision, which is added. No Fourier transform is used: its error is absolute
and would exceed the small probabilities that matter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import numpy as np
from scipy.special import erfcx, expit

from matrixdp.errors import ParameterError, show
from matrixdp.gdp import gdp_delta, gdp_epsilon, gdp_mu, pure_mu
from matrixdp.ledger.values import Approximate, Event, Gaussian, Plan, Pure, Reserve
from matrixdp.privacy import Privacy
from matrixdp.types import Floats

_BITS = 192
_EPS = float(np.finfo(float).eps)
_LATTICE = 1 << 15


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
        return Amount(*(max(0, min(pair)) for pair in zip(astuple(self), astuple(most), strict=True)))


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


@lru_cache(maxsize=256)
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


def payment_options(event: Event) -> Sequence[Amount]:
    """Alternative amounts that pay for `event`, the preferred one first; all rounded up."""
    match event:
        case Gaussian():
            return [Amount(mu_squared=square_above(event.mu))]
        case Pure():
            return _reserve_or_gaussian(units_above(event.epsilon), pure_mu(event.epsilon))
        case Approximate():
            delta = Amount(delta=units_above(event.delta))
            return [option + delta for option in payment_options(Pure(event.epsilon))]
        case Plan():
            return _pay_plan(event)
    raise ParameterError(f"event must be Gaussian, Pure, Approximate or Plan, got {show(event)} instead.")


def _pay_plan(event: Plan) -> Sequence[Amount]:
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


@lru_cache(maxsize=64)
def composed_epsilon(epsilons: tuple[float, ...], delta: float) -> float:
    """An epsilon at which releases with these `epsilons` are together (epsilon, `delta`)-DP, rounded up.

    Never more than the sum, which is the answer for ``delta = 0``: for 100 times 0.125, it is 12.5, and 6.17 for 1e-6.
    """
    total = math.fsum(epsilons)
    if Fraction(total) < sum(map(Fraction, epsilons)):
        total = math.nextafter(total, math.inf)
    if delta == 0.0:
        return total
    epsilon, deltas = _curve(tuple(sorted(epsilons)))
    return min(total, float(epsilon[np.argmax(deltas <= delta)]))


@lru_cache(maxsize=64)
def composed_mu(epsilons: tuple[float, ...]) -> float:
    """A `mu` for which releases with these `epsilons` are together `mu`-GDP, rounded up.

    Never more than ``sqrt(sum pure_mu(epsilon)^2)``, the cost of the same releases if their epsilons are not fixed in
    advance.
    """
    apart = math.nextafter(math.hypot(*(pure_mu(epsilon) for epsilon in epsilons)) * (1 + 4 * _EPS), math.inf)
    if len(epsilons) == 1 or not 1e-3 <= apart <= 20.0:  # the range in which _gaussian_delta is accurate
        return apart
    epsilon, delta = _curve(tuple(sorted(epsilons)))
    low, high = apart / 2, apart

    def covers(mu: float) -> bool:
        """Whether `mu`-GDP allows all of the curve.

        Between two points, the curve is at most its value at the left one, and the Gaussian is at least its value at
        the right one.
        """
        return bool(np.all(delta[:-1] <= _gaussian_delta(mu, epsilon[1:])))

    if not covers(high):
        return apart
    while high - low > 1e-7 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if covers(middle) else (middle, high)
    return high


def _gaussian_delta(mu: float, epsilon: Floats) -> Floats:
    """delta(epsilon) of `mu`-GDP, rounded down; for ``5e-4 <= mu <= 20``.

    The difference of Mills' ratios loses a factor of about ``a/mu`` in precision, where ``a < 40`` unless the density
    underflows to 0.
    """
    a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    density = np.exp(-a * a / 2) / 2
    return density * (erfcx(a / math.sqrt(2)) - erfcx(b / math.sqrt(2))) * (1 - 1e-9)  # type: ignore[no-any-return]


@lru_cache(maxsize=8)
def _curve(epsilons: tuple[float, ...]) -> tuple[Floats, Floats]:
    """Epsilons on a lattice, and upper bounds on delta for every epsilon of at least each; the last bound is 0.

    They are those of randomised responses with these sorted `epsilons`.
    """
    # The largest epsilon is a whole number of steps, so equal epsilons are not rounded at all.
    parts = max(1, math.floor(_LATTICE * epsilons[-1] / math.fsum(epsilons)))
    step = epsilons[-1] / parts * (1 + 16 * _EPS)
    counts = [math.ceil(epsilon / step * (1 + 4 * _EPS)) for epsilon in epsilons]
    mass = np.ones(1)
    for count in counts:
        # Entry i is a loss of (2 i - sum of counts so far) steps. One response shifts it by its count, or not at all.
        longer = np.zeros(len(mass) + count)
        longer[count:] += expit(count * step) * mass
        longer[: len(mass)] += expit(-count * step) * mass
        mass = longer
    total = len(mass) - 1
    first = total // 2 + 1
    losses = (2 * np.arange(first, total + 1) - total) * step
    above = np.cumsum(mass[:first:-1])[::-1]  # above[k] is the probability of losses greater than losses[k]
    above = np.append(above, 0.0)
    # 1 - e^-(x+y) = (1 - e^-x) + e^-x (1 - e^-y): a recursion from the right in which every term is positive.
    ratio = math.exp(-2 * step)
    terms = (-math.expm1(-2 * step) * above)[::-1].tolist()
    delta = np.array(list(accumulate(terms, lambda sum_so_far, term: term + ratio * sum_so_far)))[::-1]
    at_zero = -math.expm1(-losses[0]) * (above[0] + mass[first]) + math.exp(-losses[0]) * delta[0]
    margin = 1 + 16 * _EPS * (len(counts) + len(mass))
    bound = np.append(at_zero, delta) * margin + 1e-300
    bound[-1] = 0.0
    return np.append(0.0, losses) * (1 + 4 * _EPS), bound
