"""Points on two processes, with the time left, resumed where an earlier run stopped."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import TextIO

from matrixdp.paper.points import Point, Result, load_result, part_rows, run_point, store_result


class Progress:
    """One line that says how far a run is and how long it will take; rewritten in place on a terminal.

    Parameters
    ----------
    total : int
        Number of steps.
    out : text stream, optional
        Standard error by default.
    """

    def __init__(self, total: int, out: TextIO | None = None) -> None:
        self._total, self._done, self._fresh = total, 0, 0
        self._out = sys.stderr if out is None else out
        self._started = self._spoken = time.monotonic()

    def step(self, what: str, *, stored: bool = False) -> None:
        """One step is done; `stored` if it came from an earlier run, and says nothing about speed."""
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


def run_points(asked: Sequence[Point], folder: Path, *, processes: int = 2, out: TextIO | None = None) -> list[Result]:
    """Results of all points, in their order; those already in `folder` are not run again."""
    progress = Progress(len(asked), out)
    found: dict[Point, Result] = {}
    for point in asked:
        stored = load_result(point, folder)
        if stored is not None:
            found[point] = stored
            progress.step(_name(point), stored=True)
    missing = [point for point in asked if point not in found]
    fresh = _serial(missing) if processes == 1 or len(missing) < 2 else _parallel(missing, processes)
    for result in fresh:
        store_result(result, folder)
        found[result.point] = result
        progress.step(_name(result.point))
    return [found[point] for point in asked]


def _serial(missing: Sequence[Point]) -> Iterable[Result]:
    """Results one after the other; small matrices want one thread."""
    from threadpoolctl import threadpool_limits

    for point in missing:
        with threadpool_limits(1):
            result = run_point(point)
        yield result


def _parallel(missing: Sequence[Point], processes: int) -> Iterable[Result]:
    """Results as they come. Processes are started anew, not forked, so that no thread's lock is copied."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_start_worker) as pool:
        waiting: set[Future[Result]] = {pool.submit(run_point, point) for point in missing}
        try:
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _start_worker() -> None:
    """One thread each, which is faster than two; an interruption is the parent's to handle."""
    from threadpoolctl import threadpool_limits

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threadpool_limits(1)


def _name(point: Point) -> str:
    return f"{point.part}: {part_rows(point.part)[point.row].label}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
