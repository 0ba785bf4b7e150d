"""A campaign: attacks on random designs of every query, and replays of random fits of every estimator."""

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count, cycle
from typing import Any

import numpy as np

from matrixdp import estimators, queries
from matrixdp.adaptive import private_moment, private_scales
from matrixdp.adaptive.queries import TracedMoments
from matrixdp.adaptive.settings import SETTINGS
from matrixdp.audit.attack import Attack, attack
from matrixdp.audit.domains import Domain, Rng, draw_box, find_domain
from matrixdp.audit.estimators import FitCase, draw_count, draw_fit, draw_pair
from matrixdp.audit.replay import Replay, Tally, replay
from matrixdp.design import Allocation, Design, binary, isotropic, make_design, optimal, shares, uniform
from matrixdp.design.theorem2 import CALIBRATIONS
from matrixdp.domain import Bounds, Category, Columns, Number, Person, YesNo
from matrixdp.errors import ParameterError
from matrixdp.privacy import Neighbours, Privacy
from matrixdp.queries import ContingencyTable, Identity, MatrixQuery, Moments, SecondMoment, TableMoments
from matrixdp.release.result import principal_directions
from matrixdp.sensitivity import FrobeniusBall
from matrixdp.types import Floats

ESTIMATORS = {
    name: getattr(estimators, name)
    for name in estimators.__all__
    if name.startswith("Private") and name != "PrivateEstimator"
}
FITS = (*ESTIMATORS, "private_moment", "private_scales", "principal_directions")


def random_bounds(rng: Rng, *, ball: bool = False) -> Bounds:
    """Bounds of one to five features, of widths from 1e-6 to 1e6, with a radius if asked for."""
    m = int(rng.integers(1, 6))
    half = 10 ** (rng.uniform(-6, 6) + rng.uniform(-1, 1, m))
    middle = rng.normal(size=m) * half * float(rng.choice([0, 1, 100]))
    radius = float(rng.uniform(0.2, 1) * np.linalg.norm(half)) if ball else None
    return Bounds(middle - half, middle + half, radius=radius)


def random_neighbours(rng: Rng) -> Neighbours:
    """Either kind of neighbours."""
    return Neighbours(str(rng.choice(list(Neighbours))))


def _records(rng: Rng) -> int:
    return int(rng.integers(1, 7))


def _labels(rng: Rng, prefix: str) -> tuple[str, ...]:
    return tuple(f"{prefix}{i}" for i in range(int(rng.integers(2, 6))))


def _make(
    kind: Callable[..., MatrixQuery], rng: Rng, *arguments: Any, people: bool = False, **options: Any
) -> MatrixQuery:
    """A query of few records with either kind of neighbours, or of people who count once, or whose rows count."""
    rows = int(rng.integers(1, 5)) if people and rng.random() < 0.5 else None
    if people:
        options["person"] = Person("id", rows)
    return kind(*arguments, _records(rng) + (rows or 0), neighbours=random_neighbours(rng), **options)


def _clipped_mean(rng: Rng) -> tuple[MatrixQuery, Domain]:
    """A function of the user's own: the mean of clipped records."""
    bounds, records = random_bounds(rng), _records(rng)

    def mean(data: Any) -> Floats:
        return np.asarray(bounds.centre(data).sum(axis=0)[None] / records)

    change = FrobeniusBall(2 * float(np.linalg.norm(bounds.halfwidths)) / records)
    query = queries.Query((1, bounds.size), change, bounds.halfwidths[None] * 1.001, mean, relative_error=1e-13)
    return query, partial(draw_box, bounds, records, Neighbours.REPLACE)


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
    return queries.GramMatrix(bounds, 1 + _records(rng), public, kernel=kernel, bandwidth=10 ** rng.uniform(-0.5, 1))


def _table(rng: Rng, *, groups: bool, people: bool = False, shapes: bool = False, bins: bool = False) -> MatrixQuery:
    """One to four columns of any kinds, with bounds of widths from 1e-59 to 1e57, and perhaps one with steps."""
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
    if shapes or bins:  # with a number that has steps
        steps = int(rng.choice([1, 2, 7, 64, 100]))
        columns.append(Number("n", -1, steps - 1, missing=bool(rng.random() < 0.4), step=1))
    names = [one.name for one in columns]
    by = tuple(f"g{i}" for i in range(int(rng.integers(1, 3)) if groups else 0))
    columns += [Category(name, _labels(rng, "v")) for name in by]
    importance = {name: 10 ** rng.uniform(-6, 6) for name in names if rng.random() < 0.3}
    share = float(rng.uniform(0.01, 0.5)) if rng.random() < 0.7 else None
    options: dict[str, Any] = {"by": by, "mean_share": share, "importance": tuple(importance.items())}
    options["shapes"] = float(rng.uniform(0.01, 0.9)) if shapes else 0.0
    options["bins"] = int(rng.choice([2, 3, 8])) if bins else 0
    return _make(TableMoments, rng, Columns(tuple(columns)), people=people, **options)


def _graph(kind: type[queries.Adjacency | queries.Laplacian], rng: Rng, *, of_nodes: bool = False) -> MatrixQuery:
    nodes, weight = int(rng.integers(2, 12 if of_nodes else 8)), 10 ** rng.uniform(-6, 6)
    if not of_nodes:
        return kind(nodes, weight)
    degree = weight * rng.choice([float(rng.integers(1, nodes + 1)), rng.uniform(1, nodes)])
    return kind(nodes, weight, unit="node", max_degree=degree, neighbours=random_neighbours(rng))


QUERIES: dict[str, Callable[[Rng], MatrixQuery | tuple[MatrixQuery, Domain]]] = {
    "Moments": lambda rng: _make(Moments, rng, random_bounds(rng), mean_share=float(rng.uniform(0.01, 0.5))),
    "Moments, ball": lambda rng: _make(Moments, rng, random_bounds(rng, ball=True)),
    "SecondMoment": lambda rng: _make(SecondMoment, rng, random_bounds(rng)),
    "SecondMoment, ball": lambda rng: _make(SecondMoment, rng, random_bounds(rng, ball=True)),
    "SecondMoment, centre": lambda rng: _make(SecondMoment, rng, b := random_bounds(rng), centre=b.lower),
    "Identity": lambda rng: Identity(random_bounds(rng), _records(rng)),
    "Identity, ball": lambda rng: Identity(random_bounds(rng, ball=True), _records(rng)),
    "GramMatrix, points": partial(_gram, points=True),
    "GramMatrix, records": partial(_gram, points=False),
    "Adjacency": partial(_graph, queries.Adjacency),
    "Laplacian": partial(_graph, queries.Laplacian),
    "Adjacency, nodes": partial(_graph, queries.Adjacency, of_nodes=True),
    "Laplacian, nodes": partial(_graph, queries.Laplacian, of_nodes=True),
    "ContingencyTable": lambda rng: _make(ContingencyTable, rng, _labels(rng, "a"), _labels(rng, "b")),
    "transitions": lambda rng: _make(ContingencyTable, rng, *2 * [_labels(rng, "s")]),
    "TableMoments": lambda rng: _table(rng, groups=False),
    "TableMoments, groups": lambda rng: _table(rng, groups=True),
    "Moments, people": lambda rng: _make(Moments, rng, random_bounds(rng, ball=bool(rng.integers(0, 2))), people=True),
    "SecondMoment, people": lambda rng: _make(SecondMoment, rng, random_bounds(rng), people=True),
    "ContingencyTable, people": lambda rng: _make(
        ContingencyTable, rng, _labels(rng, "a"), _labels(rng, "b"), people=True
    ),
    "TableMoments, people": lambda rng: _table(rng, groups=bool(rng.integers(0, 2)), people=True),
    "TableMoments, shapes": lambda rng: _table(rng, groups=bool(rng.integers(0, 2)), shapes=True),
    "TableMoments, shapes, people": lambda rng: _table(rng, groups=False, people=True, shapes=True),
    "TableMoments, bins": lambda rng: _table(rng, groups=bool(rng.integers(0, 2)), bins=True),
    "TableMoments, bins, people": lambda rng: _table(
        rng, groups=bool(rng.integers(0, 2)), people=True, shapes=bool(rng.integers(0, 2)), bins=True
    ),
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


def random_fit(name: str, rng: Rng) -> FitCase:
    """A fit of `FITS` with a random budget, on random neighbouring data sets."""
    epsilon, delta = float(10 ** rng.uniform(-1, 1.5)), float(10 ** rng.uniform(-9, -3))
    neighbours = Neighbours.REPLACE if name == "principal_directions" else random_neighbours(rng)
    public = None if neighbours is Neighbours.REPLACE else int(rng.integers(1, 150))
    options: dict[str, Any] = {"neighbours": str(neighbours), "records": public}
    if name in ESTIMATORS:
        options |= {"epsilon": epsilon, "delta": delta, "bounds": (-1, 1)}
        if "target_bounds" in ESTIMATORS[name]().get_params():
            options["target_bounds"] = (-1, 1)
        if name == "PrivateKernelRidge":
            options["n_components"] = 5
        return draw_fit(ESTIMATORS[name](**options), rng)
    size, count, people = int(rng.integers(1, 5)), draw_count(rng, public), bool(rng.random() < 0.5)
    bounds, privacy = Bounds([-1] * size, [1] * size), Privacy(epsilon, delta)
    pair = draw_pair(rng, bounds, neighbours, count, people=people)
    if name == "private_moment":
        options["aim"] = str(rng.choice([*SETTINGS]))
        options["targets"] = min(1, size - 1)
    if name == "principal_directions":
        options = {"records": count}
    if people:
        rows = 0 if name == "private_scales" else int(rng.choice([0, 0, 1, 3, 20]))
        options["person"] = Person("person", rows=rows or None)
        if rows:
            most = 2 * count + rows  # that count
            options["records"] = int(rng.integers(most // 2 + 1, 2 * most))
    fit: Any = {one.__name__: one for one in (private_moment, private_scales, principal_directions)}[name]
    return lambda data: fit(data, bounds, privacy, **options), *pair


def attack_designs(*, pairs: int, seconds: float = math.inf, seed: int = 0, starts: int = 4) -> dict[str, Tally]:
    """Attack random designs, each query in turn, until `pairs` pairs were compared or time is up."""

    def audit(name: str, number: int) -> Attack:
        design, domain = random_design(name, np.random.default_rng(number))
        return attack(design, domain=domain, starts=starts, seed=number)

    return _run(tuple(QUERIES), audit, "pairs", pairs, seconds, seed)


def replay_fits(*, replays: int, seconds: float = math.inf, seed: int = 0) -> dict[str, Tally]:
    """Replay random fits, each kind in turn, until `replays` were run or time is up."""

    def audit(name: str, number: int) -> Replay:
        return replay(*random_fit(name, np.random.default_rng(number)), seed=number)

    return _run(FITS, audit, "audits", replays, seconds, seed)


def _run(
    names: Sequence[str], audit: Callable[[str, int], Attack | Replay], unit: str, most: int, seconds: float, seed: int
) -> dict[str, Tally]:
    """Audit each name in turn, at least once; the audit of number n can be repeated from its seed alone."""
    tallies, end = {name: Tally() for name in names}, time.monotonic() + seconds
    for done, (number, name) in enumerate(zip(count(seed), cycle(names)), 1):
        tallies[name].add(audit(name, number), number)
        enough = sum(getattr(tally, unit) for tally in tallies.values()) >= most
        if done >= len(names) and (enough or time.monotonic() > end):
            break
    return tallies
