"""The moment of what clipping takes: exact, private, and enough to keep the order of components."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.adaptive import clipped_tail as tail
from matrixdp.adaptive import principal_components, private_moment
from matrixdp.adaptive.budget import FitBudget
from matrixdp.adaptive.coordinates import Coordinates
from matrixdp.adaptive.grid_records import GridRecords
from matrixdp.adaptive.plan import FinalPlan
from matrixdp.adaptive.tail_query import TailMoments
from matrixdp.audit import replay
from matrixdp.privacy import Neighbours
from matrixdp.records import with_ids


def unit(d):
    return mdp.Bounds(-np.ones(d), np.ones(d))


def on_grid(data):
    return GridRecords(unit(data.shape[1]), data, 1 << 19)


def row(query, data):
    return query.evaluate(on_grid(np.asarray(data, float)), clip=True, missing="error")[0]


def test_the_answer_is_the_difference_of_both_moments():
    data = np.random.default_rng(0).uniform(-1, 1, (40, 3))
    query = TailMoments(3, (0.6, 1.2), 2.0, 40, neighbours=Neighbours.REPLACE)
    lengths = np.linalg.norm(data, axis=1, keepdims=True)
    outer, inner = (data * np.minimum(1, radius / lengths) for radius in (1.2, 0.6))
    lost = (outer.T @ outer - inner.T @ inner) / 40
    upper = np.triu_indices(3, 1)
    expected = [math.sqrt(2) * 0.6 * (outer - inner).mean(axis=0), math.sqrt(2) * lost[upper], np.diagonal(lost)]
    assert np.allclose(row(query, data), np.append(np.concatenate(expected), np.trace(lost)), atol=1e-5)


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32), d=st.integers(1, 4), share=st.floats(0.05, 0.95), kind=st.sampled_from(Neighbours))
def test_no_neighbour_moves_the_answer_by_more_than_the_sensitivity(seed, d, share, kind):
    rng = np.random.default_rng(seed)
    outer = math.sqrt(d) * rng.uniform(0.2, 1.05)
    query = TailMoments(d, (share * outer, outer), math.sqrt(d), 2, neighbours=kind)
    sides = rng.choice([-1.0, 1.0], (2, d)) * rng.choice([0.0, 1.0, rng.uniform()], (2, d))
    data = np.vstack([np.zeros(d), sides[0]])
    other = np.vstack([np.zeros(d), sides[1]]) if kind is Neighbours.REPLACE else data[:1]
    assert np.linalg.norm(row(query, data) - row(query, other)) <= query.sensitivity.frobenius


@pytest.mark.parametrize("kind", list(Neighbours))
def test_the_sensitivity_is_reached_but_for_the_mean(kind):
    """Two long records at a right angle, or one long record and none."""
    query = TailMoments(2, (0.1, 1.0), math.sqrt(2), 2, neighbours=kind)
    data = np.array([[0.0, 0.0], [1.0, 0.0]])
    other = np.array([[0.0, 0.0], [0.0, 1.0]]) if kind is Neighbours.REPLACE else data[:1]
    moved = np.linalg.norm(row(query, data) - row(query, other))
    assert 0.99 * query.sensitivity.frobenius < moved <= query.sensitivity.frobenius


@pytest.mark.parametrize("kind", list(Neighbours))
def test_rounding_to_a_coarse_box_is_part_of_the_sensitivity(kind):
    """A record within the larger ball is not rounded, and what the smaller ball keeps of it is rounded down."""
    rng, ratios = np.random.default_rng(0), []
    for _ in range(40):
        turn = 0.1 * (1 - 1e-5) * np.linalg.qr(rng.normal(size=(3, 3)))[0]
        query = TailMoments(3, (0.005, 0.1), 1000.0, 2, neighbours=kind)
        data = np.vstack([np.zeros(3), turn[0]])
        other = np.vstack([np.zeros(3), turn[1]]) if kind is Neighbours.REPLACE else data[:1]
        ratios.append(np.linalg.norm(row(query, data) - row(query, other)) / query.sensitivity.frobenius)
    without = TailMoments(3, (0.005, 0.1), 0.1, 2, neighbours=kind).sensitivity.frobenius
    assert max(ratios) <= 1
    assert max(ratios) * query.sensitivity.frobenius > 1.001 * without


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), kind=st.sampled_from(Neighbours))
def test_neighbours_in_learned_coordinates_are_within_the_sensitivity(seed, kind):
    """Coordinates with any scales and any centre; records at the corners of the box and at the centre."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 4))
    matrix = (np.linalg.qr(rng.normal(size=(d, d)))[0] * 10.0 ** rng.uniform(-2, 2, d)).T
    centre = rng.choice([-1.0, 0.0, 0.4, 1.0], d)
    plan = FinalPlan(Coordinates.of(matrix, centre), 0.1, 1.0, 1.0, 1.0, 1.0)
    corners = np.array(list(itertools.product([-1.0, 1.0], repeat=d)))
    far = np.linalg.norm((corners - centre) @ matrix.T, axis=1)
    assert far.max() <= plan.longest * (1 + 1e-9)
    outer = float(rng.choice([far.max(), far.max() / 2, np.median(far), 0.01 * far.max()]))
    query = TailMoments(d, (outer * rng.uniform(0.02, 0.7), outer), plan.longest, 2, neighbours=kind)

    def answer(records):
        return query.evaluate(on_grid(records).transform(plan.coordinates), clip=True, missing="error")[0]

    answers = [answer(np.vstack([centre, one])) for one in [centre, *corners]]
    pairs = itertools.combinations(answers, 2)
    if kind is not Neighbours.REPLACE:
        alone = answer(centre[None])
        pairs = [(alone, one) for one in answers]
    assert max(np.linalg.norm(a - b) for a, b in pairs) <= query.sensitivity.frobenius


def few_long(n, d=6):
    """A direction in which few records are far away, and another in which all records vary."""
    rng = np.random.default_rng(1)
    large = np.where(rng.random((n, 1)) < 0.06, 1.0, 0.1) * rng.uniform(0.8, 1.2, (n, d - 1))
    return np.column_stack([np.clip(1.6 * large - 1, -1, 1), rng.uniform(-0.8, 0.8, n)])


@pytest.mark.parametrize("kind", list(Neighbours))
@pytest.mark.parametrize("broken", [False, True])
def test_a_fit_with_a_tail_moment_is_within_its_claim(kind, broken, monkeypatch):
    if broken:
        evaluate = TailMoments.evaluate
        monkeypatch.setattr(TailMoments, "evaluate", lambda self, *a, **k: 1.5 * evaluate(self, *a, **k))
    data = np.vstack([[1.0, 1.0, 1.0], np.zeros((29, 3))])
    others = [np.vstack([[1.0, -1.0, 0.0], data[1:]]), np.vstack([[0.0, 0.0, 0.0], data[1:]])]
    if kind is not Neighbours.REPLACE:
        others = [data[1:]]

    def fit(records):
        budget = FitBudget(mdp.Privacy(1, 1e-6), kind)
        return tail.measure_tail(on_grid(records), (0.2, 1.4), 1.8, budget, public=30, share=1.0).std

    found = [replay(fit, data, other, claim=mdp.Privacy(1, 1e-6)) for other in others]
    assert any(one.broken for one in found) == broken


def test_few_long_records_keep_the_order_of_components():
    data = few_long(400)
    values, vectors = np.linalg.eigh(np.cov(data.T))
    assert values[-1] > 1.5 * values[-2]
    found = private_moment(
        data, unit(6), mdp.Privacy(8, 1e-6), aim="components", stream=mdp.Stream(seed=0), simulation=True
    )
    assert "tail moment" in [step.name for step in found.steps]
    assert abs(principal_components(found, 1).components[0] @ vectors[:, -1]) > 0.95


def test_a_whole_fit_with_a_tail_moment_replays():
    data = few_long(400)
    other = data.copy()
    other[0] = 1.0
    found = replay(lambda x: private_moment(x, unit(6), mdp.Privacy(8, 1e-6), aim="components"), data, other)
    assert not found.broken, str(found)
    assert any(step.query == "TailMoments" for step in found.steps)


@pytest.mark.parametrize("broken", [False, True])
def test_a_fit_of_people_with_a_tail_moment_replays(broken, monkeypatch):
    """One person with seven long rows is added, among people with one row or two."""
    if broken:
        evaluate = TailMoments.evaluate
        monkeypatch.setattr(TailMoments, "evaluate", lambda self, *a, **k: 1.01 * evaluate(self, *a, **k))
    ids = np.concatenate([np.arange(400), np.arange(0, 400, 3)])
    rows = few_long(400)[ids]
    data, other = with_ids(rows, ids), with_ids(np.vstack([rows, np.ones((7, 6))]), np.append(ids, [400] * 7))
    options = {"aim": "components", "person": "person", "neighbours": "add-remove", "records": 400}
    found = replay(lambda x: private_moment(x, unit(6), mdp.Privacy(8, 1e-6), **options), data, other)
    assert found.broken == broken, str(found)
    assert any(step.query == "TailMoments" and step.distance > 0.99 * step.claim for step in found.steps)
