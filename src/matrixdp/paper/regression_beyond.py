"""Exp. I beyond the paper: the same task by better queries, all exactly calibrated.

The identity query hides each record by itself, which is far more than a regression needs. Moments of all records at
once carry what ridge regression uses; random Fourier features (Rahimi & Recht 2007) bring the kernel back.
"""

from __future__ import annotations

import math

import numpy as np

from matrixdp.answers.moments import covariance, mean, nearest_psd
from matrixdp.baselines import analytic_gaussian
from matrixdp.design import make_design, optimal
from matrixdp.domain.bounds import Bounds
from matrixdp.noise import Stream
from matrixdp.paper.guarantee import Guarantee, Spent
from matrixdp.paper.mechanisms import design_mechanism, rival
from matrixdp.paper.regression import BOUNDS, QUERY, READINGS, TRAIN, budget, jl_row, on_records, rmse, split
from matrixdp.paper.rows import Row, Runner, Setting, Trial
from matrixdp.queries import Moments, SecondMoment
from matrixdp.types import Floats

_PENALTIES = (0.003, 0.01, 0.03, 0.1, 0.3)
PENALTIES = tuple(f"penalty {penalty:g}" for penalty in _PENALTIES)
_RADII = (None, 1.0, 0.8, 0.6)  # the corner of the box is 1.22 from its midpoint


def rows() -> list[Row]:
    """Optimal allocation, the best rivals, moments, random features."""
    privacy = budget()
    column = Guarantee(privacy.epsilon, privacy.delta)
    best = design_mechanism(make_design(QUERY, privacy, allocation=optimal()))
    exact_gaussian = rival(analytic_gaussian, QUERY, privacy)
    features = tuple({"pairs": pairs, "gamma": gamma} for pairs in (4, 8, 16) for gamma in (0.3, 1.0))
    return [
        Row(
            "identity/optimal",
            "Identity query, optimal allocation",
            "beyond",
            column,
            lambda _setting: on_records(best),
            readings=READINGS,
        ),
        Row(
            "gaussian/exact",
            "Gaussian (exact)",
            "beyond",
            column,
            lambda _setting: on_records(exact_gaussian),
            readings=READINGS,
        ),
        jl_row("jl/exact", "JL transform (exact threshold)", "beyond", "exact"),
        Row(
            "moments",
            "Ridge regression on released moments",
            "beyond",
            column,
            _moments,
            tuple({"radius": radius} for radius in _RADII),
            PENALTIES,
        ),
        Row(
            "random features",
            "Kernel ridge by random features, second moment",
            "beyond",
            column,
            _random_features,
            features,
            PENALTIES,
        ),
    ]


def _moments(setting: Setting) -> Runner:
    bounds = Bounds(BOUNDS.lower, BOUNDS.upper, radius=setting["radius"])
    design = make_design(Moments(bounds, TRAIN), budget())
    release = design_mechanism(design)

    def run(trial: int, stream: Stream) -> Trial:
        train, test = split(trial)
        released = release(train, stream)
        spread = nearest_psd(covariance(released.matrix, design).value)
        centre = np.clip(mean(released.matrix, design).value, 0.0, 1.0)
        errors = []
        for penalty in _PENALTIES:
            slope = ridge(spread, penalty)
            guess = centre[-1] + (test[:, :-1] - centre[:-1]) @ slope
            errors.append(rmse(np.clip(guess, 0.0, 1.0), test[:, -1]))
        return Trial(errors, released.spent)

    return run


def _random_features(setting: Setting) -> Runner:
    """Second moment of (cos, sin) of random projections and the target, a vector of norm sqrt(5)/2 at most."""
    pairs = setting["pairs"]
    half = np.concatenate([np.full(2 * pairs, 1 / math.sqrt(pairs)), [0.5]])
    bounds = Bounds(-half, half, radius=math.sqrt(1.25))
    release = design_mechanism(make_design(SecondMoment(bounds, TRAIN), budget()))
    frequencies = np.random.default_rng(11).standard_normal((5, pairs)) * math.sqrt(2 * setting["gamma"])

    def lift(x: Floats) -> Floats:
        angles = x @ frequencies
        return np.hstack([np.cos(angles), np.sin(angles)]) / math.sqrt(pairs)

    def run(trial: int, stream: Stream) -> Trial:
        train, test = split(trial)
        lifted = np.column_stack([lift(train[:, :-1]), train[:, -1] - 0.5])
        released = release(lifted, stream)
        moment, points = nearest_psd(released.matrix), lift(test[:, :-1])
        guesses = [0.5 + points @ ridge(moment, penalty) for penalty in _PENALTIES]
        spent: Spent = released.spent
        return Trial([rmse(np.clip(guess, 0.0, 1.0), test[:, -1]) for guess in guesses], spent)

    return run


def ridge(moment: Floats, penalty: float) -> Floats:
    """Coefficients of the last variable on the others, from their second moment.

    Examples
    --------
    >>> ridge(np.array([[1.0, 0.5], [0.5, 1.0]]), 0.0).tolist()
    [0.5]
    """
    inner = moment[:-1, :-1]
    return np.asarray(np.linalg.solve(inner + penalty * np.eye(len(inner)), moment[:-1, -1]))
