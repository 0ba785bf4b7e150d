"""Costs and totals, and a counterexample to a simpler rule."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from matrixdp.errors import ParameterError
from matrixdp.gdp import gdp_delta, gdp_mu, pure_mu
from matrixdp.ledger import Approximate, Gaussian, Plan, Pure, Reserve
from matrixdp.ledger.accounting import Amount, payment_options, remaining_epsilon, root_below, total_amount, units_above
from matrixdp.privacy import Privacy

TOTAL = Privacy(epsilon=1, delta=1e-6)


def test_without_a_reserve_the_whole_total_is_gaussian():
    total = total_amount(TOTAL, Reserve())
    assert root_below(total.mu_squared) == TOTAL.mu
    assert (total.epsilon, total.delta) == (0, 0)


def test_a_reserve_leaves_the_guarantee_intact():
    reserve = Reserve(epsilon=0.25, delta=4e-7)
    mu = root_below(total_amount(TOTAL, reserve).mu_squared)
    assert gdp_delta(mu=mu, epsilon=0.75) + reserve.delta <= TOTAL.delta
    assert gdp_delta(mu=mu * (1 + 1e-9), epsilon=0.75) + reserve.delta > TOTAL.delta


@pytest.mark.parametrize("reserve", [Reserve(epsilon=1, delta=1e-6), Reserve(delta=1e-6)])
def test_a_reserve_of_all_delta_leaves_nothing_gaussian(reserve):
    assert total_amount(TOTAL, reserve).mu_squared == 0


def test_a_reserve_of_all_epsilon_leaves_what_delta_alone_allows():
    mu = root_below(total_amount(TOTAL, Reserve(epsilon=1)).mu_squared)
    assert math.isclose(mu, 1e-6 * math.sqrt(2 * math.pi), rel_tol=1e-9)


@pytest.mark.parametrize("reserve", [Reserve(epsilon=1.1), Reserve(delta=2e-6)])
def test_a_reserve_is_part_of_the_total(reserve):
    with pytest.raises(ParameterError, match="the reserve must be part of"):
        total_amount(TOTAL, reserve)


@pytest.mark.parametrize("value", [-0.1, math.inf, math.nan, "all", True])
def test_a_reserve_out_of_range_is_refused(value):
    with pytest.raises(ParameterError, match="reserve's epsilon must be"):
        Reserve(epsilon=value)


def test_gaussian_events_cost_their_square_exactly():
    (way,) = payment_options(Gaussian(0.1))
    assert Fraction(way.mu_squared, 2**192) == Fraction(0.1) ** 2


def test_pure_events_cost_their_epsilon_or_their_mu():
    reserve, gaussian = payment_options(Pure(0.5))
    assert reserve == Amount(epsilon=units_above(0.5))
    assert math.isclose(root_below(gaussian.mu_squared), pure_mu(0.5), rel_tol=1e-15)


def test_a_pure_event_without_a_finite_mu_needs_the_reserve():
    assert payment_options(Pure(1000.0)) == [Amount(epsilon=units_above(1000.0))]


def test_approximate_events_always_cost_their_delta():
    assert [way.delta for way in payment_options(Approximate(0.5, 1e-9))] == [units_above(1e-9)] * 2


def test_plans_cost_less_than_their_events_one_by_one():
    events = [Pure(0.1)] * 20 + [Gaussian(0.1), Approximate(0.2, 1e-10)]
    reserve, gaussian = payment_options(Plan(events, delta=1e-8))
    apart = 20 * payment_options(Pure(0.1))[1].mu_squared
    apart += sum(payment_options(event)[-1].mu_squared for event in events[20:])
    assert gaussian.mu_squared < 0.75 * apart
    assert gaussian.delta == units_above(1e-10)
    assert reserve.mu_squared == payment_options(Gaussian(0.1))[0].mu_squared
    assert reserve.delta == units_above(1e-10) + units_above(1e-8)


def test_a_plan_of_gaussian_events_adds_up():
    (way,) = payment_options(Plan([Gaussian(0.1), Gaussian(0.2)]))
    assert way == payment_options(Gaussian(0.1))[0] + payment_options(Gaussian(0.2))[0]


def test_only_events_have_a_cost():
    with pytest.raises(ParameterError, match="event must be"):
        payment_options(0.1)


@pytest.mark.parametrize("share", [1.0, 0.9, 0.5, 0.1, 1e-3, 1e-6, 0.0])
def test_the_epsilon_shown_can_be_asked_for(share):
    mu = TOTAL.mu * share
    epsilon = remaining_epsilon(mu, TOTAL)
    if epsilon > 0:
        assert gdp_mu(epsilon=epsilon, delta=TOTAL.delta) <= mu
        assert gdp_mu(epsilon=epsilon * (1 + 1e-9), delta=TOTAL.delta) > mu * (1 - 1e-12)
    else:
        assert share <= 1e-5


def test_a_joint_condition_on_mu_and_delta_fails_for_an_adaptive_analyst():
    """Spend 70% of mu^2, then the rest of it if the loss is close to epsilon, and otherwise all of delta.

    ``gdp_delta(mu=sqrt(sum mu_i^2), epsilon=epsilon) + sum delta_i <= delta`` holds on every path, yet the true
    delta is almost twice the total. With separate totals, the same analyst stays below it.
    """
    whole, first = TOTAL.mu**2, 0.7 * TOTAL.mu**2
    spare = TOTAL.delta - gdp_delta(mu=math.sqrt(first), epsilon=TOTAL.epsilon)
    assert _adaptive_delta(first, whole - first, spare) > 1.9 * TOTAL.delta

    reserve = Reserve(delta=5e-7)
    whole = root_below(total_amount(TOTAL, reserve).mu_squared) ** 2
    assert _adaptive_delta(0.7 * whole, 0.3 * whole, reserve.delta) <= TOTAL.delta


def _adaptive_delta(first: float, second: float, delta: float) -> float:
    """The delta of an analyst who chooses between `second` and `delta` after a Gaussian event of `first`."""
    loss = np.linspace(-10, 10, 100_001) * math.sqrt(first) + first / 2
    weight = norm.pdf(loss, first / 2, math.sqrt(first)) * (loss[1] - loss[0])
    left, mu = TOTAL.epsilon - loss, math.sqrt(second)
    go_on = norm.cdf(mu / 2 - left / mu) - np.exp(left) * norm.cdf(-mu / 2 - left / mu)
    stop = delta + (1 - delta) * np.maximum(0, -np.expm1(left))
    return float(weight @ np.maximum(go_on, stop))
