"""Where attacks on people search: families of data sets that differ in all rows of one person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from matrixdp.audit.family import Domain, Family
from matrixdp.privacy import Neighbours
from matrixdp.queries import MatrixQuery
from matrixdp.records.ids import with_ids

_MOST_ROWS = 6
_CHOICES = 12


@dataclass(frozen=True, eq=False)
class PersonDomain(Domain):
    """Data sets of people, each with several rows that are records of another domain. A record is a person's rows.

    Parameters
    ----------
    query : MatrixQuery
        With a person.
    rows : Domain
        The domain of single rows.
    """

    query: MatrixQuery
    rows: Domain

    def family(self, rng: np.random.Generator) -> Family:
        """One person has one row, several, or as many as count; in a data set, always the same number."""
        pool, person = self.rows.family(rng).records, self.query.person
        assert person is not None
        number: int = self.query.records  # type: ignore[attr-defined]
        most = person.most
        if self.query.count_word == "records":  # a table, of which one person has some rows
            mine = int(rng.integers(1, min(most, number) + 1))
            others, sizes = [1] * (number - mine), [mine]
        elif self.query.count_word == "people":
            people = number - 1 if self.query.neighbours is Neighbours.REPLACE else int(rng.integers(0, number))
            others, sizes = [int(rng.integers(1, 4)) for _ in range(people)], [1, 2, _MOST_ROWS]
        else:
            most = min(most, number)
            others, sizes = [1] * int(rng.integers(0, number - most + 1)), [1, most, most + (number >= person.most)]
        shared = [_draw(rng, pool, size) for size in others]
        chosen = [_draw(rng, pool, int(rng.choice(sizes))) for _ in range(_CHOICES)]

        def build(rows: Any) -> Any:
            people = shared if rows is None else [rows, *shared]
            ids = [number for number, found in enumerate(people) for _ in found]
            records = [row for found in people for row in found]
            if isinstance(pool[0], np.ndarray):
                return with_ids(np.array(records).reshape(len(records), len(pool[0])), np.array(ids, int))
            return with_ids(records, np.array(ids, int))

        return Family(build, chosen, clique=self.query.neighbours is Neighbours.REPLACE)


def _draw(rng: np.random.Generator, pool: list[Any], size: int) -> list[Any]:
    """Rows of one person: all the same, or different ones."""
    same = rng.random() < 0.5
    first = int(rng.integers(len(pool)))
    return [pool[first if same else int(rng.integers(len(pool)))] for _ in range(size)]
