"""The rule for intervals: inside what is possible, never empty, and wide where noise tells nothing."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import ndtri

from matrixdp.answers import moments
from matrixdp.answers.estimate import Estimate, settle
from matrixdp.display import find_firm, find_weak, write_table
from matrixdp.intervals import LEVEL, Range, extend_range, interval, root_range
from matrixdp.report.answers import Answer

ZERO, ONE = np.zeros(1), np.ones(1)


@pytest.mark.parametrize("value", [-1e3, -40.0, -2.0, 0.0, 0.5, 1.0, 3.0, 1e3])
@pytest.mark.parametrize("std", [1e-4, 0.1, 10.0, 1e6])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_intervals_are_possible_and_not_empty(value, std, level):
    low, high = interval(np.array([value]), np.array([std]), level, (ZERO, ONE))
    assert 0 <= low < high <= 1


def test_a_larger_level_gives_a_wider_interval():
    ends = [interval(np.array([-0.3]), np.array([0.1]), level, (ZERO, ONE)) for level in (0.5, 0.95, 0.99)]
    assert ends[0][1] < ends[1][1] < ends[2][1]


@pytest.mark.parametrize("square", [-5.0, -0.01, 0.0, 0.01, 0.5, 3.0])
def test_roots_of_noisy_variances_are_inside_their_intervals(square):
    found = root_range(np.array([square]), np.array([0.2]), ONE)
    assert 0 <= found.low <= found.median <= found.high <= 1
    assert found.low < found.high


@pytest.mark.parametrize(
    ("low", "high", "ends"),
    [
        (-0.75, 0.2, (-1.0, 0.2)),  # beyond 0.7 of the end
        (-0.65, 0.2, (-0.65, 0.2)),
        (-0.2, 0.75, (-0.2, 1.0)),
        (-0.9, 0.9, (-1.0, 1.0)),
        (0.75, 0.84, (0.75, 0.84)),  # narrow
        (0.75, 0.86, (0.75, 1.0)),
    ],
)
def test_wide_ranges_of_correlations_reach_the_end(low, high, ends):
    found = extend_range(Range(np.zeros(1), np.array([low]), np.array([high])), (-ONE, ONE))
    assert (float(found.low[0]), float(found.high[0])) == ends


@pytest.mark.parametrize(
    ("low", "high", "ends"),
    [(0.05, 0.3, (0.0, 0.3)), (0.15, 0.3, (0.15, 0.3)), (0.05, 0.12, (0.05, 0.12)), (0.3, 0.8, (0.3, 1.0))],
)
def test_wide_ranges_of_shares_that_are_explained_reach_the_end(low, high, ends):
    found = extend_range(Range(np.zeros(1), np.array([low]), np.array([high])), (ZERO, ONE))
    assert (float(found.low[0]), float(found.high[0])) == ends


def test_answers_without_a_scale_stay_as_they_are():
    found = extend_range(Range(np.zeros(1), np.array([-3.0]), np.array([9.0])), (np.full(1, np.nan),) * 2)
    assert (float(found.low[0]), float(found.high[0])) == (-3.0, 9.0)


def hide(most, ranges=lambda: None):
    value = np.full((1, 1), np.nan)
    return settle(value, value, ("a",), ("x",), (np.zeros(()), np.array(most)), ranges, plausible=True)


def test_a_hidden_number_without_a_range_may_be_all_that_is_possible():
    found = hide(3.0)
    assert (found.value[0, 0], *(end[0, 0] for end in found.interval())) == (1.5, 0.0, 3.0)
    assert not found.plausible.any()  # it depends on nothing


def test_a_hidden_number_without_bounds_is_not_shown():
    found = hide(np.inf)
    assert str(found).split() == ["x", "a", "too", "few"]
    assert found.to_dict()["value"] == [[None]]


def test_weak_and_firm_have_one_definition():
    value, std = np.array([[1.9, 2.1, -3.5, 5.0]]), np.array([[1.0, 1.0, 1.0, np.nan]])
    found = Estimate(value, std, ("a",), ("w", "x", "y", "z"))
    assert found.weak.tolist() == find_weak(value, std).tolist() == [[True, False, False, False]]
    assert find_firm(value, std, 100).tolist() == [[False, False, True, False]]
    assert write_table(found).count("weak") == 1


def test_means_near_zero_do_not_fade():
    estimate = Estimate(np.full((1, 2), 0.1), np.ones((1, 2)), ("x",), ("mean", "standard deviation"))
    assert Answer("Means", "column", estimate, name="means").fades.tolist() == [[False, True]]
    by = Estimate(estimate.value, estimate.std, ("a",), ("share of records", "x"))
    assert Answer("Means by w", "w", by, name="means_by_level").fades.tolist() == [[True, False]]
    assert Answer("Covariance", "column", estimate, name="covariance").fades.all()


def test_the_interval_of_a_ratio_that_noise_hides_ends_outside_of_what_noise_explains():
    """Fieller's: its ends are rejected, and a step of the grid further inside they are not."""
    law = SimpleNamespace(covariance=lambda i, _, k, m: np.array(0.02**2 if (i, i) == (k, m) else 0.0))
    view = SimpleNamespace(law=law, read=lambda i, _: np.array((0.03, 0.1)[i]))
    found = moments._ratio_range(view, (0, 0), (1, 1), -2.0, 2.0)
    step, reach = 4.0 / (moments._GRID - 1), ndtri((1 + LEVEL) / 2) * 0.02
    for end, inwards in ((found.low, step), (found.high, -step)):
        rejected = [abs(0.03 - m * 0.1) > reach * np.hypot(1, m) for m in (end, end + inwards)]
        assert rejected == [True, False]
