"""Public affine coordinates of private records, computed exactly.

Records are put on a grid of integers and the map's matrix and centre likewise, so that the product is a sum of whole
numbers below 2^53: the same in any order, with any number of threads, wherever a record stands. So the coordinates of a
record are a function of that record alone, down to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain.row_arithmetic import square_lengths
from matrixdp.types import Floats

LEVELS = 1 << 19  # half the steps of the records' grid
_EXACT = 53
_BLOCK = 1 << 17  # numbers worked on at a time: they stay in the cache
_ALONE = 1 << 18  # products below which BLAS does not call for other threads, which may be busy


@dataclass(frozen=True, eq=False)
class Coordinates:
    """``u = A (x - m)`` for records x in [-1, 1]^d, given as whole numbers of steps of 1/levels.

    Attributes
    ----------
    numbers : float64 array of shape (k, d)
        Whole numbers; row i of A is ``numbers[i] * 2^exponents[i]``.
    exponents : int64 array of shape (k,)
    origin : int64 array of shape (d,)
        m, in steps of the grid.
    levels : int
        A power of two, at most LEVELS.

    Privacy
    -------
    Public. Each record is mapped on its own.

    Examples
    --------
    >>> coordinates = Coordinates.of(np.array([[3.0, 0.0], [0.0, 0.5]]), np.array([0.5, 0.0]))
    >>> coordinates(LEVELS * np.array([[1.0, -1.0]])).tolist()
    [[1.5, -0.5]]
    """

    numbers: Floats
    exponents: NDArray[np.int64]
    origin: NDArray[np.int64]
    levels: int = LEVELS

    @classmethod
    def of(cls, matrix: Floats, centre: Floats, levels: int = LEVELS) -> Coordinates:
        """Coordinates with a matrix of shape (k, d) and a centre in [-1, 1]^d.

        The matrix is rounded to some 27 bits a row (for 50 features), the centre to the grid.
        """
        d = matrix.shape[1]
        bits = _EXACT - 1 - (LEVELS.bit_length() - 1) - math.ceil(math.log2(d + 1))
        exponents = np.frexp(np.abs(matrix).max(axis=1))[1].astype(np.int64) - bits
        numbers = np.rint(np.ldexp(matrix, -exponents[:, None]))
        return cls(numbers, exponents, np.rint(centre * levels).astype(np.int64), levels)

    @property
    def matrix(self) -> Floats:
        """A, exactly, of shape (k, d)."""
        return np.asarray(np.ldexp(self.numbers, self.exponents[:, None]))

    @property
    def inverse(self) -> Floats:
        """Inverse of a square A, of shape (d, d)."""
        return np.asarray(np.linalg.inv(self.matrix))

    @property
    def centre(self) -> Floats:
        """m, exactly, of shape (d,)."""
        return self.origin / self.levels

    @cached_property
    def unit(self) -> Floats:
        """What a whole number stands for in each coordinate, of shape (k,): powers of two."""
        return np.asarray(np.ldexp(1.0, self.exponents - (self.levels.bit_length() - 1)))

    def __call__(self, steps: NDArray[np.floating]) -> Floats:
        """Coordinates u of shape (n, k) of records on the grid, of shape (n, d)."""
        out = np.empty((len(steps), len(self.numbers)))
        for rows, block in self._blocks(steps):
            out[rows] = block
        return out

    def lengths(self, steps: NDArray[np.floating]) -> Floats:
        """``|u|`` of each record, of shape (n,); the coordinates themselves are not kept."""
        out = np.empty(len(steps))
        for rows, block in self._blocks(steps):
            square_lengths(block, out=out[rows])
        return np.sqrt(out, out=out)

    def _blocks(self, steps: NDArray[np.floating]) -> Iterator[tuple[slice, Floats]]:
        """Coordinates of some records at a time, in a buffer that the next ones overwrite."""
        k, d = self.numbers.shape
        # All of it is whole numbers of `unit`: products and sums of at most 2^52, and their differences.
        turn = np.ascontiguousarray((self.numbers * self.unit[:, None]).T)
        shift = self.numbers @ self.origin.astype(np.float64) * self.unit
        most = max(1, _BLOCK // max(k, d))
        few = min(_ALONE // (k * d), most) if 64 * k * d <= _ALONE else most
        shifts, rows = np.tile(shift, few), few * (most // few)
        own, out = np.empty((rows, d)), np.empty((rows, k))
        for start in range(0, len(steps), rows):
            block = steps[start : start + rows]
            whole = len(block) - len(block) % few
            own[: len(block)] = block
            if whole:
                np.matmul(own[:whole].reshape(-1, few, d), turn, out=out[:whole].reshape(-1, few, k))
                wide = out[:whole].reshape(-1, few * k)
                wide -= shifts
            if whole < len(block):
                rest = out[whole : len(block)]
                np.matmul(own[whole : len(block)], turn, out=rest)
                rest -= shift
            yield slice(start, start + len(block)), out[: len(block)]
