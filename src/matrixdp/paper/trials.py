"""Trials: the parts that have them, cells that are run, checked and stored, and the best setting of each row.

A cell is the trials of one row at one setting. An interrupted run resumes from what is stored. The best setting is
chosen by the mean error over the trials, as the paper reports it: this uses the test error, so it is optimistic, and on
private data it would cost budget; the paper says so in a footnote, and the report repeats it.
"""

import hashlib
import json
import math
import signal
import sys
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import groupby
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TextIO

import click
import numpy as np
from scipy.special import stdtrit

from matrixdp.datasets import load_table
from matrixdp.noise import Stream
from matrixdp.paper import components, gains, regression
from matrixdp.paper.experiment import Figure, Row, check_guarantee, read_published
from matrixdp.release.output_folder import write_file
from matrixdp.release.registered import load_plugins
from matrixdp.types import Floats
from matrixdp.version import __version__

_FORMAT = 1


@dataclass(frozen=True)
class Part:
    """A part of the reproduction, and a section of its report."""

    title: str
    rows: Callable[[], list[Row]] = list  # of its table, if it has trials
    data: tuple[str, ...] = ()  # names of its data sets
    error: str = ""  # the name of its error
    caption: str = ""  # of its table
    needs: tuple[str, ...] = ()  # other parts that it compares with


_THREE, _EVERY = ("exp1", "exp2", "exp3"), ("liver", "movement", "ctg")
_RMSE, _VARIANCE, _RESIDUAL = "RMSE", "error in captured variance", "residual sum of squares"
_LIVER = f"Exp. I: regression on the Liver data, {_RMSE} on held-out records"
_MOVEMENT = f"Exp. II: first component of the Movement data, {_VARIANCE}"
_CTG = f"Exp. III: covariance of the Cardiotocography data, {_RESIDUAL}"
_TWO = f"Subspace projection: Exp. I with ALT and Y alone, {_RMSE}"
PARTS = {
    "exp1": Part("Exp. I: regression", regression.rows, ("liver",), _RMSE, _LIVER),
    "exp2": Part("Exp. II: first component", components.first_rows, ("movement",), _VARIANCE, _MOVEMENT),
    "exp3": Part("Exp. III: covariance", components.all_rows, ("ctg",), _RESIDUAL, _CTG),
    "gains": Part("Where directional noise pays", gains.gain_rows, _EVERY, needs=_THREE),
    "directions": Part("Noise directions", gains.direction_rows, _EVERY),
    "subspace": Part("Projection", regression.rows_projected, ("liver",), _RMSE, _TWO, ("exp1",)),
    "runtime": Part("Runtime"),
    "claims": Part("Claims", needs=(*_THREE, "directions", "runtime", "subspace")),
    "pictures": Part("Noise and design space"),
}
EXPERIMENTS = {name: PARTS[name] for name in _THREE}


def list_published(part: str) -> dict[str, Figure]:
    """The paper's figures, by row."""
    return {row: Figure(*values) for row, values in read_published().get(part, {}).items()}


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


@dataclass(frozen=True)
class Cell:
    """What identifies the trials of one row at one setting."""

    part: str
    row: str
    setting: int
    trials: int
    seed: int

    @property
    def defined(self) -> Row:
        """The row whose key it has."""
        return part_rows(self.part)[self.row]

    @property
    def path(self) -> str:
        """Name of its file, a hash of everything that the result depends on."""
        row = self.defined
        what = [self.part, self.row, dict(row.settings[self.setting]), row.variants, self.trials, self.seed]
        what += [row.source] if row.source else []
        content = json.dumps([_FORMAT, __version__, origins(self.part), *what])
        digest = hashlib.sha256(content.encode()).hexdigest()[:20]
        return f"{self.part}-{digest}.json"


@dataclass(frozen=True, eq=False)
class CellResult:
    """Errors of shape (trials, variants), of which the best variant counts, and the largest epsilon of a trial."""

    cell: Cell
    values: Floats
    epsilon: float | None

    @property
    def row(self) -> Row:
        """The row of its cell."""
        return self.cell.defined

    @property
    def _variant(self) -> int:
        return int(self.values.mean(axis=0).argmin())

    @property
    def errors(self) -> Floats:
        """Errors of the best variant, of shape (trials,)."""
        return np.asarray(self.values[:, self._variant])

    @property
    def setting(self) -> str:
        """The setting and the best variant as text."""
        words = [
            f"{name} {'none' if value is None else f'{value:g}' if isinstance(value, float) else value}"
            for name, value in self.row.settings[self.cell.setting].items()
        ]
        return ", ".join(filter(None, [*words, self.row.variants[self._variant]]))

    @cached_property
    def summary(self) -> Figure:
        """Mean of the trials and half the width of Student's 95% interval; NaN for one trial."""
        n, mean = len(self.errors), float(self.errors.mean())
        spread = float(self.errors.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan
        return Figure(mean, float(stdtrit(n - 1, 0.975)) * spread)

    @property
    def mean(self) -> float:
        """Mean of the trials."""
        return self.summary.mean


def part_cells(part: str, *, trials: int, seed: int) -> list[Cell]:
    """All cells of a part."""
    return [Cell(part, row.key, i, trials, seed) for row in part_rows(part).values() for i in range(len(row.settings))]


def run_cell(cell: Cell) -> CellResult:
    """Run all trials of a cell, each from a seeded stream of its own, and check each one's guarantee."""
    row = cell.defined
    run = row.build(row.settings[cell.setting])
    label = zlib.crc32(f"{cell.part} {cell.row} {cell.setting}".encode())
    stream = Stream(seed=cell.seed).child(label)
    outcomes = [run(trial, stream.child(trial)) for trial in range(cell.trials)]
    for outcome in outcomes:
        check_guarantee(row.label, row.column, outcome)
    cost = None if row.column is None else max(outcome.epsilon for outcome in outcomes)
    return CellResult(cell, np.array([outcome.result for outcome in outcomes]), cost)


def store_result(result: CellResult, folder: Path) -> None:
    """Store a result in its file."""
    content = {"cell": vars(result.cell), "values": result.values.tolist(), "epsilon": result.epsilon}
    write_file(folder / result.cell.path, json.dumps(content))


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


def run_cells(
    cells: Sequence[Cell], folder: Path, *, processes: int = 2, out: TextIO | None = None, plugins: Sequence[str] = ()
) -> list[CellResult]:
    """Results of all cells, in their order; those in `folder` are not run again. Workers import `plugins` first.

    If `out`, by default standard error, is a terminal, it shows a bar with the time left.
    """
    found = {cell: stored for cell in cells if (stored := load_result(cell, folder)) is not None}
    missing = [cell for cell in cells if cell not in found]
    alone = processes == 1 or len(missing) < 2
    options: Any = {"show_pos": True, "item_show_func": lambda cell: cell and f"{cell.part}: {cell.defined.label}"}
    bar: Any = click.progressbar(length=len(missing), label="Trials", file=out or sys.stderr, **options)
    with bar:
        for result in _run_here(missing) if alone else _run_parallel(missing, processes, plugins):
            store_result(result, folder)
            found[result.cell] = result
            bar.update(1, result.cell)
    return [found[cell] for cell in cells]


def _run_here(missing: Sequence[Cell]) -> Iterable[CellResult]:
    """Results one after the other, on one thread, which is fastest for small matrices."""
    from threadpoolctl import threadpool_limits

    for cell in missing:
        with threadpool_limits(1):
            result = run_cell(cell)
        yield result


def _run_parallel(missing: Sequence[Cell], processes: int, plugins: Sequence[str]) -> Iterable[CellResult]:
    """Results as they come. Processes are spawned, not forked, so that no thread's lock is copied."""
    with ProcessPoolExecutor(processes, get_context("spawn"), _start_worker, (list(plugins),)) as pool:
        futures = [pool.submit(run_cell, cell) for cell in missing]
        try:
            yield from (future.result() for future in as_completed(futures))
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _start_worker(plugins: list[str]) -> None:
    """One thread each, which is faster than two; interruptions are handled by the parent."""
    from threadpoolctl import threadpool_limits

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threadpool_limits(1)
    load_plugins(plugins)


def select_best(results: Sequence[CellResult]) -> dict[str, CellResult]:
    """The result with the best setting of each row of a part, by key."""
    rows = groupby(results, key=lambda one: one.cell.row)
    return {key: min(settings, key=lambda one: one.mean) for key, settings in rows}
