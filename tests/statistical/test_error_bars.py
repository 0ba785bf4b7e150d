"""Coverage of error bars: on skewed data they hold, and those of the noise alone do not.

Level: `levels.LEVEL` for the hypothesis that 1.96 error bars cover a variance with a probability of at least 0.88, the
least that is claimed for a data set. Each fit has its own noise and counts once. Seeds are fixed. Bars that cover a
fifth are rejected with the power 0.999; those of the noise alone cover about as little here.
"""

import numpy as np
import pytest
from scipy.stats import binom

import matrixdp as mdp
from levels import LEVEL
from matrixdp.adaptive import private_moment
from matrixdp.adaptive.error_bars import NORMAL, noise_bars
from matrixdp.noise import Stream

FITS = 30
CLAIM = 0.88
REJECTED = int(binom.ppf(LEVEL, FITS, CLAIM)) - 1  # as few covered fits as this are too few
RNG = np.random.default_rng(7)
DATA = {
    "lognormal": RNG.lognormal(0.0, 1.0, (900, 4)),
    "exponential factors": RNG.exponential(size=(900, 2)) @ RNG.uniform(0.2, 1.0, (2, 4)),
}


def covered(data):
    """Numbers of fits in which a variance lies within its error bar, and within that of the noise alone."""
    half = 8 * data.std(axis=0)
    bounds = mdp.Bounds(np.zeros(4), 2 * half)
    records = np.clip(data, bounds.lower, bounds.upper)
    truth, all_bars, noise_alone = records.var(axis=0), 0, 0
    for seed in range(FITS):
        privacy, feature = mdp.Privacy(1.0, 1e-6), seed % 4
        moment = private_moment(records, bounds, privacy, stream=Stream(seed), simulation=True)
        error = abs(moment.covariance[feature, feature] - truth[feature])
        all_bars += error <= NORMAL * moment.errors.covariance_std[feature, feature]
        noise_alone += error <= NORMAL * noise_bars(moment)["covariance"][feature, feature] * half[feature] ** 2
    return all_bars, noise_alone


@pytest.mark.parametrize("name", DATA)
def test_error_bars_hold_on_skewed_data_and_those_of_the_noise_alone_do_not(name):
    all_bars, noise_alone = covered(DATA[name])
    assert binom.cdf(REJECTED, FITS, CLAIM) < LEVEL
    assert binom.cdf(REJECTED, FITS, 0.2) > 0.999  # power
    assert all_bars > REJECTED
    assert noise_alone <= REJECTED
