"""The figure "Effect of noise directions": each experiment with other sets of important features, over epsilon.

The figure itself is not in the paper's source, so its range of epsilon is not known; here it is 0.1 to 30. The share of
the important features is 95%; i.i.d. noise is drawn in every panel.
"""

from __future__ import annotations

from collections.abc import Sequence

from matrixdp.paper import component, covariance, regression
from matrixdp.paper.guarantee import Guarantee
from matrixdp.paper.mechanisms import mvg
from matrixdp.paper.rows import Row

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


def key(panel: str, calibration: str, name: str, epsilon: float) -> str:
    """Of the row of one point of a line."""
    return f"{panel}/{calibration}/{name}/{epsilon:g}"


def rows() -> list[Row]:
    """One row a panel, calibration, set of features and epsilon."""
    return [
        _row(panel, calibration, name, important, epsilon)
        for panel, sets in PANELS.items()
        for calibration in SHOWN
        for name, important in sets.items()
        for epsilon in EPSILONS
    ]


def _row(panel: str, calibration: str, name: str, important: Sequence[str] | None, epsilon: float) -> Row:
    experiment = EXPERIMENTS[panel]
    privacy = experiment.budget(epsilon)
    return experiment.row(
        key(panel, calibration, name, epsilon),
        f"{name}, {calibration}, epsilon {epsilon:g}",
        "paper" if calibration == "theorem2" else "calibration",
        lambda _setting: mvg(experiment.query, privacy, important=important, tau=TAU, calibration=calibration),
        column=Guarantee(privacy.epsilon, privacy.delta),
    )
