"""Exp. I: kernel ridge regression on the Liver data, by the identity query; root mean square error on held-out records.

Features and target are scaled to [0, 1] by the data's own range, as in the paper. Each trial has its own split into 248
records for training and 97 for the test, the same for every row, so that rows can be compared in pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from matrixdp.baselines import classical_gaussian, exponential, johnson_lindenstrauss, laplace
from matrixdp.datasets import load_table
from matrixdp.datasets.table import scale_to_unit
from matrixdp.domain.bounds import Bounds
from matrixdp.noise import Stream
from matrixdp.paper.guarantee import Guarantee
from matrixdp.paper.mechanisms import CALIBRATIONS, TAUS, Mechanism, mvg, mvg_pca, rival
from matrixdp.paper.rows import Row, Runner, Setting, Trial
from matrixdp.privacy import Privacy
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
READINGS = tuple(
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
    """Error of kernel ridge regression on the test records, for everything in `READINGS`.

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
    """Kernel ridge regression with the linear kernel, in its primal form, which bears noise of any size."""
    from sklearn.linear_model import Ridge

    return np.asarray(Ridge(alpha=alpha, fit_intercept=False, solver="cholesky").fit(x, targets).predict(points))


def _gaussian(x: Floats, targets: Floats, points: Floats, alpha: float, gamma: float) -> Floats:
    """Kernel ridge regression with the Gaussian kernel, which looks at differences of records only."""
    from sklearn.kernel_ridge import KernelRidge

    return np.asarray(KernelRidge(kernel="rbf", gamma=gamma, alpha=alpha).fit(x, targets).predict(points))


def rmse(guess: Floats | float, truth: Floats) -> float:
    """Root mean square error."""
    return float(np.sqrt(np.square(guess - truth).mean()))


def on_records(mechanism: Mechanism) -> Runner:
    """Trials of a mechanism that releases the training records, or pseudo-records."""

    def run(trial: int, stream: Stream) -> Trial:
        train, test = split(trial)
        released = mechanism(train, stream)
        return Trial(score(released.matrix, test), released.spent)

    return run


def budget(epsilon: float = 1.0) -> Privacy:
    """The paper's: delta is one over the number of records."""
    return Privacy(epsilon, 1 / TRAIN)


def rows() -> list[Row]:
    """References, the paper's rows, and MVG in the other calibrations."""
    privacy = budget()
    column, pure = Guarantee(privacy.epsilon, privacy.delta), Guarantee(privacy.epsilon, 0.0)
    listed = [
        Row("non-private", "Non-private", "reference", None, _plain, readings=READINGS),
        Row("random guess", "Random guess (uniform)", "reference", None, _guess),
        Row("constant 0", "The constant 0, what kernel ridge makes of pure noise", "reference", None, _zero),
    ]
    for calibration, name in CALIBRATIONS.items():
        listed += [_mvg_row(kind, calibration, name, column) for kind in ("mvg-1", "mvg-2")]
    rivals = [
        ("gaussian", "Gaussian (classical)", rival(classical_gaussian, QUERY, privacy), column),
        ("laplace", "Laplace", rival(laplace, QUERY, privacy), pure),
        ("exponential", "Exponential (textbook)", rival(exponential, QUERY, privacy, halved=True), pure),
    ]
    listed += [
        Row(key, label, "paper", guarantee, _fixed(mechanism), readings=READINGS)
        for key, label, mechanism, guarantee in rivals
    ]
    listed.insert(-2, _jl_row("jl", "JL transform (published threshold)", "paper", "published", column))
    return listed


def _mvg_row(kind: str, calibration: str, name: str, column: Guarantee) -> Row:
    def build(setting: Setting) -> Runner:
        if kind == "mvg-1":
            return on_records(mvg(QUERY, budget(), important=IMPORTANT, tau=setting["tau"], calibration=calibration))
        return on_records(mvg_pca(QUERY, budget(), tau=setting["tau"], calibration=calibration))

    printed = calibration == "theorem2"
    return Row(
        kind if printed else f"{kind}/{calibration}",
        f"{kind.upper()}, {name}",
        "paper" if printed else "calibration",
        column,
        build,
        tuple({"tau": tau} for tau in TAUS),
        READINGS,
    )


def _jl_row(key: str, label: str, group: str, calibration: str, column: Guarantee) -> Row:
    def build(setting: Setting) -> Runner:
        options = {"draws": setting["draws"], "calibration": calibration}
        return on_records(rival(johnson_lindenstrauss, QUERY, budget(), **options))

    settings = tuple({"draws": draws} for draws in (TRAIN // 4, TRAIN // 2, TRAIN))
    return Row(key, label, group, column, build, settings, READINGS)


def _fixed(mechanism: Mechanism) -> Callable[[Setting], Runner]:
    return lambda _setting: on_records(mechanism)


def _plain(_setting: Setting) -> Runner:
    return lambda trial, _stream: Trial(score(*split(trial)), None)


def _guess(_setting: Setting) -> Runner:
    def run(trial: int, stream: Stream) -> Trial:
        truth = split(trial)[1][:, -1]
        guess = stream.words(truth.size).astype(np.float64) * 2.0**-64
        return Trial([rmse(guess, truth)], None)

    return run


def _zero(_setting: Setting) -> Runner:
    return lambda trial, _stream: Trial([rmse(0.0, split(trial)[1][:, -1])], None)


def jl_row(key: str, label: str, group: str, calibration: str) -> Row:
    """A row of the Johnson-Lindenstrauss transform with another threshold."""
    return _jl_row(key, label, group, calibration, Guarantee(1.0, 1 / TRAIN))
