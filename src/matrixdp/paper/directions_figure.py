"""The figure "Effect of noise directions" and its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matrixdp.paper.best_setting import Best
from matrixdp.paper.cells import origins
from matrixdp.paper.directions import EPSILONS, PANELS, SHOWN, key
from matrixdp.paper.mechanisms import CALIBRATIONS
from matrixdp.paper.plotting import COLOURS, Picture, draw_picture
from matrixdp.paper.report_table import ReportTable
from matrixdp.paper.rows import Summary

_TITLES = {
    "exp1": ("Exp. I: regression", "RMSE"),
    "exp2": ("Exp. II: first principal component", "error in captured variance"),
    "exp3": ("Exp. III: covariance", "residual sum of squares"),
}
_CAPTION = (
    "Error over epsilon, delta = 1/N, 95% of the budget on the named features, with 95% intervals. Solid: the exact "
    "calibration. Dotted: Theorem 2 as printed."
)


def table(best: Mapping[str, Best]) -> ReportTable:
    """One row for each panel, calibration and set of features; one column for each epsilon."""
    rows = []
    for panel, sets in PANELS.items():
        for calibration in SHOWN:
            for name in sets:
                means = {
                    f"epsilon {epsilon:g}": best[key(panel, calibration, name, epsilon)].summary.mean
                    for epsilon in EPSILONS
                }
                halves = {
                    f"half {epsilon:g}": best[key(panel, calibration, name, epsilon)].summary.half
                    for epsilon in EPSILONS
                }
                rows.append(
                    {"group": panel, "calibration": CALIBRATIONS[calibration], "features": name, **means, **halves}
                )
    columns = {"features": "Important features", "calibration": "Calibration"}
    columns |= {f"epsilon {epsilon:g}": f"epsilon {epsilon:g}" for epsilon in EPSILONS}
    groups = {panel: f"{title}, {unit}" for panel, (title, unit) in _TITLES.items()}
    notes = ("In Exp. I the kernel and its penalty are the best for each entry. Intervals are in the files.",)
    simulated = "simulated" in origins("directions")
    return ReportTable("directions", "Effect of noise directions", columns, rows, notes, simulated, groups)


def draw(best: Mapping[str, Best], folder: Path) -> Picture:
    """Three panels, as in the paper."""

    def paint(axes: list[Any], _narrow: bool) -> None:
        for ax, (panel, sets) in zip(axes, PANELS.items(), strict=True):
            for colour, name in zip(COLOURS, sets, strict=False):
                for calibration in ("exact", "theorem2"):
                    chosen = [best[key(panel, calibration, name, epsilon)].summary for epsilon in EPSILONS]
                    colour = colour if name != "i.i.d." else COLOURS[4]
                    _line(ax, chosen, colour, name if calibration == "exact" else None)
            ax.set_xscale("log")
            if panel == "exp2":
                ax.set_yscale("log")
            ax.set_xlabel("epsilon")
            title, unit = _TITLES[panel]
            ax.set_title(title)
            ax.set_ylabel(unit)
            ax.legend()

    return draw_picture(
        paint,
        folder,
        "directions",
        title="Effect of noise directions",
        caption=_CAPTION,
        simulated="simulated" in origins("directions"),
        wide=(11.0, 4.0),
        narrow=(4.4, 10.5),
        panels=3,
    )


def _line(ax: Any, points: Sequence[Summary], colour: str, label: str | None) -> None:
    """Errors over epsilon; a line without a label is dotted and has no marks."""
    ax.errorbar(
        EPSILONS,
        [one.mean for one in points],
        yerr=[one.half for one in points],
        color=colour,
        linestyle="-" if label else ":",
        marker="o" if label else None,
        markersize=3,
        linewidth=1.4 if label else 1.0,
        capsize=2,
        label=label,
    )
