"""An audit of a whole fit, all steps together, by the best attack on its transcript.

The attacker knows both neighbouring data sets and sees every noisy count and moment. By Neyman and Pearson nothing
tells the two apart better than the likelihood ratio of the transcript. Level: `levels.LEVEL`. Seeds are fixed; a fit
with a third of the noise is caught.
"""

import numpy as np
import pytest

import matrixdp as mdp
from levels import LEVEL
from matrixdp.adaptive import budget as fit_budget
from matrixdp.adaptive.coordinates import LEVELS
from matrixdp.adaptive.fit import Purpose, choose_strategy, fit_moment
from matrixdp.adaptive.measure import PrivateMeasurements
from matrixdp.adaptive.records import grid_records
from matrixdp.adaptive.settings import SETTINGS
from matrixdp.audit import Count, measured_epsilon, replay
from matrixdp.privacy import Neighbours

PRIVACY = mdp.Privacy(2.0, 0.01)
RUNS = 700
# About the midpoint and along one diagonal: in the learned coordinates, too, the two diagonals are orthogonal.
MANY = np.array([[1.0, 1], [-1, -1], [1, 1], [-1, -1], [0.5, 0.5], [-0.5, -0.5]])


def audit(first, second, privacy, settings, seed):
    """Lower confidence bound on epsilon at PRIVACY.delta; the event is fixed beforehand."""

    def fit(records):
        budget = fit_budget.FitBudget(privacy, Neighbours.REPLACE)
        return fit_moment(PrivateMeasurements(records, budget, len(records)), Purpose(settings))

    def losses(data, other):
        return np.array([replay(fit, data, other, claim=privacy, seed=seed * RUNS + i).loss for i in range(RUNS)])

    cut = PRIVACY.epsilon + 0.5
    scores = losses(first, second), -losses(second, first)
    counts = (Count(int((own > cut).sum()), RUNS) for own in scores)
    return measured_epsilon(*counts, delta=PRIVACY.delta, level=LEVEL)


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
    assert audit(first, second, PRIVACY, settings, seed=1) <= PRIVACY.epsilon
    broken = mdp.Privacy(mdp.gdp.gdp_epsilon(mu=3 * PRIVACY.mu, delta=PRIVACY.delta), PRIVACY.delta)
    assert audit(first, second, broken, settings, seed=2) > PRIVACY.epsilon
