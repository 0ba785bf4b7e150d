"""Several rows of an answer with one row per record change together."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from matrixdp.checks import check_integer
from matrixdp.display import short_repr
from matrixdp.noise.covariance import Covariance
from matrixdp.sensitivity.distance import Distance, Sensitivity
from matrixdp.serialise import builtin_kind
from matrixdp.types import Floats, is_diagonal


@builtin_kind
@dataclass(frozen=True, eq=False)
class OwnRowsChange(Sensitivity):
    """All ``D = sum_{r in S} e_r d_r'`` for sets S of up to `rows` rows, where each ``e_r d_r'`` is a change of `one`.

    For noise that is independent between rows, squared changes of rows add up: the distance is ``sqrt(rows)`` times
    that of one row. Otherwise it is at most `rows` times as large.

    Attributes
    ----------
    one : Sensitivity
        The changes of one row.
    rows : int

    Examples
    --------
    >>> from matrixdp.sensitivity.record_change import RecordChange
    >>> unit = Covariance.identity(9), Covariance.identity(1)
    >>> OwnRowsChange(RecordChange(np.array([0.5])), 4).distance(*unit).attained
    2.0
    """

    one: Sensitivity
    rows: int

    __repr__ = short_repr

    def __post_init__(self) -> None:
        check_integer(self.rows, "rows", at_least=1)

    def check_shape(self, shape: tuple[int, int]) -> None:
        """Raise a `ParameterError` for another shape."""
        self.one.check_shape(shape)

    @property
    def frobenius(self) -> float:
        """``sqrt(rows)`` times that of one row."""
        return math.sqrt(self.rows) * self.one.frobenius * (1 + 1e-15)

    @property
    def ball(self) -> bool:
        """As for one row."""
        return self.one.ball

    @property
    def record_radius(self) -> float | None:
        """As for one row."""
        return self.one.record_radius

    def least_error(self, scale: Floats, *, symmetric: bool) -> float | None:
        """`rows` times that of one row, from equal weights on all sets of that many rows."""
        least = self.one.least_error(scale, symmetric=symmetric)
        return None if least is None else least * self.rows

    def distance(self, rowcov: Covariance, colcov: Covariance) -> Distance:
        """Exact where that of one row is, if all rows have the same noise."""
        found, left = self.one.distance(rowcov, colcov), rowcov.whitening
        if not is_diagonal(left):
            return Distance(found.value, found.attained / self.rows).times(self.rows)
        root = math.sqrt(self.rows)
        alike = not isinstance(left, np.ndarray)
        return Distance(found.value, found.attained if alike else found.attained / root).times(root)
