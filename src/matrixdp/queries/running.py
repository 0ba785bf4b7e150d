"""Exact moments of records that come in any number of pieces."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from matrixdp.bounds import Bounds
from matrixdp.noise.covariance import Floats
from matrixdp.noise.sums import GramSum

_BLOCK = 1 << 19  # entries quantised at a time
_MAX_BITS = 20


def levels(records: int) -> int:
    """Half the steps of the grid: as fine as sums of that many products in int64 allow, from 2^7 to 2^19."""
    spare = (62 - math.ceil(math.log2(2 * records))) // 2
    return 1 << min(_MAX_BITS - 1, max(7, spare))


class MomentSum:
    """Running ``sum x x'`` over records, quantised about the midpoint of `box`, by exact integer sums.

    The order and the partition of the records cannot change a bit of it. With `constant`, each record gets a 1 put
    before it.
    """

    def __init__(self, bounds: Bounds, box: Bounds, records: int, *, constant: bool, clip: bool, missing: str) -> None:
        self._bounds, self._box, self._public_records = bounds, box, records
        self._constant, self._clip, self._missing = constant, clip, missing
        self._grid = levels(records)
        self._total = GramSum(bounds.size + constant, limit=self._grid)
        self._step = max(256, _BLOCK // bounds.size // 256 * 256)
        self._scratch = np.empty((0, bounds.size))
        self._buffer = np.empty((0, bounds.size + constant)) if constant else self._scratch

    @property
    def records(self) -> int:
        """How many there were so far."""
        return self._total.records

    def add(self, array: NDArray[np.generic]) -> None:
        """Add records, of shape (rows, features)."""
        bounds, box, clip, missing = self._bounds, self._box, self._clip, self._missing
        rows, columns = array.shape
        if len(self._buffer) < min(self._step, rows):
            self._scratch = np.empty((min(self._step, rows), columns))
            self._buffer = np.empty((len(self._scratch), columns + 1)) if self._constant else self._scratch
        for start in range(0, rows, self._step):
            block = array[start : start + self._step]
            out = self._buffer[: len(block)]
            if box is not bounds:
                block = np.clip(bounds.checked(block, clip=clip, missing=missing), bounds.lower, bounds.upper)
            whole = self._scratch[: len(block)]  # contiguous: several times faster to work on than part of each row
            box.quantise(block, self._grid, out=whole, clip=clip or box is not bounds, missing=missing)
            if self._constant:
                out[:, 0] = self._grid
                out[:, 1:] = whole
            self._total.add(out)

    def value(self) -> Floats:
        """``(1/records) sum x x'``, the public number of records being that of the query."""
        unit = self._box.steps(self._grid)
        if self._constant:
            unit = np.concatenate([[1.0 / self._grid], unit])
        return self._total.value() * unit[:, None] * unit / self._public_records


def moment(
    bounds: Bounds,
    box: Bounds,
    array: NDArray[np.generic],
    records: int,
    *,
    constant: bool,
    clip: bool,
    missing: str,
) -> Floats:
    """``(1/records) sum x x'`` over the rows of `array`; see `MomentSum`."""
    total = MomentSum(bounds, box, records, constant=constant, clip=clip, missing=missing)
    total.add(array)
    return total.value()
