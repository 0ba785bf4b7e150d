"""Broken variants of queries, designs and fits, each with one mistake that an audit must catch: `BROKEN`."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

from matrixdp.adaptive import private_moment, private_scales, queries
from matrixdp.adaptive.budget import FitBudget
from matrixdp.audit.attack import attack, distance_between
from matrixdp.audit.measure import measure
from matrixdp.audit.replay import replay
from matrixdp.design import isotropic, make_design, shares
from matrixdp.design.grid import Grid
from matrixdp.domain import Bounds, Category, Columns, Number, Person
from matrixdp.noise import Covariance, MatrixGaussian, Stream
from matrixdp.noise.table_noise import LEVEL, OBSERVED
from matrixdp.privacy import Neighbours, Privacy
from matrixdp.queries import Adjacency, GramMatrix, Identity, Laplacian, Moments, Query, SecondMoment, TableMoments
from matrixdp.queries.table_sums import TableSum
from matrixdp.records import Blocks, with_ids
from matrixdp.records.people import SameRecords
from matrixdp.sensitivity import Distance, EdgeChange, FrobeniusBall, KernelRowChange, NodeChange, RankOneChange
from matrixdp.sensitivity.moment_change import MomentsChange, TableChange
from matrixdp.sensitivity.quadratic import max_quadratic
from matrixdp.types import Floats

BOX = Bounds([-1, -1], [1, 1])
PRIVACY = Privacy(1.0, 1e-6)
_RADIUS = 2 * math.sqrt(2) / 4  # change of the mean of four records in the box
_SHAPES = TableMoments(Columns((Number("x", -1, 1), Number("n", 0, 3, step=1))), 4, shapes=0.5)
_TABLE = Columns((Number("x", -1, 1, missing=True), Category("c", ("a", "b", "c")), Category("g", ("p", "q"))))
_DATA = np.vstack([[[1.0, 1.0]], np.random.default_rng(0).normal(0, 0.05, (399, 2))])
_NEIGHBOUR = np.vstack([[[0.0, 0.0]], _DATA[1:]])


def _attack(query: Any, *, starts: int = 2, change: Any = None, bounds: Bounds | None = None, **options: Any) -> bool:
    """True if an attack catches a query, which claims `change` if that is given and not its own sensitivity."""
    if change is not None:
        query.__dict__["sensitivity"] = change
    return attack(make_design(query, PRIVACY, **options), starts=starts, bounds=bounds).broken


def _mistake(owner: type, audit: Callable[[], bool], **wrong: Callable[..., Any]) -> bool:
    """The result of an audit while methods of `owner` are wrong: functions of the right method and its arguments."""
    rights = {name: getattr(owner, name) for name in wrong}
    methods: dict[str, Any] = {name: lambda *given, name=name: wrong[name](rights[name], *given) for name in wrong}
    with patch.multiple(owner, **methods):
        return audit()


# Designs with too little noise, and queries of records whose sensitivity or clipping is wrong.


def _mean(data: Any) -> Floats:
    return np.asarray(np.clip(data, -1, 1).mean(axis=0)[None])


def _attack_mean(function: Callable[[Any], Floats], radius: float = _RADIUS, bound: float = 4.0) -> bool:
    query = Query((1, 2), FrobeniusBall(radius), bound, function, relative_error=1e-14)
    return _attack(query, bounds=BOX, starts=3)


def _half_noise() -> bool:
    design = make_design(Moments(BOX, 3), PRIVACY)
    side = design.colcov.scaled(0.5)
    grid = replace(design.grid, limit=4 * design.grid.limit)
    return attack(replace(design, rowcov=side, colcov=side, grid=grid), starts=2).broken


def _no_rounding() -> bool:
    design = make_design(SecondMoment(BOX, 3), PRIVACY)
    coarse = Grid(4, design.grid.limit, design.ideal_distance().value)
    return attack(replace(design, grid=coarse), starts=6).broken


def _half_noise_drawn() -> bool:
    honest, weaker = (make_design(Identity(BOX, 1), Privacy(epsilon, 0.01)) for epsilon in (2.0, 6.0))
    draw = partial(weaker.release, stream=Stream(seed=1), simulation=True)
    return measure(draw, [[1, 1]], [[-1, -1]], claim=honest.distance).broken


def _reused_noise() -> bool:
    design, seeds = make_design(Identity(BOX, 1), PRIVACY), iter(range(10**9))

    def twice(data: Floats) -> Floats:
        seed = next(seeds)
        draws = [design.release(x, stream=Stream(seed=seed), simulation=True).matrix for x in (data, data / 2)]
        return np.concatenate(draws)

    corner = np.ones((1, 2))
    return measure(twice, corner, -corner, trials=400, claim=math.sqrt(2) * design.distance).broken


class _InEachPart(SecondMoment):
    def evaluate(self, data: Any, *, clip: bool, missing: str) -> Floats:
        (block,) = data
        parts = [with_ids(block.data[half::2], block.ids[half::2]) for half in (0, 1)]
        return np.asarray(sum(super(_InEachPart, self).evaluate(part, clip=clip, missing=missing) for part in parts))


def _changed_rows() -> bool:
    """Of 40 people two exchange their numbers of rows after these were counted, in two neighbouring histories."""
    first, later = (np.repeat(np.arange(40), [*rows, *[1] * 38]) for rows in ([1, 9], [9, 1]))
    design = make_design(SecondMoment(BOX, 40, person=Person("id")), PRIVACY)

    def history(value: float) -> Blocks:
        readings, rows = iter([first, later]), np.where(later[:, None] == 0, value, np.zeros((1, 2)))
        return Blocks(lambda: with_ids(rows, next(readings)))

    def audit() -> bool:
        return distance_between(design, history(1.0), history(0.0)) > design.distance

    return _mistake(SameRecords, audit, check=lambda _right, _records, _reading: None)


# Second moments and kernels with a factor or a direction of their sensitivity left out.


def _two_covariances() -> bool:
    def second(data: Any) -> Floats:
        clipped = np.clip(data, -1, 1)
        return np.asarray(clipped.T @ clipped / len(clipped))

    def one_factor(_right: Any, change: RankOneChange, rowcov: Covariance, colcov: Covariance) -> Distance:
        sides = [max_quadratic(cov.whitening, change.halfwidths).value for cov in (rowcov, colcov)]
        return Distance(math.sqrt(sides[0] * sides[1]) / change.records, 0.0)

    query = Query((2, 2), RankOneChange(np.ones(2), 4), 1.0, second, relative_error=1e-14)
    audit = partial(_attack, query, allocation=shares([0.8, 0.2]), bounds=BOX, starts=3)
    return _mistake(RankOneChange, audit, distance=one_factor)


def _wrong_squares(**changed: Callable[[Any], Any]) -> bool:
    """Squares with other parameters, and the distance of noise without squares."""

    def free(right: Any, change: RankOneChange, side: Covariance) -> Any:
        squares = right(change, side)
        return replace(squares, **{name: alter(getattr(squares, name)) for name, alter in changed.items()})

    def plain(_right: Any, change: RankOneChange, side: Covariance, _structure: Any) -> Distance:
        return change.distance(side, side)

    audit = partial(_attack, SecondMoment(BOX, 4), starts=3)
    return _mistake(RankOneChange, audit, free_structure=free, structured_distance=plain)


def _attack_kernel(alter: Callable[[GramMatrix, KernelRowChange], KernelRowChange]) -> bool:
    points = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0], [0.0, 0.0]])
    query = GramMatrix(BOX, 2, points=points, bandwidth=0.5)
    assert isinstance(query.sensitivity, KernelRowChange)
    return _attack(query, change=alter(query, query.sensitivity), starts=3, allocation="kernel")


def _subtracted() -> bool:
    """Noise of covariance ``M - l I``, as if it had at least the covariance M of the ellipsoid of changes."""
    less = 0.8

    def subtract(query: GramMatrix, honest: KernelRowChange) -> KernelRowChange:
        values, vectors = np.linalg.eigh(honest.ellipsoid)
        query.__dict__["own_covariance"] = Covariance(values - less, vectors)
        return honest

    def above_points(_right: Any, change: KernelRowChange, _rowcov: Covariance, colcov: Covariance) -> Distance:
        scale = float(colcov.variances.max()) / (float(np.linalg.eigvalsh(change.ellipsoid)[-1]) - less)
        return Distance(1 / math.sqrt(scale), 0.0)

    return _mistake(KernelRowChange, partial(_attack_kernel, subtract), distance=above_points)


# Graphs: edges and nodes that are taken to change less than they do.


class _FirstEdges(Adjacency):
    """Keeps an edge if it is among the first of both of its nodes: one node moves edges of all others."""

    def evaluate(self, data: Any, *, clip: bool, missing: str) -> Floats:
        kept = np.cumsum(np.asarray(data) > 0, axis=1) <= float(self.max_degree or 0)
        return np.asarray(data, np.float64) * (kept & kept.T)


def _own_edge(_right: Any, change: EdgeChange, side: Covariance, structure: Any) -> Distance:
    """As if an edge moved its own coordinate only, and not those of edges that share a node."""
    laplacian = np.zeros((side.size, side.size))
    laplacian[:2, :2] = [[1.0, -1.0], [-1.0, 1.0]]
    own = structure.whiten(MatrixGaussian(side, side), laplacian)[0] * change.weight
    return Distance(float(own), float(own))


# Tables: coordinates, indicators and groups that are taken to change less than they do.


def _attack_table(query: TableMoments | None = None, **wrong: Callable[..., Any]) -> bool:
    return _mistake(TableChange, partial(_attack, query or TableMoments(_TABLE, 4, ("g",)), starts=3), **wrong)


def _mistaken_structure(alter: Callable[..., Any], query: TableMoments | None = None, **wrong: Any) -> bool:
    """With the distance of noise of another structure: `alter` takes the change, the side and the right structure."""
    return _attack_table(query, structured_distance=lambda right, *given: right(*given[:2], alter(*given)), **wrong)


def _short_coordinates(kind: str, factor: float) -> bool:
    """With coordinates of one kind taken as shorter than they are."""

    def shorten(change: TableChange, _side: Covariance, structure: Any) -> Any:
        scales = structure.scales.copy()
        scales[change.layout.of_kind(kind)] *= factor
        return replace(structure, scales=scales)

    return _mistaken_structure(shorten)


def _ungrouped_squares() -> bool:
    """Squares for groups that hold for one matrix only, with the distance of the right ones."""
    right_free = TableChange.free_structure

    def free(right: Any, change: TableChange, side: Covariance) -> Any:
        noise = right(change, side)
        inverse = float((1 / noise.strengths).sum())
        return replace(noise, shift=(1 - math.sqrt(1 - inverse / 2)) / inverse)

    return _mistaken_structure(
        lambda change, side, structure: replace(structure, shift=right_free(change, side).shift), free_structure=free
    )


# Adaptive fits that spend more than they claim, or whose steps depend on private data.


def _fit(data: Floats) -> Any:
    return private_moment(data, BOX, PRIVACY)


def _replay(fit: Callable[[Any], Any] = _fit, **options: Any) -> bool:
    return replay(fit, _DATA, _NEIGHBOUR, **options).broken


def _replay_while(owner: Any, name: str, wrong: Any, person: Person | None = None) -> bool:
    """True if a replay finds a mistake; of people, the first has five rows at a corner, or one at the middle."""
    with patch.object(owner, name, wrong):
        if person is None:
            return _replay()
        ids = np.arange(len(_DATA))
        data = with_ids(np.repeat(_DATA, [5, *[1] * (len(_DATA) - 1)], axis=0), np.append([0] * 4, ids))
        fit = partial(private_moment, bounds=BOX, privacy=PRIVACY, person=person, records=len(_DATA))
        return replay(fit, data, with_ids(_NEIGHBOUR, ids)).broken


def _two_releases(data: Floats) -> None:
    """Two releases from budgets of their own, which nobody adds up."""
    for _ in range(2):
        make_design(Moments(BOX, len(data)), PRIVACY, allocation=isotropic(), share=0.7).release(data)


def _depend_on_data(data: Floats) -> float:
    budget = FitBudget(PRIVACY, Neighbours.REPLACE)
    for _ in range(2 if data[0, 0] > 0.5 else 1):
        budget.release("moment", Moments(BOX, len(data)), data, share=0.5)
    return budget.mu


# From a mistake to a function that makes it, and says whether the audit catches it.
BROKEN: dict[str, Callable[[], bool]] = {
    "half the noise in a design": _half_noise,
    "half the noise drawn": _half_noise_drawn,
    "the same noise for two releases": _reused_noise,
    "add-remove sensitivity for replaced records": lambda: _attack(
        Moments(BOX, 3), change=MomentsChange(BOX.halfwidths, 3, None, Neighbours.ADD_REMOVE)
    ),
    "rows of a person that all count, with the noise of one": lambda: _attack(
        query := SecondMoment(BOX, 4, person=Person("id", rows=3)), change=query.record_change(query.neighbours)
    ),
    "a person who counts once in each part of the data": lambda: _attack(
        _InEachPart(BOX, 4, person=Person("id"), neighbours=Neighbours.ADD_REMOVE)
    ),
    "rows that belong to others when they are read than when they were counted": _changed_rows,
    "rounding left out of the distance": _no_rounding,
    "one record seen twice": lambda: _attack_mean(lambda data: _mean(data) + _mean(data[:1]) / 4),
    "values that are not clipped": lambda: _attack_mean(lambda data: np.asarray(data.mean(axis=0)[None]), bound=1e6),
    "sensitivity for twice as many records": lambda: _attack_mean(_mean, _RADIUS / 2),
    "one record that rescales all others": lambda: _attack_mean(
        lambda data: _mean(data / max(1.0, float(np.abs(data).max())))
    ),
    "floating-point error left out": lambda: _attack_mean(
        lambda data: np.asarray(np.float32(1e5) + (_mean(data) / 3).astype(np.float32), float), _RADIUS / 3, bound=2e5
    ),
    "the factor 2 for two covariances left out": _two_covariances,
    "half the distance between kernel features": lambda: _attack_kernel(
        lambda _, honest: replace(honest, ellipsoid=honest.ellipsoid / 2, halfwidths=np.ones(honest.halfwidths.size))
    ),
    "regularisation of a kernel subtracted": _subtracted,
    "squares that are measured too precisely": lambda: _wrong_squares(
        strengths=lambda precisions: precisions * (4 / 3)
    ),
    "the sum left out of the squares": lambda: _wrong_squares(shift=lambda _: 0.0),
    "half an edge": lambda: _attack(Adjacency(4), change=EdgeChange("adjacency", 0.5)),
    "edges of a node that come, without those that go": lambda: _attack(
        Adjacency(9, unit="node", max_degree=3, neighbours=Neighbours.REPLACE),
        change=NodeChange("adjacency", 9, 1.0, 3.0, replaced=False),
    ),
    "degrees cut in the order of the nodes": lambda: _attack(
        _FirstEdges(12, unit="node", max_degree=1, neighbours=Neighbours.ADD_REMOVE), starts=20
    ),
    "edges that share a node left out": lambda: _mistake(
        EdgeChange, partial(_attack, Laplacian(5)), structured_distance=_own_edge
    ),
    "half the length of a category": lambda: _short_coordinates(LEVEL, 0.5),
    "indicators of missing values left out of the length": lambda: _short_coordinates(OBSERVED, 1e-9),
    "a record that changes its group counted once": lambda: _attack_table(
        structured_distance=lambda right, *arguments: Distance(right(*arguments).value / math.sqrt(2), 0.0)
    ),
    "squares of one matrix for several groups": _ungrouped_squares,
    "one bin of a histogram for the two that a record changes": lambda: _mistaken_structure(
        lambda *given: replace(given[2], bin_precision=given[2].bin_precision / 2), _SHAPES
    ),
    "rows of a person that count whole in histograms": lambda: _mistake(
        TableSum,
        partial(_attack, replace(_SHAPES, person=Person("id"), neighbours=Neighbours.ADD_REMOVE), starts=3),
        _count=lambda right, total, task, z, counts: right(total, task, z, np.minimum(counts, 1)),
    ),
    "half the sensitivity of counts, excesses and moments in a fit": lambda: _replay_while(
        queries, "FrobeniusBall", lambda radius: FrobeniusBall(radius / 2)
    ),
    "a person each of whose rows counts in a fit where people count once": lambda: _replay_while(
        Person, "weights", lambda _, counts, unit: np.full(len(counts), unit), Person("id")
    ),
    "the noise of one row in the counts of a fit where rows of people count": lambda: _replay_while(
        queries, "most_rows", lambda _: 1, Person("id", rows=3)
    ),
    "a charge smaller than what is spent": lambda: _replay(claim=0.9 * PRIVACY.mu),
    "shares of the budget that sum above one": lambda: _replay(_two_releases, claim=PRIVACY),
    "bounds taken from the data": lambda: _replay(
        lambda data: private_moment(data, Bounds(-(most := np.abs(data).max(axis=0) + 1e-9), most), PRIVACY)
    ),
    "a number of iterations that depends on the data": lambda: _replay(_depend_on_data, claim=PRIVACY),
    "a private value in the result": lambda: _replay(lambda data: (_fit(data).mean, data.max()), claim=PRIVACY),
    "a private value in a function that cannot be pickled": lambda: _replay(
        lambda data: partial(lambda largest: largest, data.max()), claim=PRIVACY
    ),
    "private scales that are not": lambda: _replay(
        lambda data: replace(scales := private_scales(data, BOX, PRIVACY), mean=scales.mean + data.max())
    ),
    "noise whose structure depends on the data": lambda: _replay(
        lambda data: make_design(SecondMoment(BOX, 400), PRIVACY, structured=bool(data[0, 0] > 0.5)).release(data)
    ),
}
