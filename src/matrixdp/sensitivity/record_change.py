"""One record is replaced in a released data set, or moves between the cells of a table of counts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from matrixdp.display import short_repr
from matrixdp.noise.covariance import Covariance
from matrixdp.privacy import Neighbours
from matrixdp.sensitivity.distance import (
    ROUND_DOWN,
    Distance,
    Sensitivity,
    check_halfwidths,
    column_norms,
    require_shape,
    scale_free,
)
from matrixdp.sensitivity.quadratic import max_quadratic
from matrixdp.serialise import builtin_kind
from matrixdp.types import Floats, is_diagonal


@builtin_kind
@dataclass(frozen=True, eq=False)
class RecordChange(Sensitivity):
    """All ``D = e_r d'``: row r changes by d, the difference of two records of the domain.

    The domain K (a box of `halfwidths` about its midpoint, cut with a ball of `radius`) is symmetric and convex, so
    its differences are 2K, and the distance is ``2 max_r |A e_r| max_{x in K} |B x|``. Unless records fill the domain
    (`filled`), it is a bound that nothing is known to attain.
    """

    halfwidths: Floats
    radius: float | None = None
    filled: bool = True

    __repr__ = short_repr

    def __post_init__(self) -> None:
        check_halfwidths(self.halfwidths, self.radius)

    def check_shape(self, shape: tuple[int, int]) -> None:
        """Raise a `ParameterError` for another shape."""
        require_shape(shape, (None, self.halfwidths.size), "records of that many features")

    @property
    def frobenius(self) -> float:
        """Diameter of the domain."""
        return 2 * math.sqrt(max_quadratic(1.0, self.halfwidths, self.radius).value)

    @property
    def record_radius(self) -> float | None:
        """`radius`."""
        return self.radius

    @property
    def ball(self) -> bool:
        """True if the domain is a ball: it has one feature, or the ball lies inside the box."""
        return self.halfwidths.size == 1 or (self.radius is not None and self.radius <= self.halfwidths.min())

    def least_error(self, scale: Floats, *, symmetric: bool) -> float | None:
        """``4 rows (sum_i y_i^1/2/scale_i)^2`` for rows of equal scales, with y the squares of a possible record.

        Equal weights on all rows and on all signs of that record prove it.
        """
        rows, row = len(scale), scale[0]
        if not self.filled or symmetric or not (scale.strides[0] == 0 or (scale == row).all()):
            return None
        squares = self.halfwidths**2
        if self.radius is not None and squares.sum() > self.radius**2:
            squares = _fill(squares, row**-2.0, self.radius**2)
        return 4 * rows * float((np.sqrt(squares) / row).sum()) ** 2 * ROUND_DOWN

    @scale_free
    def distance(self, rowcov: Covariance, colcov: Covariance) -> Distance:
        """Exact for diagonal noise, and in a box of up to 16 features; certified otherwise."""
        left = rowcov.whitening
        widest = 2 * math.sqrt(column_norms(left, rowcov.size if isinstance(left, np.ndarray) else 1).max())
        record = max_quadratic(colcov.whitening, self.halfwidths, self.radius)
        attained = math.sqrt(record.attained) if self.filled else 0.0
        return Distance(math.sqrt(record.value), attained).times(widest)


def _fill(sizes: Floats, weights: Floats, total: float) -> Floats:
    """The y with the largest ``sum sqrt(weights y)``, ``0 <= y <= sizes`` and ``sum y <= total``: water filling."""
    low, high = 0.0, float((sizes / weights).max())
    for _ in range(100):
        level = (low + high) / 2
        low, high = (level, high) if np.minimum(sizes, level * weights).sum() <= total else (low, level)
    return np.asarray(np.minimum(sizes, low * weights))


@builtin_kind
@dataclass(frozen=True)
class CellChange(Sensitivity):
    """All ``D = E_a - E_b`` for two cells (replace), or ``+-E_a`` (add or remove).

    For noise that is independent from cell to cell the squared distance is the sum of the two largest precisions, or
    the largest alone. For other noise the bound is ``|u - v|^2 <= 2 (|u|^2 + |v|^2)``.
    """

    neighbours: Neighbours = Neighbours.REPLACE

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbours", Neighbours.parse(self.neighbours))

    @property
    def frobenius(self) -> float:
        """``sqrt(2)``, or one."""
        return 1.0 if self.neighbours is Neighbours.ADD_REMOVE else math.sqrt(2) * (1 + 1e-15)

    def least_error(self, scale: Floats, *, symmetric: bool) -> float | None:
        """With k cells of one scale: ``2 (k - 1)``, from equal weights on all pairs of cells; k for add or remove."""
        unit, cells = float(scale.flat[0]), scale.size
        if symmetric or cells == 1 or not (scale == unit).all():
            return None
        return (cells if self.neighbours is Neighbours.ADD_REMOVE else 2 * (cells - 1)) / unit**2 * ROUND_DOWN

    @scale_free
    def distance(self, rowcov: Covariance, colcov: Covariance) -> Distance:
        """Exact for noise that is independent from cell to cell, and for add or remove."""
        rows = -np.sort(-column_norms(rowcov.whitening, rowcov.size))[:2]
        columns = -np.sort(-column_norms(colcov.whitening, colcov.size))[:2]
        cells = -np.sort(-np.multiply.outer(rows, columns), axis=None)
        top = math.sqrt(cells[0])
        if self.neighbours is Neighbours.ADD_REMOVE:
            return Distance(top, top).times(1.0)
        if is_diagonal(rowcov.whitening) and is_diagonal(colcov.whitening):
            value = math.sqrt(cells[:2].sum())
            return Distance(value, value).times(1.0)
        return Distance(2 * top, 0.0).times(1.0)
