"""CoinPress: a covariance by repeated whitening (Biswas, Dong, Kamath, Ullman 2020)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from matrixdp.baselines.unit_records import SharedBudget, moment_release, unit_records
from matrixdp.checks import check_integer
from matrixdp.noise import Stream
from matrixdp.privacy import Privacy
from matrixdp.queries import MatrixQuery
from matrixdp.release.mechanism_release import MechanismRelease
from matrixdp.release.registry import gaussian_cost, register_mechanism

_FAILURE = 0.1


@register_mechanism("CoinPress", cost=gaussian_cost, tasks=("second-moment",), comparison_only=True)
def coinpress(
    query: MatrixQuery,
    privacy: Privacy,
    data: Any,
    *,
    stream: Stream | None = None,
    simulation: bool = False,
    rounds: int = 3,
) -> MechanismRelease:
    """Second moment about the midpoint: each round whitens with the upper bound of the last round, clips, adds noise.

    Designed for Gaussian records, whose lengths after whitening are known; others are clipped too much or too little.
    The last round has three quarters of the budget. The split, the slack added to the bound, and two safeguards (the
    bound never grows, no ball is larger than the box) follow the paper's text, not the authors' code.

    Parameters
    ----------
    query, privacy, data, stream, simulation
        As for `separate_cov`.
    rounds : int
        At least 1.

    Privacy
    -------
    (epsilon, delta)-DP for replaced records. The rounds are Gaussian releases with shares of ``mu^2`` that sum to one.

    Examples
    --------
    >>> from matrixdp import Bounds, SecondMoment
    >>> coinpress(SecondMoment(Bounds([-1, -1], [1, 1]), 2), Privacy(1, 1e-5), [[0.1, 0.2], [0.3, 0.4]]).matrix.shape
    (2, 2)
    """
    rounds = check_integer(rounds, "rounds", at_least=1)
    moment, records = unit_records(query, privacy, data, "CoinPress")
    budget = SharedBudget(privacy, stream, simulation)
    n, d = records.shape
    tail = math.log(n / _FAILURE)
    radius = math.sqrt(d + 2 * math.sqrt(d * tail) + 2 * tail)
    shares = [1.0] if rounds == 1 else [0.25 / (rounds - 1)] * (rounds - 1) + [0.75]
    whiten = np.eye(d) / math.sqrt(d)  # the moment is at most d times the identity
    noisy = np.eye(d)
    for share in shares:
        reach = math.sqrt(d) * float(np.linalg.norm(whiten, 2))  # no record of the box is longer
        noisy, std = budget.second_moment(records @ whiten.T, min(radius, reach), share * (1 - 1e-12))
        last = whiten
        sampling = 2 * math.sqrt((d + tail) / n)
        slack = std / math.sqrt(2) * (2 * math.sqrt(d) + math.sqrt(2 * tail)) + sampling
        values, vectors = np.linalg.eigh(noisy)
        bound = np.minimum(np.maximum(values, 0.0) + slack, 1.0)  # whitened, the moment was at most 1 before
        whiten = (vectors / np.sqrt(bound)).T @ last
    back = np.linalg.inv(last)
    values, vectors = np.linalg.eigh(noisy)
    root = back @ (vectors * np.sqrt(np.maximum(values, 0.0)))
    return moment_release("CoinPress", moment, budget, root @ root.T, radius=radius)
