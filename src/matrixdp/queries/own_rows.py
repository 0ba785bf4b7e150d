"""Queries whose answer has a row for each record, where a person may have several of them."""

from __future__ import annotations

from typing import Any, TypeVar

from matrixdp.errors import DataError, ParameterError
from matrixdp.queries.bounded import BoundedQuery
from matrixdp.records import as_records
from matrixdp.records.people import count_people
from matrixdp.sensitivity import OwnRowsChange, Sensitivity

S = TypeVar("S", bound=Sensitivity)
SAME_ROWS = (
    "tables of the same rows that differ in the values of all rows of one person (replace-one); the number of rows is "
    "public, and which of them belong to the same person is not protected"
)


def check_own_rows(query: BoundedQuery) -> None:
    """Raise a `ParameterError` unless a query with a row for each record says how many of them a person may have."""
    if query.person is not None and query.person.rows is None:
        raise ParameterError(
            f"person must say how many rows a person may have, since each has a row in the {query.title}: "
            f"Person({query.person.column!r}, rows=3), or --rows-per-person 3. To count each person once, release "
            "moments."
        )


def check_rows_of_people(query: BoundedQuery, data: Any) -> None:
    """Raise a `DataError` if a person has more rows than the query's person says.

    Privacy
    -------
    Neighbours of such queries differ in the values of one person's rows, not in which rows belong to whom, so that both
    raise the error or neither.
    """
    person = query.person
    if person is None or person.rows is None:
        return
    for people in count_people(as_records(data), person, query.records):
        if len(people.rows) and int(people.rows.max()) > person.rows:
            raise DataError(
                f"a person in column {person.column!r} has more than {person.rows} rows, and all of them would be "
                f"released. Give the largest number of rows: Person({person.column!r}, rows=...), or "
                "--rows-per-person; or leave rows out."
            )


def rows_of_person(query: BoundedQuery) -> int:
    """Largest number of rows of the answer that belong to one unit of the query."""
    return 1 if query.person is None or query.person.rows is None else min(query.person.rows, query.records)


def own_rows_change(query: BoundedQuery, one: S) -> S | OwnRowsChange:
    """The changes of the rows of one unit of a query, from those of one row."""
    return one if rows_of_person(query) == 1 else OwnRowsChange(one, rows_of_person(query))
