"""From how many error bars on a number counts as more than noise: one number alone, or one of many."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from matrixdp.display import CERTAIN
from matrixdp.types import Floats

CHANCE = 0.05  # that noise alone lifts any of the numbers that stand out


def find_limit(numbers: int) -> float:
    """Error bars from zero from which on one of so many numbers stands out from noise (Bonferroni).

    Examples
    --------
    >>> round(find_limit(1), 2), round(find_limit(100), 2)
    (2.0, 3.48)
    """
    return max(CERTAIN, float(-ndtri(CHANCE / (2 * max(numbers, 1)))))


def count_different(value: Floats, noisy: NDArray[np.bool_]) -> int:
    """How many of the noisy entries are different numbers: of a symmetric matrix, those on one side of the diagonal."""
    if value.ndim == 2 and value.shape[0] == value.shape[1] and np.array_equal(value, value.T, equal_nan=True):
        noisy = np.triu(noisy)
    return int(noisy.sum())
