"""Trials: the parts that have them, cells that are run, checked and stored, and the best setting of each row.

A cell is the trials of one row at one setting. An interrupted run resumes from what is stored. The best setting is
chosen by the mean error over the trials, as the paper reports it: this uses the test error, so it is optimistic, and on
private data it would cost budget; the paper says so in a footnote, and the report repeats it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtrit

from matrixdp.datasets import load_table
from matrixdp.noise import Stream
from matrixdp.paper import components, gains, regression
from matrixdp.paper.experiment import Figure, Row, check_guarantee, read_published
from matrixdp.types import Floats
from matrixdp.version import __version__

_FORMAT = 1


@dataclass(frozen=True)
class Part:
    """A part of the reproduction that has trials."""

    name: str
    rows: Callable[[], list[Row]]  # of its table
    data: tuple[str, ...] = ()  # names of its data sets
    title: str = ""
    error: str = ""  # the name of its error
    about: str = ""  # follows the title at its table

    @property
    def published(self) -> dict[str, Figure]:
        """The paper's figures, by row."""
        return {row: Figure(*values) for row, values in read_published().get(self.name, {}).items()}


_RMSE, _VARIANCE, _RESIDUAL = "RMSE", "error in captured variance", "residual sum of squares"
_LIVER = f"on the Liver data, {_RMSE} on held-out records"
_MOVEMENT = f"of the Movement data, {_VARIANCE}"
_CTG = f"of the Cardiotocography data, {_RESIDUAL}"
_TWO = f"Exp. I with ALT and Y alone, {_RMSE}"
_EVERY = ("liver", "movement", "ctg")
PARTS = {
    part.name: part
    for part in (
        Part("exp1", regression.rows, ("liver",), "Exp. I: regression", _RMSE, _LIVER),
        Part("exp2", components.first_rows, ("movement",), "Exp. II: first component", _VARIANCE, _MOVEMENT),
        Part("exp3", components.all_rows, ("ctg",), "Exp. III: covariance", _RESIDUAL, _CTG),
        Part("subspace", regression.rows_projected, ("liver",), "Subspace projection:", _RMSE, _TWO),
        Part("directions", gains.direction_rows, _EVERY),
        Part("gains", gains.gain_rows, _EVERY),
    )
}
EXPERIMENTS = {name: PARTS[name] for name in ("exp1", "exp2", "exp3")}


@cache
def part_rows(part: str) -> Mapping[str, Row]:
    """Rows of a part by key."""
    return {row.key: row for row in PARTS[part].rows()}


@cache
def origins(part: str) -> str:
    """The data sets of a part, with those marked that are simulated; part of a result's identity."""
    marks = {name: " simulated" * load_table(name, simulate=True).simulated for name in PARTS[part].data}
    return ", ".join(f"{name}{mark}" for name, mark in marks.items())


def is_simulated(*parts: str) -> bool:
    """Whether any part runs on simulated data."""
    return any("simulated" in origins(part) for part in parts)


def forget_data() -> None:
    """Clear the caches of data, for a process in which ``MATRIXDP_DATA`` has changed."""
    for cached in (regression.records, components.load_movement, components.load_ctg, origins):
        cached.cache_clear()


@dataclass(frozen=True)
class Cell:
    """What identifies the trials of one row at one setting."""

    part: str
    row: str
    setting: int
    trials: int
    seed: int

    @property
    def path(self) -> str:
        """Name of its file, a hash of everything that the result depends on."""
        row = part_rows(self.part)[self.row]
        what = [self.part, self.row, dict(row.settings[self.setting]), row.variants, self.trials, self.seed]
        what += [row.source] if row.source else []
        content = json.dumps([_FORMAT, __version__, origins(self.part), *what])
        digest = hashlib.sha256(content.encode()).hexdigest()[:20]
        return f"{self.part}-{digest}.json"


@dataclass(frozen=True, eq=False)
class CellResult:
    """Errors of shape (trials, variants), and the largest epsilon that a trial cost."""

    cell: Cell
    values: Floats
    epsilon: float | None


def part_cells(part: str, *, trials: int, seed: int) -> list[Cell]:
    """All cells of a part."""
    return [Cell(part, row.key, i, trials, seed) for row in part_rows(part).values() for i in range(len(row.settings))]


def run_cell(cell: Cell) -> CellResult:
    """Run all trials of a cell, each from a seeded stream of its own, and check each one's guarantee."""
    row = part_rows(cell.part)[cell.row]
    run = row.build(row.settings[cell.setting])
    label = zlib.crc32(f"{cell.part} {cell.row} {cell.setting}".encode())
    stream = Stream(seed=cell.seed).child(label)
    outcomes = [run(trial, stream.child(trial)) for trial in range(cell.trials)]
    for outcome in outcomes:
        check_guarantee(row.label, row.column, outcome.spent)
    costs = [outcome.spent.epsilon for outcome in outcomes if outcome.spent is not None]
    return CellResult(cell, np.array([outcome.values for outcome in outcomes]), max(costs, default=None))


def write_atomically(path: Path, text: str) -> None:
    """Write a file under a temporary name and rename it, so that an interruption leaves no partial file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}")
    part.write_text(text, "utf-8")
    part.replace(path)


def store_result(result: CellResult, folder: Path) -> None:
    """Store a result in its file."""
    content = {**vars(result), "cell": vars(result.cell), "values": result.values.tolist()}
    write_atomically(folder / result.cell.path, json.dumps(content))


def load_result(cell: Cell, folder: Path) -> CellResult | None:
    """The result of an earlier run, or None if there is none or its file is damaged."""
    try:
        content: dict[str, Any] = json.loads((folder / cell.path).read_text("utf-8"))
        values = np.array(content["values"], np.float64)
        if content["cell"] != vars(cell) or values.ndim != 2 or len(values) != cell.trials:
            return None
        return CellResult(cell, values, content["epsilon"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def summarise(values: Floats) -> Figure:
    """Mean of the trials and half the width of Student's 95% interval; NaN for one trial.

    Examples
    --------
    >>> summary = summarise(np.array([1.0, 2.0, 3.0]))
    >>> summary.mean, round(summary.half, 3)
    (2.0, 2.484)
    """
    n, mean = values.size, float(values.mean())
    if n < 2:
        return Figure(mean, math.nan)
    return Figure(mean, float(stdtrit(n - 1, 0.975)) * float(values.std(ddof=1)) / math.sqrt(n))


@dataclass(frozen=True, eq=False)
class Best:
    """The best setting and variant of a row as text, its errors of shape (trials,), and what it cost at its delta."""

    row: Row
    setting: str
    values: Floats
    epsilon: float | None

    @cached_property
    def summary(self) -> Figure:
        """Mean and half its interval."""
        return summarise(self.values)

    @property
    def mean(self) -> float:
        """Mean of the trials."""
        return self.summary.mean


def select_best(results: Sequence[CellResult]) -> dict[str, Best]:
    """The best setting and variant of each row of a part, by key."""
    found: dict[str, Best] = {}
    for best in map(best_variant, results):
        key = best.row.key
        found[key] = min(found.get(key, best), best, key=lambda one: one.mean)
    return found


def best_variant(result: CellResult) -> Best:
    """The best variant of the trials at one setting."""
    row = part_rows(result.cell.part)[result.cell.row]
    index = int(result.values.mean(axis=0).argmin())
    words = [f"{name} {_say_value(value)}" for name, value in row.settings[result.cell.setting].items()]
    return Best(row, ", ".join(filter(None, [*words, row.variants[index]])), result.values[:, index], result.epsilon)


def _say_value(value: object) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
