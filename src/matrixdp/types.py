"""Array types of signatures."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

# One side of a linear map: a number times the identity, a diagonal of shape (n,), or a matrix of shape (n, n).
Factor: TypeAlias = float | Floats


def is_diagonal(factor: Factor) -> bool:
    """True if a factor is a number or a diagonal."""
    return not isinstance(factor, np.ndarray) or factor.ndim == 1
