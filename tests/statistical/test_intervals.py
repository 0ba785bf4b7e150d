"""Intervals of 95% contain the numbers without noise in at least 93 of 100 releases, also at the edge of the possible.

Level: `levels.LEVEL` for each test, shared among its numbers, for exact binomial bounds on the number of intervals that
miss. Power: intervals that cover 75% pass with a probability below one in a thousand.
"""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import matrixdp as mdp
from levels import LEVEL
from matrixdp import intervals
from matrixdp.answers import moments
from matrixdp.answers.noise_law import NoNoise
from matrixdp.answers.view import MomentView, view_moments
from matrixdp.release.result import Release

RECORDS, TRIALS, MISSES = 2000, 310, 0.07
NOISE = (0.004, 0.03, 0.2)  # of a share of the records
COLUMNS = mdp.Columns(
    [
        mdp.Number("even", 0, 10),
        mdp.Number("same", 0, 10),
        mdp.Number("top", 0, 1),
        mdp.Number("gaps", -1, 1, missing=True),
        mdp.Category("ward", ["most", "some", "few", "none"]),
        mdp.YesNo("smoker"),
    ]
)


@pytest.fixture(scope="module")
def data():
    """A column at its bound, two that are the same, one that is rarely there, a level of 2% and an empty one."""
    rng = np.random.default_rng(3)
    ward = rng.choice(["most", "some", "few"], RECORDS, p=[0.6, 0.38, 0.02])
    even = np.clip(rng.normal(5, 2, RECORDS) + (ward == "few"), 0, 10)
    gaps = np.where(rng.random(RECORDS) < 0.95, np.nan, rng.uniform(0.8, 1, RECORDS))
    return pd.DataFrame(
        {"even": even, "same": even, "top": 1.0, "gaps": gaps, "ward": ward, "smoker": rng.random(RECORDS) < 0.5}
    )


def find_truth(data):
    """What the intervals should contain, as the rows, columns and numbers of each answer."""
    numbers, levels = ["even", "same", "top", "gaps"], COLUMNS.category("ward").level_names
    shares = data["ward"].value_counts(normalize=True).reindex(levels, fill_value=0.0)
    by = data.groupby("ward")[numbers].mean().reindex(levels)
    pairs = pd.crosstab(data["ward"], data["smoker"]).reindex(levels, fill_value=0) / RECORDS
    return {
        "mean": data[numbers].mean().to_numpy()[:, None],
        "std": data[numbers].std(ddof=0).to_numpy()[:, None],
        "observed": data[numbers].notna().mean().to_numpy()[:, None],
        "share": shares.to_numpy()[:, None],
        "level mean": by.to_numpy(),
        "cell": pairs.to_numpy(),
        "correlation": np.array([[1.0]]),
    }


def make_releases(data, noise, trials=TRIALS):
    """The exact moments with noise of the design's law, drawn anew for each release."""
    query = mdp.TableMoments(COLUMNS, RECORDS)
    exact = mdp.make_design(query, mdp.Privacy(1e6, 1e-6)).release(data, stream=mdp.Stream(seed=1), simulation=True)
    epsilon = 1.0
    for _ in range(8):  # to the noise that is wanted
        design = mdp.make_design(query, mdp.Privacy(epsilon, 1e-6))
        view = view_moments(exact.matrix, design)
        epsilon *= float(view.law.entry_std(0, view.levels("ward")[0])) / noise
    rng = np.random.default_rng(int(1e4 * noise))
    return [Release(view.matrix + one, design, simulation=True) for one in view.law.draw(trials, rng)]


def read_answers(release):
    """Ends of the intervals of each answer, of shape (2, ...)."""
    summary, levels, pairs = (
        np.array(one.interval()) for one in (release.means(), release.means("ward"), release.table("ward", "smoker"))
    )
    parts = {"mean": summary[..., :1], "std": summary[..., 1:2], "observed": summary[..., 2:]}
    parts |= {"share": levels[..., :1], "level mean": levels[..., 1:], "cell": pairs[:, :-1, :-1]}
    return parts | {"correlation": np.array(release.correlation().interval())[:, :1, 1:2]}


def count_misses(truth, found):
    """How many of the intervals of each number miss it, as a list; without means of an empty level."""
    counts = []
    for name, exact in truth.items():
        low, high = np.array([one[name] for one in found]).swapaxes(0, 1)
        slack = 1e-6 * np.maximum(1.0, np.abs(exact))  # records are on a grid
        missed = ((low > exact + slack) | (high < exact - slack)).sum(axis=0)
        counts += [(name, *place, int(missed[place])) for place in zip(*np.nonzero(np.isfinite(exact)), strict=True)]
    return counts


def most_misses(numbers, trials=TRIALS):
    return binom.isf(LEVEL / numbers, trials, MISSES)


@pytest.mark.parametrize("noise", NOISE)
def test_intervals_cover_what_they_claim(data, noise):
    counts = count_misses(find_truth(data), [read_answers(one) for one in make_releases(data, noise)])
    wrong = [one for one in counts if one[-1] > most_misses(len(counts))]
    assert not wrong
    assert binom.cdf(most_misses(len(counts)), TRIALS, 0.25) < 1e-3  # power


# Values beyond the possible


def count_cut_misses(count=60_000):
    """Intervals of numbers of at least zero that noise moved more than one error bar below, and how many miss."""
    rng = np.random.default_rng(1)
    truth = rng.uniform(0, 6, count)
    measured = truth + rng.normal(size=count)
    truth, measured = truth[measured < -1], measured[measured < -1]
    low, high = intervals.interval(measured, np.ones(measured.size), possible=(np.zeros(1), np.full(1, 10.0)))
    return int(((truth < low) | (truth > high)).sum()), measured.size


def test_intervals_of_values_beyond_the_possible_cover_what_they_claim():
    """Of those alone, for numbers of which all are as likely: they have 95% of the possible part of the noise."""
    misses, count = count_cut_misses()
    assert misses <= binom.isf(LEVEL, count, 0.05)


def test_intervals_that_are_only_cut_are_noticed(monkeypatch):
    monkeypatch.setattr(intervals, "_quantile", lambda value, *_: np.full_like(value, -np.inf))
    misses, count = count_cut_misses()
    assert misses > binom.isf(LEVEL, count, 0.05)


# Ratios


class Apart(NoNoise):
    """Independent noise in the entries of a matrix."""

    def __init__(self, stds):
        super().__init__(len(stds))
        self.variances = np.square(stds)

    def covariance(self, i, j, k, m):
        return np.where((i == k) & (j == m), self.variances[i, j], 0.0) * np.ones(())


def count_ratio_misses(find, mean, size, noise, count=4000):
    """Misses of intervals of a mean between -1 and 1 of a share of records of `size` standard deviations."""
    rng = np.random.default_rng(2)
    exact, law = np.array([[size, mean * size], [0, 0]]), Apart(np.array([[1.0, noise], [0, 0]]))
    view = MomentView(exact + rng.normal(size=(count, 2, 2)) * np.sqrt(law.variances), None, law, {})
    with np.errstate(all="ignore"):
        _, low, high = find(view, (0, 1), (0, 0), -1.0, 1.0)
    return int(((mean < low) | (mean > high)).sum())


def wald(view, top, bottom, least, most):
    """The ratio with its error to first order, cut to what is possible."""
    value = view.read(*top) / view.read(*bottom)
    size, std = view.read(*bottom), [view.law.entry_std(*place) for place in (top, bottom)]
    reach = 1.96 * np.hypot(std[0], value * std[1]) / np.abs(size)
    return value, np.clip(value - reach, least, most), np.clip(value + reach, least, most)


@pytest.mark.parametrize("size", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("mean", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("noise", [0.3, 1.0])
def test_intervals_of_means_of_few_records_cover_what_they_claim(mean, size, noise):
    found = count_ratio_misses(moments._ratio_range, mean, size, noise)
    assert found <= binom.isf(LEVEL / 18, 4000, 0.05)


def test_error_bars_to_first_order_of_such_means_are_noticed():
    assert count_ratio_misses(wald, 1.0, 1.0, 0.3) > binom.isf(LEVEL, 4000, 0.05)
