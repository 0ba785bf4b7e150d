"""Directions from a noisy second moment, and what they cost."""

from __future__ import annotations

import numpy as np
import pytest

from matrixdp import Bounds, Identity, Neighbours, ParameterError, Privacy, SecondMoment
from matrixdp.baselines import sulq

BOUNDS = Bounds([-1, -1, -1], [1, 1, 1])
DATA = np.linspace(-1, 1, 5000)[:, None] * [0.6, 0.0, 0.8]
QUERY = Identity(BOUNDS, 5000)
PRIVACY = Privacy(1, 1e-5)


def test_first_direction_is_found():
    result = sulq(QUERY, PRIVACY, DATA, components=1)
    assert result.matrix.shape == (3, 1)
    assert abs(result.matrix[:, 0] @ [0.6, 0.0, 0.8]) > 0.99


def test_directions_are_orthonormal():
    directions = sulq(SecondMoment(BOUNDS, 5000), PRIVACY, DATA).matrix
    assert np.allclose(directions.T @ directions, np.eye(3))


def test_share_of_mu_squared_is_spent():
    result = sulq(QUERY, PRIVACY, DATA, share=0.2)
    assert result.mu == pytest.approx(PRIVACY.mu * np.sqrt(0.2))
    assert result.delta == PRIVACY.delta
    assert 0.2 < result.epsilon < 0.5


def test_share_of_epsilon_and_delta_costs_less_and_buys_less():
    paper = sulq(QUERY, Privacy(0.2 * PRIVACY.epsilon, 0.2 * PRIVACY.delta), DATA)
    assert paper.epsilon == pytest.approx(0.2)
    assert paper.delta == pytest.approx(2e-6)
    assert paper.mu == pytest.approx(Privacy(0.2, 2e-6).mu)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"components": 0}, "components must be an integer from 1 to 3"),
        ({"components": 4}, "components must be an integer from 1 to 3"),
        ({"share": 0.0}, "share must be"),
    ],
)
def test_bad_options_are_errors(options, message):
    with pytest.raises(ParameterError, match=message):
        sulq(QUERY, PRIVACY, DATA, **options)


@pytest.mark.parametrize(
    "query",
    [SecondMoment(BOUNDS, 5000, neighbours=Neighbours.ADD_REMOVE), SecondMoment(BOUNDS, 5000, centre=[0.5, 0, 0])],
    ids=["add-remove", "centre"],
)
def test_other_moments_are_errors(query):
    with pytest.raises(ParameterError, match="must be"):
        sulq(query, PRIVACY, DATA)
