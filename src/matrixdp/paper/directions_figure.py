"""The figure "Effect of noise directions" and its table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from matrixdp.paper.best_setting import Best
from matrixdp.paper.cells import origins
from matrixdp.paper.directions import EPSILONS, PANELS, SHOWN, key
from matrixdp.paper.mechanisms import CALIBRATIONS
from matrixdp.paper.plotting import COLOURS, Picture, canvas, save
from matrixdp.paper.report_table import ReportTable

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
    """One row a panel, calibration and set of features; a column for each epsilon."""
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
    with canvas(11.0, 4.0, 3) as (figure, axes):
        for ax, (panel, sets) in zip(axes, PANELS.items(), strict=True):
            for colour, name in zip(COLOURS, sets, strict=False):
                for calibration, line in (("exact", "-"), ("theorem2", ":")):
                    chosen = [best[key(panel, calibration, name, epsilon)].summary for epsilon in EPSILONS]
                    ax.errorbar(
                        EPSILONS,
                        [one.mean for one in chosen],
                        yerr=[one.half for one in chosen],
                        color=colour if name != "i.i.d." else COLOURS[4],
                        linestyle=line,
                        marker="o" if calibration == "exact" else None,
                        markersize=3,
                        linewidth=1.4 if calibration == "exact" else 1.0,
                        capsize=2,
                        label=name if calibration == "exact" else None,
                    )
            ax.set_xscale("log")
            if panel == "exp2":
                ax.set_yscale("log")
            ax.set_xlabel("epsilon")
            title, unit = _TITLES[panel]
            ax.set_title(title)
            ax.set_ylabel(unit)
            ax.legend()
        return save(
            figure,
            folder,
            "directions",
            title="Effect of noise directions",
            caption=_CAPTION,
            simulated="simulated" in origins("directions"),
        )
