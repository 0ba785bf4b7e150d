"""Exact Laplace integers: ``floor(L)`` with L Laplace of scale ``2^bits``, without rounding error.

``floor(E)`` of an exponential E of scale ``t = 2^bits`` is ``place + t whole``, where place is uniform on ``0..t-1``
and kept with probability ``exp(-place/t)``, and whole counts the successes of coins of probability ``1/e`` before the
first failure (Canonne, Kamath, Steinke 2020). A coin compares a uniform number with the exponential in float64, whose
error is bounded; where the bound is not enough, in integer interval arithmetic with as many more bits as needed.
The sign is one more bit: ``floor(-E)`` is ``~floor(E)``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from matrixdp.checks import check_integer
from matrixdp.noise.envelope import exp_bounds
from matrixdp.noise.stream import Stream

MAX_BITS = 52
_TERMS = 20
# Each of the nested steps of the series rounds four times, by 2^-53 at most; their sum over the factorials is below
# 4 e 2^-53, the rest of the series below 1/21!, and the uniform number lies in a step of 2^-53.
_ERROR = 2.0**-48


def draw_laplace(stream: Stream, bits: int, shape: int | tuple[int, ...]) -> NDArray[np.int64]:
    """Independent draws of ``floor(L)``, L with the density ``exp(-|x|/2^bits)/2^(bits+1)``, exact.

    Parameters
    ----------
    stream : Stream
    bits : int
        Logarithm of the scale, from 0 to 52.
    shape : int or tuple of int

    Examples
    --------
    >>> draw_laplace(Stream(seed=1), 40, (2, 3)).dtype
    dtype('int64')
    """
    bits = check_integer(bits, "bits", at_least=0, at_most=MAX_BITS)
    out = np.empty(shape, np.int64)
    size = out.size
    signs = -(stream.words(size) & np.uint64(1)).astype(np.int64)
    magnitude = (_wholes(stream, size) << int(bits)) + _places(stream, size, int(bits))
    return np.asarray((magnitude ^ signs).reshape(out.shape))


def _places(stream: Stream, size: int, bits: int) -> NDArray[np.int64]:
    """Numbers below ``2^bits`` with probability proportional to ``exp(-place/2^bits)``."""
    out = np.zeros(size, np.int64)
    if not bits:
        return out
    pending = np.arange(size)
    while pending.size:
        candidates = (stream.words(pending.size) >> np.uint64(64 - bits)).astype(np.int64)
        kept = flip_exponential(stream, candidates, bits)
        out[pending[kept]] = candidates[kept]
        pending = pending[~kept]
    return out


def _wholes(stream: Stream, size: int) -> NDArray[np.int64]:
    """Numbers of successes of a coin of probability 1/e before its first failure."""
    out = np.zeros(size, np.int64)
    going = np.arange(size)
    while going.size:
        going = going[flip_exponential(stream, np.ones(going.size, np.int64), 0)]
        out[going] += 1
    return out


def flip_exponential(stream: Stream, exponents: NDArray[np.int64], bits: int) -> NDArray[np.bool_]:
    """Coins that succeed with probability ``exp(-exponent/2^bits)``, exactly; exponents from 0 to ``2^bits``."""
    heights = stream.words(exponents.size)
    uniform = (heights >> np.uint64(11)).astype(np.float64) * 2.0**-53
    above = _exponential(exponents.astype(np.float64) * 2.0**-bits) - uniform
    result = above > 0
    for i in np.flatnonzero(np.abs(above) <= _ERROR):
        result[i] = _settle(stream, int(exponents[i]), bits, int(heights[i]))
    return result


def _exponential(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """``exp(-x)`` for x from 0 to 1, by its series, nested."""
    value = np.ones_like(x)
    for term in range(_TERMS, 0, -1):
        value = 1 - x * (1 / term) * value
    return value


def _settle(stream: Stream, exponent: int, bits: int, height: int) -> bool:
    """Whether a uniform number with the 64 first bits `height` lies below ``exp(-exponent/2^bits)``."""
    digits = 64
    while True:
        low, high = exp_bounds(exponent, 1 << bits, digits + 8)
        if (height + 1) << 8 <= low:
            return True
        if height << 8 >= high:
            return False
        height, digits = height << 64 | stream.bits(64), digits + 64
