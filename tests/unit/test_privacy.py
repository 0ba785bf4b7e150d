"""Conversions compared with mpmath: accurate, and rounded to the safe side."""

import math

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from matrixdp import Neighbours, ParameterError, Privacy, gdp
from matrixdp.gdp import compose_mu, gdp_delta, gdp_epsilon, gdp_mu, pure_mu, share_mu

mp.mp.dps = 80


def true_delta(mu, epsilon):
    mu, epsilon = mp.mpf(mu), mp.mpf(epsilon)
    return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize(
    ("epsilon", "delta", "mu"),
    [(1, 1e-5, 0.268051123), (1, 1e-6, 0.236704381), (0.1, 1e-5, 0.032520784), (1, 1 / 248, 0.462058065)],
)
def test_known_budgets(epsilon, delta, mu):
    assert Privacy(epsilon, delta).mu == pytest.approx(mu, abs=5e-10)


EPSILONS = st.floats(math.log(1e-4), math.log(50)).map(math.exp)
DELTAS = st.floats(math.log(1e-15), math.log(0.5)).map(math.exp)


@settings(max_examples=300, deadline=None)
@given(EPSILONS, DELTAS)
def test_budget_is_met_and_tight(epsilon, delta):
    mu = gdp_mu(epsilon=epsilon, delta=delta)
    assert true_delta(mu, epsilon) <= delta
    assert true_delta(mp.mpf(mu) * (1 + mp.mpf(10) ** -9), epsilon) > delta


@settings(max_examples=300, deadline=None)
@given(EPSILONS, DELTAS)
def test_delta_is_accurate_and_rounded_up(epsilon, delta):
    mu = gdp_mu(epsilon=epsilon, delta=delta)
    assert 0 <= gdp_delta(mu=mu, epsilon=epsilon) / true_delta(mu, epsilon) - 1 < 1e-9


@settings(max_examples=300, deadline=None)
@given(EPSILONS, DELTAS)
def test_epsilon_is_accurate_and_rounded_up(epsilon, delta):
    mu = gdp_mu(epsilon=epsilon, delta=delta)
    found = gdp_epsilon(mu=mu, delta=delta)
    assert true_delta(mu, found) <= delta
    if found > 1e-4:
        assert true_delta(mu, mp.mpf(found) * (1 - mp.mpf(10) ** -9)) > delta


@pytest.mark.parametrize(("mu", "epsilon"), [(4.57, 182.8), (0.1, 50.0), (1.0, 40.0)])
def test_vanishing_deltas_are_rounded_up_to_the_least_normal_float(mu, epsilon):
    assert gdp_delta(mu=mu, epsilon=epsilon) >= max(true_delta(mu, epsilon), 2.2e-308)


def test_epsilon_just_below_what_delta_alone_covers():
    for mu in (1e-12, 1e-3, 0.5):
        delta = gdp_delta(mu=mu, epsilon=0.0) * (1 - 1e-15)
        assert true_delta(mu, gdp_epsilon(mu=mu, delta=delta)) <= delta


@pytest.mark.parametrize("mu", [1e-6, 1e-3, 0.5, 0.999999, 1.0, 3.0, 40.0, 1000.0])
@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 0.1, 5.0, 600.0, 1e6])
def test_far_outside_the_range_delta_is_still_an_upper_bound(mu, epsilon):
    value = gdp_delta(mu=mu, epsilon=epsilon)
    assert 0 < value <= 1
    with mp.workdps(2000):
        assert value >= true_delta(mu, epsilon) * (1 - mp.mpf(10) ** -300)


def test_a_budget_too_small_for_delta_costs_no_epsilon():
    assert gdp_epsilon(mu=1e-9, delta=0.1) == 0.0


def test_composition_and_shares_round_to_the_safe_side():
    mus = [0.1] * 7
    assert mp.mpf(compose_mu(mus)) ** 2 >= mp.fsum(mp.mpf(mu) ** 2 for mu in mus)
    assert compose_mu([]) == 0.0
    parts = [share_mu(0.3, share) for share in (0.2, 0.3, 0.5)]
    assert mp.fsum(mp.mpf(part) ** 2 for part in parts) <= mp.mpf(0.3) ** 2
    assert share_mu(0.3, 1.0) == 0.3


@pytest.mark.parametrize("epsilon", [1e-4, 0.1, 1.0, 10.0, 30.0])
def test_pure_privacy_as_gaussian(epsilon):
    exact = -2 * mp.sqrt(2) * mp.erfinv(2 / (1 + mp.exp(mp.mpf(epsilon))) - 1)
    assert 0 <= mp.mpf(pure_mu(epsilon)) - exact < 1e-9 * max(1, exact)


@pytest.mark.parametrize("epsilon", [0, -1, math.inf, math.nan, "x", None, True])
def test_unfit_epsilon_is_named(epsilon):
    with pytest.raises(ParameterError, match="epsilon must be"):
        Privacy(epsilon, 1e-6)


@pytest.mark.parametrize("delta", [0, 1e-320, 1, -0.1, 2, math.nan, "x"])
def test_unfit_delta_is_named(delta):
    with pytest.raises(ParameterError, match="delta must be"):
        Privacy(1.0, delta)


def test_unfit_shares_and_neighbours_are_named():
    with pytest.raises(ParameterError, match="mus must be"):
        compose_mu([0.1, math.nan])
    with pytest.raises(ParameterError, match="share must be"):
        share_mu(0.3, 1.5)
    with pytest.raises(ParameterError, match="'replace' or 'add-remove', got 'swap'"):
        Neighbours.parse("swap")


@given(st.floats(0.1, 10), st.floats(1, 5), st.floats(0.5, 20), st.sampled_from([1, 3, 5]))
def test_zeros_are_those_of_scipy(slope, at, width, power):
    def function(x):
        return slope * (x - at) ** power + math.tanh(x - at)

    ours = gdp._find_zero(function, at - width, at + 1.1 * width)
    assert ours == brentq(function, at - width, at + 1.1 * width, xtol=math.ulp(0.0), rtol=4 * gdp._EPS, maxiter=10_000)
