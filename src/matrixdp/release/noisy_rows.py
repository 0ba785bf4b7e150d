"""Rows of a data set, each with noise of its own, whatever part of the records they come in.

Row i of the data set gets the noise of row i of an infinite table, which is drawn in blocks of a fixed size, each from
a stream derived from the release's one key and the block's number. So a part that is drawn again has the same bits, and
neither the number of workers nor the partition of the records can change one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from matrixdp.design.design import Design
from matrixdp.design.grid import column_factors, column_limits, monotone
from matrixdp.domain.row_arithmetic import Rescaling
from matrixdp.errors import ParameterError
from matrixdp.noise import BlockKey, apply_factors, draw_gaussian
from matrixdp.queries import Identity
from matrixdp.types import Floats

_BLOCK = 1 << 18  # entries that are drawn from one stream


class MonotoneRows:
    """Records on the grid of noise that has the features as its axes, and back, entry by entry."""

    def __init__(self, design: Design) -> None:
        query, bits = design.query, design.grid.bits
        assert isinstance(query, Identity)
        self._factors = column_factors(design.noise, bits)
        self._limits = np.array(column_limits(query, design.noise, bits), np.float64)
        self._to_grid = Rescaling(query.bounds.midpoint, self._factors)

    def steps(self, records: NDArray[np.generic], out: Floats) -> None:
        """Finite records, less the midpoint, in whole steps."""
        self._to_grid(records, out)
        np.rint(out, out=out)
        np.clip(out, -self._limits, self._limits, out=out)

    def values(self, noisy: NDArray[np.int64], out: Floats) -> None:
        """Noisy steps back in the records' units."""
        np.add(noisy, 0.5, out=out)
        out /= self._factors


class WhitenedRows:
    """The same where directions mix the features, or a ball bounds the records.

    A row's bits may depend on its place in a block, as BLAS works on several rows at once, but on nothing else.
    """

    def __init__(self, design: Design) -> None:
        query, noise, bits = design.query, design.noise, design.grid.bits
        assert isinstance(query, Identity)
        self._bounds, self._limit, self._unit = query.bounds, design.grid.limit, 2.0**bits
        self._whitening = noise.rowcov.whitening, noise.colcov.whitening
        self._factors = noise.factors()

    def steps(self, records: NDArray[np.generic], out: Floats) -> None:
        """Finite records, less the midpoint, in whole steps along the noise's directions."""
        left, right = self._whitening
        np.rint(apply_factors(left, self._bounds.centre(records), right) * self._unit, out=out)
        np.clip(out, -self._limit, self._limit, out=out)

    def values(self, noisy: NDArray[np.int64], out: Floats) -> None:
        """Noisy steps back in the records' units."""
        left, right = self._factors
        values = (noisy.astype(np.float64) + 0.5) / self._unit
        out[...] = apply_factors(left, values, right)


class RowMechanism:
    """Noisy records, from any part of a data set.

    Parameters
    ----------
    design : Design
        For an identity query, its noise the same for every record.
    key : BlockKey
        The release's own.

    Privacy
    -------
    To be used for one data set only: two data sets with noise from one key show their difference.
    """

    def __init__(self, design: Design, key: BlockKey) -> None:
        check_rows(design)
        self._design, self._key = design, key
        self._columns = design.query.shape[1]
        self._size = max(1, _BLOCK // self._columns)
        self._grid = (MonotoneRows if monotone(design.query, design.noise) else WhitenedRows)(design)
        self._records = np.zeros((self._size, self._columns))
        self._steps = np.empty((self._size, self._columns))
        self._noise = np.empty((self._size, self._columns), np.int64)
        self._drawn = -1

    def __call__(self, first: int, records: NDArray[np.generic]) -> Floats:
        """Noisy records of shape (rows, features); `first` is the number of the first of them in the data set."""
        out = np.empty(records.shape)
        done = 0
        while done < len(records):
            number, place = divmod(first + done, self._size)
            count = min(self._size - place, len(records) - done)
            out[done : done + count] = self._block(number, place, records[done : done + count])
            done += count
        return self._design.query.finish(out)

    def _block(self, number: int, place: int, records: NDArray[np.generic]) -> Floats:
        rows = slice(place, place + len(records))
        self._records[rows] = records  # the other rows are finite, and of no account
        self._grid.steps(self._records, out=self._steps)
        if self._drawn != number:
            draw_gaussian(self._key.stream(number), self._design.grid.bits, out=self._noise)
            self._drawn = number
        noisy = self._noise.copy()
        noisy[rows] += self._steps[rows].astype(np.int64)
        self._grid.values(noisy, out=self._steps)
        return self._steps[rows]


def check_rows(design: Design) -> None:
    """An error unless each record of the design's query gets the same noise, so that rows can be drawn apart."""
    if not isinstance(design.query, Identity):
        raise ParameterError(
            f"design must be for the identity query, whose answer is a data set, got {type(design.query).__name__}; "
            "other answers are small, and released as a whole."
        )
    if design.flat or isinstance(design.noise.rowcov.whitening, np.ndarray):
        raise ParameterError("design must have noise that is the same for every record to be released in parts.")
