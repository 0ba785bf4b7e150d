"""Gaussian differential privacy (`mu`-GDP): what it is as (epsilon, delta), and how it composes.

Gaussian noise gives `mu`-GDP (Dong, Roth, Su 2022) if the answers on neighbouring data sets differ by at most `mu`
standard deviations. `mu`-GDP implies (epsilon, delta)-DP if and only if (Balle & Wang 2018)::

    delta >= Phi(-a) - e^epsilon Phi(-b),    a = epsilon/mu - mu/2,  b = epsilon/mu + mu/2

If `mu` is small, the two terms nearly cancel. With Mills' ratio ``R(x) = Phi(-x)/phi(x)`` and ``e^epsilon phi(b) =
phi(a)``, the right-hand side is ``phi(a) (R(a) - R(b))``. Since ``-R'(x) = 1 - x R(x) > 0``, that is an integral of a
positive function, which is computed without cancellation. All results are rounded to the safe side.
"""

import math
import sys
from collections.abc import Callable, Iterable
from functools import lru_cache

import numpy as np
from scipy.special import erfcx, ndtr, ndtri

from matrixdp.checks import check_number

_EPS = float(np.finfo(float).eps)
_TINY = math.ulp(0.0)
_SMALLEST_DELTA = sys.float_info.min  # smaller floats are subnormal, with fewer digits
LARGEST_EPSILON = 1e12
_LARGEST_MU = 1e150  # so that its square is a float
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)


def gdp_delta(*, mu: float, epsilon: float) -> float:
    """Smallest delta at which `mu`-GDP implies (epsilon, delta)-DP, rounded up.

    Examples
    --------
    >>> gdp_delta(mu=1.0, epsilon=1.0)  # doctest: +ELLIPSIS
    0.1269...
    """
    return _delta_at(check_number(mu, "mu", above=0), check_number(epsilon, "epsilon", at_least=0))


def _delta_at(mu: float, epsilon: float) -> float:
    """`gdp_delta` without checks, for searches."""
    a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if mu >= 1.0:
        value = ndtr(-a) if a < -30.0 else ndtr(-a) * (1.0 - _mills(b) / _mills(a))
    else:
        x = a + mu * (_NODES + 1) / 2
        value = math.exp(-a * a / 2) / math.sqrt(2 * math.pi) * mu / 2 * float(_WEIGHTS @ (1 - x * _mills(x)))
    # The errors of a, b, the exponential and 1 - x R(x) are a few units in the last place times 1 + x^2.
    margin = 16 * _EPS * (1 + a * a + b * b)
    return float(min(1.0, max(value * (1 + margin), _SMALLEST_DELTA)))


def gdp_epsilon(*, mu: float, delta: float) -> float:
    """Smallest epsilon at which `mu`-GDP implies (epsilon, delta)-DP, rounded up.

    Examples
    --------
    >>> round(gdp_epsilon(mu=0.268051123, delta=1e-5), 6)
    1.0
    """
    mu, delta = check_number(mu, "mu", above=0, below=_LARGEST_MU), check_delta(delta)
    if _delta_at(mu, 0.0) <= delta:
        return 0.0
    high = max(mu, mu * mu)
    while _delta_at(mu, high) > delta:
        high *= 2
    return _root(lambda epsilon: _delta_at(mu, epsilon), delta, 0.0, high, rises=False)


def gdp_mu(*, epsilon: float, delta: float) -> float:
    """Largest `mu` at which `mu`-GDP implies (epsilon, delta)-DP, rounded down.

    Examples
    --------
    >>> gdp_delta(mu=gdp_mu(epsilon=0.1, delta=1e-5), epsilon=0.1) <= 1e-5
    True
    """
    return _mu_at(check_number(epsilon, "epsilon", at_least=0, below=LARGEST_EPSILON), check_delta(delta))


@lru_cache(maxsize=256)
def _mu_at(epsilon: float, delta: float) -> float:
    """`gdp_mu` without checks; a budget is often used for several designs."""
    low = 1.0
    while _delta_at(low, epsilon) > delta:
        low /= 2
    while _delta_at(2 * low, epsilon) <= delta:
        low *= 2
    return _root(lambda mu: _delta_at(mu, epsilon), delta, low, 2 * low, rises=True)


def pure_mu(epsilon: float) -> float:
    """Smallest `mu` for which every epsilon-DP mechanism is `mu`-GDP, rounded up."""
    epsilon = check_number(epsilon, "epsilon", above=0)
    value = -2 * ndtri(1 / (1 + math.exp(epsilon))) if epsilon < 700 else math.inf
    return float(value * (1 + 64 * _EPS) + 64 * _EPS)


def compose_mu(mus: Iterable[float]) -> float:
    """``sqrt(sum mu^2)``, the `mu` of several Gaussian releases together, rounded up.

    Privacy
    -------
    Also holds for adaptively chosen releases, provided that a total is fixed in advance and no release exceeds it.
    """
    values = [check_number(mu, "mus", at_least=0) for mu in mus]
    return math.nextafter(math.hypot(*values) * (1 + 2 * _EPS), math.inf) if any(values) else 0.0


def share_mu(mu: float, share: float) -> float:
    """The `mu` that a share of ``mu^2`` pays for, rounded down."""
    share = check_number(share, "share", above=0, at_most=1)
    return mu if share == 1.0 else mu * math.sqrt(share) * (1 - 4 * _EPS)


def _mills(x: float | np.ndarray) -> float | np.ndarray:
    """Mills' ratio ``Phi(-x)/phi(x)``."""
    return math.sqrt(math.pi / 2) * erfcx(x / math.sqrt(2))  # type: ignore[no-any-return]


def _root(delta_at: Callable[[float], float], delta: float, low: float, high: float, *, rises: bool) -> float:
    """The x in [low, high] at which `delta_at`, which `rises` or falls, crosses `delta`, moved to the safe side."""
    log_delta = math.log(delta)
    x = _find_zero(lambda x: math.log(delta_at(x)) - log_delta, low, high)
    step = _EPS
    while delta_at(x) > delta:
        x = x * (1 - step) if rises else x + step * high
        step *= 2
    return x


def _find_zero(function: Callable[[float], float], low: float, high: float) -> float:
    """The zero of a function that has different signs at `low` and `high`, by Brent's method, to four roundings.

    The steps are those of `scipy.optimize.brentq`, whose package takes longer to import than all others together.
    """
    before, now = low, high
    f_before, f_now = function(before), function(now)
    if f_before == 0:
        return before
    opposite, f_opposite, step, last_step = before, f_before, now - before, now - before
    while True:
        if f_before != 0 and f_now != 0 and (f_before < 0) != (f_now < 0):
            opposite, f_opposite, step, last_step = before, f_before, now - before, now - before
        if abs(f_opposite) < abs(f_now):
            before, now, opposite = now, opposite, now
            f_before, f_now, f_opposite = f_now, f_opposite, f_now
        least, half = (_TINY + 4 * _EPS * abs(now)) / 2, (opposite - now) / 2
        if f_now == 0 or abs(half) < least:
            return now
        tried = math.inf
        if abs(last_step) > least and abs(f_now) < abs(f_before):
            if before == opposite:
                tried = -f_now * (now - before) / (f_now - f_before)
            else:
                slope = (f_before - f_now) / (before - now)
                other = (f_opposite - f_now) / (opposite - now)
                tried = -f_now * (f_opposite * other - f_before * slope) / (other * slope * (f_opposite - f_before))
        if 2 * abs(tried) < min(abs(last_step), 3 * abs(half) - least):
            last_step, step = step, tried
        else:
            last_step = step = half
        before, f_before = now, f_now
        now += step if abs(step) > least else math.copysign(least, half)
        f_now = function(now)


def check_delta(delta: float) -> float:
    """Delta as a float, or a `ParameterError`."""
    rule = "strictly between 0 and 1 (Gaussian noise cannot give delta = 0)"
    return check_number(delta, "delta", at_least=_SMALLEST_DELTA, below=1, rule=rule)
