"""Large draws in numbered blocks, on several threads.

A large draw takes a secret from its stream, and each block has a stream of its own, derived from that secret and the
number of the block. So the draws do not depend on the number of threads, and two draws never share a block's stream:
not in two threads, since words of a stream are handed out once, and not after a fork, which gives the stream a new key.

The threads exist during a draw only. The calling thread takes blocks, too, and takes all of them if no other thread
can be started.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextvars import copy_context

from matrixdp.errors import ParameterError, show
from matrixdp.noise.stream import BlockKey, Stream

BLOCK = 1 << 18  # entries of a block; a draw of at most one block is not divided
_VARIABLE = "MATRIXDP_THREADS"
_MOST = 16  # threads by default: each needs up to 6 MiB, and Python's lock leaves little to gain from more

Draw = Callable[[Stream, slice], None]


def draw_blocks(stream: Stream, size: int, make_draw: Callable[[], Draw], *, block: int = BLOCK) -> None:
    """Call ``draw(stream_of_the_block, places)`` for each block of `size` places, on several threads.

    `make_draw` is called once in each thread and returns `draw`, with buffers of its own. What `draw` does depends on
    its arguments only, since blocks are drawn in any order, and `block` must not depend on the number of threads.
    """
    key = BlockKey(stream)
    starts = iter(range(0, size, block))
    lock, failures = threading.Lock(), list[BaseException]()

    def take_blocks() -> None:
        try:
            draw = make_draw()
            while not failures:
                with lock:
                    start = next(starts, None)
                if start is None:
                    return
                draw(key.stream(start // block), slice(start, min(start + block, size)))
        except BaseException as error:  # among them KeyboardInterrupt, which ends the other threads, too
            failures.append(error)

    helpers = _start_threads(take_blocks, min(THREADS, -(-size // block)) - 1)
    take_blocks()
    for helper in helpers:
        helper.join()
    if failures:
        raise failures[0]


def _start_threads(target: Callable[[], None], count: int) -> list[threading.Thread]:
    """Up to `count` threads, each in a copy of the caller's context, so that `numpy.errstate` holds in them."""
    started = list[threading.Thread]()
    for _ in range(count):
        thread = threading.Thread(target=copy_context().run, args=(target,), name="matrixdp-noise")
        try:
            thread.start()
        except RuntimeError:  # the system has no more threads, or Python is exiting
            break
        started.append(thread)
    return started


def read_threads(value: str | None) -> int:
    """Number of threads for a value of ``MATRIXDP_THREADS``: one per core that this process may use by default."""
    if not value:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        return min(cores or 1, _MOST)
    if not value.isdecimal() or int(value) < 1:
        raise ParameterError(f"{_VARIABLE} must be a number of threads, at least 1, got {show(value)} instead.")
    return int(value)


THREADS = read_threads(os.environ.get(_VARIABLE))  # read once: an error must not come after a charge
