"""Exact comparisons of candidates with the curve of the Gaussian, in integer interval arithmetic."""

from __future__ import annotations

import math
from typing import Protocol

from matrixdp.noise.envelope import (
    BLOCKS,
    BLOCKS_PER_SUPERBLOCK,
    FINEST,
    PLACE_BITS,
    envelope,
    exp_bounds,
    tail_scale,
)


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
