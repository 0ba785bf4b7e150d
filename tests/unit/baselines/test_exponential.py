"""The exponential mechanisms, for a matrix and for a direction."""

from __future__ import annotations

import math

import numpy as np
import pytest

from matrixdp import Bounds, Identity, Neighbours, Privacy, SecondMoment, Stream
from matrixdp.baselines import exponential, ppca
from matrixdp.baselines.pure import _best_b, concentration, draw_bingham, draw_radial

IDENTITY = Identity(Bounds([0, 0], [3, 4]), records=2)


def test_noise_is_the_radial_draw_times_sensitivity_over_epsilon():
    data = np.array([[1.0, 2.0], [3.0, 0.5]])
    result = exponential(IDENTITY, Privacy(2, 0.1), data, stream=Stream(seed=1), simulation=True)
    expected = data + 5 / 2 * draw_radial(Stream(seed=1), 4, 1).reshape(2, 2)
    assert np.allclose(result.matrix, expected)
    assert result.epsilon == 2


def test_halved_is_the_textbook_form():
    result = exponential(IDENTITY, Privacy(2, 0.1), np.zeros((2, 2)), halved=True)
    assert result.parameters["scale"] == pytest.approx(5)
    assert result.epsilon == 1


def test_a_symmetric_answer_stays_symmetric():
    query = SecondMoment(Bounds([-1] * 3, [1] * 3), records=5)
    result = exponential(query, Privacy(1, 0.1), np.zeros((5, 3)))
    assert np.array_equal(result.matrix, result.matrix.T)


def largest_range(halfwidths, seed=0):
    """Largest width of ``(v'x)^2 - (v'y)^2`` over directions, by search over pairs of records."""
    rng = np.random.default_rng(seed)
    best = 0.0
    for _ in range(2000):
        x, y = np.where(rng.random((2, halfwidths.size)) < 0.7, 1, rng.random((2, halfwidths.size))) * halfwidths
        x, y = x * rng.choice([-1, 1], x.size), y * rng.choice([-1, 1], y.size)
        values = np.linalg.eigvalsh(np.outer(x, x) - np.outer(y, y))
        best = max(best, values[-1] - values[0])
    return best


def test_concentration_pays_for_the_range_of_the_quality():
    c = np.array([1.0, 1.0, 2.0, 2.0])
    query = SecondMoment(Bounds(-c, c), records=3)
    width = largest_range(c) / 3
    assert concentration(query, 1.0) * width <= 1 + 1e-12
    assert concentration(query, 1.0) * width >= 1 - 1e-6


def test_concentration_is_twice_as_large_where_records_come_and_go():
    bounds = Bounds([-1, -1], [1, 1])
    replace, add = (SecondMoment(bounds, 3, neighbours=neighbours) for neighbours in Neighbours)
    assert concentration(add, 1.0) == 2 * concentration(replace, 1.0)


def test_no_loss_of_ppca_exceeds_epsilon():
    """The log ratio of the two densities on a circle, for random data sets, by quadrature."""
    rng = np.random.default_rng(2)
    angle = np.linspace(0, math.pi, 4001)[:-1]
    v = np.stack([np.cos(angle), np.sin(angle)])
    bounds, epsilon, worst = Bounds([-1, -1], [1, 1]), 1.3, 0.0
    for records in rng.integers(1, 40, 200):
        query = SecondMoment(bounds, int(records))
        first = rng.choice([-1.0, 1.0], (records, 2)) if rng.random() < 0.5 else np.array([[1.0, -1.0]] * records)
        second = first.copy()
        second[0] = [1.0, 1.0] if rng.random() < 0.5 else rng.uniform(-1, 1, 2)
        logs = []
        for data in (first, second):
            moment = query.evaluate(data, clip=False, missing="error")
            exponent = concentration(query, epsilon) * np.einsum("ik,ij,jk->k", v, moment, v)
            logs.append(exponent - np.log(np.exp(exponent - exponent.max()).sum()) - exponent.max())
        worst = max(worst, np.abs(logs[0] - logs[1]).max())
    assert 0.9 * epsilon < worst <= epsilon


def test_ppca_finds_the_direction_with_a_large_budget():
    query = SecondMoment(Bounds([-1, -1, -1], [1, 1, 1]), records=50)
    data = np.linspace(-1, 1, 50)[:, None] * [0.6, -0.8, 0.0]
    direction = ppca(query, Privacy(1e6, 0.1), data, stream=Stream(seed=3), simulation=True).matrix[:, 0]
    assert abs(direction @ [0.6, -0.8, 0.0]) > 0.999
    assert np.linalg.norm(direction) == pytest.approx(1)


def test_bingham_envelope_lies_above_the_density():
    rng = np.random.default_rng(0)
    for m in (2, 3, 21):
        rates = np.sort(rng.exponential(20, m))[::-1]
        rates[-1] = 0
        b = _best_b(rates)
        assert (1 / (b + 2 * rates)).sum() == pytest.approx(1)
        u = np.linspace(0, rates[0], 1001)
        envelope = -(m - b) / 2 + m / 2 * math.log(m / b) - m / 2 * np.log1p(2 * u / b)
        assert (-u <= envelope + 1e-12).all()


@pytest.mark.parametrize("m", [1, 2, 5])
def test_bingham_of_no_preference_is_uniform_on_the_sphere(m):
    points = draw_bingham(Stream(seed=1), np.zeros((m, m)), 30)
    assert points.shape == (30, m)
    assert np.allclose(np.linalg.norm(points, axis=1), 1)


def test_a_release_of_ppca_is_the_audited_draw():
    query, data = SecondMoment(Bounds([-1, -1], [1, 1]), records=2), np.array([[0.5, 1.0], [-1.0, 0.25]])
    result = ppca(query, Privacy(2, 0.1), data, stream=Stream(seed=5), simulation=True)
    moment = query.evaluate(data, clip=True, missing="error")
    assert np.array_equal(result.matrix, draw_bingham(Stream(seed=5), concentration(query, 2.0) * moment).T)
