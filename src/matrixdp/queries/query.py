"""A query defined by a user's function."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from matrixdp.checks import check_magnitude, check_magnitudes, check_number, to_floats
from matrixdp.domain.person import Person
from matrixdp.errors import DataError, ParameterError, show
from matrixdp.privacy import Neighbours
from matrixdp.queries.base import MatrixQuery, check_answer, check_query
from matrixdp.sensitivity import Sensitivity
from matrixdp.serialise import builtin_kind
from matrixdp.types import Floats


def _function_name(function: Any) -> str | None:
    """The name of a function, which is what JSON holds of it."""
    return function if function is None or isinstance(function, str) else getattr(function, "__qualname__", "function")


@builtin_kind
@dataclass(frozen=True, eq=False, repr=False)
class Query(MatrixQuery):
    """A function of your own, with the changes that one record can make to its value.

    Parameters
    ----------
    shape : tuple of int
        Shape of the answer.
    sensitivity : Sensitivity
        Must hold every change of the function's value as computed, between any two neighbours.
    bound : float or array_like of shape (m, n)
        Public bound on the absolute value of each entry. It is part of the domain: an answer outside is an error, since
        clipping it could produce a change that the sensitivity does not hold.
    function : callable, optional
        Maps the data to the answer. Without one, the data given to a release are the answer.
    side : 'rows', 'columns' or 'both'
        Which side directional noise acts on; 'both' is for symmetric answers.
    neighbours : 'replace' or 'add-remove'
        What the sensitivity was derived for.
    gamma_bound : float, optional
        Bound on the Frobenius norm, for the paper's Theorem 2, if it is known better than by `bound`.
    person : str or Person, optional
        The column of ids, if the sensitivity is that of all rows of one person. The ledger is then charged
        for persons.
    protects : str
        What one neighbour differs in, in words.
    relative_error : float
        Bound on the floating-point error of each entry, relative to its `bound`; the noise is increased to cover it.
    name, version : str, optional
        Identify the function in a ledger. A request id needs both: the ledger cannot see a function's code, and
        would return the stored answer of another function. Change the version whenever the function's result changes.

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
    function: Callable[[Any], Any] | str | None = field(default=None, metadata={"to_json": _function_name})
    side: str = field(default="columns", kw_only=True)
    neighbours: Neighbours = field(default=Neighbours.REPLACE, kw_only=True)
    gamma_bound: float | None = field(default=None, kw_only=True)
    protects: str = field(default="one record", kw_only=True)
    relative_error: float = field(default=0.0, kw_only=True)
    person: Person | None = field(default=None, kw_only=True, metadata={"omit_none": True})
    name: str | None = field(default=None, kw_only=True, metadata={"omit_none": True})
    version: str | None = field(default=None, kw_only=True, metadata={"omit_none": True})

    def __post_init__(self) -> None:
        bound = to_floats(self.bound, "bound")
        if not (np.isfinite(bound) & (bound > 0)).all() or bound.shape not in ((), tuple(self.shape)):
            raise ParameterError(f"bound must be positive, finite, and one number or an array of shape {self.shape}.")
        check_magnitudes(bound, "bound")
        for label in (self.name, self.version):
            if label is not None and not (isinstance(label, str) and label):
                raise ParameterError(f"name and version must be strings that are not empty, got {show(label)} instead.")
        if self.gamma_bound is not None:
            object.__setattr__(self, "gamma_bound", check_magnitude(self.gamma_bound, "gamma_bound"))
        error = check_number(self.relative_error, "relative_error", at_least=0, below=1)
        object.__setattr__(self, "relative_error", error)
        object.__setattr__(self, "shape", tuple(self.shape))
        object.__setattr__(self, "bound", bound)
        object.__setattr__(self, "neighbours", Neighbours.parse(self.neighbours))
        object.__setattr__(self, "person", Person.parse(self.person))
        check_query(self)
        object.__setattr__(self, "shape", tuple(map(int, self.shape)))
        if self.person is not None and self.protects == "one record":
            object.__setattr__(self, "protects", self.protected_unit.words)

    @property
    def magnitude(self) -> Floats:
        return np.broadcast_to(self.bound, self.shape)

    @property
    def gamma(self) -> float:
        return super().gamma if self.gamma_bound is None else self.gamma_bound

    def check_request(self) -> None:
        if self.function is not None and None in (self.name, self.version):
            raise ParameterError(
                "request must be left out for a Query whose function has no name and version, since two functions "
                "would share one stored answer. Give Query(..., name='...', version='1'), and a new version whenever "
                "the function changes."
            )

    def evaluate(self, data: Any, *, clip: bool, missing: str) -> Floats:
        if isinstance(self.function, str):
            raise ParameterError(
                f"this query was read from JSON, without its function {self.function!r}; create it again to release."
            )
        answer = np.array(check_answer(self, self.function(data) if self.function else data, rounding=0.0))
        if self.gamma_bound is not None and np.linalg.norm(answer) > self.gamma_bound * (1 + 1e-12):
            raise DataError("the norm of the query's answer must be at most gamma; widen it.")
        return answer
