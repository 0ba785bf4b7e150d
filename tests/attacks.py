"""Searches for a worse neighbour: what every claimed distance must survive."""

import numpy as np


def dense(factor, size):
    """A whitening factor as a matrix."""
    return factor * np.eye(size) if np.ndim(factor) == 0 else np.diag(factor) if np.ndim(factor) == 1 else factor


def into_domain(x, halfwidths, radius):
    """The record moved into the box and the ball."""
    x = np.clip(x, -halfwidths, halfwidths)
    norm = np.linalg.norm(x)
    return x * (radius / norm) if radius is not None and norm > radius else x


def climb(objective, start, project, steps=60):
    """Coordinate-wise random search from `start`; returns the best value found."""
    rng = np.random.default_rng(0)
    best, value = start, objective(start)
    scale = 1.0
    for _ in range(steps):
        improved = False
        for _ in range(8):
            candidate = project(best + scale * rng.standard_normal(best.shape) * (rng.random(best.shape) < 0.5))
            found = objective(candidate)
            if found > value:
                best, value, improved = candidate, found, True
        scale = scale * 1.3 if improved else scale * 0.7
    return value


def worst_record_pair(distance, halfwidths, radius, rng, low=None, starts=12):
    """Largest `distance(x, y)` found over pairs of records of the domain, from corners, middles and random points."""
    low = -halfwidths if low is None else low

    def project(pair):
        x, y = np.clip(pair, low, halfwidths)
        return np.array([into_domain(x, halfwidths, radius), into_domain(y, halfwidths, radius)])

    m = halfwidths.size
    best = 0.0
    for i in range(starts):
        corner = np.where(rng.random((2, m)) < 0.5, low, halfwidths)
        start = corner if i % 3 else np.array([corner[0], np.zeros(m)])
        if i % 3 == 2:
            start = rng.uniform(low, halfwidths, (2, m))
        best = max(best, climb(lambda pair: distance(*pair), project(start), project))
    return best
