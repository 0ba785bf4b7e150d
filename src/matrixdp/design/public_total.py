"""A noisy answer whose sum is public: adjusted to that sum, with the standard deviations that are left.

For noise x with covariance C and a public sum N, ``x - C1 (1'x - N)/(1'C1)`` is the best linear estimate (generalised
least squares): its covariance ``C - C11'C/(1'C1)`` is never above C, for any sum of entries. For equal and independent
noise it subtracts the same number from each entry (`docs/mathematics.md`, "Tables of counts with a public total").
"""

from __future__ import annotations

import numpy as np

from matrixdp.checks import sum_of_others
from matrixdp.noise.covariance import Covariance
from matrixdp.noise.matrix import MatrixGaussian
from matrixdp.types import Floats


def adjust_total(matrix: Floats, noise: MatrixGaussian, total: float) -> None:
    """Adjust a noisy matrix of shape (m, n) to a public sum of its entries, in place; post-processing."""
    matrix -= np.multiply.outer(_shares(noise.rowcov), _shares(noise.colcov)) * (matrix.sum() - total)


def adjusted_covariance(noise: MatrixGaussian, row: int, columns: list[int]) -> Floats:
    """Covariance between some entries of a row after `adjust_total`, of shape (columns, columns)."""
    rows, between = noise.rowcov.matrix(), noise.colcov.matrix()
    sums = between.sum(axis=1)[columns]
    removed = rows[row].sum() ** 2 * np.multiply.outer(sums, sums) / (rows.sum() * between.sum())
    return np.asarray(rows[row, row] * between[np.ix_(columns, columns)] - removed)


def adjusted_std(noise: MatrixGaussian) -> Floats:
    """Standard deviation of each entry after `adjust_total`, of shape (m, n)."""
    left, right = _kept(noise.rowcov), _kept(noise.colcov)
    if noise.rowcov.scalar and noise.rowcov.directions is None:  # equal rows share memory, as those of `noise.std` do
        return np.broadcast_to(noise.std[0] * np.sqrt(left[0] + (1 - left[0]) * right), noise.shape)
    kept = left[:, None] + np.multiply.outer(1 - left, right)  # 1 - (1 - left)(1 - right)
    return np.asarray(noise.std * np.sqrt(kept))


def _sums(covariance: Covariance) -> Floats:
    """``C1`` in units of the largest variance, of shape (n,)."""
    unit = covariance.variances / covariance.variances.max()
    if covariance.directions is None:
        return np.asarray(unit)
    return np.asarray(covariance.directions @ (unit * covariance.directions.sum(axis=0)))


def _shares(covariance: Covariance) -> Floats:
    """``C1/(1'C1)``, of shape (n,)."""
    sums = _sums(covariance)
    return np.asarray(sums / sums.sum())


def _kept(covariance: Covariance) -> Floats:
    """``1 - (C1)_i^2/(C_ii 1'C1)``, of shape (n,): what is left of each variance where the sum is known."""
    if covariance.directions is None:
        unit = _sums(covariance)
        return np.asarray(sum_of_others(unit) / unit.sum())
    load = _sums(covariance) / (covariance.marginal() / covariance.variances.max())
    return np.asarray(np.clip(1 - load * _shares(covariance), 0.0, 1.0))
