"""What a query is, and the one for a function of the user's own."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import DataError, ParameterError, show
from matrixdp.privacy import Neighbours
from matrixdp.sensitivity import FrobeniusBall, Sensitivity, Vertices
from matrixdp.serialise import plain
from matrixdp.types import Floats

SIDES = ("rows", "columns", "both")
_MOST_RECORDS = 1 << 50


class MatrixQuery(ABC):
    """A matrix-valued function of private data with a public domain.

    The value is measured from a public centre; `finish` adds what is public. Everything but `evaluate` is public.
    """

    neighbours: Neighbours
    protects: str = "one record"

    if TYPE_CHECKING:  # properties of most queries, fields of `Query`

        @property
        def shape(self) -> tuple[int, int]:
            """Shape of the answer."""

        @property
        def side(self) -> str:
            """Which side directional noise acts on: 'rows', 'columns' or 'both'."""

        @property
        def sensitivity(self) -> Sensitivity:
            """The changes that one person can make."""

    @property
    def symmetric(self) -> bool:
        """Whether the answer is a symmetric matrix, so that both sides get the same noise and one triangle is drawn."""
        return self.side == "both"

    @property
    def features(self) -> int:
        """Number of directions to share the budget among."""
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
    def gamma(self) -> float:
        """Bound on the Frobenius norm of the answer as the paper states it, measured from the origin."""
        return math.sqrt(float(np.square(np.broadcast_to(self.magnitude, self.shape)).sum()))

    @property
    def relative_error(self) -> float:
        """Bound on the relative error that floats add to an entry of the answer."""
        return 0.0

    def extent(self, directions: Floats | None) -> Floats:
        """How far a record reaches along each direction, of shape (features,)."""
        return np.ones(self.features)

    def lift(self, variances: Floats, directions: Floats | None) -> tuple[Floats, Floats | None]:
        """Variances and directions of the answer's side, from those of the features."""
        return variances, directions

    @abstractmethod
    def evaluate(self, data: Any, *, clip: bool, missing: str) -> Floats:
        """The private answer, of shape `shape`."""

    def finish(self, matrix: Floats) -> Floats:
        """The noisy answer with what is public put back."""
        return matrix

    @property
    def possible(self) -> tuple[Floats, Floats]:
        """Least and largest value that each finished entry can have, broadcastable to `shape`."""
        return -self.magnitude, self.magnitude

    @property
    def public(self) -> NDArray[np.bool_] | None:
        """Entries that no neighbour changes, and that `finish` sets to their public value."""
        return None


def parse_records(records: Any) -> int:
    """The public number of records."""
    if isinstance(records, bool) or not isinstance(records, int | np.integer) or records < 1:
        raise ParameterError(
            f"records (the public number of records) must be a positive integer, got {show(records)} instead."
        )
    if records > _MOST_RECORDS:
        raise ParameterError(f"records must be at most 2^50, got {show(records)} instead.")
    return int(records)


def _function_name(function: Any) -> str | None:
    """What JSON holds of a function: that there was one, and its name."""
    return function if function is None or isinstance(function, str) else getattr(function, "__qualname__", "function")


@plain
@dataclass(frozen=True, eq=False)
class Query(MatrixQuery):
    """A function of the user's own, with the changes that it can make.

    Parameters
    ----------
    shape : tuple of int
        Shape of the answer.
    sensitivity : Sensitivity
        Must hold every change of the function's value as computed, between any two neighbours.
    bound : float or array_like of shape (m, n)
        Public bound on the absolute value of each entry. It is part of the domain: an answer outside is an error, since
        moving it inside could turn a change into one that the sensitivity does not hold.
    function : callable, optional
        From data to the answer. Without one, the data given to a release are the answer.
    side : 'rows', 'columns' or 'both'
        Which side directional noise acts on; 'both' is for symmetric answers.
    neighbours : 'replace' or 'add-remove'
        What the sensitivity was derived for.
    gamma_bound : float, optional
        Bound on the Frobenius norm, for the paper's Theorem 2, if it is known better than by `bound`.
    protects : str
        What one neighbour differs in, in words.
    relative_error : float
        Of computing the function, as a part of the norm of `bound`: changes may be as much larger than `sensitivity`.

    Examples
    --------
    >>> from matrixdp.sensitivity import FrobeniusBall
    >>> query = Query((2, 3), FrobeniusBall(0.1), bound=1.0, function=lambda data: data.mean(axis=0).reshape(2, 3))
    >>> query.features
    3
    """

    shape: tuple[int, int]
    sensitivity: Sensitivity
    bound: Any
    function: Callable[[Any], Any] | str | None = field(default=None, metadata={"plain": _function_name})
    side: str = "columns"
    neighbours: Neighbours = Neighbours.REPLACE
    gamma_bound: float | None = None
    protects: str = "one record"
    relative_error: float = 0.0

    def __post_init__(self) -> None:
        shape = tuple(self.shape)
        if len(shape) != 2 or not all(isinstance(n, int | np.integer) and n > 0 for n in shape):
            raise ParameterError(f"shape must be two positive integers, got {show(self.shape)} instead.")
        if self.side not in SIDES:
            raise ParameterError(f"side must be 'rows', 'columns' or 'both', got {show(self.side)} instead.")
        if self.side == "both" and shape[0] != shape[1]:
            raise ParameterError(
                f"side must be 'rows' or 'columns' for an answer of shape {shape}; 'both' is for symmetric ones."
            )
        if not isinstance(self.sensitivity, Sensitivity):
            raise ParameterError(
                "sensitivity must be a sensitivity set, such as FrobeniusBall(0.1) or Vertices(changes)."
            )
        if isinstance(self.sensitivity, Vertices) and self.sensitivity.changes.shape[1:] != shape:
            raise ParameterError(f"the vertices' changes must have shape (k, {shape[0]}, {shape[1]}).")
        bound = np.array(self.bound, np.float64)
        if not (np.isfinite(bound) & (bound > 0)).all() or bound.shape not in ((), shape):
            raise ParameterError(f"bound must be positive, finite, and one number or an array of shape {shape}.")
        object.__setattr__(self, "shape", (int(shape[0]), int(shape[1])))
        object.__setattr__(self, "bound", bound)
        object.__setattr__(self, "neighbours", Neighbours.parse(self.neighbours))

    @property
    def magnitude(self) -> Floats:
        """`bound`."""
        return np.broadcast_to(self.bound, self.shape)

    @property
    def gamma(self) -> float:
        """`gamma_bound`, or what `bound` implies."""
        return super().gamma if self.gamma_bound is None else self.gamma_bound

    def evaluate(self, data: Any, *, clip: bool, missing: str) -> Floats:
        """The function's value."""
        if isinstance(self.function, str):
            raise ParameterError(
                f"this query was read from JSON, without its function {self.function!r}; make it anew to release."
            )
        answer = np.asarray(self.function(data) if self.function else data)
        if answer.dtype.kind not in "biuf" or answer.shape != self.shape:
            raise DataError(
                f"the query's answer must be real numbers of shape {self.shape}, "
                f"got {answer.dtype} of {answer.shape} instead."
            )
        if not np.isfinite(answer).all():
            raise DataError("the query's answer must be finite, got NaN or infinity instead.")
        if not (np.abs(answer) <= self.bound).all():
            raise DataError("the query's answer must lie within its public bound (or gamma); widen it.")
        if self.gamma_bound is not None and np.linalg.norm(answer) > self.gamma_bound * (1 + 1e-12):
            raise DataError("the norm of the query's answer must be at most gamma; widen it.")
        if self.symmetric and not np.array_equal(answer, answer.T):
            raise DataError("the query's answer must be symmetric when side='both'.")
        return answer.astype(np.float64)


def paper_query(
    shape: tuple[int, int], *, sensitivity: float, gamma: float, side: str, neighbours: str = Neighbours.REPLACE
) -> Query:
    """The paper's view of a query: its L2 sensitivity and a bound on its norm, nothing else."""
    for name, value in (("sensitivity", sensitivity), ("gamma", gamma)):
        if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 < value < math.inf:
            raise ParameterError(f"{name} must be finite and greater than 0, got {show(value)} instead.")
    return Query(
        shape,
        FrobeniusBall(float(sensitivity)),
        float(gamma),
        side=side,
        neighbours=Neighbours.parse(neighbours),
        gamma_bound=float(gamma),
    )
