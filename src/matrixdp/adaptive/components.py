"""Principal components of a private moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from matrixdp.adaptive.moment import PrivateMoment
from matrixdp.checks import check_integer
from matrixdp.display import short_repr
from matrixdp.types import Floats


@dataclass(frozen=True, eq=False)
class Components:
    """Principal components as rows, of shape (k, m), and the variance along each, of shape (k,)."""

    components: Floats
    variances: Floats
    ratios: Floats

    __repr__ = short_repr


def principal_components(moment: PrivateMoment, count: int | float | None = None) -> Components:
    """Principal components of a private moment, in the data's units; post-processing.

    Parameters
    ----------
    moment : PrivateMoment
        Fitted with ``aim='components'``.
    count : int, float or None
        Number of components, share of the variance that they must explain, or None for all.
    """
    values, vectors = np.linalg.eigh(moment.covariance)
    values, rows = np.maximum(values[::-1], 0.0), vectors[:, ::-1].T
    signs = np.sign(rows[np.arange(len(rows)), np.abs(rows).argmax(axis=1)])
    total = float(values.sum())
    ratios = values / total if total > 0 else np.full(values.size, 1 / values.size)
    k = check_count(count, values.size)
    if isinstance(k, float):
        k = min(int(np.searchsorted(np.cumsum(ratios), k)) + 1, values.size)
    return Components((rows * signs[:, None])[:k], values[:k], ratios[:k])


def check_count(count: Any, size: int) -> int | float:
    """Validated number of components from 1 to `size`, or share of the variance strictly between 0 and 1."""
    if count is None:
        return size
    if isinstance(count, float | np.floating) and 0 < count < 1:
        return float(count)
    rule = f"an integer from 1 to {size}, or a share strictly between 0 and 1"
    return check_integer(count, "n_components", at_least=1, at_most=size, rule=rule)
