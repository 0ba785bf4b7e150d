"""Exp. I beyond the paper: the same task by better queries, all exactly calibrated.

The identity query protects each record by itself, which is far more than a regression needs. Moments of all records
suffice for ridge regression; random Fourier features (Rahimi & Recht 2007) approximate the kernel.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from matrixdp.answers.moments import covariance, means
from matrixdp.answers.psd import nearest_psd
from matrixdp.design import make_design
from matrixdp.domain.bounds import Bounds
from matrixdp.paper.experiment import Experiment
from matrixdp.paper.regression import BOUNDS, EXPERIMENT, TRAIN, rmse, split
from matrixdp.paper.rows import Row, Setting
from matrixdp.queries import Moments, SecondMoment
from matrixdp.types import Floats

_PENALTIES = (0.003, 0.01, 0.03, 0.1, 0.3)
PENALTIES = tuple(f"penalty {penalty:g}" for penalty in _PENALTIES)
_RADII = (None, 1.0, 0.8, 0.6)  # the corner of the box is 1.22 from its midpoint


def rows() -> list[Row]:
    """Optimal allocation, the best rivals, moments, random features."""
    radii = tuple({"radius": radius} for radius in _RADII)
    features = tuple({"pairs": pairs, "gamma": gamma} for pairs in (4, 8, 16) for gamma in (0.3, 1.0))
    return [
        *EXPERIMENT.exact_rows(),
        EXPERIMENT.jl_row("exact"),
        EXPERIMENT.design_row("moments", "Ridge regression on released moments", _moments, radii, PENALTIES),
        EXPERIMENT.design_row(
            "random features", "Kernel ridge by random features, second moment", _random_features, features, PENALTIES
        ),
    ]


def _moments(setting: Setting) -> Experiment:
    """Moments of records in a ball; ridge regression on the covariance."""
    query = Moments(Bounds(BOUNDS.lower, BOUNDS.upper, radius=setting["radius"]), TRAIN)
    design = make_design(query, EXPERIMENT.budget())

    def score(released: Floats, trial: int) -> list[float]:
        test = split(trial)[1]
        spread = nearest_psd(covariance(released, design).value)
        centre = np.clip(means(released, design).value[:, 0], 0.0, 1.0)
        guesses = [centre[-1] + (test[:, :-1] - centre[:-1]) @ ridge(spread, penalty) for penalty in _PENALTIES]
        return [rmse(np.clip(guess, 0.0, 1.0), test[:, -1]) for guess in guesses]

    return replace(EXPERIMENT, query=query, score=score)


def _random_features(setting: Setting) -> Experiment:
    """Second moment of (cos, sin) of random projections and the target, a vector of norm sqrt(5)/2 at most."""
    pairs = setting["pairs"]
    half = np.concatenate([np.full(2 * pairs, 1 / math.sqrt(pairs)), [0.5]])
    query = SecondMoment(Bounds(-half, half, radius=math.sqrt(1.25)), TRAIN)
    frequencies = np.random.default_rng(11).standard_normal((5, pairs)) * math.sqrt(2 * setting["gamma"])

    def lift(x: Floats) -> Floats:
        angles = x @ frequencies
        return np.hstack([np.cos(angles), np.sin(angles)]) / math.sqrt(pairs)

    def records(trial: int) -> Floats:
        train = split(trial)[0]
        return np.column_stack([lift(train[:, :-1]), train[:, -1] - 0.5])

    def score(released: Floats, trial: int) -> list[float]:
        test = split(trial)[1]
        moment, points = nearest_psd(released), lift(test[:, :-1])
        guesses = [0.5 + points @ ridge(moment, penalty) for penalty in _PENALTIES]
        return [rmse(np.clip(guess, 0.0, 1.0), test[:, -1]) for guess in guesses]

    return replace(EXPERIMENT, query=query, records=records, score=score)


def ridge(moment: Floats, penalty: float) -> Floats:
    """Coefficients of the last variable on the others, from their second moment.

    Examples
    --------
    >>> ridge(np.array([[1.0, 0.5], [0.5, 1.0]]), 0.0).tolist()
    [0.5]
    """
    inner = moment[:-1, :-1]
    return np.asarray(np.linalg.solve(inner + penalty * np.eye(len(inner)), moment[:-1, -1]))
