"""Whose privacy a query on a table with several rows a person protects, and what each of their rows weighs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.checks import check_integer
from matrixdp.errors import ParameterError, show
from matrixdp.privacy import RECORD, Unit
from matrixdp.serialise import builtin_kind

_MOST_ROWS = 1 << 22


@builtin_kind
@dataclass(frozen=True)
class Person:
    """The column that says whose row it is: neighbours then differ in all rows of one person.

    Parameters
    ----------
    column : str
        Name of the column with the ids.
    rows : int, optional
        How rows count. By default each person counts once: the answer is the mean over people of the mean over their
        rows, with the noise of one row a person. With a number k each row counts, and the rows of a person with more
        than k together count as k; the noise is k times as large.

    Privacy
    -------
    A person is an id: somebody with two ids is protected as two people. Ids are used to find the rows of a person;
    they are neither shown nor stored.

    Examples
    --------
    >>> Person("patient")
    Person(column='patient', rows=None)
    >>> Person("patient", rows=10).weights(np.array([1, 4, 20]), 1 << 20).tolist()  # by the number of rows of a person
    [1048576, 1048576, 524288]
    """

    column: str
    rows: int | None = field(default=None, metadata={"omit_none": True})

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise ParameterError(
                f"person must be the name of the column with the ids, got {show(self.column)} instead.",
                parameter="column",
            )
        if self.rows is not None:
            object.__setattr__(self, "rows", check_integer(self.rows, "rows", at_least=1, at_most=_MOST_ROWS))

    @classmethod
    def parse(cls, value: Any) -> Person | None:
        """A `Person` from one, from the name of a column, or None from None."""
        if value is None or isinstance(value, Person):
            return value
        return cls(value)

    @property
    def most(self) -> int:
        """Largest weight of all rows of one person together, in rows."""
        return self.rows or 1

    def weights(self, counts: NDArray[np.integer[Any]], unit: int) -> NDArray[np.int64]:
        """Weight of each row of people with `counts` rows, in whole numbers of which `unit` are one row.

        Rounded down, so that the rows of one person together weigh at most ``most * unit``.
        """
        counts = counts.astype(np.int64)
        return np.asarray(np.minimum(unit, self.most * unit // np.maximum(counts, 1)), np.int64)


def find_unit(person: Person | None) -> Unit:
    """What is protected: one person, or one record where there is none."""
    return RECORD if person is None else Unit("person", person.column)


def most_rows(person: Person | None) -> int:
    """How many rows the part of one record or one person in a sum weighs at most."""
    return 1 if person is None else person.most


def least_sample(records: float, person: Person | None) -> float:
    """How many independent records or people `records` stand for at least: rows of a person may all be the same."""
    return max(records / most_rows(person), 1.0)
