"""The domains that attacks search: families of data sets that differ in one record, pair, cell, edge or person."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import singledispatch
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.adaptive.queries import TracedMoments
from matrixdp.domain import Bounds, Columns, Number, YesNo
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
        return self._family(rng, [self.generate(rng) for _ in range(_FIRST)], lambda: self.generate(rng), None)

    def _family(
        self, rng: np.random.Generator, records: list[Any], other: Callable[[], Any], bounds: Bounds | None
    ) -> Family:
        clique = self.neighbours is Neighbours.REPLACE
        size = self.count - 1 if clique else int(rng.integers(0, self.count))
        others = [other() for _ in range(size)]
        place = int(rng.integers(0, size + 1))
        table = None if bounds is None else np.array(others, np.float64).reshape(size, bounds.size)

        def build(record: Any) -> Any:
            if table is not None:
                return table if record is None else np.insert(table, place, record, axis=0)
            rows = others if record is None else [*others[:place], record, *others[place:]]
            arrays = rows and all(isinstance(row, np.ndarray | float | int) for row in rows)
            return np.array(rows) if arrays else rows

        return Family(build, records, clique, bounds)


@dataclass(frozen=True, eq=False)
class BoxDomain(RecordDomain):
    """Data sets of numbers in bounds, and beyond them where queries clip.

    Parameters
    ----------
    bounds : Bounds
    """

    bounds: Bounds

    @classmethod
    def of(cls, bounds: Bounds, count: int, neighbours: Neighbours) -> BoxDomain:
        """The domain of `count` records in bounds."""
        return cls(lambda rng: rng.uniform(bounds.lower, bounds.upper), count, neighbours, bounds)

    def family(self, rng: np.random.Generator) -> Family:
        """Corners, the midpoint, points within and records far outside; the others are alike or random."""
        bounds = self.bounds
        middle, half, m = bounds.midpoint, bounds.halfwidths, bounds.size
        signs = [np.array(s, float) for s in product([-1, 1], repeat=m)] if m <= 3 else []
        signs += [rng.choice([-1.0, 1.0], m) for _ in range(_FIRST // 2 - len(signs))]
        signs += [-s for s in signs]
        records = [middle.copy(), *(middle + half * s for s in signs)]
        records += [middle + half * s * (rng.random(m) < 0.5) for s in signs[:4]]
        records += [self.generate(rng) for _ in range(4)]
        with np.errstate(over="ignore"):
            records += [
                np.nan_to_num(middle + half * s * (f if k else 1)) for f in _FAR for k, s in enumerate(signs[:3])
            ]
        kind = rng.integers(0, 4)
        alike = records[int(rng.integers(0, len(records)))]
        pool = [[middle], [alike], records, [self.generate(rng) for _ in range(8)]][kind]
        return self._family(rng, records, lambda: pool[int(rng.integers(0, len(pool)))], bounds)


@dataclass(frozen=True, eq=False)
class KernelDomain(BoxDomain):
    """Data sets of numbers in bounds, with records at, close to and opposite to public points."""

    points: Floats = field(kw_only=True)

    def family(self, rng: np.random.Generator) -> Family:
        """Those of a box, and records near to points and far from them."""
        family = super().family(rng)
        bounds = self.bounds
        points = self.points[rng.permutation(len(self.points))[:_FIRST]]
        steps = bounds.halfwidths * 10.0 ** rng.uniform(-9, 0, (len(points), 1)) * rng.normal(size=points.shape)
        opposite = np.where(points > bounds.midpoint, bounds.lower, bounds.upper)
        family.records.extend([*points, *(points + steps), *opposite])
        return family


@dataclass(frozen=True, eq=False)
class CellDomain(Domain):
    """Data sets of pairs of public categories."""

    rows: Sequence[Any]
    columns: Sequence[Any]
    count: int
    neighbours: Neighbours

    def family(self, rng: np.random.Generator) -> Family:
        """One pair is in any of the cells."""
        cells = list(product(self.rows, self.columns))
        chosen = [cells[i] for i in rng.permutation(len(cells))[:_MOST_CELLS]]
        drawn = RecordDomain(lambda rng: cells[int(rng.integers(0, len(cells)))], self.count, self.neighbours)
        return drawn._family(rng, chosen, lambda: drawn.generate(rng), None)


@dataclass(frozen=True, eq=False)
class TableDomain(Domain):
    """Data sets of records with numbers, categories and missing values, as tuples in the order of the columns."""

    columns: Columns
    count: int
    neighbours: Neighbours

    def family(self, rng: np.random.Generator) -> Family:
        """One record has numbers at their bounds, in the middle, within, far outside or missing, and any levels."""
        records = [self._record(rng, inside=i % 4 == 3) for i in range(_TABLE_RECORDS)]
        pool = [records, records[:1], [self._record(rng, inside=True) for _ in range(8)]][int(rng.integers(0, 3))]
        drawn = RecordDomain(lambda rng: pool[int(rng.integers(0, len(pool)))], self.count, self.neighbours)
        return drawn._family(rng, records, lambda: drawn.generate(rng), None)

    def _record(self, rng: np.random.Generator, *, inside: bool) -> tuple[Any, ...]:
        return tuple(self._value(column, rng, inside=inside) for column in self.columns)

    @staticmethod
    def _value(column: Any, rng: np.random.Generator, *, inside: bool) -> Any:
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


@dataclass(frozen=True, eq=False)
class EdgeDomain(Domain):
    """Undirected graphs without loops on public nodes."""

    nodes: int
    weight: float

    def family(self, rng: np.random.Generator) -> Family:
        """One edge has any weight."""
        base = np.triu(rng.uniform(0, self.weight, (self.nodes, self.nodes)) * (rng.random((self.nodes,) * 2) < 0.5), 1)
        base += base.T
        i, j = rng.choice(self.nodes, 2, replace=False)

        def build(weight: Any) -> Floats:
            graph: NDArray[np.float64] = base.copy()
            graph[i, j] = graph[j, i] = weight
            return graph

        weights = [0.0, self.weight, self.weight / 2, -self.weight, 3 * self.weight, *rng.uniform(0, self.weight, 5)]
        return Family(build, weights, clique=True)


@dataclass(frozen=True, eq=False)
class NodeDomain(EdgeDomain):
    """The same, where all edges of one node change; a record is the weights of its edges."""

    neighbours: Neighbours

    def family(self, rng: np.random.Generator) -> Family:
        """One node has no edges, all of them, some, or edges of any weight."""
        base = np.triu((rng.random((self.nodes,) * 2) < rng.random()) * rng.choice([1.0, rng.random()]), 1)
        base = (base + base.T) * self.weight
        node, ones = int(rng.integers(self.nodes)), np.full(self.nodes, self.weight)

        def build(weights: Any) -> Floats:
            graph: NDArray[np.float64] = base.copy()
            graph[node, :] = graph[:, node] = 0.0 if weights is None else weights
            graph[node, node] = 0.0
            return graph

        some = [ones * (rng.random(self.nodes) < rng.random()) for _ in range(6)]
        rows = [ones, *some, *(ones - row for row in some[:3]), ones * rng.random(self.nodes), 3 * ones]
        if self.neighbours is Neighbours.REPLACE:
            rows.append(0 * ones)
        return Family(build, rows, clique=self.neighbours is Neighbours.REPLACE)


@singledispatch
def find_domain(query: MatrixQuery) -> Domain:
    """The domain that attacks search for a query. Register your own with ``find_domain.register(MyQuery)``."""
    raise ParameterError(
        f"bounds or generate must be given for {type(query).__name__}, whose records are not known: "
        "bounds=Bounds(...) for rows of numbers, or generate=function, which returns one record from a Generator."
    )


@find_domain.register(BoundedQuery)
def _(query: BoundedQuery) -> Domain:
    most = query.records if query.public_number else 2 * query.records
    if query.person is not None:
        return PersonDomain(BoxDomain.of(query.bounds, 1, Neighbours.REPLACE), query, most)
    return BoxDomain.of(query.bounds, most, query.neighbours)


@find_domain.register(Identity)
def _(query: Identity) -> Domain:
    domain = BoxDomain.of(query.bounds, query.records, query.neighbours)
    return domain if query.person is None else OwnRowsDomain(domain, query.records, query.rows_of_person)


@find_domain.register(GramMatrix)
def _(query: GramMatrix) -> Domain:
    domain = BoxDomain.of(query.bounds, query.records, query.neighbours)
    if query.points is not None:
        domain = KernelDomain(domain.generate, query.records, query.neighbours, query.bounds, points=query.points)
    return domain if query.person is None else OwnRowsDomain(domain, query.records, query.rows_of_person)


@find_domain.register(TracedMoments)
def _(query: TracedMoments) -> Domain:
    return find_domain(query.moments)


@find_domain.register(ContingencyTable)
def _(query: ContingencyTable) -> Domain:
    if query.person is not None:
        return PersonDomain(CellDomain(query.rows, query.columns, 1, Neighbours.REPLACE), query, query.records)
    return CellDomain(query.rows, query.columns, query.records, query.neighbours)


@find_domain.register(TableMoments)
def _(query: TableMoments) -> Domain:
    most = query.records if query.public_number else 2 * query.records
    if query.person is not None:
        return PersonDomain(TableDomain(query.columns, 1, Neighbours.REPLACE), query, most)
    return TableDomain(query.columns, most, query.neighbours)


@find_domain.register(Adjacency)
@find_domain.register(Laplacian)
def _(query: Adjacency | Laplacian) -> Domain:
    if query.unit == "node":
        return NodeDomain(query.nodes, query.weight, query.neighbours)
    return EdgeDomain(query.nodes, query.weight)


@dataclass(frozen=True, eq=False)
class PersonDomain(Domain):
    """Data sets of people with one row or many.

    Parameters
    ----------
    row : Domain
        Of single rows.
    query : MatrixQuery
        With a person.
    most : int
        Largest number of people, or of rows that count.
    """

    row: Domain
    query: MatrixQuery
    most: int

    def family(self, rng: np.random.Generator) -> Family:
        """One person has one row or many, all the same or from all over the domain; others have few."""
        rows = self.row.family(rng).records
        people = [[row] for row in rows[:_PEOPLE]]
        while len(people) < 2 * _PEOPLE:
            many, distinct = int(rng.choice(_ROWS)), int(rng.choice([1, 2, 100]))
            chosen = [rows[int(i)] for i in rng.integers(0, len(rows), min(many, distinct))]
            people.append([chosen[i % len(chosen)] for i in range(many)])
        replaced = self.query.neighbours is Neighbours.REPLACE
        assert self.query.person is not None
        others = max(0, self.most - self.query.person.most)
        others = others if self.query.public_number else int(rng.integers(0, others + 1))
        fixed = [[rows[int(rng.integers(0, len(rows)))]] for _ in range(others)]

        def build(person: list[Any] | None) -> Any:
            everybody = [*fixed, *([] if person is None else [person])]
            data = [row for one in everybody for row in one]
            ids = [number for number, one in enumerate(everybody) for _ in one]
            order = np.random.default_rng(len(data)).permutation(len(data))
            mixed: Any = [data[i] for i in order]
            if isinstance(rows[0], np.ndarray):
                mixed = np.array(mixed).reshape(len(mixed), -1 if mixed else rows[0].size)
            return with_ids(mixed, [ids[i] for i in order])

        return Family(build, people, replaced)


def give_rows(rng: np.random.Generator, data: Floats, neighbour: Floats) -> tuple[Any, Any]:
    """Two data sets that differ in their first record, or in that only one has it, as those of people with more rows.

    The first person has one row or many, made of that record (`_spread_record`); some of the others have two.
    """
    twice = rng.random(len(data) - 1) < 0.3
    others, ids = np.vstack([data[1:], data[1:][twice]]), np.arange(1, len(data))
    ids = np.concatenate([ids, ids[twice]])

    def build(first: Floats) -> Any:
        rows = np.vstack([_spread_record(rng, record) for record in first] or [first])
        mixed = rng.permutation(len(rows) + len(others))
        values, names = np.vstack([rows, others]), np.concatenate([np.zeros(len(rows), int), ids])
        return with_ids(values[mixed], names[mixed])

    return build(data[:1]), build(neighbour[: 1 + len(neighbour) - len(data)])


def _spread_record(rng: np.random.Generator, record: Floats) -> Floats:
    """Rows of a person: all the same, with both signs, with any signs, of all lengths, or half of them zero."""
    number = int(rng.choice(_ROWS))
    signs = np.where(np.arange(number) % 2, -1.0, 1.0)[:, None]
    factors = [np.ones((number, 1)), np.ones((number, 1)), signs, rng.choice([-1.0, 1.0], (number, record.size))]
    factors += [np.geomspace(1.0, 1e-3, number)[:, None], np.maximum(signs, 0.0)]
    return np.asarray(factors[int(rng.integers(len(factors)))] * record)


@dataclass(frozen=True, eq=False)
class OwnRowsDomain(Domain):
    """Tables of the same rows, in which all rows of one person have other values.

    Parameters
    ----------
    row : Domain
        Of single rows.
    records, rows : int
        The number of rows, and that of one person.
    """

    row: Domain
    records: int
    rows: int

    def family(self, rng: np.random.Generator) -> Family:
        """The rows of one person are all the same, or from all over the domain."""
        pool = self.row.family(rng).records
        table = np.array([pool[int(i)] for i in rng.integers(0, len(pool), self.records)])
        mine = rng.choice(self.records, self.rows, replace=False)
        ids = np.arange(self.records)
        ids[mine] = self.records

        def build(values: Any) -> Any:
            filled = table.copy()
            filled[mine] = values
            return with_ids(filled, ids)

        people = [[one] * self.rows for one in pool[:_PEOPLE]]
        people += [[pool[int(i)] for i in rng.integers(0, len(pool), self.rows)] for _ in range(_PEOPLE // 2)]
        return Family(build, [np.array(rows) for rows in people], clique=True)
