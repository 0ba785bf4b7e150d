"""An audit of whole releases on worst-case neighbours: the claim holds, and half the noise is caught.

Level: `levels.LEVEL` each. Power: with half the noise the audit misses with a probability far below one in a million.
"""

from dataclasses import replace

import numpy as np
import pytest

import matrixdp as mdp
from audit import Count, measured_epsilon
from levels import LEVEL
from matrixdp.release import release

PRIVACY = mdp.Privacy(2.0, 0.01)
BOX = mdp.Bounds([-1, -1], [1, 1])
TRIALS = 4000
ROTATION = [[0.8, -0.6], [0.6, 0.8]]

CASES = {
    "identity": (mdp.make_design(mdp.Identity(BOX, 1), PRIVACY), [[1, 1]], [[-1, -1]]),
    "identity rotated": (
        mdp.make_design(mdp.Identity(BOX, 1), PRIVACY, allocation=mdp.shares([0.8, 0.2]), directions=ROTATION),
        [[1, 1]],
        [[-1, -1]],
    ),
    "second moment": (mdp.make_design(mdp.SecondMoment(BOX, 1), PRIVACY), [[1, 1]], [[1, -1]]),
    "moments": (mdp.make_design(mdp.Moments(BOX, 1, mean_share=0.5), PRIVACY), [[1, 1]], [[-1, -1]]),
    "adjacency": (mdp.make_design(mdp.Adjacency(2), PRIVACY), [[0, 1], [1, 0]], [[0, 0], [0, 0]]),
}


def audit(design, first, second, delta, seed):
    """Lower confidence bound on epsilon: half of the trials choose a cut, the other half measure."""
    direction = np.subtract(*(design.query.evaluate(x, clip=True, missing="error") for x in (first, second)))
    direction = design.noise.whiten(direction)
    stream = mdp.Stream(seed=seed)

    def scores(data):
        draws = [release(design, data, stream=stream, simulation=True).matrix for _ in range(2 * TRIALS)]
        centred = [draw - design.query.finish(np.zeros(design.query.shape)) for draw in draws]
        return np.array([float((design.noise.whiten(draw) * direction).sum()) for draw in centred]).reshape(2, -1)

    a, b = scores(first), scores(second)
    cuts = np.quantile(a[0], np.linspace(0.05, 0.95, 19))
    best = max(cuts, key=lambda cut: epsilon_beyond(a[0], b[0], cut, delta))
    return epsilon_beyond(a[1], b[1], best, delta)


def epsilon_beyond(first, second, cut, delta):
    """Measured epsilon of the event that the score passes `cut`."""
    counts = (Count(int((scores > cut).sum()), scores.size) for scores in (first, second))
    return measured_epsilon(*counts, delta=delta, level=LEVEL)


@pytest.mark.parametrize("case", CASES)
def test_the_claim_holds_and_half_the_noise_is_caught(case):
    design, first, second = CASES[case]
    assert audit(design, first, second, PRIVACY.delta, seed=1) <= PRIVACY.epsilon
    quarter = 0.5 if design.query.symmetric else 0.25
    colcov = design.colcov.scaled(quarter)
    rowcov = colcov if design.query.symmetric else design.rowcov
    broken = replace(design, colcov=colcov, rowcov=rowcov, grid=replace(design.grid, limit=4 * design.grid.limit))
    assert audit(broken, first, second, PRIVACY.delta, seed=2) > PRIVACY.epsilon
