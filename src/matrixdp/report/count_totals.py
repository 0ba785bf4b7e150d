"""A table of counts with its totals, and their error bars."""

from __future__ import annotations

import numpy as np

from matrixdp.answers.cross_tables import ALL
from matrixdp.answers.estimate import Estimate
from matrixdp.noise.covariance import Covariance
from matrixdp.noise.matrix import MatrixGaussian
from matrixdp.queries import ContingencyTable
from matrixdp.release.result import Release
from matrixdp.types import Floats


def add_totals(release: Release) -> Estimate | None:
    """The released counts with a last row and a last column of totals; None if it is not a table of counts.

    None also for noise that is not a product of rows and columns (``design.flat``).

    For noise with covariances R between rows and C between columns, a row's total has the variance
    ``R_ii 1'C1``, a column's ``C_jj 1'R1`` and all counts together ``1'R1 1'C1``. Where they are adjusted to a public
    total, what this takes of a row is ``(R1)_i^2 1'C1 / 1'R1``, of a column ``(C1)_j^2 1'R1 / 1'C1``, and of all
    everything (`matrixdp.design.public_total`).

    Privacy
    -------
    Post-processing: uses no privacy budget.
    """
    query = release.design.query
    if not isinstance(query, ContingencyTable) or release.design.flat:
        return None
    rows, columns = query.entry_names
    sums = release.matrix.sum(axis=1, keepdims=True)
    value = np.vstack([np.hstack([release.matrix, sums]), np.append(release.matrix.sum(axis=0), sums.sum())])
    by_row, by_column, whole = _total_stds(release.design.noise, public=query.total is not None)
    std = np.vstack([np.hstack([np.asarray(release.std), by_row[:, None]]), np.append(by_column, whole)])
    return Estimate(value, std, (*rows, ALL), (*columns, ALL))


def _total_stds(noise: MatrixGaussian, *, public: bool) -> tuple[Floats, Floats, float]:
    """Standard deviations of the totals of the rows, of the columns and of all."""
    left, right = _row_sums(noise.rowcov), _row_sums(noise.colcov)
    r, c = float(left.sum()), float(right.sum())
    by_row, by_column, whole = noise.rowcov.marginal() * c, noise.colcov.marginal() * r, r * c
    if public:
        by_row, by_column, whole = by_row - left**2 * c / r, by_column - right**2 * r / c, 0.0
    return np.sqrt(np.maximum(by_row, 0.0)), np.sqrt(np.maximum(by_column, 0.0)), float(np.sqrt(whole))


def _row_sums(covariance: Covariance) -> Floats:
    """``C1``, of shape (n,)."""
    if covariance.directions is None:
        return np.asarray(covariance.variances)
    return np.asarray(covariance.directions @ (covariance.variances * covariance.directions.sum(axis=0)))
