"""Records row by row, at the speed of NumPy: each row's result depends on that row alone, down to the last bit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_COLUMNS = 4096  # whose squares are added at a time
_INNER, _NARROW = 8192, 512  # numbers that an inner loop should have, and at least


def square_lengths(
    rows: NDArray[np.float64], weights: NDArray[np.float64] | None = None, out: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Sum of the squares of each row, of shape (n,), perhaps weighted: from that row alone, down to the last bit.

    Beyond 8,192 columns NumPy adds those of a lone row in another order than those of a row among others; so they are
    taken some thousand at a time.
    """
    out = np.empty(len(rows)) if out is None else out
    for start in range(0, rows.shape[1], _COLUMNS):
        piece = rows[:, start : start + _COLUMNS]
        if weights is None:
            squares = np.einsum("ij,ij->i", piece, piece, out=out if start == 0 else None)
        else:
            squares = np.einsum(
                "ij,ij,j->i", piece, piece, weights[start : start + _COLUMNS], out=out if start == 0 else None
            )
        if start:
            out += squares
    return out


class Rescaling:
    """``out = (array - shift) * factor`` for arrays of shape (n, m), column by column.

    Narrow rows are taken many at a time, since NumPy's inner loop runs along a row.
    """

    def __init__(self, shift: NDArray[np.float64], factor: NDArray[np.float64]) -> None:
        self._tiles = 1 << max(0, (_INNER // shift.size).bit_length() - 1)
        self._shift, self._factor = shift, factor
        self._wide = np.tile(shift, self._tiles), np.tile(factor, self._tiles)
        self._shifts = bool(shift.any())

    def __call__(self, array: NDArray[np.generic], out: NDArray[np.float64]) -> None:
        """Fill `out`; what overflows becomes infinite, and is for the caller to clip."""
        rows, size = array.shape
        contiguous, start = array.flags.c_contiguous and out.flags.c_contiguous, 0
        with np.errstate(over="ignore"):
            while contiguous and size * (rows - start) >= _NARROW:
                tiles = min(self._tiles, 1 << ((rows - start).bit_length() - 1))
                stop = rows - (rows - start) % tiles
                wide = out[start:stop].reshape(-1, tiles * size)
                shift, factor = (vector[: tiles * size] for vector in self._wide)
                self._fill(array[start:stop].reshape(wide.shape), shift, factor, wide)
                start = stop
            if start < rows:
                self._fill(array[start:], self._shift, self._factor, out[start:])

    def _fill(
        self,
        array: NDArray[np.generic],
        shift: NDArray[np.float64],
        factor: NDArray[np.float64],
        out: NDArray[np.float64],
    ) -> None:
        if self._shifts:
            array = np.subtract(array, shift, out=out)
        np.multiply(array, factor, out=out)
