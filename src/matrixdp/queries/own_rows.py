"""Queries whose answer has a row for each record, where a person may have several of them."""

from __future__ import annotations

from typing import Any, TypeVar

from matrixdp.errors import DataError, ParameterError
from matrixdp.queries.bounded import BoundedQuery
from matrixdp.queries.checks import parse_person, require_replace
from matrixdp.records import as_records
from matrixdp.records.people import count_people
from matrixdp.sensitivity import OwnRowsChange, Sensitivity

S = TypeVar("S", bound=Sensitivity)


class OwnRowsQuery(BoundedQuery):
    """A query whose answer has a row for each record, of which a person may have several.

    Privacy
    -------
    Neighbours differ in the values of one person's rows, not in which rows belong to whom, so that `check_people`
    raises its error for both or for neither.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        require_replace(
            self, f"{type(self).__name__}: the answer has a row for each record, which reveals their number."
        )
        object.__setattr__(self, "person", parse_person(self.person, self.bounds.names))
        if self.person is not None and self.person.rows is None:
            raise ParameterError(
                f"person must say how many rows a person may have, since each has a row in the {self.title}: "
                f"Person({self.person.column!r}, rows=3), or --rows-per-person 3. To count each person once, release "
                "moments."
            )

    @property
    def public_number(self) -> bool:
        """True."""
        return True

    @property
    def count_word(self) -> str:
        """Records, whoever they belong to."""
        return "records"

    @property
    def rows_of_person(self) -> int:
        """Largest number of rows of the answer that belong to one person, or to one record."""
        return 1 if self.person is None or self.person.rows is None else min(self.person.rows, self.records)

    def rows_change(self, one: S) -> S | OwnRowsChange:
        """The changes of all rows of a person, from those of one row."""
        return one if self.rows_of_person == 1 else OwnRowsChange(one, self.rows_of_person)

    def check_people(self, data: Any) -> None:
        """Raise a `DataError` if a person has more rows than `person` says."""
        person = self.person
        if person is None or person.rows is None:
            return
        for people in count_people(as_records(data), person, self.records):
            if len(people.rows) and int(people.rows.max()) > person.rows:
                raise DataError(
                    f"a person in column {person.column!r} has more than {person.rows} rows, and all of them would be "
                    f"released. Give the largest number of rows: Person({person.column!r}, rows=...), or "
                    "--rows-per-person; or leave rows out."
                )
