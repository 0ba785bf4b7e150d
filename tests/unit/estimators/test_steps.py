"""Each step: no record leaves the set that it was clipped to, and one record moves a count by one at most."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.estimators import learning, radius, spending
from matrixdp.estimators.ball import BallMoment
from matrixdp.estimators.coordinates import LEVELS, Coordinates, row_lengths
from matrixdp.estimators.recipe import COMPONENTS, COVARIANCE, REGRESSION
from matrixdp.estimators.records import GridRecords
from matrixdp.estimators.shrinkage import nearest_of_same_trace, project_simplex, shrink_eigenvalues
from matrixdp.privacy import Neighbours
from matrixdp.queries.running import levels

PRIVACY = mdp.Privacy(1, 1e-6)


def settled(records, bounds):
    """Each record as it enters a moment in a ball, by itself."""
    everything = records.take(np.arange(len(records)))
    grid = levels(len(records))
    on_sphere = bounds.quantise(everything, grid) * bounds.steps(grid)
    return np.where((records.lengths > bounds.radius * (1 - 1e-13))[:, None], on_sphere, everything)


def spend(seed=0, privacy=PRIVACY):
    return spending.Spending(privacy, Neighbours.REPLACE, mdp.Stream(seed=seed), simulation=True)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), size=st.integers(1, 6), records=st.integers(1, 300), epsilon=st.floats(0.05, 20))
def test_after_each_clipping_records_lie_in_their_set(seed, size, records, epsilon):
    """Replays what each moment's query does with its records, one by one: box and ball hold for what is summed."""
    rng = np.random.default_rng(seed)
    data = rng.standard_cauchy((records, size)) * rng.choice([1e-3, 1, 1e3])
    steps = GridRecords(mdp.Bounds([-1] * size, [1] * size), data, LEVELS)
    assert np.abs(steps.steps).max() <= LEVELS
    seen = []

    class Watch(spending.Spending):
        def release(self, name, query, data, *, share):
            seen.append((query, data))
            return super().release(name, query, data, share=share)

    watched = Watch(mdp.Privacy(epsilon, 1e-6), Neighbours.REPLACE, mdp.Stream(seed=seed), simulation=True)
    for recipe in (COVARIANCE, COMPONENTS, REGRESSION):
        watched._releases.clear()
        learning.fit_moment(steps, recipe, watched, records=records)
    for query, answer in seen:
        if isinstance(query, mdp.Moments):
            inside = settled(answer, query.bounds)
            assert (np.abs(inside) <= query.bounds.halfwidths * (1 + 1e-15)).all()
            assert (row_lengths(inside) <= query.bounds.radius * (1 + 1e-12)).all()
            full = np.column_stack([np.ones(records), inside])
            found = query.evaluate(answer, clip=True, missing="error")
            assert np.allclose(found, full.T @ full / records, rtol=0, atol=1e-12 * query.magnitude)
        else:
            assert 0 <= query.function(answer)[0, 0] <= records


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), size=st.integers(1, 60))
def test_coordinates_of_a_record_depend_on_it_alone(seed, size):
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(size, size)) * 10.0 ** rng.uniform(-6, 6, (size, 1))
    coordinates = Coordinates.of(matrix, rng.uniform(-1, 1, size))
    steps = rng.integers(-LEVELS, LEVELS, (37, size), endpoint=True).astype(float)
    together = coordinates(steps)
    assert np.array_equal(coordinates.lengths(steps), row_lengths(together))
    apart = np.concatenate([coordinates(row[None]) for row in steps])
    assert np.array_equal(together, apart)
    assert np.array_equal(coordinates(np.asfortranarray(steps[::-1]))[::-1], together)
    for i, row in enumerate(coordinates.numbers):
        whole = sum(int(b) * (int(a) - int(m)) for a, b, m in zip(steps[0], row, coordinates.origin, strict=True))
        assert together[0, i] == whole * coordinates.unit[i]
    assert np.allclose(
        together, (steps / LEVELS - coordinates.centre) @ matrix.T, rtol=1e-5, atol=1e-5 * np.abs(matrix).max()
    )


class Lengths:
    """Records of which only the lengths are known."""

    def __init__(self, lengths):
        self.lengths = lengths

    def counter(self, cuts):
        return {cut: np.count_nonzero(self.lengths > cut) for cut in cuts}.__getitem__


@given(st.lists(st.floats(0, 10), min_size=1, max_size=30), st.floats(0, 10), st.floats(0.01, 9))
def test_a_count_changes_by_one_at_most(lengths, other, cut):
    def count(numbers):
        return radius._count(radius.Cut(lambda at: np.count_nonzero(np.array(numbers) > at), cut))[0, 0]

    assert abs(count(lengths) - count([other, *lengths[1:]])) <= 1
    assert abs(count(lengths) - count(lengths[1:])) <= 1


def test_the_radius_leaves_about_as_many_records_above_as_asked():
    lengths = np.random.default_rng(0).exponential(size=100_000)
    search = radius.Search(0.01, 20.0, above=5_000, steps=12)
    found = radius.private_radius(
        "radius", Lengths(lengths), search, spend(privacy=mdp.Privacy(5, 1e-6)), records=100_000, share=1.0
    )
    assert (lengths > found).sum() == pytest.approx(5_000, rel=0.05)


def test_counts_have_the_noise_that_their_share_buys():
    account = spend()
    radius.private_radius(
        "radius", Lengths(np.ones(10)), radius.Search(0.1, 1.0, 1.0, 4), account, records=10, share=0.1
    )
    (step,) = account.steps
    assert step.releases == 4
    assert step.mu**2 == pytest.approx(0.1 * PRIVACY.mu**2, rel=1e-9)
    assert radius.count_std(PRIVACY.mu, 0.1, 4) == pytest.approx(1 / math.sqrt(0.025) / PRIVACY.mu)


def test_a_share_beyond_the_total_is_refused():
    account = spend()
    query = mdp.SecondMoment(mdp.Bounds([-1], [1]), records=1)
    account.release("first", query, [[0.5]], share=0.75)
    with pytest.raises(mdp.ParameterError, match=r"at most 0\.25"):
        account.release("second", query, [[0.5]], share=0.3)
    assert len(account.steps) == 1
    with pytest.raises(mdp.ParameterError, match="same neighbours"):
        account.release("x", mdp.SecondMoment(mdp.Bounds([-1], [1]), 1, "add-remove"), [[0.5]], share=0.1)


def test_moved_moments_are_those_of_moved_records():
    rng = np.random.default_rng(2)
    data, matrix, centre = rng.normal(size=(50, 3)), rng.normal(size=(3, 3)), rng.normal(size=3)

    def moment(records):
        full = np.column_stack([np.ones(len(records)), records])
        return full.T @ full / len(records)

    moved, variances = BallMoment(moment(data), 0.5, 0.1).moved(matrix, centre)
    assert np.allclose(moved, moment((data - centre) @ matrix.T))
    draws = []
    for _ in range(4000):
        noise = rng.normal(size=(4, 4)) * 0.1
        noise = (noise + noise.T) / math.sqrt(2)
        noise[0] /= 0.5
        noise[:, 0] /= 0.5
        turned = BallMoment(moment(data) + noise, 0.5, 0.1).moved(matrix, centre)[0]
        draws.append(turned - moved)
    assert np.allclose(np.std(draws, axis=0), np.sqrt(variances), rtol=0.1)


def test_projection_keeps_the_trace_and_shrinkage_undoes_noise():
    rng = np.random.default_rng(3)
    truth = np.diag(np.r_[5.0, 3.0, np.zeros(38)])
    noise = rng.normal(size=(40, 40)) * 0.2
    noisy = truth + (noise + noise.T) / math.sqrt(2)
    plain, shrunk = nearest_of_same_trace(noisy), None
    assert np.trace(plain) == pytest.approx(np.trace(noisy))
    values, vectors = np.linalg.eigh(noisy)
    shrunk = (vectors * project_simplex(shrink_eigenvalues(values, 0.2))) @ vectors.T
    assert np.linalg.norm(shrunk - truth) < 0.6 * np.linalg.norm(noisy - truth)
    assert project_simplex(np.array([-1.0, -2.0])).tolist() == [0.0, 0.0]
