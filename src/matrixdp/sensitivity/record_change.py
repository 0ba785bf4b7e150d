"""Changes of rows: one record of a data set or a cell of a table of counts changes, or all rows of one person do."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from matrixdp.checks import check_integer
from matrixdp.noise.matrix import Covariance
from matrixdp.noise.structure import NoiseStructure
from matrixdp.privacy import Neighbours
from matrixdp.sensitivity.distance import ROUND_DOWN, Distance, Sensitivity, check_halfwidths, column_norms, scale_free
from matrixdp.sensitivity.quadratic import max_quadratic
from matrixdp.serialise import builtin_kind
from matrixdp.types import Floats, is_diagonal


@builtin_kind
@dataclass(frozen=True, eq=False, repr=False)
class RecordChange(Sensitivity):
    """All ``D = e_r d'``: row r changes by d, the difference of two records of the domain.

    The domain K (a box of `halfwidths` about its midpoint, cut with a ball of `radius`) is symmetric and convex, so
    its differences are 2K, and the distance is ``2 max_r |A e_r| max_{x in K} |B x|``. Unless records fill the domain
    (`filled`), it is a bound that nothing is known to attain.
    """

    halfwidths: Floats
    radius: float | None = None
    filled: bool = True
    record_radius = property(attrgetter("radius"), doc="`radius`.")

    def __post_init__(self) -> None:
        check_halfwidths(self.halfwidths, self.radius)

    def check_shape(self, shape: tuple[int, int]) -> None:
        self._require(shape, (None, self.halfwidths.size), "records of that many features")

    @property
    def frobenius(self) -> float:
        return 2 * math.sqrt(max_quadratic(1.0, self.halfwidths, self.radius).value)

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
        if self.radius is not None:
            squares = fill_ball(squares, row**-2.0, self.radius)
        return 4 * rows * float((np.sqrt(squares) / row).sum()) ** 2 * ROUND_DOWN

    @scale_free
    def distance(self, rowcov: Covariance, colcov: Covariance) -> Distance:
        """Exact for diagonal noise, and in a box of up to 16 features; certified otherwise."""
        left = rowcov.whitening
        widest = 2 * math.sqrt(column_norms(left, rowcov.size if isinstance(left, np.ndarray) else 1).max())
        record = max_quadratic(colcov.whitening, self.halfwidths, self.radius)
        attained = math.sqrt(record.attained) if self.filled else 0.0
        return Distance(math.sqrt(record.value), attained).times(widest)


def fill_ball(sizes: Floats, weights: Floats, radius: float) -> Floats:
    """The y, ``min(sizes, level weights)``, with the largest ``sum sqrt(weights y)`` of ``sum y <= radius^2``."""
    if sizes.sum() <= radius**2:
        return sizes
    order = np.argsort(sizes / weights)
    full = np.concatenate([[0.0], np.cumsum(sizes[order])])[:-1]  # used by the features that reach their bound earlier
    level = (radius**2 - full) / np.cumsum(weights[order][::-1])[::-1]
    first = int(np.argmax(level <= (sizes / weights)[order]))
    return np.asarray(np.minimum(sizes, level[first] * weights))


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


class _SeveralRows(Sensitivity):
    """Changes of several rows, made of those of one."""

    one: Sensitivity

    def check_shape(self, shape: tuple[int, int]) -> None:
        self.one.check_shape(shape)

    ball = property(attrgetter("one.ball"), doc="As for one row.")
    record_radius = property(attrgetter("one.record_radius"), doc="As for one row.")


@builtin_kind
@dataclass(frozen=True, eq=False, repr=False)
class RowsChange(_SeveralRows):
    """All changes of an answer that sums over rows, when the rows of one person together weigh at most `rows`.

    The person's part of the sum is `rows` times a point of the convex hull of the parts of single rows and 0, and the
    distance of two such points is convex in both: it is largest where each is one row or none. `one` has the changes of
    one row, for the neighbours of the query, and `alone` those where one row is added or removed.
    """

    one: Sensitivity
    alone: Sensitivity
    rows: int

    @property
    def frobenius(self) -> float:
        return self.rows * max(self.one.frobenius, self.alone.frobenius) * (1 + 1e-15)

    def least_error(self, scale: Floats, *, symmetric: bool) -> float | None:
        """``rows^2`` times that of one row, for people all of whose rows are the same."""
        least = self.one.least_error(scale, symmetric=symmetric)
        return None if least is None else least * self.rows**2

    def distance(self, rowcov: Covariance, colcov: Covariance) -> Distance:
        return self._largest(lambda change: change.distance(rowcov, colcov))

    def free_structure(self, side: Covariance) -> NoiseStructure | None:
        return self.one.free_structure(side)

    def structured_distance(self, side: Covariance, structure: NoiseStructure) -> Distance:
        return self._largest(lambda change: change.structured_distance(side, structure))

    def _largest(self, distance: Callable[[Sensitivity], Distance]) -> Distance:
        found = [distance(self.one), distance(self.alone)]
        return Distance(max(d.value for d in found), max(d.attained for d in found)).times(self.rows)


@builtin_kind
@dataclass(frozen=True, eq=False, repr=False)
class OwnRowsChange(_SeveralRows):
    """All ``D = sum_{r in S} e_r d_r'`` for sets S of up to `rows` rows, where each ``e_r d_r'`` is a change of `one`.

    For noise that is independent between rows, squared changes of rows add up: the distance is ``sqrt(rows)`` times
    that of one row. Otherwise it is at most `rows` times as large.
    """

    one: Sensitivity
    rows: int

    def __post_init__(self) -> None:
        check_integer(self.rows, "rows", at_least=1)

    @property
    def frobenius(self) -> float:
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
