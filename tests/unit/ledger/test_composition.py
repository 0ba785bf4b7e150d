"""Fixed lists of epsilons, against exact sums over all outcomes and against dp-accounting."""

from __future__ import annotations

import functools
import itertools
import math

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import common, privacy_loss_distribution

from matrixdp.gdp import gdp_delta, pure_mu
from matrixdp.ledger import accounting
from matrixdp.ledger.accounting import composed_epsilon, composed_mu

LISTS = [
    (0.1,) * 2,
    (0.1,) * 9,
    (0.3, 0.7, 0.2),
    (1.0, 1e-3, 1e-3, 0.4),
    (2.0,) * 5,
    (0.011, 0.013, 0.017) * 3,
]


@functools.cache
def outcomes(epsilons):
    """Loss and probability of every outcome of randomised responses, computed with 30 digits."""
    found = []
    with mpmath.workdps(30):
        for signs in itertools.product((1, -1), repeat=len(epsilons)):
            losses = [sign * mpmath.mpf(e) for sign, e in zip(signs, epsilons, strict=True)]
            mass = mpmath.fprod(1 / (1 + mpmath.exp(-loss)) for loss in losses)
            found.append((float(mpmath.fsum(losses)), float(mass)))
    return np.array(found).T


def exact_delta(epsilons, epsilon):
    """delta(epsilon) of randomised responses, rounded down by a relative 1e-12."""
    loss, mass = outcomes(epsilons)
    return math.fsum(mass * np.maximum(0, -np.expm1(epsilon - loss))) * (1 - 1e-12)


@pytest.mark.parametrize("epsilons", LISTS)
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12])
def test_the_composed_epsilon_holds_and_is_tight(epsilons, delta):
    epsilon = composed_epsilon(epsilons, delta)
    assert exact_delta(epsilons, epsilon) <= delta
    assert exact_delta(epsilons, epsilon * 0.999) > delta or epsilon >= sum(epsilons) * (1 - 1e-9)


@pytest.mark.parametrize("epsilons", LISTS)
def test_the_composed_mu_holds_at_every_epsilon_and_is_tight(epsilons):
    mu = composed_mu(epsilons)
    grid = np.linspace(0, sum(epsilons), 200)
    exact = [exact_delta(epsilons, epsilon) for epsilon in grid]
    assert all(value <= gdp_delta(mu=mu, epsilon=epsilon) for value, epsilon in zip(exact, grid, strict=True))
    smaller = mu * 0.995
    assert any(value > gdp_delta(mu=smaller, epsilon=epsilon) for value, epsilon in zip(exact, grid, strict=True))


@pytest.mark.parametrize("epsilons", LISTS)
def test_fixed_epsilons_never_cost_more_than_free_ones(epsilons):
    assert composed_mu(epsilons) <= math.hypot(*map(pure_mu, epsilons)) * (1 + 1e-12)
    assert composed_epsilon(epsilons, 1e-9) <= composed_epsilon(epsilons, 0.0)


@pytest.mark.parametrize("epsilons", [(1e-6,) * 3, (50.0,) * 3, (0.1,)])
def test_outside_its_range_the_bound_falls_back_to_the_sum(epsilons):
    assert math.isclose(composed_mu(epsilons), math.hypot(*map(pure_mu, epsilons)), rel_tol=1e-12)


@pytest.mark.parametrize(("epsilon", "count"), [(0.1, 100), (0.01, 1000), (0.5, 20)])
def test_it_agrees_with_dp_accounting(epsilon, count):
    peer = privacy_loss_distribution.from_privacy_parameters(common.DifferentialPrivacyParameters(epsilon, 0.0))
    theirs = peer.self_compose(count).get_epsilon_for_delta(1e-6)
    assert math.isclose(composed_epsilon((epsilon,) * count, 1e-6), theirs, rel_tol=5e-4)


def test_sums_are_rounded_up():
    assert composed_epsilon((0.1,) * 3, 0.0) == 0.30000000000000004
    assert composed_epsilon((0.5, 0.25), 0.0) == 0.75


def test_the_composed_mu_holds_between_the_points_of_a_coarse_lattice_as_well(monkeypatch):
    epsilons = (0.3,) * 4
    monkeypatch.setattr(accounting, "_LATTICE", 4)
    accounting._curve.cache_clear()
    mu = composed_mu(epsilons)
    accounting._curve.cache_clear()
    assert all(exact_delta(epsilons, x) <= gdp_delta(mu=mu, epsilon=x) for x in np.linspace(0, 1.2, 500))
