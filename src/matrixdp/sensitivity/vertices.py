"""Finitely many changes, given one by one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from matrixdp.checks import check_magnitude, power_of_two, to_floats
from matrixdp.errors import ParameterError
from matrixdp.noise.covariance import Covariance
from matrixdp.noise.matrix import apply_factors, triangle_to_vector
from matrixdp.sensitivity.distance import EPS, Distance, Sensitivity, scale_free
from matrixdp.sensitivity.limit import MAX_ENTRIES, SOLVER_ERROR, best_covariance
from matrixdp.serialise import builtin_kind
from matrixdp.types import Factor, Floats

_LARGEST_PROBLEM = 20_000  # changes times entries for which a lower bound on the error is computed


@builtin_kind
@dataclass(frozen=True, eq=False, repr=False)
class Vertices(Sensitivity):
    """The changes ``changes[k]``, each with its negative, and all mixtures of them.

    Parameters
    ----------
    changes : array_like of shape (k, m, n)
        Since a norm is convex, only the corners of the set of changes are needed.

    Examples
    --------
    >>> change = Vertices([[[3.0, 0.0]], [[0.0, 4.0]]])
    >>> change.distance(Covariance.identity(1), Covariance.diagonal([1.0, 4.0])).attained
    3.0
    """

    changes: Floats

    def __init__(self, changes: ArrayLike) -> None:
        array = to_floats(changes, "changes")
        if array.ndim != 3 or not array.size:
            raise ParameterError(
                f"changes must have shape (k, m, n), one possible change per slice, got {array.shape} instead."
            )
        if not np.isfinite(array).all() or not array.any():
            raise ParameterError("changes must be finite and not all zero.")
        check_magnitude(np.abs(array).max(), "changes (the largest absolute value)")
        object.__setattr__(self, "changes", array)

    @property
    def frobenius(self) -> float:
        """Largest norm."""
        return max(_norm(change) for change in self.changes) * (1 + 1e-15)

    def check_shape(self, shape: tuple[int, int]) -> None:
        """Raise a `ParameterError` unless the changes have this shape."""
        if self.changes.shape[1:] != shape:
            raise ParameterError(f"the vertices' changes must have shape (k, {shape[0]}, {shape[1]}).")

    def flat(self) -> Vertices:
        """The same changes as columns, of shape (k, m n, 1)."""
        return Vertices(self.changes.reshape(len(self.changes), -1, 1))

    def best_covariance(self, shape: tuple[int, int], weights: Floats | None) -> Covariance:
        """Covariance of all entries in one column with the least weighted noise, up to a certified gap of 1e-6."""
        size = shape[0] * shape[1]
        diagonal = np.ones(size) if weights is None else np.broadcast_to(weights, shape).reshape(-1)
        return Covariance.dense(best_covariance(self.changes.reshape(-1, size), diagonal).covariance)

    def least_error(self, scale: Floats, *, symmetric: bool) -> float | None:
        """The bound of the solver, for answers that it takes."""
        if scale.size > MAX_ENTRIES or self.changes.size > _LARGEST_PROBLEM:
            return None
        flatten = triangle_to_vector if symmetric else np.ravel
        changes = np.array([flatten(change / scale) for change in self.changes])
        return best_covariance(changes, np.ones(changes.shape[1]), tolerance=1e-3, steps=400).bound * SOLVER_ERROR

    @scale_free
    def distance(self, rowcov: Covariance, colcov: Covariance) -> Distance:
        """Exact: the largest over the vertices."""
        if self.changes.shape[1:] != (rowcov.size, colcov.size):
            raise ParameterError(
                f"changes must have shape (k, {rowcov.size}, {colcov.size}), got {self.changes.shape} instead."
            )
        left, right = rowcov.whitening, colcov.whitening
        value = _largest_norm(left, self.changes, right)
        rounding = (
            2 * (rowcov.size + colcov.size + 4) * EPS * _largest_norm(np.abs(left), np.abs(self.changes), np.abs(right))
        )
        return Distance(value + rounding, value).times(1.0)


def _largest_norm(left: Factor, changes: Floats, right: Factor) -> float:
    return max(_norm(apply_factors(left, change, right)) for change in changes)


def _norm(values: Floats) -> float:
    """Frobenius norm, for which no square overflows or underflows."""
    largest = float(np.abs(values).max())
    unit = power_of_two(largest) if largest else 1.0
    return math.sqrt(float(np.square(values / unit).sum())) * unit
