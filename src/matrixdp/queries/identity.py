"""The data set itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from matrixdp.domain.bounds import Bounds, check_bounds
from matrixdp.errors import ParameterError
from matrixdp.privacy import Neighbours
from matrixdp.queries.query import MatrixQuery, parse_records
from matrixdp.records import read_array
from matrixdp.sensitivity import RecordChange
from matrixdp.serialise import plain
from matrixdp.types import Floats


@plain
@dataclass(frozen=True, eq=False)
class Identity(MatrixQuery):
    """All records, of shape (records, m), each with noise of its own.

    Parameters
    ----------
    bounds : Bounds
    records : int
        The public number of records.
    neighbours : 'replace'
        The released table has one row a record, so their number cannot be hidden.

    Privacy
    -------
    Replace-one neighbours: one row changes, by the difference of two records of the domain.

    Examples
    --------
    >>> Identity(Bounds([0, 0], [1, 1]), records=248).shape
    (248, 2)
    """

    bounds: Bounds
    records: int
    neighbours: Neighbours = Neighbours.REPLACE

    def __post_init__(self) -> None:
        check_bounds(self.bounds)
        object.__setattr__(self, "records", parse_records(self.records))
        object.__setattr__(self, "neighbours", Neighbours.parse(self.neighbours))
        if self.neighbours is not Neighbours.REPLACE:
            raise ParameterError(
                "neighbours must be 'replace' for the identity query: its answer has one row a record, "
                "which shows their number."
            )

    @property
    def shape(self) -> tuple[int, int]:
        """(records, features)."""
        return self.records, self.bounds.size

    @property
    def side(self) -> str:
        """Columns."""
        return "columns"

    @property
    def names(self) -> tuple[str, ...] | None:
        """The bounds' names."""
        return self.bounds.names

    @property
    def sensitivity(self) -> RecordChange:
        """One row changes."""
        return RecordChange(self.bounds.halfwidths, self.bounds.radius)

    @property
    def magnitude(self) -> Floats:
        """The halfwidths, for every row."""
        return np.broadcast_to(self.bounds.halfwidths, (1, self.bounds.size))

    @property
    def gamma(self) -> float:
        """Bound on the norm of the data set, measured from the origin."""
        largest = np.maximum(np.abs(self.bounds.lower), np.abs(self.bounds.upper))
        return math.sqrt(self.records * float(np.square(largest).sum()))

    def extent(self, directions: Floats | None) -> Floats:
        """Half the width of the domain along each direction."""
        return self.bounds.reach(directions)

    def checked(self, data: Any) -> np.ndarray[Any, Any]:
        """The records, after a look at their number and kind."""
        array = read_array(data, self.bounds.size, self.bounds.names)
        check_count(len(array), self.records)
        return array

    def evaluate(self, data: Any, *, clip: bool, missing: str) -> Floats:
        """The records, moved into the domain, less its midpoint."""
        return self.bounds.centre(self.checked(data), clip=clip, missing=missing)

    @property
    def possible(self) -> tuple[Floats, Floats]:
        """The bounds."""
        return self.bounds.lower, self.bounds.upper

    def finish(self, matrix: Floats) -> Floats:
        """The midpoint is put back."""
        matrix += self.bounds.midpoint
        return matrix


def check_count(rows: int, records: int) -> None:
    """An error unless there are as many rows as the public number of records says."""
    if rows != records:
        raise ParameterError(f"records must be the number of rows of the data, {rows}, got {records} instead.")
