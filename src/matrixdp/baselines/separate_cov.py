"""SeparateCov: eigenvalues and eigenvectors of a second moment, each with noise of its own (Dong, Liang, Yi 2022)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from matrixdp.baselines.rival import RivalRelease
from matrixdp.baselines.unit_box import Purse, clipped, in_units, unit_records
from matrixdp.noise import Stream
from matrixdp.privacy import Privacy
from matrixdp.queries import MatrixQuery
from matrixdp.types import Floats


def separate_cov(
    query: MatrixQuery, privacy: Privacy, data: Any, *, stream: Stream | None = None, simulation: bool = False
) -> RivalRelease:
    """Eigenvectors of a noisy second moment with noisy eigenvalues of the true one.

    Parameters
    ----------
    query : SecondMoment
        About the midpoint; carries the bounds, which are scaled to [-1, 1].
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
    purse = Purse(privacy, stream, simulation)
    radius = math.sqrt(records.shape[1])
    return in_units(moment, privacy, separate(records, radius, purse, 1.0), "SeparateCov", simulation)


def separate(records: Floats, radius: float, purse: Purse, share: float) -> Floats:
    """SeparateCov for records of a ball, for a share of the budget; of shape (m, m)."""
    noisy, _ = purse.second_moment(records, radius, share / 2)
    inside = clipped(records, radius)
    values = np.asarray(np.linalg.eigvalsh(inside.T @ inside / len(inside)), np.float64)
    bound = radius**2 * (1 + 1e-9)
    values, _ = purse.vector(values, math.sqrt(2) * radius**2 / len(inside), bound, share / 2)
    vectors = np.linalg.eigh(noisy)[1]
    return np.asarray((vectors * np.maximum(np.sort(values), 0.0)) @ vectors.T)
