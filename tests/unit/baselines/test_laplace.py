"""L1 sensitivities by optimised search, and the scale of the noise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from matrixdp import Bounds, Identity, Neighbours, ParameterError, Privacy, SecondMoment, Stream
from matrixdp.baselines.pure import BEST_WEIGHT, l1_sensitivity, laplace

BOXES = [np.ones(1), np.ones(2), np.array([1.0, 2.0, 0.3]), np.array([1.0, 1.0, 1.0, 5.0]), np.ones(5)]


def search(halfwidths, weight, *, radius=None, starts=60, seed=0):
    """Largest weighted L1 change of ``xx' - yy'`` over pairs of records, by many local searches."""
    m = halfwidths.size
    weights = np.where(np.eye(m, dtype=bool), 1.0, weight / 2)

    def records(z):
        pair = np.clip(z.reshape(2, m), -halfwidths, halfwidths)
        if radius is not None:
            pair = pair * np.minimum(1, radius / np.maximum(np.linalg.norm(pair, axis=1), 1e-300))[:, None]
        return pair

    def change(z):
        x, y = records(z)
        return -float((weights * np.abs(np.outer(x, x) - np.outer(y, y))).sum())

    rng = np.random.default_rng(seed)
    best = 0.0
    for _ in range(starts):
        corners = rng.integers(-1, 2, (2, m)) * halfwidths
        start = np.where(rng.random((2, m)) < 0.5, corners, rng.uniform(-halfwidths, halfwidths, (2, m)))
        found = minimize(change, start.reshape(-1), method="Powell", options={"maxiter": 40, "ftol": 1e-10})
        best = max(best, -float(found.fun), -change(start.reshape(-1)))
    return best


@pytest.mark.parametrize("halfwidths", BOXES, ids=str)
@pytest.mark.parametrize("weight", [0.4, 1.0, BEST_WEIGHT, 2.0])
def test_second_moment_sensitivity_is_the_supremum(halfwidths, weight):
    query = SecondMoment(Bounds(-halfwidths, halfwidths), records=7)
    claimed = l1_sensitivity(query, weight=weight) * 7
    found = search(halfwidths, weight, starts=12)
    corner = np.where(np.eye(halfwidths.size, dtype=bool), 1.0, weight / 2) * np.outer(halfwidths, halfwidths)
    assert found <= claimed
    assert max(found, corner.sum()) >= claimed * (1 - 1e-9)


def test_full_matrix_sensitivity_is_half_the_naive_one():
    c = np.array([1.0, 2.0, 0.5])
    query = SecondMoment(Bounds(-c, c), records=1)
    assert np.isclose(l1_sensitivity(query, weight=2.0), c.sum() ** 2)


@pytest.mark.parametrize("radius", [0.5, 1.0, 1.6])
def test_second_moment_sensitivity_holds_in_a_ball(radius):
    c = np.array([1.0, 1.0, 0.4])
    query = SecondMoment(Bounds(-c, c, radius=radius), records=1)
    claimed = l1_sensitivity(query)
    assert search(c, BEST_WEIGHT, radius=radius, starts=12) <= claimed
    assert claimed <= l1_sensitivity(SecondMoment(Bounds(-c, c), records=1))


def test_added_record_moves_as_much_as_a_replaced_one():
    bounds = Bounds([-1, -1], [1, 1])
    values = [l1_sensitivity(SecondMoment(bounds, 3, neighbours=neighbours)) for neighbours in Neighbours]
    assert values[0] == values[1]


@pytest.mark.parametrize("radius", [None, 0.5, 1.2, 2.0])
def test_data_set_sensitivity_is_the_supremum(radius):
    c = np.array([1.0, 0.3, 1.5])
    claimed = l1_sensitivity(Identity(Bounds(-c, c, radius=radius), records=4))

    def reach(z):
        x = np.clip(np.abs(z), 0, c)
        return x * min(1.0, (np.inf if radius is None else radius) / max(float(np.linalg.norm(x)), 1e-300))

    starts = np.random.default_rng(1).uniform(0, 2, (20, 3))
    options = {"maxiter": 200, "xtol": 1e-12, "ftol": 1e-12}
    found = max(
        -2 * minimize(lambda z: -float(reach(z).sum()), start, method="Powell", options=options).fun for start in starts
    )
    assert found <= claimed <= found * (1 + 1e-3)


def test_best_weight_has_the_least_mean_square_error():
    query = SecondMoment(Bounds([-1] * 4, [1] * 4), records=1)

    def error(weight):
        return l1_sensitivity(query, weight=weight) ** 2 * (4 + 12 / weight**2)

    assert error(BEST_WEIGHT) < min(error(BEST_WEIGHT * 1.01), error(BEST_WEIGHT / 1.01), error(1.0), error(2.0))


@pytest.mark.parametrize("weight", [0.0, 2.1, -1.0])
def test_weight_out_of_range_is_an_error(weight):
    with pytest.raises(ParameterError, match="weight must be"):
        l1_sensitivity(SecondMoment(Bounds([-1], [1]), records=1), weight=weight)


def test_other_queries_are_an_error():
    from matrixdp import Adjacency

    with pytest.raises(ParameterError, match="Identity or SecondMoment"):
        laplace(Adjacency(3), Privacy(1, 0.1), np.zeros((3, 3)))


def test_scale_is_the_sensitivity_over_epsilon_but_for_rounding():
    query = Identity(Bounds([0] * 21, [1] * 21), records=2126)
    result = laplace(query, Privacy(0.5, 0.1), np.full((2126, 21), 0.5), stream=Stream(seed=1), simulation=True)
    assert 42 <= result.parameters["scale"] <= 42 * (1 + 1e-7)
    assert np.isclose(np.abs(result.matrix - 0.5).mean(), 42, rtol=0.02)


def test_rounding_that_would_use_the_budget_is_an_error():
    query = Identity(Bounds([0], [1]), records=100)
    with pytest.raises(ParameterError, match="rounding"):
        laplace(query, Privacy(1e-13, 0.1), np.zeros((100, 1)))


def test_neighbours_differ_by_at_most_epsilon_on_the_grid():
    bounds, epsilon = Bounds([-1, -2], [1, 2]), 0.7
    query = SecondMoment(bounds, records=1)
    privacy = Privacy(epsilon, 0.1)
    outputs = [
        laplace(query, privacy, [record], stream=Stream(seed=1), simulation=True) for record in ([1.0, 2.0], [0.0, 0.0])
    ]
    scale, weight = outputs[0].parameters["scale"], BEST_WEIGHT
    change = np.abs(outputs[0].matrix - outputs[1].matrix)
    loss = (change[0, 0] + change[1, 1] + weight * change[0, 1]) / scale
    assert epsilon * (1 - 1e-9) <= loss <= epsilon
