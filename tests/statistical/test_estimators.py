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
from matrixdp.adaptive import fit as learning
from matrixdp.adaptive.coordinates import LEVELS
from matrixdp.adaptive.grid_records import GridRecords
from matrixdp.adaptive.settings import SETTINGS
from matrixdp.audit import Count, measured_epsilon
from matrixdp.privacy import Neighbours

PRIVACY = mdp.Privacy(2.0, 0.01)
RUNS = 1200
# About the midpoint and along one diagonal: in the learned coordinates, too, the two diagonals are orthogonal.
MANY = np.array([[1.0, 1], [-1, -1], [1, 1], [-1, -1], [0.5, 0.5], [-0.5, -0.5]])


class Record(fit_budget.FitBudget):
    """Keeps each answer before and after its noise."""

    def release(self, name, query, data, *, share):
        released = super().release(name, query, data, share=share)
        self.__dict__.setdefault("log", []).append((released, evaluate(query, data)))
        return released


class Replay(fit_budget.FitBudget):
    """Gives the answers of an earlier fit again, and keeps what they would be without noise on other data."""

    def release(self, name, query, data, *, share):
        released, _ = self.earlier[len(self.log)]
        self._releases.append((name, share, released.mu))
        self.log.append(evaluate(query, data))
        return released


def evaluate(query, data):
    return query.finish(query.evaluate(data, clip=True, missing="error"))


def likelihood_ratio(data, other, privacy, settings, stream):
    """Log of the transcript's likelihood under `data` over that under `other`, for a transcript drawn from `data`."""
    drawn = Record(privacy, Neighbours.REPLACE, stream, simulation=True)
    learning.fit_moment(data, settings, drawn, public=len(data))
    replayed = Replay(privacy, Neighbours.REPLACE, stream, simulation=True)
    replayed.earlier, replayed.log = drawn.log, []
    learning.fit_moment(other, settings, replayed, public=len(data))
    total = 0.0
    for (released, own), foreign in zip(drawn.log, replayed.log, strict=True):
        noisy, whiten = released.matrix, released.design.noise.whiten
        total += (np.sum(whiten(noisy - foreign) ** 2) - np.sum(whiten(noisy - own) ** 2)) / 2
    return total


def audit(first, second, privacy, settings, seed):
    """Lower confidence bound on epsilon at PRIVACY.delta; the event is fixed beforehand."""
    stream = mdp.Stream(seed=seed)
    own = [likelihood_ratio(first, second, privacy, settings, stream) for _ in range(RUNS)]
    foreign = [-likelihood_ratio(second, first, privacy, settings, stream) for _ in range(RUNS)]
    cut = PRIVACY.epsilon + 0.5
    counts = (Count(int((np.array(scores) > cut).sum()), RUNS) for scores in (own, foreign))
    return measured_epsilon(*counts, delta=PRIVACY.delta, level=LEVEL)


CASES = {"two steps": MANY, "one step": np.empty((0, 2))}


@pytest.mark.parametrize("case", CASES)
def test_the_claim_holds_and_a_third_of_the_noise_is_caught(case):
    settings, others, box = SETTINGS["covariance"], CASES[case], mdp.Bounds([-1, -1], [1, 1])
    first, second = (
        GridRecords(box, np.vstack([np.array(record), others]), LEVELS) for record in ([[1, -1]], [[1, 1]])
    )
    assert learning.is_scarce(2, len(first), PRIVACY.mu, settings) == (case == "one step")
    assert audit(first, second, PRIVACY, settings, seed=1) <= PRIVACY.epsilon
    broken = mdp.Privacy(mdp.gdp_epsilon(mu=3 * PRIVACY.mu, delta=PRIVACY.delta), PRIVACY.delta)
    assert audit(first, second, broken, settings, seed=2) > PRIVACY.epsilon
