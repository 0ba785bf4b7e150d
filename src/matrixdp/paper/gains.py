"""Where directional noise pays: adaptive fits on the paper's three tasks, and a task with known unequal weights.

An adaptive fit spends a part of the budget on learning where the data lie, and measures the moments there with the rest
(`docs/estimators.md`). It has no settings to choose, while the paper's methods are shown at their best setting.

The fourth task has weights that are public: an analyst says in advance how much more the paper's three important
features of Exp. III count than the other 18. The error of a second moment M is ``sqrt(sum_ij w_i w_j E_ij^2 / sum_ij
w_i w_j)`` with ``E = M - S``, S the second moment about the midpoint.

The figure "Effect of noise directions" has each experiment with several sets of important features, over epsilon. It is
not in the paper's source, so its range of epsilon is not known; here it is 0.1 to 30. The share of the important
features is 95%; i.i.d. noise is drawn in every panel.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from matrixdp.adaptive import private_moment, solve_regression
from matrixdp.adaptive.moment import PrivateMoment
from matrixdp.design import optimal
from matrixdp.gdp import gdp_epsilon
from matrixdp.noise import Stream
from matrixdp.paper import components, regression
from matrixdp.paper.experiment import TAUS, Experiment, Guarantee, Row, Simulation, Trial, design_noise, mvg
from matrixdp.privacy import Privacy
from matrixdp.queries import Identity, SecondMoment
from matrixdp.types import Floats

IMPORTANCES = (1, 10, 100, 1000)
FITS = {name: f"Adaptive fit, {name} directions" for name in ("standard", "learned")}
SHAPES = ("i.i.d.", "binary", "optimal")


def gain_key(task: str | int, row: str) -> str:
    """Key of a row of a task: 'exp1' to 'exp3', or how many times as much three features count as the others."""
    return f"{task}/{row}" if isinstance(task, str) else f"weights {task}/{row}"


def gain_rows() -> list[Row]:
    """Adaptive rows of the three tasks, and three shapes of noise for each importance."""
    fits = [
        experiment.row(gain_key(task, name), label, fit_adaptively, group="adaptive", directions=name, **how)
        for task, (experiment, how) in TASKS.items()
        for name, label in FITS.items()
    ]
    return [*fits, *(row for importance in IMPORTANCES for row in _weighted_rows(importance))]


def _coefficients(moment: PrivateMoment) -> Floats:
    """Intercept and coefficients of the last feature on the others, of shape (1, m)."""
    slopes, intercepts = solve_regression(moment, 1)
    return np.column_stack([intercepts, slopes])


def _regression_error(found: Floats, trial: int) -> list[float]:
    """RMSE on the held-out records; predictions are clipped to the target's bounds."""
    test = regression.split(trial)[1]
    guess = np.clip(found[0, 0] + test[:, :-1] @ found[0, 1:], 0.0, 1.0)
    return [regression.rmse(guess, test[:, -1])]


# Each task of the paper: its experiment, the aim of a fit, and what is read off it.
TASKS: dict[str, tuple[Experiment, dict[str, Any]]] = {
    "exp1": (
        replace(regression.EXPERIMENT, score=_regression_error, variants=("",)),
        {"aim": "regression", "read": _coefficients},
    ),
    "exp2": (components.FIRST, {"aim": "components", "read": lambda moment: moment.second_moment}),
    "exp3": (
        components.ALL_BY_MOMENT,  # about the origin
        {"aim": "covariance", "read": lambda moment: moment.covariance + np.multiply.outer(moment.mean, moment.mean)},
    ),
}


def fit_adaptively(
    query: Identity | SecondMoment, privacy: Privacy, *, read: Callable[[PrivateMoment], Floats], **options: Any
) -> Simulation:
    """What is read off adaptive fits within the bounds of a query, and what each fit cost."""

    def release(data: Floats, stream: Stream) -> Trial:
        moment = private_moment(data, query.bounds, privacy, stream=stream, simulation=True, **options)
        spent = min(gdp_epsilon(mu=moment.mu, delta=privacy.delta), privacy.epsilon)
        return Trial(read(moment), Guarantee(privacy.epsilon, privacy.delta), spent)

    return release


def _weighted_rows(importance: int) -> list[Row]:
    """Three shapes of noise, where the paper's three features of Exp. III count `importance` times."""
    important, records = components.ALL.important, components.RECORDS
    factors = np.array([importance if name in important else 1.0 for name in components.FEATURES])
    squares = np.multiply.outer(factors, factors) / factors.sum() ** 2

    def score(released: Floats, _trial: int) -> list[float]:
        centred = components.load_ctg().records - 0.5
        error = released - centred.T @ centred / records
        return [float(np.sqrt((squares * error**2).sum()))]

    experiment = replace(components.ALL, query=SecondMoment(components.BOUNDS, records), score=score)
    row = partial(experiment.row, group="weights")
    iid, two, best = (gain_key(importance, shape) for shape in SHAPES)
    return [
        row(iid, "I.i.d. noise", mvg, important=None),
        row(two, "The paper's two groups of features", mvg, {"tau": TAUS}, important=important),
        row(best, "Optimal allocation for the weights", design_noise, allocation=optimal(factors), structured=False),
    ]


EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
EXPERIMENTS = {"exp1": regression.EXPERIMENT, "exp2": components.FIRST, "exp3": components.ALL}
PANELS: dict[str, dict[str, tuple[str, ...] | None]] = {
    "exp1": {
        "(a) ALT, Y": ("sgpt", "drinks"),
        "(b) ALT": ("sgpt",),
        "(c) Y": ("drinks",),
        "(d) ALT, AST, Y": ("sgpt", "sgot", "drinks"),
        "i.i.d.": None,
    },
    "exp2": {
        "(a) ANC0, ANC3": ("rss_anchor1", "rss_anchor4"),
        "(b) ANC0": ("rss_anchor1",),
        "(c) ANC3": ("rss_anchor4",),
        "(d) ANC1, ANC2": ("rss_anchor2", "rss_anchor3"),
        "i.i.d.": None,
    },
    "exp3": {
        "(a) FHR, ASV, ALV": components.ALL.important,
        "(b) the rest": tuple(name for name in components.FEATURES if name not in components.ALL.important),
        "i.i.d.": None,
    },
}


def direction_key(panel: str, calibration: str, name: str, epsilon: float) -> str:
    """Key of the row for one point of a line."""
    return f"{panel}/{calibration}/{name}/{epsilon:g}"


def direction_rows() -> list[Row]:
    """One row for each panel, calibration, set of features and epsilon."""
    return [
        EXPERIMENTS[panel].row(
            direction_key(panel, calibration, name, epsilon),
            f"{name}, {calibration}, epsilon {epsilon:g}",
            mvg,
            group="paper" if calibration == "theorem2" else "calibration",
            epsilon=epsilon,
            important=important,
            calibration=calibration,
        )
        for panel, sets in PANELS.items()
        for calibration in ("theorem2", "exact")
        for name, important in sets.items()
        for epsilon in EPSILONS
    ]
