"""Trials of one row at one setting: run, checked, kept in a file, and found again after an interruption."""

from __future__ import annotations

import hashlib
import json
import os
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
from matrixdp.paper import component, covariance, directions, regression, regression_beyond, subspace
from matrixdp.paper.guarantee import check_guarantee
from matrixdp.paper.rows import Row
from matrixdp.types import Floats
from matrixdp.version import __version__

_FORMAT = 1
PARTS: dict[str, Callable[[], list[Row]]] = {
    "exp1": lambda: regression.rows() + regression_beyond.rows(),
    "exp2": lambda: component.rows() + component.beyond(),
    "exp3": lambda: covariance.rows() + covariance.beyond(),
    "subspace": subspace.rows,
    "directions": directions.rows,
}
DATA = {
    "exp1": ("liver",),
    "exp2": ("movement",),
    "exp3": ("ctg",),
    "subspace": ("liver",),
    "directions": ("liver", "movement", "ctg"),
}


@dataclass(frozen=True)
class Point:
    """What identifies the trials of one row at one setting."""

    part: str
    row: str
    setting: int
    trials: int
    seed: int

    @property
    def path(self) -> str:
        """Name of its file, which holds everything that the result depends on."""
        row = part_rows(self.part)[self.row]
        what = [self.part, self.row, dict(row.settings[self.setting]), row.readings, self.trials, self.seed]
        content = json.dumps([_FORMAT, __version__, origins(self.part), *what])
        digest = hashlib.sha256(content.encode()).hexdigest()[:20]
        return f"{self.part}-{digest}.json"


@dataclass(frozen=True, eq=False)
class Result:
    """Errors of shape (trials, readings), and the largest epsilon that a trial really cost."""

    point: Point
    values: Floats
    epsilon: float | None
    seconds: float

    def to_json(self) -> str:
        """As text."""
        return json.dumps(
            {
                "point": vars(self.point),
                "values": self.values.tolist(),
                "epsilon": self.epsilon,
                "seconds": self.seconds,
            }
        )


def points(part: str, *, trials: int, seed: int) -> list[Point]:
    """All points of a part."""
    return [Point(part, row.key, i, trials, seed) for row in part_rows(part).values() for i in range(len(row.settings))]


@cache
def part_rows(part: str) -> Mapping[str, Row]:
    """Rows of a part by key."""
    return {row.key: row for row in PARTS[part]()}


@cache
def origins(part: str) -> str:
    """Whether the data of a part are the published ones or stand-ins; part of a result's identity."""
    return ", ".join(f"{name} simulated" if load_table(name, simulate=True).simulated else name for name in DATA[part])


def forget_data() -> None:
    """Load the data anew when they are next needed, for a process in which ``MATRIXDP_DATA`` has changed."""
    for cached in (regression.records, component.truth, covariance.truth, origins):
        cached.cache_clear()


def run_point(point: Point) -> Result:
    """Run all trials of a point, each from a seeded stream of its own, and check each one's guarantee."""
    row = part_rows(point.part)[point.row]
    started = time.perf_counter()
    run = row.build(row.settings[point.setting])
    label = zlib.crc32(f"{point.part} {point.row} {point.setting}".encode())
    stream = Stream(seed=point.seed).child(label)
    values, costs = [], []
    for trial in range(point.trials):
        outcome = run(trial, stream.child(trial))
        check_guarantee(row.label, row.column, outcome.spent)
        values.append(outcome.values)
        if outcome.spent is not None:
            costs.append(outcome.spent.epsilon)
    return Result(point, np.array(values), max(costs, default=None), time.perf_counter() - started)


def load_result(point: Point, folder: Path) -> Result | None:
    """The result of an earlier run, or None; a file that an interruption spoiled counts for nothing."""
    try:
        content: dict[str, Any] = json.loads((folder / point.path).read_text("utf-8"))
        values = np.array(content["values"], np.float64)
        if content["point"] != vars(point) or values.ndim != 2 or len(values) != point.trials:
            return None
        return Result(point, values, content["epsilon"], float(content["seconds"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def store_result(result: Result, folder: Path) -> None:
    """Keep a result; its file is complete or not there."""
    write_atomically(folder / result.point.path, result.to_json())


def write_atomically(path: Path, text: str) -> None:
    """Write a file beside its place and move it there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}")
    part.write_text(text, "utf-8")
    part.replace(path)
