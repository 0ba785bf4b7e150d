"""Answers about tables with less expected error where noise dominates: shrunk towards what is known better.

The mean of a level is shrunk towards the mean of all records, a cell of a table towards the product of its totals, and
correlations towards zero and a possible matrix. Shrunk answers are biased, and always given. Their error bars are those
before shrinkage, and at most that of a number of which nothing is known but its range. All of it is post-processing.

A difference theta of which noise leaves ``weight * theta + noise`` is estimated by its posterior mean. A priori it is
Gaussian with mean zero and a standard deviation whose logarithm is uniform between those of 0.01 and 1. So differences
that noise explains are shrunk by much and others by little (`docs/mathematics.md`, "Shrunk answers").
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matrixdp.answers.estimate import Estimate
from matrixdp.answers.moments import LARGEST_BAR
from matrixdp.answers.psd import shrink_psd
from matrixdp.answers.table_view import TableView, select_groups
from matrixdp.answers.tables import pair_covariance
from matrixdp.design.design import Design
from matrixdp.errors import ParameterError
from matrixdp.types import Floats

_VARIANCES = np.geomspace(1e-4, 1.0, 17)  # of theta a priori
_ROUNDS = 50  # of proportional fitting
_TINY = 1e-12


def shrink(measured: Floats, weight: Floats, noise: Floats, *, together: bool = False) -> Floats:
    """Posterior mean of theta, given ``measured = weight * theta + noise``.

    Parameters
    ----------
    measured, weight, noise : float64 arrays of one shape
        `noise` is the standard deviation of the noise.
    together : bool
        Whether all theta have the same variance a priori. By default each has one of its own.

    Examples
    --------
    >>> measured = np.array([0.001, 0.01, 0.5])
    >>> (shrink(measured, np.ones(3), np.full(3, 0.01)) / measured).round(2).tolist()
    [0.77, 0.78, 1.0]
    """
    variances = _VARIANCES.reshape(-1, *[1] * measured.ndim)
    total = weight**2 * variances + noise**2
    likelihood = -(np.log(total) + measured**2 / total) / 2
    if together:
        likelihood = likelihood.sum(axis=tuple(range(1, likelihood.ndim)), keepdims=True)
    posterior = np.exp(likelihood - likelihood.max(axis=0))
    posterior = posterior / posterior.sum(axis=0)
    return np.asarray((posterior * variances / total).sum(axis=0) * weight * measured)


def shrink_cells(cells: Floats, rows: Floats, columns: Floats, noise: Floats) -> Floats:
    """Shares of records for two levels, shrunk towards independence, with the given totals.

    What is shrunk is the correlation of the indicators of the two levels. Cells are not negative, and fitted to their
    totals by multiplying rows and columns.

    Parameters
    ----------
    cells : float64 array of shape (k, m)
    rows, columns : float64 arrays of shapes (k,) and (m,)
        Totals; not negative, with the same sum.
    noise : float64 array of shape (k, m)
        Standard deviation of the noise in each cell.
    """
    size = max(float(rows.sum()), _TINY)
    expected = np.multiply.outer(rows, columns) / size
    unit = np.sqrt(np.multiply.outer(rows * (size - rows), columns * (size - columns))) / size + _TINY
    found = shrink(cells - expected, unit, noise, together=True)
    result = np.maximum(expected + unit * found, _TINY)
    for _ in range(_ROUNDS):
        result *= (rows / np.maximum(result.sum(axis=1), _TINY))[:, None]
        result *= columns / np.maximum(result.sum(axis=0), _TINY)
    return result


def shrink_correlations(covariance: Floats, std: Floats) -> tuple[Floats, Floats]:
    """Correlations from a noisy covariance, as a possible matrix, shrunk towards zero (`shrink_psd`), and error bars.

    A variance counts as at least the standard deviation of its noise.

    Parameters
    ----------
    covariance, std : float64 arrays of shape (m, m)
        NaN where noise hides a number.
    """
    known = np.isfinite(covariance) & np.isfinite(std)
    own = np.diagonal(known)
    noise = np.where(own, np.diagonal(std), 1.0)
    variances = np.maximum(np.where(own, np.diagonal(covariance), 1.0), np.maximum(noise, _TINY))
    scale = np.sqrt(np.multiply.outer(variances, variances))
    known = known & own & own[:, None]
    value = np.where(known, covariance, 0.0) / scale
    bars = np.where(known, std, scale) / scale
    bars = np.sqrt(bars**2 + value**2 * np.add.outer((noise / variances) ** 2, (noise / variances) ** 2) / 4)
    bars = np.maximum((bars + bars.T) / 2, _TINY)
    value = (value + value.T) / 2
    np.fill_diagonal(value, 1.0)
    firm = bars.copy()
    np.fill_diagonal(firm, 0.0)
    np.fill_diagonal(bars, 0.0)
    return np.clip(shrink_psd(value, firm), -1.0, 1.0), np.minimum(bars, LARGEST_BAR)


def shrunk_means(matrix: Floats, design: Design, by: str, group: Any = None) -> Estimate:
    """Share of the records and shrunk mean of each number for each level; like `tables.means_by`, without gaps."""
    query: Any = design.query
    if by in query.by:
        if group is not None and not isinstance(group, dict):
            raise ParameterError(f"group must be a dict of columns and levels beside by={by!r}.")
        levels, given = query.columns.category(by).level_names, dict(group or {})
        views = [(select_groups(matrix, design, {**given, by: level}), 0) for level in levels]
        whole = select_groups(matrix, design, given or None)
    else:
        whole = select_groups(matrix, design, group)
        place = whole.category(by)
        levels = place.levels
        views = [(whole, place.value + k) for k in range(len(levels))]
    rows = [_shrink_row(view, row, whole) for view, row in views]
    value, std = (np.array([row[k] for row in rows]).reshape(len(levels), -1) for k in (0, 1))
    return Estimate(value, std, tuple(levels), (f"share of {query.count_word}", *whole.numbers))


def _shrink_row(view: TableView, row: int, whole: TableView) -> tuple[list[float], list[float]]:
    """Share of the records and the means of one level or group."""
    m, bounds = view.matrix, whole.query.columns.bounds
    size = 1.0 if row == 0 else max(float(m[0, 0]), _TINY)
    values, stds = [min(max(float(m[0, row]) / size, 0.0), 1.0)], [view.std([(0, row, 1.0)]) / size]
    for name in whole.numbers:
        place, half = whole.number(name), float(bounds.halfwidths[bounds.index(name)])
        overall = float(np.nan_to_num(whole.ratio((0, place.value), (0, place.observed))[0])) / half
        count = max(float(m[row, place.observed]), view.std([(row, place.observed, 1.0)]), _TINY)
        excess = m[row, place.value] / half - overall * m[row, place.observed]
        noise = max(view.std([(row, place.value, 1 / half), (row, place.observed, -overall)]), _TINY)
        found = overall + float(shrink(*map(np.asarray, (excess, count, noise))))
        values.append(half * min(max(found, -1.0), 1.0) + whole.middle(name))
        stds.append(half * min(noise / count, LARGEST_BAR))
    return values, stds


def shrink_table(table: Estimate) -> Estimate:
    """A table of `cross_table` with its cells shrunk towards independence, and with its error bars."""
    total = max(float(table.value[-1, -1]), 0.0)
    rows, columns = _totals(table.value[:-1, -1], total), _totals(table.value[-1, :-1], total)
    cells = shrink_cells(table.value[:-1, :-1], rows, columns, table.std[:-1, :-1])
    value = np.block([[cells, rows[:, None]], [columns, np.full((1, 1), total)]])
    return Estimate(value, table.std, table.rows, table.columns)


def _totals(shares: Floats, size: float) -> Floats:
    """The shares of all levels of a category, not negative, with the sum `size`."""
    positive = np.maximum(shares, 0.0)
    return np.asarray(positive * (size / max(float(positive.sum()), _TINY)))


def shrunk_correlation(matrix: Floats, design: Design, group: Any = None) -> Estimate:
    """Correlations of the numbers, shrunk; like `tables.correlation_table`, without gaps."""
    view = select_groups(matrix, design, group)
    places = [view.number(name) for name in view.numbers]
    pairs = [[pair_covariance(view, one, other) for other in places] for one in places]
    value = np.array([[pair.value for pair in row] for row in pairs]).reshape(len(places), -1)
    std = np.array([[view.std(pair.gradients) if pair.known else np.nan for pair in row] for row in pairs])
    return Estimate(*shrink_correlations(value, std.reshape(value.shape)), view.numbers, view.numbers)
