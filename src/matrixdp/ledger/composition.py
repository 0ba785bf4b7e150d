"""Composition of epsilon-DP releases whose epsilons are all fixed in advance, by their privacy loss distribution.

Every epsilon-DP release is a post-processing of randomised response (Kairouz, Oh, Viswanath 2015): its privacy loss is
at worst ``+epsilon`` with probability ``e^epsilon / (1 + e^epsilon)`` and ``-epsilon`` otherwise. For a fixed list of
epsilons the total loss is a sum of such independent losses, even if the releases themselves are chosen adaptively, and

    delta(epsilon) = sum over losses l > epsilon of  P(l) (1 - e^(epsilon - l)).

Each epsilon is rounded up to a lattice. All sums have positive terms, so their relative error is below a known multiple
of the machine precision, which is added. No Fourier transform is used: its error is absolute and would exceed the small
probabilities that matter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, expit

from matrixdp.gdp import pure_mu

_EPS = float(np.finfo(float).eps)
_LATTICE = 1 << 15
_Array = NDArray[np.float64]


@dataclass(frozen=True)
class _Curve:
    """``delta[k]`` is an upper bound on delta for every epsilon of at least ``epsilon[k]``; the last one is 0."""

    epsilon: _Array
    delta: _Array


@lru_cache(maxsize=64)
def composed_epsilon(epsilons: tuple[float, ...], delta: float) -> float:
    """An epsilon at which releases with these `epsilons` are together (epsilon, `delta`)-DP, rounded up.

    Never more than the sum, which is the answer for ``delta = 0``.

    Examples
    --------
    >>> composed_epsilon((0.125,) * 100, 0.0), round(composed_epsilon((0.125,) * 100, 1e-6), 2)
    (12.5, 6.17)
    """
    total = math.fsum(epsilons)
    if Fraction(total) < sum(map(Fraction, epsilons)):
        total = math.nextafter(total, math.inf)
    if delta == 0.0:
        return total
    curve = _curve(tuple(sorted(epsilons)))
    return min(total, float(curve.epsilon[np.argmax(curve.delta <= delta)]))


@lru_cache(maxsize=64)
def composed_mu(epsilons: tuple[float, ...]) -> float:
    """A `mu` for which releases with these `epsilons` are together `mu`-GDP, rounded up.

    Never more than ``sqrt(sum pure_mu(epsilon)^2)``, the cost of the same releases if their epsilons are not fixed in
    advance.

    Examples
    --------
    >>> round(composed_mu((0.1,)), 4), round(composed_mu((0.1,) * 100), 4)
    (0.1253, 1.0028)
    """
    apart = math.nextafter(math.hypot(*(pure_mu(epsilon) for epsilon in epsilons)) * (1 + 4 * _EPS), math.inf)
    if len(epsilons) == 1 or not 1e-3 <= apart <= 20.0:  # the range in which _gaussian_delta is accurate
        return apart
    curve = _curve(tuple(sorted(epsilons)))
    low, high = apart / 2, apart
    if not _covers(high, curve):
        return apart
    while high - low > 1e-7 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if _covers(middle, curve) else (middle, high)
    return high


def _covers(mu: float, curve: _Curve) -> bool:
    """Whether `mu`-GDP allows all of `curve`.

    Between two points, the curve is at most its value at the left one, and the Gaussian is at least its value at the
    right one.
    """
    return bool(np.all(curve.delta[:-1] <= _gaussian_delta(mu, curve.epsilon[1:])))


def _gaussian_delta(mu: float, epsilon: _Array) -> _Array:
    """delta(epsilon) of `mu`-GDP, rounded down; for ``5e-4 <= mu <= 20``.

    The difference of Mills' ratios loses a factor of about ``a/mu`` in precision, where ``a < 40`` unless the density
    underflows to 0.
    """
    a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    density = np.exp(-a * a / 2) / 2
    return density * (erfcx(a / math.sqrt(2)) - erfcx(b / math.sqrt(2))) * (1 - 1e-9)  # type: ignore[no-any-return]


@lru_cache(maxsize=8)
def _curve(epsilons: tuple[float, ...]) -> _Curve:
    """The bound on delta for randomised responses with these sorted `epsilons`, on their lattice."""
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
    return _Curve(epsilon=np.append(0.0, losses) * (1 + 4 * _EPS), delta=bound)
