"""What a release costs, where it is charged, and the order of its steps: find, check, charge, make, keep."""

import hashlib
import json
import os
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np

from matrixdp.adaptive.moment import PreparedFit
from matrixdp.adaptive.scales import PreparedScales
from matrixdp.design.design import Design
from matrixdp.errors import ParameterError, RequestPendingError
from matrixdp.ledger import Event, Gaussian, Ledger, Receipt
from matrixdp.mechanisms.mechanism import check_stream, current_answer
from matrixdp.noise import Stream
from matrixdp.privacy import Neighbours, Unit
from matrixdp.queries import MatrixQuery
from matrixdp.records import Records
from matrixdp.serialise import to_json_content
from matrixdp.version import __version__

P = TypeVar("P")


@dataclass(frozen=True)
class Price:
    """What a release is charged, and what it was asked for. Public, and fixed before the data are read.

    `description` is the same on every machine and in every version; a repeat must have all `options` again.
    """

    event: Event
    neighbours: Neighbours
    unit: Unit
    description: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Account:
    """A data set in a ledger that pays for a release; the ledger keeps the release if it has a `request` id."""

    ledger: Ledger
    dataset: str
    request: str | None = None
    allowance: str | None = None

    def stored(self, price: Price, *, wait: bool = True) -> str | None:
        """The release of an earlier request with the same id, as JSON text; waits if it is in progress."""
        if self.request is None:
            return None
        return self.ledger.stored(
            self.dataset,
            self.request,
            event=price.event,
            description=price.description,
            options=price.options,
            wait=self.ledger.wait if wait else 0.0,
        )

    def was_charged(self) -> bool:
        """Whether the request is stored or pending; the release compares its options, and waits for it."""
        try:
            return self.request is not None and self.ledger.stored(self.dataset, self.request) is not None
        except RequestPendingError:
            return True

    def charge_or_find(self, price: Price, payload: str | None = None) -> Receipt | str:
        """Commit the charge, or return the release of another process that charged the same request first.

        A `payload` is the release, where it is known before noise is drawn.
        """
        try:
            return self.ledger.charge(
                self.dataset,
                price.event,
                neighbours=price.neighbours,
                unit=price.unit,
                description=price.description,
                request=self.request,
                options=price.options if self.request is not None else None,
                allowance=self.allowance,
                payload=payload,
            )
        except RequestPendingError:
            if (found := self.stored(price)) is None:
                raise
            return found


class Paid(NamedTuple):
    """A release, and the receipt of the charge that paid for it now: None if it was stored before, or costs nothing."""

    release: Any
    receipt: Receipt | None


def make_once(
    account: Account | None,
    price: Callable[[], Price],
    *,
    read: Callable[[str], Any],
    prepare: Callable[[], P],
    make: Callable[[P, Receipt | None], Any],
    ready: Callable[[], object] | None = None,
) -> Paid:
    """Return the stored release of an earlier request, or check, charge, make and store a new one, in this order.

    Without an `account` nothing is charged, and `price` is not called. `read` reads a stored release from its text.
    `prepare` reads the private data, and raises every error that data and parameters can have; then `ready` is called.
    `make` draws noise, from what `prepare` returned and the receipt.

    Privacy
    -------
    The charge is committed before `make` is called. After an error in `make` it stays spent.
    """
    cost = None if account is None else price()
    if account is not None and cost is not None:
        stored = account.stored(cost)
        if stored is not None:
            return Paid(read(stored), None)
        # Before the data are read, whose errors tell about units that the data set does not promise.
        account.ledger.require(account.dataset, neighbours=cost.neighbours, unit=cost.unit)
    prepared = prepare()
    if ready is not None:
        ready()
    if account is None or cost is None:
        return Paid(make(prepared, None), None)
    receipt = account.charge_or_find(cost)
    if isinstance(receipt, str):
        return Paid(read(receipt), None)
    released = make(prepared, receipt)
    account.ledger.complete(receipt, "" if account.request is None else released.to_json())  # if it can be asked for
    return Paid(released, receipt)


def release_fit(
    prepared: PreparedFit | PreparedScales,
    *,
    ledger: str | os.PathLike[str] | None = None,
    dataset: str | None = None,
    allowance: str | None = None,
) -> Any:
    """Charge the whole budget of a prepared fit to the ledger at a path, as one Gaussian event, and fit."""
    budget = prepared.budget
    account = open_account(ledger, dataset, None, allowance, simulation=budget.simulation)
    spent = {"epsilon": budget.privacy.epsilon, "delta": budget.privacy.delta, "version": __version__}
    price = Price(Gaussian(budget.privacy.mu), budget.neighbours, budget.unit, {**prepared.description, **spent})
    with nullcontext() if account is None else account.ledger:  # without a request id, so that nothing is read
        made = make_once(account, lambda: price, read=str, prepare=lambda: prepared, make=lambda fit, _: fit.fit())
    return made.release


def open_account(
    ledger: Ledger | str | os.PathLike[str] | None,
    dataset: str | None,
    request: str | None = None,
    allowance: str | None = None,
    *,
    stream: Stream | None = None,
    simulation: bool = False,
) -> Account | None:
    """The account that a release names, or None if it names none; `matrixdp.Design.release` explains them."""
    check_stream(stream, simulation=simulation)
    if ledger is None:
        if dataset is not None or request is not None or allowance is not None:
            raise ParameterError(
                "ledger must be given with dataset, request or allowance: nothing can be charged without it."
            )
        return None
    if dataset is None:
        raise ParameterError("dataset must be given with a ledger: the name under which the data were registered.")
    if simulation or current_answer() is not None:
        raise ParameterError(
            "ledger must be left out for a simulation or an audit, which protects nothing and costs nothing."
        )
    return Account(ledger if isinstance(ledger, Ledger) else Ledger.open(ledger), dataset, request, allowance)


def design_price(design: Design, data: Any, *, clip: bool, missing: str, request: str | None) -> Price:
    """The price of the release of a design, whose options are its inputs, and how records are read."""
    check_chargeable(design.query, request)
    options = {
        "method": "plain",
        "query": to_json_content(design.query),
        "epsilon": design.privacy.epsilon,
        "delta": design.privacy.delta,
        "share": design.share,
        "calibration": design.calibration,
        "allocation": to_json_content(design.allocation),
        "directions": to_json_content(design.given_directions),
        "structured": design.structure is not None,
        "clip": bool(clip),
        "missing": missing,
        "reading": list_read_options(data),
    }
    return Price(design.event, design.neighbours, design.unit, describe_design(design), options)


def check_chargeable(query: MatrixQuery, request: str | None) -> None:
    """Raise a `ParameterError` if a query cannot have a request id, or a user's own one cannot finish an answer."""
    if request is not None:
        query.check_request()
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


def list_read_options(data: Any) -> dict[str, Any]:
    """How the values in files are read, where it is not the default."""
    return dict(data.read_options) if isinstance(data, Records) else {}


def digest(values: Any) -> str:
    """SHA-256 of values that `matrixdp.serialise.to_json_content` can write."""
    try:
        text = json.dumps(to_json_content(values), allow_nan=False)
    except ValueError as error:
        if isinstance(error, ParameterError):
            raise
        raise ParameterError("a query or allocation with NaN or infinite fields cannot be charged.") from None
    return hashlib.sha256(text.encode()).hexdigest()
