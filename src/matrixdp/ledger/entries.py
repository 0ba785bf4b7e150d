"""Entries of a ledger: the hash chain, the rows of their table, what they hold as JSON, and who writes them.

Each entry is a canonical JSON text that contains the SHA-256 hash of the one before it. A request for a charge is
compared with the entry of an earlier one that has the same id.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import re
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, get_type_hints

from matrixdp.errors import LedgerError, ParameterError, RequestPendingError, show
from matrixdp.ledger.accounting import Amount
from matrixdp.ledger.values import Charge, Event, Head, Receipt, Registration, Reserve, event_from_json, event_to_json
from matrixdp.privacy import Neighbours, Privacy, Unit
from matrixdp.version import __version__

ORIGIN = Head(entry=0, hash="0" * 64)
LAST_ENTRY = 2**62  # more than the number of any entry
RESTORE = "Restore it from a backup; until then, treat its data sets as spent"
_LONGEST = 10_000  # characters of a value that is stored as it is; a longer one is stored as its hash
_MOST_SHOWN = 3
_LONGEST_SHOWN = 60
_ABSENT = object()


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

    def describe_charge(self, *, released: bool) -> Charge:
        """The charge that an entry holds."""
        content = self.content()
        same: dict[str, Any] = {name: content[name] for name in ("time", "dataset", "description", "actor", "version")}
        same |= {name: content.get(name) for name in ("request", "allowance", "purpose", "options")}
        return Charge(
            **same,
            entry=self.entry,
            event=event_from_json(content["event"]),
            unit=Unit.parse(content["unit"]),
            released=released,
        )

    def require_match(self, wanted: Mapping[str, Any]) -> None:
        """Raise a `LedgerError` if this earlier charge was for something else than the `wanted` content.

        Earlier versions stored no options; then the event and the description are compared, and nothing else.
        """
        earlier = self.content()
        for part in ("options", "description", "event"):
            if part not in wanted or (part == "options" and part not in earlier):
                continue
            name = part if part == "event" else ""
            if differences := find_differences(earlier[part], wanted[part], name):
                words = differences[:_MOST_SHOWN]
                if len(differences) > _MOST_SHOWN:
                    words.append(f"{len(differences) - _MOST_SHOWN} more differ")
                raise LedgerError(
                    f"request {self.request!r} of {self.dataset!r} was charged at entry {self.entry} with other "
                    f"options: {'; '.join(words)}. Repeat the request with its first options, or use another request "
                    "id, which is charged as a new release."
                )

    def already_charged_error(self) -> RequestPendingError:
        """The error for a request that has this charge already."""
        content = self.content()
        actor = f" by {content['actor']}" if "actor" in content else ""
        error = RequestPendingError(
            f"request {self.request!r} of {self.dataset!r} was charged{actor} at {content['time']}, entry "
            f"{self.entry}. Its release may have been seen even if it was never stored, so noise is not drawn for it "
            "again. If it is in progress, try again later, or wait longer; if it was interrupted, its charge stays "
            "spent: use a new request id, which is charged again."
        )
        event = event_from_json(content["event"])
        error.receipt = Receipt(content["dataset"], event, self.request, self.entry, self.hash)
        return error


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
        return replace(self, **{f"{kind}s": getattr(self, f"{kind}s") + 1, f"last_{kind}": entry})


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
    """Who writes an entry (a person or a service; by default the user and the host of this process), and why."""

    actor: str | None = None
    purpose: str | None = None
    groups: tuple[str, ...] = ()  # of the actor; an allowance for one of them is for the actor, too
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


def request_content(
    event: Event | None, description: Mapping[str, Any] | None, options: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """A request for a charge as JSON content; any part may be omitted."""
    content: dict[str, Any] = {} if event is None else {"event": event_to_json(event)}
    for name, value in (("description", description), ("options", options)):
        if value is not None:
            plain = json.loads(canonical_json(dict(check_mapping(value, name)), name))
            content[name] = _shorten_long(plain) if name == "options" else plain
    return content


def check_mapping(value: Mapping[str, Any], parameter: str) -> Mapping[str, Any]:
    """`value`, if it is a mapping."""
    if not isinstance(value, Mapping):
        raise ParameterError(f"{parameter} must be a mapping, got a {type(value).__name__} instead.")
    return value


def find_differences(old: Any, new: Any, name: str = "") -> list[str]:
    """Where two JSON contents differ, in words such as "bounds.upper[1] was 2 and is 3 now".

    Options that both have are first, and of these the ones that are not nested.
    """
    found = []
    for place, was, now in _walk(old, new, name):
        hashed = any(isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) for value in (was, now))
        words = f"{place} has other values now" if hashed else f"{place} was {_shorten(was)} and is {_shorten(now)} now"
        found.append((_ABSENT in (was, now), place.count(".") + place.count("["), len(words), words))
    return [words for *_, words in sorted(found, key=lambda one: one[:3])]


def _shorten_long(value: Any) -> Any:
    """A value as it is stored and compared: the SHA-256 replaces all in it that has more than 10,000 characters."""
    text = canonical_json(value)
    if len(text) <= _LONGEST:
        return value
    return {name: _shorten_long(one) for name, one in value.items()} if isinstance(value, Mapping) else sha256(text)


def _walk(old: Any, new: Any, name: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys([*old, *new]):
            # The class of an object, its array and a field of the same name have the object's name.
            same = name and key in ("kind", "array", name.rpartition(".")[2])
            place = name if same else f"{name}.{key}" if name else key
            yield from _walk(old.get(key, _ABSENT), new.get(key, _ABSENT), place)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (first, second) in enumerate(zip(old, new, strict=True)):
            yield from _walk(first, second, f"{name}[{_label(first, second, number)}]")
    elif {id(old), id(new)} == {id(None), id(_ABSENT)}:  # as an option that is not given
        return
    elif old != new or isinstance(old, bool) != isinstance(new, bool):
        yield name, old, new


def _label(first: Any, second: Any, place: int) -> str:
    """The name of a column or its place."""
    names = [one.get("name") if isinstance(one, Mapping) else None for one in (first, second)]
    return str(names[0]) if names[0] is not None and names[0] == names[1] else str(place)


def _shorten(value: Any) -> str:
    if value is _ABSENT:
        return "not given"
    if isinstance(value, Mapping) and list(value) == ["array"]:
        value = value["array"]
    text = repr(value) if isinstance(value, str) else canonical_json(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."
