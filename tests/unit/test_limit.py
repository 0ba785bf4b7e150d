"""Lower bounds on the error of Gaussian noise of any covariance."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from matrixdp import (
    Adjacency,
    Bounds,
    ContingencyTable,
    GramMatrix,
    Identity,
    Laplacian,
    Moments,
    Privacy,
    Query,
    SecondMoment,
    make_design,
)
from matrixdp.design import binary
from matrixdp.noise.matrix import triangle_to_vector
from matrixdp.privacy import Neighbours
from matrixdp.sensitivity import EdgeChange, FrobeniusBall, RankOneChange, Vertices
from matrixdp.sensitivity.limit import best_covariance, least_ball_error, least_moment_error

PRIVACY = Privacy(1, 1e-6)


def _changes(features: int, *, replace: bool, constant: bool) -> np.ndarray:
    """All changes between records with entries -1, 0 and 1."""
    records = [np.array(x) for x in itertools.product((-1.0, 0.0, 1.0), repeat=features)]
    if constant:
        records = [np.append(1.0, x) for x in records]
    moments = [triangle_to_vector(np.multiply.outer(x, x)) for x in records]
    changes = np.array([a - b for a, b in itertools.combinations(moments, 2)] if replace else moments)
    changes = np.unique(changes, axis=0)
    return changes[np.abs(changes).max(axis=1) > 0]


@pytest.mark.parametrize("features", [1, 2, 3, 4])
@pytest.mark.parametrize("replace", [True, False])
def test_the_bound_for_second_moments_is_what_the_solver_finds_without_symmetry(features, replace):
    changes = _changes(features, replace=replace, constant=False)
    solution = best_covariance(changes, np.ones(changes.shape[1]), tolerance=1e-4, steps=3000)
    bound = least_moment_error(features, replace=replace, constant=False)
    assert solution.bound * (1 - 2e-4) <= bound <= solution.value * (1 + 1e-12)


@pytest.mark.parametrize("features", [1, 2, 3])
@pytest.mark.parametrize("replace", [True, False])
def test_the_bound_for_moments_is_what_the_solver_finds_without_symmetry(features, replace):
    changes = _changes(features, replace=replace, constant=True)
    solution = best_covariance(changes, np.ones(changes.shape[1]), tolerance=1e-4, steps=3000)
    bound = least_moment_error(features, replace=replace, constant=True)
    assert solution.bound * (1 - 1e-3) <= bound <= solution.value * (1 + 1e-12)


@pytest.mark.parametrize("features", [2, 4, 5, 6, 7, 10, 21, 50, 201, 1000])
def test_the_bound_for_second_moments_is_attained(features):
    n = features * (features - 1) / 2
    odd = features % 2
    reach = 2 * features**2 - 2 * odd
    traceless, trace = (1 + slope * features - 2 * odd / features for slope in (1.5, 1.0))
    least = reach * (n + (features - 1) / traceless + 1 / trace)
    bound = least_moment_error(features, replace=True, constant=False)
    assert least * (1 - 1e-11) <= bound <= least


def test_no_random_weights_prove_more_than_the_claimed_bound():
    rng = np.random.default_rng(0)
    changes = _changes(3, replace=True, constant=True)
    bound = least_moment_error(3, replace=True, constant=True)
    for _ in range(200):
        p = rng.dirichlet(np.full(len(changes), rng.choice([0.003, 0.03, 1.0])))
        values = np.linalg.eigvalsh((changes.T * p) @ changes)
        assert np.sqrt(np.maximum(values, 0)).sum() ** 2 <= bound * (1 + 1e-6)


def test_in_a_ball_noise_with_less_variance_on_the_trace_attains_the_bound():
    d, radius = 6, 0.7
    traceless, trace = 2 * radius**4, 2 * radius**4 / (d + 1)
    assert math.isclose(least_ball_error(d, radius), (d * (d + 1) / 2 - 1) * traceless + trace, rel_tol=1e-9)


@pytest.mark.parametrize(
    "query",
    [
        Identity(Bounds([0, 0, 0], [1, 2, 30]), 50),
        Identity(Bounds([-1] * 5, [1] * 5, radius=0.5), 50),
        ContingencyTable(["a", "b"], ["c", "d", "e"], 100, neighbours=Neighbours.ADD_REMOVE),
        Adjacency(7),
        GramMatrix(Bounds([-1, -1], [1, 1]), 6),
        Query((2, 3), FrobeniusBall(0.1), bound=1.0, function=np.asarray),
        Query((3, 3), FrobeniusBall(0.1), bound=1.0, function=np.asarray, side="both"),
    ],
)
def test_what_is_the_best_says_so(query):
    design = make_design(query, PRIVACY)
    assert design.excess is not None
    assert 1 - 1e-9 <= design.excess <= 1 + 1e-6
    assert "limit        the least total squared error" in design.explain()


def test_changes_of_a_laplacian_have_the_eigenvalues_of_the_triangular_graph():
    for n in (2, 3, 5, 8):
        scale = np.where(np.eye(n, dtype=bool), n - 1.0, 1.0)
        edges = [np.eye(n)[i] - np.eye(n)[j] for i, j in itertools.combinations(range(n), 2)]
        changes = np.array([triangle_to_vector(np.multiply.outer(e, e) / scale) for e in edges]) * 3.0
        least = np.sqrt(np.maximum(np.linalg.eigvalsh(changes @ changes.T / len(edges)), 0)).sum() ** 2
        assert math.isclose(EdgeChange("laplacian", 3.0).least_error(scale, symmetric=True), least, rel_tol=1e-9)
    least = (np.sqrt(10) + 4 * np.sqrt(5) + 5 * np.sqrt(2)) ** 2 / 10
    design = make_design(Laplacian(5, 3.0), PRIVACY, allocation="isotropic")
    assert math.isclose(design.limit * design.mu**2, least, rel_tol=1e-9)
    assert math.isclose(design.excess, 60 / least, rel_tol=1e-6)


def test_the_bound_does_not_depend_on_units():
    widths = np.array([1e-3, 1.0, 50.0, 3.0])
    wide = make_design(SecondMoment(Bounds(-widths, widths), 100), PRIVACY)
    unit = make_design(SecondMoment(Bounds([-1] * 4, [1] * 4), 100), PRIVACY)
    assert math.isclose(wide.limit, unit.limit, rel_tol=1e-9)
    assert math.isclose(wide.excess, unit.excess, rel_tol=1e-9)


def test_the_limit_scales_with_the_budget():
    query = Moments(Bounds([-1] * 4, [1] * 4), 100)
    half = make_design(query, PRIVACY, share=0.25)
    assert math.isclose(half.limit, 4 * make_design(query, PRIVACY).limit, rel_tol=1e-9)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("kind", [SecondMoment, Moments])
@pytest.mark.parametrize("features", [1, 2, 3, 8])
def test_no_design_is_below_the_limit(features, kind, neighbours):
    query = kind(Bounds([-1] * features, [1] * features), 100, neighbours=neighbours)
    for allocation in ("uniform", "isotropic"):
        assert make_design(query, PRIVACY, allocation=allocation).excess >= 1 - 1e-9


@pytest.mark.parametrize(
    "query",
    [
        SecondMoment(Bounds([0] * 3, [1] * 3), 100, centre=np.zeros(3)),
        SecondMoment(Bounds([-1, -2, -3], [1, 2, 3], radius=2.0), 100),
        Moments(Bounds([-1, -2], [1, 2], radius=1.5), 100),
        Identity(Bounds([-1, -2, -3], [1, 2, 3], radius=2.0), 20),
    ],
)
def test_cut_boxes_of_few_features_have_a_bound(query):
    design = make_design(query, PRIVACY)
    assert 1 - 1e-9 <= design.excess < 3


@pytest.mark.parametrize(
    "query",
    [
        SecondMoment(Bounds([0] * 3, [1] * 3), 100, centre=np.full(3, 0.2)),
        SecondMoment(Bounds(-np.arange(1.0, 9), np.arange(1.0, 9), radius=2.0), 100),
        GramMatrix(Bounds([-1, -1], [1, 1]), 6, np.zeros((2, 2))),
    ],
)
def test_unknown_limits_are_none(query):
    design = make_design(query, PRIVACY)
    assert design.limit is None
    assert design.excess is None
    assert "unknown" in design.explain()


def test_vertices_are_solved():
    changes = np.random.default_rng(1).standard_normal((6, 2, 2))
    query = Query((2, 2), Vertices(changes), bound=9.0, function=np.asarray)
    assert 1 <= make_design(query, PRIVACY, allocation="optimal").excess < 1.01
    assert make_design(query, PRIVACY).excess > 1.05


def test_a_scale_without_symmetry_is_solved_for_few_features_only():
    scale = np.array([[1.0, 3.0, 1.0], [3.0, 1.0, 1.0], [1.0, 1.0, 2.0]])
    assert RankOneChange(np.ones(3), 1).least_error(scale, symmetric=True) < 60.2
    assert RankOneChange(np.ones(6), 1).least_error(np.diag(np.arange(6.0)) + 1, symmetric=True) is None


def test_the_text_says_what_is_compared():
    query = SecondMoment(Bounds([-1] * 3, [1] * 3), 100)
    assert "1.08 times the least total squared error" in make_design(query, PRIVACY).explain()
    assert "if all entries count alike" not in make_design(query, PRIVACY).explain()
    assert "if all entries count alike" in make_design(query, PRIVACY, allocation=binary(1, 0.9)).explain()
