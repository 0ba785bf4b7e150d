"""Exp. I: kernel ridge regression on the Liver data from noisy records, RMSE on held-out records.

Features and target are scaled to [0, 1] by the data's own range, as in the paper. Each trial has its own split into 248
records for training and 97 for the test, the same for every row, so that rows can be compared in pairs.

Beyond the paper, the same task by better queries, all exactly calibrated: the identity query protects each record by
itself, which is far more than a regression needs. Moments of all records suffice for ridge regression; random Fourier
features (Rahimi & Recht 2007) approximate the kernel.

The section "Directional Noise as a Generalized Subspace Projection" repeats it with the two important features alone.
Where directional noise perturbs the other features heavily, a projection drops them: one feature (ALT) and the target,
with all of the budget. The rows of MVG are those of Exp. I.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial

import numpy as np
from scipy.linalg import solve
from scipy.spatial.distance import cdist

from matrixdp.answers.moments import covariance, means
from matrixdp.answers.psd import nearest_psd
from matrixdp.datasets import load_table, scale_to_unit
from matrixdp.design import make_design
from matrixdp.domain.bounds import Bounds
from matrixdp.noise import Stream
from matrixdp.paper.experiment import Experiment, Row, design_noise, mvg, mvg_pca, registered_rows
from matrixdp.queries import Identity, Moments, SecondMoment
from matrixdp.types import Floats

COLUMNS = ("mcv", "alkphos", "sgpt", "sgot", "gammagt", "drinks")
IMPORTANT = ("sgpt", "drinks")
TRAIN = 248
BOUNDS = Bounds([0.0] * 6, [1.0] * 6, names=COLUMNS)
QUERY = Identity(BOUNDS, records=TRAIN)
_GAMMAS = (None, 1.0, 0.01)  # of the Gaussian kernel; None for the linear one
_ALPHAS = (0.1, 1.0, 10.0, 100.0, 1000.0)
_CENTRES = (0.0, 0.5)  # what predictions shrink to
VARIANTS = tuple(
    f"{'linear' if gamma is None else f'rbf gamma {gamma:g}'}, alpha {alpha:g}, about {centre:g}"
    for gamma in _GAMMAS
    for alpha in _ALPHAS
    for centre in _CENTRES
)


@cache
def records() -> Floats:
    """All 345 records, of shape (345, 6), target last."""
    return scale_to_unit(load_table("liver", simulate=True).take(*COLUMNS))


def split(trial: int, names: tuple[str, ...] = COLUMNS) -> tuple[Floats, Floats]:
    """Training and test records of a trial, of shapes (248, m) and (97, m)."""
    data = records()[:, [COLUMNS.index(name) for name in names]]
    order = np.random.default_rng([5, trial]).permutation(len(data))
    return data[order[:TRAIN]], data[order[TRAIN:]]


def score(train: Floats, test: Floats) -> list[float]:
    """Error of kernel ridge regression on the test records, for everything in `VARIANTS`.

    Kernel ridge regression has no intercept: its predictions shrink to the origin. Features and target are measured
    from 0, as the paper has them, and from 1/2, the midpoint of the domain.
    """
    centres = np.array(_CENTRES)
    x, points, targets = train[:, :-1], test[:, :-1], train[:, -1:] - centres

    def guess(alpha: float, i: int, centre: float) -> Floats:
        """Ridge regression about a centre, which is stable under noise of any size."""
        moved, penalty = x - centre, alpha * np.eye(x.shape[1])
        return np.asarray((points - centre) @ np.linalg.solve(moved.T @ moved + penalty, moved.T @ targets[:, i]))

    errors = []
    for gamma in _GAMMAS:
        if gamma is not None:  # the Gaussian kernel depends on differences of records only
            inner, outer = (np.exp(-gamma * cdist(one, x, "sqeuclidean")) for one in (x, points))
        for alpha in _ALPHAS:
            if gamma is None:
                guesses = np.column_stack([guess(alpha, i, c) for i, c in enumerate(_CENTRES)])
            else:
                guesses = outer @ solve(inner + alpha * np.eye(len(x)), targets, assume_a="pos")
            errors += [rmse(guesses[:, i] + c, test[:, -1]) for i, c in enumerate(centres)]
    return errors


def rmse(guess: Floats | float, truth: Floats) -> float:
    """Root mean square error."""
    return float(np.sqrt(np.square(guess - truth).mean()))


EXPERIMENT = Experiment(
    QUERY,
    records=lambda trial: split(trial)[0],
    score=lambda released, trial: score(released, split(trial)[1]),
    important=IMPORTANT,
    variants=VARIANTS,
    draws=(TRAIN // 4, TRAIN // 2, TRAIN),
)


def rows() -> list[Row]:
    """References, the paper's rows, MVG in the other calibrations, and better queries."""
    return [
        EXPERIMENT.exact_row(),
        EXPERIMENT.reference("random guess", "Random guess (uniform)", _guess_uniformly),
        EXPERIMENT.reference(
            "constant 0",
            "The constant 0, what kernel ridge makes of pure noise",
            lambda trial, _stream: rmse(0.0, split(trial)[1][:, -1]),
        ),
        *EXPERIMENT.mvg_rows({"mvg-1": partial(mvg, important=IMPORTANT), "mvg-2": mvg_pca}),
        *EXPERIMENT.common_rows("gaussian", "jl", "laplace", "exponential"),
        *EXPERIMENT.common_rows("identity/optimal", "gaussian/exact", "jl/exact"),
        _BY_PENALTY.row(
            "moments", "Ridge regression on released moments", design_noise, {"radius": _RADII}, vary=_moments
        ),
        _BY_PENALTY.row(
            "random features",
            "Kernel ridge by random features, second moment",
            design_noise,
            {"pairs": (4, 8, 16), "gamma": (0.3, 1.0)},
            vary=_random_features,
        ),
        *registered_rows(records=EXPERIMENT),
    ]


def _guess_uniformly(trial: int, stream: Stream) -> float:
    target = split(trial)[1][:, -1]
    return rmse(stream.words(target.size).astype(np.float64) * 2.0**-64, target)


_PENALTIES = (0.003, 0.01, 0.03, 0.1, 0.3)
_BY_PENALTY = replace(EXPERIMENT, variants=tuple(f"penalty {penalty:g}" for penalty in _PENALTIES))
_RADII = (None, 1.0, 0.8, 0.6)  # the corner of the box is 1.22 from its midpoint


def _score_guesses(guess: Callable[[float], Floats], target: Floats) -> list[float]:
    """Error of the guesses at each penalty, clipped to the target's bounds."""
    return [rmse(np.clip(guess(penalty), 0.0, 1.0), target) for penalty in _PENALTIES]


def _moments(radius: float | None) -> Experiment:
    """Moments of records in a ball; ridge regression on the covariance."""
    query = Moments(Bounds(BOUNDS.lower, BOUNDS.upper, radius=radius), TRAIN)
    design = make_design(query, EXPERIMENT.budget())

    def score(released: Floats, trial: int) -> list[float]:
        test = split(trial)[1]
        spread = nearest_psd(covariance(released, design).value)
        centre = np.clip(means(released, design).value[:, 0], 0.0, 1.0)
        points = test[:, :-1] - centre[:-1]
        return _score_guesses(lambda penalty: centre[-1] + points @ ridge(spread, penalty), test[:, -1])

    return replace(_BY_PENALTY, query=query, score=score)


def _random_features(pairs: int, gamma: float) -> Experiment:
    """Second moment of (cos, sin) of random projections and the target, a vector of norm sqrt(5)/2 at most."""
    half = np.concatenate([np.full(2 * pairs, 1 / math.sqrt(pairs)), [0.5]])
    query = SecondMoment(Bounds(-half, half, radius=math.sqrt(1.25)), TRAIN)
    frequencies = np.random.default_rng(11).standard_normal((5, pairs)) * math.sqrt(2 * gamma)

    def lift(x: Floats) -> Floats:
        angles = x @ frequencies
        return np.hstack([np.cos(angles), np.sin(angles)]) / math.sqrt(pairs)

    def records(trial: int) -> Floats:
        train = split(trial)[0]
        return np.column_stack([lift(train[:, :-1]), train[:, -1] - 0.5])

    def score(released: Floats, trial: int) -> list[float]:
        test = split(trial)[1]
        moment, points = nearest_psd(released), lift(test[:, :-1])
        return _score_guesses(lambda penalty: 0.5 + points @ ridge(moment, penalty), test[:, -1])

    return replace(_BY_PENALTY, query=query, records=records, score=score)


def ridge(moment: Floats, penalty: float) -> Floats:
    """Coefficients of the last variable on the others, from their second moment."""
    inner = moment[:-1, :-1]
    return np.asarray(np.linalg.solve(inner + penalty * np.eye(len(inner)), moment[:-1, -1]))


TWO_FEATURES = replace(
    EXPERIMENT,
    query=Identity(Bounds([0.0, 0.0], [1.0, 1.0], names=IMPORTANT), records=TRAIN),
    records=lambda trial: split(trial, IMPORTANT)[0],
    score=lambda released, trial: score(released, split(trial, IMPORTANT)[1]),
    suffix=", two features",
)


def rows_projected() -> list[Row]:
    """Gaussian and JL as published, and with exact calibration."""
    return [TWO_FEATURES.exact_row(), *TWO_FEATURES.common_rows("gaussian", "jl", "gaussian/exact", "jl/exact")]
