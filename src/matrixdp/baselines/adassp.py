"""AdaSSP: regression from perturbed sufficient statistics with an adaptive ridge (Wang 2018)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from matrixdp.baselines.unit_records import SharedBudget, peer_release, unit_records
from matrixdp.errors import ParameterError
from matrixdp.noise import Stream
from matrixdp.privacy import Privacy
from matrixdp.queries import MatrixQuery
from matrixdp.release.mechanism_release import MechanismRelease
from matrixdp.release.registry import gaussian_cost, register_mechanism

_FAILURE = 0.05


@register_mechanism("AdaSSP", cost=gaussian_cost, tasks=("regression",), comparison_only=True)
def adassp(
    query: MatrixQuery, privacy: Privacy, data: Any, *, stream: Stream | None = None, simulation: bool = False
) -> MechanismRelease:
    """Intercept and coefficients, of shape (m, 1), for the last of m features, with all scaled to [-1, 1].

    Parameters
    ----------
    query : SecondMoment
        About the midpoint of its bounds. The last feature is the target.
    privacy, data, stream, simulation
        As for `matrixdp.release.release`.

    Privacy
    -------
    (epsilon, delta)-DP for replaced records. A third of ``mu^2`` each for the least eigenvalue, the features' second
    moment and their products with the target; the paper splits epsilon and delta instead, with more noise.

    Examples
    --------
    >>> from matrixdp.domain.bounds import Bounds
    >>> from matrixdp.queries import SecondMoment
    >>> adassp(SecondMoment(Bounds([-1, -1], [1, 1]), 2), Privacy(1, 1e-5), [[0.1, 0.2], [0.3, 0.4]]).matrix.shape
    (2, 1)
    """
    moment, records = unit_records(query, privacy, data, "AdaSSP")
    if records.shape[1] < 2:
        raise ParameterError("query must have at least two features, the last of them the target.")
    budget = SharedBudget(privacy, stream, simulation)
    x = np.column_stack([np.ones(len(records)), records[:, :-1]])
    n, d = x.shape
    third = (1 - 1e-12) / 3
    least = np.linalg.eigvalsh(x.T @ x / n)[:1]
    square = float(d)  # of the longest row
    noisy_least, std = budget.vector(least, square / n, square + 1, third)
    gram, noise = budget.second_moment(x, math.sqrt(square), third)
    product, _ = budget.vector(x.T @ records[:, -1] / n, 2 * math.sqrt(square) / n, 1.0 + 1e-9, third)
    certain = max(0.0, float(noisy_least[0]) - std * math.sqrt(2 * math.log(2 / _FAILURE)))
    spectral = noise / math.sqrt(2) * (2 * math.sqrt(d) + math.sqrt(2 * math.log(2 / _FAILURE)))
    ridge = max(0.0, spectral - certain)
    coefficients = np.linalg.lstsq(gram + ridge * np.eye(d), product, rcond=None)[0]
    return peer_release("AdaSSP", moment, budget, np.asarray(coefficients, np.float64)[:, None], ridge=ridge)
