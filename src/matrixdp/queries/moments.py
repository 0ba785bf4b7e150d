"""Second moments, with or without the mean, from exact sums over all parts of the records."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.checks import check_number
from matrixdp.domain.bounds import Bounds, check_centre, check_missing
from matrixdp.domain.person import Person
from matrixdp.errors import ParameterError
from matrixdp.noise.matrix import Covariance
from matrixdp.noise.table_noise import Place
from matrixdp.privacy import Neighbours
from matrixdp.queries.base import BoundedQuery, MatrixQuery, check_domain, find_people, person_change
from matrixdp.queries.sums import MomentTask, sum_levels, weight_left
from matrixdp.queries.table_sums import TableTask
from matrixdp.records import as_records
from matrixdp.records.people import SameRecords
from matrixdp.sensitivity import MomentsChange, RankOneChange, Sensitivity, max_quadratic
from matrixdp.serialise import builtin_kind
from matrixdp.types import Floats


class MomentQuery(MatrixQuery):
    """``(1/N) sum z z'`` over vectors z made of one record each, in each group of records."""

    records: int  # the public N
    by: Sequence[str] = ()  # columns whose levels make the groups

    @property
    @abstractmethod
    def largest(self) -> Floats:
        """Bound on the absolute value of each entry of z, of shape (p,)."""

    @property
    def groups(self) -> int:
        """Number of groups; 1 if there are none."""
        return 1

    @cached_property
    def shape(self) -> tuple[int, int]:
        """(groups x p, p), p the length of z."""
        return self.groups * len(self.largest), len(self.largest)

    @property
    def most_records(self) -> float:
        """Largest number of records of the domain, in units of `records`."""
        return 1.0 if self.public_number else 2.0

    @cached_property
    def magnitude(self) -> Floats:
        """Products of the bounds of z, twice that where there may be 2N records."""
        return np.tile(np.multiply.outer(self.largest, self.largest) * self.most_records, (self.groups, 1))

    @property
    def possible(self) -> tuple[Floats, Floats]:
        """Products of the bounds of z; squares, which are not negative, on the diagonal."""
        low = -self.magnitude
        np.fill_diagonal(low, 0.0)
        return low, self.magnitude

    @property
    def relative_error(self) -> float:
        """Rounding when exact integers are converted to floats in the data's units."""
        return 2.5 * float(np.finfo(float).eps)

    @cached_property
    def sensitivity(self) -> Sensitivity:
        """The outer product of one record is replaced, added, removed, or moved to another group."""
        return person_change(self, self.record_change)

    @abstractmethod
    def record_change(self, neighbours: Neighbours) -> Sensitivity:
        """The changes that one record can make."""

    def check_number(self, rows: int) -> None:
        """Raise an error unless the number of records is the public one or, where it is private, in the domain."""
        check_domain(rows, self.records, self.neighbours if self.public_number else Neighbours.ADD_REMOVE)

    @abstractmethod
    def _task(self, *, clip: bool, missing: str) -> MomentTask | TableTask:
        """A function that sums one part of the records."""

    @abstractmethod
    def _sums(self, total: Any) -> NDArray[Any]:
        """Sums of ``z z'`` on the grid, of shape (groups x p, p), from those of all tasks."""

    def evaluate(self, data: Any, *, clip: bool, missing: str) -> Floats:
        check_missing(missing)
        return self._average(self._add_up(data, self._task(clip=clip, missing=missing)))

    def _average(self, total: Any) -> Floats:
        """The answer, from the sums of all tasks."""
        unit = self.largest / sum_levels(self.records)
        return np.asarray(self._sums(total) * np.tile(unit, self.groups)[:, None] * unit / self.records)

    def _add_up(self, data: Any, task: Any) -> Any:
        """The exact sums over all parts of the records."""
        total, person, records, names = task.start(), self.person, as_records(data), self.read_names or None
        if person is None:
            for partial in records.select(names, texts=task.texts).map(task):
                total.merge(partial)
            self.check_number(total.records)
            return total
        same = SameRecords(records.select(names and (*names, person.column), texts=(*task.texts, person.column)))
        for people in find_people(records, self, self.records, most=2 * self.records):
            for partial in same.of(people, whole=people.shards > 1).map(task):
                total.merge(partial)
            if person.rows is None:
                total.add_public(weight_left(*np.unique(people.rows, return_counts=True), person))
        return total


@dataclass(frozen=True, eq=False)
class _BoundedMoments(BoundedQuery, MomentQuery):
    """Moments of records in bounds."""

    neighbours: Neighbours = field(default=Neighbours.REPLACE, kw_only=True)
    person: Person | None = field(default=None, kw_only=True, metadata={"omit_none": True})
    side = "both"

    @property
    def _box(self) -> Bounds:
        """Bounds about the point that records are measured from."""
        return self.bounds

    def _task(self, *, clip: bool, missing: str) -> MomentTask:
        return MomentTask(self.bounds, self._box, self.records, clip, missing, self.person)

    def _sums(self, total: Any) -> NDArray[Any]:
        size = len(self.largest)
        return np.asarray(total.value()[-size:, -size:])  # with the constant, or without


@builtin_kind
@dataclass(frozen=True, eq=False, repr=False)
class SecondMoment(_BoundedMoments):
    """``(1/N) sum (x - centre)(x - centre)'``, of shape (m, m).

    Parameters
    ----------
    bounds : Bounds
    records : int
        The public N. For add-remove neighbours a public constant near the number of records, which itself stays
        private; the domain is then all data sets of at most 2N records. With a `person`, the number of people; with
        ``Person(column, rows=k)``, a public constant near the number of rows that count.
    neighbours, person : optional
        As for `Moments`.
    centre : array_like of shape (m,), optional
        A public point; by default the midpoint of the box, which needs the least noise. For another point, moments
        about the midpoint (`Moments`) and `Release.second_moment` nearly always give less noise.

    Notes
    -----
    Records are put on a grid of up to 2^20 steps a feature, whose sums are exact in any order; the number of steps
    depends on `records` alone.

    Examples
    --------
    >>> SecondMoment(Bounds([-1, -1], [1, 1]), records=1000).shape
    (2, 2)
    """

    centre: NDArray[np.float64] | None = field(default=None, kw_only=True)

    title = "second moment"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.centre is not None:
            object.__setattr__(self, "centre", check_centre(self.centre, self.bounds))
        if self.centre is not None and self.bounds.radius is not None:
            raise ParameterError(
                "centre must be left out when the bounds have a radius, which is about their midpoint."
            )
        _ = self._box  # raises if the centre is too far from the bounds

    @property
    def largest(self) -> Floats:
        return self._box.halfwidths

    @property
    def _box(self) -> Bounds:
        """The domain, its midpoint moved to the centre; wider than the bounds unless the centre is their midpoint."""
        if self.centre is None:
            return self.bounds
        largest = np.maximum(self.bounds.upper - self.centre, self.centre - self.bounds.lower)
        return Bounds(self.centre - largest, self.centre + largest)

    def record_change(self, neighbours: Neighbours) -> RankOneChange:
        box = self._box
        if self.centre is None:
            return RankOneChange(box.halfwidths, self.records, box.radius, neighbours)
        lower, upper, centre = self.bounds.lower, self.bounds.upper, self.centre
        one_signed = bool(((lower >= centre) | (upper <= centre)).all())
        filled = one_signed and bool(((lower == centre) | (upper == centre)).all())
        return RankOneChange(box.halfwidths, self.records, None, neighbours, one_signed, filled)

    @property
    def gamma(self) -> float:
        """Bound on the norm of the moment, which is largest when all records sit in one corner."""
        box = self._box
        longest = float((box.halfwidths**2).sum())
        return min(longest, math.inf if box.radius is None else box.radius**2) * self.most_records

    def extent(self, directions: Floats | None) -> Floats:
        return self._box.reach(directions)


@builtin_kind
@dataclass(frozen=True, eq=False, repr=False)
class Moments(_BoundedMoments):
    """Mean and second moment in one matrix, of shape (m + 1, m + 1): ``(1/N) sum (1, x)(1, x)'``.

    Records x are measured from the box's midpoint. The covariance about the mean follows by post-processing
    (`Release.covariance`).

    Parameters
    ----------
    bounds : Bounds
    records : int
        The public N. For add-remove neighbours a public constant near the number of records; the entry (0, 0) is then
        their noisy number over N. With a `person`, the number of people; with ``Person(column, rows=k)``, a public
        constant near the number of rows that count, whose noisy number over N is then the entry (0, 0).
    neighbours : 'replace' or 'add-remove'
    person : str or Person, optional
        The column that says whose row it is, if people may have several rows (`Person`). Neighbours then differ in all
        rows of one person.
    mean_share : float
        Share of the privacy loss for the mean, above 0 and at most 1/2: the mean is best at 1/2, the second moment at
        0. `Moments.for_covariance` has the best share for a covariance.

    Examples
    --------
    >>> Moments(Bounds([-1, -1], [1, 1]), records=1000).shape
    (3, 3)
    """

    mean_share: float = field(default=0.2, kw_only=True)

    title = "mean and second moment"
    public_value = 1.0  # the constant's own moment
    features = property(attrgetter("bounds.size"), doc="Number of features, without the constant.")
    number_bounds = property(attrgetter("bounds"), doc="Bounds of the features.")

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "mean_share", check_number(self.mean_share, "mean_share", above=0, at_most=0.5))

    @classmethod
    def for_covariance(
        cls, bounds: Bounds, records: int, *, neighbours: Any = Neighbours.REPLACE, person: Any = None
    ) -> Moments:
        """Moments from which a covariance or correlation follows with little noise.

        The share of the mean falls with the number of features. In units in which all halfwidths are 1, the variance
        of the noise in entry (i, j) of the covariance is proportional to ``(a + m)^2 (1 + M/a)``, where a is the weight
        of the constant, m the number of features and ``M = mean_i^2 + mean_j^2``. For means half a halfwidth from the
        midpoint (M = 1/2) it is least at about ``a = sqrt(m)/2``, a share of ``1/(1 + 2 sqrt(m))``. Variances prefer a
        larger share, so it is not smaller than that, and the mean itself has more noise than with the default of 0.2.

        Examples
        --------
        >>> round(Moments.for_covariance(Bounds([-1] * 10, [1] * 10), records=1000).mean_share, 3)
        0.137
        """
        share = min(cls.mean_share, 1 / (1 + 2 * math.sqrt(bounds.size)))
        return cls(bounds, records, neighbours=neighbours, person=person, mean_share=share)

    @cached_property
    def places(self) -> dict[str, Place]:
        """Place of each feature in z, by its name or number."""
        names = self.names or tuple(map(str, range(self.features)))
        return {name: Place(place, 0) for place, name in enumerate(names, start=1)}

    @property
    def entry_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        names = ("1", *(self.names or tuple(f"x{i}" for i in range(self.features))))
        return names, names

    @property
    def largest(self) -> Floats:
        return np.concatenate([[1.0], self.bounds.halfwidths])

    def record_change(self, neighbours: Neighbours) -> MomentsChange:
        return MomentsChange(self.bounds.halfwidths, self.records, self.bounds.radius, neighbours)

    def lift(self, variances: Floats, directions: Floats | None) -> tuple[Floats, Floats | None]:
        """The constant's variance is put first, so that it uses `mean_share` of the privacy loss."""
        whitening = Covariance(variances, directions).whitening
        longest = max_quadratic(whitening, self.bounds.halfwidths, self.bounds.radius).value
        constant = (1 - self.mean_share) / self.mean_share / longest
        lifted = np.concatenate([[constant], variances])
        if directions is None:
            return lifted, None
        beside = np.eye(lifted.size)
        beside[1:, 1:] = directions
        return lifted, beside

    @property
    def public(self) -> NDArray[np.bool_] | None:
        if not self.public_number:
            return None
        mask = np.zeros(self.shape, bool)
        mask[0, 0] = True
        return mask
