"""The Bingham law on the sphere, drawn exactly by rejection (Kent, Ganeiban, Mardia 2013).

The density is ``exp(x'Ax)``. With ``B = max eigenvalue - A`` it is ``exp(-x'Bx)``, and for every b > 0::

    exp(-u) <= exp(-(m - b)/2) (m/b)^(m/2) (1 + 2u/b)^(-m/2),    u = x'Bx >= 0

where ``(x'(I + 2B/b)x)^(-m/2)`` is the density of a normalised Gaussian of covariance ``(I + 2B/b)^-1``. The best b
solves ``sum 1/(b + 2 lambda_i) = 1``, lambda the eigenvalues of B; acceptance stays high at any concentration.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq

from matrixdp.baselines.float_samplers import draw_uniform
from matrixdp.noise import Stream, draw_normal
from matrixdp.types import Floats


def draw_bingham(stream: Stream, matrix: Floats, size: int = 1) -> Floats:
    """Unit vectors with density proportional to ``exp(x' matrix x)``, of shape (size, m); x and -x are equally likely.

    Parameters
    ----------
    stream : Stream
    matrix : float64 array of shape (m, m)
        Symmetric.
    size : int

    Examples
    --------
    >>> draw_bingham(Stream(seed=1), np.diag([1e6, 0.0])).round(1).__abs__().tolist()
    [[1.0, 0.0]]
    """
    eigenvalues, vectors = np.linalg.eigh(matrix)
    rates = eigenvalues[-1] - eigenvalues
    m = rates.size
    b = _best_b(rates)
    spread = 1 / np.sqrt(1 + 2 * rates / b)
    offset = (m - b) / 2 - m / 2 * math.log(m / b)
    kept: list[Floats] = []
    missing = size
    while missing > 0:
        normals = draw_normal(stream, (2 * missing + 8, m)) * spread
        points = normals / np.linalg.norm(normals, axis=1, keepdims=True)
        u = points**2 @ rates
        accepted = np.log(draw_uniform(stream, len(points))) < offset - u + m / 2 * np.log1p(2 * u / b)
        kept.append(points[accepted])
        missing -= len(kept[-1])
    return np.asarray(np.concatenate(kept)[:size] @ vectors.T)


def _best_b(rates: Floats) -> float:
    """The root of ``sum 1/(b + 2 rates) = 1``; it lies between 1, since one rate is zero, and m."""
    if rates.size == 1 or not rates.any():
        return float(rates.size)
    return float(brentq(lambda b: float((1 / (b + 2 * rates)).sum()) - 1, 1.0, float(rates.size)))
