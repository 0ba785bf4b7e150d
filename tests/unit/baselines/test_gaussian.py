"""Gaussian rivals against their formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest

from matrixdp import Bounds, Identity, ParameterError, Privacy, SecondMoment
from matrixdp.baselines import analytic_gaussian, analyze_gauss, classical_gaussian
from matrixdp.gdp import gdp_epsilon

IDENTITY = Identity(Bounds([0, 0], [3, 4]), records=2)
MOMENT = SecondMoment(Bounds([-1] * 4, [1] * 4), records=2021)
MOVEMENT = np.zeros((2021, 4))


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-3, 0.3])
def test_classical_noise_follows_its_formula(epsilon, delta):
    result = classical_gaussian(IDENTITY, Privacy(epsilon, delta), np.zeros((2, 2)))
    sigma = 5 * math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    assert sigma <= result.parameters["std"] * (1 + 1e-12)
    assert result.parameters["std"] <= sigma * (1 + 1e-9)


def test_classical_noise_gives_more_than_was_asked_for():
    result = classical_gaussian(IDENTITY, Privacy(1, 1e-5), np.zeros((2, 2)))
    assert result.epsilon == gdp_epsilon(mu=result.mu, delta=1e-5)
    assert 0.7 < result.epsilon < 0.8


def test_classical_noise_is_refused_above_epsilon_one():
    with pytest.raises(ParameterError, match="at most 1"):
        classical_gaussian(IDENTITY, Privacy(1.01, 1e-5), np.zeros((2, 2)))


def test_analytic_noise_is_the_smallest():
    privacy = Privacy(3, 1e-5)
    result = analytic_gaussian(IDENTITY, privacy, np.zeros((2, 2)))
    assert np.isclose(result.parameters["std"], 5.0 / privacy.mu, rtol=1e-9)
    assert np.isclose(result.epsilon, 3)


def test_analyze_gauss_of_the_second_experiment():
    result = analyze_gauss(MOMENT, Privacy(1, 1 / 2021), MOVEMENT)
    published = classical_gaussian(MOMENT, Privacy(1, 1 / 2021), MOVEMENT)
    sigma = 4 * math.sqrt(2) / 2021 * math.sqrt(2 * math.log(1.25 * 2021))
    # One standard deviation on the diagonal, sqrt(1/2) of it off.
    assert np.isclose(published.parameters["std"], sigma * math.sqrt(10 / 16), rtol=1e-6)
    assert np.isclose(result.parameters["std"], 0.00775 * math.sqrt(10 / 16), rtol=1e-3)
    assert np.array_equal(result.matrix, result.matrix.T)
