"""Where audits search if people are protected: neighbours that differ in all rows of one of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from matrixdp.audit.families import Domain, Family
from matrixdp.privacy import Neighbours
from matrixdp.queries import MatrixQuery
from matrixdp.records import with_ids
from matrixdp.types import Floats

_ROWS = (1, 1, 2, 7, 100, 1000)  # of one person
_PEOPLE = 40  # that are tried


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
