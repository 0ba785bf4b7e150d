"""The matrix-variate Gaussian distribution, Definition 3 of the paper, and the covariances of its rows and columns.

A covariance is stored as directions (orthonormal columns, or None for the standard basis) and variances along them, so
that an identity or a diagonal takes little memory. Distances between neighbours are computed for the floats of its
whitening factor, so that their rounding errors are accounted for. Symmetric matrices as vectors, and noise beside a
public sum, are here as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from matrixdp.checks import check_integer, check_magnitudes, power_of_two, sum_of_others, to_floats
from matrixdp.display import short_repr
from matrixdp.errors import ParameterError
from matrixdp.noise.gaussian import draw_normal
from matrixdp.noise.stream import Stream
from matrixdp.serialise import builtin_kind
from matrixdp.types import Factor, Floats

SQRT2 = math.sqrt(2.0)
ORTHONORMAL = 1e-8  # tolerance of W'W; distances are computed for W as it is
LARGEST_VARIANCE = 1e150  # ratios of two variances are floats


@builtin_kind
@dataclass(frozen=True, eq=False)
class Covariance:
    """A positive definite covariance, ``W diag(variances) W'``.

    Use `Covariance.identity`, `diagonal`, `eigen`, `dense` or `parse` to make one.

    Attributes
    ----------
    variances : float64 array of shape (n,)
        Variance along each direction. A multiple of the identity is a broadcast array that stores one number.
    directions : float64 array of shape (n, n) or None
        Orthonormal columns; None is the standard basis.

    Examples
    --------
    >>> Covariance.identity(10**9).size
    1000000000
    >>> Covariance.dense([[2.0, 1.0], [1.0, 2.0]]).variances.round(6).tolist()
    [1.0, 3.0]
    """

    variances: Floats
    directions: Floats | None = None

    __repr__ = short_repr

    def __post_init__(self) -> None:
        values = self.variances
        if not isinstance(values, np.ndarray) or values.ndim != 1 or not values.size:
            raise ParameterError("variances must be a vector with at least one entry.")
        check_magnitudes(self._stored, "variances", largest=LARGEST_VARIANCE)
        if self.directions is not None and np.shape(self.directions) != (values.size, values.size):
            raise ParameterError(f"directions must have shape {(values.size, values.size)}, one direction per column.")

    @classmethod
    def identity(cls, size: int, variance: float = 1.0) -> Covariance:
        """Return `variance` times the identity, stored as one number."""
        shape = (check_integer(size, "size", at_least=1),)
        return cls(np.broadcast_to(to_floats([variance], "variance"), shape))

    @classmethod
    def diagonal(cls, variances: ArrayLike) -> Covariance:
        """Return a diagonal covariance; `variances` has shape (n,)."""
        return cls(to_floats(variances, "variances"))

    @classmethod
    def eigen(cls, directions: ArrayLike, variances: ArrayLike) -> Covariance:
        """Return the covariance with directions of shape (n, n), one per column, and variances of shape (n,)."""
        values = to_floats(variances, "variances")
        return cls(values, check_orthonormal(directions, values.size))

    @classmethod
    def dense(cls, matrix: ArrayLike) -> Covariance:
        """Return a covariance from a symmetric positive definite matrix of shape (n, n)."""
        array = to_floats(matrix, "a covariance")
        if array.ndim != 2 or array.shape[0] != array.shape[1] or not array.size:
            raise ParameterError(f"a covariance must be a square matrix, got shape {array.shape} instead.")
        if not np.isfinite(array).all():
            raise ParameterError("a covariance must be finite, got NaN or infinity instead.")
        largest = np.abs(array).max()
        if np.abs(array - array.T).max() > 1e-12 * largest:
            raise ParameterError("a covariance must be symmetric; if C is symmetric up to rounding, give (C + C.T)/2.")
        variances, directions = np.linalg.eigh((array + array.T) / 2)
        if variances[0] <= array.shape[0] * np.finfo(float).eps * largest:
            raise ParameterError(
                f"a covariance must be positive definite, got smallest eigenvalue {variances[0]:.3g} instead; "
                "noise must be added in every direction."
            )
        return cls(variances, directions)

    @classmethod
    def parse(cls, value: Any) -> Covariance:
        """Return a covariance from a diagonal (1-D), a matrix (2-D) or a pair (directions, variances)."""
        if isinstance(value, Covariance):
            return value
        if isinstance(value, tuple) and len(value) == 2:
            return cls.eigen(*value)
        array = np.asarray(value)
        if array.ndim == 1:
            return cls.diagonal(array)
        if array.ndim == 2:
            return cls.dense(array)
        raise ParameterError(
            "a covariance must be a vector (its diagonal), a square matrix, a pair (directions, variances) or "
            f"Covariance.identity(size), got {type(value).__name__} instead."
        )

    @property
    def _stored(self) -> Floats:
        """The variances in memory: one, for a multiple of the identity that is a broadcast array."""
        return self.variances[:1] if self.variances.strides == (0,) else self.variances

    @property
    def size(self) -> int:
        """Number of rows."""
        return int(self.variances.size)

    @cached_property
    def scalar(self) -> bool:
        """True if this is a multiple of the identity."""
        return self.variances.strides == (0,) or bool((self.variances == self.variances[0]).all())

    @cached_property
    def whitening(self) -> Factor:
        """Matrix A with ``A C A' = I``; row i is direction i divided by its standard deviation."""
        if self.scalar and self.directions is None:
            return 1 / math.sqrt(self.variances[0])
        inverse = 1 / np.sqrt(self.variances)
        return inverse if self.directions is None else np.ascontiguousarray(inverse[:, None] * self.directions.T)

    @cached_property
    def factor(self) -> Factor:
        """Matrix B with ``B B' = C``, by eigenvectors."""
        if self.scalar and self.directions is None:
            return math.sqrt(self.variances[0])
        return np.sqrt(self.variances) if self.directions is None else self.directions * np.sqrt(self.variances)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle a multiple of the identity as one number."""
        if self.variances.strides == (0,) and self.directions is None:
            return Covariance.identity, (self.size, float(self.variances[0]))
        return Covariance, (self.variances, self.directions)

    def matrix(self) -> Floats:
        """Return the dense covariance, of shape (n, n)."""
        if self.directions is None:
            return np.diag(self.variances)
        return (self.directions * self.variances) @ self.directions.T

    def marginal(self) -> Floats:
        """Return the variance of each coordinate, of shape (n,)."""
        return self.variances if self.directions is None else self.directions**2 @ self.variances

    def same_as(self, other: Covariance) -> bool:
        """Return whether the other covariance has the same directions and variances."""
        if self is other:
            return True
        if self.directions is None or other.directions is None:
            return self.directions is other.directions and np.array_equal(self.variances, other.variances)
        return np.array_equal(self.variances, other.variances) and np.array_equal(self.directions, other.directions)

    def scaled(self, by: float) -> Covariance:
        """Return `by` times this covariance; a `ParameterError` if variances become too large or too small."""
        return Covariance(np.broadcast_to(self._stored * by, self.variances.shape), self.directions)

    def normalised(self) -> tuple[Covariance, float]:
        """Return this covariance in units of a power of two, with a smallest variance in [1, 4), and the unit."""
        unit = power_of_two(math.sqrt(float(self._stored.min())))
        if unit == 1.0:
            return self, unit
        result = object.__new__(Covariance)  # without the check: variances may be as large as their ratio
        object.__setattr__(result, "variances", np.broadcast_to(self._stored / unit**2, self.variances.shape))
        object.__setattr__(result, "directions", self.directions)
        return result, unit

    def log_determinant(self) -> float:
        """Return the logarithm of the determinant."""
        return float(np.log(self._stored).sum()) * (self.size // self._stored.size)


def check_orthonormal(directions: ArrayLike, size: int) -> Floats:
    """Return `directions` as floats of shape (size, size); raise a `ParameterError` unless they are orthonormal."""
    array = to_floats(directions, "directions")
    if array.shape != (size, size):
        raise ParameterError(
            f"directions must have shape {(size, size)}, one direction per column, got {array.shape} instead."
        )
    if not np.isfinite(array).all():
        raise ParameterError("directions must be finite, got NaN or infinity instead.")
    with np.errstate(over="ignore", invalid="ignore"):
        worst = np.abs(array.T @ array - np.eye(size)).max()
    if not worst <= ORTHONORMAL:
        raise ParameterError(
            f"directions must be orthonormal: W'W may differ from the identity by {ORTHONORMAL:g}, got {worst:.3g}. "
            "Use numpy.linalg.qr(directions)[0]."
        )
    return array


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
