"""The section "where directional noise pays": its table, its figures, and what they show in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matrixdp.paper.best_setting import Best
from matrixdp.paper.cells import origins
from matrixdp.paper.claim_checks import LEVEL, compare
from matrixdp.paper.gains import FITS, IMPORTANCES, SHAPES, key, weighted_task
from matrixdp.paper.html_page import Section
from matrixdp.paper.plotting import COLOURS, Picture, draw_picture, label_rows, place_legend
from matrixdp.paper.report_table import ReportTable, number

TITLE = "Where directional noise pays"
TITLES = {
    "exp1": ("Exp. I: regression", "RMSE"),
    "exp2": ("Exp. II: first component", "error in captured variance"),
    "exp3": ("Exp. III: covariance", "residual sum of squares"),
}
_RIVALS = {"gaussian": "Gaussian", "jl": "JL transform", "laplace": "Laplace", "exponential": "Exponential"}
_EXACT = {"gaussian/exact": "Gaussian, exact", "jl/exact": "JL transform, exact"}
_MVG = {"exp1": ("mvg-1", "mvg-1/exact"), "exp2": ("mvg", "mvg/exact"), "exp3": ("mvg", "mvg/exact")}
_FIXED = {"exp1": "moments", "exp2": "radius", "exp3": "moments"}
_GROUPS = {task: f"{title}, {unit}" for task, (title, unit) in TITLES.items()} | {
    weighted_task(importance): f"Second moment of Exp. III, three features count {importance} times: weighted error"
    for importance in IMPORTANCES
}
_COLUMNS = {
    "method": "Method",
    "mean": "Measured",
    "half": "± (95%)",
    "relative": "of MVG exact, or of i.i.d. noise",
    "setting": "Best setting",
}
_NOTES = (
    "Adaptive fits spend a part of the budget on learning where the data lie, and measure the moments there with the "
    "rest. They have no settings; the other rows have the best of all that were tried, judged by the test error, which "
    "favours them. All rows have the budget of the experiment: epsilon = 1, delta = 1/N.",
    "“Moments, fixed noise” is the row of the experiment's table that releases moments of records in a ball, with "
    "noise fixed in advance and exactly calibrated; the radius of the ball is the best of those tried.",
    "The weighted error of a second moment is the root of the mean of its squared errors, weighted by the product of "
    "the weights of the two features. The weights are public: they are chosen before any data are read.",
)
_ZERO = 1e-12  # rounding, where an error without privacy is zero
Rows = Mapping[str, Mapping[str, Best]]


def section(best: Rows, folder: Path) -> Section:
    """The whole section; figures are written to `folder`."""
    parts: list[ReportTable | Picture] = [draw_tasks(best, folder), draw_weights(best["gains"], folder), table(best)]
    return Section("gains", TITLE, parts, sentences=sentences(best))


def task_rows(best: Rows, task: str) -> dict[str, tuple[str, Best]]:
    """Label and measurements of each method of a task, in the order of the table."""
    printed, exact = _MVG[task]
    listed = {
        "non-private": ("Without privacy", best[task]["non-private"]),
        "random guess": ("Random guess", best[task]["random guess"]),
        "mvg": ("MVG, Theorem 2 as printed", best[task][printed]),
        **{name: (f"{label}, as published", best[task][name]) for name, label in _RIVALS.items()},
        "mvg/exact": ("MVG, exact", best[task][exact]),
        **{name: (label, best[task][name]) for name, label in _EXACT.items()},
        "fixed": ("Moments, fixed noise", best[task][_FIXED[task]]),
    }
    return listed | {name: (label, best["gains"][key(task, name)]) for name, label in FITS.items()}


def table(best: Rows) -> ReportTable:
    """All methods of the four tasks."""
    rows = []
    for task in TITLES:
        listed = task_rows(best, task)
        rows += [_row(task, name, *one, listed["mvg/exact"][1]) for name, one in listed.items()]
    for importance in IMPORTANCES:
        task = weighted_task(importance)
        found = {shape: best["gains"][key(task, shape)] for shape in SHAPES}
        rows += [_row(task, shape, SHAPES[shape], one, found["i.i.d."]) for shape, one in found.items()]
    simulated = "simulated" in origins("gains")
    return ReportTable("gains", TITLE, _COLUMNS, rows, _NOTES, simulated, _GROUPS)


def _row(task: str, name: str, label: str, one: Best, base: Best) -> dict[str, Any]:
    mean, half = one.summary
    return {
        "method": label,
        "mean": mean,
        "half": half,
        "relative": mean / base.summary.mean,
        "setting": one.setting,
        "group": task,
        "key": key(task, name),
        "spent": one.epsilon,
    }


def sentences(best: Rows) -> list[str]:
    """What was measured, in words; a difference is called one only where a test finds it at `LEVEL`."""
    tasks = [_describe_task(best, task) for task in TITLES]
    return tasks + [_describe_weights(best["gains"], importance) for importance in IMPORTANCES]


def _describe_task(best: Rows, task: str) -> str:
    listed = task_rows(best, task)
    adaptive = listed["learned"][1]
    published = _least(listed, ("mvg", *_RIVALS))
    exact = _least(listed, ("mvg/exact", *_EXACT))
    others = {
        f"the best of the paper's methods as published ({published[0].removesuffix(', as published')})": published[1],
        f"the best of them exactly calibrated ({exact[0].removesuffix(', exact')})": exact[1],
        "moments with fixed noise at their best radius": listed["fixed"][1],
        "the same fit along standard directions": listed["standard"][1],
    }
    paired = task == "exp1"  # its trials have the same records in every row
    parts = [f"{_compare(adaptive, other, paired=paired)} that of {name}" for name, other in others.items()]
    title, error = TITLES[task][0].replace(": ", ", "), number(adaptive.summary.mean)
    return f"{title}: the error of an adaptive fit, {error}, is {'; '.join(parts)}."


def _least(listed: Mapping[str, tuple[str, Best]], names: Sequence[str]) -> tuple[str, Best]:
    return min((listed[name] for name in names), key=lambda one: one[1].summary.mean)


def _describe_weights(gains: Mapping[str, Best], importance: int) -> str:
    found = {shape: gains[key(weighted_task(importance), shape)] for shape in SHAPES}
    one, two = (_compare(found[shape], found["i.i.d."], paired=False) for shape in ("optimal", "binary"))
    what = f"three features count {importance:,} times as much as the others" if importance > 1 else "all count equally"
    return (
        f"Known weights, {what}: the weighted error with the optimal allocation is {one} that with i.i.d. noise; with "
        f"the paper's two groups it is {two} that with i.i.d. noise."
    )


def _compare(one: Best, other: Best, *, paired: bool) -> str:
    """How many times an error is smaller or larger, or that the trials do not show a difference."""
    ratio = other.summary.mean / one.summary.mean
    if compare(one.values, other.values, paired=paired).p < LEVEL:
        return f"{_times(ratio)} times smaller than"
    if compare(other.values, one.values, paired=paired).p < LEVEL:
        return f"{_times(1 / ratio)} times larger than"
    return "not distinguishable in these trials from"


def _times(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 10 else f"{float(f'{ratio:.2g}'):,.0f}"


def draw_tasks(best: Rows, folder: Path) -> Picture:
    """One panel a task, one line a method."""
    shades = dict.fromkeys(("mvg", "mvg/exact"), COLOURS[1]) | dict.fromkeys(FITS, COLOURS[0]) | {"fixed": COLOURS[2]}

    def paint(axes: list[Any], narrow: bool) -> None:
        for ax, (task, (title, unit)) in zip(axes, TITLES.items(), strict=True):
            listed = {name: one for name, one in task_rows(best, task).items() if one[1].summary.mean > _ZERO}
            for j, (name, (_, one)) in enumerate(listed.items()):
                mean, half = one.summary
                ax.errorbar(mean, j, xerr=half, fmt="o", color=shades.get(name, COLOURS[4]), markersize=5, capsize=2)
            if task != "exp1":
                ax.set_xscale("log")
            label_rows(ax, [label for label, _ in listed.values()], narrow=narrow)
            ax.set_title(title)
            ax.set_xlabel(unit)

    return draw_picture(
        paint,
        folder,
        "gains",
        title="Adaptive fits on the paper's tasks",
        caption="Errors with 95% intervals; smaller is better. Exp. II and III have logarithmic axes.",
        simulated="simulated" in origins("gains"),
        wide=(12.5, 4.0),
        narrow=(4.4, 15.5),
        panels=3,
    )


def draw_weights(gains: Mapping[str, Best], folder: Path) -> Picture:
    """The error relative to i.i.d. noise, over the importance of three features."""

    def paint(axes: list[Any], narrow: bool) -> None:
        ax = axes[0]
        for colour, (shape, label) in zip((COLOURS[4], COLOURS[1], COLOURS[0]), SHAPES.items(), strict=True):
            found = [gains[key(weighted_task(one), shape)].summary for one in IMPORTANCES]
            base = [gains[key(weighted_task(one), "i.i.d.")].summary.mean for one in IMPORTANCES]
            means = [one.mean / of for one, of in zip(found, base, strict=True)]
            halves = [one.half / of for one, of in zip(found, base, strict=True)]
            ax.errorbar(IMPORTANCES, means, yerr=halves, color=colour, marker="o", markersize=4, capsize=2, label=label)
        ax.set_xscale("log")
        ax.set_ylim(0)
        ax.set_xlabel("how many times as much the three features count")
        ax.set_ylabel("weighted error / i.i.d. noise")
        place_legend(ax, narrow=narrow)

    return draw_picture(
        paint,
        folder,
        "gains-weights",
        title="Known weights",
        caption="Weighted error of the second moment of Exp. III at epsilon = 1, with 95% intervals, over that of "
        "i.i.d. noise. The shape of the noise is fixed in advance, from the public weights.",
        simulated="simulated" in origins("gains"),
        wide=(9.0, 3.4),
        narrow=(4.4, 4.4),
    )
