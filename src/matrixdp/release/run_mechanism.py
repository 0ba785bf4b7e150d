"""Releases by registered mechanisms: check, charge, run, check the result, store."""

from __future__ import annotations

import inspect
import os
from typing import Any

import numpy as np

from matrixdp.errors import MechanismError, ParameterError
from matrixdp.gdp import pure_mu
from matrixdp.ledger import Gaussian, Ledger, Pure, Receipt
from matrixdp.mechanisms.mechanism import check_stream
from matrixdp.noise import Stream
from matrixdp.privacy import Privacy
from matrixdp.queries import MatrixQuery
from matrixdp.queries.base import check_answer
from matrixdp.release.charging import Price, digest, list_read_options, make_once, open_account, rehearse_finish
from matrixdp.release.mechanism_release import MechanismRelease, check_content
from matrixdp.release.registry import TASKS, CostEvent, Mechanism, check_arguments, find_mechanism
from matrixdp.serialise import to_json_content


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
        As for `matrixdp.release.matrix.release`: the charge is committed before the mechanism runs, and a request id
        that was used before with the same query, budget and options returns the stored release without a charge.
    **options
        Passed to the mechanism.

    Raises
    ------
    ParameterError, DataError
        Before anything is charged: for wrong arguments and data, and for a mechanism with floating-point noise and a
        ledger.
    MechanismError
        If the result has the wrong type or shape, or a weaker guarantee than was charged. The charge stays spent, since
        noise was drawn.

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
    check_stream(stream, simulation=simulation)
    event = _check(mechanism, query, privacy, options)
    if ledger is not None and mechanism.comparison_only:
        raise ParameterError(
            f"ledger must be left out for {mechanism.name!r}: its noise is floating-point, whose low bits reveal the "
            "answer, so the release has no guarantee that could be charged. Use a mechanism with exact noise."
        )
    if request is not None:
        query.check_request()
    if ledger is not None:
        rehearse_finish(query)
    account = open_account(ledger, dataset, request, allowance, simulation=simulation)

    def find_price() -> Price:
        description = _describe(mechanism, query, privacy, options)
        found = _list_options(mechanism, query, privacy, data, options) if request is not None else {}
        return Price(event, query.neighbours, query.protected_unit, description, found)

    def make(_data: object, _receipt: Receipt | None) -> MechanismRelease:
        noise: dict[str, Any] = {"stream": stream, "simulation": simulation}
        released = mechanism.function(query, privacy, data, **noise, **options)
        problem = _problem(mechanism, released, query, event, simulation=simulation, charged=account is not None)
        if problem:
            spent = ", and its charge stays spent, since noise was drawn" if account is not None else ""
            raise MechanismError(f"mechanism {mechanism.name!r} {problem}. Nothing was released{spent}.")
        return released

    with np.errstate(all="ignore"):  # a warning would reveal private data
        paid = make_once(
            account,
            find_price,
            read=MechanismRelease.from_json,
            prepare=lambda: check_answer(query, query.evaluate(data, clip=True, missing="error")),  # errors of the data
            make=make,
        )
    released: MechanismRelease = paid.release
    return released


def _check(mechanism: Mechanism, query: Any, privacy: Any, options: dict[str, Any]) -> CostEvent:
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


def _describe(mechanism: Mechanism, query: MatrixQuery, privacy: Privacy, options: dict[str, Any]) -> dict[str, Any]:
    """The public description in the ledger, with a hash of all that was asked for."""
    return {
        "mechanism": mechanism.name,
        "query": type(query).__name__,
        "shape": list(query.shape),
        "epsilon": privacy.epsilon,
        "delta": privacy.delta,
        "inputs": digest((mechanism.name, query, privacy, sorted(options.items()))),
    }


def _list_options(
    mechanism: Mechanism, query: MatrixQuery, privacy: Privacy, data: Any, options: dict[str, Any]
) -> dict[str, Any]:
    """All public options by name."""
    return {
        "method": mechanism.name,
        "query": to_json_content(query),
        "epsilon": privacy.epsilon,
        "delta": privacy.delta,
        "options": {name: to_json_content(value) for name, value in options.items()},
        "reading": list_read_options(data),
    }


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
    if not _fits(mechanism, query, released.matrix.shape):
        return f"returned the shape {released.matrix.shape} for a query of shape {query.shape}"
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


def _fits(mechanism: Mechanism, query: MatrixQuery, shape: tuple[int, ...]) -> bool:
    tasks = [TASKS[name] for name in mechanism.tasks]
    return shape == query.shape or any(task.fits(query, shape) for task in tasks if isinstance(query, task.queries))
