"""The step function with integer heights under which Gaussian candidates are drawn.

The half line is divided into blocks of 1/32 standard deviation. Block k has ``ceil(M f(k/32))`` cells of height one,
where ``f(y) = exp(-y^2/2)`` and M is the largest integer for which all cells, and one for the tail, fit into 2^14. A
uniform cell and a uniform place in its block, accepted if they lie under ``M f``, are a uniform point under the
curve of the Gaussian. There are four kinds of cells, in this order:

- *certain*: entirely under the curve, since its top is at most M times f at the far end of its block;
- *cut* by the curve: the height of the point must be compared with ``M f(y)``;
- the *tail*, beyond the last block: superblock i = 0, 1, ... of eight blocks is chosen with probability ``2^-(i+1)``,
  and a place in it is accepted with probability ``M f(y) 2^(i+1) 8``, which is below one for every i;
- *unused*: always rejected.

Every inequality is checked once, when the table is built, in integer interval arithmetic: no probability is rounded.
Where floats cannot decide whether a candidate lies under the curve, `settle` decides in the same arithmetic.
"""

import math
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

BLOCKS = 176  # explicit blocks, up to 5.5 standard deviations
BLOCKS_PER_UNIT = 32
BLOCKS_PER_SUPERBLOCK = 8
CELL_BITS = 14
PLACE_BITS = 49  # the rest of a 64-bit word: cell, one bit of sign, place in the block
FINEST = PLACE_BITS + 5  # a draw's own grid: 2^-54 standard deviations

# Arrays without dimensions, with which operations on short arrays take less time than with numbers.
_MIDDLE = np.array(2.0 ** (PLACE_BITS - 1))
_PLACE_SHIFT, _PLACE_MASK = np.array(PLACE_BITS, np.uint64), np.array((1 << PLACE_BITS) - 1, np.uint64)


def exp_bounds(numerator: int, denominator: int, bits: int) -> tuple[int, int]:
    """Return integers that enclose ``2^bits exp(-numerator/denominator)``, at most two apart.

    Both arguments are non-negative. The exponent is halved until it is below 2^-8, the alternating series is summed
    with every term rounded outwards, and the sum is squared back with outward rounding.
    """
    halvings = (numerator // denominator).bit_length() + 8
    work = bits + halvings + 16
    low_r = (numerator << work) // (denominator << halvings)
    low, high = _series(low_r, work)
    low -= 1  # for the exponent rounded up, which is larger by less than 2^-work: exp(-x) >= 1 - x
    for _ in range(halvings):
        low, high = low * low >> work, _ceil_shift(high * high, work)
    return low >> (work - bits), _ceil_shift(high, work - bits)


def _series(r: int, work: int) -> tuple[int, int]:
    """Return an enclosure of ``2^work exp(-r/2^work)`` for ``0 <= r <= 2^work``."""
    low = high = 0
    term_low = term_high = 1 << work
    n = 0
    while term_high > 1:
        low, high = (low + term_low, high + term_high) if n % 2 == 0 else (low - term_high, high - term_low)
        n += 1
        term_low, term_high = (term_low * r >> work) // n, _ceil_shift(term_high * r, work) // n + 1
    return low - term_high, high + term_high  # the remainder of an alternating series is below its first term


def _ceil_shift(value: int, bits: int) -> int:
    """Return ``value / 2^bits``, rounded up."""
    return -(-value >> bits)


@dataclass(frozen=True)
class Envelope:
    """Tables of the envelope; index is a word's first 15 bits, the cell and the sign."""

    height: int  # M, the curve's height at the middle in cells
    masks: NDArray[np.int64]  # of shape (2^15,), with which exclusive or turns a word into its signed place
    certain: int  # number of certain cells; they come first
    tail: int  # the cell of the tail; cells after it are rejected
    # For the other indices, of shape (2 * (2^14 - certain),). Unused cells have a floor above the curve.
    level: NDArray[np.float64]  # height of the cell's floor
    curve: NDArray[np.float64]  # ``M f`` at the block's centre
    centre: NDArray[np.float64]  # the signed centre
    tail_bound: float  # upper bound on the acceptance probability in the tail
    error: float = 2.0**-25  # bound on the error of `compare`, in cells

    @cached_property
    def first_rough(self) -> NDArray[np.uint64]:
        """The smallest word whose cell is not certain, of shape ()."""
        return np.array(self.certain << (PLACE_BITS + 1), np.uint64)

    @cached_property
    def polynomials(self) -> tuple[NDArray[np.float64], ...]:
        """Five coefficients of the curve above the floor of each cell, lowest first; the variable is the place.

        Those of Taylor's series about the centre c of the block, ``M f(c) He_k(c) (-h)^k / k!``, with places counted
        from the centre in steps of the finest grid.
        """
        c = self.centre
        hermite = np.ones_like(c), -c, c**2 - 1, 3 * c - c**3, c**4 - 6 * c**2 + 3
        terms = [self.curve * he * (2.0 ** (-k * FINEST) / math.factorial(k)) for k, he in enumerate(hermite)]
        return terms[0] - self.level, *terms[1:]

    def compare(self, words: NDArray[np.uint64], uniform: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the curve's heights above points in cells that are not certain, to within `error`, of shape (n,)."""
        index = (words >> _PLACE_SHIFT).view(np.int64) - 2 * self.certain
        place = (words & _PLACE_MASK).astype(np.float64) - _MIDDLE
        *lower, last = self.polynomials
        above = last[index]
        for coefficient in reversed(lower):
            above *= place
            above += coefficient[index]
        above -= uniform
        return above


@cache
def envelope() -> Envelope:
    """Return the envelope, which is built at first use."""
    curve = [exp_bounds(k * k, 2 * BLOCKS_PER_UNIT**2, 128) for k in range(BLOCKS + 1)]
    height = (1 << CELL_BITS) // BLOCKS_PER_UNIT
    while sum(_heights(curve, height)) + 1 > 1 << CELL_BITS:
        height -= 1
    tops = _heights(curve, height)
    floors = [height * low >> 128 for low, _ in curve[1:]]  # cells certainly under the curve
    # No acceptance probability in the tail exceeds one: f at least halves with each superblock.
    step = (BLOCKS + BLOCKS_PER_SUPERBLOCK) ** 2 - BLOCKS**2
    halved = exp_bounds(step, 2 * BLOCKS_PER_UNIT**2, 128)[1] * 2 <= 1 << 128
    if not halved or height * tail_scale(0) * curve[BLOCKS][1] > 1 << 128:
        raise AssertionError("the envelope does not dominate the tail")

    blocks = [k for k in range(BLOCKS) for _ in range(floors[k])]
    certain = len(blocks)
    cut = [(k, j) for k in range(BLOCKS) for j in range(floors[k], tops[k])]
    blocks += [k for k, _ in cut]
    tail = len(blocks)
    index = np.arange(2 * tail)
    signed = np.repeat(np.array(blocks), 2) ^ -(index & 1)  # ~block for a negative place
    masks = np.zeros(2 << CELL_BITS, np.int64)
    masks[: 2 * tail] = (index ^ signed) << PLACE_BITS  # the shift drops all but 15 bits

    rest = 2 * ((1 << CELL_BITS) - certain)
    level, centre, peak = np.full(rest, 2.0), np.zeros(rest), np.zeros(rest)
    at_centre = [exp_bounds((2 * k + 1) ** 2, 8 * BLOCKS_PER_UNIT**2, 128)[0] for k in range(BLOCKS)]
    for i, (k, j) in enumerate(cut):
        level[2 * i : 2 * i + 2] = j
        peak[2 * i : 2 * i + 2] = height * at_centre[k] / 2.0**128
        centre[2 * i : 2 * i + 2] = (k + 0.5) / BLOCKS_PER_UNIT, -(k + 0.5) / BLOCKS_PER_UNIT
    tail_bound = 2 * BLOCKS_PER_SUPERBLOCK * height * curve[BLOCKS][1] / 2.0**128 * (1 + 2.0**-50)
    return Envelope(height, masks, certain, tail, level, peak, centre, tail_bound)


def tail_scale(superblock: int) -> int:
    """Return the acceptance probability of a place y in `superblock` of the tail, divided by ``M f(y)``."""
    return BLOCKS_PER_SUPERBLOCK << (superblock + 1)


def _heights(curve: list[tuple[int, int]], height: int) -> list[int]:
    return [_ceil_shift(height * high, 128) for _, high in curve[:-1]]


class RandomBits(Protocol):
    """A source of random bits, such as a `Stream`."""

    def bits(self, count: int) -> int:
        """Return a uniform integer of `count` bits."""


def settle(source: RandomBits, word: int, height: int) -> int | None:
    """Return the candidate's value on the finest grid if an exact comparison accepts it, otherwise None."""
    table = envelope()
    index, place = word >> PLACE_BITS, word & ((1 << PLACE_BITS) - 1)
    cell, negative = index >> 1, index & 1
    if cell == table.tail:
        superblock = 0
        while not source.bits(1):
            superblock += 1
        start = (BLOCKS + BLOCKS_PER_SUPERBLOCK * superblock) << PLACE_BITS
        size = start + source.bits(PLACE_BITS + BLOCKS_PER_SUPERBLOCK.bit_length() - 1)
        accepted = under_curve(source, size, height, level=0, scale=table.height * tail_scale(superblock))
    else:
        value = (int(table.masks[index]) ^ (index << PLACE_BITS | place)) & ((1 << 64) - 1)
        size = value ^ ((1 << 64) - 1) if negative else value
        level = int(table.level[index - 2 * table.certain])
        accepted = under_curve(source, size, height, level=level, scale=table.height)
    return (~size if negative else size) if accepted else None


def under_curve(source: RandomBits, size: int, height: int, *, level: int, scale: int) -> bool:
    """Return whether ``level + u < scale exp(-y^2/2)``, exactly.

    `size` has the first digits of y, on the finest grid, and `height` the first 64 bits of u. Further random digits
    of both are drawn until the comparison is decided, which happens with probability one.
    """
    y_bits, u_bits = FINEST, 64
    while True:
        work = u_bits + scale.bit_length() + 8
        low, high = exp_bounds(size**2, 1 << (2 * y_bits + 1), work)
        if (level << work) + (height << (work - u_bits)) >= scale * high:
            return False
        low -= (low * (2 * size + 1) >> (2 * y_bits + 1)) + 1  # at the far end of the digits known: exp(-x) >= 1 - x
        if (level << work) + ((height + 1) << (work - u_bits)) <= scale * low:
            return True
        size, height = size << 64 | source.bits(64), height << 64 | source.bits(64)
        y_bits, u_bits = y_bits + 64, u_bits + 64


def narrow(value: int) -> int:
    """Return a draw; raise an `OverflowError` if it does not fit into int64."""
    if not -(1 << 63) <= value < 1 << 63:
        raise OverflowError(f"a draw of {math.log2(abs(value)):.0f} bits does not fit into int64; use fewer bits")
    return value
