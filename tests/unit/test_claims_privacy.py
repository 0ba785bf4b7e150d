"""Conversions of the library agree with each other: what one grants, the other does not find too large."""

import numpy as np

import matrixdp as mdp
from matrixdp.gdp import gdp_mu


def random_budgets(count):
    rng = np.random.default_rng(0)
    return zip(10 ** rng.uniform(-4, 1.7, count), 10 ** rng.uniform(-15, -0.3, count), strict=True)


def test_the_mu_of_a_budget_has_that_delta():
    for epsilon, delta in random_budgets(300):
        assert mdp.gdp.gdp_delta(mu=gdp_mu(epsilon=epsilon, delta=delta), epsilon=epsilon) <= delta


def test_the_epsilon_of_a_mu_has_that_delta():
    for epsilon, delta in random_budgets(300):
        mu = gdp_mu(epsilon=epsilon, delta=delta)
        found = mdp.gdp.gdp_epsilon(mu=mu, delta=delta)
        assert mdp.gdp.gdp_delta(mu=mu, epsilon=found) <= delta
