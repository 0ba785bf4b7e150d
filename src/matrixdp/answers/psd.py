"""Positive semidefinite matrices near a noisy one: the nearest in Frobenius norm, or in the norm of the noise.

The nearest in Frobenius norm raises the whole diagonal, which makes entries with little noise worse. Here the distance
is ``1/2 sum_{i != j} (X_ij - M_ij)^2 + 1/2 sum_i h_i (X_ii - M_ii)^2``, with rows and columns scaled so that all
entries off the diagonal have about the same noise. The nearest X is ``P(M + diag(y))``, P the projection that removes
negative eigenvalues, for the y that minimises a convex function of m variables (Qi and Sun 2006). The weight h_i is
the square of the entry's precision over that of the entries off the diagonal, and at least 1: more than the likelihood
gives, because the projection moves all diagonal entries the same way. It was chosen on simulated records.
"""

import math

import numpy as np

from matrixdp.errors import ParameterError
from matrixdp.types import Floats

_FIRMEST = 1e6  # weight of a diagonal entry without noise


def nearest_psd(matrix: Floats, std: Floats | None = None) -> Floats:
    """Nearest positive semidefinite matrix to a symmetric one.

    Parameters
    ----------
    matrix : float64 array of shape (m, m)
    std : float64 array of shape (m, m), optional
        Standard deviations of the noise. Entries with little noise then move little, above all on the diagonal. By
        default all entries count alike (Frobenius norm).

    Examples
    --------
    >>> nearest_psd(np.diag([1.0, -1.0])).tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    >>> noisy = np.array([[1.0, 2.0], [2.0, 1.0]])
    >>> nearest_psd(noisy).round(3).tolist()
    [[1.5, 1.5], [1.5, 1.5]]
    >>> nearest_psd(noisy, std=np.array([[0.0, 1.0], [1.0, 0.0]])).round(3).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.array_equal(matrix, matrix.T):
        raise ParameterError("only a symmetric matrix has a nearest positive semidefinite one.")
    if std is not None and (std.shape != matrix.shape or not (np.isfinite(std) & (std >= 0)).all()):
        raise ParameterError("std must be finite, not negative, and of the shape of the matrix.")
    units, weights = _weigh(len(matrix), std)
    both = np.multiply.outer(units, units)
    scaled = matrix / both
    if (weights > 1.05).any():  # otherwise it is the Frobenius norm for all that matters
        scaled = scaled + np.diag(_find_shift(scaled, weights))
    values, vectors = np.linalg.eigh(scaled)
    found = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return np.asarray((found + found.T) / 2 * both)


def _find_shift(matrix: Floats, weights: Floats) -> Floats:
    """The y that minimises ``|P(M + diag(y))|^2/2 - m'y + y' diag(give) y/2``, m the diagonal of M."""
    from scipy.optimize import minimize  # here, since few answers need it and it takes long to import

    goal, give = np.diagonal(matrix), 1 / np.maximum(weights - 1, 1e-3)  # how far an entry moves for a pull of one

    def lose(y: Floats) -> tuple[float, Floats]:
        """The loss, and its gradient."""
        values, vectors = np.linalg.eigh(matrix + np.diag(y))
        positive = np.maximum(values, 0.0)
        loss = float(positive @ positive - 2 * goal @ y + give * y @ y) / 2
        return loss, vectors**2 @ positive - goal + give * y

    options = {"gtol": 1e-8 * (1 + np.linalg.norm(goal)), "ftol": 0.0, "maxcor": 30, "maxiter": 500}
    return np.asarray(minimize(lose, np.zeros(len(matrix)), jac=True, method="L-BFGS-B", options=options).x)


def _weigh(size: int, std: Floats | None) -> tuple[Floats, Floats]:
    """Units of rows and columns in which entries off the diagonal have noise of about one, and the weights h."""
    below = np.tril_indices(size, -1)
    if std is None or size == 1 or not (std[below] > 0).all():
        return np.ones(size), np.ones(size)
    logs = np.zeros((size, size))
    logs[below] = np.log(std[below])
    logs += logs.T
    if size == 2:  # one entry does not tell two units
        ratio = std[0, 0] / std[1, 1] if min(std[0, 0], std[1, 1]) > 0 else 1.0
        units = math.sqrt(std[1, 0]) * np.array([ratio**0.25, ratio**-0.25])
    else:  # least squares for log std_ij = log unit_i + log unit_j
        units = np.exp((logs.sum(axis=1) - logs.sum() / (2 * (size - 1))) / (size - 2))
    precision = units**4 / np.maximum(np.diagonal(std) ** 2, units**4 / _FIRMEST)
    return units, np.clip((2 * precision) ** 2, 1.0, _FIRMEST)


def project_simplex(values: Floats) -> Floats:
    """Nearest non-negative numbers of the same sum, or zeros if the sum is negative."""
    total = float(values.sum())
    if total <= 0:
        return np.zeros_like(values)
    ordered = -np.sort(-values)
    excess = (np.cumsum(ordered) - total) / np.arange(1, values.size + 1)
    level = excess[np.flatnonzero(ordered > excess)[-1]]
    return np.asarray(np.maximum(values - level, 0.0))
