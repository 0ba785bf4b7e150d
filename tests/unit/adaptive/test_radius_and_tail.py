"""Counts, radii and the excess of clipped records: sensitivity and accuracy."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.adaptive import budget as fit_budget
from matrixdp.adaptive import clipped_tail as tail
from matrixdp.adaptive import radius
from matrixdp.adaptive.grid_records import EXCESS_STEPS, InMemoryRecords
from matrixdp.adaptive.settings import SETTINGS
from matrixdp.privacy import Neighbours

PRIVACY = mdp.Privacy(1, 1e-6)
COVARIANCE = SETTINGS["covariance"]


def spend(seed=0, privacy=PRIVACY):
    return fit_budget.FitBudget(privacy, Neighbours.REPLACE, mdp.Stream(seed=seed), simulation=True)


class Lengths(InMemoryRecords):
    """Records of which only the lengths are known."""

    def __init__(self, lengths):
        self.lengths = np.asarray(lengths, float)

    take = sums_without = transform = None


@given(st.lists(st.floats(0, 10), min_size=1, max_size=30), st.floats(0, 10), st.floats(0.01, 9))
def test_a_count_changes_by_one_at_most(lengths, other, cut):
    def count(numbers):
        return radius._count(radius.Cut(lambda at: np.count_nonzero(np.array(numbers) > at), cut))[0, 0]

    assert abs(count(lengths) - count([other, *lengths[1:]])) <= 1
    assert abs(count(lengths) - count(lengths[1:])) <= 1


def test_about_as_many_records_exceed_the_radius_as_searched_for():
    lengths = np.random.default_rng(0).exponential(size=100_000)
    search = radius.Search(0.01, 20.0, above=5_000, steps=12)
    found = radius.private_radius(
        "radius", Lengths(lengths), search, spend(privacy=mdp.Privacy(5, 1e-6)), public=100_000, share=1.0
    )
    assert (lengths > found).sum() == pytest.approx(5_000, rel=0.05)


def test_counts_have_the_noise_of_their_share():
    account = spend()
    radius.private_radius(
        "radius", Lengths(np.ones(10)), radius.Search(0.1, 1.0, 1.0, 4), account, public=10, share=0.1
    )
    (step,) = account.steps
    assert step.releases == 4
    assert step.mu**2 == pytest.approx(0.1 * PRIVACY.mu**2, rel=1e-9)
    assert radius.count_std(4, 0.1, PRIVACY.mu) == pytest.approx(1 / math.sqrt(0.025) / PRIVACY.mu)


@given(st.floats(0.01, 0.5), st.floats(0.01, 0.5), st.floats(1, 50))
def test_a_radius_is_extrapolated_to_fewer_records_only(share, wanted, freedom):
    assume(not 1 < share / wanted < 1 + 1e-9)  # the ratio of both radii would round to one
    found = radius.extrapolate_radius(1.0, share, wanted, freedom)
    if wanted >= share:
        assert found == 1.0
    else:
        shares = scipy.stats.chi2(freedom).sf(scipy.stats.chi2(freedom).isf(share) * found**2)
        assert found > 1.0
        assert shares == pytest.approx(wanted)


def test_shares_of_counts_follow_from_public_numbers():
    options = {"mu": 0.2}
    assert radius.count_share(5, COVARIANCE, features=4, public=10**5, **options) == 0.03
    assert radius.count_share(5, COVARIANCE, features=60, public=10**5, **options) == 0.006
    assert 0.006 < radius.count_share(5, COVARIANCE, features=25, public=10**5, **options) < 0.03
    assert radius.count_share(5, COVARIANCE, features=60, public=300, **options) == 0.06
    assert radius.count_std(5, 0.05, 0.2) == pytest.approx(50.0)


@given(st.lists(st.floats(0, 10), min_size=1, max_size=30), st.floats(0, 10), st.floats(0.01, 9), st.floats(0.01, 50))
def test_an_excess_changes_by_its_limit_at_most(lengths, other, cut, limit):
    def steps(numbers):
        return Lengths(numbers).excess(cut, limit)

    assert abs(steps(lengths) - steps([other, *lengths[1:]])) <= EXCESS_STEPS
    assert 0 <= steps(lengths) - steps(lengths[1:]) <= EXCESS_STEPS
    assert tail._Mean(limit, 1)(EXCESS_STEPS)[0, 0] <= limit * (1 + 1e-12)


@pytest.mark.parametrize("records", [10**3, 10**7, 10**9])
def test_an_excess_in_floats_changes_by_no_more_than_its_query_declares(records):
    rng = np.random.default_rng(0)
    mean = tail._Mean(1.7, records)
    sums = rng.integers(0, records * EXCESS_STEPS, 2000)
    changes = np.array([mean(int(s) + EXCESS_STEPS)[0, 0] - mean(int(s))[0, 0] for s in sums])
    held = 1.7 / records * tail._ROUNDING + 2 * tail._FLOAT_ERROR * 2.5 * 1.7
    assert changes.max() <= held


def test_an_excess_is_found_and_noise_alone_gives_zero():
    lengths = np.random.default_rng(6).exponential(size=100_000)
    options = {"public": 100_000, "share": 0.5}
    found = tail.private_excess(Lengths(lengths), 1.0, 9.0, spend(privacy=mdp.Privacy(5, 1e-6)), **options)
    assert found == pytest.approx(np.clip(lengths**2 - 1, 0, 9).mean(), rel=0.01)
    none = [
        tail.private_excess(Lengths(np.ones(100)), 1.0, 9.0, spend(seed), public=100, share=0.5) for seed in range(50)
    ]
    assert np.mean(np.array(none) == 0) > 0.8


@given(st.lists(st.floats(0, 10), min_size=1, max_size=8), st.floats(1e-3, 1e3))
def test_tilted_variances_have_the_given_sum_and_grow_with_the_variance(values, square):
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
def test_a_restored_excess_is_added_to_the_trace_and_at_most_doubles_it(seed, excess, radius):
    root = np.random.default_rng(seed).normal(size=(3, 3))
    covariance = root @ root.T
    found = tail.restore_excess(covariance, excess, radius)
    wanted = np.trace(covariance) + min(max(excess, 0.0), np.trace(covariance))
    assert np.trace(found) == pytest.approx(wanted)
    assert np.linalg.eigvalsh(found - covariance)[0] > -1e-9


def test_long_gaussian_records_have_tilted_variances():
    variances, square = np.array([1.0, 0.5, 0.1]), 6.0
    records = np.random.default_rng(1).normal(size=(400_000, 3)) * np.sqrt(variances)
    squares = (records**2).sum(axis=1)
    found = (records[squares > square] ** 2).mean(axis=0)
    tilted, alike = tail.tilt_variances(variances, found.sum()), variances * found.sum() / variances.sum()
    assert np.linalg.norm(found - tilted) < 0.25 * np.linalg.norm(found - alike)
