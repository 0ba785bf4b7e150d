"""Noise on the edges of a graph: the map and its inverse, variances, and that no Gaussian noise has less."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.design.explain import pair_covariance
from matrixdp.noise import Covariance, EdgeNoise, MatrixGaussian
from matrixdp.sensitivity import EdgeChange
from matrixdp.sensitivity.limit import best_covariance

PRIVACY = mdp.Privacy(1, 1e-6)
SIZES = [2, 3, 4, 5, 7]


def edges(n):
    rows, columns = np.tril_indices(n, -1)
    return list(zip(rows, columns, strict=True))


def laplacian(n, i, j):
    unit = np.eye(n)[i] - np.eye(n)[j]
    return np.outer(unit, unit)


def sides(n, variance=1.5):
    return MatrixGaussian(Covariance.identity(n, variance), Covariance.identity(n, variance))


def some_noise(n):
    return EdgeNoise(n, np.array([0.3, 0.7, 1.9]) if n > 2 else np.full(3, 0.4))


def whitening(noise, law):
    """The map from edges to coordinates, as a matrix."""
    return np.array([noise.whiten(law, laplacian(noise.nodes, i, j)) for i, j in edges(noise.nodes)]).T


@pytest.mark.parametrize("n", SIZES)
def test_variances_and_distances_follow_from_the_map(n):
    noise, law = some_noise(n), sides(n)
    matrix = whitening(noise, law)
    assert np.allclose(matrix, matrix.T)
    covariance = np.linalg.inv(matrix.T @ matrix)
    to_entries = np.array([laplacian(n, i, j).ravel() for i, j in edges(n)]).T
    expected = to_entries @ covariance @ to_entries.T
    assert np.allclose(noise.variances(law).ravel(), np.diagonal(expected))
    degrees = np.arange(n) * (n + 1)
    assert np.allclose(noise.diagonal_covariance(law.colcov), expected[np.ix_(degrees, degrees)])
    changes = np.square(matrix).sum(axis=0)
    assert np.allclose(changes, noise.squared_change / 1.5**2)
    claim = EdgeChange("laplacian", 2.0).structured_distance(law.colcov, noise)
    assert claim.exact
    assert claim.value == pytest.approx(2 * np.sqrt(changes.max()))


@pytest.mark.parametrize("n", SIZES)
def test_combine_inverts_whiten_and_bounds_hold(n):
    rng = np.random.default_rng(n)
    noise, law = some_noise(n), sides(n)
    weights = np.tril(rng.random((n, n)), -1)
    weights += weights.T
    answer = np.diag(weights.sum(axis=1)) - weights
    coordinates = noise.whiten(law, answer)
    found = noise.combine(law, coordinates)
    assert np.allclose(found, answer)
    assert np.array_equal(found, found.T)
    assert (np.abs(coordinates) <= noise.largest(law, mdp.Laplacian(n).magnitude)).all()


@pytest.mark.parametrize("n", SIZES)
def test_no_graph_has_coordinates_beyond_the_bound(n):
    """Coordinates depend on the total weight with a sign of their own, so that full graphs need not be the worst."""
    law = sides(n)
    for noise in (some_noise(n), EdgeNoise.least(n)):
        bound = noise.largest(law, mdp.Laplacian(n).magnitude)
        for centres in range(n):  # the first nodes have all their edges, others only those
            weights = np.zeros((n, n))
            weights[: centres + 1] = weights[:, : centres + 1] = 1.0
            np.fill_diagonal(weights, 0.0)
            for sign in (1.0, -1.0):
                answer = sign * (np.diag(weights.sum(axis=1)) - weights)
                assert (np.abs(noise.whiten(law, answer)) <= bound * (1 + 1e-12)).all()


@pytest.mark.parametrize("n", SIZES[:-1])
def test_no_gaussian_noise_has_a_smaller_total_error(n):
    """By the duality bound for all edges alike, and by a solver that knows no symmetry."""
    count = n * (n - 1) // 2
    changes = np.array([laplacian(n, i, j).ravel() for i, j in edges(n)])
    bound = np.linalg.svd(changes / np.sqrt(count), compute_uv=False).sum() ** 2
    noise = EdgeNoise.least(n)
    total = noise.variances(sides(n, 1.0)).sum() * noise.squared_change
    assert total == pytest.approx(bound)
    assert best_covariance(changes, np.ones(n * n)).value == pytest.approx(bound, rel=1e-3)


@pytest.mark.parametrize(("n", "before", "after"), [(5, 60, 36.8), (34, 2380, 1595), (100, 20200, 12490)])
def test_the_totals_of_the_documents(n, before, after):
    design = mdp.make_design(mdp.Laplacian(n, 2.0), PRIVACY)
    for one, expected in ((design, after), (design.isotropic, before)):
        total = np.square(one.std).sum() * (one.distance / 2.0) ** 2
        assert total == pytest.approx(expected, rel=1e-3)
    assert design.exact


def test_projected_entrywise_noise_is_noise_on_edges():
    """Independent noise on entries, projected on Laplacians, has the deviations ``q^(-1/2)``."""
    n = 6
    changes = np.array([laplacian(n, i, j).ravel() for i, j in edges(n)])
    projected = np.linalg.inv(changes @ changes.T)
    noise = EdgeNoise(n, np.array([2.0 * n, n, 2.0]) ** -0.5)
    matrix = whitening(noise, sides(n, 1.0))
    assert np.allclose(np.linalg.inv(matrix.T @ matrix), projected)
    assert noise.squared_change == pytest.approx(4)


def test_a_released_laplacian_has_rows_that_sum_to_zero():
    design = mdp.make_design(mdp.Laplacian(6), PRIVACY)
    graph = np.triu(np.random.default_rng(0).random((6, 6)) < 0.5, 1).astype(float)
    released = design.release(graph + graph.T)
    assert np.abs(released.matrix.sum(axis=1)).max() < 1e-12 * np.abs(released.matrix).max()
    assert np.array_equal(released.matrix, released.matrix.T)
    again = mdp.Release.from_json(released.to_json())
    assert np.array_equal(again.std, released.std)
    assert "noise is isotropic" not in design.explain()
    assert "the noise is on edges" in str(design)
    assert np.allclose(np.diagonal(pair_covariance(design, 0, 3)), design.std[0, 0] ** 2)


def test_noise_on_entries_where_nodes_are_not_alike():
    for options in (
        {"allocation": "isotropic"},
        {"allocation": mdp.allocations.shares([0.4, 0.3, 0.2, 0.1])},
        {"directions": np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]},
        {"calibration": "theorem2"},
    ):
        assert mdp.make_design(mdp.Laplacian(4), PRIVACY, **options).structure is None
    assert mdp.make_design(mdp.Adjacency(4), PRIVACY).structure is None


def test_altered_and_unfit_noise_is_refused():
    design = mdp.make_design(mdp.Laplacian(4), PRIVACY)
    graph = np.zeros((4, 4))
    for structure in (EdgeNoise(4, design.structure.deviations / 2), EdgeNoise.least(5)):
        with pytest.raises(mdp.ParameterError, match="altered"):
            replace(design, structure=structure).release(graph)
    for nodes, deviations in itertools.product((1, 4.0), ([1, 1, 1],)):
        with pytest.raises(mdp.ParameterError, match="nodes"):
            EdgeNoise(nodes, np.array(deviations, float))
    for deviations in ([1, 1], [1, 0, 1], [1, np.nan, 1]):
        with pytest.raises(mdp.ParameterError, match="deviations"):
            EdgeNoise(4, np.array(deviations, float))
    with pytest.raises(mdp.ParameterError, match="equal for two nodes"):
        EdgeNoise(2, np.array([1.0, 2.0, 1.0]))
    unit = Covariance.identity(4)
    with pytest.raises(mdp.ParameterError, match="noise on edges"):
        EdgeChange("adjacency").structured_distance(unit, EdgeNoise.least(4))
