"""Run the experiments, in parallel and with progress, and write the report."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import TextIO

from matrixdp.checks import check_integer
from matrixdp.errors import ParameterError
from matrixdp.paper import trials as store
from matrixdp.paper.report import PARTS, Run, write_report
from matrixdp.paper.tables import SIMULATED
from matrixdp.paper.trials import Cell, CellResult, part_rows, run_cell
from matrixdp.release.registered import load_plugins


class Progress:
    """One line with the number of finished steps and the time left; rewritten in place on a terminal."""

    def __init__(self, total: int, out: TextIO | None = None) -> None:
        self._total, self._done, self._fresh = total, 0, 0
        self._out = sys.stderr if out is None else out
        self._started = self._spoken = time.monotonic()

    def step(self, what: str, *, stored: bool = False) -> None:
        """Count a step; `stored` if it came from an earlier run, so that it does not count towards the speed."""
        self._done += 1
        self._fresh += not stored
        now = time.monotonic()
        terminal = self._out.isatty()
        if not terminal and self._done < self._total and now - self._spoken < 5.0:
            return
        self._spoken = now
        left = self._total - self._done
        time_left = f", about {_duration((now - self._started) / self._fresh * left)} left" if self._fresh else ""
        line = f"[{self._done}/{self._total}] {what}{time_left if left else ''}"
        self._out.write(f"\r\x1b[K{line[:110]}" if terminal else f"{line}\n")
        if terminal and not left:
            self._out.write("\n")
        self._out.flush()


def run_cells(
    cells: Sequence[Cell], folder: Path, *, processes: int = 2, out: TextIO | None = None, plugins: Sequence[str] = ()
) -> list[CellResult]:
    """Results of all cells, in their order; those already in `folder` are not run again.

    Worker processes import the modules in `plugins` first, as the caller must have done.
    """
    progress = Progress(len(cells), out)
    found: dict[Cell, CellResult] = {}
    for cell in cells:
        stored = store.load_result(cell, folder)
        if stored is not None:
            found[cell] = stored
            progress.step(_name(cell), stored=True)
    missing = [cell for cell in cells if cell not in found]
    fresh = _serial(missing) if processes == 1 or len(missing) < 2 else _parallel(missing, processes, plugins)
    for result in fresh:
        store.store_result(result, folder)
        found[result.cell] = result
        progress.step(_name(result.cell))
    return [found[cell] for cell in cells]


def _serial(missing: Sequence[Cell]) -> Iterable[CellResult]:
    """Results one after the other, on one thread, which is fastest for small matrices."""
    from threadpoolctl import threadpool_limits

    for cell in missing:
        with threadpool_limits(1):
            result = run_cell(cell)
        yield result


def _parallel(missing: Sequence[Cell], processes: int, plugins: Sequence[str]) -> Iterable[CellResult]:
    """Results as they come. Processes are spawned, not forked, so that no thread's lock is copied."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        processes, mp_context=context, initializer=_start_worker, initargs=(list(plugins),)
    ) as pool:
        futures = [pool.submit(run_cell, cell) for cell in missing]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _start_worker(plugins: list[str]) -> None:
    """One thread each, which is faster than two; interruptions are handled by the parent."""
    from threadpoolctl import threadpool_limits

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threadpool_limits(1)
    load_plugins(plugins)


def _name(cell: Cell) -> str:
    return f"{cell.part}: {part_rows(cell.part)[cell.row].label}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def reproduce(
    parts: Sequence[str] = (),
    trials: int = 100,
    seed: int = 0,
    out: Path | str = "matrixdp-paper",
    *,
    processes: int = 2,
    progress: TextIO | None = None,
    plugins: Sequence[str] = (),
) -> Path:
    """Repeat the paper's experiments, write ``report.html``, figures and tables, and return the path of the report.

    `parts` are keys of `PARTS`, all by default; what these need is run as well. An error bar needs two `trials`. The
    same `seed` gives the same figures. Trials that are stored in the folder `out` are not run again, so an interrupted
    run resumes. `progress` is written to standard error by default. `plugins` are modules that register mechanisms
    (`matrixdp.release.register_mechanism`), each of which gets a row in the tables of its tasks.

    Privacy
    -------
    Simulations on public data with seeded noise: they protect nothing.
    """
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        raise ParameterError(f"parts must be among {', '.join(PARTS)}, got {', '.join(unknown)} instead.")
    wanted = set(parts or PARTS)
    wanted |= {need for part in tuple(wanted) for need in PARTS[part].needs}
    chosen = [part for part in PARTS if part in wanted]
    check_integer(trials, "trials", at_least=2, rule="an integer of at least 2, since an error bar needs two trials")
    for name, value, least in (("seed", seed, 0), ("processes", processes, 1)):
        check_integer(value, name, at_least=least, rule=f"an integer of at least {least}")
    load_plugins(plugins)
    part_rows.cache_clear()
    out = Path(out)
    measured = [part for part in store.PARTS if part in chosen]
    cells = [cell for part in measured for cell in store.part_cells(part, trials=trials, seed=seed)]
    if store.is_simulated(*measured):  # before the run, not only in the report
        where = sys.stderr if progress is None else progress
        where.write(f"{SIMULATED}. Set MATRIXDP_DATA to a folder with liver.csv, movement.csv and ctg.csv.\n")
    results = run_cells(cells, out / "cache", processes=processes, out=progress, plugins=plugins)
    by_part = {part: [result for result in results if result.cell.part == part] for part in measured}
    return write_report(Run(chosen, by_part, out, trials=trials, seed=seed))
