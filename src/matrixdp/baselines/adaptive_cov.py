"""AdaptiveCov: clip at a private radius, then the better of two mechanisms (Dong, Liang, Yi 2022)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from matrixdp.answers.psd import nearest_psd
from matrixdp.baselines.separate_cov import separate
from matrixdp.baselines.unit_records import SharedBudget, moment_release, unit_records
from matrixdp.noise import Stream
from matrixdp.privacy import Privacy
from matrixdp.queries import MatrixQuery
from matrixdp.release.mechanism_release import MechanismRelease
from matrixdp.release.registry import gaussian_cost, register_mechanism
from matrixdp.types import Floats

_SEARCH, _TRACE = 0.125, 0.125  # shares of mu^2 for the radius and the trace


@register_mechanism("AdaptiveCov", cost=gaussian_cost, tasks=("second-moment",), comparison_only=True)
def adaptive_cov(
    query: MatrixQuery, privacy: Privacy, data: Any, *, stream: Stream | None = None, simulation: bool = False
) -> MechanismRelease:
    """Second moment of records clipped at a private radius, by the mechanism with the smaller error bound.

    The paper finds the radius on a grid of powers of two by the sparse vector technique. Here it is found on the same
    grid by bisection of counts with Gaussian noise, which needs fewer counts. The two mechanisms are compared by error
    bounds of the paper's form at a private trace. The split of the budget and the constants follow the paper's text,
    not the authors' code.

    Parameters are those of `separate_cov`.

    Privacy
    -------
    (epsilon, delta)-DP for replaced records: Gaussian releases whose shares of ``mu^2`` sum to one.

    Examples
    --------
    >>> from matrixdp import Bounds, SecondMoment
    >>> adaptive_cov(SecondMoment(Bounds([-1, -1], [1, 1]), 2), Privacy(1, 1e-5), [[0.1, 0.2], [0.3, 0.4]]).matrix.shape
    (2, 2)
    """
    moment, records = unit_records(query, privacy, data, "AdaptiveCov")
    budget = SharedBudget(privacy, stream, simulation)
    n, d = records.shape
    radius = _radius(records, budget, above=d / privacy.mu)
    lengths = np.minimum(np.linalg.norm(records, axis=1), radius)
    square = np.array([float(np.mean(lengths**2))])
    trace, _ = budget.vector(square, radius**2 / n, radius**2 * (1 + 1e-9), _TRACE)
    share = 1 - _SEARCH - _TRACE
    noise = math.sqrt(2) * radius**2 / (n * privacy.mu * math.sqrt(share))
    separate_error = math.sqrt(max(float(trace[0]), 0.0) * noise * math.sqrt(2 * d)) + noise * math.sqrt(2 * d)
    if noise * d <= separate_error:
        matrix = nearest_psd(budget.second_moment(records, radius, share)[0])
    else:
        matrix = separate(records, radius, budget, share)
    return moment_release("AdaptiveCov", moment, budget, matrix, radius=radius)


def _radius(records: Floats, budget: SharedBudget, *, above: float) -> float:
    """A power of two times sqrt(m) that about `above` records exceed, at most half of them."""
    n, d = records.shape
    lengths = np.linalg.norm(records, axis=1)
    grid = math.sqrt(d) * 2.0 ** np.arange(-7, 1)
    low, high, steps = 0, len(grid) - 1, 3
    for _ in range(steps):
        middle = (low + high) // 2
        count, _ = budget.vector(np.array([float((lengths > grid[middle]).sum())]), 1.0, 2.0 * n, _SEARCH / steps)
        low, high = (middle + 1, high) if count[0] > min(above, n / 2) else (low, middle)
    return float(grid[min(low, len(grid) - 1)])
