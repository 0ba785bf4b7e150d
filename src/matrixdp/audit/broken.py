"""Broken variants of queries, designs and fits, each with one mistake that an audit must catch."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

from matrixdp.adaptive import private_moment, queries
from matrixdp.adaptive.budget import FitBudget
from matrixdp.audit.attack import attack
from matrixdp.audit.measure import measure
from matrixdp.audit.replay import replay
from matrixdp.design import Design, isotropic, make_design, shares
from matrixdp.design.grid import Grid
from matrixdp.domain import Bounds, Category, Columns, Number, Person
from matrixdp.noise import Covariance, MatrixGaussian, NoiseStructure, Squares, Stream
from matrixdp.noise.table_noise import LEVEL, OBSERVED, TableNoise
from matrixdp.privacy import Neighbours, Privacy
from matrixdp.queries import (
    Adjacency,
    GramMatrix,
    Identity,
    Laplacian,
    MatrixQuery,
    Moments,
    Query,
    SecondMoment,
    TableMoments,
)
from matrixdp.records import with_ids
from matrixdp.release.matrix import release
from matrixdp.sensitivity import (
    Distance,
    EdgeChange,
    FrobeniusBall,
    KernelRowChange,
    MomentsChange,
    NodeChange,
    RankOneChange,
    Sensitivity,
    TableChange,
    max_quadratic,
)
from matrixdp.types import Floats

BOX = Bounds([-1, -1], [1, 1])
PRIVACY = Privacy(1.0, 1e-6)
_SUBTRACTED = 0.8

BROKEN: dict[str, Callable[[], bool]] = {}  # from a mistake to whether the audit catches it
_RADIUS = 2 * math.sqrt(2) / 4  # change of the mean of four records in the box
_KERNEL_POINTS = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0], [0.0, 0.0]])
_TABLE = Columns((Number("x", -1, 1, missing=True), Category("c", ("a", "b", "c")), Category("g", ("p", "q"))))
_DATA = np.vstack([[[1.0, 1.0]], np.random.default_rng(0).normal(0, 0.05, (399, 2))])
_NEIGHBOUR = np.vstack([[[0.0, 0.0]], _DATA[1:]])


def broken(name: str) -> Callable[[Callable[[], bool]], Callable[[], bool]]:
    """Add a function to the list that makes the mistake `name`, and says whether the audit catches it."""

    def add(function: Callable[[], bool]) -> Callable[[], bool]:
        BROKEN[name] = function
        return function

    return add


def _attack_query(query: MatrixQuery, *, starts: int = 2, **options: Any) -> bool:
    return attack(make_design(query, PRIVACY, **options), starts=starts).broken


def _claim(query: MatrixQuery, change: Sensitivity, **options: Any) -> bool:
    """True if an attack catches a query that claims another sensitivity than its own."""
    query.__dict__["sensitivity"] = change
    return _attack_query(query, **options)


# Designs with too little noise, and queries of records whose sensitivity or clipping is wrong.


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


@broken("add-remove sensitivity for replaced records")
def _wrong_neighbours() -> bool:
    return _claim(Moments(BOX, 3), MomentsChange(BOX.halfwidths, 3, None, Neighbours.ADD_REMOVE))


@broken("rows of a person that all count, with the noise of one")
def _all_rows() -> bool:
    query = SecondMoment(BOX, 4, person=Person("id", rows=3))
    return _claim(query, query.record_change(query.neighbours))


@broken("a person who counts once in each part of the data")
def _once_in_each_part() -> bool:
    class InEachPart(SecondMoment):
        def evaluate(self, data: Any, *, clip: bool, missing: str) -> Floats:
            (block,) = data
            parts = [with_ids(block.data[half::2], block.ids[half::2]) for half in (0, 1)]
            return np.asarray(sum(super(InEachPart, self).evaluate(part, clip=clip, missing=missing) for part in parts))

    query = InEachPart(BOX, 4, person=Person("id"), neighbours=Neighbours.ADD_REMOVE)
    return _attack_query(query)


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


# Second moments and kernels with a factor or a direction of their sensitivity left out.


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


@broken("half the distance between kernel features")
def _half_spread() -> bool:
    """As if two records' features were at most 1 apart in squared norm, and not 2."""
    query = GramMatrix(BOX, 2, points=_KERNEL_POINTS, bandwidth=0.5)
    honest = query.sensitivity
    assert isinstance(honest, KernelRowChange)
    change = replace(honest, ellipsoid=honest.ellipsoid / 2, halfwidths=np.ones(honest.halfwidths.size))
    return _claim(query, change, starts=3, allocation="kernel")


@dataclass(frozen=True, eq=False)
class _NoiseAbovePoints(KernelRowChange):
    """Takes for granted that the noise has at least the covariance M, which ``M - l I`` has not."""

    def distance(self, rowcov: Covariance, colcov: Covariance) -> Distance:
        scale = float(colcov.variances.max()) / (float(np.linalg.eigvalsh(self.ellipsoid)[-1]) - _SUBTRACTED)
        return Distance(1 / math.sqrt(scale), 0.0)


@broken("regularisation of a kernel subtracted")
def _subtracted() -> bool:
    """Subtracts l from the ellipsoid of changes instead of adding it."""
    query = GramMatrix(BOX, 2, points=_KERNEL_POINTS, bandwidth=0.5)
    honest = query.sensitivity
    assert isinstance(honest, KernelRowChange)
    values, vectors = np.linalg.eigh(honest.ellipsoid)
    query.__dict__["own_covariance"] = Covariance(values - _SUBTRACTED, vectors)
    change = _NoiseAbovePoints(**{field.name: getattr(honest, field.name) for field in fields(KernelRowChange)})
    return _claim(query, change, starts=3, allocation="kernel")


@dataclass(frozen=True, eq=False)
class _WrongSquares(RankOneChange):
    """The distance of noise without squares, whatever the squares are."""

    def structured_distance(self, side: Covariance, structure: NoiseStructure) -> Distance:
        return self.distance(side, side)


class _StrongSquares(_WrongSquares):
    """With the precision 2T in place of 3T/2 for the squares."""

    def free_structure(self, side: Covariance) -> Squares | None:
        squares = super().free_structure(side)
        return None if squares is None else replace(squares, strengths=squares.strengths * (4 / 3))


class _UnshiftedSquares(_WrongSquares):
    """Without what the sum of the squares loses."""

    def free_structure(self, side: Covariance) -> Squares | None:
        squares = super().free_structure(side)
        return None if squares is None else replace(squares, shift=0.0)


@broken("squares that are measured too precisely")
def _strong_squares() -> bool:
    return _claim(SecondMoment(BOX, 4), _StrongSquares(BOX.halfwidths, 4), starts=3)


@broken("the sum left out of the squares")
def _unshifted_squares() -> bool:
    return _claim(SecondMoment(BOX, 4), _UnshiftedSquares(BOX.halfwidths, 4), starts=3)


# Graphs: edges and nodes that are taken to change less than they do.


@broken("half an edge")
def _half_edge() -> bool:
    return _claim(Adjacency(4), EdgeChange("adjacency", 0.5))


@broken("edges of a node that come, without those that go")
def _half_node() -> bool:
    query = Adjacency(9, unit="node", max_degree=3, neighbours=Neighbours.REPLACE)
    return _claim(query, NodeChange("adjacency", 9, query.weight, 3.0, replaced=False))


@broken("degrees cut in the order of the nodes")
def _cut_degrees() -> bool:
    class FirstEdges(Adjacency):
        """Keeps an edge if it is among the first of both of its nodes: one node moves edges of all others."""

        def evaluate(self, data: Any, *, clip: bool, missing: str) -> Floats:
            kept = np.cumsum(np.asarray(data) > 0, axis=1) <= float(self.max_degree or 0)
            return np.asarray(data, np.float64) * (kept & kept.T)

    query = FirstEdges(12, unit="node", max_degree=1, neighbours=Neighbours.ADD_REMOVE)
    return _attack_query(query, starts=20)


@dataclass(frozen=True)
class _OwnEdge(EdgeChange):
    """As if an edge moved its own coordinate only, and not those of edges that share a node."""

    def structured_distance(self, side: Covariance, structure: NoiseStructure) -> Distance:
        laplacian = np.zeros((side.size, side.size))
        laplacian[:2, :2] = [[1.0, -1.0], [-1.0, 1.0]]
        own = structure.whiten(MatrixGaussian(side, side), laplacian)[0] * self.weight
        return Distance(float(own), float(own))


@broken("edges that share a node left out")
def _own_edge() -> bool:
    return _claim(Laplacian(5), _OwnEdge("laplacian"))


# Tables: coordinates, indicators and groups that are taken to change less than they do.


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
    return _claim(query, change(**{field.name: getattr(honest, field.name) for field in fields(honest)}), starts=3)


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


# Adaptive fits that spend more than they claim, or whose steps depend on private data.


def _fit(data: Floats) -> Any:
    return private_moment(data, BOX, PRIVACY)


def _halved(radius: float) -> FrobeniusBall:
    return FrobeniusBall(radius / 2)


@broken("half the sensitivity of counts, excesses and moments in a fit")
def _half_sensitivity() -> bool:
    with patch.object(queries, "FrobeniusBall", _halved):
        return replay(_fit, _DATA, _NEIGHBOUR).broken


def _replay_people(person: Person) -> bool:
    """True if a replay finds a mistake where the first person has five rows at a corner, or one at the middle."""
    ids = np.arange(len(_DATA))
    data = with_ids(np.repeat(_DATA, [5, *[1] * (len(_DATA) - 1)], axis=0), np.append([0] * 4, ids))
    fit = partial(private_moment, bounds=BOX, privacy=PRIVACY, person=person, records=len(_DATA))
    return replay(fit, data, with_ids(_NEIGHBOUR, ids)).broken


@broken("a person each of whose rows counts in a fit where people count once")
def _every_row() -> bool:
    with patch.object(Person, "weights", lambda _, counts, unit: np.full(len(counts), unit)):
        return _replay_people(Person("id"))


@broken("the noise of one row in the counts of a fit where rows of people count")
def _one_row() -> bool:
    with patch.object(queries, "most_rows", lambda _: 1):
        return _replay_people(Person("id", rows=3))


@broken("a charge smaller than what is spent")
def _small_charge() -> bool:
    return replay(_fit, _DATA, _NEIGHBOUR, claim=0.9 * PRIVACY.mu).broken


def _two_releases(data: Floats, first: float, second: float) -> Any:
    """Two releases from budgets of their own, which nobody adds up."""
    query = Moments(BOX, len(data))
    for share in (first, second):
        design = make_design(query, PRIVACY, allocation=isotropic(), share=share)
        release(design, data)


@broken("shares of the budget that sum above one")
def _shares_above_one() -> bool:
    return replay(lambda data: _two_releases(data, 0.7, 0.7), _DATA, _NEIGHBOUR, claim=PRIVACY).broken


@broken("bounds taken from the data")
def _learned_bounds() -> bool:
    def fit(data: Floats) -> Any:
        largest = np.abs(data).max(axis=0) + 1e-9
        return private_moment(data, Bounds(-largest, largest), PRIVACY)

    return replay(fit, _DATA, _NEIGHBOUR).broken


@broken("a number of iterations that depends on the data")
def _data_dependent_steps() -> bool:
    def fit(data: Floats) -> Any:
        budget = FitBudget(PRIVACY, Neighbours.REPLACE)
        query = Moments(BOX, len(data))
        for _ in range(2 if data[0, 0] > 0.5 else 1):
            budget.release("moment", query, data, share=0.5)
        return budget.mu

    return replay(fit, _DATA, _NEIGHBOUR, claim=PRIVACY).broken


@broken("a private value in the result")
def _private_result() -> bool:
    return replay(lambda data: (_fit(data).mean, data.max()), _DATA, _NEIGHBOUR, claim=PRIVACY).broken
