"""Error bars of answers from a table cover what they claim.

Level: `levels.LEVEL` each, for exact binomial bounds on the number of intervals that miss. Each test counts one number
per release, so that the trials are independent. Power: intervals that cover 75% instead of 95% pass with a probability
below one in a thousand; in a nightly run, those that cover 85%.
"""

from dataclasses import replace
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, norm

import matrixdp as mdp
import matrixdp.answers.histograms as histograms
from levels import LEVEL
from matrixdp.answers.moments import find_level_means, view_levels
from nightly import times

RECORDS, TRIALS = 12_000, times(280, 1080)
PRIVACY = mdp.Privacy(1.0, 1e-6)
COLUMNS = mdp.Columns(
    [
        mdp.Number("age", 0, 120),
        mdp.Number("bmi", 10, 50, missing=True),
        mdp.Category("ward", ["a", "b", "c"]),
        mdp.YesNo("smoker"),
    ]
)


def make_data():
    rng = np.random.default_rng(5)
    ward, smoker = rng.choice(list("abc"), RECORDS, p=[0.5, 0.35, 0.15]), rng.random(RECORDS) < 0.3
    age = rng.normal(50, 12, RECORDS)
    bmi = np.where(rng.random(RECORDS) < 0.2, np.nan, 20 + 0.1 * age + rng.normal(0, 3, RECORDS))
    return pd.DataFrame({"age": age, "bmi": bmi, "ward": ward, "smoker": smoker})


ANSWERS = {
    "mean and spread": (lambda r: r.means(), [(1, 0), (1, 1)]),
    "share and mean of a level": (lambda r: r.means(by="ward"), [(1, 0), (2, 2)]),
    "covariance": (lambda r: r.covariance(), [(0, 1)]),
    "correlation": (lambda r: r.correlation(), [(0, 1)]),
}


@pytest.fixture(scope="module", params=[(), ("ward",)], ids=["all", "by ward"])
def releases(request):
    query, data = mdp.TableMoments(COLUMNS, RECORDS, request.param), make_data()
    design, precise = mdp.make_design(query, PRIVACY), mdp.make_design(query, mdp.Privacy(1e6, 1e-6))
    stream = mdp.Stream(seed=7)
    truth = precise.release(data, stream=stream, simulation=True)
    return truth, [design.release(data, stream=stream, simulation=True) for _ in range(TRIALS)]


@pytest.mark.parametrize("answer", ANSWERS)
def test_intervals_cover_what_they_claim(releases, answer):
    truth, noisy = releases
    ask, places = ANSWERS[answer]
    exact, intervals = ask(truth).value, [ask(release).interval(0.95) for release in noisy]
    for place in places:
        misses = sum(not low[place] <= exact[place] <= high[place] for low, high in intervals)
        # To first order only for all but linear answers: they may cover 93% to 97%.
        assert binom.cdf(misses, TRIALS, 0.03) > LEVEL
        assert binom.sf(misses - 1, TRIALS, 0.07) > LEVEL


def test_intervals_of_too_low_a_level_would_be_noticed():
    most = binom.isf(LEVEL, TRIALS, 0.07)
    assert binom.cdf(most, TRIALS, times(0.25, 0.15)) < 1e-3


@pytest.mark.usefixtures("no_draws")
def test_intervals_of_a_regression_cover_its_coefficients(releases):
    truth, noisy = releases
    exact = truth.regression("bmi", ["age"])
    misses = 0
    for release in noisy[:30]:
        found = release.regression("bmi", ["age"])
        misses += abs(found.coefficients[1] - exact.coefficients[1]) > 1.96 * found.noise_std[1]
    assert binom.sf(misses - 1, 30, 0.1) > LEVEL


@pytest.mark.usefixtures("no_draws")
def test_intervals_of_components_cover_what_is_separated():
    """Loadings and variances of components that noise does not mix, one of each per release."""
    rng = np.random.default_rng(0)
    loadings = np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.5], [0.2, 0.8], [0.1, 0.6]])
    noise = rng.normal(size=(20_000, 5)) * np.sqrt(1 - (loadings**2).sum(axis=1))
    data = rng.normal(size=(20_000, 2)) @ loadings.T + noise
    query = mdp.TableMoments(mdp.Columns([mdp.Number(f"x{i}", -4, 4) for i in range(5)]), 20_000)
    design, stream = mdp.make_design(query, PRIVACY), mdp.Stream(seed=1)
    precise = mdp.make_design(query, mdp.Privacy(1e6, 1e-6))
    exact = precise.release(data, stream=stream, simulation=True).components()
    misses, trials = 0, 40
    for trial in range(trials):
        found = design.release(data, stream=stream, simulation=True).components()
        assert found.reliable[:, :2].all()
        place = trial % 6, trial % 2
        low, high = found.interval(0.95)
        misses += not low[place] <= exact.value[place] <= high[place]
    assert binom.sf(misses - 1, trials, 0.1) > LEVEL


def test_intervals_of_quantiles_cover_and_shorter_ones_would_be_noticed():
    """Where the quantile is a value of few records, its interval is nearly as short as tests of single bins allow."""
    columns = mdp.Columns([mdp.Number("n", 0, 9, step=1), mdp.Number("m", 0, 9, missing=True, step=1)])
    n = np.repeat(np.arange(10), [100, 100, 100, 199, 2, 99, 100, 100, 100, 100])  # the median is 4
    m = np.where(np.arange(1000) % 4, n[::-1], np.nan)
    query = mdp.TableMoments(columns, 1000, neighbours="add-remove", shapes=0.5)
    design, stream, trials = mdp.make_design(query, mdp.Privacy(5.0, 1e-6)), mdp.Stream(seed=3), times(120, 600)
    exact = np.stack([np.nanquantile(one, [0.5, 0.1], method="inverted_cdf") for one in (n, m)])
    misses = np.zeros((2, 2, 2))  # of intervals, and of those of a quarter of their length
    for _ in range(trials):
        release = design.release({"n": n, "m": m}, stream=stream, simulation=True)
        for place, level in enumerate((0.95, 2 * norm.cdf(0.49) - 1)):
            with mock.patch.object(histograms, "LEVEL", level):
                low, high = release.quantiles(q=[0.5, 0.1]).interval()
            misses[place] += (exact < low) | (high < exact)
    assert binom.sf(misses[0].max() - 1, trials, 0.05) > LEVEL
    assert binom.sf(misses[1].max() - 1, trials, 0.05) < LEVEL


SHARES = np.array([0.4, 0.25, 0.15, 0.1, 0.06, 0.04])  # of the levels
DRAWS = 2000
EVEN, ONE, MANY = [0.05] * 6, [0.05, 0.05, 0.05, 0.8, 0.05, 0.05], [0.2, 0.0, 0.1, 0.4, 0.2, 0.5]


def level_moments(missing):
    """A number near the lower end of its bounds, with shares of missing values by level, and its moments."""
    rng = np.random.default_rng(5)
    level = rng.choice(6, 20_000, p=SHARES)
    x = rng.normal(2.5 + 0.2 * level, 2).clip(0, 10)
    x[rng.random(x.size) < np.array(missing)[level]] = np.nan
    names = [f"level {i}" for i in range(6)]
    columns = mdp.Columns([mdp.Number("x", 0, 10, missing=True), mdp.Category("level", names)])
    query = mdp.TableMoments(columns, x.size)
    data = pd.DataFrame({"x": x, "level": np.array(names)[level]})
    return query, query.evaluate(data, clip=True, missing="error")


@pytest.mark.parametrize("missing", [EVEN, ONE, MANY], ids=["of no level", "of one level", "of many levels"])
@pytest.mark.parametrize("epsilon", [0.05, 0.2])
def test_means_by_level_are_covered_where_missing_values_depend_on_the_level(missing, epsilon):
    """Bounds: 92% to 98% of the intervals, several standard errors away. Bars of the noise alone cover less."""
    query, matrix = level_moments(missing)
    view, row, _ = view_levels(matrix, mdp.make_design(query, mdp.Privacy(epsilon, 1e-6)), "level")
    noisy = replace(view, matrix=view.matrix + view.law.draw(DRAWS, np.random.default_rng(1)))
    with np.errstate(all="ignore"):
        truth = find_level_means(view.without_noise(), row).value
        found = find_level_means(noisy, row)
        error, bars, noise = np.abs(found.value - truth), found.std(view.law), view.law.std(found.terms)
    shown = np.isfinite(error)
    assert 0.92 < np.mean(error[shown] < 1.96 * bars[shown]) < 0.98
    if missing == MANY:
        assert np.mean(error[shown] < 1.96 * noise[shown]) < 0.92


def test_a_number_that_could_be_missing_but_is_not_is_shown_as_if_it_could_not():
    query, matrix = level_moments([0.0] * 6)
    view, row, _ = view_levels(matrix, mdp.make_design(query, mdp.Privacy(0.04, 1e-6)), "level")
    noisy = replace(view, matrix=view.matrix + view.law.draw(DRAWS, np.random.default_rng(1)))
    with np.errstate(all="ignore"):
        shown = np.isfinite(find_level_means(noisy, row).value).mean(axis=0)
    row = row[:, 0]
    sized = noisy.stands_out(0, row).mean(axis=0), noisy.stands_out(row, view.places["x"].observed).mean(axis=0)
    assert shown.mean() > 0.9 * sized[0].mean()
    assert shown.mean() > 1.3 * sized[1].mean()  # by the noisy number of its values alone
