"""Each step: no record leaves the set that it was clipped to, and one record moves a count by one at most."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.estimators import learning, radius, spending, tail
from matrixdp.estimators.ball import BallMoment
from matrixdp.estimators.coordinates import LEVELS, Coordinates
from matrixdp.estimators.posterior import posterior_coefficients
from matrixdp.estimators.recipe import COMPONENTS, COVARIANCE, REGRESSION, aimed_count, count_share
from matrixdp.estimators.records import EXCESS_STEPS, GridRecords, HeldRecords
from matrixdp.estimators.shrinkage import (
    keep_spikes,
    level_spectrum,
    nearest_of_same_trace,
    project_simplex,
    shrink_eigenvalues,
)
from matrixdp.estimators.traced import TracedMoments
from matrixdp.privacy import Neighbours
from matrixdp.queries.running import levels
from matrixdp.rowwise import square_lengths

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
        learning.fit_moment(steps, recipe, watched, records=records, targets=int(recipe is REGRESSION))
    for query, answer in seen:
        if isinstance(query, TracedMoments):
            bounds = query.moments.bounds
            inside = settled(answer, bounds)
            assert (np.abs(inside) <= bounds.halfwidths * (1 + 1e-15)).all()
            assert (row_lengths(inside) <= bounds.radius * (1 + 1e-12)).all()
            full = np.column_stack([np.ones(records), inside])
            found = query.moments.evaluate(answer, clip=True, missing="error")
            assert np.allclose(found, full.T @ full / records, rtol=0, atol=1e-12 * query.moments.magnitude)
        elif isinstance(query.function, tail._Mean):
            assert 0 <= query.function(answer)[0, 0] <= query.function.reach
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


def row_lengths(records):
    return np.sqrt(square_lengths(records))


class Lengths(HeldRecords):
    """Records of which only the lengths are known."""

    def __init__(self, lengths):
        self.lengths = np.asarray(lengths, float)

    take = sums_without = moved = None


def traced(size, records, ratio=0.25):
    bounds = mdp.Bounds([-2.0] * size, [2.0] * size, radius=2.0)
    return TracedMoments(mdp.Moments(bounds, records, mean_share=ratio / (1 + ratio)), ratio)


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    size=st.integers(1, 5),
    ratio=st.floats(0.01, 1),
    lengths=st.tuples(*[st.floats(0, 1)] * 2),
)
def test_one_record_moves_a_traced_moment_by_its_sensitivity_at_most(seed, size, ratio, lengths):
    rng = np.random.default_rng(seed)
    query, others = traced(size, 4, ratio), rng.normal(size=(3, size))
    pair = rng.normal(size=(2, size))
    pair *= (2 * np.array(lengths) / row_lengths(pair))[:, None]
    first, second = (query.evaluate(np.vstack([record, others]), clip=True, missing="error") for record in pair)
    assert np.linalg.norm(first - second) <= query.sensitivity.frobenius * (1 + 1e-12)
    assert (np.abs(first) <= query.magnitude).all()


def test_the_sensitivity_of_a_traced_moment_is_attained_and_a_heavier_trace_would_pass_it():
    query = traced(2, 1, ratio=0.25)
    angle = math.acos(-(query.constant**2) / 4)  # between records on the sphere: u'v = -c0^2
    pair = 2 * np.array([[[1.0, 0.0]], [[math.cos(angle), math.sin(angle)]]])
    first, second = (query.evaluate(record, clip=True, missing="error") for record in pair)
    assert np.linalg.norm(first - second) == pytest.approx(query.sensitivity.frobenius, rel=1e-5)
    origin = query.evaluate(np.zeros((1, 2)), clip=True, missing="error")
    change = (first - origin)[0]
    assert np.linalg.norm(change) <= query.sensitivity.frobenius
    change[-1] *= 1.2
    assert np.linalg.norm(change) > query.sensitivity.frobenius


def test_a_traced_moment_is_the_moment_and_knows_its_trace_better():
    data = np.random.default_rng(4).normal(size=(50, 8)) / 4
    query = traced(8, 50)
    exact = query.evaluate(data, clip=True, missing="error")[0]
    full = np.column_stack([np.ones(50), data])
    assert np.allclose(query.matrix(exact), full.T @ full / 50, atol=1e-5)
    rng = np.random.default_rng(5)
    draws = np.array([query.matrix(exact + rng.normal(size=exact.size)) for _ in range(2000)])
    assert np.trace(draws, axis1=1, axis2=2).std() == pytest.approx(math.sqrt(8 / (1 + 8 * 1.5)), rel=0.1)
    assert draws[:, 1, 2].std() == pytest.approx(1 / math.sqrt(2), rel=0.1)


@given(st.lists(st.floats(0, 10), min_size=1, max_size=30), st.floats(0, 10), st.floats(0.01, 9), st.floats(0.01, 50))
def test_a_tail_changes_by_its_reach_at_most(lengths, other, cut, reach):
    def steps(numbers):
        return Lengths(numbers).excess(cut, reach)

    assert abs(steps(lengths) - steps([other, *lengths[1:]])) <= EXCESS_STEPS
    assert 0 <= steps(lengths) - steps(lengths[1:]) <= EXCESS_STEPS
    assert tail._Mean(reach, 1)(EXCESS_STEPS)[0, 0] <= reach * (1 + 1e-12)


def test_a_tail_is_found_and_noise_alone_is_not_taken_for_one():
    lengths = np.random.default_rng(6).exponential(size=100_000)
    options = {"records": 100_000, "share": 0.5}
    found = tail.private_excess(Lengths(lengths), 1.0, 9.0, spend(privacy=mdp.Privacy(5, 1e-6)), **options)
    assert found == pytest.approx(np.clip(lengths**2 - 1, 0, 9).mean(), rel=0.01)
    none = [
        tail.private_excess(Lengths(np.ones(100)), 1.0, 9.0, spend(seed), records=100, share=0.5) for seed in range(50)
    ]
    assert np.mean(np.array(none) == 0) > 0.8


def test_shares_for_counts_and_what_they_aim_at_follow_public_numbers():
    options = {"mu": 0.2, "most": 0.06}
    assert count_share(5, features=4, records=10**5, **options) == 0.03
    assert count_share(5, features=60, records=10**5, **options) == 0.006
    assert 0.006 < count_share(5, features=25, records=10**5, **options) < 0.03
    assert count_share(5, features=60, records=300, **options) == 0.06
    assert aimed_count(10.0, std=20.0, records=1000) == 45.0
    assert aimed_count(10.0, std=20.0, records=50) == 25.0
    assert aimed_count(100.0, std=20.0, records=1000) == 100.0


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


def test_what_stands_out_from_noise_is_kept_with_the_trace():
    rng = np.random.default_rng(3)
    noise = rng.normal(size=(40, 40)) * 0.2
    noisy = np.diag(np.r_[5.0, np.full(39, 0.1)]) + (noise + noise.T) / math.sqrt(2)
    values = np.linalg.eigvalsh(noisy)
    kept = keep_spikes(values, 0.2)
    assert kept.sum() == pytest.approx(values.sum())
    assert np.ptp(kept[:-1]) == pytest.approx(0.0, abs=1e-12)
    assert kept[-1] == pytest.approx(5.0 - 0.2**2 * 40 / 5.0, rel=0.2)
    assert keep_spikes(np.array([-2.0, 1.0]), 0.1).tolist() == [0.0, 0.0]
    level = level_spectrum(values, 0.2)
    assert level.sum() == pytest.approx(values.sum())
    assert np.unique(level.round(12)).size == 1 + np.count_nonzero(values > 2 * 0.2 * math.sqrt(40))


@pytest.mark.parametrize("targets", [1, 2])
def test_targets_are_stretched_and_the_shape_of_the_noise_stays(targets):
    """But for the stretch, coordinates of a regression are those of a covariance of power 1/2, turned."""
    rng = np.random.default_rng(4)
    half = rng.normal(size=(6, 6))
    second = np.eye(7)
    second[1:, 1:] = half @ half.T / 20
    rough = BallMoment(second, 0.5, 0.01)
    plain, variances, one = learning._new_coordinates(rough, REGRESSION, None, LEVELS, 0)
    turned, same, weight = learning._new_coordinates(rough, REGRESSION, None, LEVELS, targets)
    assert one == 1.0
    assert weight >= 1.5
    np.testing.assert_array_equal(variances, same)
    stretch = np.diag([1.0] * (6 - targets) + [weight**-0.5] * targets)
    unstretched = stretch @ turned.matrix
    np.testing.assert_allclose(unstretched.T @ unstretched, plain.matrix.T @ plain.matrix, rtol=1e-5)
    np.testing.assert_allclose(turned.matrix[: 6 - targets, 6 - targets :], 0.0, atol=1e-12)


def test_a_target_weighs_more_among_many_features_that_are_well_known():
    weights = [learning.target_weight(m, 1, 1.0) for m in (1, 6, 20, 90)]
    assert weights == [1.5, pytest.approx(2.0), pytest.approx(4.0), pytest.approx(9.0)]
    assert learning.target_weight(20, 1, 0.5) == pytest.approx(2.0)
    assert learning.target_weight(40, 2, 1.0) == pytest.approx(4.0)


def test_posterior_coefficients_find_what_is_there_and_little_where_it_may_be_noise():
    rng = np.random.default_rng(5)
    half = rng.normal(size=(4, 4))
    gram, truth = half @ half.T + np.eye(4), np.array([0.1, -0.2, 0.0, 0.3])
    options = {"target": (np.zeros(4), 1.0), "variance": 2 * float(truth @ gram @ truth), "records": 10**8}
    np.testing.assert_allclose(
        posterior_coefficients(gram, gram @ truth, np.eye(4), std=1e-6, **options), truth, atol=1e-4
    )
    noise = [
        np.linalg.norm(posterior_coefficients(np.eye(4), rng.normal(size=4), np.eye(4), std=1.0, **options))
        for _ in range(50)
    ]
    assert np.mean(noise) < 0.2  # without shrinkage, 1.9
    assert np.isfinite(
        posterior_coefficients(np.zeros((4, 4)), np.zeros(4), np.zeros((4, 4)), std=0.0, **options)
    ).all()
