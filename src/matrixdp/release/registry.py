"""Mechanisms by name: those of `matrixdp.baselines`, which register themselves, and those that a user registers."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar

from matrixdp.errors import MatrixDPError, ParameterError, show
from matrixdp.ledger import Approximate, Gaussian, Pure
from matrixdp.privacy import Privacy, check_privacy
from matrixdp.queries import Identity, MatrixQuery, SecondMoment
from matrixdp.queries.base import check_query
from matrixdp.release.mechanism_release import MechanismRelease

CostEvent = Gaussian | Pure | Approximate
Cost = Callable[[Privacy], CostEvent]
Function = TypeVar("Function", bound=Callable[..., MechanismRelease])
_SIGNATURE = ["query", "privacy", "data", "stream", "simulation"]
_MECHANISMS: dict[str, Mechanism] = {}


@dataclass(frozen=True)
class TableUse:
    """A use of mechanisms in tables: the queries that it takes, and the shapes that a result may have."""

    queries: tuple[type[MatrixQuery], ...]
    fits: Callable[[MatrixQuery, tuple[int, ...]], bool]


TASKS = {
    "records": TableUse((Identity,), lambda query, shape: shape[1] == query.shape[1]),
    "second-moment": TableUse((SecondMoment,), lambda query, shape: shape == query.shape),
    "components": TableUse((SecondMoment, Identity), lambda query, shape: shape[1] <= shape[0] == query.shape[1]),
    "regression": TableUse((SecondMoment,), lambda query, shape: shape == (query.shape[1], 1)),
}


@dataclass(frozen=True)
class Mechanism:
    """A mechanism and what is known of it before it runs.

    Attributes
    ----------
    name : str
    function : callable
        ``function(query, privacy, data, *, stream=None, simulation=False, **options) -> MechanismRelease``.
    cost : callable
        From a `Privacy` to the ledger event of one run: `Gaussian`, `Pure` or `Approximate`.
    tasks : tuple of str
        Of `TASKS`: in which tables the mechanism appears, and which shapes its result may have. Without any, the
        result must have the query's shape.
    check : callable, optional
        ``check(query, privacy, **options)`` raises `ParameterError` for what the mechanism does not take. It is called
        before anything is charged.
    comparison_only : bool
        Whether the noise is floating-point; such a mechanism can never be charged to a ledger.
    """

    name: str
    function: Callable[..., MechanismRelease]
    cost: Cost
    tasks: tuple[str, ...] = ()
    check: Callable[..., Any] | None = None
    comparison_only: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or not self.name.isprintable():
            raise ParameterError(f"name must be a printable, non-empty text, got {show(self.name)} instead.")
        if not callable(self.cost):
            raise ParameterError("cost must be a function from Privacy to Gaussian, Pure or Approximate.")
        if not set(self.tasks) <= set(TASKS):
            raise ParameterError(f"tasks must be a tuple of {', '.join(TASKS)}, got {show(self.tasks)} instead.")
        parameters = list(inspect.signature(self.function).parameters.values())
        if [one.name for one in parameters[:5]] != _SIGNATURE or any(
            one.kind is not one.KEYWORD_ONLY and one.kind is not one.VAR_KEYWORD for one in parameters[3:]
        ):
            raise ParameterError(
                f"mechanism {self.name!r} must have the signature "
                "(query, privacy, data, *, stream=None, simulation=False, **options)."
            )
        object.__setattr__(self, "tasks", tuple(self.tasks))

    @property
    def builtin(self) -> bool:
        """Whether it is one of `matrixdp.baselines`."""
        return str(self.function.__module__).startswith("matrixdp.")


def register_mechanism(
    name: str,
    *,
    cost: Cost,
    tasks: Iterable[str] = (),
    check: Callable[..., Any] | None = None,
    comparison_only: bool = False,
) -> Callable[[Function], Function]:
    """Decorator: register a function as a mechanism, for `release_mechanism` and the tables that compare mechanisms.

    Parameters are the attributes of `Mechanism`. A module may register a name again, such as after an edit in a
    notebook; a name that another module has registered raises `ParameterError`.

    Privacy
    -------
    The guarantee of the mechanism is the author's claim. `release_mechanism` refuses a result whose claim is weaker
    than the event that `cost` charges; it cannot check that the noise meets the claim.

    Examples
    --------
    >>> from matrixdp.baselines import find_mechanism
    >>> find_mechanism("Laplace").cost(Privacy(1, 1e-5))
    Pure(epsilon=1.0)
    """

    def register(function: Function) -> Function:
        mechanism = Mechanism(name, function, cost, tuple(tasks), check, comparison_only)
        other = _MECHANISMS.get(name)
        if other is not None and other.function.__module__ != function.__module__:
            kind = "the built-in mechanism" if other.builtin else "a mechanism"
            raise ParameterError(
                f"name must be new, got {name!r}, which is {kind} of {other.function.__module__}, instead."
            )
        _MECHANISMS[name] = mechanism
        return function

    return register


def find_mechanism(name: str) -> Mechanism:
    """The mechanism registered under a name."""
    if name not in _MECHANISMS:
        raise ParameterError(f"name must be one of {', '.join(_MECHANISMS)}, got {show(name)} instead.")
    return _MECHANISMS[name]


def registered_mechanisms(task: str | None = None) -> list[Mechanism]:
    """All mechanisms, or those for a task of `TASKS`, in the order of their registration."""
    return [mechanism for mechanism in _MECHANISMS.values() if task is None or task in mechanism.tasks]


def load_plugins(modules: Iterable[str]) -> None:
    """Import modules that register mechanisms, from the current folder or from ``sys.path``."""
    modules = list(modules)
    if modules and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    for module in modules:
        try:
            import_module(module)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{module}.".startswith(f"{error.name}."):
                raise
            raise ParameterError(
                f"plugin must be an importable module, got {show(module)} instead: run from its folder, "
                "or put the folder on PYTHONPATH."
            ) from None
        except MatrixDPError:
            raise
        except Exception as error:
            line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
            raise ParameterError(
                f"plugin {show(module)} cannot be imported: {type(error).__name__}{line}: {error}."
            ) from error


def check_arguments(query: Any, privacy: Any) -> None:
    """Raise a `ParameterError` unless `query` is a query on records and `privacy` a budget."""
    check_query(query)
    if query.person is not None:
        raise ParameterError("query must have no person: mechanisms to compare with protect one record.")
    check_privacy(privacy)


def gaussian_cost(privacy: Privacy) -> Gaussian:
    """The event of a Gaussian mechanism that spends the whole budget."""
    return Gaussian(privacy.mu)


def pure_cost(privacy: Privacy) -> Pure:
    """The event of an epsilon-DP mechanism."""
    return Pure(privacy.epsilon)
