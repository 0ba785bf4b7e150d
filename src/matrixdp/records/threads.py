"""Engine that processes parts on the threads of this process."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from threading import Event
from typing import TypeVar

import numpy as np

from matrixdp.errors import ParameterError, show
from matrixdp.records.blas import one_blas_thread
from matrixdp.records.opening import register_engine
from matrixdp.records.parts import InMemoryPart, Part, PartResult, run_part
from matrixdp.records.read_errors import sanitise_errors
from matrixdp.records.records import Task

T = TypeVar("T")


class Threads:
    """A pool of threads, with BLAS on one thread in each.

    Parameters
    ----------
    workers : int, optional
        Number of threads; by default, one per core that this process may use.

    Examples
    --------
    >>> parts = [InMemoryPart("first", [[1, 2]]), InMemoryPart("second", [[3, 4]])]
    >>> sorted(part.result for part in Threads(2).run(lambda number, blocks: sum(map(sum, blocks)), parts))
    [3, 7]
    """

    in_process = True

    def __init__(self, workers: int | None = None) -> None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        self.workers: int = workers or cores or 1

    def run(self, task: Task[T], parts: Iterable[Part], *, whole: bool = False) -> Iterator[PartResult[T]]:
        """Yield the result of `task` on each part, in any order.

        Fewer parts than threads are split into their blocks, unless `whole`.
        """
        if not whole and isinstance(parts, Sequence) and len(parts) < self.workers:
            parts = _split_into_blocks(parts)
        stop, running = Event(), set[Future[PartResult[T]]]()
        with one_blas_thread(), ThreadPoolExecutor(self.workers, thread_name_prefix="matrixdp") as pool:
            try:
                for number, part in enumerate(parts):
                    running.add(pool.submit(run_part, task, number, part, stop))
                    if len(running) > self.workers:  # at most one part is queued, to bound the memory
                        finished, running = wait(running, return_when=FIRST_COMPLETED)
                        yield from (future.result() for future in finished)
                while running:
                    finished, running = wait(running, return_when=FIRST_COMPLETED)
                    yield from (future.result() for future in finished)
            finally:
                stop.set()
                pool.shutdown(wait=True, cancel_futures=True)


def _split_into_blocks(parts: Iterable[Part]) -> Iterator[Part]:
    """Read the parts one after the other; each block becomes a part of its own."""
    for part in parts:
        blocks = part.blocks()
        while (block := sanitise_errors(part.place, next, blocks, None)) is not None:
            yield InMemoryPart(part.place, (block,))


@register_engine(
    lambda workers: workers is None or (isinstance(workers, int | np.integer) and not isinstance(workers, bool))
)
def _make_threads(workers: int | None) -> Threads:
    if workers is not None and workers < 1:
        raise ParameterError(f"workers must be at least 1 thread, got {show(workers)} instead.")
    return Threads(None if workers is None else int(workers))
