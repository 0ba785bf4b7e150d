"""Cells: the trials of one row at one setting, run, checked and stored, and the best setting of each row.

An interrupted run resumes from what is stored. The best setting is chosen by the mean error over the trials, as the
paper reports it: this uses the test error, so it is optimistic, and on private data it would cost budget; the paper
says so in a footnote, and the report repeats it.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from matrixdp.datasets import load_table
from matrixdp.noise import Stream
from matrixdp.paper import component, covariance, gains, regression
from matrixdp.paper.experiment import Row, Summary, registered_rows, summarise
from matrixdp.paper.mechanisms import check_guarantee
from matrixdp.types import Floats
from matrixdp.version import __version__


def write_atomically(path: Path, text: str) -> None:
    """Write a file under a temporary name and rename it, so that an interruption leaves no partial file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}")
    part.write_text(text, "utf-8")
    part.replace(path)


_FORMAT = 1
PART_ROWS: dict[str, Callable[[], list[Row]]] = {
    "exp1": lambda: regression.rows() + regression.rows_beyond() + registered_rows({"records": regression.EXPERIMENT}),
    "exp2": lambda: (
        component.rows()
        + component.rows_beyond()
        + registered_rows({"second-moment": component.MOMENT, "components": component.NORMALISED})
    ),
    "exp3": lambda: (
        covariance.rows()
        + covariance.rows_beyond()
        + registered_rows({"records": covariance.NOISY_RECORDS, "second-moment": covariance.MOMENT})
    ),
    "subspace": regression.rows_projected,
    "directions": gains.direction_rows,
    "gains": gains.gain_rows,
}
DATA = {
    "exp1": ("liver",),
    "exp2": ("movement",),
    "exp3": ("ctg",),
    "subspace": ("liver",),
    "directions": ("liver", "movement", "ctg"),
    "gains": ("liver", "movement", "ctg"),
}


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
    seconds: float

    def to_json(self) -> str:
        """The result as JSON text."""
        return json.dumps(
            {
                "cell": vars(self.cell),
                "values": self.values.tolist(),
                "epsilon": self.epsilon,
                "seconds": self.seconds,
            }
        )


def part_cells(part: str, *, trials: int, seed: int) -> list[Cell]:
    """All cells of a part."""
    return [Cell(part, row.key, i, trials, seed) for row in part_rows(part).values() for i in range(len(row.settings))]


@cache
def part_rows(part: str) -> Mapping[str, Row]:
    """Rows of a part by key."""
    return {row.key: row for row in PART_ROWS[part]()}


@cache
def origins(part: str) -> str:
    """The data sets of a part, with those marked that are simulated; part of a result's identity."""
    return ", ".join(f"{name} simulated" if load_table(name, simulate=True).simulated else name for name in DATA[part])


def forget_data() -> None:
    """Clear the caches of data, for a process in which ``MATRIXDP_DATA`` has changed."""
    for cached in (regression.records, component.truth, covariance.truth, origins):
        cached.cache_clear()


def run_cell(cell: Cell) -> CellResult:
    """Run all trials of a cell, each from a seeded stream of its own, and check each one's guarantee."""
    row = part_rows(cell.part)[cell.row]
    started = time.perf_counter()
    run = row.build(row.settings[cell.setting])
    label = zlib.crc32(f"{cell.part} {cell.row} {cell.setting}".encode())
    stream = Stream(seed=cell.seed).child(label)
    values, costs = [], []
    for trial in range(cell.trials):
        outcome = run(trial, stream.child(trial))
        check_guarantee(row.label, row.column, outcome.spent)
        values.append(outcome.values)
        if outcome.spent is not None:
            costs.append(outcome.spent.epsilon)
    return CellResult(cell, np.array(values), max(costs, default=None), time.perf_counter() - started)


def load_result(cell: Cell, folder: Path) -> CellResult | None:
    """The result of an earlier run, or None if there is none or its file is damaged."""
    try:
        content: dict[str, Any] = json.loads((folder / cell.path).read_text("utf-8"))
        values = np.array(content["values"], np.float64)
        if content["cell"] != vars(cell) or values.ndim != 2 or len(values) != cell.trials:
            return None
        return CellResult(cell, values, content["epsilon"], float(content["seconds"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def store_result(result: CellResult, folder: Path) -> None:
    """Store a result in its file."""
    write_atomically(folder / result.cell.path, result.to_json())


@dataclass(frozen=True, eq=False)
class Best:
    """The best setting and variant of a row.

    Attributes
    ----------
    row : Row
    setting : str
        The setting and variant as text.
    values : float64 array of shape (trials,)
    epsilon : float or None
        What it cost at the column's delta.
    tried : int
        Number of settings times variants.
    """

    row: Row
    setting: str
    values: Floats
    epsilon: float | None
    tried: int

    @property
    def summary(self) -> Summary:
        """Mean and half its interval."""
        return summarise(self.values)


def select_best(part: str, results: Sequence[CellResult]) -> dict[str, Best]:
    """The best setting and variant of each row of a part, by key."""
    found: dict[str, Best] = {}
    for result in results:
        row = part_rows(part)[result.cell.row]
        best = best_variant(row, result)
        known = found.get(row.key)
        if known is None or best.values.mean() < known.values.mean():
            found[row.key] = best
    return found


def best_variant(row: Row, result: CellResult) -> Best:
    """The best variant of the trials at one setting."""
    means = result.values.mean(axis=0)
    index = int(means.argmin())
    words = [*(f"{name} {_value(value)}" for name, value in row.settings[result.cell.setting].items())]
    words += [row.variants[index]] if row.variants[index] else []
    return Best(row, ", ".join(words), result.values[:, index], result.epsilon, len(row.settings) * len(row.variants))


def _value(value: object) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
