"""What a caller asks for, in the form in which it is stored and compared."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from matrixdp.errors import LedgerError, ParameterError, show
from matrixdp.ledger.chain import canonical
from matrixdp.ledger.events import Event, event_to_json
from matrixdp.ledger.journal import Row


@dataclass(frozen=True)
class Asked:
    """An event and its description as plain JSON content; either may be left out."""

    content: Mapping[str, Any]

    @classmethod
    def of(cls, event: Event | None, description: Mapping[str, Any] | None) -> Asked:
        """The content for these, or a `ParameterError` when they have none."""
        content: dict[str, Any] = {}
        if event is not None:
            content["event"] = event_to_json(event)
        if description is not None:
            content["description"] = json.loads(canonical(dict(require_mapping(description))))
        return cls(content)

    def require_same(self, charge: Row) -> None:
        """Refuse a request id that was charged for something else."""
        earlier = charge.content()
        for name, value in self.content.items():
            if earlier[name] != value:
                raise LedgerError(
                    f"request {charge.request!r} of {charge.dataset!r} was charged at entry {charge.entry} "
                    f"with another {name}. Use a new request id for a new release."
                )


def charged_before(charge: Row) -> LedgerError:
    """The refusal of a request that has been charged already."""
    return LedgerError(
        f"request {charge.request!r} of {charge.dataset!r} was charged at entry {charge.entry}. Its release "
        "may have been seen even if it was never stored, so noise is not drawn for it again. If it is under "
        "way, wait and ask ledger.stored; if it was cut short, its charge stays spent: use a new request id, "
        "which is charged anew."
    )


def require_mapping(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """`value`, if it can be a description."""
    if not isinstance(value, Mapping):
        raise ParameterError(f"description must be a mapping, got a {type(value).__name__} instead.")
    return value


def require_name(value: str, parameter: str) -> str:
    """`value`, if it can be a name."""
    if not isinstance(value, str) or not value or not value.isprintable():
        raise ParameterError(f"{parameter} must be a printable, non-empty text, got {show(value)} instead.")
    return value
