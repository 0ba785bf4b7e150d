"""One record of a kernel matrix of records is replaced: a row and a column change."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from matrixdp.checks import check_integer, check_magnitude, sum_of_others
from matrixdp.noise.covariance import Covariance
from matrixdp.sensitivity.distance import (
    ROUND_DOWN,
    Distance,
    Sensitivity,
    column_norms,
    require_shape,
    scale_free,
    spectral_norm,
)
from matrixdp.serialise import builtin_kind
from matrixdp.types import Floats, is_diagonal


@builtin_kind
@dataclass(frozen=True)
class KernelChange(Sensitivity):
    """All symmetric D that are zero outside row and column r, and on the diagonal, with entries of at most `spread`.

    For diagonal noise of precisions p the squared distance is ``2 spread^2 max_r p_r sum_{j != r} p_j``. It is
    attained in the limit: all other records in one place, the changed one there first, then far away. Where one person
    has several rows, D may be nonzero in as many rows and columns: the sum is over all pairs with one of them, and
    largest for the rows of the largest precisions.

    Attributes
    ----------
    size : int
        Number of records.
    spread : float
        Difference between the kernel's largest and smallest value.
    rows : int
        Number of rows and columns that change.

    Examples
    --------
    >>> unit = Covariance.identity(3)
    >>> round(KernelChange(3, 1.0).distance(unit, unit).attained, 12)
    2.0
    """

    size: int
    spread: float
    rows: int = field(default=1, metadata={"absent": 1})

    def __post_init__(self) -> None:
        check_integer(self.size, "size", at_least=2)
        check_magnitude(self.spread, "spread")

    def check_shape(self, shape: tuple[int, int]) -> None:
        """Raise a `ParameterError` for another shape."""
        require_shape(shape, (self.size, self.size), f"a kernel matrix of {self.size} records")

    @property
    def frobenius(self) -> float:
        """``sqrt(2 (n - 1))`` times the spread, or ``sqrt(k (2 n - k - 1))`` times for k rows."""
        return self.spread * math.sqrt(self.rows * (2 * self.size - self.rows - 1)) * (1 + 1e-15)

    def least_error(self, scale: Floats, *, symmetric: bool) -> float | None:
        """From equal weights on all rows and all signs of their entries, for one scale off the diagonal."""
        unit = float(scale[0, 1])
        same = scale == unit
        if not symmetric or int(same.sum()) - int(same.trace()) < self.size * (self.size - 1):
            return None
        return self.size * (self.size - 1) ** 2 * (self.spread / unit) ** 2 * ROUND_DOWN

    @scale_free
    def distance(self, rowcov: Covariance, colcov: Covariance) -> Distance:
        """Exact for diagonal noise; a certified upper bound otherwise."""
        left, right = rowcov.whitening, colcov.whitening
        if is_diagonal(left) and is_diagonal(right):
            p, q = column_norms(left, self.size), column_norms(right, self.size)
            if self.rows > 1:
                return self._several(np.maximum(p, q)).times(self.spread)
            value = math.sqrt(float((p * sum_of_others(q) + q * sum_of_others(p)).max()) * (1 + 4e-16 * self.size))
            return Distance(value, value).times(self.spread)
        return Distance(self.frobenius * spectral_norm(left) * spectral_norm(right), 0.0).times(1.0)

    def _several(self, precisions: Floats) -> Distance:
        """For a spread of one: each pair counts once, with the one of its rows that has the larger precision."""
        p = -np.sort(-precisions, kind="stable")
        chosen, rest = p[: self.rows], float(p[self.rows :].sum())
        below = np.cumsum(p[::-1])[::-1][1 : self.rows + 1]  # sums of those after each of the chosen ones
        pairs = float((chosen[: len(below)] * below).sum())
        value = math.sqrt(2 * pairs * (1 + 8e-16 * self.size))
        return Distance(value, math.sqrt(2 * float(chosen.sum()) * rest) * ROUND_DOWN)
