"""Requests for a charge, in the form in which they are stored and compared, and checks of their arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matrixdp.errors import LedgerError, ParameterError, RequestPendingError, show
from matrixdp.ledger.chain import canonical_json
from matrixdp.ledger.differences import Difference, find_differences, list_differences, shorten_options
from matrixdp.ledger.entry_table import Row
from matrixdp.ledger.events import Event, event_from_json, event_to_json
from matrixdp.ledger.values import Receipt


@dataclass(frozen=True)
class ChargeRequest:
    """An event, its description and the options of its request as JSON content; any may be omitted."""

    content: Mapping[str, Any]

    @classmethod
    def from_event(
        cls, event: Event | None, description: Mapping[str, Any] | None, options: Mapping[str, Any] | None = None
    ) -> ChargeRequest:
        """The request for an event, or a `ParameterError` if it cannot be written as JSON."""
        content: dict[str, Any] = {}
        if event is not None:
            content["event"] = event_to_json(event)
        if description is not None:
            content["description"] = _to_plain_json(description, "description")
        if options is not None:
            content["options"] = shorten_options(_to_plain_json(options, "options"))
        return cls(content)

    def require_match(self, charge: Row) -> None:
        """Raise a `LedgerError` if an earlier `charge` with the same id was for something else.

        Earlier versions stored no options; then the event and the description are compared, and nothing else.
        """
        earlier = charge.content()
        for part in ("options", "description", "event"):
            if part not in self.content or (part == "options" and part not in earlier):
                continue
            name = part if part == "event" else ""
            if differences := find_differences(earlier[part], self.content[part], name):
                raise changed_request_error(charge.dataset, charge.request, f"at entry {charge.entry} ", differences)


def changed_request_error(
    dataset: str | None, request: str | None, where: str, differences: Sequence[Difference]
) -> LedgerError:
    """The error for a request id that is used again with other options."""
    return LedgerError(
        f"request {request!r} of {dataset!r} was charged {where}with other options: {list_differences(differences)}. "
        "Repeat the request with its first options, or use another request id, which is charged as a new release."
    )


def already_charged_error(charge: Row) -> RequestPendingError:
    """The error for a request that has already been charged."""
    content = charge.content()
    actor = f" by {content['actor']}" if "actor" in content else ""
    error = RequestPendingError(
        f"request {charge.request!r} of {charge.dataset!r} was charged{actor} at {content['time']}, entry "
        f"{charge.entry}. Its release may have been seen even if it was never stored, so noise is not drawn for it "
        "again. If it is in progress, try again later, or wait longer; if it was interrupted, its charge stays spent: "
        "use a new request id, which is charged again."
    )
    assert charge.dataset is not None  # every charge has one
    event = event_from_json(content["event"])
    error.receipt = Receipt(charge.dataset, event, charge.request, charge.entry, charge.hash)
    return error


def check_mapping(value: Mapping[str, Any], parameter: str) -> Mapping[str, Any]:
    """`value`, if it is a mapping."""
    if not isinstance(value, Mapping):
        raise ParameterError(f"{parameter} must be a mapping, got a {type(value).__name__} instead.")
    return value


def _to_plain_json(value: Mapping[str, Any], parameter: str) -> dict[str, Any]:
    """The content that is read back from the JSON text of `value`."""
    content: dict[str, Any] = json.loads(canonical_json(dict(check_mapping(value, parameter)), parameter))
    return content


def check_name(value: str, parameter: str) -> str:
    """`value`, if it is printable text that is not empty."""
    if not isinstance(value, str) or not value or not value.isprintable():
        message = f"{parameter} must be a printable, non-empty text, got {show(value)} instead."
        raise ParameterError(message, parameter=parameter)
    return value
