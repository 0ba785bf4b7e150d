"""Several rows of one person change together: in an answer that sums over rows, or that has a row for each."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from matrixdp.checks import check_integer
from matrixdp.display import short_repr
from matrixdp.errors import ParameterError
from matrixdp.noise.covariance import Covariance
from matrixdp.noise.structure import NoiseStructure
from matrixdp.noise.table_noise import TableNoise
from matrixdp.sensitivity.distance import Distance, Sensitivity
from matrixdp.sensitivity.table_change import TableChange
from matrixdp.serialise import builtin_kind
from matrixdp.types import Floats, is_diagonal


class _SeveralRows(Sensitivity):
    """Changes of several rows, made of those of one."""

    one: Sensitivity

    def check_shape(self, shape: tuple[int, int]) -> None:
        """Raise a `ParameterError` for another shape."""
        self.one.check_shape(shape)

    @property
    def ball(self) -> bool:
        """As for one row."""
        return self.one.ball

    @property
    def record_radius(self) -> float | None:
        """As for one row."""
        return self.one.record_radius


@builtin_kind
@dataclass(frozen=True, eq=False)
class RowsChange(_SeveralRows):
    """All changes of an answer that sums over rows, when the rows of one person together weigh at most `rows`.

    The person's part of the sum is `rows` times a point of the convex hull of the parts of single rows and 0, and the
    distance of two such points is convex in both: it is largest where each is one row or none. `one` has the changes of
    one row, for the neighbours of the query, and `alone` those where one row is added or removed.
    """

    one: Sensitivity
    alone: Sensitivity
    rows: int

    __repr__ = short_repr

    @property
    def frobenius(self) -> float:
        """`rows` times that of one row."""
        return self.rows * max(self.one.frobenius, self.alone.frobenius) * (1 + 1e-15)

    def least_error(self, scale: Floats, *, symmetric: bool) -> float | None:
        """``rows^2`` times that of one row, for people all of whose rows are the same."""
        least = self.one.least_error(scale, symmetric=symmetric)
        return None if least is None else least * self.rows**2

    def distance(self, rowcov: Covariance, colcov: Covariance) -> Distance:
        """`rows` times the larger of the two distances."""
        return self._largest(lambda change: change.distance(rowcov, colcov))

    def free_structure(self, side: Covariance) -> NoiseStructure | None:
        """As for one row; the number of rows is private."""
        structure = self.one.free_structure(side)
        return replace(structure, counted=True) if isinstance(structure, TableNoise) else structure

    def structured_distance(self, side: Covariance, structure: NoiseStructure) -> Distance:
        """`rows` times the larger of the two distances."""
        if not isinstance(structure, TableNoise):
            return self._largest(lambda change: change.structured_distance(side, structure))
        if not structure.counted:
            raise ParameterError("structure must have noise on the number of rows, which is private.")

        def distance(change: Sensitivity) -> Distance:  # where rows are replaced, their number does not change
            counted = isinstance(change, TableChange) and change.counted
            return change.structured_distance(side, replace(structure, counted=counted))

        return self._largest(distance)

    def _largest(self, distance: Callable[[Sensitivity], Distance]) -> Distance:
        found = [distance(self.one), distance(self.alone)]
        return Distance(max(d.value for d in found), max(d.attained for d in found)).times(self.rows)


@builtin_kind
@dataclass(frozen=True, eq=False)
class OwnRowsChange(_SeveralRows):
    """All ``D = sum_{r in S} e_r d_r'`` for sets S of up to `rows` rows, where each ``e_r d_r'`` is a change of `one`.

    For noise that is independent between rows, squared changes of rows add up: the distance is ``sqrt(rows)`` times
    that of one row. Otherwise it is at most `rows` times as large.
    """

    one: Sensitivity
    rows: int

    __repr__ = short_repr

    def __post_init__(self) -> None:
        check_integer(self.rows, "rows", at_least=1)

    @property
    def frobenius(self) -> float:
        """``sqrt(rows)`` times that of one row."""
        return math.sqrt(self.rows) * self.one.frobenius * (1 + 1e-15)

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
