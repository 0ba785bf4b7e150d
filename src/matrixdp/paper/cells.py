"""Cells: the trials of one row at one setting, run, checked, and stored so that an interrupted run can resume."""

from __future__ import annotations

import hashlib
import json
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from matrixdp.datasets import load_table
from matrixdp.noise import Stream
from matrixdp.paper import component, covariance, directions, gains, regression, regression_beyond, subspace
from matrixdp.paper.experiment import registered_rows
from matrixdp.paper.files import write_atomically
from matrixdp.paper.guarantee import check_guarantee
from matrixdp.paper.rows import Row
from matrixdp.types import Floats
from matrixdp.version import __version__

_FORMAT = 1
PART_ROWS: dict[str, Callable[[], list[Row]]] = {
    "exp1": lambda: regression.rows() + regression_beyond.rows() + registered_rows({"records": regression.EXPERIMENT}),
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
    "subspace": subspace.rows,
    "directions": directions.rows,
    "gains": gains.rows,
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
