"""Where a release is charged: a ledger, the data set's name in it, and perhaps a request id."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from matrixdp.design.design import Design
from matrixdp.errors import ParameterError, RequestPendingError
from matrixdp.ledger import Event, Ledger, Receipt
from matrixdp.privacy import Neighbours, Unit
from matrixdp.queries import MatrixQuery
from matrixdp.release.interception import current_answer
from matrixdp.serialise import to_json_content


@dataclass(frozen=True)
class Account:
    """Where a release is charged, for what, and under which request id.

    Attributes
    ----------
    ledger : Ledger
    dataset : str
    request : str or None
    allowance : str or None
    event : Gaussian, Pure or Approximate
        What is charged.
    neighbours : Neighbours
    unit : Unit
        What the release protects.
    description : dict
        What was asked for: public, and the same on every machine and in every version.
    options : dict
        All public options by name, which a repeat of the request must have again; empty without a request id.
    """

    ledger: Ledger
    dataset: str
    request: str | None
    allowance: str | None
    event: Event
    neighbours: Neighbours
    unit: Unit
    description: dict[str, Any]
    options: dict[str, Any]

    def stored(self, *, wait: bool = True) -> str | None:
        """The release of an earlier request with the same id, as JSON text; waits if it is in progress."""
        if self.request is None:
            return None
        return self.ledger.stored(
            self.dataset,
            self.request,
            event=self.event,
            description=self.description,
            options=self.options,
            wait=self.ledger.wait if wait else 0.0,
        )

    def charge(self) -> Receipt:
        """Commit the charge; called before any noise is drawn."""
        return self.ledger.charge(
            self.dataset,
            self.event,
            neighbours=self.neighbours,
            unit=self.unit,
            description=self.description,
            request=self.request,
            options=self.options if self.request is not None else None,
            allowance=self.allowance,
        )

    def charge_or_find(self) -> Receipt | str:
        """Commit the charge, or return the release of another process that charged the same request first."""
        try:
            return self.charge()
        except RequestPendingError:
            if (found := self.stored()) is None:
                raise
            return found

    def complete(self, receipt: Receipt, text: Callable[[], str]) -> None:
        """Mark the charge as released; the release's text is kept only if it can be asked for again."""
        self.ledger.complete(receipt, text() if self.request is not None else "")


def open_account(
    design: Design,
    ledger: Ledger | str | os.PathLike[str] | None,
    dataset: str | None,
    request: str | None,
    allowance: str | None,
    *,
    simulation: bool,
    options: Callable[[], dict[str, Any]],
) -> Account | None:
    """The account that the release of a design names, or None if it names none."""
    if ledger is None:  # nothing to describe
        check_account(ledger, dataset, request, allowance, simulation=simulation)
        return None
    rehearse_finish(design.query)
    if request is not None:
        design.query.check_request()
    describe = partial(describe_design, design)
    account = (ledger, dataset, request, allowance)
    return open_account_for(design.event, design.query, describe, *account, simulation=simulation, options=options)


def open_account_for(
    event: Event,
    query: MatrixQuery,
    describe: Callable[[], dict[str, Any]],
    ledger: Ledger | str | os.PathLike[str] | None,
    dataset: str | None,
    request: str | None,
    allowance: str | None,
    *,
    simulation: bool,
    options: Callable[[], dict[str, Any]],
) -> Account | None:
    """The account that a release names, to be charged with `event` for a query, or None if it names none.

    `options` returns all public options of the release; they are needed for a request id only.
    """
    check_account(ledger, dataset, request, allowance, simulation=simulation)
    if ledger is None or dataset is None:
        return None
    opened = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    found = options() if request is not None else {}
    unit = query.protected_unit
    return Account(opened, dataset, request, allowance, event, query.neighbours, unit, describe(), found)


def rehearse_finish(query: MatrixQuery) -> None:
    """Raise a `ParameterError` if a query of the user's own cannot finish an answer, which would be too late later."""
    if type(query).__module__.partition(".")[0] == "matrixdp":
        return
    try:
        finished = query.finish(np.zeros(query.shape))
    except Exception as error:
        raise ParameterError(
            f"{type(query).__name__}.finish must take any answer, but for one of zeros it raises {error!r}."
        ) from error
    if not isinstance(finished, np.ndarray) or finished.shape != query.shape or finished.dtype != np.float64:
        raise ParameterError(f"{type(query).__name__}.finish must return a float64 array of shape {query.shape}.")


def describe_design(design: Design) -> dict[str, Any]:
    """What a design was made for, with a hash of all its inputs."""
    asked = (design.query, design.privacy, design.share, design.calibration, design.allocation, design.given_directions)
    return {
        "query": type(design.query).__name__,
        "shape": list(design.query.shape),
        "epsilon": design.privacy.epsilon,
        "delta": design.privacy.delta,
        "calibration": design.calibration,
        "allocation": design.allocation.rule,
        "design": digest(asked),
    }


def digest(values: Any) -> str:
    """SHA-256 of values that `matrixdp.serialise.to_json_content` can write."""
    try:
        text = json.dumps(to_json_content(values), allow_nan=False)
    except ValueError as error:
        if isinstance(error, ParameterError):
            raise
        raise ParameterError("a query or allocation with NaN or infinite fields cannot be charged.") from None
    return hashlib.sha256(text.encode()).hexdigest()


def check_account(
    ledger: Any, dataset: str | None, request: str | None = None, allowance: str | None = None, *, simulation: bool
) -> None:
    """An error for a ledger without a data set's name, a name without a ledger, or a simulation that is charged."""
    if ledger is None:
        if dataset is not None or request is not None or allowance is not None:
            raise ParameterError(
                "ledger must be given with dataset, request or allowance: nothing can be charged without it."
            )
    elif dataset is None:
        raise ParameterError("dataset must be given with a ledger: the name under which the data were registered.")
    elif simulation or current_answer() is not None:
        raise ParameterError(
            "ledger must be left out for a simulation or an audit, which protects nothing and costs nothing."
        )
