"""SeparateCov: eigenvalues and eigenvectors of a second moment, perturbed separately (Dong, Liang, Yi 2022)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from matrixdp.baselines.unit_records import SharedBudget, clip_rows, moment_release, unit_records
from matrixdp.noise import Stream
from matrixdp.privacy import Privacy
from matrixdp.queries import MatrixQuery
from matrixdp.release.mechanism_release import MechanismRelease
from matrixdp.release.registry import gaussian_cost, register_mechanism
from matrixdp.types import Floats


@register_mechanism("SeparateCov", cost=gaussian_cost, tasks=("second-moment",), comparison_only=True)
def separate_cov(
    query: MatrixQuery, privacy: Privacy, data: Any, *, stream: Stream | None = None, simulation: bool = False
) -> MechanismRelease:
    """Eigenvectors of a noisy second moment with noisy eigenvalues of the true one.

    Parameters
    ----------
    query : SecondMoment
        About the midpoint of its bounds, which are scaled to [-1, 1].
    privacy, data, stream, simulation
        As for `matrixdp.release.release`.

    Privacy
    -------
    (epsilon, delta)-DP for replaced records. Half of ``mu^2`` goes to each part. Eigenvalues of two symmetric matrices
    differ by at most ``||A - B||_F`` in L2 (Hoffman and Wielandt), so they have the sensitivity of the matrix.

    Examples
    --------
    >>> from matrixdp.domain.bounds import Bounds
    >>> from matrixdp.queries import SecondMoment
    >>> separate_cov(SecondMoment(Bounds([-1, -1], [1, 1]), 2), Privacy(1, 1e-5), [[0.1, 0.2], [0.3, 0.4]]).matrix.shape
    (2, 2)
    """
    moment, records = unit_records(query, privacy, data, "SeparateCov")
    budget = SharedBudget(privacy, stream, simulation)
    radius = math.sqrt(records.shape[1])
    return moment_release("SeparateCov", moment, budget, separate(records, radius, budget, 1.0))


def separate(records: Floats, radius: float, budget: SharedBudget, share: float) -> Floats:
    """SeparateCov of records clipped to a ball, for a share of the budget; of shape (m, m)."""
    noisy, _ = budget.second_moment(records, radius, share / 2)
    inside = clip_rows(records, radius)
    values = np.asarray(np.linalg.eigvalsh(inside.T @ inside / len(inside)), np.float64)
    bound = radius**2 * (1 + 1e-9)
    values, _ = budget.vector(values, math.sqrt(2) * radius**2 / len(inside), bound, share / 2)
    vectors = np.linalg.eigh(noisy)[1]
    return np.asarray((vectors * np.maximum(np.sort(values), 0.0)) @ vectors.T)
