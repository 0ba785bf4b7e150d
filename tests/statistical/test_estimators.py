"""An audit of a whole fit, all steps together, by the best attack on its transcript.

The attacker knows both neighbouring data sets and sees every noisy count and moment. By Neyman and Pearson nothing
tells the two apart better than the likelihood ratio of the transcript. Level: `levels.LEVEL`. Seeds are fixed. Power: a
fit with a third of the noise is caught, except with a probability of one in a million; `test_power` checks that.
"""

import numpy as np
import pytest
from scipy.stats import binom, norm

import matrixdp as mdp
from levels import LEVEL
from matrixdp.adaptive import budget as fit_budget
from matrixdp.adaptive.coordinates import LEVELS
from matrixdp.adaptive.fit import Purpose, choose_strategy, fit_moment
from matrixdp.adaptive.measure import PrivateMeasurements
from matrixdp.adaptive.records import grid_records
from matrixdp.adaptive.settings import SETTINGS
from matrixdp.audit import Count, measured_mu, replay
from matrixdp.privacy import Neighbours

PRIVACY = mdp.Privacy(2.0, 0.01)
RUNS = 300
# About the midpoint and along one diagonal: in the learned coordinates, too, the two diagonals are orthogonal.
MANY = np.array([[1.0, 1], [-1, -1], [1, 1], [-1, -1], [0.5, 0.5], [-0.5, -0.5]])


def audit(first, second, privacy, settings, seed):
    """Lower confidence bound on mu; the event, a likelihood ratio above one, is fixed beforehand."""

    def fit(records):
        budget = fit_budget.FitBudget(privacy, Neighbours.REPLACE)
        return fit_moment(PrivateMeasurements(records, budget, len(records)), Purpose(settings))

    def losses(data, other):
        return np.array([replay(fit, data, other, claim=privacy, seed=seed * RUNS + i).loss for i in range(RUNS)])

    scores = losses(first, second), -losses(second, first)
    return measured_mu(*(Count(int((own > 0).sum()), RUNS) for own in scores), level=LEVEL)


CASES = {"two steps": MANY, "one step": np.empty((0, 2))}


@pytest.mark.parametrize("case", CASES)
def test_the_claim_holds_and_a_third_of_the_noise_is_caught(case):
    settings, others, box = SETTINGS["covariance"], CASES[case], mdp.Bounds([-1, -1], [1, 1])
    first, second = (
        grid_records(box, np.vstack([np.array(record), others]), LEVELS) for record in ([[1, -1]], [[1, 1]])
    )
    budget = fit_budget.FitBudget(PRIVACY, Neighbours.REPLACE)
    strategy = choose_strategy(PrivateMeasurements(first, budget, len(first)), Purpose(settings))
    assert strategy == ("ball" if case == "one step" else "learned")
    assert audit(first, second, PRIVACY, settings, seed=1) <= PRIVACY.mu
    broken = mdp.Privacy(mdp.gdp.gdp_epsilon(mu=3 * PRIVACY.mu, delta=PRIVACY.delta), PRIVACY.delta)
    assert audit(first, second, broken, settings, seed=2) > PRIVACY.mu


def test_power():
    right = int(binom.ppf(5e-7, RUNS, norm.cdf(3 * PRIVACY.mu / 2)))  # the loss has the law N(+-mu^2/2, mu^2)
    assert measured_mu(Count(right, RUNS), Count(RUNS - right, RUNS), level=LEVEL) > PRIVACY.mu
