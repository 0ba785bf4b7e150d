"""What queries on records in bounds have in common."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from matrixdp.bounds import Bounds
from matrixdp.errors import ParameterError
from matrixdp.noise.covariance import Floats


def check_bounds(bounds: Any) -> None:
    """An error unless `bounds` are bounds."""
    if not isinstance(bounds, Bounds):
        raise ParameterError(
            f"bounds must be Bounds(lower, upper), got {type(bounds).__name__} instead; "
            "they are public and never taken from the data."
        )


def reach(bounds: Bounds, directions: Floats | None) -> Floats:
    """How far the domain reaches from its midpoint along each direction, of shape (m,)."""
    extent = bounds.halfwidths if directions is None else np.abs(directions).T @ bounds.halfwidths
    return np.minimum(extent, math.inf if bounds.radius is None else bounds.radius)
