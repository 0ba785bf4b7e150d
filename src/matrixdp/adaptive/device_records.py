"""Records on a GPU on the grid of a fit: rounded and summed there, and kept in the memory of the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from matrixdp.adaptive.grid_records import GridRecords, Sums
from matrixdp.device import load_cupy
from matrixdp.domain.bounds import Bounds
from matrixdp.domain.row_arithmetic import square_lengths
from matrixdp.queries.cuda_sums import DeviceGrid, device_gram, padded, rows_at_a_time

_ROWS = 1 << 16  # whose lengths are computed at a time


class DeviceGridRecords(GridRecords):
    """Grid records made of an array on a GPU, of shape (n, d): the same integers and sums.

    Lengths of records are sums along a row, whose bits depend on the order of summation: they are computed on the host,
    like those of other records.
    """

    def __init__(self, bounds: Bounds, array: Any, levels: int) -> None:
        n, d = self.shape = (int(array.shape[0]), bounds.size)
        self.levels = levels
        self.steps = np.empty((n, d), np.float32)
        cupy, width = load_cupy(), padded(1 + d)
        grid = DeviceGrid(bounds, bounds, levels, constant=True, clip=True, missing="error")
        with cupy.cuda.Device(array.device.id):
            total, rows = cupy.zeros((width, width), np.int64), rows_at_a_time(width)
            for start in range(0, n, rows):
                block = grid(array[start : start + rows], width)
                total += device_gram(block, levels)
                self.steps[start : start + rows] = block[:, 1 : 1 + d].astype(np.float32).get()
            grid.check(array)
            sums = total.get()[: 1 + d, : 1 + d]
        self._sums = Sums(n, sums[0, 1:] // levels, sums[1:, 1:])  # the constant is `levels`
        self.lengths = np.empty(n)
        for start in range(0, n, _ROWS):
            part = slice(start, start + _ROWS)
            square_lengths(self.steps[part].astype(np.float64), out=self.lengths[part])
        np.sqrt(self.lengths, out=self.lengths)
        self.lengths /= levels
