"""The nearest graph of bounded degrees, as exact integers: what node privacy needs of graphs that exceed the bound.

``P(A)`` is the graph nearest to A, in the sum of squares over edges, among those with weights of at least 0 in which no
node's weights sum to more than D. A graph within the bound stays as it is. It has multipliers ``lambda >= 0`` with ::

    B_ij = max(0, A_ij - lambda_i - lambda_j),   lambda_i > 0 only where the weights of i sum to D

and `docs/mathematics.md` ("Nodes") proves from these two lines how far the edges of one node can move B. The proof also
covers sums that miss D by a `tolerance`, so that integers suffice: `bound_degrees` checks both lines exactly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from matrixdp.types import Floats

FINE = 1 << 40  # steps from no edge to one of full weight
MOST_NODES = 10_000  # so that rounding the multipliers to steps stays within the tolerance
_HALVINGS = 6


def tolerance(nodes: int) -> int:
    """How far a sum of weights may be from the bound, in steps: ``2^-12/nodes`` of the largest weight.

    Examples
    --------
    >>> tolerance(1000) / FINE < 2.5e-7
    True
    """
    return (FINE >> 12) // nodes


def bound_degrees(weights: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    """The nearest graph in which no node's weights sum to more than `limit`, up to the tolerance.

    Parameters
    ----------
    weights : int64 array of shape (n, n)
        Symmetric, with a zero diagonal; in steps.
    limit : int
        In steps, at least one full weight.

    Returns
    -------
    int64 array of shape (n, n)
        ``max(0, weights - lambda_i - lambda_j)`` for integers lambda, which were checked.
    """
    if (weights.sum(axis=1) <= limit).all():
        return weights
    shares, bound = weights / FINE, limit / FINE
    multipliers = np.zeros(len(weights))
    while True:  # dual ascent converges; integers within the tolerance end it
        _sweep(shares, bound, multipliers)
        _newton_step(shares, bound, multipliers)
        steps = np.rint(multipliers * FINE).astype(np.int64)
        found = _subtract(weights, steps)
        if _certified(found, steps, limit):
            return found


def _subtract(weights: NDArray[np.int64], steps: NDArray[np.int64]) -> NDArray[np.int64]:
    found = np.maximum(weights - steps[:, None] - steps[None, :], 0)
    np.fill_diagonal(found, 0)
    return np.asarray(found)


def _certified(found: NDArray[np.int64], steps: NDArray[np.int64], limit: int) -> bool:
    """Whether sums are at most the limit, and equal to it where there is a multiplier, up to the tolerance."""
    sums, slack = found.sum(axis=1), tolerance(len(found))
    return bool((steps >= 0).all() and (sums <= limit + slack).all() and (sums[steps > 0] >= limit - slack).all())


def _sweep(shares: Floats, bound: float, multipliers: Floats) -> None:
    """Set each multiplier in turn to its best value for the others, in place."""
    for node, row in enumerate(shares):
        rest = row - multipliers
        rest[node] = 0.0
        largest = -np.sort(-rest[rest > 0])
        sums = np.cumsum(largest)
        if not sums.size or sums[-1] <= bound:
            multipliers[node] = 0.0
            continue
        levels = (sums - bound) / np.arange(1, sums.size + 1)
        multipliers[node] = max(0.0, levels[np.flatnonzero(largest > levels)[-1]])


def _newton_step(shares: Floats, bound: float, multipliers: Floats) -> None:
    """Solve for all multipliers at once, as if the edges that are left stayed the same; kept where it is better."""
    active = np.flatnonzero(multipliers)
    if not active.size:
        return
    found = _positive_part(shares, multipliers)
    kept = (found > 0)[active]
    matrix = kept[:, active].astype(np.float64) + np.diag(kept.sum(axis=1) + 1e-9)
    step = np.linalg.solve(matrix, found[active].sum(axis=1) - bound)
    before, factor = _dual(found, multipliers, bound), 1.0
    for _ in range(_HALVINGS):
        tried = multipliers.copy()
        tried[active] = np.maximum(tried[active] + factor * step, 0.0)
        if _dual(_positive_part(shares, tried), tried, bound) > before:
            multipliers[:] = tried
            return
        factor /= 2


def _positive_part(shares: Floats, multipliers: Floats) -> Floats:
    found = np.maximum(shares - multipliers[:, None] - multipliers[None, :], 0.0)
    np.fill_diagonal(found, 0.0)
    return np.asarray(found)


def _dual(found: Floats, multipliers: Floats, bound: float) -> float:
    """The dual function, up to a constant; its largest value belongs to the nearest graph."""
    return -float(np.square(found).sum()) / 4 - bound * float(multipliers.sum())
