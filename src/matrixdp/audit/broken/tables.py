"""Tables: coordinates, indicators and groups that are taken to change less than they do."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from matrixdp.audit.attack import attack
from matrixdp.audit.broken.registry import PRIVACY, broken
from matrixdp.design import make_design
from matrixdp.domain import Category, Columns, Number
from matrixdp.noise import Covariance, NoiseStructure
from matrixdp.noise.table_noise import LEVEL, OBSERVED, TableNoise
from matrixdp.queries import TableMoments
from matrixdp.sensitivity import (
    Distance,
    TableChange,
)

_TABLE = Columns((Number("x", -1, 1, missing=True), Category("c", ("a", "b", "c")), Category("g", ("p", "q"))))


@dataclass(frozen=True, eq=False)
class _ShortCoordinates(TableChange):
    """With coordinates of one kind taken as shorter than they are."""

    kind = LEVEL
    factor = 0.5

    def structured_distance(self, side: Covariance, structure: NoiseStructure) -> Distance:
        assert isinstance(structure, TableNoise)
        scales = structure.scales.copy()
        scales[self.layout.of_kind(self.kind)] *= self.factor
        return super().structured_distance(side, replace(structure, scales=scales))


@dataclass(frozen=True, eq=False)
class _NoIndicator(_ShortCoordinates):
    """Without the length of the indicators of missing values."""

    kind = OBSERVED
    factor = 1e-9


@dataclass(frozen=True, eq=False)
class _OneGroup(TableChange):
    """Counts a record that moves between groups in one of them."""

    def structured_distance(self, side: Covariance, structure: NoiseStructure) -> Distance:
        found = super().structured_distance(side, structure)
        return Distance(found.value / math.sqrt(2), 0.0)


@dataclass(frozen=True, eq=False)
class _UngroupedSquares(TableChange):
    """Takes squares for groups that hold for one matrix only."""

    def free_structure(self, side: Covariance) -> TableNoise:
        noise = super().free_structure(side)
        inverse = float((1 / noise.strengths).sum())
        return replace(noise, shift=(1 - math.sqrt(1 - inverse / 2)) / inverse)

    def structured_distance(self, side: Covariance, structure: NoiseStructure) -> Distance:
        assert isinstance(structure, TableNoise)
        return super().structured_distance(side, replace(structure, shift=super().free_structure(side).shift))


def _attack_table(change: type[TableChange]) -> bool:
    query = TableMoments(_TABLE, 4, ("g",))
    honest = query.sensitivity
    assert isinstance(honest, TableChange)
    query.__dict__["sensitivity"] = change(
        honest.layout, honest.halfwidths, honest.scales, honest.records, honest.groups, honest.neighbours
    )
    return attack(make_design(query, PRIVACY), starts=3).broken


@broken("half the length of a category")
def _half_category() -> bool:
    return _attack_table(_ShortCoordinates)


@broken("indicators of missing values left out of the length")
def _no_indicator() -> bool:
    return _attack_table(_NoIndicator)


@broken("a record that changes its group counted once")
def _one_group() -> bool:
    return _attack_table(_OneGroup)


@broken("squares of one matrix for several groups")
def _ungrouped_squares() -> bool:
    return _attack_table(_UngroupedSquares)
