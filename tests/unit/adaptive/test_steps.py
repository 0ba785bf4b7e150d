"""Each step: no record leaves the set that it was clipped to, and one record moves a count by one at most."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.adaptive import budget as fit_budget
from matrixdp.adaptive import clipped_tail as tail
from matrixdp.adaptive import fit as learning
from matrixdp.adaptive import plan, radius
from matrixdp.adaptive.ball_moment import BallMoment, denoise
from matrixdp.adaptive.coordinates import LEVELS, Coordinates
from matrixdp.adaptive.grid_records import EXCESS_STEPS, GridRecords, InMemoryRecords
from matrixdp.adaptive.moment import private_moment
from matrixdp.adaptive.posterior import posterior_coefficients
from matrixdp.adaptive.settings import SETTINGS
from matrixdp.adaptive.shrinkage import (
    clean_spectrum,
    keep_spikes,
    level_spectrum,
    nearest_of_same_trace,
    project_simplex,
    shrink_eigenvalues,
)
from matrixdp.adaptive.trace_query import TracedMoments
from matrixdp.domain.row_arithmetic import square_lengths
from matrixdp.privacy import Neighbours
from matrixdp.queries.moment_sums import levels

PRIVACY = mdp.Privacy(1, 1e-6)
COVARIANCE, REGRESSION = SETTINGS["covariance"], SETTINGS["regression"]


def settled(records, bounds):
    """Each record as it enters a moment in a ball, by itself."""
    everything = records.take(np.arange(len(records)))
    grid = levels(len(records))
    on_sphere = bounds.quantise(everything, grid) * bounds.steps(grid)
    return np.where((records.lengths > bounds.radius * (1 - 1e-13))[:, None], on_sphere, everything)


def spend(seed=0, privacy=PRIVACY):
    return fit_budget.FitBudget(privacy, Neighbours.REPLACE, mdp.Stream(seed=seed), simulation=True)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), size=st.integers(1, 6), records=st.integers(1, 300), epsilon=st.floats(0.05, 20))
def test_after_each_clipping_records_lie_in_their_set(seed, size, records, epsilon):
    """Replays what each moment's query does with its records, one by one: box and ball hold for what is summed."""
    rng = np.random.default_rng(seed)
    data = rng.standard_cauchy((records, size)) * rng.choice([1e-3, 1, 1e3])
    steps = GridRecords(mdp.Bounds([-1] * size, [1] * size), data, LEVELS)
    assert np.abs(steps.steps).max() <= LEVELS
    seen = []

    class Watch(fit_budget.FitBudget):
        def release(self, name, query, data, *, share):
            seen.append((query, data))
            return super().release(name, query, data, share=share)

    watched = Watch(mdp.Privacy(epsilon, 1e-6), Neighbours.REPLACE, mdp.Stream(seed=seed), simulation=True)
    for aim, chosen in SETTINGS.items():
        watched._releases.clear()
        learning.fit_moment(steps, chosen, watched, public=records, targets=int(aim == "regression"))
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
            assert 0 <= query.function(answer)[0, 0] <= query.function.limit
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


class Lengths(InMemoryRecords):
    """Records of which only the lengths are known."""

    def __init__(self, lengths):
        self.lengths = np.asarray(lengths, float)

    take = sums_without = transform = None


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


@pytest.mark.parametrize("records", [10**3, 10**7, 10**9])
def test_a_tail_as_computed_changes_by_no_more_than_its_query_holds(records):
    rng = np.random.default_rng(0)
    mean = tail._Mean(1.7, records)
    sums = rng.integers(0, records * EXCESS_STEPS, 2000)
    changes = np.array([mean(int(s) + EXCESS_STEPS)[0, 0] - mean(int(s))[0, 0] for s in sums])
    held = 1.7 / records * tail._ROUNDING + 2 * tail._FLOAT_ERROR * 2.5 * 1.7
    assert changes.max() <= held


def test_a_tail_is_found_and_noise_alone_is_not_taken_for_one():
    lengths = np.random.default_rng(6).exponential(size=100_000)
    options = {"records": 100_000, "share": 0.5}
    found = tail.private_excess(Lengths(lengths), 1.0, 9.0, spend(privacy=mdp.Privacy(5, 1e-6)), **options)
    assert found == pytest.approx(np.clip(lengths**2 - 1, 0, 9).mean(), rel=0.01)
    none = [
        tail.private_excess(Lengths(np.ones(100)), 1.0, 9.0, spend(seed), records=100, share=0.5) for seed in range(50)
    ]
    assert np.mean(np.array(none) == 0) > 0.8


@given(st.lists(st.floats(0, 10), min_size=1, max_size=8), st.floats(1e-3, 1e3))
def test_long_records_have_the_mean_square_that_is_known_and_lie_along_leading_directions(values, square):
    variances = np.array(values)
    found = tail.tilt_variances(variances, square)
    if tail._LEAST * square < variances.sum() < square:
        assert found.sum() == pytest.approx(square)
        assert (found >= variances).all()
        order = np.argsort(variances)
        gains = (found[order] / np.where(variances > 0, variances, np.inf)[order])[variances[order] > 0]
        assert (np.diff(gains) >= -1e-9 * gains[1:]).all()
    else:
        assert found is variances


@given(st.integers(0, 10**6), st.floats(-1, 100), st.floats(0.01, 100))
def test_what_is_given_back_is_in_the_trace_and_at_most_doubles_it(seed, excess, radius):
    root = np.random.default_rng(seed).normal(size=(3, 3))
    covariance = root @ root.T
    found = tail.restore_excess(covariance, excess, radius)
    wanted = np.trace(covariance) + min(max(excess, 0.0), np.trace(covariance))
    assert np.trace(found) == pytest.approx(wanted)
    assert np.linalg.eigvalsh(found - covariance)[0] > -1e-9


def test_long_gaussian_records_are_more_like_a_tilted_gaussian_than_like_all_records():
    variances, square = np.array([1.0, 0.5, 0.1]), 6.0
    records = np.random.default_rng(1).normal(size=(400_000, 3)) * np.sqrt(variances)
    squares = (records**2).sum(axis=1)
    found = (records[squares > square] ** 2).mean(axis=0)
    tilted, alike = tail.tilt_variances(variances, found.sum()), variances * found.sum() / variances.sum()
    assert np.linalg.norm(found - tilted) < 0.25 * np.linalg.norm(found - alike)


def test_the_centre_is_pulled_towards_the_midpoint_by_standard_deviations():
    mean, basis = np.array([0.6, 0.8]), np.eye(2)
    assert plan.pull_to_midpoint(mean, basis, np.full(2, 0.25), 0.4) == pytest.approx(0.8 * mean)
    assert plan.pull_to_midpoint(mean, basis, np.array([0.01, 0.0]), 0.4) == pytest.approx((1 - 0.4 * 0.06) * mean)
    assert plan.pull_to_midpoint(mean, basis, np.array([9.0, 9.0]), 0.4) == pytest.approx(np.zeros(2))
    assert plan.pull_to_midpoint(np.zeros(2), basis, np.ones(2), 0.4) == pytest.approx(np.zeros(2))
    assert plan.pull_to_midpoint(mean, basis, np.ones(2), 0.0) == pytest.approx(mean)


@given(st.floats(0.01, 0.5), st.floats(0.01, 0.5), st.floats(1, 50))
def test_a_radius_is_carried_on_to_fewer_records_and_never_back(aimed, meant, freedom):
    found = radius.extrapolate_radius(1.0, aimed, meant, freedom)
    if meant >= aimed:
        assert found == 1.0
    else:
        shares = scipy.stats.chi2(freedom).sf(scipy.stats.chi2(freedom).isf(aimed) * found**2)
        assert found > 1.0
        assert shares == pytest.approx(meant)


def test_records_are_clipped_for_want_of_exact_counts_only_if_they_are_few():
    assert radius.target_count(10.0, 400.0, 1000, 4, COVARIANCE) == pytest.approx(56.25)
    assert radius.target_count(10.0, 400.0, 1000, 1, COVARIANCE) == 10.0
    assert radius.target_count(0.1, 400.0, 1000, 1, COVARIANCE) == 1.0
    assert radius.target_count(100.0, 400.0, 1000, 4, COVARIANCE) == 100.0
    assert radius.target_count(10.0, 50.0, 1000, 4, COVARIANCE) == 50.0


@pytest.mark.parametrize("shape", ["gaussian", "uniform"])
def test_few_features_are_not_clipped_by_half_for_want_of_exact_counts(shape):
    rng = np.random.default_rng(2)
    data = rng.normal(size=(1000, 1)) / 4 if shape == "gaussian" else rng.uniform(-1, 1, (1000, 1))
    found = [
        private_moment(
            data, mdp.Bounds([-1], [1]), mdp.Privacy(0.5, 1e-6), stream=mdp.Stream(seed=seed), simulation=True
        ).covariance[0, 0]
        for seed in range(20)
    ]
    assert np.mean(found) == pytest.approx(data.var(), rel=0.15)


@given(st.integers(0, 10**6), st.floats(0.01, 3), st.floats(0.05, 5))
def test_what_a_mean_leaves_of_a_noisy_moment_is_positive_semidefinite(seed, std, constant):
    noise = np.random.default_rng(seed).normal(size=(5, 5)) * std
    second = np.eye(5) + (noise + noise.T) / 2
    for spectrum in (clean_spectrum, level_spectrum, keep_spikes):
        mean, covariance = denoise(second, constant, std, spectrum)
        assert np.linalg.eigvalsh(covariance)[0] >= -1e-9 * (1 + np.abs(covariance).max())
        assert np.isfinite(mean).all()


def test_the_rough_moment_gets_less_the_more_records_there_are():
    few, many = ({"features": 10, "records": n, "mu": 0.2} for n in (100, 10**7))
    assert learning.rough_share(COVARIANCE, **few) == 0.15
    assert learning.rough_share(COVARIANCE, **many) == 0.06
    assert 0.06 < learning.rough_share(COVARIANCE, features=10, records=1500, mu=0.2) < 0.15
    assert learning.rough_share(REGRESSION, **few) == learning.rough_share(REGRESSION, **many) == 0.2


def test_shares_for_counts_and_what_they_aim_at_follow_public_numbers():
    options = {"mu": 0.2}
    assert radius.count_share(5, COVARIANCE, features=4, records=10**5, **options) == 0.03
    assert radius.count_share(5, COVARIANCE, features=60, records=10**5, **options) == 0.006
    assert 0.006 < radius.count_share(5, COVARIANCE, features=25, records=10**5, **options) < 0.03
    assert radius.count_share(5, COVARIANCE, features=60, records=300, **options) == 0.06
    assert radius.searched_count(10.0, 20.0, 1000, COVARIANCE) == 45.0
    assert radius.searched_count(10.0, 20.0, 50, COVARIANCE) == 25.0
    assert radius.searched_count(100.0, 20.0, 1000, COVARIANCE) == 100.0


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
        account.release("x", mdp.SecondMoment(mdp.Bounds([-1], [1]), 1, neighbours="add-remove"), [[0.5]], share=0.1)


def test_moved_moments_are_those_of_moved_records():
    rng = np.random.default_rng(2)
    data, matrix, centre = rng.normal(size=(50, 3)), rng.normal(size=(3, 3)), rng.normal(size=3)

    def moment(records):
        full = np.column_stack([np.ones(len(records)), records])
        return full.T @ full / len(records)

    moved, variances = BallMoment(moment(data), 0.5, 0.1).transform(matrix, centre)
    assert np.allclose(moved, moment((data - centre) @ matrix.T))
    draws = []
    for _ in range(4000):
        noise = rng.normal(size=(4, 4)) * 0.1
        noise = (noise + noise.T) / math.sqrt(2)
        noise[0] /= 0.5
        noise[:, 0] /= 0.5
        turned = BallMoment(moment(data) + noise, 0.5, 0.1).transform(matrix, centre)[0]
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
    plain, variances, one = plan.new_coordinates(rough, REGRESSION, None, LEVELS, 0)
    turned, same, weight = plan.new_coordinates(rough, REGRESSION, None, LEVELS, targets)
    assert one == 1.0
    assert weight >= 1.5
    np.testing.assert_array_equal(variances, same)
    stretch = np.diag([1.0] * (6 - targets) + [weight**-0.5] * targets)
    unstretched = stretch @ turned.matrix
    np.testing.assert_allclose(unstretched.T @ unstretched, plain.matrix.T @ plain.matrix, rtol=1e-5)
    np.testing.assert_allclose(turned.matrix[: 6 - targets, 6 - targets :], 0.0, atol=1e-12)


def test_a_target_weighs_more_among_many_features_that_are_well_known():
    weights = [plan.target_weight(m, 1, 1.0, 1.5) for m in (1, 6, 20, 90)]
    assert weights == [1.5, pytest.approx(2.0), pytest.approx(4.0), pytest.approx(9.0)]
    assert plan.target_weight(20, 1, 0.5, 1.5) == pytest.approx(2.0)
    assert plan.target_weight(40, 2, 1.0, 1.5) == pytest.approx(4.0)


def test_posterior_coefficients_find_what_is_there_and_little_where_it_may_be_noise():
    rng = np.random.default_rng(5)
    half = rng.normal(size=(4, 4))
    gram, truth = half @ half.T + np.eye(4), np.array([0.1, -0.2, 0.0, 0.3])
    options = {
        "target": (np.zeros(4), 1.0),
        "variance": 2 * float(truth @ gram @ truth),
        "records": 10**8,
        "settings": REGRESSION,
    }
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
