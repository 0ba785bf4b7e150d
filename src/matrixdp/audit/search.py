"""Search for a pair of records that are as far apart as possible, for any distance between two records."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from matrixdp.types import Floats

_ROUNDS = 60  # of eight candidates each


def climb(objective: Callable[[Floats], float], start: Floats, project: Callable[[Floats], Floats]) -> float:
    """Largest value that a random coordinate-wise search from `start` finds.

    Parameters
    ----------
    objective : callable
        Value to maximise.
    start : float64 array
    project : callable
        Moves a point into the domain.
    """
    rng = np.random.default_rng(0)
    best, value = start, objective(start)
    scale = 1.0
    for _ in range(_ROUNDS):
        improved = False
        for _ in range(8):
            candidate = project(best + scale * rng.standard_normal(best.shape) * (rng.random(best.shape) < 0.5))
            found = objective(candidate)
            if found > value:
                best, value, improved = candidate, found, True
        scale = scale * 1.3 if improved else scale * 0.7
    return value


def worst_record_pair(
    distance: Callable[[Floats, Floats], float],
    halfwidths: Floats,
    radius: float | None,
    rng: np.random.Generator,
    *,
    low: Floats | None = None,
    starts: int = 12,
) -> float:
    """Largest ``distance(x, y)`` found over pairs of records, from corners, the midpoint and random points.

    Parameters
    ----------
    distance : callable
        Of two records of shape (m,).
    halfwidths : float64 array of shape (m,)
        Upper ends of the box; `low` are the lower ones, ``-halfwidths`` by default.
    radius : float or None
        Bound on a record's norm.
    rng : Generator
    low : float64 array of shape (m,), optional
    starts : int

    Examples
    --------
    >>> apart = lambda x, y: float(np.linalg.norm(x - y))
    >>> round(worst_record_pair(apart, np.ones(2), None, np.random.default_rng(0), starts=3), 3)
    2.828
    """
    low = -halfwidths if low is None else low

    def project(pair: Floats) -> Floats:
        inside = np.clip(pair, low, halfwidths)
        norms = np.linalg.norm(inside, axis=1, keepdims=True)
        return (
            inside
            if radius is None
            else np.where(norms > radius, inside * (radius / np.maximum(norms, radius)), inside)
        )

    best = 0.0
    for i in range(starts):
        corner = np.where(rng.random((2, halfwidths.size)) < 0.5, low, halfwidths)
        start = corner if i % 3 else np.array([corner[0], np.zeros(halfwidths.size)])
        if i % 3 == 2:
            start = rng.uniform(low, halfwidths, (2, halfwidths.size))
        best = max(best, climb(lambda pair: distance(*pair), project(start), project))
    return best
