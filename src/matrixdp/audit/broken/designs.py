"""Designs with too little noise, and queries of records whose sensitivity or clipping is wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from matrixdp.audit.attack import attack
from matrixdp.audit.broken.registry import BOX, PRIVACY, broken
from matrixdp.audit.measure import measure
from matrixdp.design import Design, make_design
from matrixdp.design.grid import Grid
from matrixdp.domain import Person
from matrixdp.noise import Stream
from matrixdp.privacy import Neighbours, Privacy
from matrixdp.queries import Identity, Moments, Query, SecondMoment
from matrixdp.records import with_ids
from matrixdp.release.run import release
from matrixdp.sensitivity import (
    FrobeniusBall,
    MomentsChange,
    RankOneChange,
)
from matrixdp.types import Floats

_RADIUS = 2 * math.sqrt(2) / 4  # change of the mean of four records in the box


def _mean(data: Any) -> Floats:
    return np.asarray(np.clip(data, -1, 1).mean(axis=0)[None])


def _mean_design(function: Callable[[Any], Floats], radius: float = _RADIUS, bound: float = 4.0) -> Design:
    return make_design(Query((1, 2), FrobeniusBall(radius), bound, function, relative_error=1e-14), PRIVACY)


def _attack_mean(function: Callable[[Any], Floats], radius: float = _RADIUS, bound: float = 4.0) -> bool:
    return attack(_mean_design(function, radius, bound), bounds=BOX, starts=3).broken


@broken("half the noise in a design")
def _half_noise() -> bool:
    design = make_design(Moments(BOX, 3), PRIVACY)
    side = design.colcov.scaled(0.5)
    grid = replace(design.grid, limit=4 * design.grid.limit)
    return attack(replace(design, rowcov=side, colcov=side, grid=grid), starts=2).broken


@broken("half the noise drawn")
def _half_noise_drawn() -> bool:
    honest = make_design(Identity(BOX, 1), Privacy(2.0, 0.01))
    weaker = make_design(Identity(BOX, 1), Privacy(6.0, 0.01))
    stream = Stream(seed=1)
    return measure(
        lambda data: release(weaker, data, stream=stream, simulation=True), [[1, 1]], [[-1, -1]], claim=honest.distance
    ).broken


@broken("the same noise for two releases")
def _reused_noise() -> bool:
    design, seeds = make_design(Identity(BOX, 1), PRIVACY), iter(range(10**9))

    def twice(data: Floats) -> Floats:
        seed = next(seeds)
        draws = [release(design, x, stream=Stream(seed=seed), simulation=True).matrix for x in (data, data / 2)]
        return np.concatenate(draws)

    claim = math.sqrt(2) * design.distance
    return measure(twice, np.array([[1.0, 1.0]]), np.array([[-1.0, -1.0]]), trials=400, claim=claim).broken


class _AddRemoveSet(Moments):
    """Replaces records, with the sensitivity of one that is added."""

    @property
    def sensitivity(self) -> MomentsChange:
        return MomentsChange(self.bounds.halfwidths, self.records, None, Neighbours.ADD_REMOVE)


@broken("add-remove sensitivity for replaced records")
def _wrong_neighbours() -> bool:
    return attack(make_design(_AddRemoveSet(BOX, 3), PRIVACY), starts=2).broken


@broken("rows of a person that all count, with the noise of one")
def _all_rows() -> bool:
    class AllRows(SecondMoment):
        @property
        def sensitivity(self) -> RankOneChange:
            return self.record_change(self.neighbours)

    return attack(make_design(AllRows(BOX, 4, person=Person("id", rows=3)), PRIVACY), starts=2).broken


@broken("a person who counts once in each part of the data")
def _once_in_each_part() -> bool:
    class InEachPart(SecondMoment):
        def evaluate(self, data: Any, *, clip: bool, missing: str) -> Floats:
            (block,) = data
            parts = [with_ids(block.data[half::2], block.ids[half::2]) for half in (0, 1)]
            return np.asarray(sum(super(InEachPart, self).evaluate(part, clip=clip, missing=missing) for part in parts))

    query = InEachPart(BOX, 4, person=Person("id"), neighbours=Neighbours.ADD_REMOVE)
    return attack(make_design(query, PRIVACY), starts=2).broken


@broken("rounding left out of the distance")
def _no_rounding() -> bool:
    design = make_design(SecondMoment(BOX, 3), PRIVACY)
    coarse = Grid(4, design.grid.limit, design.ideal_distance().value)
    return attack(replace(design, grid=coarse), starts=6).broken


@broken("one record seen twice")
def _seen_twice() -> bool:
    return _attack_mean(lambda data: _mean(data) + _mean(data[:1]) / 4)


@broken("values that are not clipped")
def _no_clip() -> bool:
    return _attack_mean(lambda data: np.asarray(data.mean(axis=0)[None]), bound=1e6)


@broken("sensitivity for twice as many records")
def _wrong_records() -> bool:
    return _attack_mean(_mean, _RADIUS / 2)


@broken("one record that rescales all others")
def _rescaled() -> bool:
    return _attack_mean(lambda data: _mean(data / max(1.0, float(np.abs(data).max()))))


@broken("floating-point error left out")
def _float_error() -> bool:
    def third(data: Any) -> Floats:
        return (np.float32(1e5) + (_mean(data) / 3).astype(np.float32)).astype(np.float64)

    return _attack_mean(third, _RADIUS / 3, bound=2e5)
