"""Arithmetic of `Bounds.checked`, `Bounds.centre` and `Bounds.quantise`.

It is vectorised so that the bits of each row's result depend on that row alone, and no rounding leaves the domain.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from matrixdp.errors import DataError, ParameterError, show
from matrixdp.types import Floats

if TYPE_CHECKING:
    from matrixdp.domain.bounds import Bounds

_COLUMNS = 4096  # summed at a time
_INNER = 8192  # preferred length of an inner loop
_SHORTEST = 512  # arrays with fewer entries are not reshaped
_EPS = float(np.finfo(float).eps)


def check_missing(missing: str) -> None:
    """Raise a `ParameterError` unless `missing` is 'error' or 'midpoint'."""
    if not isinstance(missing, str) or missing not in ("error", "midpoint"):
        raise ParameterError(f"missing must be 'error' or 'midpoint', got {show(missing)} instead.")


def round_into_ball(bounds: Bounds, out: Floats, levels: int) -> Floats:
    """Scale rows on the grid of `levels` into the ball and round them, in place."""
    assert bounds.radius is not None
    lengths = _grid_lengths(bounds, out, levels)
    near = np.flatnonzero(lengths + float(np.linalg.norm(bounds.steps(levels))) > bounds.radius)
    # Rounding to nearest may leave the ball and rounding towards zero cannot; well inside, both stay in it.
    factor = np.minimum(ball_factor(bounds, lengths[near]), 1 - 4 * _EPS)
    near_sphere = np.trunc(out[near] * factor[:, None])
    np.rint(out, out=out)
    out[near] = near_sphere
    return out


def length_slack(bounds: Bounds) -> float:
    """Bound on the relative error of the length of a record."""
    return (bounds.size + 16) * _EPS


def _grid_lengths(bounds: Bounds, grid: Floats, levels: int) -> Floats:
    """The length of each row in the units of the data, of shape (n,), rounded up."""
    steps = bounds.steps(levels)
    equal = bool((steps == steps[0]).all())
    lengths = steps[0] * np.sqrt(square_lengths(grid)) if equal else np.sqrt(square_lengths(grid, steps**2))
    return np.asarray(lengths * (1 + length_slack(bounds)))


def ball_factor(bounds: Bounds, lengths: Floats) -> Floats:
    """The factor that scales a row of each length into the ball, rounded down; `lengths` are rounded up."""
    assert bounds.radius is not None
    factor = bounds.radius / np.maximum(lengths, bounds.radius) * (1 - length_slack(bounds))
    return np.where(lengths > bounds.radius, factor, 1.0)


def as_table(bounds: Bounds, records: ArrayLike, missing: str) -> NDArray[np.generic]:
    """The records as an array of real numbers of shape (n, m)."""
    check_missing(missing)
    array = np.asarray(records)
    if array.dtype.kind not in "biuf":
        raise DataError(f"records must be real numbers, got an array of {array.dtype} instead.")
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:  # one long double must not change the other records
        array = array.astype(np.float64)
    if array.ndim != 2 or array.shape[1] != bounds.size:
        raise DataError(f"records must have shape (records, {bounds.size}), got {array.shape} instead.")
    return array


@lru_cache(maxsize=16)
def to_grid(bounds: Bounds, levels: int) -> Rescaling:
    """The map of records to the grid, where each bound is a whole number."""
    return Rescaling(bounds.midpoint, levels / bounds.halfwidths)


def all_finite(array: NDArray[np.generic]) -> bool:
    """Whether all entries are finite.

    A finite sum of squares, which BLAS computes fast, shows that they are; only if it overflows is each one checked.
    """
    if array.dtype.kind != "f":
        return True
    if array.flags.forc and array.dtype.char in "fd":
        flat = array.reshape(-1, order="A")
        with np.errstate(over="ignore", invalid="ignore"):  # a warning would reveal something about the data
            if np.isfinite(np.dot(flat, flat)):
                return True
    return bool(np.isfinite(array).all())


def square_lengths(rows: Floats, weights: Floats | None = None, out: Floats | None = None) -> Floats:
    """Return the sum of the squares of each row, of shape (n,), optionally with a weight for each column.

    Columns are summed in pieces: beyond 8,192 columns, NumPy adds up a single row in another order than several rows,
    so that the bits would depend on the other rows.
    """
    out = np.empty(len(rows)) if out is None else out
    for start in range(0, rows.shape[1], _COLUMNS):
        piece, target = rows[:, start : start + _COLUMNS], out if start == 0 else None
        if weights is None:
            squares = np.einsum("ij,ij->i", piece, piece, out=target)
        else:
            squares = np.einsum("ij,ij,j->i", piece, piece, weights[start : start + _COLUMNS], out=target)
        if start:
            out += squares
    return out


class Rescaling:
    """``out = (array - shift) * factor`` for arrays of shape (n, m), column by column.

    Short rows are joined into longer ones, since NumPy's inner loop runs along a row.
    """

    def __init__(self, shift: Floats, factor: Floats) -> None:
        self._tiles = 1 << max(0, (_INNER // shift.size).bit_length() - 1)
        self._shift, self._factor = shift, factor
        self._wide = np.tile(shift, self._tiles), np.tile(factor, self._tiles)
        self._shifts = bool(shift.any())

    def __call__(self, array: NDArray[np.generic], out: Floats) -> None:
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

    def _fill(self, array: NDArray[np.generic], shift: Floats, factor: Floats, out: Floats) -> None:
        if self._shifts:
            array = np.subtract(array, shift, out=out)
        np.multiply(array, factor, out=out)
