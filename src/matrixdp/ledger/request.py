"""Requests for a charge, in the form in which they are stored, and the differences between two of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from matrixdp.errors import LedgerError, ParameterError, RequestPendingError
from matrixdp.ledger.entries import Row, canonical_json, sha256
from matrixdp.ledger.values import Event, Receipt, event_from_json, event_to_json

_LONGEST = 10_000  # characters of a value that is stored as it is; a longer one is stored as its hash
_MOST_SHOWN = 3
_LONGEST_SHOWN = 60
_ABSENT = object()


def request_content(
    event: Event | None, description: Mapping[str, Any] | None, options: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """A request for a charge as JSON content; any part may be omitted."""
    content: dict[str, Any] = {}
    if event is not None:
        content["event"] = event_to_json(event)
    if description is not None:
        content["description"] = _to_plain_json(description, "description")
    if options is not None:
        content["options"] = _shorten_long(_to_plain_json(options, "options"))
    return content


def require_match(wanted: Mapping[str, Any], charge: Row) -> None:
    """Raise a `LedgerError` if an earlier `charge` with the same id was for something else than the `wanted` content.

    Earlier versions stored no options; then the event and the description are compared, and nothing else.
    """
    earlier = charge.content()
    for part in ("options", "description", "event"):
        if part not in wanted or (part == "options" and part not in earlier):
            continue
        name = part if part == "event" else ""
        if differences := find_differences(earlier[part], wanted[part], name):
            raise changed_request_error(charge.dataset, charge.request, f"at entry {charge.entry} ", differences)


def changed_request_error(
    dataset: str | None, request: str | None, where: str, differences: Sequence[Difference]
) -> LedgerError:
    """The error for a request id that is used again with other options; the first differences are named."""
    words = [str(one) for one in differences[:_MOST_SHOWN]]
    if len(differences) > _MOST_SHOWN:
        words.append(f"{len(differences) - _MOST_SHOWN} more differ")
    return LedgerError(
        f"request {request!r} of {dataset!r} was charged {where}with other options: {'; '.join(words)}. "
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


class Difference(NamedTuple):
    """One option that two requests have with different values."""

    name: str
    old: Any
    new: Any

    def __str__(self) -> str:
        if any(isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) for value in (self.old, self.new)):
            return f"{self.name} has other values now"
        was, now = ("not given" if value is _ABSENT else _shorten(value) for value in (self.old, self.new))
        return f"{self.name} was {was} and is {now} now"


def find_differences(old: Any, new: Any, name: str = "") -> list[Difference]:
    """Where two JSON contents differ: first options that both have, and of these the ones that are not nested.

    Examples
    --------
    >>> print(*find_differences({"bounds": {"upper": [1, 2]}}, {"bounds": {"upper": [1, 3]}}))
    bounds.upper[1] was 2 and is 3 now
    """

    def order(one: Difference) -> tuple[bool, int, int]:
        nesting = one.name.count(".") + one.name.count("[")
        return _ABSENT in (one.old, one.new), nesting, len(str(one))

    return sorted(_walk(old, new, name), key=order)


def _shorten_long(value: Any) -> Any:
    """A value as it is stored and compared: the SHA-256 replaces all in it that has more than 10,000 characters."""
    text = canonical_json(value)
    if len(text) <= _LONGEST:
        return value
    return {name: _shorten_long(one) for name, one in value.items()} if isinstance(value, Mapping) else sha256(text)


def _walk(old: Any, new: Any, name: str) -> Iterator[Difference]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys([*old, *new]):
            yield from _walk(old.get(key, _ABSENT), new.get(key, _ABSENT), _join(name, key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for place, (first, second) in enumerate(zip(old, new, strict=True)):
            yield from _walk(first, second, f"{name}[{_label(first, second, place)}]")
    elif {id(old), id(new)} == {id(None), id(_ABSENT)}:  # as an option that is not given
        return
    elif old != new or isinstance(old, bool) != isinstance(new, bool):
        yield Difference(name, old, new)


def _join(name: str, key: str) -> str:
    """The name of an entry. The class of an object, its array and a field of the same name have the object's name."""
    if not name:
        return key
    return name if key in ("kind", "array", name.rpartition(".")[2]) else f"{name}.{key}"


def _label(first: Any, second: Any, place: int) -> str:
    """The name of a column or its place."""
    names = [one.get("name") if isinstance(one, Mapping) else None for one in (first, second)]
    return str(names[0]) if names[0] is not None and names[0] == names[1] else str(place)


def _shorten(value: Any) -> str:
    if isinstance(value, Mapping) and list(value) == ["array"]:
        value = value["array"]
    text = repr(value) if isinstance(value, str) else canonical_json(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."
