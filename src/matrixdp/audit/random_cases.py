"""Random designs of every query and random fits of every estimator, each with data sets to audit it on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from matrixdp.adaptive import private_moment, private_scales
from matrixdp.adaptive.queries import TracedMoments
from matrixdp.audit.domains import BoxDomain, Domain, find_domain, give_rows
from matrixdp.design import Allocation, Design, binary, isotropic, make_design, optimal, shares, uniform
from matrixdp.design.theorem2 import CALIBRATIONS
from matrixdp.domain import Bounds, Category, Columns, Number, Person, YesNo
from matrixdp.errors import ParameterError
from matrixdp.estimators import (
    PrivateCovariance,
    PrivateEstimator,
    PrivateKernelRidge,
    PrivateLinearDiscriminant,
    PrivateLinearRegression,
    PrivatePCA,
    PrivateRidge,
    PrivateScaler,
)
from matrixdp.estimators.inputs import parse_bounds
from matrixdp.privacy import Neighbours, Privacy
from matrixdp.queries import (
    Adjacency,
    ContingencyTable,
    GramMatrix,
    Identity,
    Laplacian,
    MatrixQuery,
    Moments,
    Query,
    SecondMoment,
    TableMoments,
)
from matrixdp.release.directions import principal_directions
from matrixdp.sensitivity import FrobeniusBall
from matrixdp.types import Floats

Rng = np.random.Generator
ESTIMATORS = {
    estimator.__name__: estimator
    for estimator in (
        PrivateCovariance,
        PrivatePCA,
        PrivateScaler,
        PrivateLinearRegression,
        PrivateRidge,
        PrivateKernelRidge,
        PrivateLinearDiscriminant,
    )
}
FITS = (*ESTIMATORS, "private_moment", "private_scales", "principal_directions")


def random_bounds(rng: Rng, *, ball: bool = False) -> Bounds:
    """Bounds of one to five features, of widths from 1e-6 to 1e6, with a radius if asked for."""
    m = int(rng.integers(1, 6))
    half = 10 ** (rng.uniform(-6, 6) + rng.uniform(-1, 1, m))
    middle = rng.normal(size=m) * half * float(rng.choice([0, 1, 100]))
    radius = float(rng.uniform(0.2, 1) * np.linalg.norm(half)) if ball else None
    return Bounds(middle - half, middle + half, radius=radius)


def _records(rng: Rng) -> int:
    return int(rng.integers(1, 7))


def _labels(rng: Rng, prefix: str) -> tuple[str, ...]:
    return tuple(f"{prefix}{i}" for i in range(int(rng.integers(2, 6))))


def _clipped_mean(rng: Rng) -> tuple[MatrixQuery, Domain]:
    """A function of the user's own: the mean of clipped records."""
    bounds, records = random_bounds(rng), _records(rng)

    def mean(data: Any) -> Floats:
        return np.asarray(bounds.centre(data).sum(axis=0)[None] / records)

    radius = 2 * float(np.linalg.norm(bounds.halfwidths)) / records
    query = Query((1, bounds.size), FrobeniusBall(radius), bounds.halfwidths[None] * 1.001, mean, relative_error=1e-13)
    return query, BoxDomain.of(bounds, records, Neighbours.REPLACE)


def _traced_moments(rng: Rng) -> MatrixQuery:
    m, ratio = int(rng.integers(1, 5)), float(rng.uniform(0.05, 1))
    radius = 10 ** rng.uniform(-3, 3)
    bounds = Bounds(np.full(m, -radius), np.full(m, radius), radius=radius)
    return TracedMoments(Moments(bounds, _records(rng), mean_share=ratio / (1 + ratio)), ratio)


def _gram(rng: Rng, *, points: bool) -> MatrixQuery:
    bounds = random_bounds(rng)
    places = rng.uniform(-2, 2, (int(rng.integers(1, 9)), bounds.size)) * float(rng.choice([0.5, 1.0]))
    if rng.random() < 0.3:  # points that are close to each other
        places = np.concatenate([places, places[:1], places[:1] + 10 ** rng.uniform(-12, -1)])
    public = bounds.midpoint + bounds.halfwidths * places if points else None
    kernel = str(rng.choice(["gaussian", "laplacian"]))
    return GramMatrix(bounds, 1 + _records(rng), public, kernel=kernel, bandwidth=10 ** rng.uniform(-0.5, 1))


def random_columns(rng: Rng) -> Columns:
    """One to four columns of any kinds, with bounds of widths from 1e-59 to 1e57."""
    columns: list[Any] = []
    for i in range(int(rng.integers(1, 5))):
        name, missing = f"c{i}", bool(rng.random() < 0.4)
        match int(rng.integers(0, 4)):
            case 0:
                columns.append(YesNo(name, missing=missing))
            case 1:
                levels: Any = _labels(rng, "a") if rng.random() < 0.5 else range(int(rng.integers(1, 5)))
                columns.append(Category(name, levels, other=bool(rng.random() < 0.3), missing=missing))
            case _:
                half, middle = 10 ** rng.uniform(-59, 57), float(rng.choice([0, 1, -100]))
                columns.append(Number(name, half * (middle - 1), half * (middle + 1), missing=missing))
    return Columns(tuple(columns))


def _table(rng: Rng, *, groups: bool) -> TableMoments:
    columns = random_columns(rng)
    by: tuple[str, ...] = ()
    if groups:
        size = int(rng.integers(1, 3))
        by = tuple(f"g{i}" for i in range(size))
        columns = Columns((*columns, *(Category(name, _labels(rng, "v")) for name in by)))
    importance = {name: 10 ** rng.uniform(-6, 6) for name in columns.names if name not in by and rng.random() < 0.3}
    share = float(rng.uniform(0.01, 0.5)) if rng.random() < 0.7 else None
    return TableMoments(
        columns,
        _records(rng),
        by,
        neighbours=random_neighbours(rng),
        mean_share=share,
        importance=tuple(importance.items()),
    )


def _nodes(kind: type[Adjacency | Laplacian], rng: Rng) -> MatrixQuery:
    nodes, weight = int(rng.integers(2, 12)), 10 ** rng.uniform(-6, 6)
    degree = weight * rng.choice([float(rng.integers(1, nodes + 1)), rng.uniform(1, nodes)])
    return kind(nodes, weight, unit="node", max_degree=degree, neighbours=random_neighbours(rng))


def _people(kind: Callable[..., MatrixQuery], rng: Rng, *arguments: Any) -> MatrixQuery:
    """A query on people who count once, or whose rows count."""
    rows = int(rng.integers(1, 5)) if rng.random() < 0.5 else None
    records = _records(rng) if rows is None else rows + _records(rng)
    return kind(*arguments, records, neighbours=random_neighbours(rng), person=Person("id", rows))


def _table_of_people(rng: Rng) -> MatrixQuery:
    table = _table(rng, groups=bool(rng.integers(0, 2)))
    assert isinstance(table, TableMoments)
    rows = int(rng.integers(1, 5)) if rng.random() < 0.5 else None
    return replace(table, records=table.records + (rows or 0), person=Person("id", rows))


def random_neighbours(rng: Rng) -> Neighbours:
    """Either kind of neighbours."""
    return Neighbours(str(rng.choice(list(Neighbours))))


QUERIES: dict[str, Callable[[Rng], MatrixQuery | tuple[MatrixQuery, Domain]]] = {
    "Moments": lambda rng: Moments(
        random_bounds(rng), _records(rng), neighbours=random_neighbours(rng), mean_share=float(rng.uniform(0.01, 0.5))
    ),
    "Moments, ball": lambda rng: Moments(
        random_bounds(rng, ball=True), _records(rng), neighbours=random_neighbours(rng)
    ),
    "SecondMoment": lambda rng: SecondMoment(random_bounds(rng), _records(rng), neighbours=random_neighbours(rng)),
    "SecondMoment, ball": lambda rng: SecondMoment(
        random_bounds(rng, ball=True), _records(rng), neighbours=random_neighbours(rng)
    ),
    "SecondMoment, centre": lambda rng: SecondMoment(
        b := random_bounds(rng), _records(rng), centre=b.lower, neighbours=random_neighbours(rng)
    ),
    "Identity": lambda rng: Identity(random_bounds(rng), _records(rng)),
    "Identity, ball": lambda rng: Identity(random_bounds(rng, ball=True), _records(rng)),
    "GramMatrix, points": lambda rng: _gram(rng, points=True),
    "GramMatrix, records": lambda rng: _gram(rng, points=False),
    "Adjacency": lambda rng: Adjacency(int(rng.integers(2, 8)), 10 ** rng.uniform(-6, 6)),
    "Laplacian": lambda rng: Laplacian(int(rng.integers(2, 8)), 10 ** rng.uniform(-6, 6)),
    "Adjacency, nodes": lambda rng: _nodes(Adjacency, rng),
    "Laplacian, nodes": lambda rng: _nodes(Laplacian, rng),
    "ContingencyTable": lambda rng: ContingencyTable(
        _labels(rng, "a"), _labels(rng, "b"), _records(rng), neighbours=random_neighbours(rng)
    ),
    "transitions": lambda rng: ContingencyTable.transitions(
        _labels(rng, "s"), _records(rng), neighbours=random_neighbours(rng)
    ),
    "TableMoments": lambda rng: _table(rng, groups=False),
    "TableMoments, groups": lambda rng: _table(rng, groups=True),
    "Moments, people": lambda rng: _people(Moments, rng, random_bounds(rng, ball=bool(rng.integers(0, 2)))),
    "SecondMoment, people": lambda rng: _people(SecondMoment, rng, random_bounds(rng)),
    "ContingencyTable, people": lambda rng: _people(ContingencyTable, rng, _labels(rng, "a"), _labels(rng, "b")),
    "TableMoments, people": _table_of_people,
    "Identity, people": lambda rng: Identity(
        random_bounds(rng), _records(rng), person=Person("id", int(rng.integers(1, 5)))
    ),
    "TracedMoments": _traced_moments,
    "Query": _clipped_mean,
}


def random_design(name: str, rng: Rng) -> tuple[Design, Domain]:
    """A design for a query of `QUERIES`, with random privacy, allocation, directions and calibration."""
    while True:
        made = QUERIES[name](rng)
        query, domain = made if isinstance(made, tuple) else (made, find_domain(made))
        k = query.features
        allocation: Allocation | None = [
            None,
            uniform(),
            isotropic(),
            optimal(),
            optimal(10 ** rng.uniform(-2, 2, k)),
            shares(rng.dirichlet(np.ones(k)) * 0.99 + 0.01 / k),
            binary(1, 0.8) if k > 1 else uniform(),
        ][int(rng.integers(0, 7))]
        options: dict[str, Any] = {"allocation": allocation}
        if rng.random() < (0.3 if allocation is not None else 0.1):
            options["directions"] = np.linalg.qr(rng.normal(size=(k, k)))[0]
        if rng.random() < 0.2:
            options["calibration"] = str(rng.choice(list(CALIBRATIONS)))
        privacy = Privacy(10 ** rng.uniform(-2, 1.5), 10 ** rng.uniform(-9, -2))
        try:
            return make_design(query, privacy, **options), domain
        except ParameterError:  # a combination that is not offered
            continue


@dataclass(frozen=True)
class FitCase:
    """A fit, and two neighbouring data sets."""

    fit: Callable[[Floats], Any]
    data: Floats
    neighbour: Floats


def estimator_case(estimator: PrivateEstimator, rng: Rng) -> FitCase:
    """An estimator with its parameters, on random neighbouring data sets within its bounds."""
    options = estimator.get_params(deep=False)
    features = options["bounds"]
    bounds = [features if isinstance(features, Bounds) else parse_bounds(features, int(rng.integers(1, 5)), "bounds")]
    if "target_bounds" in options:
        target = options["target_bounds"]
        bounds.append(target if isinstance(target, Bounds) else parse_bounds(target, 1, "target_bounds"))
    if "classes" in options:  # records have one number more, which decides on their class
        options["classes"] = [0, 1] if options["classes"] is None else options["classes"]
        bounds.append(Bounds([-1.0], [1.0]))
    lower, upper = (np.concatenate([getattr(box, side) for box in bounds]) for side in ("lower", "upper"))
    data, neighbour = _random_data(rng, lower.size, Neighbours.parse(options["neighbours"]), options["records"])
    middle, half, m = (lower + upper) / 2, (upper - lower) / 2, bounds[0].size

    def fit(rows: Floats) -> Any:
        if "classes" in options:
            labels = np.sort(options["classes"])[[0, -1]]
            return type(estimator)(**options).fit(rows[:, :m], labels[(rows[:, m] > 0).astype(int)])
        columns = [rows[:, :m], *([rows[:, m] if rows.shape[1] == m + 1 else rows[:, m:]] if len(bounds) > 1 else [])]
        return type(estimator)(**options).fit(*columns)

    return FitCase(fit, middle + half * data, middle + half * neighbour)


def random_fit(name: str, rng: Rng) -> FitCase:
    """A fit of `FITS` with a random budget, on random neighbouring data sets."""
    epsilon, delta = float(10 ** rng.uniform(-1, 1.5)), float(10 ** rng.uniform(-9, -2))
    neighbours = Neighbours.REPLACE if name == "principal_directions" else random_neighbours(rng)
    public = None if neighbours is Neighbours.REPLACE else int(rng.integers(1, 150))
    options: dict[str, Any] = {"neighbours": str(neighbours), "records": public}
    if name in ESTIMATORS:
        options |= {"epsilon": epsilon, "delta": delta, "bounds": (-1, 1)}
        if "target_bounds" in ESTIMATORS[name]().get_params():
            options["target_bounds"] = (-1, 1)
        if name == "PrivateKernelRidge":
            options["n_components"] = 5
        return estimator_case(ESTIMATORS[name](**options), rng)
    size, privacy = int(rng.integers(1, 5)), Privacy(epsilon, delta)
    bounds = Bounds([-1] * size, [1] * size)
    pair = _random_data(rng, size, neighbours, public)
    function: Any = {"private_moment": private_moment, "private_scales": private_scales}.get(name, _directions)
    if name == "principal_directions":
        options = {"records": len(pair[0])}
    if name == "private_moment":
        options["aim"] = str(rng.choice(["covariance", "correlation", "components", "regression"]))
        options["targets"] = min(1, size - 1)
    if rng.random() < 0.5:
        pair, options = _give_people(rng, pair, options, once=name == "private_scales")
    return FitCase(lambda data: _spent(function(data, bounds, privacy, **options)), *pair)


def _directions(*arguments: Any, **options: Any) -> Any:
    return principal_directions(*arguments, **options).release


def _give_people(rng: Rng, pair: tuple[Floats, Floats], options: Any, *, once: bool) -> tuple[Any, dict[str, Any]]:
    """Data of people with several rows, and options for a fit in which each person, or each row, counts once."""
    rows = 0 if once else int(rng.choice([0, 0, 1, 3, 20]))
    if not rows:
        return give_rows(rng, *pair), {**options, "person": "person"}
    most = 2 * len(pair[0]) + rows  # that count
    records = int(rng.integers(most // 2 + 1, 2 * most))
    return give_rows(rng, *pair), {**options, "person": Person("person", rows=rows), "records": records}


def _spent(result: Any) -> Any:
    """The object that names the guarantee of a fit: its result, or its budget."""
    return getattr(result, "spending", result)


def _random_data(rng: Rng, size: int, neighbours: Neighbours, public: int | None) -> tuple[Floats, Floats]:
    """Two neighbouring data sets in [-1, 1]^size, and beyond."""
    rows = int(rng.integers(2, 150 if public is None else 2 * public + 1))
    data = rng.normal(0, 10 ** rng.uniform(-2, 0), (rows, size)) + rng.uniform(-0.5, 0.5, size) * (rng.random() < 0.5)
    odd = rng.random(rows) < rng.choice([0.0, 0.1, 1.0])
    for i in {0, *np.flatnonzero(odd).tolist()}:
        data[i] = _random_record(rng, size)
    if neighbours is Neighbours.ADD_REMOVE:
        return data, data[1:]
    return data, np.vstack([_random_record(rng, size), data[1:]])


def _random_record(rng: Rng, size: int) -> Floats:
    """A corner, the midpoint, a point within or one far outside."""
    kind = rng.integers(0, 5)
    corner = rng.choice([-1.0, 1.0], size)
    return np.asarray([corner, corner, np.zeros(size), rng.uniform(-1, 1, size), 1e6 * corner][kind])
