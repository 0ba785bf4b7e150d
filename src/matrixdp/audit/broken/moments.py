"""Second moments and kernels with a factor or a direction of their sensitivity left out."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from matrixdp.audit.attack import attack
from matrixdp.audit.broken.registry import BOX, PRIVACY, broken
from matrixdp.design import make_design, shares
from matrixdp.noise import Covariance, NoiseStructure, Squares
from matrixdp.queries import GramMatrix, Query, SecondMoment
from matrixdp.sensitivity import (
    Distance,
    KernelRowChange,
    RankOneChange,
    Sensitivity,
    max_quadratic,
)
from matrixdp.types import Floats

_KERNEL_POINTS = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0], [0.0, 0.0]])


@dataclass(frozen=True, eq=False)
class _OneFactor(RankOneChange):
    """Without the factor 2 for different covariances of rows and columns."""

    def distance(self, rowcov: Covariance, colcov: Covariance) -> Distance:
        sides = [max_quadratic(cov.whitening, self.halfwidths).value for cov in (rowcov, colcov)]
        return Distance(math.sqrt(sides[0] * sides[1]) / self.records, 0.0)


@broken("the factor 2 for two covariances left out")
def _two_covariances() -> bool:
    def second(data: Any) -> Floats:
        clipped = np.clip(data, -1, 1)
        return np.asarray(clipped.T @ clipped / len(clipped))

    query = Query((2, 2), _OneFactor(np.ones(2), 4), 1.0, second, relative_error=1e-14)
    return attack(make_design(query, PRIVACY, allocation=shares([0.8, 0.2])), bounds=BOX, starts=3).broken


class _HalfSpread(GramMatrix):
    """As if two records' features were at most 1 apart in squared norm, and not 2."""

    @property
    def sensitivity(self) -> Sensitivity:
        honest = super().sensitivity
        assert isinstance(honest, KernelRowChange)
        return replace(honest, ellipsoid=honest.ellipsoid / 2, halfwidths=np.ones(honest.halfwidths.size))


@broken("half the distance between kernel features")
def _half_spread() -> bool:
    query = _HalfSpread(BOX, 2, points=_KERNEL_POINTS, bandwidth=0.5)
    return attack(make_design(query, PRIVACY, allocation="kernel"), starts=3).broken


@dataclass(frozen=True, eq=False)
class _NoiseAbovePoints(KernelRowChange):
    """Takes for granted that the noise has at least the covariance M, which ``M - l I`` has not."""

    def distance(self, rowcov: Covariance, colcov: Covariance) -> Distance:
        scale = float(colcov.variances.max()) / (float(np.linalg.eigvalsh(self.ellipsoid)[-1]) - _SUBTRACTED)
        return Distance(1 / math.sqrt(scale), 0.0)


_SUBTRACTED = 0.8


class _Subtracted(GramMatrix):
    """Subtracts l from the ellipsoid of changes instead of adding it."""

    @property
    def own_covariance(self) -> Covariance:
        assert isinstance(self.sensitivity, KernelRowChange)
        values, vectors = np.linalg.eigh(self.sensitivity.ellipsoid)
        return Covariance(values - _SUBTRACTED, vectors)

    @property
    def sensitivity(self) -> Sensitivity:
        honest = super().sensitivity
        return _NoiseAbovePoints(**{field.name: getattr(honest, field.name) for field in fields(KernelRowChange)})


@broken("regularisation of a kernel subtracted")
def _subtracted() -> bool:
    query = _Subtracted(BOX, 2, points=_KERNEL_POINTS, bandwidth=0.5)
    return attack(make_design(query, PRIVACY, allocation="kernel"), starts=3).broken


@dataclass(frozen=True, eq=False)
class _StrongSquares(RankOneChange):
    """With the precision 2T in place of 3T/2 for the squares, and the distance of today."""

    def free_structure(self, side: Covariance) -> Squares | None:
        squares = super().free_structure(side)
        assert squares is not None
        return replace(squares, strengths=squares.strengths * (4 / 3))

    def structured_distance(self, side: Covariance, structure: NoiseStructure) -> Distance:
        return self.distance(side, side)


@dataclass(frozen=True, eq=False)
class _UnshiftedSquares(RankOneChange):
    """Without what the sum of the squares loses."""

    def free_structure(self, side: Covariance) -> Squares | None:
        squares = super().free_structure(side)
        assert squares is not None
        return replace(squares, shift=0.0)

    def structured_distance(self, side: Covariance, structure: NoiseStructure) -> Distance:
        return self.distance(side, side)


def _attack_squares(change: type[RankOneChange]) -> bool:
    query = SecondMoment(BOX, 4)
    query.__dict__["sensitivity"] = change(query.bounds.halfwidths, query.records)
    return attack(make_design(query, PRIVACY), starts=3).broken


@broken("squares that are measured too precisely")
def _strong_squares() -> bool:
    return _attack_squares(_StrongSquares)


@broken("the sum left out of the squares")
def _unshifted_squares() -> bool:
    return _attack_squares(_UnshiftedSquares)
