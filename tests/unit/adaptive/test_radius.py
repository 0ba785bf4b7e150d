"""Counts, radii and the excess of clipped records: sensitivity and accuracy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.adaptive import budget as fit_budget
from matrixdp.adaptive import fit as plan
from matrixdp.adaptive import postprocess as tail
from matrixdp.adaptive import queries
from matrixdp.adaptive.measure import PrivateMeasurements
from matrixdp.adaptive.records import EXCESS_STEPS, GridBlock, PrivateRecords, RecordGrid
from matrixdp.privacy import Neighbours

PRIVACY = mdp.Privacy(1, 1e-6)


def spend(seed=0, privacy=PRIVACY):
    return fit_budget.FitBudget(privacy, Neighbours.REPLACE, mdp.Stream(seed=seed), simulation=True)


def lengths_alone(lengths):
    """Records of which only the lengths are known."""
    lengths = np.asarray(lengths, float)
    block = GridBlock(np.zeros((len(lengths), 1), np.float32), lengths)
    return PrivateRecords(block, RecordGrid(mdp.Bounds([-1], [1]), 1), len(lengths))


def measure(lengths, budget):
    return PrivateMeasurements(lengths_alone(lengths), budget, len(lengths))


@given(st.lists(st.floats(0, 10), min_size=1, max_size=30), st.floats(0, 10), st.floats(0.01, 9))
def test_a_count_changes_by_one_at_most(lengths, other, cut):
    def count(numbers):
        function = queries.count_query(10, mdp.Neighbours.REPLACE).function
        return function(lengths_alone(numbers).counter([cut])(cut))[0, 0]

    assert abs(count(lengths) - count([other, *lengths[1:]])) <= 1
    assert abs(count(lengths) - count(lengths[1:])) <= 1


def test_about_as_many_records_exceed_the_radius_as_searched_for():
    lengths = np.random.default_rng(0).exponential(size=100_000)
    measured = measure(lengths, spend(privacy=mdp.Privacy(5, 1e-6)))
    found = plan.bisect_radius("radius", measured, (0.01, 20.0), 5_000, 12, 1.0)
    assert (lengths > found).sum() == pytest.approx(5_000, rel=0.05)


def test_counts_have_the_noise_of_their_share():
    account = spend()
    plan.bisect_radius("radius", measure(np.ones(10), account), (0.1, 1.0), 1.0, 4, 0.1)
    (step,) = account.steps
    assert step.releases == 4
    assert step.mu**2 == pytest.approx(0.1 * PRIVACY.mu**2, rel=1e-9)
    assert plan.count_std(4, 0.1, PRIVACY.mu) == pytest.approx(1 / math.sqrt(0.025) / PRIVACY.mu)


def test_a_bisection_reaches_no_other_cut_offs_than_those_counted_in_one_pass():
    asked = []

    class Watched(PrivateMeasurements):
        def counter(self, name, cuts, share):
            return lambda cut: asked.append((cut, cut in cuts)) or 1.0

    plan.bisect_radius("radius", Watched(lengths_alone(np.ones(9)), spend(), 9), (0.2, 7.0), 3.0, 5, 0.1)
    assert len(asked) == 5
    assert all(known for _, known in asked)


@given(st.lists(st.floats(0, 10), min_size=1, max_size=30), st.floats(0, 10), st.floats(0.01, 9), st.floats(0.01, 50))
def test_an_excess_changes_by_its_limit_at_most(lengths, other, cut, limit):
    def steps(numbers):
        return lengths_alone(numbers).excess(cut, limit)

    assert abs(steps(lengths) - steps([other, *lengths[1:]])) <= EXCESS_STEPS
    assert 0 <= steps(lengths) - steps(lengths[1:]) <= EXCESS_STEPS
    assert queries.ExcessMean(limit, 1)(EXCESS_STEPS)[0, 0] <= limit * (1 + 1e-12)


@pytest.mark.parametrize("records", [10**3, 10**7, 10**9])
def test_an_excess_in_floats_changes_by_no_more_than_its_query_declares(records):
    rng = np.random.default_rng(0)
    mean = queries.ExcessMean(1.7, records)
    sums = rng.integers(0, records * EXCESS_STEPS, 2000)
    changes = np.array([mean(int(s) + EXCESS_STEPS)[0, 0] - mean(int(s))[0, 0] for s in sums])
    held = (
        1.7 / records * queries._ROUNDING
        + 2 * queries.excess_query(1.7, records, Neighbours.REPLACE).relative_error * 2.5 * 1.7
    )
    assert changes.max() <= held


def test_an_excess_is_found():
    lengths = np.random.default_rng(6).exponential(size=100_000)
    measured = measure(lengths, spend(privacy=mdp.Privacy(5, 1e-6)))
    assert measured.excess("tail", 1.0, 9.0, 0.5)[0] == pytest.approx(np.clip(lengths**2 - 1, 0, 9).mean(), rel=0.01)


@given(st.integers(0, 10**6), st.floats(-1, 100))
def test_a_restored_excess_is_added_to_the_trace_and_at_most_doubles_it(seed, excess):
    root = np.random.default_rng(seed).normal(size=(3, 3))
    covariance = root @ root.T
    found = tail.restore_excess(covariance, excess)
    wanted = np.trace(covariance) + min(max(excess, 0.0), np.trace(covariance))
    assert np.trace(found) == pytest.approx(wanted)
    assert np.linalg.eigvalsh(found - covariance)[0] > -1e-9
