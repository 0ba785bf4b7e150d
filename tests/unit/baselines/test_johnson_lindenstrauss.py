"""The Johnson-Lindenstrauss transform and SuLQ on data."""

from __future__ import annotations

import math

import numpy as np
import pytest

from matrixdp import Bounds, Identity, ParameterError, Privacy, SecondMoment, Stream
from matrixdp.baselines import johnson_lindenstrauss
from matrixdp.baselines.johnson_lindenstrauss import draw_sketch, threshold

BOUNDS = Bounds([-1, -1], [1, 1])
N = 400
DATA = np.random.default_rng(0).uniform(-1, 1, (N, 1)) * [1.0, 0.5]


def simulate(query, seed, **options):
    return johnson_lindenstrauss(query, Privacy(50, 0.1), DATA, stream=Stream(seed=seed), simulation=True, **options)


def test_threshold_is_in_the_units_of_the_data():
    wide = SecondMoment(Bounds([-10, -10], [10, 10]), N)
    privacy = Privacy(1, 1e-3)
    assert threshold(wide, privacy, 7) == pytest.approx(10 * threshold(SecondMoment(BOUNDS, N), privacy, 7))


def test_published_threshold_is_the_published_one():
    w = 16 * math.sqrt(7 * math.log(2 / 0.01)) * math.log(16 * 7 / 0.01)
    diameter = 2 * math.sqrt(2)
    assert threshold(Identity(BOUNDS, N), Privacy(1, 0.01), 7, "published") == pytest.approx(w * diameter)


def test_published_threshold_gives_much_more_than_was_asked_for():
    result = johnson_lindenstrauss(SecondMoment(BOUNDS, N), Privacy(1, 1e-3), DATA, draws=20, calibration="published")
    assert result.epsilon == 0.0


def test_estimate_of_the_moment_is_right_on_average():
    exact = DATA.T @ DATA / N
    draws = np.mean([simulate(SecondMoment(BOUNDS, N), seed).matrix for seed in range(50)], axis=0)
    assert np.abs(draws - exact).max() < 0.02


def test_pseudo_records_stand_for_the_records():
    result = simulate(Identity(BOUNDS, N), 1, draws=20_000)
    assert result.matrix.shape == (20_000, 2)
    moment = result.matrix.T @ result.matrix / 20_000 - result.parameters["ridge"] * np.eye(2)
    assert np.abs(moment - DATA.T @ DATA / N).max() < 0.02


def test_pseudo_records_lie_about_the_midpoint():
    query = Identity(Bounds([99, 99], [101, 101]), N)
    result = johnson_lindenstrauss(
        query, Privacy(50, 0.1), DATA + 100, draws=5000, stream=Stream(seed=2), simulation=True
    )
    assert np.abs(result.matrix.mean(axis=0) - 100).max() < 0.1


def test_sketch_has_its_covariance():
    sums = np.array([[4.0, 1.0], [1.0, 2.0]])
    sketch = draw_sketch(Stream(seed=3), sums, 0.5, 200_000)
    assert np.abs(sketch.T @ sketch / 200_000 - sums - 0.5 * np.eye(2)).max() < 0.08


def test_draws_must_be_positive():
    with pytest.raises(ParameterError, match="draws must be"):
        simulate(Identity(BOUNDS, N), 1, draws=0)


def test_a_release_is_the_audited_sketch():
    result = simulate(Identity(BOUNDS, N), 4, draws=6)
    expected = draw_sketch(Stream(seed=4), DATA.T @ DATA, result.parameters["threshold"] ** 2, 6) / math.sqrt(N)
    assert np.allclose(result.matrix, expected)
