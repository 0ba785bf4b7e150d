"""Entries of a ledger: the hash chain, the rows of their table, what they hold as JSON, and who writes them.

Each entry is a canonical JSON text that contains the SHA-256 hash of the one before it.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, get_type_hints

from matrixdp.errors import LedgerError, ParameterError, show
from matrixdp.ledger.accounting import Amount
from matrixdp.ledger.values import Charge, Head, Registration, Reserve, event_from_json
from matrixdp.privacy import Neighbours, Privacy, Unit
from matrixdp.version import __version__

ORIGIN = Head(entry=0, hash="0" * 64)
LAST_ENTRY = 2**62  # more than the number of any entry
RESTORE = "Restore it from a backup; until then, treat its data sets as spent"


def sha256(text: str) -> str:
    """SHA-256 hash of `text`, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def canonical_json(content: object, name: str = "description") -> str:
    """`content` as JSON text with sorted keys, no spaces and ASCII only, or a `ParameterError` if it is not JSON."""
    try:
        return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"{name} must be finite, plain JSON content: {error}.") from None


def next_entry(content: Mapping[str, Any], previous: Head) -> tuple[str, Head]:
    """Text of the entry that follows `previous`, and the new head."""
    body = canonical_json({**content, "entry": previous.entry + 1, "previous": previous.hash})
    return body, Head(previous.entry + 1, sha256(body))


@dataclass(frozen=True)
class Row:
    """One row of the table of entries."""

    entry: int
    kind: str
    dataset: str | None
    request: str | None
    charge: int | None
    allowance: str | None
    body: str
    payload: str | None
    hash: str

    def __post_init__(self) -> None:
        if not all(map(isinstance, vars(self).values(), _TYPES)):
            raise LedgerError("an entry holds values of a wrong type. Restore the ledger from a backup.")

    def content(self) -> dict[str, Any]:
        """The content of the entry, or a `LedgerError` if its hash does not match."""
        intact = sha256(self.body) == self.hash
        content: dict[str, Any] = json.loads(self.body) if intact else {}
        if not intact or (self.payload is not None and content.get("payload") != sha256(self.payload)):
            raise LedgerError(
                f"entry {self.entry} was altered: its hash does not match. Restore the ledger from a backup."
            )
        return content

    def registration(self) -> tuple[Registration, Amount]:
        """The data set that the entry registers, and its total."""
        self.content()
        return _parse_registration(self.body)


COLUMNS = ", ".join(column.name for column in fields(Row))
_TYPES: tuple[Any, ...] = tuple(get_type_hints(Row).values())


@dataclass(frozen=True)
class Counters:
    """Numbers of charges and releases of a data set or an allowance, and the entries of the last ones (or 0)."""

    charges: int = 0
    releases: int = 0
    last_charge: int = 0
    last_release: int = 0

    def __post_init__(self) -> None:
        if not all(isinstance(number, int) for number in vars(self).values()):
            raise LedgerError("the counters hold values of a wrong type. Restore the ledger from a backup.")

    def count(self, kind: str, entry: int) -> Counters:
        """The counters after a charge or a release."""
        if kind == "charge":
            return replace(self, charges=self.charges + 1, last_charge=entry)
        return replace(self, releases=self.releases + 1, last_release=entry)


COUNTERS = ", ".join(column.name for column in fields(Counters))


def default_actor() -> str:
    """The user and the host of this process, as ``user@host``."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):  # a user id without a name, as in containers
        user = f"uid{os.getuid()}" if hasattr(os, "getuid") else "unknown"
    return "".join(part if part.isprintable() else "?" for part in f"{user}@{socket.gethostname()}")


@dataclass(frozen=True)
class Author:
    """Who writes an entry (a person or a service; by default the user and the host of this process), and why.

    `groups` are those that the actor belongs to; an allowance for one of them is for the actor, too.
    """

    actor: str | None = None
    purpose: str | None = None
    groups: tuple[str, ...] = ()
    is_default: bool = False  # whether nobody named the actor

    def __post_init__(self) -> None:
        if self.actor is None:
            object.__setattr__(self, "actor", default_actor())
            object.__setattr__(self, "is_default", True)
        check_name(self.actor, "actor")
        check_name("-" if self.purpose is None else self.purpose, "purpose")

    @property
    def names(self) -> frozenset[str]:
        """The names under which the actor may pay: their own, without the host if nobody named it, and groups."""
        actor = str(self.actor)
        return frozenset([actor, *self.groups, *([actor.rpartition("@")[0]] if self.is_default else [])])

    def to_json(self) -> dict[str, str]:
        """What every entry contains about its author."""
        found = {"actor": self.actor, "purpose": self.purpose, "version": __version__}
        return {name: value for name, value in found.items() if value is not None}


def check_name(value: str | None, parameter: str) -> str:
    """`value`, if it is printable text that is not empty."""
    if not isinstance(value, str) or not value or not value.isprintable():
        message = f"{parameter} must be a printable, non-empty text, got {show(value)} instead."
        raise ParameterError(message, parameter=parameter)
    return value


@lru_cache(maxsize=256)
def _parse_registration(body: str) -> tuple[Registration, Amount]:
    content = json.loads(body)
    return Registration(
        dataset=content["dataset"],
        privacy=Privacy(**content["privacy"]),
        neighbours=Neighbours.parse(content["neighbours"]),
        reserve=Reserve(**content["reserve"]),
        unit=Unit.parse(content["unit"]),
    ), Amount.from_json(content["total"])


def charge_from_row(row: Row, *, released: bool) -> Charge:
    """The charge that an entry holds."""
    content = row.content()
    same: dict[str, Any] = {name: content[name] for name in ("time", "dataset", "description", "actor", "version")}
    same |= {name: content.get(name) for name in ("request", "allowance", "purpose", "options")}
    return Charge(
        **same,
        entry=row.entry,
        event=event_from_json(content["event"]),
        unit=Unit.parse(content["unit"]),
        released=released,
    )
