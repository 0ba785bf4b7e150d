"""Base classes of queries: a matrix computed from private data, its public domain, and names for its entries."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain.person import Person
from matrixdp.noise.covariance import Covariance
from matrixdp.privacy import Neighbours, Unit
from matrixdp.sensitivity import Sensitivity
from matrixdp.types import Floats


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

    if TYPE_CHECKING:  # properties of most queries, fields of `Query`

        @property
        def shape(self) -> tuple[int, int]:
            """Shape of the answer."""

        @property
        def side(self) -> str:
            """Which side directional noise acts on: 'rows', 'columns' or 'both'."""

        @property
        def sensitivity(self) -> Sensitivity:
            """The changes that one record or person can make."""

    # What a design needs.

    @property
    def unit(self) -> str:
        """What the guarantee protects one of: "person" where ids say whose rows they are, otherwise "record"."""
        return "record" if self.person is None else "person"

    @property
    def protected_unit(self) -> Unit:
        """The same with the column of ids, as a ledger registers it."""
        return Unit(self.unit, None if self.person is None else self.person.column)

    @property
    def protects(self) -> str:
        """What two neighbours differ in, in words."""
        return "one record" if self.unit == "record" else self.protected_unit.words

    @property
    def public_number(self) -> bool:
        """Whether the number that an average is taken over is public: of records, or of people who count once each.

        It is not where one is added or removed, nor where each row of a person counts.
        """
        return self.neighbours is Neighbours.REPLACE and (self.person is None or self.person.rows is None)

    @property
    def symmetric(self) -> bool:
        """Whether the answer is a symmetric matrix, so that both sides get the same noise and one triangle is drawn."""
        return self.side == "both"

    @property
    def structured(self) -> bool:
        """Whether the noise may have a structure that the sensitivity set offers; by default for symmetric answers."""
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
        """How far a record reaches along each direction, of shape (features,)."""
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

    def check_people(self, data: Any) -> None:  # noqa: B027  (most queries count the rows of each person)
        """Raise a `DataError` if a person has more rows than the sensitivity allows for."""

    def finish(self, matrix: Floats) -> Floats:
        """The noisy answer with its public part added; may work in place."""
        return matrix

    def check_request(self) -> None:  # noqa: B027  (the fields of most queries describe them)
        """Raise a `ParameterError` if the fields do not identify the answer, so that it cannot have a request id."""

    @property
    def possible(self) -> tuple[Floats, Floats]:
        """Least and largest value that each finished entry can have, broadcastable to `shape`."""
        return -self.magnitude, self.magnitude

    @property
    def public(self) -> NDArray[np.bool_] | None:
        """Entries that no neighbour changes, and that `finish` sets to their public value."""
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
    def count_word(self) -> str:
        """What `records` is the number of: 'records', 'people', or 'rows' where each row of a person counts."""
        if self.person is None:
            return "records"
        return "people" if self.person.rows is None else "rows"
