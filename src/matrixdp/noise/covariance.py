"""Covariance of the rows or of the columns of the noise.

A covariance is stored as directions (orthonormal columns, or None for the standard basis) and variances along them, so
that an identity or a diagonal takes little memory. Distances between neighbours are computed for the floats of its
whitening factor, so that their rounding errors are accounted for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from matrixdp.checks import check_integer, check_magnitudes, power_of_two, to_floats
from matrixdp.display import short_repr
from matrixdp.errors import ParameterError
from matrixdp.serialise import builtin_kind
from matrixdp.types import Factor, Floats

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
