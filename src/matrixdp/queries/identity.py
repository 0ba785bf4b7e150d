"""Queries whose answer has a row for each record: their common class, and the data set itself."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain.bounds import rescale
from matrixdp.domain.person import Person
from matrixdp.errors import DataError, ParameterError
from matrixdp.privacy import Neighbours
from matrixdp.queries.base import BoundedQuery, check_count
from matrixdp.records import as_records, is_out_of_core, read_array
from matrixdp.records.people import SameRecords, count_people
from matrixdp.sensitivity import OwnRowsChange, RecordChange, Sensitivity
from matrixdp.serialise import builtin_kind
from matrixdp.types import Floats

S = TypeVar("S", bound=Sensitivity)


class OwnRowsQuery(BoundedQuery):
    """A query whose answer has a row for each record, of which a person may have several.

    Privacy
    -------
    Neighbours differ in the values of one person's rows, not in which rows belong to whom, so that `check_people`
    raises its error for both or for neither.
    """

    public_number = True
    count_word = "records"  # whoever they belong to

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.neighbours is not Neighbours.REPLACE:
            raise ParameterError(
                f"neighbours must be 'replace' for {type(self).__name__}: the answer has a row for each record, which "
                "reveals their number."
            )
        if self.person is not None and self.person.rows is None:
            raise ParameterError(
                f"person must say how many rows a person may have, since each has a row in the {self.title}: "
                f"Person({self.person.column!r}, rows=3), or --rows-per-person 3. To count each person once, release "
                "moments."
            )

    @property
    def unit(self) -> str:
        """One record or, with a person, the values in their rows; which rows are theirs is not hidden."""
        return "record" if self.person is None else "values"

    @property
    def rows_of_person(self) -> int:
        """Largest number of rows of the answer that belong to one person, or to one record."""
        return 1 if self.person is None else min(self.person.most, self.records)

    def rows_change(self, one: S) -> S | OwnRowsChange:
        """The changes of all rows of a person, from those of one row."""
        return one if self.rows_of_person == 1 else OwnRowsChange(one, self.rows_of_person)

    def check_people(self, data: Any) -> Any:
        """The data, or a `DataError` if a person has too many rows; later reads must find the same people."""
        person, found = self.person, np.zeros(3, np.uint64)
        if person is None:
            return data
        records = as_records(data)
        for people in count_people(records, person, self.records):
            if len(people.rows) and int(people.rows.max()) > person.most:
                raise DataError(
                    f"a person in column {person.column!r} has more than {person.most} rows, and all of them would be "
                    f"released. Give the largest number of rows: Person({person.column!r}, rows=...), or "
                    "--rows-per-person; or leave rows out."
                )
            found += people.reading
        return SameRecords(records, people.hash, found, whole=False) if is_out_of_core(data) else data


@builtin_kind
@dataclass(frozen=True, eq=False, repr=False)
class Identity(OwnRowsQuery):
    """All records, of shape (records, m), each with independent noise.

    Parameters
    ----------
    bounds : Bounds
    records : int
        The public number of records.
    neighbours : 'replace'
        The released table has one row per record, so the number of records is public.
    person : Person, optional
        ``Person(column, rows=k)``: the column that says whose row it is, and the largest number of rows that a person
        has. Neighbours then differ in the values of all rows of one person; the noise is ``sqrt(k)`` times as large.

    Privacy
    -------
    Replace-one neighbours: one row changes, by the difference of two records of the domain, or k rows do. Which rows
    belong to the same person is not released, but not protected either: the unit of a ledger is ``values:COLUMN``.

    Examples
    --------
    >>> from matrixdp.domain import Bounds
    >>> Identity(Bounds([0, 0], [1, 1]), records=248).shape
    (248, 2)
    """

    neighbours: Neighbours = field(default=Neighbours.REPLACE, kw_only=True)
    person: Person | None = field(default=None, kw_only=True, metadata={"omit_none": True})

    side = "columns"
    title = "data set"

    @cached_property
    def shape(self) -> tuple[int, int]:
        """(records, features)."""
        return self.records, self.bounds.size

    @cached_property
    def sensitivity(self) -> RecordChange | OwnRowsChange:
        """One row changes, or those of one person."""
        return self.rows_change(RecordChange(self.bounds.halfwidths, self.bounds.radius))

    @cached_property
    def magnitude(self) -> Floats:
        return np.broadcast_to(self.bounds.halfwidths, (1, self.bounds.size))

    @property
    def gamma(self) -> float:
        return math.sqrt(self.records * float(np.square(self.scale).sum()))

    @property
    def scale(self) -> Floats:
        return np.maximum(np.abs(self.bounds.lower), np.abs(self.bounds.upper))[None, :]

    @property
    def entrywise(self) -> bool:
        """True in a box, where each entry is a monotone function of one value, whose range rounding cannot widen."""
        return self.bounds.radius is None

    def read_rows(self, block: Any, *, clip: bool, missing: str) -> NDArray[np.generic]:
        """Records as finite numbers, not yet clipped; outside of the bounds they raise a `DataError` unless `clip`."""
        array = read_array(block, self.bounds.size, self.bounds.names)
        return self.bounds.checked(array, clip=clip, missing=missing)

    def row_limits(self, factors: Floats) -> Floats:
        """Largest absolute value that `row_rounding` gives in each column, in steps."""
        return np.asarray(np.rint(factors * self.magnitude[0]))

    def row_rounding(self, factors: Floats) -> Callable[[NDArray[np.generic], Floats], None]:
        """A function that writes records less the midpoint in steps of ``1/factors``, clipped, to an array given."""
        limits = self.row_limits(factors)

        def round_rows(rows: NDArray[np.generic], out: Floats) -> None:
            rescale(rows, self.bounds.midpoint, factors, out)
            np.rint(out, out=out)
            np.clip(out, -limits, limits, out=out)

        return round_rows

    def evaluate(self, data: Any, *, clip: bool, missing: str) -> Floats:
        rows = self.read_rows(data, clip=clip, missing=missing)
        check_count(len(rows), self.records)
        return self.bounds.centre(rows)

    @property
    def possible(self) -> tuple[Floats, Floats]:
        return self.bounds.lower, self.bounds.upper

    def finish(self, matrix: Floats) -> Floats:
        matrix += self.bounds.midpoint
        return matrix
