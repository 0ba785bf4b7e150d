"""Sensitivity of tables of counts: one record moves to another cell, or is added or removed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from matrixdp.noise.covariance import Covariance
from matrixdp.privacy import Neighbours
from matrixdp.sensitivity.distance import ROUND_DOWN, Distance, Sensitivity, column_norms, scale_free
from matrixdp.serialise import builtin_kind
from matrixdp.types import Floats, is_diagonal


@builtin_kind
@dataclass(frozen=True)
class CellChange(Sensitivity):
    """All ``D = E_a - E_b`` for two cells (replace), or ``+-E_a`` (add or remove).

    For noise that is independent from cell to cell the squared distance is the sum of the two largest precisions, or
    the largest alone. For other noise the bound is ``|u - v|^2 <= 2 (|u|^2 + |v|^2)``.

    Examples
    --------
    >>> change = CellChange()
    >>> round(change.distance(Covariance.identity(2), Covariance.diagonal([1.0, 4.0])).value, 6)
    1.414214
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
