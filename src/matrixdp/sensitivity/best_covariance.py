"""The best covariance for finitely many changes, with a certificate.

Minimise ``tr(U K)`` subject to ``v_k' K^-1 v_k <= 1`` for all k. For every p >= 0 that sums to one, with ``M = sum
p_k v_k v_k'``, each feasible K has ``tr(M K^-1) <= 1`` and so ``tr(U K) >= (tr (U^1/2 M U^1/2)^1/2)^2``: the lower
bound. The K that attains it for given p is proportional to ``U^-1/2 (U^1/2 M U^1/2)^1/2 U^-1/2``; p moves to where
its constraint is violated most.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matrixdp.checks import power_of_two
from matrixdp.errors import ParameterError
from matrixdp.types import Floats

MAX_ENTRIES = 400


@dataclass(frozen=True, eq=False)
class Solution:
    """A feasible covariance, its value, and a lower bound on every feasible value."""

    covariance: Floats
    value: float
    bound: float

    @property
    def gap(self) -> float:
        """Upper bound on the relative excess of `value` over the optimum."""
        return self.value / self.bound - 1


def best_covariance(changes: Floats, weights: Floats, *, tolerance: float = 1e-6, steps: int = 5000) -> Solution:
    """Covariance of unit distance with the least ``sum weights_i variance_i``.

    Parameters
    ----------
    changes : float64 array of shape (k, d)
        The changes v_k.
    weights : float64 array of shape (d,)
        The diagonal of U.

    Examples
    --------
    >>> solution = best_covariance(np.array([[2.0, 0.0], [0.0, 1.0]]), np.ones(2))
    >>> solution.covariance.round(3).tolist(), round(solution.value, 3)
    ([[4.0, 0.0], [0.0, 1.0]], 5.0)
    """
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
    best: Solution | None = None
    for _ in range(steps):
        values, vectors = np.linalg.eigh((scaled.T * p) @ scaled)
        square_root = np.sqrt(np.maximum(values, 0.0))
        trace = float(square_root.sum())
        spread = trace * np.sqrt(np.maximum(values, floor))  # eigenvalues of the scaled covariance
        loads = np.square(scaled @ vectors) @ (1 / spread)
        worst = float(loads.max())
        if best is None or worst * spread.sum() < best.value:
            covariance = (vectors * (worst * spread)) @ vectors.T / np.multiply.outer(root, root)
            bound = max(trace**2, best.bound if best else 0.0)
            best = Solution(covariance, worst * float(spread.sum()), bound)
        elif trace**2 > best.bound:
            best = Solution(best.covariance, best.value, trace**2)
        if best.gap <= tolerance:
            break
        p = p * loads
        p /= p.sum()
    assert best is not None
    return Solution(best.covariance * unit**2, best.value * unit**2, best.bound * unit**2)
