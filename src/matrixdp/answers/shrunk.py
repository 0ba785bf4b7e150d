"""Answers about tables with less expected error where noise dominates: shrunk towards what is known better.

Shrunk answers are biased, and always given. Their error bars are those before shrinkage, and at most that of a number
of which nothing is known but its range. `moments.shrink` has the prior (`docs/postprocessing.md`, "Shrunk answers").
"""

from dataclasses import replace
from typing import Any

import numpy as np

from matrixdp.answers.estimate import Estimate
from matrixdp.answers.moments import (
    LARGEST_BAR,
    TINY,
    NoisyValues,
    Statistic,
    count_observed,
    covary_all,
    divide,
    name_correlation,
    name_level_means,
    shrink,
    view_levels,
)
from matrixdp.answers.psd import nearest_psd
from matrixdp.answers.view import view_moments
from matrixdp.design.design import Design
from matrixdp.types import Floats

_ROUNDS = 50  # of proportional fitting
_NONE = 0.9  # probability a priori that all correlations are zero: fewer are then worse than zeros


def shrink_cells(cells: Floats, rows: Floats, columns: Floats, noise: Floats) -> Floats:
    """Shares of records for two levels, shrunk towards independence, with the given totals; of shape (k, m).

    What is shrunk is the correlation of the indicators of the two levels; rows and columns are then fitted to the
    totals.
    """
    size = max(float(rows.sum()), TINY)
    expected = np.multiply.outer(rows, columns) / size
    unit = np.sqrt(np.multiply.outer(rows * (size - rows), columns * (size - columns))) / size + TINY
    found = shrink(cells - expected, unit, noise, together=True)
    result = np.maximum(expected + found.mean, TINY)
    for _ in range(_ROUNDS):
        result *= (rows / np.maximum(result.sum(axis=1), TINY))[:, None]
        result *= columns / np.maximum(result.sum(axis=0), TINY)
    return result


def shrink_correlations(covariance: Floats, std: Floats) -> tuple[Floats, Floats]:
    """Correlations from a noisy covariance, shrunk towards zero, as a possible matrix; and their error bars.

    They are shrunk by the noise that they would have if they were zero. Noise in variances is not among it: it makes a
    correlation too large or too small by a factor, which is no reason to move it towards zero.
    """
    known = np.isfinite(covariance) & np.isfinite(std)
    own = np.diagonal(known)
    noise = np.where(own, np.diagonal(std), 1.0)
    variances = np.maximum(np.where(own, np.diagonal(covariance), 1.0), np.maximum(noise, TINY))
    scale = np.sqrt(np.multiply.outer(variances, variances))
    known = known & own & own[:, None]
    value, at_zero = (np.where(known, *pair) / scale for pair in ((covariance, 0.0), (std, scale)))
    value, at_zero = ((one + one.T) / 2 for one in (value, np.maximum(at_zero, TINY)))
    relative = np.add.outer((noise / variances) ** 2, (noise / variances) ** 2) / 4
    bars = np.sqrt(at_zero**2 + value**2 * relative)
    pairs = np.tril_indices(len(value), -1)
    shrunk = np.zeros_like(value)
    shrunk[pairs] = shrink(value[pairs], np.ones(()), at_zero[pairs], together=True, none=_NONE).mean
    shrunk += shrunk.T + np.eye(len(value))
    for one in (bars, at_zero):
        np.fill_diagonal(one, 0.0)
    return np.clip(nearest_psd(shrunk, at_zero), -1.0, 1.0), np.minimum(bars, LARGEST_BAR)


@np.errstate(all="ignore")
def shrunk_means(matrix: Floats, design: Design, by: str, group: Any = None) -> Estimate:
    """Share of the records and shrunk mean of each number for each level; like `moments.means`, without gaps."""
    view, row, levels = view_levels(matrix, design, by, group)
    whole = view_moments(matrix, design, group)
    (x, r), half, law = view.variables, view.halfwidths, view.law
    whole_size = 1.0 if row.ndim == 1 else max(float(view.read(0, 0)), TINY)
    share = np.clip(view.read(0, row[..., 0]) / whole_size, 0.0, 1.0)
    overall = np.nan_to_num(divide(whole, (np.zeros_like(x), x), (np.zeros_like(r), r)).value) / half
    size = count_observed(view, row)
    terms = [(row, x, 1 / half), *((i, j, -overall * slope) for i, j, slope in size.terms)]
    excess = Statistic(view.read(row, x) / half - overall * size.value, terms, overall**2 * size.open)
    count, noise = (np.maximum(one, TINY) for one in (np.maximum(size.value, size.std(law)), excess.std(law)))
    found = half * np.clip(overall + shrink(excess.value, count, noise).mean / count, -1.0, 1.0)
    std = half * np.minimum(noise / count, LARGEST_BAR)
    shares = NoisyValues(share, law.entry_std(0, row[..., 0]) / whole_size)
    return name_level_means(view, levels, shares, NoisyValues(found, std))


def shrink_table(table: Estimate) -> Estimate:
    """A table of `cross_table` with its cells shrunk towards independence, and with its error bars."""
    measured = table.unbiased
    total = max(float(measured[-1, -1]), 0.0)
    rows, columns = _totals(measured[:-1, -1], total), _totals(measured[-1, :-1], total)
    cells = shrink_cells(measured[:-1, :-1], rows, columns, table.std[:-1, :-1])
    value = np.block([[cells, rows[:, None]], [columns, np.full((1, 1), total)]])
    return replace(table, value=value, measured=value)


def _totals(shares: Floats, size: float) -> Floats:
    """The shares of all levels of a category, not negative, with the sum `size`."""
    positive = np.maximum(shares, 0.0)
    return np.asarray(positive * (size / max(float(positive.sum()), TINY)))


@np.errstate(all="ignore")
def shrunk_correlation(matrix: Floats, design: Design, group: Any = None) -> Estimate:
    """Correlations of the numbers, shrunk; like `moments.correlation`, without gaps."""
    view = view_moments(matrix, design, group)
    return name_correlation(view, NoisyValues(*shrink_correlations(*covary_all(view))))
