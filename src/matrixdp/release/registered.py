"""Registered mechanisms: their names, their results, and releases by them that are charged.

Those of `matrixdp.baselines` register themselves; a user registers others with `register_mechanism`.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, TypeVar

import numpy as np

from matrixdp.display import matrix_text
from matrixdp.errors import MatrixDPError, MechanismError, ParameterError, show
from matrixdp.gdp import pure_mu
from matrixdp.ledger import Approximate, Gaussian, Ledger, Pure, Receipt
from matrixdp.noise import Stream
from matrixdp.privacy import Privacy, check_privacy
from matrixdp.queries import Identity, MatrixQuery, SecondMoment
from matrixdp.queries.base import check_answer, check_query
from matrixdp.release.charging import Price, check_chargeable, digest, list_read_options, make_once, open_account
from matrixdp.release.released import MatrixRelease
from matrixdp.release.result import Release
from matrixdp.serialise import from_json_content, to_json_content
from matrixdp.types import Floats
from matrixdp.version import __version__

CostEvent = Gaussian | Pure | Approximate
Cost = Callable[[Privacy], CostEvent]
Function = TypeVar("Function", bound="Callable[..., MechanismRelease]")
_SIGNATURE = ["query", "privacy", "data", "stream", "simulation"]
_MECHANISMS: dict[str, Mechanism] = {}


@dataclass(frozen=True, eq=False)
class MechanismRelease(MatrixRelease):
    """A noisy matrix, the mechanism that made it, and the guarantee that it has.

    Attributes
    ----------
    query : MatrixQuery
        What was answered; the guarantee is for its neighbours.
    matrix : float64 array
        A noisy answer of the query's shape; or directions as columns, of shape (m, k); or pseudo-records, of shape
        (draws, m); or coefficients, of shape (m, 1).
    mechanism : str
        The name under which the mechanism is registered.
    privacy : Privacy
        The budget that was asked for.
    epsilon, delta : float
        The guarantee, never weaker than `privacy`; `delta` is 0 for a pure one.
    comparison_only : bool
        Whether the noise is floating-point. The low bits of floats reveal the answer (Mironov 2012), so the guarantee
        holds for ideal real numbers only, and the release must not be published.
    simulation : bool
        Whether the noise came from a seeded stream, which protects nothing.
    mu : float or None
        The guarantee as Gaussian differential privacy, for mechanisms with Gaussian noise.
    std : float64 array of the matrix's shape, or None
        Standard deviation of the noise in each entry; None if it is unknown.
    parameters : mapping from str to float
        Public numbers of the mechanism, such as the scale of its noise.
    """

    FORMAT = "matrixdp mechanism release 1"

    query: MatrixQuery
    matrix: Floats
    mechanism: str
    privacy: Privacy
    epsilon: float
    delta: float
    comparison_only: bool
    simulation: bool = False
    mu: float | None = None
    std: Floats | None = None
    parameters: Mapping[str, float] = field(default_factory=dict)
    version: str = __version__

    @classmethod
    def from_release(cls, mechanism: str, release: Release) -> MechanismRelease:
        """The release of a design, under the name of a mechanism."""
        design = release.design
        spent = min(design.epsilon, design.privacy.epsilon), design.privacy.delta
        known: dict[str, Any] = {"simulation": release.simulation, "mu": design.distance, "std": design.std}
        known |= {"comparison_only": False, "parameters": {"std": design.rmse}}
        return cls(design.query, release.matrix, mechanism, design.privacy, *spent, **known)

    def __repr__(self) -> str:
        return f"<MechanismRelease of {self.query.summary} by {self._guarantee()}; print shows the matrix>"

    def __str__(self) -> str:
        return f"{self._guarantee()}\n{matrix_text(self.matrix)}"

    @property
    def _spent(self) -> tuple[float, float]:
        return self.epsilon, self.delta

    @property
    def _title(self) -> str:
        return f"{super()._title}, by {self.mechanism}"

    def _guarantee(self, *more: str) -> str:
        return f"{self.mechanism}: {super()._guarantee(*more)}"

    def _content(self) -> dict[str, Any]:
        return {
            **super()._content(),
            **{name: getattr(self, name) for name in ("mechanism", "comparison_only")},
            **{name: float(getattr(self, name)) for name in ("epsilon", "delta")},
            "mu": None if self.mu is None else float(self.mu),
            "parameters": {name: to_json_content(value) for name, value in self.parameters.items()},
            "privacy": to_json_content(self.privacy),
            "query": to_json_content(self.query),
            "std": None if self.std is None else self.std.tolist(),
            "matrix": self.matrix.tolist(),
        }

    @classmethod
    def _read(cls, content: Any) -> MechanismRelease:
        kinds = {"mechanism": str, "version": str, "epsilon": float, "delta": float, "mu": float}
        kinds |= {"comparison_only": bool, "simulation": bool}
        found = {name: content[name] for name in kinds}
        for name, kind in kinds.items():
            if type(found[name]) is not kind and (name, found[name]) != ("mu", None):
                raise KeyError(name)
        released = cls(
            query=from_json_content(content["query"]),
            matrix=np.array(content["matrix"], np.float64),
            privacy=from_json_content(content["privacy"]),
            std=None if content["std"] is None else np.array(content["std"], np.float64),
            parameters=dict(content["parameters"]),
            **found,
        )
        check_content(released)
        return released


def check_content(release: MechanismRelease) -> None:
    """Raise unless the parts of a release fit together: arrays, and a guarantee within the budget."""
    query, privacy, matrix, std = release.query, release.privacy, release.matrix, release.std
    if not isinstance(query, MatrixQuery) or not isinstance(privacy, Privacy):
        raise ParameterError("a mechanism's release must have a query and Privacy(epsilon, delta).")
    if not isinstance(matrix, np.ndarray) or matrix.dtype != np.float64 or matrix.ndim != 2:
        raise ParameterError("matrix must be a float64 array with two axes.")
    if not np.isfinite(matrix).all():
        raise ParameterError("matrix must be finite.")
    if std is not None and (np.shape(std) != matrix.shape or not np.isfinite(std).all()):
        raise ParameterError(f"std must be None or a finite array of the matrix's shape {matrix.shape}.")
    if not (0 <= release.epsilon <= privacy.epsilon and 0 <= release.delta <= privacy.delta):
        raise ParameterError(
            f"epsilon and delta must be at most those of the budget, ({privacy.epsilon:g}, {privacy.delta:g}), "
            f"got ({release.epsilon:g}, {release.delta:g}) instead."
        )
    if release.mu is not None and not 0 < release.mu <= privacy.mu:
        raise ParameterError(f"mu must be positive and at most {privacy.mu:g}, got {release.mu:g} instead.")


Fits = Callable[[MatrixQuery, tuple[int, ...]], bool]
# Uses of mechanisms in tables: the queries that each takes, and the shapes that a result may have.
TASKS: dict[str, tuple[tuple[type[MatrixQuery], ...], Fits]] = {
    "records": ((Identity,), lambda query, shape: shape[1] == query.shape[1]),
    "second-moment": ((SecondMoment,), lambda query, shape: shape == query.shape),
    "components": ((SecondMoment, Identity), lambda query, shape: shape[1] <= shape[0] == query.shape[1]),
    "regression": ((SecondMoment,), lambda query, shape: shape == (query.shape[1], 1)),
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
        except MatrixDPError:
            raise
        except Exception as error:
            line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
            raise ParameterError(
                f"plugin {show(module)} cannot be imported: {type(error).__name__}{line}: {error}. It is looked for in "
                "the current folder and on PYTHONPATH."
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


def release_mechanism(
    mechanism: str | Mechanism,
    query: MatrixQuery,
    privacy: Privacy,
    data: Any,
    *,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    dataset: str | None = None,
    request: str | None = None,
    allowance: str | None = None,
    stream: Stream | None = None,
    simulation: bool = False,
    **options: Any,
) -> MechanismRelease:
    """Release the result of a registered mechanism on private data.

    Parameters
    ----------
    mechanism : str or Mechanism
        The name of a registered mechanism, or a mechanism.
    query : MatrixQuery
    privacy : Privacy
    data : array or table of shape (records, features), or what the query takes
    ledger, dataset, request, allowance, stream, simulation
        As for `matrixdp.Design.release`: the charge is committed before the mechanism runs, and a request id
        that was used before with the same query, budget and options returns the stored release without a charge.
    **options
        Passed to the mechanism.

    Raises
    ------
    MechanismError
        If the result has the wrong type or shape, or a weaker guarantee than was charged. The charge stays spent, since
        noise was drawn. All other errors are raised before anything is charged.

    Privacy
    -------
    That of the mechanism, as its author claims, for the query's neighbours. The ledger is charged with the event that
    the mechanism's `cost` gives for `privacy`.

    Examples
    --------
    >>> from matrixdp.domain.bounds import Bounds
    >>> from matrixdp.queries import Identity
    >>> query = Identity(Bounds([0, 0], [1, 1]), records=2)
    >>> release_mechanism("Laplace", query, Privacy(1, 1e-5), [[0, 1], [1, 1]]).matrix.shape
    (2, 2)
    """
    mechanism = mechanism if isinstance(mechanism, Mechanism) else find_mechanism(mechanism)
    event = _find_cost(mechanism, query, privacy, options)
    if ledger is not None and mechanism.comparison_only:
        raise ParameterError(
            f"ledger must be left out for {mechanism.name!r}: its noise is floating-point, whose low bits reveal the "
            "answer, so the release has no guarantee that could be charged. Use a mechanism with exact noise."
        )
    if ledger is not None:
        check_chargeable(query, request)
    account = open_account(ledger, dataset, request, allowance, stream=stream, simulation=simulation)

    def find_price() -> Price:
        budget = {"epsilon": privacy.epsilon, "delta": privacy.delta}
        description = {
            "mechanism": mechanism.name,
            "query": type(query).__name__,
            "shape": list(query.shape),
            **budget,
            "inputs": digest((mechanism.name, query, privacy, sorted(options.items()))),
        }
        asked = {
            "method": mechanism.name,
            "query": to_json_content(query),
            **budget,
            "options": {name: to_json_content(value) for name, value in options.items()},
            "reading": list_read_options(data),
        }
        return Price(event, query.neighbours, query.protected_unit, description, asked)

    def make(_data: object, _receipt: Receipt | None) -> MechanismRelease:
        noise: dict[str, Any] = {"stream": stream, "simulation": simulation}
        released = mechanism.function(query, privacy, data, **noise, **options)
        problem = _problem(mechanism, released, query, event, simulation=simulation, charged=account is not None)
        if problem:
            spent = ", and its charge stays spent, since noise was drawn" if account is not None else ""
            raise MechanismError(f"mechanism {mechanism.name!r} {problem}. Nothing was released{spent}.")
        return released

    with np.errstate(all="ignore"):  # a warning would reveal private data
        released: MechanismRelease
        released, _ = make_once(
            account,
            find_price,
            read=MechanismRelease.from_json,
            prepare=lambda: check_answer(query, query.evaluate(data, clip=True, missing="error")),  # errors of the data
            make=make,
        )
    return released


def _find_cost(mechanism: Mechanism, query: Any, privacy: Any, options: dict[str, Any]) -> CostEvent:
    """The event to charge, after all arguments have been checked."""
    check_arguments(query, privacy)
    try:
        inspect.signature(mechanism.function).bind(query, privacy, None, **options)
    except TypeError as error:
        raise ParameterError(f"options must be those of {mechanism.name!r}: {error}.") from None
    if mechanism.check is not None:
        mechanism.check(query, privacy, **options)
    event = mechanism.cost(privacy)
    if not isinstance(event, CostEvent):
        raise ParameterError(
            f"the cost of {mechanism.name!r} must be Gaussian, Pure or Approximate, got {type(event).__name__} instead."
        )
    return event


def _problem(
    mechanism: Mechanism, released: Any, query: MatrixQuery, event: CostEvent, *, simulation: bool, charged: bool
) -> str:
    """Why a result is not what the mechanism was registered for; empty if it is."""
    if not isinstance(released, MechanismRelease):
        return f"returned {type(released).__name__} instead of MechanismRelease"
    if released.query is not query or released.simulation != simulation or released.mechanism != mechanism.name:
        return "must return query and simulation as given, and its registered name"
    if charged and released.comparison_only:
        return "has floating-point noise, whose low bits reveal the answer; register it with comparison_only=True"
    try:
        check_content(released)
    except ParameterError as error:
        return f"returned a release that contradicts itself: {str(error).rstrip('.')}"
    shape, tasks = released.matrix.shape, [TASKS[name] for name in mechanism.tasks]
    if shape != query.shape and not any(fits(query, shape) for kinds, fits in tasks if isinstance(query, kinds)):
        return f"returned the shape {shape} for a query of shape {query.shape}"
    if not covers(event, released):
        claim = f"epsilon {released.epsilon:g}, delta {released.delta:g}, mu {released.mu}"
        return f"claims {claim}, which is weaker than its cost {event}"
    return ""


def covers(event: CostEvent, released: MechanismRelease) -> bool:
    """Whether the guarantee of a release is at least as strong as an event.

    A guarantee (epsilon, delta) at a single delta does not imply Gaussian differential privacy, so a `Gaussian` event
    needs a release that states `mu`, or a pure one.
    """
    pure = released.delta == 0
    if isinstance(event, Gaussian):
        if released.mu is not None:
            return released.mu <= event.mu
        return pure and (released.epsilon == 0 or pure_mu(released.epsilon) <= event.mu)
    if isinstance(event, Pure):
        return pure and released.epsilon <= event.epsilon
    return released.epsilon <= event.epsilon and released.delta <= event.delta
