"""Floating-point draws from the one stream, for mechanisms that are here for comparison only."""

from __future__ import annotations

import numpy as np

from matrixdp.noise import Stream, draw_normal
from matrixdp.types import Floats


def draw_uniform(stream: Stream, size: int) -> Floats:
    """Uniform numbers strictly between 0 and 1, of shape (size,).

    Examples
    --------
    >>> 0 < float(draw_uniform(Stream(seed=1), 1)[0]) < 1
    True
    """
    return np.asarray((stream.words(size) >> np.uint64(12)) * 2.0**-52 + 2.0**-53)


def draw_gamma(stream: Stream, shape: int, size: int) -> Floats:
    """Draws of the Gamma law of whole `shape` and unit scale: sums of exponentials; of shape (size,).

    Examples
    --------
    >>> round(float(draw_gamma(Stream(seed=1), 10**6, 1)[0] / 10**6), 1)
    1.0
    """
    logs = np.log(draw_uniform(stream, shape * size))
    return np.asarray(-logs.reshape(size, shape).sum(axis=1))


def draw_directions(stream: Stream, dimension: int, size: int) -> Floats:
    """Uniform points on the unit sphere, of shape (size, dimension).

    Examples
    --------
    >>> round(float(np.linalg.norm(draw_directions(Stream(seed=1), 5, 1))), 12)
    1.0
    """
    normals = draw_normal(stream, (size, dimension))
    return np.asarray(normals / np.linalg.norm(normals, axis=1, keepdims=True))
