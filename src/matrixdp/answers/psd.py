"""Positive semidefinite matrices near a noisy one: the nearest in Frobenius norm, or in the norm of the noise.

The nearest in Frobenius norm raises the whole diagonal, which makes entries with little noise worse. Here the distance
is ``1/2 sum_{i != j} (X_ij - M_ij)^2 + 1/2 sum_i h_i (X_ii - M_ii)^2``, with rows and columns scaled so that all
entries off the diagonal have about the same noise. The nearest X is ``P(M + diag(y))``, P the projection that removes
negative eigenvalues, for the y that minimises a convex function of m variables (Qi and Sun 2006), found by Newton's
method. The weight h_i is the square of the entry's precision over that of the entries off the diagonal, and at least 1:
more than the likelihood gives, because the projection moves all diagonal entries the same way. It was chosen on
simulated records.
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
    return _Projection(matrix, std).nearest


class _Projection:
    """The nearest matrix in the weighted norm."""

    def __init__(self, matrix: Floats, std: Floats | None) -> None:
        units, weights = _weigh(len(matrix), std)
        both = np.multiply.outer(units, units)
        self.matrix = matrix / both
        self._give = 1 / np.maximum(weights - 1, 1e-3)  # how far a diagonal entry moves for a pull of one
        self._decompose(np.zeros(len(matrix)))
        if (weights > 1.05).any():  # otherwise it is the Frobenius norm for all that matters
            self._solve()
        scaled = (self._vectors * self._positive) @ self._vectors.T
        self.nearest: Floats = (scaled + scaled.T) / 2 * both

    def _solve(self) -> None:
        """Newton's method on ``|P(M + diag(y))|^2/2 - m'y + y' diag(give) y/2``, m the diagonal of M."""
        goal = np.diagonal(self.matrix)
        y = self._y
        for _ in range(50):
            gradient = self._vectors**2 @ self._positive - goal + self._give * y
            if np.linalg.norm(gradient) <= 1e-8 * (1 + np.linalg.norm(goal)):
                return
            before, slope = self._objective(), self._invert(-gradient, tolerance=0.01)
            step = 1.0
            slack = 1e-13 * (1 + abs(before))  # rounding of the objective, close to the solution
            while step > 1e-4:
                self._decompose(y + step * slope)
                if self._objective() <= before + 1e-4 * step * float(gradient @ slope) + slack:
                    break
                step /= 2
            else:
                self._decompose(y)  # no further progress in floating point
                return
            y = self._y

    def _decompose(self, y: Floats) -> None:
        self._y = y
        values, self._vectors = np.linalg.eigh(self.matrix + np.diag(y))
        self._positive = np.maximum(values, 0.0)
        # Derivative of the projection between two eigenvectors: 1, 0, or between them for eigenvalues of two signs.
        sums = np.add.outer(np.abs(values), np.abs(values))
        self._slopes = np.add.outer(self._positive, self._positive) / np.where(sums > 0, sums, np.inf)

    def _objective(self) -> float:
        """What the best y minimises."""
        y = self._y
        return float(self._positive @ self._positive - 2 * np.diagonal(self.matrix) @ y + self._give * y @ y) / 2

    def _invert(self, right: Floats, tolerance: float) -> Floats:
        """Solve for the y that changes ``diag P(M + diag(y)) + give y`` by `right`."""
        vectors, squares = self._vectors, self._vectors**2
        own = np.einsum("ki,ij,kj->k", squares, self._slopes, squares, optimize=True)

        def respond(y: Floats) -> Floats:
            change = vectors @ (self._slopes * (vectors.T @ np.diag(y) @ vectors)) @ vectors.T  # of the projection
            return np.asarray(np.diagonal(change) + self._give * y)

        from scipy.sparse import diags_array  # here, since few answers need it and it takes long to import
        from scipy.sparse.linalg import LinearOperator, cg

        slope = LinearOperator((len(right), len(right)), matvec=respond, dtype=np.float64)
        found, _ = cg(slope, right, rtol=tolerance, maxiter=50, M=diags_array(1 / (np.maximum(own, 1e-8) + self._give)))
        return np.asarray(found)


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
