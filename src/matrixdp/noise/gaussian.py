"""Exact Gaussian integers: ``floor(G)`` with ``G ~ N(0, 4^bits)``, to the last bit.

One 64-bit word is one candidate: 14 bits choose a cell of the envelope, one the sign, 49 the place in the cell's
block, on a grid of 2^-54 standard deviations. 96% of the words fall into cells that lie entirely under the curve and
cost a table lookup. The others are compared with the curve in float64, whose error is bounded (`docs/noise.md`);
where the bound cannot decide, in integer interval arithmetic with as many further random bits as it takes, for the
height and for the digits of the place beyond the word.

The floor of a finer draw, shifted right, is the floor of the coarser one, so one table serves every `bits`.

Large draws are made in numbered blocks, on several threads. Such a draw takes a secret from its stream, and each block
has a stream of its own, derived from that secret and the number of the block. So the draws do not depend on the number
of threads, and two draws never share a block's stream: not in two threads, since words of a stream are handed out once,
and not after a fork, which gives the stream a new key. The threads exist during a draw only. The calling thread takes
blocks, too, and takes all of them if no other thread can be started.
"""

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context

import numpy as np
from numpy.typing import NDArray

from matrixdp.checks import check_integer
from matrixdp.device import is_on_device
from matrixdp.errors import ParameterError, show
from matrixdp.noise.envelope import FINEST, PLACE_BITS, envelope, narrow, settle
from matrixdp.noise.stream import BlockKey, Stream

MAX_BITS = 52
BLOCK = 1 << 18  # entries of a block
_VARIABLE = "MATRIXDP_THREADS"
_MOST_THREADS = 16  # by default: each needs up to 6 MiB, and Python's lock leaves little to gain from more
_PIECE = 1 << 15  # words that are handled at a time, so that they stay in the processor's cache
_PIECE_OF_MANY = 1 << 17  # the same on several threads, which take turns with Python's lock after each operation
_PLACE_SHIFT, _CELL_SHIFT = np.array(PLACE_BITS, np.uint64), np.array(PLACE_BITS + 1, np.uint64)
_HEIGHT_STEP = np.array(2.0**-64)

Draw = Callable[[Stream, slice], None]


def draw_gaussian(
    stream: Stream, bits: int, *, shape: int | tuple[int, ...] | None = None, out: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Return independent, exact draws of ``floor(G)``, ``G ~ N(0, 4^bits)``.

    More than 2^18 are drawn on several threads, whose number does not change the draws.

    Parameters
    ----------
    stream : Stream
        Source of the random bits.
    bits : int
        Logarithm to base 2 of the standard deviation, from 0 to 52.
    shape : int or tuple of int, optional
        Shape of the result, unless `out` is given.
    out : contiguous int64 array of any shape, optional
        Array for the result; one on a GPU (CuPy, PyTorch, JAX) is filled there, from ChaCha20 with a key of the stream.

    Raises
    ------
    OverflowError
        If a draw does not fit into int64: beyond 2^(63 - bits) standard deviations, with a probability below
        exp(-2^21).

    Examples
    --------
    >>> draw_gaussian(Stream(seed=1), 40, shape=(2, 3)).shape
    (2, 3)
    """
    bits = check_integer(bits, "bits", at_least=0, at_most=MAX_BITS)
    if out is not None and is_on_device(out):
        from matrixdp.noise.indexed_draws import fill_on_device  # which needs this module

        fill_on_device(stream, bits, out)
        return out
    if out is None:
        if shape is None:
            raise ParameterError("shape must be given when out is not.")
        try:
            out = np.empty(shape, np.int64)
        except (TypeError, ValueError):
            raise ParameterError(
                f"shape must be a non-negative integer or a tuple of them, got {show(shape)} instead."
            ) from None
    if not isinstance(out, np.ndarray) or out.dtype != np.int64 or not out.flags.forc or not out.flags.writeable:
        raise ParameterError("out must be a contiguous, writeable array of int64; omit it, and copy the result.")
    if shape is not None and out.shape != np.empty(shape, np.void).shape:
        raise ParameterError(f"shape must be that of out, {out.shape}, or left out, got {show(shape)} instead.")
    flat = out.reshape(-1) if out.flags.c_contiguous else out.T.reshape(-1)

    def make_draw() -> Draw:
        sampler = Sampler(bits, flat.size)
        return lambda block, places: sampler.fill(block, flat[places])

    draw_blocks(stream, flat.size, make_draw)
    return out


def draw_normal(stream: Stream, shape: int | tuple[int, ...]) -> NDArray[np.float64]:
    """Return standard normals as floats: exact draws on a grid of 2^-52, moved to the middle of their step.

    For simulation. Never add these to private data: the low bits of a float sum reveal the answer.
    """
    out = np.asarray(draw_gaussian(stream, MAX_BITS, shape=shape) + 0.5)
    out *= 2.0**-MAX_BITS
    return out


def draw_blocks(stream: Stream, size: int, make_draw: Callable[[], Draw], *, block: int = BLOCK) -> None:
    """Call ``draw(stream_of_the_block, places)`` for each block of `size` places, on several threads.

    A draw of at most one block is made from the stream itself. `make_draw` is called once in each thread and returns
    `draw`, with buffers of its own. What `draw` does depends on its arguments only, since blocks are drawn in any
    order, and `block` must not depend on the number of threads.
    """
    if size <= block:
        make_draw()(stream, slice(0, size))
        return
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

    with ThreadPoolExecutor(THREADS, "matrixdp-noise") as helpers:
        with suppress(RuntimeError):  # the system has no more threads, or Python is exiting
            for _ in range(min(THREADS, -(-size // block)) - 1):
                # In a copy of the caller's context, so that `numpy.errstate` holds in the thread.
                helpers.submit(copy_context().run, take_blocks)
        take_blocks()
    if failures:
        raise failures[0]


def read_threads(value: str | None) -> int:
    """Number of threads for a value of ``MATRIXDP_THREADS``: one per core that this process may use by default."""
    if not value:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        return min(cores or 1, _MOST_THREADS)
    if not value.isdecimal() or int(value) < 1:
        raise ParameterError(f"{_VARIABLE} must be a number of threads, at least 1, got {show(value)} instead.")
    return int(value)


THREADS = read_threads(os.environ.get(_VARIABLE))  # read once: an error must not come after a charge


class Sampler:
    """Draws on one grid of ``2^-bits`` standard deviations, with buffers for a draw of `size` entries, used again."""

    def __init__(self, bits: int, size: int) -> None:
        self._shift = np.array(FINEST - bits)  # without dimensions: faster than a number in short operations
        self._piece = _PIECE if size <= BLOCK or THREADS == 1 else _PIECE_OF_MANY
        self._words = np.empty(min(size, self._piece), np.uint64)
        self._index = np.empty(self._words.size, np.int64)

    def fill(self, stream: Stream, out: NDArray[np.int64]) -> None:
        """Fill a contiguous vector with draws."""
        pending = self._propose(stream, out)
        while pending.size:
            values = np.empty(pending.size, np.int64)
            left = self._propose(stream, values)
            out[pending] = values
            pending = pending[left]

    def _propose(self, stream: Stream, out: NDArray[np.int64]) -> NDArray[np.intp]:
        """Fill `out` with one candidate per entry; return the indices of those that were rejected."""
        table = envelope()
        rough, candidates = self._place(stream, out)
        if not rough.size:
            return rough
        heights = stream.words(rough.size)
        uniform = heights.astype(np.float64) * _HEIGHT_STEP
        above = table.compare(candidates, uniform)
        rejected = above <= table.error
        in_tail = candidates >> _CELL_SHIFT == table.tail
        unsure = (np.abs(above) <= table.error) | (in_tail & (uniform < table.tail_bound))
        for i in unsure.nonzero()[0]:  # for which floats cannot decide
            value = settle(stream, int(candidates[i]), int(heights[i]))
            rejected[i] = value is None
            if value is not None:
                out[rough[i]] = narrow(value >> int(self._shift))
        return rough[rejected]

    def _place(self, stream: Stream, out: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.uint64]]:
        """Fill `out` with one candidate per entry; return where cells are not certain, and the words there."""
        if out.size > self._piece:
            starts = range(0, out.size, self._piece)
            found = [self._place(stream, out[start : start + self._piece]) for start in starts]
            rough = np.concatenate([places + start for start, (places, _) in zip(starts, found, strict=True)])
            return rough, np.concatenate([words for _, words in found])
        table = envelope()
        words, index = stream.words(out.size, out=self._words[: out.size]), self._index[: out.size]
        np.right_shift(words, _PLACE_SHIFT, out=index.view(np.uint64))
        table.masks.take(index, out=out, mode="clip")  # never out of range: 'clip' spares a buffer
        np.bitwise_xor(out, words.view(np.int64), out=out)
        np.right_shift(out, self._shift, out=out)
        rough = (words >= table.first_rough).nonzero()[0]
        return rough, words.take(rough)
