"""The tables of the report, each written as CSV, JSON and Markdown, and shown on its page.

Beside the trials they show times of one release with its calibration, as ratios to MVG's in the same run.
"""

import csv
import io
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from matrixdp.baselines import find_mechanism
from matrixdp.design import binary, make_design
from matrixdp.display import format_number
from matrixdp.paper.experiment import RIVALS, Experiment, read_published
from matrixdp.paper.gains import EXPERIMENTS as TASKS
from matrixdp.paper.gains import FITS, IMPORTANCES, SHAPES, gain_key
from matrixdp.paper.trials import EXPERIMENTS, PARTS, CellResult, is_simulated, list_published
from matrixdp.queries import SecondMoment
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
        out, rows = io.StringIO(), self._list_rows(empty="")
        writer = csv.DictWriter(out, [*(rows[0] if rows else self.columns), "simulated_data"], lineterminator="\n")
        writer.writeheader()
        writer.writerows({**row, "simulated_data": str(self.simulated).lower()} for row in rows)
        return out.getvalue()

    def to_json(self) -> str:
        """JSON, with null for NaN."""
        content = {"name": self.name, "title": self.title, "simulated_data": self.simulated}
        content |= {"columns": dict(self.columns), "rows": self._list_rows(empty=None), "notes": list(self.notes)}
        return json.dumps(content, indent=1, allow_nan=False) + "\n"

    def to_markdown(self) -> str:
        """A table in Markdown with the columns of the page, and the notes below it."""

        def show(value: Any) -> str:
            return (format_number(value) if isinstance(value, float) else str(value)).replace("|", r"\|")

        lines = [list(self.columns.values()), ["---"] * len(self.columns)]
        lines += [[show(row[key]) for key in self.columns] for row in self._list_rows(empty="")]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return "\n\n".join([*([self.mark] if self.simulated else []), table, *self.notes]) + "\n"

    def _list_rows(self, *, empty: str | None) -> list[dict[str, Any]]:
        """Rows that all have the same keys, with `empty` for what is missing or not finite."""
        keys = dict.fromkeys([*self.columns, *(key for row in self.rows for key in row)])

        def fill(value: Any) -> Any:
            return empty if value is None or (isinstance(value, float) and not math.isfinite(value)) else value

        return [{key: fill(row.get(key)) for key in keys} for row in self.rows]

    def write(self, folder: Path) -> None:
        """Write the CSV, JSON and Markdown files."""
        for kind, content in {"csv": self.to_csv(), "json": self.to_json(), "md": self.to_markdown()}.items():
            write_file(folder / f"{self.name}.{kind}", content)


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
Rows = Mapping[str, Mapping[str, CellResult]]


def _head(*keys: str, **others: str) -> dict[str, str]:
    """Columns with their headings; `others` are those of this table alone."""
    return {key: others.get(key) or _HEADINGS.get(key, key) for key in keys}


def _list_measured(best: CellResult) -> dict[str, Any]:
    """What every table says of a row."""
    facts = {"method": best.row.label, **best.summary._asdict(), "setting": best.setting}
    return facts | {"key": best.row.key, "spent": best.epsilon}


def tabulate_experiment(part: str, best: Mapping[str, CellResult]) -> ReportTable:
    """The table of an experiment, published figures beside measured ones."""
    columns = ["method", "epsilon", "delta", "spent", "mean", "half", "relative"]
    columns += ["published", "published_half", "published_relative", "setting"]
    head, title = _head(*columns, setting="Best setting"), PARTS[part].caption
    rows = [_list_result(part, one, best) for group in GROUPS for one in best.values() if one.row.group == group]
    return ReportTable(part, title, head, rows, (_SPENT, _SELECTION), is_simulated(part), GROUPS)


def _list_result(part: str, one: CellResult, best: Mapping[str, CellResult]) -> dict[str, Any]:
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
    return facts | {"tried": len(row.settings) * len(row.variants), "trials": len(one.values)}


def tabulate_sweeps(parts: Mapping[str, Sequence[CellResult]]) -> ReportTable:
    """Every setting of every row, by its best variant."""
    rows = [{"part": part} | _list_measured(result) for part, results in parts.items() for result in results]
    columns = _head("part", "method", "setting", "mean", "half", "spent")
    return ReportTable("sweeps", "All settings that were tried", columns, rows, (), is_simulated(*parts))


_GAIN_NOTES = (
    "Adaptive fits spend a part of the budget on learning where the data lie, and measure the moments there with the "
    "rest. They have no settings; the other rows have the best of all that were tried, judged by the test error, which "
    "favours them. All rows have the budget of the experiment: epsilon = 1, delta = 1/N.",
    "The weighted error of a second moment is the root of the mean of its squared errors, weighted by the product of "
    "the weights of the two features. The weights are public: they are chosen before any data are read.",
)


def tabulate_gains(best: Rows) -> ReportTable:
    """Adaptive fits beside other methods of the three tasks, and three shapes of noise for known weights."""
    groups: dict[str, str] = {}
    rows: list[dict[str, Any]] = []

    def add(task: str, title: str, shown: Sequence[CellResult], base: CellResult) -> None:
        groups[task] = title
        rows.extend({"group": task, **_list_measured(one), "relative": one.mean / base.mean} for one in shown)

    for task, part in EXPERIMENTS.items():
        mvg, fixed = "mvg-1" if task == "exp1" else "mvg", "radius" if task == "exp2" else "moments"
        keys = ("non-private", "random guess", mvg, *RIVALS, f"{mvg}/exact", "gaussian/exact", "jl/exact", fixed)
        shown = [best[task][key] for key in keys] + [best["gains"][gain_key(task, name)] for name in FITS]
        add(task, f"{part.title}, {part.error}", shown, best[task][f"{mvg}/exact"])
    for importance in IMPORTANCES:
        title = f"Second moment of Exp. III, three features count {importance} times: weighted error"
        found = {shape: best["gains"][gain_key(importance, shape)] for shape in SHAPES}
        add(f"weights {importance}", title, [*found.values()], found["i.i.d."])
    relative = "of MVG exact, or of i.i.d. noise"
    columns = _head("method", "mean", "half", "relative", "setting", relative=relative, setting="Best setting")
    return ReportTable("gains", PARTS["gains"].title, columns, rows, _GAIN_NOTES, is_simulated("gains"), groups)


# Beside the trials: the time of one release.

TIMED = dict(zip(("I", "II", "III"), TASKS.values(), strict=True))
Timings = dict[str, dict[str, list[float]]]


def measure_runtime(repeats: int) -> Timings:
    """Seconds of each release, by experiment and mechanism, measured in turns so that other load affects all alike."""
    found: Timings = {}
    for name, experiment in TIMED.items():
        releases = _list_releases(experiment)
        times: dict[str, list[float]] = {key: [] for key in releases}
        for _ in range(repeats + 1):
            for key, release in releases.items():
                started = time.perf_counter()
                release()
                times[key].append(time.perf_counter() - started)
        found[name] = {key: seconds[1:] for key, seconds in times.items()}  # the first fills caches
    return found


def tabulate_runtime(timings: Timings) -> ReportTable:
    """Milliseconds, and ratios to MVG, measured and published."""
    published, columns = read_published()["runtime"], {"method": "Method"}
    rows: list[dict[str, Any]] = [
        {"method": label, "key": key} for key, label in {"mvg": "MVG (exact)", **RIVALS}.items()
    ]
    for i, name in enumerate(TIMED):
        keys = [f"ms_{name}", f"ratio_{name}", f"published_ms_{name}", f"published_ratio_{name}"]
        columns |= dict(zip(keys, (f"{name}: ms", "to MVG", "published ms", "to MVG"), strict=True))
        for row in rows:
            own, mvg = (float(np.median(timings[name][key])) for key in (row["key"], "mvg"))
            printed, of = published[row["key"]][i], published["mvg"][i]
            row |= dict(zip(keys, (own * 1e3, own / mvg, printed, printed / of), strict=True))
    notes = (
        "Medians of one release with its calibration, measured in turns in one process; published on other hardware.",
        "The rivals here draw from their laws directly: no projection matrix, no singular values, no Markov chain "
        "(docs/rivals.md). The published times are those of other algorithms for the same laws.",
    )
    return ReportTable("runtime", "Runtime", columns, rows, notes)


def _list_releases(experiment: Experiment) -> dict[str, Callable[[], object]]:
    """One release by each mechanism, on the records of the first trial."""
    query, privacy, data = experiment.query, experiment.budget(), experiment.records(0)
    moment = isinstance(query, SecondMoment)
    gaussian, exponential = ("Analyze Gauss", "PPCA") if moment else ("classical Gaussian", "exponential")
    names = zip(RIVALS, (gaussian, "Johnson-Lindenstrauss", "Laplace", exponential), strict=True)
    return {
        "mvg": lambda: make_design(query, privacy, allocation=binary(experiment.important, 0.95)).release(data),
        **{key: partial(find_mechanism(name).function, query, privacy, data) for key, name in names},
    }
