"""The steps of the sampler that touch every word, compiled by numba (extra ``fast``).

They give the same draws as the steps in NumPy, from the same words, in half of the time. Importing numba takes as long
as 10^8 draws, so it is left to a draw of that size; smaller draws use what an earlier one has loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.noise.envelope import PLACE_BITS, Envelope

WORTH = 1 << 27  # draws that take as long as importing numba
_PLACE = (1 << PLACE_BITS) - 1
_MIDDLE = 2.0 ** (PLACE_BITS - 1)


@dataclass(frozen=True)
class CompiledSteps:
    """Functions that numba has compiled; each releases Python's lock."""

    place_words: Callable[..., int]
    compare_words: Callable[..., int]

    def place(
        self, table: Envelope, words: NDArray[np.uint64], shift: int, out: NDArray[np.int64], index: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Fill `out` with one candidate per word; return the positions of rough ones; `index` is a buffer."""
        return index[: self.place_words(words, table.masks, table.first_rough[()], shift, out, index)].copy()

    def compare(
        self, table: Envelope, words: NDArray[np.uint64], heights: NDArray[np.uint64]
    ) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Whether each candidate is rejected, and the positions of those for which floats cannot decide."""
        rejected, unsure = np.empty(words.size, np.bool_), np.empty(words.size, np.int64)
        numbers = 2 * table.certain, table.error, 2 * table.tail, table.tail_bound
        return rejected, unsure[: self.compare_words(words, heights, *table.polynomials, *numbers, rejected, unsure)]


_loaded: list[CompiledSteps | None] = []  # threads that load at the same time append the same


def find_steps(size: int) -> CompiledSteps | None:
    """The compiled steps if they are loaded, or if a draw of `size` is worth loading them; None without numba."""
    if not _loaded and size >= WORTH:
        try:
            _loaded.append(_compile())
        except Exception:  # a draw that has been charged must not fail for want of speed
            _loaded.append(None)
    return _loaded[0] if _loaded else None


def _compile() -> CompiledSteps:
    import numba

    def compiled(function: Callable[..., int], signature: str) -> Any:
        try:
            return numba.njit(signature, nogil=True, cache=True)(function)
        except RuntimeError:  # there is no folder for the cache
            return numba.njit(signature, nogil=True)(function)

    integers, floats = "int64[::1]", "float64[::1]"
    return CompiledSteps(
        compiled(_place, f"int64(uint64[::1], {integers}, uint64, int64, {integers}, {integers})"),
        compiled(
            _compare,
            f"int64(uint64[::1], uint64[::1], {', '.join([floats] * 5)}, int64, float64, int64, float64, "
            f"boolean[::1], {integers})",
        ),
    )


def _place(words: Any, masks: Any, first_rough: Any, shift: int, out: Any, rough: Any) -> int:  # pragma: no cover
    for i in range(words.size):
        out[i] = (masks[words[i] >> np.uint64(PLACE_BITS)] ^ np.int64(words[i])) >> shift
    count = 0
    for i in range(words.size):
        rough[count] = i  # replaced unless it is counted
        count += words[i] >= first_rough
    return count


def _compare(  # pragma: no cover
    words: Any,
    heights: Any,
    a: Any,
    b: Any,
    c: Any,
    d: Any,
    e: Any,
    first_index: int,
    error: float,
    tail: int,
    tail_bound: float,
    rejected: Any,
    unsure: Any,
) -> int:
    count = 0
    for i in range(words.size):
        index = np.int64(words[i] >> np.uint64(PLACE_BITS))
        place = np.float64(words[i] & np.uint64(_PLACE)) - _MIDDLE
        k = index - first_index
        uniform = np.float64(heights[i]) * 2.0**-64
        above = (((e[k] * place + d[k]) * place + c[k]) * place + b[k]) * place + a[k] - uniform
        rejected[i] = above <= error
        if abs(above) <= error or (index & ~1 == tail and uniform < tail_bound):
            unsure[count] = i
            count += 1
    return count
