"""Base classes of queries: a matrix computed from private data, and its public domain; checks of both."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.checks import check_integer
from matrixdp.display import short_repr
from matrixdp.domain import Bounds, Person, check_bounds
from matrixdp.errors import DataError, ParameterError, show
from matrixdp.noise.matrix import Covariance
from matrixdp.privacy import Neighbours, Unit
from matrixdp.records import Records
from matrixdp.records.people import People, count_people
from matrixdp.sensitivity import RowsChange, Sensitivity
from matrixdp.types import Floats

_MOST_RECORDS = 1 << 50
_BLOCK = 1 << 18  # entries of an answer that are checked at a time


class MatrixQuery(ABC):
    """A matrix-valued function of private data with a public domain. Subclass it for a query of your own.

    The value is measured from a public centre; `finish` adds what is public. Everything but the values that
    `evaluate` and the methods on rows return is public.

    Attributes
    ----------
    neighbours : Neighbours
        The adjacency that `sensitivity` is derived for.
    title : str
        What reports call the answer.
    person : Person or None
        The column of ids, where neighbours differ in all rows of one person; None where they differ in one record.

    Privacy
    -------
    `sensitivity` must hold every change of the answer, as computed in floats up to `relative_error`, between any two
    neighbours of the domain.
    """

    neighbours: Neighbours
    title: str = "matrix"
    person: Person | None = None
    public_value: float = 0.0
    __repr__ = short_repr

    if TYPE_CHECKING:  # properties of most queries, fields of `Query`

        @property
        def shape(self) -> tuple[int, int]:
            """Shape of the answer."""

        @property
        def side(self) -> str:
            """The side that directional noise acts on: 'rows', 'columns' or 'both'."""

        @property
        def sensitivity(self) -> Sensitivity:
            """The changes that one record or person can make."""

    # What a design needs.

    @property
    def unit(self) -> str:
        """The unit of protection: "person" where ids say whose rows they are, otherwise "record"; see `Unit`."""
        return "record" if self.person is None else "person"

    @property
    def protected_unit(self) -> Unit:
        """The same with the column of ids, as a ledger registers it."""
        return Unit(self.unit, None if self.person is None else self.person.column)

    @property
    def protects(self) -> str:
        """The unit in which two neighbours differ, in words."""
        return "one record" if self.unit == "record" else self.protected_unit.words

    @property
    def public_number(self) -> bool:
        """True if the number that an average is taken over is public: of replaced records, or people who count once."""
        return self.neighbours is Neighbours.REPLACE and (self.person is None or self.person.rows is None)

    @property
    def symmetric(self) -> bool:
        """True if the answer is a symmetric matrix, so that both sides get the same noise and one triangle is drawn."""
        return self.side == "both"

    @property
    def structured(self) -> bool:
        """True if the noise may have a structure that the sensitivity set offers; by default for symmetric answers."""
        return self.symmetric

    @property
    def features(self) -> int:
        """Number of directions to divide the budget among."""
        return self.shape[0 if self.side == "rows" else 1]

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the features, if they have any."""
        return None

    @property
    def read_names(self) -> tuple[str, ...]:
        """Names of the columns of the data that it reads; empty if they have none."""
        return self.names or ()

    @property
    @abstractmethod
    def magnitude(self) -> Floats:
        """Public bound on the absolute value of each entry, broadcastable to `shape`."""

    @property
    def error_units(self) -> Floats:
        """Units in which errors of different entries are added up, broadcastable to `shape`: by default `magnitude`."""
        return self.magnitude

    @property
    def gamma(self) -> float:
        """Bound on the Frobenius norm of the answer as the paper states it, measured from the origin."""
        return math.sqrt(float(np.square(np.broadcast_to(self.magnitude, self.shape)).sum()))

    @property
    def relative_error(self) -> float:
        """Bound on the relative floating-point error of an entry of the answer."""
        return 0.0

    def extent(self, directions: Floats | None) -> Floats:
        """Reach of a record along each direction, of shape (features,)."""
        return np.ones(self.features)

    def lift(self, variances: Floats, directions: Floats | None) -> tuple[Floats, Floats | None]:
        """Extend variances and directions of the features to the whole side of the answer."""
        return variances, directions

    @property
    def own_covariance(self) -> Covariance | None:
        """Shape of the noise between columns that suits the changes of the answer, for the allocation 'kernel'."""
        return None

    # What a release needs.

    @abstractmethod
    def evaluate(self, data: Any, *, clip: bool, missing: str) -> Floats:
        """The private answer, of shape `shape`."""

    def finish(self, matrix: Floats) -> Floats:
        """The noisy answer with its public part added; may work in place."""
        if self.public is not None:
            matrix[self.public] = self.public_value
        return matrix

    def check_request(self) -> None:  # noqa: B027  (the fields of most queries describe them)
        """Raise a `ParameterError` if the fields do not identify the answer, so that it cannot have a request id."""

    @property
    def possible(self) -> tuple[Floats, Floats]:
        """Least and largest value that each finished entry can have, broadcastable to `shape`."""
        return -self.magnitude, self.magnitude

    @property
    def public(self) -> NDArray[np.bool_] | None:
        """Entries that no neighbour changes, and that `finish` sets to their `public_value`."""
        return None

    @property
    def total(self) -> float | None:
        """Public sum of all entries that `evaluate` returns, to which the noisy ones are adjusted; None if private."""
        return None

    # What post-processing and reports need.

    @property
    def scale(self) -> Floats:
        """Largest absolute value of each finished entry, to which pictures relate it; broadcastable to `shape`."""
        return np.asarray(self.magnitude)

    @property
    def entry_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the rows and of the columns of the answer."""
        height, width = self.shape
        names = self.names or tuple(f"x{i}" for i in range(self.features))
        if self.symmetric and len(names) == width:
            return names, names
        if self.side == "rows":
            return names, tuple(map(str, range(width)))
        return tuple(map(str, range(height))), names

    @property
    def summary(self) -> str:
        """Its kind and size, in a few words."""
        return f"{type(self).__name__} of shape {self.shape[0]:,} x {self.shape[1]:,}"

    @property
    def subject(self) -> str:
        """What it asks for, in words, and the size of its answer."""
        return f"{self.title[:1].upper()}{self.title[1:]}, {self.shape[0]:,} x {self.shape[1]:,}"

    @property
    def count_word(self) -> str:
        """The units that `records` counts: 'records', 'people', or 'rows' where each row of a person counts."""
        if self.person is None:
            return "records"
        return "people" if self.person.rows is None else "rows"


class OfQuery:
    """Base class of what is made for one query, and has its guarantee."""

    if TYPE_CHECKING:  # a field or a property

        @property
        def query(self) -> MatrixQuery:
            """What is answered."""

    neighbours = property(attrgetter("query.neighbours"), doc="The neighbours that the guarantee is for.")
    unit = property(
        attrgetter("query.protected_unit"), doc="What the guarantee protects: a record, person, edge or node."
    )


@dataclass(frozen=True, eq=False)
class BoundedQuery(MatrixQuery):
    """A query on a public number of records in public bounds."""

    bounds: Bounds
    records: int
    names = property(attrgetter("bounds.names"), doc="Those of the bounds.")

    def __post_init__(self) -> None:
        check_bounds(self.bounds)
        parse_unit(self, self.bounds.names)

    @property
    def summary(self) -> str:
        return f"{type(self).__name__} of {self.bounds.size:,} column{'s' * (self.bounds.size != 1)}"

    def extent(self, directions: Floats | None) -> Floats:
        return self.bounds.reach(directions)


def check_query(query: Any) -> None:
    """Raise a `ParameterError` unless `query` is a query whose public attributes fit together."""
    if not isinstance(query, MatrixQuery):
        raise ParameterError(
            f"query must be a query such as Moments(bounds, records=...), got {type(query).__name__} instead."
        )
    name = type(query).__name__
    shape: Any = getattr(query, "shape", None)
    side, sensitivity = getattr(query, "side", None), getattr(query, "sensitivity", None)
    sized = isinstance(shape, tuple) and len(shape) == 2 and all(isinstance(n, int | np.integer) for n in shape)
    if not sized or min(shape) < 1:
        raise ParameterError(f"{name}.shape must be two positive integers, got {show(shape)} instead.")
    if side not in ("rows", "columns", "both") or (side == "both" and shape[0] != shape[1]):
        raise ParameterError(
            f"{name}.side must be 'rows', 'columns', or 'both' for a symmetric answer, got {show(side)} instead."
        )
    if not isinstance(getattr(query, "neighbours", None), Neighbours):
        raise ParameterError(f"{name}.neighbours must be Neighbours.REPLACE or Neighbours.ADD_REMOVE.")
    query.protected_unit  # noqa: B018  (raises for a unit that does not exist)
    if not isinstance(sensitivity, Sensitivity):
        raise ParameterError(
            f"{name}.sensitivity must be a sensitivity set such as FrobeniusBall(0.1), got {show(sensitivity)} instead."
        )
    sensitivity.check_shape(shape)
    sizes = getattr(query.magnitude, "shape", ())
    if len(sizes) != 2 or any(size not in (1, full) for size, full in zip(sizes, shape, strict=True)):
        raise ParameterError(f"{name}.magnitude must be an array that broadcasts to {shape}, such as shape (1, 1).")


def check_answer(query: MatrixQuery, answer: Any, *, rounding: float = 1e-9) -> Floats:
    """The answer of a query as floats, or a `DataError` if it is not what the query declares, up to rounding.

    Privacy
    -------
    The sensitivity is claimed for answers of the declared shape and magnitude. An answer outside is refused rather
    than clipped, since clipping could produce a change that the sensitivity set does not hold.
    """
    array = np.asarray(answer)
    if array.dtype.kind not in "biuf" or array.shape != query.shape:
        raise DataError(
            f"the answer of {type(query).__name__} must be real numbers of shape {query.shape}, "
            f"got {array.dtype} of {array.shape} instead."
        )
    step = max(1, _BLOCK // query.shape[1])  # in blocks of rows, since an answer may be as large as memory allows
    for start in range(0, query.shape[0], step):
        rows = slice(start, start + step)
        block, largest = array[rows], query.magnitude if len(query.magnitude) == 1 else query.magnitude[rows]
        if not np.isfinite(block).all():
            raise DataError(f"the answer of {type(query).__name__} must be finite, got NaN or infinity instead.")
        if not (np.abs(block) <= largest * (1 + rounding)).all():
            raise DataError(f"the answer of {type(query).__name__} must lie within its public bound; widen it.")
        if query.symmetric and not (np.abs(block - array[:, rows].T) <= rounding * largest).all():
            raise DataError(f"the answer of {type(query).__name__} must be symmetric, as its side is 'both'.")
    return array.astype(np.float64, copy=False)


def parse_records(records: Any) -> int:
    """The public number of records."""
    number = check_integer(records, "records (the public number of records)", at_least=1)
    return check_integer(number, "records", at_most=_MOST_RECORDS, rule="at most 2^50")


def parse_unit(query: Any, columns: Sequence[str] | None) -> None:
    """Parse the fields `records`, `neighbours` and `person`, whose column must not be among those that are released."""
    object.__setattr__(query, "records", parse_records(query.records))
    object.__setattr__(query, "neighbours", Neighbours.parse(query.neighbours))
    object.__setattr__(query, "person", Person.parse(query.person))
    if query.person is not None and query.person.column in (columns or ()):
        raise ParameterError(
            f"person must name a column of ids, and {query.person.column!r} is among the columns that are released. "
            "Leave it out there."
        )


VARIES = (
    "Leave it out, here and in the schema: it is counted then. For forecasts, a guess is expected_records there. "
    "If the number must not be known, use add-remove neighbours, for which it is an estimate."
)


def check_count(found: int, records: int, what: str = "rows of the data") -> None:
    """Raise a `ParameterError` unless there are as many records as their public number says."""
    if found != records:
        raise ParameterError(f"records must be the number of {what}, {found}, got {records} instead. {VARIES}")


def check_domain(rows: int, records: int, neighbours: Neighbours) -> None:
    """Raise an error unless the number of records is the public one or, where it is private, at most twice that."""
    if neighbours is Neighbours.REPLACE:
        check_count(rows, records)
    elif rows > 2 * records:
        raise DataError(
            f"a data set must have at most 2 x {records} records; give a larger public estimate: records, or "
            "expected_records in the schema."
        )


def person_change(query: MatrixQuery, change: Callable[[Neighbours], Sensitivity]) -> Sensitivity:
    """The changes that one unit of a query can make, from those of one record, which `change` gives for the neighbours.

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
    """Yield a query's people, shard by shard; at the last check their `number`, or `most` where it is private."""
    assert query.person is not None
    found = 0
    for people in count_people(records, query.person, number):
        found += int(np.minimum(people.rows, query.person.most).sum())
        if people.shard == people.shards - 1:
            if query.public_number:
                check_count(found, number, f"people in column {query.person.column!r}")
            elif found > most:
                what = "people" if query.person.rows is None else "rows that count"
                raise DataError(
                    f"a data set must have at most {most} {what}; give a larger public estimate of their "
                    "number: records, or expected_records in the schema."
                )
        yield people
