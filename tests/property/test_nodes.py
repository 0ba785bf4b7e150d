"""All edges of one node change: no pair of graphs moves the integers, or whole designs, further than claimed."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.audit import attack
from matrixdp.errors import ParameterError
from matrixdp.noise.matrix import Covariance
from matrixdp.queries.graphs import FINE, bound_degrees, tolerance
from matrixdp.sensitivity import NodeChange
from nightly import examples

SEEDS = st.integers(0, 2**32 - 1)
PRIVACY = mdp.Privacy(1, 1e-6)


def random_graph(rng, n, kind):
    """Integer weights of a graph: sparse, dense, weighted, a hub with its friends, or a long path of full nodes."""
    graph = rng.random((n, n)) < rng.uniform(0.05, 1)
    weights = np.triu(graph * (rng.random((n, n)) if kind == "weighted" else 1.0), 1)
    if kind == "path":
        weights = np.diag(np.ones(n - 1), 1)
    elif kind == "hub":
        weights[0, 1:] = 1.0
    elif kind == "steep":
        weights = weights * np.triu(0.5 ** np.arange(n))
    return to_steps(weights + weights.T)


def to_steps(weights):
    return np.rint(np.asarray(weights) * (1 << 20)).astype(np.int64) << 20


def change_node(rng, graph):
    """The same graph with other edges at one node, and without any."""
    n, node = len(graph), int(rng.integers(len(graph)))
    row = (rng.random(n) < rng.random()) * (FINE if rng.random() < 0.7 else (rng.integers(0, 1 << 20, n) << 20))
    found = []
    for edges in (row, np.full(n, FINE), np.zeros(n, np.int64)):
        other = graph.copy()
        other[node, :] = other[:, node] = edges
        other[node, node] = 0
        found.append(other)
    return found


def squares(first, second, *, laplacian):
    """Sum of squared changes of all entries, exactly, in squared weights."""
    change = (first - second).astype(object)
    total = int((change * change).sum())
    if laplacian:
        degrees = change.sum(axis=1)
        total += int((degrees * degrees).sum())
    return total / FINE**2


@examples(120)
@given(SEEDS, st.sampled_from(["random", "weighted", "path", "hub", "steep"]))
def test_no_node_moves_the_integers_further_than_claimed(seed, kind):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 25))
    graph = random_graph(rng, n, kind)
    degree = float(rng.choice([int(rng.integers(1, n + 1)), rng.uniform(1, n)]))
    made = [graph, *change_node(rng, graph)]
    if degree < n - 1:
        made = [bound_degrees(one, int(degree * FINE)) for one in made]
        for one in made:
            assert (one.sum(axis=1) <= degree * FINE + tolerance(n)).all()
            assert (one == one.T).all()
            assert (one >= 0).all()
    *others, without = made
    for laplacian in (False, True):
        name = "laplacian" if laplacian else "adjacency"
        claims = {replaced: NodeChange(name, n, 1.0, degree, replaced).frobenius ** 2 for replaced in (False, True)}
        for one in others:
            assert squares(one, without, laplacian=laplacian) <= claims[False]
            for other in others:
                assert squares(one, other, laplacian=laplacian) <= claims[True]


@examples(40)
@given(SEEDS)
def test_a_graph_within_the_bound_stays_as_it_is_and_others_get_nearer(seed):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, 12, "weighted")
    largest = int(graph.sum(axis=1).max())
    assert bound_degrees(graph, max(largest, FINE)) is graph
    found = bound_degrees(graph, max(largest // 2, FINE))
    assert (found <= graph).all()


def test_the_nearest_graph_is_that_of_a_general_solver():
    from scipy.optimize import minimize

    rng = np.random.default_rng(3)
    n, limit = 6, 1.7
    graph = random_graph(rng, n, "weighted")
    pairs = np.triu_indices(n, 1)
    weights = graph[pairs] / FINE
    incidence = np.array([[node in pair for pair in zip(*pairs, strict=True)] for node in range(n)], float)
    solved = minimize(
        lambda x: float(np.square(x - weights).sum()),
        weights / 2,
        jac=lambda x: 2 * (x - weights),
        bounds=[(0, None)] * len(weights),
        constraints={"type": "ineq", "fun": lambda x: limit - incidence @ x, "jac": lambda _: -incidence},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert np.allclose(bound_degrees(graph, int(limit * FINE))[pairs] / FINE, solved.x, atol=1e-5)


@pytest.mark.parametrize("replaced", [False, True])
def test_the_claim_for_the_adjacency_matrix_is_attained_and_half_of_it_is_caught(replaced):
    n, degree = 20, 4
    first, second = np.zeros((2, n, n), np.int64)
    first[0, 1 : 1 + degree] = first[1 : 1 + degree, 0] = FINE
    if replaced:
        second[0, 10 : 10 + degree] = second[10 : 10 + degree, 0] = FINE
    found = squares(first, second, laplacian=False)
    claim = NodeChange("adjacency", n, 1.0, degree, replaced)
    assert found <= claim.frobenius**2 <= found * 1.001
    unit = Covariance.identity(n)
    assert math.isclose(claim.distance(unit, unit).attained ** 2, found)
    assert found > NodeChange("adjacency", n, 1.0, degree / 2, replaced).frobenius ** 2


def test_cutting_edges_in_a_public_order_would_exceed_the_claim():
    """A node with many edges takes one place of each of its friends, who all drop an edge that they had."""

    def keep_first(graph, degree):
        kept = np.cumsum(graph > 0, axis=1) <= degree
        return graph * (kept & kept.T)

    n, degree = 21, 1
    graph = np.zeros((n, n), np.int64)
    for node in range(1, n, 2):
        graph[node, node + 1] = graph[node + 1, node] = FINE  # pairs, each within the bound
    other = graph.copy()
    other[0, 1:] = other[1:, 0] = FINE
    claim = NodeChange("adjacency", n, 1.0, degree, replaced=False).frobenius ** 2
    assert squares(keep_first(graph, degree), keep_first(other, degree), laplacian=False) > 5 * claim
    bounded = [bound_degrees(one, degree * FINE) for one in (graph, other)]
    assert squares(*bounded, laplacian=False) <= claim


@pytest.mark.parametrize("kind", [mdp.Adjacency, mdp.Laplacian])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_attacks_on_whole_designs_find_nothing(kind, neighbours):
    for degree, options in ((2, {}), (3.5, {"allocation": mdp.allocations.shares([0.3, *[0.1] * 7])}), (7, {})):
        query = kind(8, 2.0, unit="node", max_degree=2 * degree, neighbours=neighbours)
        design = mdp.make_design(query, PRIVACY, **options)
        assert not attack(design, starts=3, seed=1).broken


def test_a_graph_that_exceeds_the_bound_is_released_without_a_word():
    query = mdp.Laplacian(30, unit="node", max_degree=3)
    design = mdp.make_design(query, PRIVACY)
    graph = 1.0 - np.eye(30)
    released = design.release(graph)
    assert (str(released.unit), released.design.query.max_degree) == ("node", 3.0)
    assert np.abs(query.evaluate(graph, clip=True, missing="error").diagonal() - 3).max() < 1e-4
    assert mdp.Release.from_json(released.to_json()).unit == released.unit
    assert "protects one node with all its edges" in design.explain()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unit": "node"}, "max_degree must be given for unit='node'"),
        ({"unit": "node", "max_degree": 0.5}, "max_degree must be at least the weight of an edge, 1"),
        ({"unit": "node", "max_degree": math.nan}, "max_degree"),
        ({"max_degree": 3}, "max_degree must be left out for unit='edge'"),
        ({"unit": "person"}, "unit must be 'edge' or 'node' for a graph"),
        ({"neighbours": "replace"}, "neighbours must be 'add-remove' for the edges of a graph"),
    ],
)
def test_wrong_units_of_graphs(options, message):
    with pytest.raises(ParameterError, match=message):
        mdp.Adjacency(5, **options)


def test_too_many_nodes():
    with pytest.raises(ParameterError, match="nodes must be at most 10,000 for unit='node'"):
        mdp.Adjacency(10_001, unit="node", max_degree=3)
