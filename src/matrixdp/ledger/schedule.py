"""Schedules of repeated releases: how many there are, and which budget each of them may have.

A budget of ``mu^2`` divided equally among n releases allows each of them ``mu/sqrt(n)``. The division is done in exact
units and rounded down, so that n charges of the result fit.
"""

import math
import re
from dataclasses import dataclass
from fractions import Fraction

from matrixdp.checks import check_integer
from matrixdp.errors import ParameterError, show
from matrixdp.ledger.accounting import Amount, remaining_epsilon, root_below, total_amount
from matrixdp.ledger.values import Reserve
from matrixdp.privacy import Privacy, check_privacy

_MOST_RELEASES = 10**9
_DAYS = {"hour": Fraction(1, 24), "day": Fraction(1), "night": Fraction(1), "week": Fraction(7)}
_MONTHS = {"month": 1, "year": 12}
_PERIOD = re.compile(r"\s*([0-9]{1,9})?\s*(hour|day|night|week|month|year)s?\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Schedule:
    """The budget that each of several equal releases may have.

    Parameters
    ----------
    releases : int
        Their number.
    mu : float
        The largest Gaussian event that can be charged `releases` times.
    epsilon, delta : float
        The same as a guarantee: `releases` Gaussian releases that are each (epsilon, delta)-DP fit. If epsilon is 0,
        the share is too small for any release at this delta; design the releases for a smaller delta.
    total_mu, total_epsilon : float
        What is divided, rounded down.

    Privacy
    -------
    Gaussian releases with this budget compose to what is divided, also if each is chosen after seeing the earlier ones.
    """

    releases: int
    mu: float
    epsilon: float
    delta: float
    total_mu: float
    total_epsilon: float


def count_releases(every: str, duration: str | int) -> int:
    """The number of releases in a time, rounded up.

    Parameters
    ----------
    every : str
        The time from one release to the next: ``"hour"``, ``"day"``, ``"night"``, ``"week"``, ``"month"``, ``"year"``,
        or several of them, such as ``"2 weeks"``.
    duration : str or int
        A number is the number of releases itself. A text such as ``"90 days"`` or ``"1 year"`` is the time in which
        they are made, the first one at its beginning. Months and years count with their largest number of days where
        they are compared with days, and with their smallest between releases.

    Examples
    --------
    >>> count_releases("night", 90), count_releases("night", "90 days"), count_releases("week", "1 year")
    (90, 90, 53)
    >>> count_releases("month", "1 year")
    12
    """
    days, months = _parse_period(every, "every")
    if isinstance(duration, str) and not re.fullmatch("[0-9]{1,18}", duration):
        all_days, all_months = _parse_period(duration, "the duration")
        if months and all_months:
            releases = math.ceil(Fraction(all_months, months))
        else:
            longest = all_days + all_months // 12 * 366 + all_months % 12 * 31
            releases = math.ceil(longest / (days + months * 28))
    else:
        releases = int(duration) if isinstance(duration, str) else duration
    return check_releases(releases)


def _parse_period(text: str, name: str) -> tuple[Fraction, int]:
    """A time such as ``"night"`` or ``"2 weeks"`` as days or months, whose lengths in days differ."""
    found = _PERIOD.fullmatch(text) if isinstance(text, str) else None
    number = int(found[1] or 1) if found else 0
    if found is None or number == 0:
        raise ParameterError(
            f"{name} must be hour, day, night, week, month or year, with or without a number (such as '2 weeks'), "
            f"got {show(text)} instead."
        )
    unit = found[2].lower()
    return number * _DAYS.get(unit, Fraction(0)), number * _MONTHS.get(unit, 0)


def check_releases(releases: int) -> int:
    """`releases`, if it is an integer from 1 to a thousand million."""
    return check_integer(releases, "the number of releases", at_least=1, at_most=_MOST_RELEASES)


def make_schedule(privacy: Privacy, releases: int) -> Schedule:
    """The budget that each of `releases` equal releases may have so that all together are `privacy`-private.

    Parameters
    ----------
    privacy : Privacy
        The guarantee of all releases together.
    releases : int
        Their number; `count_releases` gives it for a period and a time.

    Privacy
    -------
    Gaussian releases, also if each is chosen after seeing the earlier ones. ``mu`` is rounded down.

    Examples
    --------
    >>> schedule = make_schedule(Privacy(epsilon=4, delta=1e-6), 90)
    >>> round(schedule.mu, 5), round(schedule.epsilon, 5)
    (0.08832, 0.3475)
    """
    check_privacy(privacy)
    return divide_amount(total_amount(privacy, Reserve()), privacy, releases)


def divide_amount(amount: Amount, privacy: Privacy, releases: int) -> Schedule:
    """The schedule that divides the Gaussian account of `amount` equally, at the delta of `privacy`."""
    mu, total = (root_below(amount.mu_squared // parts) for parts in (check_releases(releases), 1))
    epsilon, total_epsilon = (remaining_epsilon(value, privacy) for value in (mu, total))
    return Schedule(releases, mu, epsilon, privacy.delta, total, total_epsilon)
