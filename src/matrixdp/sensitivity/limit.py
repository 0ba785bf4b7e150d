"""The least error that Gaussian noise of any covariance can have, and sets of finitely many changes, which attain it.

Lower bounds follow by duality.

Noise with covariance K is at distance one or less if ``v'K^-1 v <= 1`` for every change v. Let p be weights, ``p >= 0``
with sum one, on some changes, and ``M = sum p_k v_k v_k'``. Then ``tr(M K^-1) <= 1``, and by the Cauchy-Schwarz
inequality ``tr K >= (tr M^1/2)^2``. Every p gives a bound; a good p gives a good one.

Records in the cube ``[-1, 1]^d`` may be permuted and their features may change signs. Weights that are the same for all
pairs of records that such an operation maps to each other make M a multiple of the identity on each of the parts that
the operations leave invariant: of a symmetric matrix the part off the diagonal, the diagonal without its trace, the
trace; beside them the mean. With ``q_k`` the weighted mean of the squared length of part k, of dimension ``n_k``, the
bound is ``(sum_k sqrt(n_k q_k))^2`` (docs/optimality.md).

For finitely many changes the best covariance is found with a certificate: minimise ``tr(U K)`` subject to ``v_k' K^-1
v_k <= 1`` for all k. The K that attains the bound ``(tr (U^1/2 M U^1/2)^1/2)^2`` for given p is proportional to
``U^-1/2 (U^1/2 M U^1/2)^1/2 U^-1/2``; p moves to where its constraint is violated most.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from matrixdp.checks import check_magnitude, power_of_two, to_floats
from matrixdp.errors import ParameterError
from matrixdp.noise.matrix import Covariance, apply_factors, triangle_to_vector
from matrixdp.sensitivity.distance import EPS, ROUND_DOWN, Distance, Sensitivity, scale_free
from matrixdp.serialise import builtin_kind
from matrixdp.types import Factor, Floats

MAX_ENTRIES = 400
_LARGEST_PROBLEM = 20_000  # changes times entries for which a lower bound on the error is computed
SMALL = 4  # features up to which the changes are enumerated where symmetry does not help
_STEPS = 4000
SOLVER_ERROR = 1 - 1e-6  # roots of eigenvalues that are zero up to rounding add up to 1e-8 each


@dataclass(frozen=True, eq=False)
class Solution:
    """A feasible covariance, its value, and a lower bound on every feasible value."""

    covariance: Floats
    value: float
    bound: float


def best_covariance(changes: Floats, weights: Floats, *, tolerance: float = 1e-6, steps: int = 5000) -> Solution:
    """Covariance of unit distance with the least ``sum weights_i variance_i``: changes (k, d), weights (d,)."""
    count, size = changes.shape
    if size > MAX_ENTRIES:
        raise ParameterError(
            f"the optimal allocation for vertices takes answers of up to {MAX_ENTRIES} entries, got {size} instead."
        )
    unit = power_of_two(float(np.abs(changes).max()))
    root = np.sqrt(weights)
    scaled = changes / unit * root
    # A little isotropic weight keeps noise in directions that no change reaches; the certificate accounts for it.
    floor = 1e-12 * float(np.square(scaled).sum(axis=1).max())
    p = np.full(count, 1 / count)
    value, bound = math.inf, 0.0
    for _ in range(steps):
        values, vectors = np.linalg.eigh((scaled.T * p) @ scaled)
        square_root = np.sqrt(np.maximum(values, 0.0))
        trace = float(square_root.sum())
        spread = trace * np.sqrt(np.maximum(values, floor))  # eigenvalues of the scaled covariance
        loads = np.square(scaled @ vectors) @ (1 / spread)
        worst = float(loads.max())
        bound = max(bound, trace**2)
        if worst * spread.sum() < value:
            value = worst * float(spread.sum())
            covariance = (vectors * (worst * spread)) @ vectors.T / np.multiply.outer(root, root)
        if value / bound - 1 <= tolerance:
            break
        p = p * loads
        p /= p.sum()
    return Solution(covariance * unit**2, value * unit**2, bound * unit**2)


@functools.lru_cache(maxsize=64)
def least_moment_error(features: int, *, replace: bool, constant: bool) -> float:
    """Lower bound on the total squared error of a moment of records in ``[-1, 1]^d``, for noise of distance one.

    A record is replaced, or else added or removed; with a `constant` 1 before it, the mean is released as well.
    """
    d, n = features, features * (features - 1) / 2
    if replace and not constant and d not in (1, 3):  # in closed form (docs/optimality.md)
        odd = d % 2
        parts = n + (d - 1) / (1 + 1.5 * d - 2 * odd / d) + 1 / (1 + d - 2 * odd / d)
        return (2 * d * d - 2 * odd) * parts * ROUND_DOWN
    dimensions, k = np.array([n, d - 1.0, 1.0]), np.arange(d + 1.0)
    # Squared parts of ``x x'`` for records x with k ones, k = 0 to d, and the squared lengths of x; or those of pairs.
    squares, means = np.column_stack([k**2 - k, np.maximum(k - k**2 / d, 0.0), k**2 / d]), k
    if replace:
        squares, means = _pairs(d)
    joint = np.empty((len(squares), 0))
    if constant and not replace:  # the number of records and the trace both stay as they are under every operation
        joint = np.column_stack([np.ones(d + 1), np.sqrt(squares[:, 2])])
        squares, dimensions = squares[:, :2], dimensions[:2]
    if constant:
        squares, dimensions = np.column_stack([squares, 2 * means]), np.append(dimensions, float(d))
    # All signs of the lengths of the parts, with equal weights, have the moment that the operations leave invariant.
    signs = np.array(list(itertools.product((1.0, -1.0), repeat=len(dimensions))))
    lengths = np.sqrt(dimensions * squares)[:, None] * signs
    changes = np.column_stack([lengths.reshape(-1, len(dimensions)), np.repeat(joint, len(signs), axis=0)])
    return best_covariance(changes, np.ones(changes.shape[1]), tolerance=1e-5, steps=_STEPS).bound * SOLVER_ERROR


def least_ball_error(features: int, radius: float) -> float:
    """Like `least_moment_error` for a replaced record of a ball: all matrices without a trace are one part."""
    traceless = features * (features + 1) / 2 - 1
    return 2 * (traceless + 1 / (features + 1)) * radius**4 * ROUND_DOWN


def small_moment_error(points: Floats, scale: Floats, *, replace: bool) -> float:
    """Lower bound from all changes between given records, without any symmetry; for few features.

    `points`, of shape (k, m), are possible records; a constant, if any, is their first entry. Errors are divided by
    `scale`, of shape (m, m).
    """
    moments = np.array([triangle_to_vector(np.multiply.outer(x, x) / scale) for x in points])
    changes = moments
    if replace:
        changes = np.array([a - b for a, b in itertools.combinations(moments, 2)])
    changes = np.unique(changes[np.abs(changes).max(axis=1) > 0], axis=0)
    return best_covariance(changes, np.ones(changes.shape[1]), tolerance=1e-3, steps=400).bound * SOLVER_ERROR


def _pairs(d: int) -> tuple[Floats, Floats]:
    """Squared parts of pairs of records with entries -1, 0 and 1, and of their difference.

    A pair has `same` features with equal signs, `other` with different signs, `first` where only x is not zero and
    `second` where only y is not. For many features only few of the pairs with zeros are taken.
    """
    counts = [
        (d - zeros - other, other, first, zeros - first)
        for zeros in (range(d + 1) if d <= 12 else (0, 1, d))
        for first in range((zeros + 1) // 2, zeros + 1)
        for other in range(d - zeros + 1)
        if other or zeros
    ]
    same, other, first, second = np.array(counts, float).T
    x, y, inner = same + other + first, same + other + second, same - other
    diagonal, trace = first + second, (first - second) ** 2 / d
    squares = np.column_stack([x**2 + y**2 - 2 * inner**2 - diagonal, np.maximum(diagonal - trace, 0.0), trace])
    return squares, 4 * other + first + second


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
        return max(math.hypot(*change.flat) for change in self.changes) * (1 + 1e-15)

    def check_shape(self, shape: tuple[int, int]) -> None:
        if self.changes.shape[1:] != shape:
            raise ParameterError(f"the vertices' changes must have shape (k, {shape[0]}, {shape[1]}).")

    def flat(self) -> Vertices:
        return Vertices(self.changes.reshape(len(self.changes), -1, 1))

    def best_covariance(self, shape: tuple[int, int], weights: Floats | None) -> Covariance:
        """Covariance of all entries in one column with the least weighted noise, up to a certified gap of 1e-6."""
        size = shape[0] * shape[1]
        diagonal = np.ones(size) if weights is None else np.broadcast_to(weights, shape).reshape(-1)
        return Covariance.dense(best_covariance(self.changes.reshape(-1, size), diagonal).covariance)

    def least_error(self, scale: Floats, *, symmetric: bool) -> float | None:
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
    return max(math.hypot(*apply_factors(left, change, right).flat) for change in changes)
