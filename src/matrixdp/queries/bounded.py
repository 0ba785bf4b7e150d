"""What queries on records in bounds have in common."""

from __future__ import annotations

from dataclasses import dataclass

from matrixdp.domain.bounds import Bounds, check_bounds
from matrixdp.privacy import Neighbours
from matrixdp.queries.base import MatrixQuery
from matrixdp.queries.checks import parse_records
from matrixdp.types import Floats


@dataclass(frozen=True, eq=False)
class BoundedQuery(MatrixQuery):
    """A query on a public number of records in public bounds.

    Parameters
    ----------
    bounds : Bounds
    records : int
        The public number of records.
    """

    bounds: Bounds
    records: int

    def __post_init__(self) -> None:
        check_bounds(self.bounds)
        object.__setattr__(self, "records", parse_records(self.records))
        object.__setattr__(self, "neighbours", Neighbours.parse(self.neighbours))

    @property
    def names(self) -> tuple[str, ...] | None:
        """The bounds' names."""
        return self.bounds.names

    @property
    def summary(self) -> str:
        """Its kind and the number of its columns."""
        return f"{type(self).__name__} of {self.bounds.size:,} column{'s' * (self.bounds.size != 1)}"

    def extent(self, directions: Floats | None) -> Floats:
        """How far a record reaches from the midpoint along each direction."""
        return self.bounds.reach(directions)
