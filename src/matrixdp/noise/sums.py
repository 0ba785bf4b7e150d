"""Exact sums of products at the speed of BLAS.

The rounding errors of floating-point sums depend on the order of summation and can exceed what a sensitivity allows
for (Casacuberta et al. 2022). Sums of integers below 2^53 in float64 are exact: so is every partial sum of ``Q'Q``, in
any order, with any number of threads. The running sum is moved to int64 before it could leave that range.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import DataError, ParameterError, show

_EXACT = 1 << 53
_INT64 = (1 << 63) - 1


class GramSum:
    """Running ``sum q q'`` over integer vectors q, exact and independent of order and partition.

    Parameters
    ----------
    columns : int
        Length m of the vectors.
    limit : int
        Bound on the absolute value of each entry; ``limit^2`` at most 2^53.

    Notes
    -----
    Exactness is verified after each block: diagonal entries are sums of squares, so if they are below 2^53, so were
    all their partial sums, and by Cauchy-Schwarz those of the other entries. This assumes that BLAS computes an entry
    as a sum of products, as all implementations do.

    Examples
    --------
    >>> total = GramSum(2, limit=100)
    >>> total.add(np.array([[1.0, 2.0], [3.0, -4.0]]))
    >>> total.value().tolist(), total.records
    ([[10, -10], [-10, 20]], 2)
    """

    def __init__(self, columns: int, *, limit: int) -> None:
        if not 0 < limit * limit <= _EXACT:
            raise ParameterError(f"limit must be from 1 to 2^26, got {show(limit)} instead.")
        self.columns = columns
        self.limit = limit
        self.records = 0
        self._pending = 0
        self._floats = np.zeros((columns, columns))
        self._total = np.zeros((columns, columns), np.int64)

    @property
    def rows_at_once(self) -> int:
        """Largest number of records that are multiplied at a time."""
        return _EXACT // self.limit**2 - 1 or 1

    def add(self, block: NDArray[np.float64]) -> None:
        """Add the records of a contiguous block of shape (rows, columns), integers of at most `limit`."""
        if block.ndim != 2 or block.shape[1] != self.columns:
            raise ParameterError(f"block must have shape (rows, {self.columns}), got {block.shape} instead.")
        for start in range(0, block.shape[0], self.rows_at_once):
            piece = block[start : start + self.rows_at_once]
            self._check(self.records + len(piece))
            if (self._pending + len(piece)) * self.limit**2 >= _EXACT:
                self._flush()
            self._floats += piece.T @ piece  # NumPy calls syrk of BLAS and releases the GIL
            if not (np.diagonal(self._floats) < _EXACT).all():  # NaN fails, too
                raise DataError("records must be integers within the limit, got NaN or a larger number instead.")
            self._pending += len(piece)
            self.records += len(piece)

    def add_sum(self, total: NDArray[np.int64], records: int) -> None:
        """Add an exact sum over further records that was computed elsewhere, of shape (columns, columns)."""
        self._flush()
        self._check(self.records + records)
        self._total += total
        self.records += records

    def merge(self, other: GramSum) -> None:
        """Add another sum with the same columns and limit."""
        if (other.columns, other.limit) != (self.columns, self.limit):
            raise ParameterError("sums must have the same columns and limit to be merged.")
        self.add_sum(other.value(), other.records)

    def value(self) -> NDArray[np.int64]:
        """Return the sum so far, of shape (columns, columns)."""
        self._flush()
        return self._total.copy()

    def __getstate__(self) -> tuple[int, int, int, NDArray[np.int64]]:
        """Pickle the lower triangle of the symmetric sum, a few kilobytes."""
        self._flush()
        return self.columns, self.limit, self.records, self._total[np.tril_indices(self.columns)]

    def __setstate__(self, state: tuple[int, int, int, NDArray[np.int64]]) -> None:
        columns, limit, records, lower = state
        self.__init__(columns, limit=limit)  # type: ignore[misc]
        self.records = records
        self._total[np.tril_indices(columns)] = lower
        self._total += np.tril(self._total, -1).T

    def _flush(self) -> None:
        if self._pending:
            self._total += self._floats.astype(np.int64)
            self._floats[...] = 0.0
            self._pending = 0

    def _check(self, records: int) -> None:
        if records * self.limit**2 > _INT64:
            raise DataError(
                f"sums of more than {_INT64 // self.limit**2:,} records at this resolution do not fit into 64 bits; "
                "declare the number of records beforehand, so that a coarser resolution is chosen."
            )
