"""Array types that signatures name."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

# One side of a linear map: a number times the identity, a diagonal of shape (n,), or a matrix of shape (n, n).
Factor: TypeAlias = float | Floats
