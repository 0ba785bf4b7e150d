"""Measurements: bounds stay below the truth, and contradict claims that are too small."""

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.audit import draw_tradeoff, measure, tradeoff


def gaussian():
    rng = np.random.default_rng(0)
    return lambda data: data + rng.normal(size=2)


def test_a_true_claim_stands_and_half_of_it_is_contradicted():
    zero, one = np.zeros(2), np.array([1.0, 0.0])
    assert not measure(gaussian(), zero, one, claim=1.0).broken
    found = measure(gaussian(), zero, one, claim=0.5)
    assert found.broken
    assert 0.5 < found.mu < 1
    assert "BROKEN" in str(found)
    assert "mu 0.5" in str(found)


def test_epsilon_at_delta():
    rng = np.random.default_rng(1)
    found = measure(lambda data: data + rng.laplace(), 0.0, 1.0, claim=mdp.Privacy(0.5, 1e-3), trials=8000)
    assert 0.5 < found.epsilon < 1
    assert found.broken
    assert "(0.5, 0.001)-DP" in str(found)
    assert not measure(lambda data: data + rng.laplace(), 0.0, 1.0, trials=2000).broken


def test_different_variances_are_seen():
    rng = np.random.default_rng(2)
    assert measure(lambda data: data * rng.normal(size=3), 1.0, 4.0, trials=2000).mu > 1.5


def test_noise_that_is_reused_is_seen():
    rng = np.random.default_rng(3)

    def twice(data):
        noise = rng.normal(0, 10)
        return [data + noise, 2 * data + noise]

    assert measure(twice, 0.0, 1.0, trials=1000).epsilon > 3


def test_a_statistic_of_ones_own_and_infinite_outputs():
    rng = np.random.default_rng(4)
    found = measure(
        lambda data: np.inf if rng.random() < data else 0.0, 0.1, 0.9, trials=1000, statistic=lambda x: x[:, 0]
    )
    assert 1 < found.epsilon < np.log(9)


def test_infinite_outputs_need_no_statistic_of_ones_own():
    rng = np.random.default_rng(5)
    assert measure(lambda data: [np.inf if rng.random() < data else np.nan], 0.1, 0.9, trials=1000).epsilon > 1


def test_outputs_of_different_shapes_are_errors():
    sizes = iter(range(100))
    for mechanism in (np.zeros, lambda _: np.zeros(next(sizes))):
        with pytest.raises(mdp.ParameterError, match="same shape"):
            measure(mechanism, 1, 2, trials=20)


def test_the_picture_shows_the_claimed_and_the_measured_curve():
    for claim in (1.0, mdp.Privacy(1, 1e-5), None):
        picture = draw_tradeoff(measure(gaussian(), np.zeros(2), np.ones(2), claim=claim, trials=200))
        assert ("no test may be below" in picture) == (claim is not None)
        assert picture.startswith("<svg")


def test_the_curve_of_epsilon_and_delta():
    alpha = np.array([0.0, 0.2, 1.0])
    assert tradeoff(mdp.Privacy(1, 0.1), alpha) == pytest.approx([0.9, max(0.9 - np.e * 0.2, 0.7 / np.e), 0])
