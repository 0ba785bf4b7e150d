"""Sensitivity of the moment matrices of a table, one per group."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from matrixdp.errors import ParameterError
from matrixdp.noise.covariance import Covariance
from matrixdp.noise.structure import NoiseStructure
from matrixdp.noise.table_noise import CONSTANT, LEVEL, OBSERVED, VALUE, TableLayout, TableNoise
from matrixdp.privacy import Neighbours
from matrixdp.sensitivity.distance import Distance, Sensitivity, require_shape
from matrixdp.sensitivity.moment_change import RecordLengths, shift_of
from matrixdp.serialise import builtin_kind
from matrixdp.types import Floats


@builtin_kind
@dataclass(frozen=True, eq=False, repr=False)
class TableChange(Sensitivity):
    """All changes of ``(1/N) sum z z'``, one matrix per group, when one record is replaced, added or removed.

    The whitened vector of a record has the squared length ``alpha + sum_levels + sum a``: alpha of the constant, a
    fixed length for each category, of which exactly one level is 1, and ``a_i <= t_i`` for values and for indicators of
    whether they are there. So one matrix changes by at most ``sqrt(2) q/N``, q the largest squared length, and a record
    that moves from one group to another changes two matrices, by at most q/N each.

    Coordinates are bounded by `halfwidths`, of shape (p,), which are 1 but for values. `scales` are their precisions up
    to a common factor, equal within a category.
    """

    layout: TableLayout
    halfwidths: Floats
    scales: Floats
    records: int
    groups: int = 1
    neighbours: Neighbours = Neighbours.REPLACE

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbours", Neighbours.parse(self.neighbours))

    def check_shape(self, shape: tuple[int, int]) -> None:
        """Raise a `ParameterError` for another shape."""
        p = self.layout.size
        require_shape(shape, (self.groups * p, p), f"moments of {p} coordinates in {self.groups} groups")

    @property
    def frobenius(self) -> float:
        """Distance for noise of unit variance."""
        p = self.layout.size
        return self.distance(Covariance.identity(self.groups * p), Covariance.identity(p)).value

    def distance(self, rowcov: Covariance, colcov: Covariance) -> Distance:
        """For noise that is the same in every entry."""
        scale = _scalar(rowcov) * _scalar(colcov)
        lengths, _, _ = self._lengths(np.ones(self.layout.size))
        q = lengths.fixed + lengths.total
        factor = 1.0 if self.neighbours is Neighbours.ADD_REMOVE else math.sqrt(2)
        return Distance(factor * q / math.sqrt(scale), 0.0).times(1 / self.records)

    def free_structure(self, side: Covariance) -> TableNoise:
        """The noise of each distinct number, with more precise squares."""
        unit = math.sqrt(_scalar(side))
        lengths, sizes, _ = self._lengths(self.scales)
        strengths, shift = np.empty(0), 0.0
        if sizes.size:
            gain, loss = lengths.free_gain()
            strengths = gain / sizes
            shift = shift_of(strengths, loss)
        return TableNoise(self.layout, self.groups, self.counted, self.scales / unit, strengths, shift)

    @property
    def counted(self) -> bool:
        """True if the number of records of a group is private."""
        return self.groups > 1 or self.neighbours is Neighbours.ADD_REMOVE

    def structured_distance(self, side: Covariance, structure: NoiseStructure) -> Distance:
        """A bound for any scales and squares; exact for those of `free_structure` with add-remove neighbours."""
        own = self.layout, self.groups, self.counted
        if not isinstance(structure, TableNoise) or (structure.layout, structure.groups, structure.counted) != own:
            raise ParameterError("structure must be the noise of a table with the same columns and groups.")
        unit = float((structure.scales * self.halfwidths**2).max())  # scale-free: the largest length is one
        found = self._distance(structure.scales / unit, structure.strengths, structure.loss)
        return Distance(found.value * unit, found.attained * unit).times(1 / self.records)

    def _lengths(self, scales: Floats) -> tuple[RecordLengths, Floats, float]:
        """Lengths of a whitened record, those of its values and indicators, and what all records have in common."""
        kinds, owners = np.array(self.layout.kinds), np.array(self.layout.columns)
        constant = float(scales[kinds == CONSTANT][0])
        categories = [scales[owners == owner] for owner in np.unique(owners[kinds == LEVEL])]
        levels = math.fsum(float(one.max()) for one in categories)
        shared = constant + math.fsum(float(one[0]) for one in categories if one.size == 1)
        sizes = (scales * self.halfwidths**2)[self.layout.of_kind(OBSERVED, VALUE)]
        lengths = RecordLengths(constant, constant + levels, float(sizes.sum()), self.neighbours, self.groups)
        return lengths, sizes, shared

    def _distance(self, scales: Floats, strengths: Floats, loss: float) -> Distance:
        """The bound, and what a known pair attains, for N = 1."""
        lengths, sizes, shared = self._lengths(scales)
        gain = float((strengths * sizes).max()) if strengths.size else 0.0
        corner = float((strengths * sizes**2).sum()) - loss * lengths.total**2 if strengths.size else 0.0
        value, longest = math.sqrt(lengths.bound(gain, loss)), (lengths.fixed + lengths.total) ** 2
        if self.neighbours is Neighbours.ADD_REMOVE:
            return Distance(value, math.sqrt(longest + corner))
        attained = longest + lengths.fixed**2 - 2 * shared**2 + corner  # a corner and the midpoint
        if self.groups > 1:
            attained = max(attained, 2 * (longest + corner))
        return Distance(value, min(math.sqrt(max(attained, 0.0)), value))


def _scalar(covariance: Covariance) -> float:
    if covariance.directions is not None or not covariance.scalar:
        raise ParameterError("the noise of a table takes no directions and no allocation; give importance to columns.")
    return float(covariance.variances[0])
