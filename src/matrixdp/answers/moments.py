"""Post-processing of releases: means, covariances and correlations with error bars.

Error bars are the standard deviation of the noise alone, to first order; sampling error is not included.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from matrixdp.answers.estimate import HIDDEN, Estimate
from matrixdp.design.design import Design
from matrixdp.domain.bounds import Bounds, check_centre
from matrixdp.errors import ParameterError
from matrixdp.noise.structure import Squares
from matrixdp.queries import Moments
from matrixdp.types import Floats

LARGEST_BAR = 1 / math.sqrt(3)  # standard deviation of a number between -1 and 1 of which nothing else is known


def mean(matrix: Floats, design: Design) -> Estimate:
    """Mean of each feature in the data's units, of shape (m, 1)."""
    bounds = _bounds(design)
    count = matrix[0, 0]
    average = matrix[0, 1:] / count
    std = np.hypot(design.std[0, 1:], average * design.std[0, 0]) / abs(count)
    return _name((bounds.midpoint + average)[:, None], std[:, None], design, ("mean",))


def second_moment(matrix: Floats, design: Design, centre: ArrayLike) -> Estimate:
    """Second moment ``(1/N) sum (x - centre)(x - centre)'`` about a public point, of shape (m, m).

    It follows from the moments about the middle of the bounds without approximation, and nearly always with less noise
    than a release of `SecondMoment` about that point has.
    """
    bounds = _bounds(design)
    shift = bounds.midpoint - check_centre(centre, bounds)
    noise = design.colcov.matrix()
    v = noise[0, 0] * noise[1:, 1:] / 2  # covariance of the noise in the means
    d, e = shift[:, None], shift[None, :]
    mean = matrix[0, 1:]
    value = matrix[1:, 1:] + mean[:, None] * e + mean[None, :] * d + d * e * matrix[0, 0]
    own = np.diagonal(v)
    variance = design.std[1:, 1:] ** 2 + own[:, None] * e**2 + own[None, :] * d**2 + 2 * d * e * v
    return _name(value, np.sqrt(variance + (d * e * design.std[0, 0]) ** 2), design)


def covariance(matrix: Floats, design: Design) -> Estimate:
    """Covariance about the mean, of shape (m, m): second moment less squared mean, with the noise bias removed."""
    _bounds(design)
    std = np.sqrt(_entry_covariance(matrix, design, "ij", "ij"))
    return _name(_covariance_value(matrix, design), std, design)


def correlation(matrix: Floats, design: Design) -> Estimate:
    """Correlation, of shape (m, m), from the covariance; NaN where noise hides it (`hide_uncertain`)."""
    _bounds(design)
    cov = _covariance_value(matrix, design)
    variances = np.where(np.diagonal(cov) > 0, np.diagonal(cov), np.nan)
    scale = np.sqrt(np.multiply.outer(variances, variances))
    value = correlation_from_covariance(cov)
    # d r = (d c_ij)/scale - r/2 (d c_ii/c_ii + d c_jj/c_jj)
    half = value / (2 * variances[:, None])
    spread = (
        _entry_covariance(matrix, design, "ij", "ij") / scale**2
        + half**2 * _entry_covariance(matrix, design, "ii", "ii")
        + half.T**2 * _entry_covariance(matrix, design, "jj", "jj")
        - 2 * half / scale * _entry_covariance(matrix, design, "ij", "ii")
        - 2 * half.T / scale * _entry_covariance(matrix, design, "ij", "jj")
        + 2 * half * half.T * _entry_covariance(matrix, design, "ii", "jj")
    )
    np.fill_diagonal(spread, 0.0)
    return _name(*hide_uncertain(value, np.sqrt(np.maximum(spread, 0.0))), design)


def hide_uncertain(correlation: Floats, std: Floats) -> tuple[Floats, Floats]:
    """Correlations within [-1, 1] and their error bars; both are NaN where noise hides a correlation.

    That is where a variance is not positive; where the error bar is at least `LARGEST_BAR`, the standard deviation of
    a number of which nothing is known but that it lies between -1 and 1; and where the correlation is impossible, more
    than two error bars outside of that range.

    Examples
    --------
    >>> value, std = hide_uncertain(np.array([0.5, 1.02, -1.9, 1.4]), np.array([0.1, 0.05, 2.9, 0.1]))
    >>> value.tolist()
    [0.5, 1.0, nan, nan]
    """
    hidden = ~(std < LARGEST_BAR) | ~(np.abs(correlation) <= 1 + 2 * std + 1e-9)
    return np.where(hidden, np.nan, np.clip(correlation, -1.0, 1.0)), np.where(hidden, np.nan, std)


def correlation_from_covariance(covariance: Floats, *, undefined: float = np.nan) -> Floats:
    """Correlations of shape (m, m) from covariances of shape (m, m).

    Parameters
    ----------
    covariance : float64 array of shape (m, m)
        Symmetric. With noise it need not be positive semidefinite, and correlations may then lie outside of [-1, 1].
    undefined : float
        The correlation of a feature whose variance is zero or negative with any other feature. With NaN, its
        correlation with itself is NaN as well; otherwise that is 1, as for all features.

    Examples
    --------
    >>> correlation_from_covariance(np.array([[4.0, 2.0], [2.0, 4.0]])).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    >>> correlation_from_covariance(np.diag([1.0, 0.0])).tolist()
    [[1.0, nan], [nan, nan]]
    >>> correlation_from_covariance(np.diag([1.0, 0.0]), undefined=0.0).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    variances = np.diagonal(covariance)
    defined = variances > 0
    inverse_std = 1 / np.sqrt(np.where(defined, variances, np.inf))
    result = covariance * np.multiply.outer(inverse_std, inverse_std)
    result[~defined] = result[:, ~defined] = undefined
    np.fill_diagonal(result, np.where(defined | ~np.isnan(undefined), 1.0, np.nan))
    return result


def _name(value: Floats, std: Floats, design: Design, columns: tuple[str, ...] | None = None) -> Estimate:
    """An answer with the names of the features, or their numbers."""
    rows = _bounds(design).names or tuple(map(str, range(len(value))))
    return Estimate(value, std, rows, columns or rows, np.full(value.shape, HIDDEN, object))


def _bounds(design: Design) -> Bounds:
    """Bounds of the features; a `ParameterError` unless the answer is a matrix of moments."""
    if not isinstance(design.query, Moments):
        raise ParameterError(f"means and covariances follow from Moments, got {type(design.query).__name__} instead.")
    return design.query.bounds


def _covariance_value(matrix: Floats, design: Design) -> Floats:
    count = matrix[0, 0]
    average = matrix[0, 1:] / count
    noise = design.colcov.matrix()
    allowance = noise[0, 0] * noise[1:, 1:] / 2 / count**2  # what noise adds to the square of the mean, in expectation
    value = matrix[1:, 1:] / count - np.multiply.outer(average, average) + allowance
    return np.asarray((value + value.T) / 2)  # rotated noise has a covariance that is symmetric up to rounding


def _entry_covariance(matrix: Floats, design: Design, first: str, second: str) -> Floats:
    """Covariance of the noise in two entries of the covariance matrix, named by their indices, as an array over (i, j).

    The mean's noise e enters as ``-(m e' + e m')``, and that of the number of records, where it is private, with the
    factor ``2 m m' - S``.
    """
    count = matrix[0, 0]
    a = matrix[0, 1:] / count
    noise = design.colcov.matrix()
    v = noise[0, 0] * noise[1:, 1:] / 2 / count**2
    size = a.size
    grid = {"i": np.arange(size)[:, None], "j": np.arange(size)[None, :]}
    i, j = (grid[name] for name in first)
    k, m = (grid[name] for name in second)
    by_count = (2 * np.multiply.outer(a, a) - matrix[1:, 1:] / count) * (design.std[0, 0] / count)
    own = _moment_covariance(design, first, second) / count**2 + by_count[i, j] * by_count[k, m]
    result = own + a[i] * a[k] * v[j, m] + a[i] * a[m] * v[j, k] + a[j] * a[k] * v[i, m] + a[j] * a[m] * v[i, k]
    return np.broadcast_to(result, (size, size))


def _moment_covariance(design: Design, first: str, second: str) -> Floats:
    """Covariance of the noise in two entries of the second moment, named by their indices, as an array over (i, j)."""
    if first == second:
        variances = np.square(design.std[1:, 1:])
        diagonal = np.diagonal(variances)
        return {"ij": variances, "ii": diagonal[:, None], "jj": diagonal[None, :]}[first]
    side, structure = design.colcov, design.structure
    c = side.matrix()[1:, 1:]
    if (first, second) == ("ii", "jj"):
        return structure.diagonal_covariance(side) if isinstance(structure, Squares) else c**2
    with_second = structure.entry_covariance(side) if isinstance(structure, Squares) else c * np.diagonal(c)
    return with_second if second == "jj" else with_second.T
