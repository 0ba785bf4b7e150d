"""Intervals of answers: possible, never empty, with at least their level of coverage, and as wide as noise says."""

import itertools

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import norm, truncnorm

import matrixdp as mdp
from matrixdp.answers.estimate import CUT_NOTE, RANGE_NOTE, Estimate, join, settle
from matrixdp.display import join_cells, list_entries
from matrixdp.intervals import Range, extend_range, find_range, interval, root_range

UNIT = np.zeros(()), np.ones(())
NOISE = np.linspace(-6, 6, 4001)  # standard deviations
WEIGHTS = norm.pdf(NOISE) / norm.pdf(NOISE).sum()


def one(value, std, level=0.95, possible=UNIT):
    return tuple(float(end) for end in interval(np.asarray(value), np.asarray(std), level, possible))


# Intervals of numbers with error bars


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("std", [0.01, 0.3, 2.0, 50.0])
@pytest.mark.parametrize("truth", [0.0, 0.02, 0.5, 1.0])
def test_intervals_that_are_cut_have_their_level(truth, std, level):
    values = truth + std * NOISE
    low, high = interval(values, np.full(values.shape, std), level, UNIT)
    assert ((low >= 0) & (high <= 1) & (low < high)).all()
    assert ((low <= np.clip(values, 0, 1)) & (np.clip(values, 0, 1) <= high)).all()
    assert WEIGHTS[(low <= truth) & (truth <= high)].sum() >= level - 2e-3


def test_intervals_of_numbers_that_may_be_anything_are_those_of_the_noise():
    low, high = interval(np.array([-3.0, 8.0]), np.array([1.0, 0.5]), 0.9)
    reach = ndtri(0.95) * np.array([1.0, 0.5])
    np.testing.assert_allclose([low, high], np.array([-3, 8]) + np.array([-reach, reach]))
    assert one(0.5, 0.1, 0.9) == pytest.approx((0.5 - 0.1 * ndtri(0.95), 0.5 + 0.1 * ndtri(0.95)))


@pytest.mark.parametrize("value", [-0.5, -3.0, -40.0])
def test_an_impossible_number_has_the_likeliest_of_what_is_possible(value):
    """The interval is that of a normal law cut to the possible range, wherever it is wider than that of the noise."""
    expected = truncnorm.ppf(0.95, -value, 1 - value, value, 1.0)
    assert one(value, 1.0) == pytest.approx((0.0, min(1.0, max(expected, value + ndtri(0.975)))), abs=1e-6)
    mirrored = one(1 - value, 1.0)
    assert mirrored == pytest.approx((1 - one(value, 1.0)[1], 1.0), abs=1e-9)


def test_no_noise_is_no_interval_and_nothing_else_is_empty():
    assert one(0.25, 0.0) == (0.25, 0.25)
    low, high = one(-1e6, 1.0)
    assert low == 0 < high < 1e-5


def test_a_higher_level_is_wider():
    for value in (-2.0, 0.1, 0.5, 1.4):
        ends = [one(value, 0.3, level) for level in (0.5, 0.8, 0.95, 0.99)]
        assert all(a[0] >= b[0] and a[1] <= b[1] for a, b in itertools.pairwise(ends))
        assert ends[0] != ends[-1]
    with pytest.raises(mdp.ParameterError, match="level must be"):
        interval(np.zeros(1), np.ones(1), 1.0)


# Intervals of numbers without


@pytest.mark.parametrize("std", [0.01, 0.3, 2.0])
@pytest.mark.parametrize("truth", [0.0, 0.1, 0.9])
def test_standard_deviations_are_roots_of_variances(truth, std):
    squares = truth**2 + std * NOISE
    found = root_range(squares, np.full(squares.shape, std), np.ones(squares.shape))
    assert ((found.low >= 0) & (found.low < found.median) & (found.median <= found.high) & (found.high <= 1)).all()
    assert WEIGHTS[(found.low <= truth) & (truth <= found.high)].sum() >= 0.95 - 2e-3


def test_a_plausible_range_is_the_central_99_of_100_draws():
    median, low, high = find_range(np.arange(1001.0)[:, None])
    assert (low[0], median[0], high[0]) == pytest.approx((5, 500, 995))


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (-0.8, 0.2, (-1, 0.2)),
        (-0.6, 0.8, (-0.6, 1)),
        (-0.6, 0.6, (-0.6, 0.6)),
        (0.75, 0.82, (0.75, 0.82)),  # narrow: noise tells where it is
        (-0.82, -0.75, (-0.82, -0.75)),
    ],
)
def test_ends_of_correlations_about_which_noise_tells_nothing_are_those_of_the_scale(low, high, expected):
    found = extend_range(Range(*map(np.array, (0.0, low, high))), (np.array(-1.0), np.array(1.0)))
    assert (float(found.low), float(found.high)) == expected


def test_shares_explained_begin_at_zero():
    found = extend_range(Range(np.full(3, 0.3), np.array([0.05, 0.2, 0.05]), np.array([0.5, 0.8, 0.1])), UNIT)
    assert found.low.tolist() == [0.0, 0.2, 0.05]
    assert found.high.tolist() == [0.5, 1.0, 0.1]


# Estimates


def make(ranges=None, **options):
    """A number with an error bar, one that is cut, and one that noise hides, between 0 and 1."""
    value, std = np.array([[0.5, -0.2, np.nan]]), np.array([[0.01, 0.2, np.nan]])
    return settle(value, std, ("row",), ("a", "b", "c"), UNIT, ranges, **options)


def test_what_noise_hides_may_be_all_that_is_possible():
    found = make(lambda: None)
    assert found.value.tolist() == [[0.5, 0.0, 0.5]]
    assert found.measured[0, 1] == -0.2
    assert found.reliable.tolist() == [[True, True, False]]
    assert found.ranged.tolist() == [[False, True, True]]
    assert not found.plausible.any()
    low, high = found.interval()
    assert (low[0, 2], high[0, 2]) == (0, 1)
    assert low[0, 1] == 0
    assert 0.19 < high[0, 1] < 0.5
    assert join_cells(found) == [["0.500 ± 0.010", "0 [0, 0.282]", "0.5 [0, 1]"]]
    assert found.list_notes() == [CUT_NOTE]


def test_plausible_ranges_are_marked_everywhere():
    found = make(lambda: Range(*(np.full((1, 3), end) for end in (0.3, 0.1, 0.6))), plausible=True)
    assert found.plausible.tolist() == [[False, False, True]]
    assert found.value[0, 2] == 0.3
    assert join_cells(found)[0][2] == "~0.3 [0.1, 0.6]"
    assert found.list_notes() == [CUT_NOTE, RANGE_NOTE]
    facts = found.to_dict()
    assert (facts["value"][0][2], facts["std"][0][2], facts["low"][0][2], facts["high"][0][2]) == (0.3, None, 0.1, 0.6)
    assert facts["plausible"] == [[False, False, True]]
    assert "reasons" not in facts
    notes = [entry[-1] for _, entry in list_entries(found)]
    assert notes == ["", "", "plausible range"]
    assert found.to_frame(long=True).plausible.tolist() == [False, False, True]


def test_levels_beyond_those_of_an_interval_without_an_error_bar_are_all_that_is_possible():
    ranges = Range(*(np.full((1, 3), end) for end in (0.3, 0.1, 0.6)))
    firm, drawn = make(lambda: ranges), make(lambda: ranges, plausible=True)
    for found, wide in ((firm, (0.0, 1.0)), (drawn, (0.1, 0.6))):
        for level, expected in ((0.5, (0.1, 0.6)), (0.95, (0.1, 0.6)), (0.99, wide)):
            low, high = found.interval(level)
            assert (low[0, 2], high[0, 2]) == expected


def test_without_ranges_hidden_numbers_have_a_reason():
    found = make(reasons=np.full((1, 3), "hidden by noise", object))
    assert np.isnan(found.value[0, 2])
    assert join_cells(found)[0][2] == found.reason(0, 2) == "hidden by noise"
    assert found.to_dict()["reasons"] == [[None, None, "hidden by noise"]]
    assert found.to_dict()["low"][0][2] is None


def test_parts_of_an_estimate_keep_their_intervals():
    found = make(lambda: Range(*(np.full((1, 3), end) for end in (0.3, 0.1, 0.6))), plausible=True)
    whole = join((found, found.scale(2.0)), ("x", "y"), found.columns)
    assert whole.plausible.tolist() == [[False, False, True]] * 2
    for j, name in enumerate(found.columns):
        ends = np.array([end[0, j] for end in found.interval()])
        for part, factor in ((found.column(name), 1), (found.scale(2.0).column(name), 2)):
            np.testing.assert_allclose(np.ravel(part.interval()), factor * ends)
        np.testing.assert_allclose(
            np.array(whole.interval())[:, :, j], [ends[0] * np.array([1, 2]), ends[1] * np.array([1, 2])]
        )
    side = join(
        (found, Estimate(np.ones((1, 1)), np.zeros((1, 1)), ("row",), ("d",))), ("row",), (*found.columns, "d"), 1
    )
    assert join_cells(side)[0] == [*join_cells(found)[0], "1"]
