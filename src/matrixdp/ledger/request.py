"""Requests for a charge, in the form in which they are stored and compared, and checks of their arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from matrixdp.errors import LedgerError, ParameterError, RequestPendingError, show
from matrixdp.ledger.chain import canonical_json
from matrixdp.ledger.entry_table import Row
from matrixdp.ledger.events import Event, event_to_json


@dataclass(frozen=True)
class ChargeRequest:
    """An event and its description as JSON content; either may be omitted."""

    content: Mapping[str, Any]

    @classmethod
    def from_event(cls, event: Event | None, description: Mapping[str, Any] | None) -> ChargeRequest:
        """The request for an event, or a `ParameterError` if it cannot be written as JSON."""
        content: dict[str, Any] = {}
        if event is not None:
            content["event"] = event_to_json(event)
        if description is not None:
            content["description"] = json.loads(canonical_json(dict(check_description(description))))
        return cls(content)

    def require_match(self, charge: Row) -> None:
        """Raise a `LedgerError` if an earlier `charge` with the same id was for something else."""
        earlier = charge.content()
        for name, value in self.content.items():
            if earlier[name] != value:
                raise LedgerError(
                    f"request {charge.request!r} of {charge.dataset!r} was charged at entry {charge.entry} "
                    f"with another {name}. Use a new request id for a new release."
                )


def already_charged_error(charge: Row) -> RequestPendingError:
    """The error for a request that has already been charged."""
    content = charge.content()
    actor = f" by {content['actor']}" if "actor" in content else ""
    return RequestPendingError(
        f"request {charge.request!r} of {charge.dataset!r} was charged{actor} at {content['time']}, entry "
        f"{charge.entry}. Its release may have been seen even if it was never stored, so noise is not drawn for it "
        "again. If it is in progress, try again later, or wait longer; if it was interrupted, its charge stays spent: "
        "use a new request id, which is charged again."
    )


def check_description(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """`value`, if it is a mapping."""
    if not isinstance(value, Mapping):
        raise ParameterError(f"description must be a mapping, got a {type(value).__name__} instead.")
    return value


def check_name(value: str, parameter: str) -> str:
    """`value`, if it is printable text that is not empty."""
    if not isinstance(value, str) or not value or not value.isprintable():
        raise ParameterError(f"{parameter} must be a printable, non-empty text, got {show(value)} instead.")
    return value
