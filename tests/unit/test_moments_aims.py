"""Moments for a covariance, or for a second moment about a public point."""

from __future__ import annotations

import math

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp import Bounds, Moments, Privacy, SecondMoment, make_design
from matrixdp.answers.moments import covariance, second_moment

PRIVACY = Privacy(1, 1e-6)


@pytest.mark.parametrize("features", [2, 4, 10, 50])
def test_a_covariance_gets_the_share_that_is_best_for_typical_means(features):
    query = Moments.for_covariance(Bounds([-1] * features, [1] * features), 1000)
    assert query.mean_share == min(0.2, 1 / (1 + 2 * math.sqrt(features)))
    moments = np.eye(features + 1) / 3
    moments[0, 0] = 1
    moments[0, 1:] = moments[1:, 0] = 1 / 2

    def error(share):
        design = make_design(Moments(query.bounds, 1000, mean_share=share), PRIVACY)
        return covariance(moments, design).std[-1, 0]

    best = min(error(share) for share in np.linspace(0.01, 0.5, 50))
    assert error(query.mean_share) < 1.05 * best
    assert error(query.mean_share) <= error(0.2)


def test_neighbours_are_passed_on():
    bounds = Bounds([0, 0], [1, 1])
    assert Moments.for_covariance(bounds, 9, neighbours="add-remove").neighbours == "add-remove"


def test_moments_about_a_point_are_those_of_the_records():
    rng = np.random.default_rng(0)
    data, centre = rng.uniform(2, 5, (300, 3)), np.array([1.0, 4.0, -2.0])
    query = Moments(Bounds([2] * 3, [5] * 3), 300)
    design = make_design(query, PRIVACY)
    exact = query.finish(query.evaluate(data, clip=True, missing="error"))
    truth = (data - centre).T @ (data - centre) / 300
    assert np.allclose(second_moment(exact, design, centre).value, truth, rtol=1e-5)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_error_bars_of_a_moment_about_a_point_are_those_of_its_noise(neighbours):
    rng = np.random.default_rng(1)
    widths, centre = np.array([1.0, 3.0, 0.2]), np.array([2.0, -3.0, 0.0])
    design = make_design(Moments(Bounds(-widths, widths), 50, neighbours=neighbours), PRIVACY)
    std = second_moment(np.eye(4), design, centre).std
    draws = np.empty((1000, 3, 3))
    stream = mdp.Stream(3)
    data = rng.uniform(-1, 1, (50, 3)) * widths
    for k in range(len(draws)):
        draws[k] = design.release(data, stream=stream, simulation=True).second_moment(centre).value
    ratio = draws.std(axis=0) / std
    assert np.abs(ratio - 1).max() < 6 / math.sqrt(2 * len(draws))


@pytest.mark.parametrize("features", [1, 2, 3, 10, 50])
def test_a_moment_about_a_corner_has_less_noise_through_the_midpoint(features):
    bounds, corner = Bounds([0] * features, [1] * features), np.zeros(features)
    direct = make_design(SecondMoment(bounds, 1000, centre=corner), PRIVACY).std
    query = Moments(bounds, 1000)
    through = second_moment(np.eye(features + 1), make_design(query, PRIVACY), corner).std
    if features == 1:
        assert through[0, 0] < 1.35 * direct[0, 0]  # the one case in which it does not pay
    else:
        assert (through < direct).all()


def test_a_moment_about_the_midpoint_is_the_released_one():
    bounds = Bounds([0, 0], [1, 2])
    design = make_design(Moments(bounds, 100), PRIVACY)
    found = second_moment(np.diag([1.0, 0.1, 0.2]), design, bounds.midpoint)
    assert np.array_equal(found.value, np.diag([0.1, 0.2]))
    assert np.array_equal(found.std, design.std[1:, 1:])


def test_bad_centres_are_named():
    bounds = Bounds([0, 0], [1, 1])
    design = make_design(Moments(bounds, 100), PRIVACY)
    for centre in ([0.0], [np.nan, 0.0], "x"):
        with pytest.raises(mdp.ParameterError, match="centre"):
            second_moment(np.eye(3), design, centre)
    with pytest.raises(mdp.ParameterError, match="Moments"):
        second_moment(np.eye(2), make_design(SecondMoment(bounds, 100), PRIVACY), [0, 0])
