"""The tables of the report, each written as CSV and JSON, and shown on its page."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matrixdp.paper.experiment import CALIBRATIONS, RIVALS
from matrixdp.paper.gains import EPSILONS, FITS, IMPORTANCES, PANELS, SHAPES, SHOWN, direction_key, gain_key
from matrixdp.paper.trials import (
    EXPERIMENTS,
    PARTS,
    Best,
    CellResult,
    best_variant,
    is_simulated,
    list_published,
)
from matrixdp.release.output_folder import write_file
from matrixdp.report.page import WordTable

VERDICTS = REPRODUCED, NOT, CANNOT = "reproduced", "not reproduced", "cannot be"
SIMULATED = "SIMULATED DATA, drawn from summary statistics, not the published data sets"


class ReportTable(WordTable):
    """Rows under named columns, with the files of the report."""

    mark = SIMULATED
    verdicts = VERDICTS

    def to_csv(self) -> str:
        """Comma-separated values, a column for every key; the last one says whether the data are simulated."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        rows = self._list_rows(empty="")
        writer.writerow([*(rows[0] if rows else self.columns), "simulated_data"])
        writer.writerows([*row.values(), str(self.simulated).lower()] for row in rows)
        return out.getvalue()

    def to_json(self) -> str:
        """JSON, with null for NaN."""
        content = {"name": self.name, "title": self.title, "simulated_data": self.simulated}
        content |= {"columns": dict(self.columns), "rows": self._list_rows(empty=None), "notes": list(self.notes)}
        return json.dumps(content, indent=1, allow_nan=False) + "\n"

    def _list_rows(self, *, empty: str | None) -> list[dict[str, Any]]:
        """Rows that all have the same keys, with `empty` for what is missing or not finite."""
        keys = dict.fromkeys([*self.columns, *(key for row in self.rows for key in row)])

        def fill(value: Any) -> Any:
            return empty if value is None or (isinstance(value, float) and not math.isfinite(value)) else value

        return [{key: fill(row.get(key)) for key in keys} for row in self.rows]

    def write(self, folder: Path) -> None:
        """Write the CSV and JSON files."""
        write_file(folder / f"{self.name}.csv", self.to_csv())
        write_file(folder / f"{self.name}.json", self.to_json())


GROUPS = {
    "reference": "References",
    "paper": "As in the paper",
    "calibration": "MVG in the other calibrations",
    "beyond": "Beyond the paper, exactly calibrated",
    "registered": "Registered mechanisms",
}
_HEADINGS = {
    "part": "Part",
    "method": "Method",
    "setting": "Setting",
    "mean": "Measured",
    "half": "± (95%)",
    "spent": "epsilon really spent",
    "relative": "of random guess",
    "published": "Published",
    "published_half": "± (95%)",
    "published_relative": "of random guess",
}
_SELECTION = (
    "The setting is the best of all that were tried, judged by the test error, as in the paper. That is optimistic, "
    "and choosing on private data is not free: a real deployment would have to pay for the choice."
)
_SPENT = (
    "Epsilon and delta are what the mechanism was calibrated for, checked in every trial. “Really spent” is the "
    "smallest epsilon at that delta that its noise gives; far below 1 where a calibration is loose."
)
Rows = Mapping[str, Mapping[str, Best]]


def _head(*keys: str, **others: str) -> dict[str, str]:
    """Columns with their headings; `others` are those of this table alone."""
    return {key: others.get(key) or _HEADINGS.get(key, key) for key in keys}


def _list_measured(best: Best) -> dict[str, Any]:
    """What every table says of a row."""
    facts = {"method": best.row.label, **best.summary._asdict(), "setting": best.setting}
    return facts | {"key": best.row.key, "spent": best.epsilon}


def tabulate_experiment(part: str, best: Mapping[str, Best]) -> ReportTable:
    """The table of an experiment, published figures beside measured ones."""
    columns = ["method", "epsilon", "delta", "spent", "mean", "half", "relative"]
    columns += ["published", "published_half", "published_relative", "setting"]
    head, title = _head(*columns, setting="Best setting"), PARTS[part].caption
    rows = [_list_result(part, one, best) for group in GROUPS for one in best.values() if one.row.group == group]
    return ReportTable(part, title, head, rows, (_SPENT, _SELECTION), is_simulated(part), GROUPS)


def _list_result(part: str, one: Best, best: Mapping[str, Best]) -> dict[str, Any]:
    figures, column, row = list_published(part), one.row.column, one.row
    facts: dict[str, Any] = {"epsilon": "–", "delta": "–", "group": row.group, **_list_measured(one)}
    if column:
        delta = "0" if column.delta == 0 else f"1/{round(1 / column.delta)}"
        facts |= {"epsilon": f"{column.epsilon:g}", "delta": delta}
    if "random guess" in best:
        facts["relative"] = one.mean / best["random guess"].mean
    if row.key in figures:
        mean, half = figures[row.key]
        facts |= {"published": mean, "published_half": half or None}
        facts["published_relative"] = mean / figures["random guess"].mean
    return facts | {"tried": len(row.settings) * len(row.variants), "trials": one.values.size}


def tabulate_sweeps(parts: Mapping[str, Sequence[CellResult]]) -> ReportTable:
    """Every setting of every row, by its best variant."""
    rows = [
        {"part": part} | _list_measured(best_variant(result)) for part, results in parts.items() for result in results
    ]
    columns = _head("part", "method", "setting", "mean", "half", "spent")
    return ReportTable("sweeps", "All settings that were tried", columns, rows, (), is_simulated(*parts))


def tabulate_directions(best: Mapping[str, Best]) -> ReportTable:
    """One row for each panel, calibration and set of features; one column for each epsilon."""
    rows = []
    for panel, sets in PANELS.items():
        for calibration in SHOWN:
            for name in sets:
                row: dict[str, Any] = {"group": panel, "calibration": CALIBRATIONS[calibration], "features": name}
                found = {at: best[direction_key(panel, calibration, name, at)].summary for at in EPSILONS}
                row |= {f"epsilon {at:g}": one.mean for at, one in found.items()}
                rows.append(row | {f"half {at:g}": one.half for at, one in found.items()})
    columns = {"features": "Important features", "calibration": "Calibration"}
    columns |= {name: name for name in (f"epsilon {at:g}" for at in EPSILONS)}
    groups = {panel: f"{part.title}, {part.error}" for panel, part in EXPERIMENTS.items()}
    notes = ("In Exp. I the kernel and its penalty are the best for each entry. Intervals are in the files.",)
    title = "Effect of noise directions"
    return ReportTable("directions", title, columns, rows, notes, is_simulated("directions"), groups)


EXACT = {"gaussian/exact": "Gaussian, exact", "jl/exact": "JL transform, exact"}
_GAIN_NOTES = (
    "Adaptive fits spend a part of the budget on learning where the data lie, and measure the moments there with the "
    "rest. They have no settings; the other rows have the best of all that were tried, judged by the test error, which "
    "favours them. All rows have the budget of the experiment: epsilon = 1, delta = 1/N.",
    "“Moments, fixed noise” is the row of the experiment's table that releases moments of records in a ball, with "
    "noise fixed in advance and exactly calibrated; the radius of the ball is the best of those tried.",
    "The weighted error of a second moment is the root of the mean of its squared errors, weighted by the product of "
    "the weights of the two features. The weights are public: they are chosen before any data are read.",
)


def list_methods(best: Rows, task: str) -> dict[str, tuple[str, Best]]:
    """Label and measurements of each method of a task, in the order of the table."""
    found, mvg = best[task], "mvg-1" if task == "exp1" else "mvg"
    listed = {
        "non-private": ("Without privacy", found["non-private"]),
        "random guess": ("Random guess", found["random guess"]),
        "mvg": ("MVG, Theorem 2 as printed", found[mvg]),
        **{name: (f"{label}, as published", found[name]) for name, label in RIVALS.items()},
        "mvg/exact": ("MVG, exact", found[f"{mvg}/exact"]),
        **{name: (label, found[name]) for name, label in EXACT.items()},
        "fixed": ("Moments, fixed noise", found["radius" if task == "exp2" else "moments"]),
    }
    return listed | {name: (label, best["gains"][gain_key(task, name)]) for name, label in FITS.items()}


def tabulate_gains(best: Rows) -> ReportTable:
    """All methods of the four tasks."""
    groups, rows = {}, []
    for task, part in EXPERIMENTS.items():
        groups[task], listed = f"{part.title}, {part.error}", list_methods(best, task)
        rows += [_list_gain(task, name, *one, listed["mvg/exact"][1]) for name, one in listed.items()]
    for importance in IMPORTANCES:
        task = f"weights {importance}"
        groups[task] = f"Second moment of Exp. III, three features count {importance} times: weighted error"
        found = {shape: best["gains"][gain_key(task, shape)] for shape in SHAPES}
        rows += [_list_gain(task, shape, SHAPES[shape], one, found["i.i.d."]) for shape, one in found.items()]
    relative = "of MVG exact, or of i.i.d. noise"
    columns = _head("method", "mean", "half", "relative", "setting", relative=relative, setting="Best setting")
    return ReportTable("gains", PARTS["gains"].title, columns, rows, _GAIN_NOTES, is_simulated("gains"), groups)


def _list_gain(task: str, name: str, label: str, one: Best, base: Best) -> dict[str, Any]:
    facts = {"method": label, "key": gain_key(task, name), "relative": one.mean / base.mean}
    return {"group": task} | _list_measured(one) | facts
