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

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from matrixdp.adaptive import private_moment, solve_regression
from matrixdp.adaptive.moment import PrivateMoment
from matrixdp.design import make_design, optimal
from matrixdp.domain.bounds import Bounds
from matrixdp.gdp import gdp_epsilon
from matrixdp.noise import Stream
from matrixdp.paper import component, covariance, regression
from matrixdp.paper.experiment import Experiment, Row, Setting
from matrixdp.paper.mechanisms import TAUS, Guarantee, Released, Simulation, Spent, design_simulation, mvg
from matrixdp.privacy import Privacy
from matrixdp.queries import SecondMoment
from matrixdp.types import Floats

IMPORTANCES = (1, 10, 100, 1000)
FITS = {
    "standard": "Adaptive fit, standard directions",
    "learned": "Adaptive fit, learned directions",
}
SHAPES = {
    "i.i.d.": "I.i.d. noise",
    "binary": "The paper's two groups of features",
    "optimal": "Optimal allocation for the weights",
}


def gain_key(task: str, row: str) -> str:
    """Key of a row of a task, which is 'exp1' to 'exp3' or a `weighted_task`."""
    return f"{task}/{row}"


def weighted_task(importance: int) -> str:
    """Name of the task in which three features count `importance` times as much as the others."""
    return f"weights {importance}"


def gain_rows() -> list[Row]:
    """Adaptive rows of the three tasks, and three shapes of noise for each importance."""
    return [*_task_rows(), *(row for importance in IMPORTANCES for row in _weighted_rows(importance))]


def _second_moment(moment: PrivateMoment) -> Floats:
    """About the origin, of shape (m, m)."""
    return np.asarray(moment.covariance + np.multiply.outer(moment.mean, moment.mean))


def _coefficients(moment: PrivateMoment) -> Floats:
    """Intercept and coefficients of the last feature on the others, of shape (1, m)."""
    slopes, intercepts = solve_regression(moment, 1)
    return np.column_stack([intercepts, slopes])


def _regression_error(found: Floats, trial: int) -> list[float]:
    """RMSE on the held-out records; predictions are clipped to the target's bounds."""
    test = regression.split(trial)[1]
    guess = np.clip(found[0, 0] + test[:, :-1] @ found[0, 1:], 0.0, 1.0)
    return [regression.rmse(guess, test[:, -1])]


TASKS: dict[str, tuple[Experiment, Bounds, str, Callable[[PrivateMoment], Floats]]] = {
    "exp1": (
        replace(regression.EXPERIMENT, score=_regression_error, variants=("",)),
        regression.BOUNDS,
        "regression",
        _coefficients,
    ),
    "exp2": (component.MOMENT, component.QUERY.bounds, "components", lambda moment: moment.second_moment),
    "exp3": (covariance.MOMENT, covariance.BOUNDS, "covariance", _second_moment),
}


def _task_rows() -> list[Row]:
    return [
        experiment.row(
            gain_key(task, directions),
            label,
            "adaptive",
            _always(partial(_adaptive, experiment.budget(), bounds, aim, read, directions)),
        )
        for task, (experiment, bounds, aim, read) in TASKS.items()
        for directions, label in FITS.items()
    ]


def _always(simulation: Simulation) -> Callable[[Setting], Simulation]:
    """A row without settings."""
    return lambda _setting: simulation


def _adaptive(
    privacy: Privacy,
    bounds: Bounds,
    aim: str,
    read: Callable[[PrivateMoment], Floats],
    directions: str,
    data: Floats,
    stream: Stream,
) -> Released:
    """What is read off one adaptive fit, and what the fit cost."""
    moment = private_moment(data, bounds, privacy, aim=aim, directions=directions, stream=stream, simulation=True)
    spent = gdp_epsilon(mu=moment.mu, delta=privacy.delta)
    return Released(read(moment), Spent(Guarantee(privacy.epsilon, privacy.delta), min(spent, privacy.epsilon)))


def weights(importance: float) -> Floats:
    """Weight of each feature of Exp. III, of shape (21,): `importance` for the paper's three, 1 for the others."""
    return np.array([importance if name in covariance.IMPORTANT else 1.0 for name in covariance.FEATURES])


def _weighted_rows(importance: int) -> list[Row]:
    factors = weights(importance)
    query = SecondMoment(covariance.BOUNDS, covariance.RECORDS)
    squares = np.multiply.outer(factors, factors) / factors.sum() ** 2

    def score(released: Floats, _trial: int) -> list[float]:
        centred = covariance.truth().records - 0.5
        error = released - centred.T @ centred / covariance.RECORDS
        return [float(np.sqrt((squares * error**2).sum()))]

    experiment = replace(covariance.MOMENT, query=query, score=score)
    budget = experiment.budget()
    best = make_design(query, budget, allocation=optimal(factors), structured=False)
    task = weighted_task(importance)
    return [
        experiment.row(
            gain_key(task, "i.i.d."), SHAPES["i.i.d."], "weights", _always(mvg(query, budget, important=None))
        ),
        experiment.row(
            gain_key(task, "binary"),
            SHAPES["binary"],
            "weights",
            lambda setting: mvg(query, budget, important=covariance.IMPORTANT, tau=setting["tau"]),
            tuple({"tau": tau} for tau in TAUS),
        ),
        experiment.row(gain_key(task, "optimal"), SHAPES["optimal"], "weights", _always(design_simulation(best))),
    ]


EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
TAU = 0.95
SHOWN = ("theorem2", "exact")
EXPERIMENTS = {"exp1": regression.EXPERIMENT, "exp2": component.MOMENT, "exp3": covariance.NOISY_RECORDS}
_REST = tuple(name for name in covariance.FEATURES if name not in covariance.IMPORTANT)
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
    "exp3": {"(a) FHR, ASV, ALV": covariance.IMPORTANT, "(b) the rest": _REST, "i.i.d.": None},
}


def direction_key(panel: str, calibration: str, name: str, epsilon: float) -> str:
    """Key of the row for one point of a line."""
    return f"{panel}/{calibration}/{name}/{epsilon:g}"


def direction_rows() -> list[Row]:
    """One row for each panel, calibration, set of features and epsilon."""
    return [
        _direction_row(panel, calibration, name, important, epsilon)
        for panel, sets in PANELS.items()
        for calibration in SHOWN
        for name, important in sets.items()
        for epsilon in EPSILONS
    ]


def _direction_row(panel: str, calibration: str, name: str, important: Sequence[str] | None, epsilon: float) -> Row:
    experiment = EXPERIMENTS[panel]
    privacy = experiment.budget(epsilon)
    return experiment.row(
        direction_key(panel, calibration, name, epsilon),
        f"{name}, {calibration}, epsilon {epsilon:g}",
        "paper" if calibration == "theorem2" else "calibration",
        lambda _setting: mvg(experiment.query, privacy, important=important, tau=TAU, calibration=calibration),
        column=Guarantee(privacy.epsilon, privacy.delta),
    )
