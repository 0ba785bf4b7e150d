"""What queries on people have in common: the people of the data, checked, and the changes that one of them can make."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from matrixdp.errors import DataError, ParameterError
from matrixdp.privacy import Neighbours
from matrixdp.queries.base import MatrixQuery
from matrixdp.records import Records
from matrixdp.records.people import People, count_people
from matrixdp.sensitivity import RowsChange, Sensitivity


def person_change(query: MatrixQuery, change: Callable[[Neighbours], Sensitivity]) -> Sensitivity:
    """The changes that one unit of a query can make.

    Parameters
    ----------
    query : MatrixQuery
    change : callable
        The changes that one record can make, by the neighbours.

    Privacy
    -------
    A person who counts once changes the answer no further than one record: their part is a convex combination of
    records of the domain, and distances are convex in both. Where rows count, see `RowsChange`.
    """
    one = change(query.neighbours)
    if query.person is None or query.person.rows is None:
        return one
    return RowsChange(one, change(Neighbours.ADD_REMOVE), query.person.rows)


def find_people(records: Records, query: MatrixQuery, number: int, *, most: int) -> Iterator[People]:
    """Yield the people in the records, shard by shard; before the last one their number is checked.

    Parameters
    ----------
    records : Records
    query : MatrixQuery
        With a person.
    number : int
        The public number of people, or of rows that count.
    most : int
        Where that number is private, the largest one of the domain.
    """
    assert query.person is not None
    found = 0
    for people in count_people(records, query.person, number):
        found += int(np.minimum(people.rows, query.person.most).sum())
        if people.shard == people.shards - 1:
            if query.public_number:
                if found != number:
                    raise ParameterError(
                        f"records must be the number of people in column {query.person.column!r}, {found}, "
                        f"got {number} instead."
                    )
            elif found > most:
                what = "people" if query.person.rows is None else "rows that count"
                raise DataError(f"a data set must have at most {most} {what}; give a larger public number of records.")
        yield people
