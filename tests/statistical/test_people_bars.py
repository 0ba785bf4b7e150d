"""Intervals of releases that protect people with several rows cover what the same release has without noise.

Level: `levels.LEVEL` each, for exact binomial bounds on the number of intervals that miss. Each release counts one
number, which one is chosen by its seed. They may cover 90% or more. Power: intervals of a third of the width, which
cover half, pass with a probability below one in a thousand.
"""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import matrixdp as mdp
from levels import LEVEL

TRIALS = 60
NAMES = ["a", "b", "c"]
BOUNDS = mdp.Bounds([-4] * 3, [4] * 3, names=NAMES)


def visits():
    rng = np.random.default_rng(3)
    person = np.repeat(np.arange(1200), rng.integers(1, 6, 1200))
    own, each = rng.normal(size=(1200, 3)), rng.normal(size=(len(person), 3))
    values = (own[person] + each) / np.sqrt(2) @ np.array([[1.0, 0.5, 0.2], [0.0, 0.8, 0.2], [0.0, 0.0, 0.9]])
    return pd.DataFrame(values, columns=NAMES).assign(id=person)


def count_misses(person, reach):
    frame = visits()
    options = {"person": person, "records": 1200 if isinstance(person, str) else len(frame), "simulation": True}
    exact = mdp.release_covariance(frame, BOUNDS, mdp.Privacy(1e6, 1e-6), stream=mdp.Stream(seed=0), **options)
    misses = 0
    for seed in range(1, TRIALS + 1):
        found = mdp.release_covariance(frame, BOUNDS, mdp.Privacy(3, 1e-6), stream=mdp.Stream(seed=seed), **options)
        kind, place = ("means", "covariance", "correlation")[seed % 3], ((1, 0), (2, 1), (2, 0))[seed // 3 % 3]
        place = (place[0], 0) if kind == "means" else place
        number, truth = getattr(found, kind)(), getattr(exact, kind)()
        misses += abs(number.value[place] - truth.value[place]) > reach * number.std[place]
    return misses


@pytest.mark.parametrize("person", ["id", mdp.Person("id", rows=4)], ids=["once", "four rows"])
def test_intervals_of_releases_for_people_hold(person):
    assert binom.sf(count_misses(person, 1.96) - 1, TRIALS, 0.1) > LEVEL


def test_intervals_of_a_third_of_the_width_are_caught():
    assert binom.sf(count_misses("id", 0.65) - 1, TRIALS, 0.1) < LEVEL
