"""Published and measured errors of every row, as fractions of the random guess."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matrixdp.paper.best_setting import Best
from matrixdp.paper.cells import origins
from matrixdp.paper.plotting import AXIS, COLOURS, PAPER, Picture, draw_picture, label_rows, place_legend
from matrixdp.paper.published import TABLES

_TITLES = {"exp1": "Exp. I: regression", "exp2": "Exp. II: first component", "exp3": "Exp. III: covariance"}
_SHADES = {
    "reference": COLOURS[4],
    "paper": COLOURS[0],
    "calibration": COLOURS[2],
    "beyond": COLOURS[3],
    "registered": COLOURS[5],
}
_NAMES = {
    "reference": "reference",
    "paper": "as in the paper",
    "calibration": "MVG, other calibrations",
    "beyond": "beyond the paper",
    "registered": "registered mechanisms",
}
_HOLLOW: Any = {"markerfacecolor": PAPER, "markeredgecolor": COLOURS[1], "markersize": 5}


def draw(part: str, best: Mapping[str, Best], folder: Path) -> Picture:
    """One line a row of the table; hollow marks are the published figures."""
    order = list(_SHADES)
    listed = sorted(
        (one for key, one in best.items() if key not in ("non-private", "random guess") or part == "exp1"),
        key=lambda one: order.index(one.row.group),
    )
    guess, printed = best["random guess"].summary.mean, TABLES[part]

    def paint(axes: list[Any], narrow: bool) -> None:
        ax = axes[0]
        for i, one in enumerate(listed):
            mean, half = one.summary
            shade = _SHADES[one.row.group]
            ax.errorbar(mean / guess, i, xerr=half / guess, fmt="o", color=shade, markersize=5, capsize=2)
            if published := printed.get(one.row.key):
                ax.plot(published.mean / printed["random guess"].mean, i, "D", **_HOLLOW)
        shown = {one.row.group for one in listed}
        for group, shade in _SHADES.items():
            if group != "registered" or group in shown:
                ax.plot([], [], "o", color=shade, label=_NAMES[group])
        ax.plot([], [], "D", **_HOLLOW, label="published")
        if part != "exp1":
            ax.set_xscale("log")
        else:
            ax.set_xlim(0)
        label_rows(ax, [one.row.label for one in listed], narrow=narrow)
        ax.axvline(1.0, color=AXIS, linewidth=0.8)
        ax.set_xlabel("error / error of a random guess")
        place_legend(ax, narrow=narrow)

    return draw_picture(
        paint,
        folder,
        f"{part}-comparison",
        title=f"{_TITLES[part]}: published and measured",
        caption="Each divided by the random guess of its own source, since absolute figures differ.",
        simulated="simulated" in origins(part),
        wide=(10.5, 0.26 * len(listed) + 1.1),
        narrow=(4.4, 0.42 * len(listed) + 2.2),
    )
