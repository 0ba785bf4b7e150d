"""Correlations that noise hides have no error bar, and an interval that says so."""

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.answers.estimate import settle
from matrixdp.answers.moments import LARGEST_BAR, hide_uncertain


@pytest.mark.parametrize(
    ("value", "std", "shown"),
    [
        (0.27, 0.37, 0.27),
        (1.05, 0.1, 1.0),
        (-1.05, 0.1, -1.0),
        (1.19, 0.1, 1.0),
        (-1.0, 2.9, None),
        (0.1, LARGEST_BAR, None),
        (1.5, 0.1, None),
        (np.nan, 0.1, None),
        (0.5, np.nan, None),
        (1.0, 0.0, 1.0),
    ],
)
def test_a_correlation_is_shown_where_it_says_something(value, std, shown):
    found, bar = hide_uncertain(np.array([value]), np.array([std]))
    answer = settle(found[:, None], bar[:, None], ("a",), ("b",), (np.array(-1.0), np.array(1.0)), lambda: None)
    low, high = (float(end[0, 0]) for end in answer.interval())
    if shown is None:
        assert np.isnan([found[0], bar[0]]).all()
        assert not answer.reliable.any()
        assert (answer.value[0, 0], low, high) == (0.0, -1.0, 1.0)
    else:
        assert (found[0], bar[0]) == (value, std)
        assert (answer.value[0, 0], answer.measured[0, 0], answer.std[0, 0]) == (shown, value, std)
        assert -1 <= low <= shown <= high <= 1


def test_no_text_of_a_noisy_release_shows_an_impossible_correlation():
    data = np.random.default_rng(0).normal(size=(60, 3))
    names = ["a", "b", "c"]
    columns = mdp.Columns([mdp.Number(name, -20, 20) for name in names])
    bounds = mdp.Bounds([-20] * 3, [20] * 3, names=names)
    tiny = mdp.Privacy(0.1, 1e-6)
    for query in (mdp.Moments.for_covariance(bounds, 60), mdp.TableMoments(columns, 60)):
        for seed in range(5):
            release = mdp.make_design(query, tiny).release(data, stream=mdp.Stream(seed=seed), simulation=True)
            found = release.correlation()
            assert not (found.std >= LARGEST_BAR).any()
            assert "nan" not in str(found)
            low, high = found.interval()
            assert ((low >= -1) & (low <= found.value) & (found.value <= high) & (high <= 1)).all()
            hidden = ~found.reliable
            assert ((low == -1) & (high == 1))[hidden].all()
            assert str(found).count("0 [-1, 1]") >= hidden.sum()
            assert np.diagonal(found.value).tolist() == [1, 1, 1]
