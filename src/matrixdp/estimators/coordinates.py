"""Public affine coordinates of private records, computed exactly.

Records are put on a grid of integers and the map's matrix likewise, so that the product is a sum of whole numbers below
2^53: the same in any order, with any number of threads, wherever a record stands. What follows is elementwise. So the
coordinates of a record are a function of that record alone, down to the last bit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from matrixdp.noise.covariance import Floats

LEVELS = 1 << 19  # half the steps of the records' grid
_EXACT = 53
_BLOCK = 1 << 22  # products taken at a time


@dataclass(frozen=True, eq=False)
class Coordinates:
    """``u = A (x - m)`` for records x in [-1, 1]^d, given as whole numbers of steps of 1/LEVELS.

    Attributes
    ----------
    numbers : float64 array of shape (k, d)
        Whole numbers; row i of A is ``numbers[i] * 2^exponents[i]``.
    exponents : int64 array of shape (k,)
    centre : float64 array of shape (d,)
        m.
    shift : float64 array of shape (k,)
        A m, computed once.

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
    exponents: np.ndarray[tuple[int], np.dtype[np.int64]]
    centre: Floats
    shift: Floats

    @classmethod
    def of(cls, matrix: Floats, centre: Floats) -> Coordinates:
        """Coordinates with a matrix of shape (k, d), rounded to about 26 bits a row."""
        d = matrix.shape[1]
        bits = _EXACT - 1 - (LEVELS.bit_length() - 1) - math.ceil(math.log2(d + 1))
        exponents = np.frexp(np.abs(matrix).max(axis=1))[1].astype(np.int64) - bits
        numbers = np.rint(np.ldexp(matrix, -exponents[:, None]))
        return cls(numbers, exponents, centre, np.ldexp(numbers, exponents[:, None]) @ centre)

    @property
    def matrix(self) -> Floats:
        """A, exactly, of shape (k, d)."""
        return np.asarray(np.ldexp(self.numbers, self.exponents[:, None]))

    @property
    def inverse(self) -> Floats:
        """Inverse of a square A, of shape (d, d)."""
        return np.asarray(np.linalg.inv(self.matrix))

    def __call__(self, steps: Floats) -> Floats:
        """Coordinates u of shape (n, k) of records on the grid, of shape (n, d)."""
        out = np.empty((len(steps), len(self.numbers)))
        unit = np.ldexp(1.0, self.exponents - (LEVELS.bit_length() - 1))
        rows = max(1, _BLOCK // self.numbers.size)
        for start in range(0, len(steps), rows):
            block = out[start : start + rows]
            np.matmul(steps[start : start + rows], self.numbers.T, out=block)  # below 2^53: exact in any order
            block *= unit
            block -= self.shift
        return out


def row_lengths(records: Floats) -> Floats:
    """Length of each row, of shape (n,), from that row alone."""
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", records, records)))
