"""Exp. I: kernel ridge regression on the Liver data from noisy records, RMSE on held-out records.

Features and target are scaled to [0, 1] by the data's own range, as in the paper. Each trial has its own split into 248
records for training and 97 for the test, the same for every row, so that rows can be compared in pairs.
"""

from __future__ import annotations

from functools import cache, partial

import numpy as np

from matrixdp.datasets import load_table
from matrixdp.datasets.table import scale_to_unit
from matrixdp.domain.bounds import Bounds
from matrixdp.noise import Stream
from matrixdp.paper.experiment import Experiment
from matrixdp.paper.mechanisms import CALIBRATIONS, mvg, mvg_pca
from matrixdp.paper.rows import Row
from matrixdp.queries import Identity
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


def split(trial: int) -> tuple[Floats, Floats]:
    """Training and test records of a trial, of shapes (248, 6) and (97, 6)."""
    data = records()
    order = np.random.default_rng([5, trial]).permutation(len(data))
    return data[order[:TRAIN]], data[order[TRAIN:]]


def score(train: Floats, test: Floats) -> list[float]:
    """Error of kernel ridge regression on the test records, for everything in `VARIANTS`.

    Kernel ridge regression has no intercept: its predictions shrink to the origin. Features and target are measured
    from 0, as the paper has them, and from 1/2, the midpoint of the domain.
    """
    centres = np.array(_CENTRES)
    x, points, targets = train[:, :-1], test[:, :-1], train[:, -1:] - centres
    errors = []
    for gamma in _GAMMAS:
        for alpha in _ALPHAS:
            if gamma is None:
                found = [_linear(x - c, targets[:, i], points - c, alpha) for i, c in enumerate(centres)]
                guesses = np.column_stack(found)
            else:
                guesses = _gaussian(x, targets, points, alpha, gamma)
            errors += [rmse(guesses[:, i] + c, test[:, -1]) for i, c in enumerate(centres)]
    return errors


def _linear(x: Floats, targets: Floats, points: Floats, alpha: float) -> Floats:
    """Kernel ridge regression with the linear kernel, in its primal form, which is stable under noise of any size."""
    from sklearn.linear_model import Ridge

    return np.asarray(Ridge(alpha=alpha, fit_intercept=False, solver="cholesky").fit(x, targets).predict(points))


def _gaussian(x: Floats, targets: Floats, points: Floats, alpha: float, gamma: float) -> Floats:
    """Kernel ridge regression with the Gaussian kernel, which depends on differences of records only."""
    from sklearn.kernel_ridge import KernelRidge

    return np.asarray(KernelRidge(kernel="rbf", gamma=gamma, alpha=alpha).fit(x, targets).predict(points))


def rmse(guess: Floats | float, truth: Floats) -> float:
    """Root mean square error."""
    return float(np.sqrt(np.square(guess - truth).mean()))


EXPERIMENT = Experiment(
    QUERY,
    TRAIN,
    records=lambda trial: split(trial)[0],
    score=lambda released, trial: score(released, split(trial)[1]),
    variants=VARIANTS,
    draws=(TRAIN // 4, TRAIN // 2, TRAIN),
)


def rows() -> list[Row]:
    """References, the paper's rows, and MVG in the other calibrations."""
    mvg_1 = partial(mvg, QUERY, EXPERIMENT.budget(), important=IMPORTANT)
    mvg_2 = partial(mvg_pca, QUERY, EXPERIMENT.budget())
    return [
        EXPERIMENT.reference("non-private", "Non-private", lambda trial, _stream: score(*split(trial)), VARIANTS),
        EXPERIMENT.reference("random guess", "Random guess (uniform)", _guess),
        EXPERIMENT.reference(
            "constant 0",
            "The constant 0, what kernel ridge makes of pure noise",
            lambda trial, _stream: [rmse(0.0, split(trial)[1][:, -1])],
        ),
        *[
            EXPERIMENT.mvg_row(kind, calibration, build)
            for calibration in CALIBRATIONS
            for kind, build in (("mvg-1", mvg_1), ("mvg-2", mvg_2))
        ],
        *EXPERIMENT.paper_rows(EXPERIMENT),
    ]


def _guess(trial: int, stream: Stream) -> list[float]:
    truth = split(trial)[1][:, -1]
    return [rmse(stream.words(truth.size).astype(np.float64) * 2.0**-64, truth)]
