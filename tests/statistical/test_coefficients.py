"""Intervals of regression coefficients cover those without privacy.

Level: `levels.LEVEL` each, for exact binomial bounds on the number of intervals that miss. Each test counts one
coefficient per fit, so that the trials are independent; which one is chosen by the number of the fit. The intervals are
approximate: they may cover 90% to 99%. Power: intervals that cover 55% pass with a probability below one in a thousand.
"""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression

import matrixdp as mdp
from levels import LEVEL
from matrixdp.estimators import PrivateLinearRegression
from nightly import times

TRIALS = 102


pytestmark = pytest.mark.usefixtures("no_draws")


def simulated():
    rng = np.random.default_rng(3)
    features = rng.normal(size=(3000, 8)) * np.linspace(0.5, 2, 8)
    target = features @ rng.normal(size=8) * 0.5 + rng.normal(size=3000)
    truth = LinearRegression().fit(features, target).coef_
    return features, target, truth, {"bounds": (-8, 8), "target_bounds": (-15, 15)}


def diabetes():
    data = load_diabetes(scaled=False)
    bounds = mdp.Bounds([15, 1, 15, 60, 50, 0, 0, 0, 2, 50], [85, 2, 45, 140, 350, 300, 100, 10, 8, 150])
    truth = LinearRegression().fit(data.data, data.target).coef_
    return data.data, data.target, truth, {"bounds": bounds, "target_bounds": (0, 400)}


def table(*, missing):
    rng = np.random.default_rng(5)
    ward, age = rng.choice(list("abc"), 4000, p=[0.5, 0.3, 0.2]), rng.uniform(20, 80, 4000)
    bmi = 20 + 0.1 * age + rng.normal(0, 3, 4000)
    target = 0.5 * age - bmi + 4 * (ward == "b") + rng.normal(0, 3, 4000)
    if missing:
        bmi[rng.random(4000) < 0.2] = np.nan
    frame = pd.DataFrame({"age": age, "bmi": bmi, "ward": ward})
    numbers = [mdp.Number("age", 0, 100), mdp.Number("bmi", 10, 50, missing=missing)]
    options = {"bounds": mdp.Columns([*numbers, mdp.Category("ward", list("abc"))]), "target_bounds": (-50, 50)}
    precise = PrivateLinearRegression(epsilon=1e7, simulation=True, random_state=0, **options).fit(frame, target)
    return frame, target, precise.coef_, options


CASES = {
    "simulated": simulated,
    "diabetes": diabetes,
    "table": lambda: table(missing=False),
    "table with missing values": lambda: table(missing=True),
}


@cache
def errors_over_bars(case):
    """Error over error bar of one coefficient of each fit."""
    features, target, truth, options = CASES[case]()
    found = []
    for seed in range(TRIALS):
        model = PrivateLinearRegression(epsilon=2.0, simulation=True, random_state=seed, **options)
        model.fit(features, target)
        place = seed % truth.size
        found.append((model.coef_[place] - truth[place]) / model.coef_std_[place])
    return np.abs(found)


def most_misses():
    """The largest number of misses that intervals which cover 90% have."""
    return binom.isf(LEVEL, TRIALS, 0.1)


def test_intervals_of_a_third_of_the_width_are_caught():
    assert np.count_nonzero(errors_over_bars("simulated") > 0.65) > most_misses()
    assert binom.cdf(most_misses(), TRIALS, 0.45) < 1e-3  # power


# The others take the same paths: arrays, and tables.
COMMON = ["simulated", "table with missing values"]


@pytest.mark.parametrize("case", times(COMMON, CASES))
def test_intervals_cover_the_coefficients_without_privacy(case):
    assert np.count_nonzero(errors_over_bars(case) > 1.96) <= most_misses()
