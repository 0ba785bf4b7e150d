"""The data sets that attacks search: families that differ in one record, pair, cell, edge or person.

A domain is a function that draws a random `Family`. `find_domain` has the domain of each query.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, singledispatch
from itertools import product
from typing import Any

import numpy as np

from matrixdp.adaptive.queries import TracedMoments
from matrixdp.domain import Bounds, Number, YesNo
from matrixdp.errors import ParameterError
from matrixdp.privacy import Neighbours
from matrixdp.queries import Adjacency, ContingencyTable, GramMatrix, Identity, Laplacian, MatrixQuery, TableMoments
from matrixdp.queries.base import BoundedQuery
from matrixdp.records import with_ids
from matrixdp.types import Floats

_FIRST = 24  # records of a family to begin with
_MOST_CELLS = 200
_TABLE_RECORDS = 64  # of a family
_FAR = (1e3, 1e300)  # halfwidths beyond the bounds: clipping must make them harmless
_ROWS = (1, 1, 2, 7, 100, 1000)  # of one person
_PEOPLE = 40  # that are tried

Rng = np.random.Generator


@dataclass(frozen=True, eq=False)
class Family:
    """Data sets that are equal but for one record.

    Attributes
    ----------
    build : callable
        From a record to the data set with it; from None to the data set without it.
    records : list
        Records to begin with.
    clique : bool
        Whether any two of the data sets are neighbours; otherwise each is one of the data set without the record.
    bounds : Bounds or None
        Where records of shape (m,) may move; None for records that cannot be varied.
    """

    build: Callable[[Any], Any]
    records: list[Any]
    clique: bool
    bounds: Bounds | None = None


Domain = Callable[[Rng], Family]


def _insert_record(
    records: list[Any], pool: Any, count: int, neighbours: Neighbours, rng: Rng, bounds: Bounds | None = None
) -> Family:
    """Data sets of at most `count` records, with one of `records` at a random place among others of the `pool`."""
    clique = neighbours is Neighbours.REPLACE
    size = count - 1 if clique else int(rng.integers(0, count))
    others = [pool[int(rng.integers(0, len(pool)))] for _ in range(size)]
    place = int(rng.integers(0, size + 1))
    table = None if bounds is None else np.array(others, np.float64).reshape(size, bounds.size)

    def build(record: Any) -> Any:
        if table is not None:
            return table if record is None else np.insert(table, place, record, axis=0)
        rows = others if record is None else [*others[:place], record, *others[place:]]
        return np.array(rows) if rows and all(isinstance(row, np.ndarray | float | int) for row in rows) else rows

    return Family(build, records, clique, bounds)


def draw_generated(generate: Callable[[Rng], Any], count: int, neighbours: Neighbours, rng: Rng) -> Family:
    """Records that a function draws; `count` is their public number or, if it is private, the largest one."""
    records = [generate(rng) for _ in range(_FIRST)]
    return _insert_record(records, records, count, neighbours, rng)


def draw_box(bounds: Bounds, count: int, neighbours: Neighbours, rng: Rng, points: Floats | None = None) -> Family:
    """Corners, the midpoint, points within and records far outside, which queries clip; others are alike or a cluster.

    Records at, near and opposite to the public `points` of a kernel, of shape (p, m), are tried, too.
    """
    middle, half, m = bounds.midpoint, bounds.halfwidths, bounds.size
    signs = [np.array(s, float) for s in product([-1, 1], repeat=m)] if m <= 3 else []
    signs += [rng.choice([-1.0, 1.0], m) for _ in range(_FIRST // 2 - len(signs))]
    signs += [-s for s in signs]
    records = [middle.copy(), *(middle + half * s for s in signs)]
    records += [middle + half * s * (rng.random(m) < 0.5) for s in signs[:4]]
    records += [rng.uniform(bounds.lower, bounds.upper) for _ in range(4)]
    with np.errstate(over="ignore"):
        records += [np.nan_to_num(middle + half * s * (f if k else 1)) for f in _FAR for k, s in enumerate(signs[:3])]
    alike = records[int(rng.integers(0, len(records)))]
    centre, spread = rng.uniform(bounds.lower, bounds.upper), half * 10 ** rng.uniform(-2, 0)
    cluster = [*(centre + spread * rng.standard_normal((20, m))), alike]
    within = rng.uniform(bounds.lower, bounds.upper, (8, m))
    pool: Any = ([middle], [alike], records, within, cluster)[rng.integers(5)]
    if points is not None:
        chosen = points[rng.permutation(len(points))[:_FIRST]]
        steps = half * 10.0 ** rng.uniform(-9, 0, (len(chosen), 1)) * rng.normal(size=chosen.shape)
        records += [*chosen, *(chosen + steps), *np.where(chosen > middle, bounds.lower, bounds.upper)]
    return _insert_record(records, pool, count, neighbours, rng, bounds)


def _draw_cells(query: ContingencyTable, count: int, neighbours: Neighbours, rng: Rng) -> Family:
    """One pair of public categories is in any of the cells."""
    cells = list(product(query.rows, query.columns))
    chosen = [cells[i] for i in rng.permutation(len(cells))[:_MOST_CELLS]]
    return _insert_record(chosen, cells, count, neighbours, rng)


def _draw_rows(query: TableMoments, count: int, neighbours: Neighbours, rng: Rng) -> Family:
    """One record has numbers at their bounds, in the middle, within, far outside or missing, and any levels."""

    def draw(*, inside: bool) -> tuple[Any, ...]:
        return tuple(_draw_value(column, rng, inside=inside) for column in query.columns)

    records = [draw(inside=i % 4 == 3) for i in range(_TABLE_RECORDS)]
    pool = [records, records[:1], [draw(inside=True) for _ in range(8)]][int(rng.integers(0, 3))]
    return _insert_record(records, pool, count, neighbours, rng)


def _draw_value(column: Any, rng: Rng, *, inside: bool) -> Any:
    if column.missing and rng.random() < 0.2:
        return None
    if isinstance(column, Number):
        middle = column.lower + (column.upper - column.lower) / 2
        if inside:
            return float(rng.uniform(column.lower, column.upper))
        ends = [column.lower, column.upper, column.lower, column.upper, middle]
        far = [-1e300, 1e300, float("inf") if column.missing else column.upper]
        return [*ends, *far][int(rng.integers(0, 8))]
    if isinstance(column, YesNo):
        return bool(rng.integers(0, 2))
    levels = [*column.levels, *(["none of them"] if column.other else [])]
    return levels[int(rng.integers(0, len(levels)))]


def _draw_graphs(query: Adjacency | Laplacian, rng: Rng) -> Family:
    """Undirected graphs without loops: one edge has any weight, or one node none, all or some edges, of any weight."""
    nodes, weight, of_nodes = query.nodes, query.weight, query.unit == "node"
    size: Any = rng.choice([1.0, rng.random()]) * weight if of_nodes else rng.uniform(0, weight, (nodes, nodes))
    base = np.triu((rng.random((nodes, nodes)) < (rng.random() if of_nodes else 0.5)) * size, 1)
    base += base.T
    i, j = rng.choice(nodes, 2, replace=False)

    def build(changed: Any) -> Floats:
        graph: Floats = base.copy()
        place: Any = (i, slice(None)) if of_nodes else (i, j)
        graph[place] = graph.T[place] = 0.0 if changed is None else changed
        np.fill_diagonal(graph, 0.0)
        return graph

    if not of_nodes:
        weights = [0.0, weight, weight / 2, -weight, 3 * weight, *rng.uniform(0, weight, 5)]
        return Family(build, weights, clique=True)
    ones = np.full(nodes, weight)
    some = [ones * (rng.random(nodes) < rng.random()) for _ in range(6)]
    rows = [ones, *some, *(ones - row for row in some[:3]), ones * rng.random(nodes), 3 * ones]
    clique = query.neighbours is Neighbours.REPLACE
    return Family(build, [*rows, 0 * ones] if clique else rows, clique)


def draw_people(rng: Rng, rows: Sequence[Any], others: Sequence[Any], *, clique: bool, twice: float = 0.0) -> Family:
    """Data sets of people: one has one of `rows` or many, alike or different; the others have one row each, or two.

    A record of the family is the list of a person's rows; `twice` is the probability of a second row.
    """
    people = [[row] for row in rows[:_PEOPLE]]
    while len(people) < 2 * _PEOPLE:
        many, distinct = int(rng.choice(_ROWS)), int(rng.choice([1, 2, 100]))
        chosen = [rows[int(i)] for i in rng.integers(0, len(rows), min(many, distinct))]
        people.append([chosen[i % len(chosen)] for i in range(many)])
    fixed = [[row] * (1 + (rng.random() < twice)) for row in others]

    def build(person: list[Any] | None) -> Any:
        everybody = [*fixed, *([] if person is None else [person])]
        data = [row for one in everybody for row in one]
        ids = [number for number, one in enumerate(everybody) for _ in one]
        order = np.random.default_rng(len(data)).permutation(len(data))
        mixed: Any = [data[i] for i in order]
        if isinstance(rows[0], np.ndarray):
            mixed = np.array(mixed).reshape(len(mixed), -1 if mixed else rows[0].size)
        return with_ids(mixed, [ids[i] for i in order])

    return Family(build, people, clique)


def _draw_people_of(query: MatrixQuery, row: Domain, most: int, rng: Rng) -> Family:
    """People for a query that counts at most `most` of them, or of their rows; `row` is the domain of one row."""
    rows, person = row(rng).records, query.person
    assert person is not None
    size = max(0, most - person.most)
    size = size if query.public_number else int(rng.integers(0, size + 1))
    others = [rows[int(i)] for i in rng.integers(0, len(rows), size)]
    return draw_people(rng, rows, others, clique=query.neighbours is Neighbours.REPLACE)


def _draw_own_rows(row: Domain, records: int, rows: int, rng: Rng) -> Family:
    """Tables of the same rows, in which those of one person are all the same, or from all over the domain of a row."""
    pool = row(rng).records
    table = np.array([pool[int(i)] for i in rng.integers(0, len(pool), records)])
    mine, ids = rng.choice(records, rows, replace=False), np.arange(records)
    ids[mine] = records

    def build(values: Any) -> Any:
        filled = table.copy()
        filled[mine] = values
        return with_ids(filled, ids)

    people = [[one] * rows for one in pool[:_PEOPLE]]
    people += [[pool[int(i)] for i in rng.integers(0, len(pool), rows)] for _ in range(_PEOPLE // 2)]
    return Family(build, [np.array(values) for values in people], clique=True)


@singledispatch
def find_domain(query: MatrixQuery) -> Domain:
    """The function that draws families of a query's data sets; ``find_domain.register(MyQuery)`` adds your own."""
    raise ParameterError(
        f"bounds or generate must be given for {type(query).__name__}, whose records are not known: "
        "bounds=Bounds(...) for rows of numbers, or generate=function, which returns one record from a Generator."
    )


@find_domain.register(BoundedQuery)
@find_domain.register(TableMoments)
@find_domain.register(ContingencyTable)
def _(query: Any) -> Domain:
    draw: Callable[..., Family] = partial(_draw_rows, query)
    if isinstance(query, BoundedQuery):
        draw = partial(draw_box, query.bounds)
    elif isinstance(query, ContingencyTable):
        draw = partial(_draw_cells, query)
    most = query.records * (1 if query.public_number or isinstance(query, ContingencyTable) else 2)
    if query.person is None:
        return partial(draw, most, query.neighbours)
    return partial(_draw_people_of, query, partial(draw, 1, Neighbours.REPLACE), most)


@find_domain.register(Identity)
@find_domain.register(GramMatrix)
def _(query: Identity | GramMatrix) -> Domain:
    points = getattr(query, "points", None)
    domain = partial(draw_box, query.bounds, query.records, query.neighbours, points=points)
    return domain if query.person is None else partial(_draw_own_rows, domain, query.records, query.rows_of_person)


@find_domain.register(TracedMoments)
def _(query: TracedMoments) -> Domain:
    return find_domain(query.moments)


@find_domain.register(Adjacency)
@find_domain.register(Laplacian)
def _(query: Adjacency | Laplacian) -> Domain:
    return partial(_draw_graphs, query)
