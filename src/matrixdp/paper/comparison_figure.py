"""Published and measured errors of every row, as fractions of the random guess."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from matrixdp.paper.best_setting import Best
from matrixdp.paper.cells import origins
from matrixdp.paper.plotting import COLOURS, Picture, canvas, save
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


def draw(part: str, best: Mapping[str, Best], folder: Path) -> Picture:
    """One line a row of the table; hollow marks are the published figures."""
    order = list(_SHADES)
    listed = sorted(
        (one for key, one in best.items() if key not in ("non-private", "random guess") or part == "exp1"),
        key=lambda one: order.index(one.row.group),
    )
    guess, printed = best["random guess"].summary.mean, TABLES[part]
    with canvas(10.5, 0.26 * len(listed) + 1.1) as (figure, (ax,)):
        for i, one in enumerate(listed):
            mean, half = one.summary
            ax.errorbar(
                mean / guess, i, xerr=half / guess, fmt="o", color=_SHADES[one.row.group], markersize=5, capsize=2
            )
            published = printed.get(one.row.key)
            if published:
                relative = published.mean / printed["random guess"].mean
                ax.plot(relative, i, "D", markerfacecolor="white", markeredgecolor=COLOURS[1], markersize=5)
        shown = {one.row.group for one in listed}
        for group, shade in _SHADES.items():
            if group != "registered" or group in shown:
                ax.plot([], [], "o", color=shade, label=_NAMES[group])
        ax.plot([], [], "D", markerfacecolor="white", markeredgecolor=COLOURS[1], label="published")
        ax.set_yticks(range(len(listed)), [one.row.label for one in listed])
        ax.invert_yaxis()
        if part != "exp1":
            ax.set_xscale("log")
        else:
            ax.set_xlim(0)
        ax.axvline(1.0, color="#999999", linewidth=0.8)
        ax.set_xlabel("error / error of a random guess")
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        return save(
            figure,
            folder,
            f"{part}-comparison",
            title=f"{_TITLES[part]}: published and measured",
            caption="Each divided by the random guess of its own source, since absolute figures differ.",
            simulated="simulated" in origins(part),
        )
