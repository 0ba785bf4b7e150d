"""Records worked on by the threads of one machine."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from threading import Event, Lock
from typing import Any, TypeVar

import numpy as np

from matrixdp.errors import ParameterError, show
from matrixdp.records.opening import register_engine
from matrixdp.records.records import Task
from matrixdp.records.work import InMemoryPart, Part, PartResult, run_part, sanitise_errors

T = TypeVar("T")


class Threads:
    """As many threads as this process has cores, unless a number is given; BLAS uses one in each.

    Examples
    --------
    >>> parts = [InMemoryPart("first", [[1, 2]]), InMemoryPart("second", [[3, 4]])]
    >>> sorted(done.result for done in Threads(2).run(lambda number, blocks: sum(map(sum, blocks)), parts, None))
    [3, 7]
    """

    def __init__(self, workers: int | None = None) -> None:
        allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        self.workers: int = workers or allowed or 1

    def run(
        self, task: Task[T], parts: Iterable[Part], columns: Sequence[str] | None, *, whole: bool = False
    ) -> Iterator[PartResult[T]]:
        """What the task makes of each part, in any order; few parts are shared out block by block, unless `whole`."""
        if not whole and isinstance(parts, Sequence) and len(parts) < self.workers:
            parts = _split(parts, columns)
        stop, running = Event(), set[Future[PartResult[T]]]()
        with one_blas_thread(), ThreadPoolExecutor(self.workers, thread_name_prefix="matrixdp") as pool:
            try:
                for number, part in enumerate(parts):
                    running.add(pool.submit(run_part, task, number, part, columns, stop))
                    if len(running) > self.workers:  # one waits; more would only take memory
                        finished, running = wait(running, return_when=FIRST_COMPLETED)
                        yield from (future.result() for future in finished)
                while running:
                    finished, running = wait(running, return_when=FIRST_COMPLETED)
                    yield from (future.result() for future in finished)
            finally:
                stop.set()
                pool.shutdown(wait=True, cancel_futures=True)


@register_engine(
    lambda workers: workers is None or (isinstance(workers, int | np.integer) and not isinstance(workers, bool))
)
def _make_threads(workers: int | None) -> Threads:
    if workers is not None and workers < 1:
        raise ParameterError(f"workers must be at least 1 thread, got {show(workers)} instead.")
    return Threads(None if workers is None else int(workers))


def _split(parts: Iterable[Part], columns: Sequence[str] | None) -> Iterator[Part]:
    """Blocks of the parts, read here, one after the other."""
    for part in parts:
        yield from _read(part, columns)


def _read(part: Part, columns: Sequence[str] | None) -> Iterator[Part]:
    blocks = part.blocks(columns)
    while (block := sanitise_errors(part.place, lambda: next(blocks, None))) is not None:
        yield InMemoryPart(part.place, (block,))


_pinning = Lock()
_pins: list[Any] = [0, None]  # how many want BLAS on one thread, and what undoes it


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS on one thread, where the parts have threads of their own; until the last of those who asked for it ends."""
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        yield
        return
    with _pinning:
        _pins[0] += 1
        if _pins[0] == 1:
            _pins[1] = threadpool_limits(1)
    try:
        yield
    finally:
        with _pinning:
            _pins[0] -= 1
            if _pins[0] == 0:
                _pins[1].restore_original_limits()
