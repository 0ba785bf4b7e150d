"""AdaptiveCov: clip at a private radius, then the better of two mechanisms (Dong, Liang, Yi 2022)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from matrixdp.answers.moments import nearest_psd
from matrixdp.baselines.rival import RivalRelease
from matrixdp.baselines.separate_cov import separate
from matrixdp.baselines.unit_box import Purse, in_units, unit_records
from matrixdp.noise import Stream
from matrixdp.privacy import Privacy
from matrixdp.queries import MatrixQuery
from matrixdp.types import Floats

_SEARCH, _TRACE = 0.125, 0.125  # shares of mu^2: a quarter for what is learned first


def adaptive_cov(
    query: MatrixQuery, privacy: Privacy, data: Any, *, stream: Stream | None = None, simulation: bool = False
) -> RivalRelease:
    """Second moment of records clipped at a private radius, with whichever noise promises the smaller error.

    The paper finds the radius on a grid of powers of two by the sparse vector technique. Here a bisection of noisy
    counts with Gaussian noise does it on the same grid, which needs fewer of them at the same budget. The two
    mechanisms are compared by bounds of the paper's form at a private trace. The split of the budget and the constants
    are a reading of the paper, not its code.

    Parameters
    ----------
    query : SecondMoment
        About the midpoint; carries the bounds, which are scaled to [-1, 1].
    privacy, data, stream, simulation
        As for `matrixdp.release.release`.

    Privacy
    -------
    (epsilon, delta)-DP for replaced records: Gaussian releases whose shares of ``mu^2`` sum to one.

    Examples
    --------
    >>> from matrixdp.domain.bounds import Bounds
    >>> from matrixdp.queries import SecondMoment
    >>> adaptive_cov(SecondMoment(Bounds([-1, -1], [1, 1]), 2), Privacy(1, 1e-5), [[0.1, 0.2], [0.3, 0.4]]).matrix.shape
    (2, 2)
    """
    moment, records = unit_records(query, privacy, data, "AdaptiveCov")
    purse = Purse(privacy, stream, simulation)
    n, d = records.shape
    radius = _radius(records, purse, above=d / privacy.mu)
    lengths = np.minimum(np.linalg.norm(records, axis=1), radius)
    square = np.array([float(np.mean(lengths**2))])
    trace, _ = purse.vector(square, radius**2 / n, radius**2 * (1 + 1e-9), _TRACE)
    share = 1 - _SEARCH - _TRACE
    noise = math.sqrt(2) * radius**2 / (n * privacy.mu * math.sqrt(share))
    gauss, apart = noise * d, math.sqrt(max(float(trace[0]), 0.0) * noise * math.sqrt(2 * d)) + noise * math.sqrt(2 * d)
    if gauss <= apart:
        matrix = nearest_psd(purse.second_moment(records, radius, share)[0])
    else:
        matrix = separate(records, radius, purse, share)
    return in_units(moment, privacy, matrix, "AdaptiveCov", simulation, radius=radius)


def _radius(records: Floats, purse: Purse, *, above: float) -> float:
    """A power of two times sqrt(m) that about `above` records exceed, at most half of them."""
    n, d = records.shape
    lengths = np.linalg.norm(records, axis=1)
    grid = math.sqrt(d) * 2.0 ** np.arange(-7, 1)
    low, high, steps = 0, len(grid) - 1, 3
    for _ in range(steps):
        middle = (low + high) // 2
        count, _ = purse.vector(np.array([float((lengths > grid[middle]).sum())]), 1.0, 2.0 * n, _SEARCH / steps)
        low, high = (middle + 1, high) if count[0] > min(above, n / 2) else (low, middle)
    return float(grid[min(low, len(grid) - 1)])
