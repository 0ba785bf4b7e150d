"""Second moments, alone or with the mean beside them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import block_diag

from matrixdp.domain.bounds import Bounds, check_bounds
from matrixdp.errors import DataError, ParameterError, show
from matrixdp.noise.covariance import Covariance
from matrixdp.privacy import Neighbours
from matrixdp.queries.identity import check_count
from matrixdp.queries.moment_sums import MomentTask
from matrixdp.queries.query import MatrixQuery, parse_records
from matrixdp.records import as_records
from matrixdp.sensitivity import MomentsChange, RankOneChange, max_quadratic
from matrixdp.serialise import plain
from matrixdp.types import Floats


@plain
@dataclass(frozen=True, eq=False)
class SecondMoment(MatrixQuery):
    """``(1/N) sum (x - centre)(x - centre)'``, of shape (m, m).

    Parameters
    ----------
    bounds : Bounds
    records : int
        The public N. For add-remove neighbours a public constant near the number of records, which itself stays
        private; the domain is then all data sets of at most 2N records.
    neighbours : 'replace' or 'add-remove'
    centre : array_like of shape (m,), optional
        A public point; by default the midpoint of the box, which needs the least noise.

    Notes
    -----
    Records are put on a grid of up to 2^20 steps a feature, whose sums are exact in any order; the number of steps
    depends on `records` alone.

    Examples
    --------
    >>> SecondMoment(Bounds([-1, -1], [1, 1]), records=1000).shape
    (2, 2)
    """

    bounds: Bounds
    records: int
    neighbours: Neighbours = Neighbours.REPLACE
    centre: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        check_bounds(self.bounds)
        object.__setattr__(self, "records", parse_records(self.records))
        object.__setattr__(self, "neighbours", Neighbours.parse(self.neighbours))
        object.__setattr__(self, "centre", _centre(self.centre, self.bounds))
        if self.centre is not None and self.bounds.radius is not None:
            raise ParameterError(
                "centre must be left out when the bounds have a radius, which is about their midpoint."
            )

    @property
    def shape(self) -> tuple[int, int]:
        """(features, features)."""
        return self.bounds.size, self.bounds.size

    @property
    def side(self) -> str:
        """Both."""
        return "both"

    @property
    def names(self) -> tuple[str, ...] | None:
        """The bounds' names."""
        return self.bounds.names

    @property
    def _box(self) -> Bounds:
        """The domain, its midpoint moved to the centre; wider than the bounds unless the centre is their midpoint."""
        if self.centre is None:
            return self.bounds
        largest = np.maximum(self.bounds.upper - self.centre, self.centre - self.bounds.lower)
        return Bounds(self.centre - largest, self.centre + largest)

    @property
    def sensitivity(self) -> RankOneChange:
        """One record's outer product is exchanged, or comes or goes."""
        box = self._box
        if self.centre is None:
            return RankOneChange(box.halfwidths, self.records, box.radius, self.neighbours)
        lower, upper, centre = self.bounds.lower, self.bounds.upper, self.centre
        one_signed = bool(((lower >= centre) | (upper <= centre)).all())
        filled = one_signed and bool(((lower == centre) | (upper == centre)).all())
        return RankOneChange(box.halfwidths, self.records, None, self.neighbours, one_signed, filled)

    @property
    def magnitude(self) -> Floats:
        """Products of halfwidths, twice that where there may be 2N records."""
        return np.multiply.outer(self._box.halfwidths, self._box.halfwidths) * _headroom(self.neighbours)

    @property
    def gamma(self) -> float:
        """Bound on the norm of the moment, which is largest when all records sit in one corner."""
        box = self._box
        longest = float((box.halfwidths**2).sum())
        return min(longest, math.inf if box.radius is None else box.radius**2) * _headroom(self.neighbours)

    @property
    def possible(self) -> tuple[Floats, Floats]:
        """Products of halfwidths; squares on the diagonal."""
        return _off_diagonal(-self.magnitude), self.magnitude

    @property
    def relative_error(self) -> float:
        """Of turning exact integers into floats in the data's units."""
        return _UNIT_ERROR

    def extent(self, directions: Floats | None) -> Floats:
        """How far a record reaches along each direction."""
        return self._box.reach(directions)

    def evaluate(self, data: Any, *, clip: bool, missing: str) -> Floats:
        """The moment, from exact integer sums."""
        return _evaluate(self, self._box, data, constant=False, clip=clip, missing=missing)


@plain
@dataclass(frozen=True, eq=False)
class Moments(MatrixQuery):
    """Mean and second moment in one matrix, of shape (m + 1, m + 1): ``(1/N) sum (1, x)(1, x)'``.

    Records x are measured from the box's midpoint. The covariance about the mean follows by post-processing, at no
    cost (`Release.covariance`).

    Parameters
    ----------
    bounds : Bounds
    records : int
        The public N. For add-remove neighbours a public constant near the number of records; the entry (0, 0) is then
        their noisy number over N.
    neighbours : 'replace' or 'add-remove'
    mean_share : float
        Share of the privacy loss for the mean, above 0 and at most 1/2: the mean is best at 1/2, the second moment at
        0.

    Examples
    --------
    >>> Moments(Bounds([-1, -1], [1, 1]), records=1000).shape
    (3, 3)
    """

    bounds: Bounds
    records: int
    neighbours: Neighbours = Neighbours.REPLACE
    mean_share: float = 0.2

    def __post_init__(self) -> None:
        check_bounds(self.bounds)
        object.__setattr__(self, "records", parse_records(self.records))
        object.__setattr__(self, "neighbours", Neighbours.parse(self.neighbours))
        if not 0 < self.mean_share <= 0.5:
            raise ParameterError(f"mean_share must be above 0 and at most 1/2, got {show(self.mean_share)} instead.")

    @property
    def shape(self) -> tuple[int, int]:
        """(features + 1, features + 1)."""
        return self.bounds.size + 1, self.bounds.size + 1

    @property
    def side(self) -> str:
        """Both."""
        return "both"

    @property
    def features(self) -> int:
        """Features without the constant."""
        return self.bounds.size

    @property
    def names(self) -> tuple[str, ...] | None:
        """The bounds' names."""
        return self.bounds.names

    @property
    def sensitivity(self) -> MomentsChange:
        """One record's outer product is exchanged, or comes or goes."""
        return MomentsChange(self.bounds.halfwidths, self.records, self.bounds.radius, self.neighbours)

    @property
    def magnitude(self) -> Floats:
        """Products of halfwidths, one for the constant."""
        h = np.concatenate([[1.0], self.bounds.halfwidths])
        return np.asarray(np.multiply.outer(h, h) * _headroom(self.neighbours))

    @property
    def possible(self) -> tuple[Floats, Floats]:
        """Products of halfwidths; squares on the diagonal."""
        return _off_diagonal(-self.magnitude), self.magnitude

    @property
    def relative_error(self) -> float:
        """Of turning exact integers into floats in the data's units."""
        return _UNIT_ERROR

    def extent(self, directions: Floats | None) -> Floats:
        """How far a record reaches along each direction."""
        return self.bounds.reach(directions)

    def lift(self, variances: Floats, directions: Floats | None) -> tuple[Floats, Floats | None]:
        """The constant's variance is put first, so that it uses `mean_share` of the privacy loss."""
        whitening = Covariance(variances, directions).whitening
        longest = max_quadratic(whitening, self.bounds.halfwidths, self.bounds.radius).value
        constant = (1 - self.mean_share) / self.mean_share / longest
        lifted = np.concatenate([[constant], variances])
        return lifted, None if directions is None else block_diag(1.0, directions)

    def evaluate(self, data: Any, *, clip: bool, missing: str) -> Floats:
        """The moments, from exact integer sums."""
        return _evaluate(self, self.bounds, data, constant=True, clip=clip, missing=missing)

    def finish(self, matrix: Floats) -> Floats:
        """The constant's own moment is one, unless the number of records is private."""
        if self.neighbours is Neighbours.REPLACE:
            matrix[0, 0] = 1.0
        return matrix

    @property
    def public(self) -> NDArray[np.bool_] | None:
        """The entry (0, 0), unless the number of records is private."""
        if self.neighbours is not Neighbours.REPLACE:
            return None
        mask = np.zeros(self.shape, bool)
        mask[0, 0] = True
        return mask


_UNIT_ERROR = 2.5 * float(np.finfo(float).eps)


def _off_diagonal(matrix: Floats) -> Floats:
    np.fill_diagonal(matrix, 0.0)
    return matrix


def _headroom(neighbours: Neighbours) -> float:
    return 1.0 if neighbours is Neighbours.REPLACE else 2.0


def _evaluate(
    query: SecondMoment | Moments, box: Bounds, data: Any, *, constant: bool, clip: bool, missing: str
) -> Floats:
    """The moment of records that are in memory, or in parts elsewhere."""
    task = MomentTask(query.bounds, box, query.records, constant, clip, missing)
    moments = task.start()
    for partial in as_records(data).select(query.bounds.names).map(task):
        moments.total.merge(partial)
    check_number(query, moments.records)
    return moments.value()


def check_number(query: SecondMoment | Moments, rows: int) -> None:
    """An error unless the records' number is the public one, or, where it is private, in the domain."""
    if query.neighbours is Neighbours.REPLACE:
        check_count(rows, query.records)
    elif rows > 2 * query.records:
        raise DataError(
            f"a data set must have at most 2 x {query.records} records; give a larger public number of records."
        )


def _centre(centre: ArrayLike | None, bounds: Bounds) -> NDArray[np.float64] | None:
    if centre is None:
        return None
    array = np.array(centre, np.float64)
    if array.shape != (bounds.size,) or not np.isfinite(array).all():
        raise ParameterError(f"centre must be {bounds.size} finite numbers, got shape {array.shape} instead.")
    return array
