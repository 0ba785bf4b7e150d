"""Schedules: the number of releases, and a budget for each that n charges spend and no more."""

from __future__ import annotations

import math
from datetime import date, timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matrixdp.errors import BudgetExceededError, ParameterError
from matrixdp.ledger import Gaussian, count_releases, make_schedule
from matrixdp.ledger.accounting import Reserve, payment_options, total_amount
from matrixdp.privacy import Privacy

TOTAL = Privacy(epsilon=4, delta=1e-6)


@pytest.mark.parametrize(
    ("every", "duration", "releases"),
    [
        ("night", 90, 90),
        ("night", "90", 90),
        ("Night", "90 days", 90),
        ("hour", "2days", 48),
        ("2 weeks", "28 days", 2),
        ("2 weeks", "29 days", 3),
        ("month", "1 year", 12),
        ("5 months", "1 year", 3),
        ("day", "1 month", 31),
        ("day", "13 months", 366 + 31),
        ("month", "90 days", 4),
        ("year", "2 days", 1),
    ],
)
def test_releases_are_counted(every, duration, releases):
    assert count_releases(every, duration) == releases


@pytest.mark.parametrize("every", ["day", "3 days", "week", "month", "2 months"])
@pytest.mark.parametrize("duration", ["1 month", "3 months", "1 year", "2 years", "90 days"])
def test_a_calendar_never_has_more_releases(every, duration):
    """Count the releases of a real calendar from every day of five years, with a leap year among them."""
    claimed = count_releases(every, duration)
    for start in (date(2027, 1, 1) + timedelta(days) for days in range(0, 5 * 365, 17)):
        end, count, when = _after(start, duration), 0, start
        while when < end:
            count += 1
            when = _after(start, _times(every, count))
        assert count <= claimed


def _times(period, count):
    number, _, unit = period.rpartition(" ")
    return f"{count * int(number or 1)} {unit}"


def _after(start, period):
    number, _, unit = period.rpartition(" ")
    number, unit = int(number or 1), unit.rstrip("s")
    if unit in ("day", "week"):
        return start + timedelta(number * {"day": 1, "week": 7}[unit])
    months = start.month - 1 + number * {"month": 1, "year": 12}[unit]
    year, month = start.year + months // 12, months % 12 + 1
    days = [31, 29 if year % 4 == 0 else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1]
    return date(year, month, min(start.day, days))


@pytest.mark.parametrize(
    "every", ["", "2", "fortnight", "0 days", "-1 day", "1.5 days", "day week", "9" * 10 + " days"]
)
def test_other_periods_are_refused(every):
    with pytest.raises(ParameterError, match="every must be hour, day, night, week, month or year"):
        count_releases(every, 10)


@pytest.mark.parametrize("duration", [0, -1, 10**9 + 1, 1.5, True, "0", "9" * 18])
def test_other_numbers_of_releases_are_refused(duration):
    with pytest.raises(ParameterError, match="the number of releases must be an integer from 1 to"):
        count_releases("day", duration)


@pytest.mark.parametrize("duration", ["long", "", "1e3", "9" * 19, None, "0 days"])
def test_other_durations_are_refused(duration):
    with pytest.raises(ParameterError, match=r"the duration must be|number of releases must be"):
        count_releases("day", duration)


@given(
    epsilon=st.floats(1e-3, 50),
    delta=st.sampled_from([1e-12, 1e-6, 1e-3]),
    releases=st.one_of(st.integers(1, 400), st.integers(1, 10**9)),
)
def test_all_releases_fit_and_no_larger_ones_would(epsilon, delta, releases):
    privacy = Privacy(epsilon, delta)
    schedule, total = make_schedule(privacy, releases), total_amount(privacy, Reserve()).mu_squared
    (cost,) = payment_options(Gaussian(schedule.mu))
    assert releases * cost.mu_squared <= total
    assert releases * Fraction(schedule.mu * (1 + 4e-16)) ** 2 > Fraction(total, 2**192)
    if schedule.epsilon > 0:
        assert Privacy(schedule.epsilon, delta).mu <= schedule.mu


def test_a_schedule_that_is_rounded_up_is_caught():
    """The broken variant rounds mu to the nearest float; for some n its charges exceed the total."""
    total = total_amount(TOTAL, Reserve()).mu_squared
    costs = {n: payment_options(Gaussian(TOTAL.mu / math.sqrt(n)))[0].mu_squared for n in range(2, 50)}
    assert any(n * cost > total for n, cost in costs.items())


def test_a_share_below_delta_has_mu_but_no_epsilon():
    schedule = make_schedule(Privacy(0.1, 1e-3), 10**6)
    assert schedule.mu > 0
    assert schedule.epsilon == 0


def test_every_scheduled_release_can_be_charged_and_no_further_one(ledger):
    schedule = ledger.schedule("clinic", 30)
    assert schedule.delta == ledger.remaining("clinic").delta
    for night in range(30):
        mu = schedule.mu if night % 2 else Privacy(schedule.epsilon, schedule.delta).mu
        ledger.charge("clinic", Gaussian(mu), neighbours="replace", description={"night": night})
    with pytest.raises(BudgetExceededError):
        ledger.charge("clinic", Gaussian(schedule.mu), neighbours="replace", description={"night": 30})


def test_a_schedule_divides_what_is_left(ledger):
    before = ledger.schedule("clinic", 10)
    ledger.charge("clinic", Gaussian(before.mu), neighbours="replace", description={})
    assert math.isclose(ledger.schedule("clinic", 9).mu, before.mu, rel_tol=1e-12)
