"""Intervals of releases that protect people with several rows cover what the same release has without noise.

People have skewed numbers of rows, and those with many rows differ from the others. Level: `levels.LEVEL` each, for
exact binomial bounds on the number of intervals that miss. Each release counts one number, which one is chosen by its
seed. They may cover 90% or more. Power: intervals of a third of the width of a plain release, which cover half, pass
with a probability below one in a thousand; those of a fit that cover a third, with one of less than one in six.
`python -m benchmarks.people_methods` measures the coverage of fits.
"""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, norm

import matrixdp as mdp
from levels import LEVEL

TRIALS = {"plain": 76, "adaptive": 24}  # error bars of a fit take long
NAMES = ["a", "b", "c"]
BOUNDS = mdp.Bounds([-4] * 3, [4] * 3, names=NAMES)
PEOPLE = 500
ONCE, ROWS = mdp.Person("id"), mdp.Person("id", rows=6)


def visits():
    rng = np.random.default_rng(3)
    numbers = rng.geometric(0.3, PEOPLE)
    person = np.repeat(np.arange(PEOPLE), numbers)
    own, each = rng.normal(size=(PEOPLE, 3)), rng.normal(size=(len(person), 3))
    values = (own[person] + each) / np.sqrt(2) @ np.array([[1.0, 0.5, 0.2], [0.0, 0.8, 0.2], [0.0, 0.0, 0.9]])
    return pd.DataFrame(values + 0.1 * numbers[person][:, None], columns=NAMES).assign(id=person)


def exact_answers(frame, person, records):
    query = mdp.Moments(BOUNDS, records, person=person, neighbours="add-remove")
    moment = query.evaluate(frame, clip=True, missing="error")
    mean = moment[0, 1:] / moment[0, 0]
    covariance = moment[1:, 1:] / moment[0, 0] - np.multiply.outer(mean, mean)
    size = np.sqrt(np.diagonal(covariance))
    return {"means": mean[:, None], "covariance": covariance, "correlation": covariance / np.multiply.outer(size, size)}


@cache
def errors_over_bars(person, method):
    """Error over error bar of one number of each release."""
    frame = visits()
    records = int(np.minimum(frame.groupby("id").size(), person.most).sum())
    options = {"person": person, "records": records, "method": method, "simulation": True, "question": "covariance"}
    exact, errors = exact_answers(frame, person, records), []
    for seed in range(1, TRIALS[method] + 1):
        found = mdp.release_table(frame, BOUNDS, mdp.Privacy(3, 1e-6), stream=mdp.Stream(seed=seed), **options)
        kind, place = ("means", "covariance", "correlation")[seed % 3], ((1, 0), (2, 1), (2, 0))[seed // 3 % 3]
        place = (place[0], 0) if kind == "means" else place
        number = getattr(found, kind)()
        errors.append((number.value[place] - exact[kind][place]) / number.std[place])
    return np.abs(errors)


def most_misses(method):
    """The largest number of misses that intervals which cover 90% have."""
    return binom.isf(LEVEL, TRIALS[method], 0.1)


@pytest.mark.parametrize(("person", "method"), [(ONCE, "plain"), (ROWS, "plain"), (ROWS, "adaptive")])
def test_intervals_of_releases_for_people_hold(person, method):
    assert np.count_nonzero(errors_over_bars(person, method) > 1.96) <= most_misses(method)


def test_intervals_of_a_third_of_the_width_are_caught():
    assert np.count_nonzero(errors_over_bars(ONCE, "plain") > 0.65) > most_misses("plain")
    assert binom.cdf(most_misses("plain"), TRIALS["plain"], 2 * norm.sf(0.65)) < 1e-3  # power
