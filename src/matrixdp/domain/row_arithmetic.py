"""Vectorised arithmetic on rows, in which the bits of each row's result depend on that row alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_COLUMNS = 4096  # summed at a time
_INNER = 8192  # preferred length of an inner loop
_SHORTEST = 512  # arrays with fewer entries are not reshaped


def square_lengths(
    rows: NDArray[np.float64], weights: NDArray[np.float64] | None = None, out: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return the sum of the squares of each row, of shape (n,), optionally with a weight for each column.

    Columns are summed in pieces: beyond 8,192 columns, NumPy adds up a single row in another order than several rows,
    so that the bits would depend on the other rows.
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

    Short rows are joined into longer ones, since NumPy's inner loop runs along a row.
    """

    def __init__(self, shift: NDArray[np.float64], factor: NDArray[np.float64]) -> None:
        self._tiles = 1 << max(0, (_INNER // shift.size).bit_length() - 1)
        self._shift, self._factor = shift, factor
        self._wide = np.tile(shift, self._tiles), np.tile(factor, self._tiles)
        self._shifts = bool(shift.any())

    def __call__(self, array: NDArray[np.generic], out: NDArray[np.float64]) -> None:
        """Fill `out`; values that overflow become infinite, and the caller must clip them."""
        rows, size = array.shape
        contiguous, start = array.flags.c_contiguous and out.flags.c_contiguous, 0
        with np.errstate(over="ignore"):
            while contiguous and size * (rows - start) >= _SHORTEST:
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
