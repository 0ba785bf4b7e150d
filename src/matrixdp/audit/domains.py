"""The domains that attacks search: families of data sets that differ in one record, pair, cell, edge or person."""

from abc import ABC, abstractmethod
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


class Domain(ABC):
    """The data sets of a query. Subclass it for records that are not numbers in bounds."""

    @abstractmethod
    def family(self, rng: np.random.Generator) -> Family:
        """A random family of neighbouring data sets."""


@dataclass(frozen=True, eq=False)
class RecordDomain(Domain):
    """Data sets of records that a function draws.

    Parameters
    ----------
    generate : callable
        ``generate(rng)`` returns one record.
    count : int
        Public number of records; for add-remove neighbours, the largest one.
    neighbours : Neighbours
    """

    generate: Callable[[np.random.Generator], Any]
    count: int
    neighbours: Neighbours

    def family(self, rng: np.random.Generator) -> Family:
        """Records of the generator."""
        records = [self.generate(rng) for _ in range(_FIRST)]
        return _insert_record(rng, records, partial(self.generate, rng), self.count, self.neighbours)


def _insert_record(
    rng: Rng,
    records: list[Any],
    other: Callable[[], Any],
    count: int,
    neighbours: Neighbours,
    bounds: Bounds | None = None,
) -> Family:
    """Data sets of at most `count` records, with one of `records` at a random place among others that `other` draws."""
    clique = neighbours is Neighbours.REPLACE
    size = count - 1 if clique else int(rng.integers(0, count))
    others, place = [other() for _ in range(size)], int(rng.integers(0, size + 1))
    table = None if bounds is None else np.array(others, np.float64).reshape(size, bounds.size)

    def build(record: Any) -> Any:
        if table is not None:
            return table if record is None else np.insert(table, place, record, axis=0)
        rows = others if record is None else [*others[:place], record, *others[place:]]
        return np.array(rows) if rows and all(isinstance(row, np.ndarray | float | int) for row in rows) else rows

    return Family(build, records, clique, bounds)


@dataclass(frozen=True, eq=False)
class BoxDomain(Domain):
    """Data sets of numbers in bounds, and beyond them where queries clip.

    Parameters
    ----------
    bounds : Bounds
    count : int
        Public number of records; for add-remove neighbours, the largest one.
    neighbours : Neighbours
    points : float64 array of shape (p, m), optional
        Public points of a kernel: records at, near and opposite to them are tried, too.
    """

    bounds: Bounds
    count: int
    neighbours: Neighbours
    points: Floats | None = None

    def family(self, rng: np.random.Generator) -> Family:
        """Corners, the midpoint, points within and records far outside; the others are alike, random or a cluster."""
        bounds = self.bounds
        middle, half, m = bounds.midpoint, bounds.halfwidths, bounds.size
        signs = [np.array(s, float) for s in product([-1, 1], repeat=m)] if m <= 3 else []
        signs += [rng.choice([-1.0, 1.0], m) for _ in range(_FIRST // 2 - len(signs))]
        signs += [-s for s in signs]
        records = [middle.copy(), *(middle + half * s for s in signs)]
        records += [middle + half * s * (rng.random(m) < 0.5) for s in signs[:4]]
        records += [rng.uniform(bounds.lower, bounds.upper) for _ in range(4)]
        with np.errstate(over="ignore"):
            records += [
                np.nan_to_num(middle + half * s * (f if k else 1)) for f in _FAR for k, s in enumerate(signs[:3])
            ]
        alike = records[int(rng.integers(0, len(records)))]
        centre, spread = rng.uniform(bounds.lower, bounds.upper), half * 10 ** rng.uniform(-2, 0)
        cluster = [*(centre + spread * rng.standard_normal((20, m))), alike]
        within = rng.uniform(bounds.lower, bounds.upper, (8, m))
        pool: Any = ([middle], [alike], records, within, cluster)[rng.integers(5)]
        if self.points is not None:
            records += self._near_points(rng, self.points)
        other = lambda: pool[int(rng.integers(0, len(pool)))]  # noqa: E731
        return _insert_record(rng, records, other, self.count, self.neighbours, bounds)

    def _near_points(self, rng: Rng, points: Floats) -> list[Floats]:
        chosen, bounds = points[rng.permutation(len(points))[:_FIRST]], self.bounds
        steps = bounds.halfwidths * 10.0 ** rng.uniform(-9, 0, (len(chosen), 1)) * rng.normal(size=chosen.shape)
        opposite = np.where(chosen > bounds.midpoint, bounds.lower, bounds.upper)
        return [*chosen, *(chosen + steps), *opposite]


@dataclass(frozen=True, eq=False)
class _Families(Domain):
    """A domain by the function that draws its families."""

    draw: Callable[[Rng], Family]

    def family(self, rng: np.random.Generator) -> Family:
        return self.draw(rng)


def _draw_cells(query: ContingencyTable, count: int, neighbours: Neighbours, rng: Rng) -> Family:
    """One pair of public categories is in any of the cells."""
    cells = list(product(query.rows, query.columns))
    chosen = [cells[i] for i in rng.permutation(len(cells))[:_MOST_CELLS]]
    return _insert_record(rng, chosen, lambda: cells[int(rng.integers(0, len(cells)))], count, neighbours)


def _draw_rows(query: TableMoments, count: int, neighbours: Neighbours, rng: Rng) -> Family:
    """One record has numbers at their bounds, in the middle, within, far outside or missing, and any levels."""

    def draw(*, inside: bool) -> tuple[Any, ...]:
        return tuple(_draw_value(column, rng, inside=inside) for column in query.columns)

    records = [draw(inside=i % 4 == 3) for i in range(_TABLE_RECORDS)]
    pool = [records, records[:1], [draw(inside=True) for _ in range(8)]][int(rng.integers(0, 3))]
    return _insert_record(rng, records, lambda: pool[int(rng.integers(0, len(pool)))], count, neighbours)


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


def _draw_edges(nodes: int, weight: float, rng: Rng) -> Family:
    """Undirected graphs without loops in which one edge has any weight."""
    base = np.triu(rng.uniform(0, weight, (nodes, nodes)) * (rng.random((nodes, nodes)) < 0.5), 1)
    base += base.T
    i, j = rng.choice(nodes, 2, replace=False)

    def build(changed: Any) -> Floats:
        graph: Floats = base.copy()
        graph[i, j] = graph[j, i] = changed
        return graph

    weights = [0.0, weight, weight / 2, -weight, 3 * weight, *rng.uniform(0, weight, 5)]
    return Family(build, weights, clique=True)


def _draw_nodes(nodes: int, weight: float, neighbours: Neighbours, rng: Rng) -> Family:
    """Graphs in which one node has no edges, all of them, some, or edges of any weight; a record is their weights."""
    base = np.triu((rng.random((nodes, nodes)) < rng.random()) * rng.choice([1.0, rng.random()]), 1)
    base = (base + base.T) * weight
    node, ones = int(rng.integers(nodes)), np.full(nodes, weight)

    def build(weights: Any) -> Floats:
        graph: Floats = base.copy()
        graph[node, :] = graph[:, node] = 0.0 if weights is None else weights
        graph[node, node] = 0.0
        return graph

    some = [ones * (rng.random(nodes) < rng.random()) for _ in range(6)]
    rows = [ones, *some, *(ones - row for row in some[:3]), ones * rng.random(nodes), 3 * ones]
    clique = neighbours is Neighbours.REPLACE
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
    rows, person = row.family(rng).records, query.person
    assert person is not None
    size = max(0, most - person.most)
    size = size if query.public_number else int(rng.integers(0, size + 1))
    others = [rows[int(i)] for i in rng.integers(0, len(rows), size)]
    return draw_people(rng, rows, others, clique=query.neighbours is Neighbours.REPLACE)


def _draw_own_rows(row: Domain, records: int, rows: int, rng: Rng) -> Family:
    """Tables of the same rows, in which those of one person are all the same, or from all over the domain of a row."""
    pool = row.family(rng).records
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
    """The domain that attacks search for a query. Register your own with ``find_domain.register(MyQuery)``."""
    raise ParameterError(
        f"bounds or generate must be given for {type(query).__name__}, whose records are not known: "
        "bounds=Bounds(...) for rows of numbers, or generate=function, which returns one record from a Generator."
    )


@find_domain.register(BoundedQuery)
@find_domain.register(TableMoments)
@find_domain.register(ContingencyTable)
def _(query: Any) -> Domain:
    def rows_of(count: int, neighbours: Neighbours) -> Domain:
        if isinstance(query, BoundedQuery):
            return BoxDomain(query.bounds, count, neighbours)
        draw = _draw_cells if isinstance(query, ContingencyTable) else _draw_rows
        return _Families(partial(draw, query, count, neighbours))

    largest = query.public_number or isinstance(query, ContingencyTable)
    most = query.records if largest else 2 * query.records
    if query.person is None:
        return rows_of(most, query.neighbours)
    return _Families(partial(_draw_people_of, query, rows_of(1, Neighbours.REPLACE), most))


@find_domain.register(Identity)
@find_domain.register(GramMatrix)
def _(query: Identity | GramMatrix) -> Domain:
    domain = BoxDomain(query.bounds, query.records, query.neighbours, getattr(query, "points", None))
    if query.person is None:
        return domain
    return _Families(partial(_draw_own_rows, domain, query.records, query.rows_of_person))


@find_domain.register(TracedMoments)
def _(query: TracedMoments) -> Domain:
    return find_domain(query.moments)


@find_domain.register(Adjacency)
@find_domain.register(Laplacian)
def _(query: Adjacency | Laplacian) -> Domain:
    if query.unit == "node":
        return _Families(partial(_draw_nodes, query.nodes, query.weight, query.neighbours))
    return _Families(partial(_draw_edges, query.nodes, query.weight))
