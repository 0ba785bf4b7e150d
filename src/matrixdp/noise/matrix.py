"""The matrix-variate Gaussian distribution, Definition 3 of the paper; symmetric matrices as vectors; public sums."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from matrixdp.checks import sum_of_others
from matrixdp.errors import ParameterError
from matrixdp.noise.covariance import Covariance
from matrixdp.noise.gaussian import draw_normal
from matrixdp.noise.stream import Stream
from matrixdp.types import Factor, Floats

SQRT2 = math.sqrt(2.0)


def triangle_to_vector(matrix: Floats, weight: float = SQRT2) -> Floats:
    """The lower triangle of a matrix of shape (m, m), row by row, of shape (m (m + 1)/2,).

    Entries off the diagonal are multiplied by `weight`; sqrt(2) preserves the Frobenius norm of a symmetric matrix.
    """
    rows, columns = np.tril_indices(len(matrix))
    return np.asarray(matrix[rows, columns] * np.where(rows == columns, 1.0, weight))


def vector_to_triangle(vector: Floats, size: int, weight: float = SQRT2) -> Floats:
    """The symmetric matrix of shape (size, size) whose lower triangle `triangle_to_vector` wrote."""
    rows, columns = np.tril_indices(size)
    out = np.empty((size, size))
    out[rows, columns] = vector / np.where(rows == columns, 1.0, weight)
    out[columns, rows] = out[rows, columns]
    return out


class MatrixGaussian:
    """Distribution of ``B N C'`` with ``B B' = rowcov``, ``C C' = colcov`` and N of independent standard normals.

    Parameters
    ----------
    rowcov, colcov : Covariance, vector, matrix or pair
        Covariance between rows, m x m, and between columns, n x n: a vector is a diagonal, a pair is (directions,
        variances), and ``Covariance.identity(n)`` is stored as one number.

    Notes
    -----
    The density is ``exp(-tr[colcov^-1 X' rowcov^-1 X]/2) / ((2 pi)^(mn/2) |colcov|^(m/2) |rowcov|^(n/2))``. `sample`
    draws exact Gaussian integers on a grid of 2^-52 and transforms them in float64: for simulation. A release never
    adds such floats to private data; it adds integers (`matrixdp.release`).

    Examples
    --------
    >>> law = MatrixGaussian([1.0, 4.0], Covariance.identity(3))
    >>> law.shape, law.std[1, 0].item()
    ((2, 3), 2.0)
    >>> round(law.logpdf(np.zeros((2, 3))), 6)
    -7.593073
    """

    def __init__(self, rowcov: Any, colcov: Any) -> None:
        self.rowcov = Covariance.parse(rowcov)
        self.colcov = Covariance.parse(colcov)

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        return self.rowcov.size, self.colcov.size

    @property
    def std(self) -> Floats:
        """Standard deviation of each entry, of shape (m, n); equal rows share memory."""
        if self.rowcov.directions is None and self.rowcov.scalar:
            return np.broadcast_to(np.sqrt(self.rowcov.variances[0]) * np.sqrt(self.colcov.marginal()), self.shape)
        return np.multiply.outer(np.sqrt(self.rowcov.marginal()), np.sqrt(self.colcov.marginal()))

    @property
    def symmetric_std(self) -> Floats:
        """Standard deviation of each entry of ``(Z + Z')/2``, of shape (m, m), when both sides are the same."""
        self._require_same_sides()
        std = np.sqrt(self.rowcov.marginal())
        correlation = self.rowcov.matrix() / std / std[:, None]
        return np.multiply.outer(std, std) * np.sqrt((1 + correlation**2) / 2)

    def whiten(self, values: Floats) -> Floats:
        """Return values in the coordinates in which the noise is i.i.d. standard normal."""
        return apply_factors(self.rowcov.whitening, values, self.colcov.whitening)

    def unwhiten(self, values: Floats) -> Floats:
        """Return ``B values C'``: the inverse of `whiten`."""
        return apply_factors(self.rowcov.factor, values, self.colcov.factor)

    def logpdf(self, values: ArrayLike) -> float:
        """Return the logarithm of the density at `values`, of shape (m, n)."""
        array = np.asarray(values, np.float64)
        if array.shape != self.shape:
            raise ParameterError(f"values must have shape {self.shape}, got {array.shape} instead.")
        m, n = self.shape
        determinants = n * self.rowcov.log_determinant() + m * self.colcov.log_determinant()
        return -0.5 * (m * n * math.log(2 * math.pi) + determinants + float(np.square(self.whiten(array)).sum()))

    def sample(self, stream: Stream | None = None, *, symmetric: bool = False) -> Floats:
        """Return one draw, of shape (m, n).

        Parameters
        ----------
        stream : Stream, optional
            By default a new one, keyed from the operating system.
        symmetric : bool
            Draw ``(Z + Z')/2`` instead, from one triangle; both sides must be the same.
        """
        stream = Stream() if stream is None else stream
        rows, columns = self.rowcov.factor, self.colcov.factor
        if symmetric:
            self._require_same_sides()
            size = self.shape[0]
            normals = draw_normal(stream, size * (size + 1) // 2)  # variance 1 on the diagonal, 1/2 elsewhere
            return apply_factors(rows, vector_to_triangle(normals, size), rows)
        return apply_factors(rows, draw_normal(stream, self.shape), columns)

    def _require_same_sides(self) -> None:
        if not self.rowcov.same_as(self.colcov):
            raise ParameterError(
                "a symmetric draw needs the same covariance on both sides, got two different ones instead."
            )

    def __repr__(self) -> str:
        return f"MatrixGaussian of shape {self.shape}"


def apply_factors(left: Factor, values: Floats, right: Factor) -> Floats:
    """Return ``left @ values @ right.T``, where each factor is a number, a diagonal or a matrix."""
    if isinstance(right, np.ndarray):
        values = values @ right.T if right.ndim == 2 else values * right
    elif right != 1.0 or not isinstance(left, np.ndarray) or left.ndim == 1:  # a copy, which the left factor may change
        values = values * right
    if isinstance(left, np.ndarray):
        return left @ values if left.ndim == 2 else np.multiply(values, left[:, None], out=values)
    return np.multiply(values, left, out=values) if left != 1.0 else values


def adjust_total(matrix: Floats, noise: MatrixGaussian, total: float) -> None:
    """Adjust a noisy matrix of shape (m, n) to a public sum of its entries, in place; post-processing.

    For noise x with covariance C and a public sum N, ``x - C1 (1'x - N)/(1'C1)`` is the best linear estimate
    (generalised least squares): its covariance ``C - C11'C/(1'C1)`` is never above C, for any sum of entries. For equal
    and independent noise it subtracts the same number from each entry (`docs/sensitivity-graphs.md`).
    """
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
