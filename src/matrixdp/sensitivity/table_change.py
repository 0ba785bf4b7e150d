"""Sensitivity of the moment matrices of a table, one per group."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from matrixdp.display import short_repr
from matrixdp.errors import ParameterError
from matrixdp.noise.covariance import Covariance
from matrixdp.noise.structure import NoiseStructure
from matrixdp.noise.table_noise import CONSTANT, LEVEL, OBSERVED, VALUE, TableLayout, TableNoise
from matrixdp.privacy import Neighbours
from matrixdp.sensitivity.distance import Distance, Sensitivity, require_shape
from matrixdp.sensitivity.free_squares import largest_alone, shift_of
from matrixdp.serialise import builtin_kind
from matrixdp.types import Floats


@builtin_kind
@dataclass(frozen=True, eq=False)
class TableChange(Sensitivity):
    """All changes of ``(1/N) sum z z'``, one matrix per group, when one record is replaced, added or removed.

    The whitened vector of a record has the squared length ``alpha + sum_levels + sum a``: alpha of the constant, a
    fixed length for each category, of which exactly one level is 1, and ``a_i <= t_i`` for values and for indicators of
    whether they are there. So one matrix changes by at most ``sqrt(2) q/N``, q the largest squared length, and a record
    that moves from one group to another changes two matrices, by at most q/N each.

    Attributes
    ----------
    layout : TableLayout
    halfwidths : float64 array of shape (p,)
        Bound on the absolute value of each coordinate; 1 but for values.
    scales : float64 array of shape (p,)
        Precision of each coordinate, up to a common factor; equal within a category.
    records : int
        The public N.
    groups : int
        Number of groups; 1 if there are none.
    neighbours : Neighbours
    """

    layout: TableLayout
    halfwidths: Floats
    scales: Floats
    records: int
    groups: int = 1
    neighbours: Neighbours = Neighbours.REPLACE

    __repr__ = short_repr

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
        lengths = _Lengths(self, np.ones(self.layout.size))
        q = lengths.constant + lengths.levels + float(lengths.sizes.sum())
        factor = 1.0 if self.neighbours is Neighbours.ADD_REMOVE else math.sqrt(2)
        return Distance(factor * q / math.sqrt(scale), 0.0).times(1 / self.records)

    def free_structure(self, side: Covariance) -> TableNoise:
        """The noise of each distinct number, with more precise squares."""
        unit = math.sqrt(_scalar(side))
        lengths = _Lengths(self, self.scales)
        total = float(lengths.sizes.sum())
        strengths, shift = np.empty(0), 0.0
        if lengths.sizes.size:
            gain, loss = lengths.free_gain(total)
            strengths = gain / lengths.sizes
            shift = shift_of(strengths, loss)
        return TableNoise(self.layout, self.groups, self.counted, self.scales / unit, strengths, shift)

    @property
    def counted(self) -> bool:
        """Whether the number of records of a group is private."""
        return self.groups > 1 or self.neighbours is Neighbours.ADD_REMOVE

    def structured_distance(self, side: Covariance, structure: NoiseStructure) -> Distance:
        """A bound for any scales and squares; exact for those of `free_structure` with add-remove neighbours."""
        if not isinstance(structure, TableNoise) or (structure.layout, structure.groups, structure.counted) != (
            self.layout,
            self.groups,
            self.counted,
        ):
            raise ParameterError("structure must be the noise of a table with the same columns and groups.")
        unit = float((structure.scales * self.halfwidths**2).max())  # scale-free: the largest length is one
        lengths = _Lengths(self, structure.scales / unit)
        found = lengths.distance(structure.strengths, structure.loss)
        return Distance(found.value * unit, found.attained * unit).times(1 / self.records)


class _Lengths:
    """Squared lengths of the whitened vector of a record, by part."""

    def __init__(self, change: TableChange, scales: Floats) -> None:
        layout = change.layout
        kinds, owners = np.array(layout.kinds), np.array(layout.columns)
        self.neighbours, self.groups = change.neighbours, change.groups
        self.constant = float(scales[kinds == CONSTANT][0])
        categories = [scales[owners == owner] for owner in np.unique(owners[kinds == LEVEL])]
        self.levels = math.fsum(float(one.max()) for one in categories)
        self.shared = self.constant + math.fsum(float(one[0]) for one in categories if one.size == 1)
        own = layout.of_kind(OBSERVED, VALUE)
        self.sizes = (scales * change.halfwidths**2)[own]

    @cached_property
    def fixed(self) -> float:
        """Length that every record has: the constant and one level of each category."""
        return self.constant + self.levels

    def replaced(self, s: float) -> float:
        """Largest squared distance of two matrices, for ``sum a`` of s on average and the same squares."""
        return 2 * (self.fixed + s) ** 2 - 2 * max(self.constant - s, 0.0) ** 2

    def free_gain(self, total: float) -> tuple[float, float]:
        """K and g: squares may have the precision ``k diag(1/t) - g 11'`` at no cost."""
        if self.neighbours is Neighbours.ADD_REMOVE:
            gain = 2 * (self.fixed + total)
            return gain, gain / total
        gain = (self.replaced(total) - self.replaced(total / 2)) / total
        if self.groups == 1:
            return gain, 0.5
        gain = min(gain, 2 * (self.fixed + total))
        return gain, gain / total

    def distance(self, strengths: Floats, loss: float) -> Distance:
        """The bound, and what a known pair attains, for N = 1."""
        total = float(self.sizes.sum())
        gain = float((strengths * self.sizes).max()) if strengths.size else 0.0
        corner = float((strengths * self.sizes**2).sum()) - loss * total**2 if strengths.size else 0.0
        one = largest_alone(self.fixed, gain, loss, total)  # squared length of one record's matrix and squares
        if self.neighbours is Neighbours.ADD_REMOVE:
            return Distance(math.sqrt(one), math.sqrt((self.fixed + total) ** 2 + corner))
        apart = self.replaced(total / 2) + gain * total + max(0.0, 0.5 - loss) * total**2
        bound = max(self.replaced(total), apart)
        attained = (self.fixed + total) ** 2 + self.fixed**2 - 2 * self.shared**2 + corner  # a corner and the midpoint
        if self.groups > 1:
            bound = max(bound, 2 * one)
            attained = max(attained, 2 * ((self.fixed + total) ** 2 + corner))
        value = math.sqrt(bound)
        return Distance(value, min(math.sqrt(max(attained, 0.0)), value))


def _scalar(covariance: Covariance) -> float:
    if covariance.directions is not None or not covariance.scalar:
        raise ParameterError("the noise of a table takes no directions and no allocation; give importance to columns.")
    return float(covariance.variances[0])
