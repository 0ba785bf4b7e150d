"""Coverage of error bars: on skewed data they hold, and those of the noise alone do not; and they are not too long.

Level: `levels.LEVEL` for each of two hypotheses. That 1.96 error bars cover a variance with a probability of at least
0.88, the least that is claimed for a data set: bars that cover a fifth are rejected with the power 0.999, and those of
the noise alone cover about as little here. And that a quarter of the error bar of a mean is exceeded with a probability
of at least 0.4 (0.8 for exact ones): bars ten times as long are rejected with the power 0.99. Each fit has its own
noise and counts once. Seeds are fixed.
"""

from functools import cache

import numpy as np
import pytest
from scipy.stats import binom, norm

import matrixdp as mdp
from levels import LEVEL
from matrixdp.adaptive import private_moment
from matrixdp.adaptive.error_bars import NORMAL, noise_bars
from matrixdp.noise import Stream

FITS = 30
CLAIM, LENGTH = 0.88, 0.4
RNG = np.random.default_rng(7)
DATA = {
    "lognormal": RNG.lognormal(0.0, 1.0, (900, 4)),
    "exponential factors": RNG.exponential(size=(900, 2)) @ RNG.uniform(0.2, 1.0, (2, 4)),
}


def most_rejected(fits, claim):
    """The largest number of fits that is too few for a claim."""
    return int(binom.ppf(LEVEL, fits, claim)) - 1


@cache
def errors_over_bars(name):
    """One feature of each fit: error over error bar of its variance, over that of its noise alone, and of its mean."""
    data = DATA[name]
    half = 8 * data.std(axis=0)
    bounds = mdp.Bounds(np.zeros(4), 2 * half)
    records, found = np.clip(data, bounds.lower, bounds.upper), []
    for seed in range(FITS):
        privacy, k = mdp.Privacy(1.0, 1e-6), seed % 4
        moment = private_moment(records, bounds, privacy, stream=Stream(seed), simulation=True)
        error, noise = moment.covariance[k, k] - records[:, k].var(), noise_bars(moment)["covariance"][k, k]
        shift = (moment.mean[k] - records[:, k].mean()) / moment.errors.mean_std[k]
        found.append((error / moment.errors.covariance_std[k, k], error / (noise * half[k] ** 2), shift))
    return np.abs(found).T


@pytest.mark.parametrize("name", DATA)
def test_error_bars_hold_on_skewed_data_and_those_of_the_noise_alone_do_not(name):
    bars, noise, _ = errors_over_bars(name)
    rejected = most_rejected(FITS, CLAIM)
    assert binom.cdf(rejected, FITS, CLAIM) < LEVEL
    assert binom.cdf(rejected, FITS, 0.2) > 0.999  # power
    assert np.count_nonzero(bars <= NORMAL) > rejected
    assert np.count_nonzero(noise <= NORMAL) <= rejected


def test_error_bars_of_means_are_not_much_longer_than_errors():
    ratios = np.concatenate([errors_over_bars(name)[2] for name in DATA])
    rejected = most_rejected(ratios.size, LENGTH)
    assert binom.cdf(rejected, ratios.size, LENGTH) < LEVEL
    assert binom.cdf(rejected, ratios.size, 2 * norm.sf(2.5)) > 0.99  # power
    assert np.count_nonzero(ratios > 0.25) > rejected
    assert np.count_nonzero(ratios / 10 > 0.25) <= rejected
