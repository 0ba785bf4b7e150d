"""The public options of a request as they are stored, and the differences between those of two requests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from matrixdp.ledger.chain import canonical_json, sha256

_LONGEST = 10_000  # characters of a value that is stored as it is; a longer one is stored as its hash
_MOST_SHOWN = 3
_LONGEST_SHOWN = 60
_ABSENT = object()


class Difference(NamedTuple):
    """One option that two requests have with different values."""

    name: str
    old: Any
    new: Any

    def __str__(self) -> str:
        if _is_hash(self.old) or _is_hash(self.new):
            return f"{self.name} has other values now"
        was, now = ("not given" if value is _ABSENT else _shorten(value) for value in (self.old, self.new))
        return f"{self.name} was {was} and is {now} now"


def shorten_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """`options` as they are stored and compared: values of more than 10,000 characters are replaced by their SHA-256.

    Examples
    --------
    >>> shorten_options({"clip": True, "points": [0] * 9999})["clip"]
    True
    """
    return {name: _shorten_value(value) for name, value in options.items()}


def find_differences(old: Any, new: Any, name: str = "") -> list[Difference]:
    """Where two JSON contents differ: first options that both have, and of these the ones that are not nested.

    Examples
    --------
    >>> print(*find_differences({"bounds": {"upper": [1, 2]}}, {"bounds": {"upper": [1, 3]}}))
    bounds.upper[1] was 2 and is 3 now
    """
    return sorted(_walk(old, new, name), key=_order)


def list_differences(differences: Sequence[Difference]) -> str:
    """The first differences in words, and the number of the others."""
    words = [str(one) for one in differences[:_MOST_SHOWN]]
    if len(differences) > _MOST_SHOWN:
        words.append(f"{len(differences) - _MOST_SHOWN} more differ")
    return "; ".join(words)


def _order(one: Difference) -> tuple[bool, int, int]:
    nesting = one.name.count(".") + one.name.count("[")
    return _ABSENT in (one.old, one.new), nesting, len(str(one))


def _shorten_value(value: Any) -> Any:
    text = canonical_json(value)
    if len(text) <= _LONGEST:
        return value
    return shorten_options(value) if isinstance(value, Mapping) else sha256(text)


def _walk(old: Any, new: Any, name: str) -> Iterator[Difference]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys([*old, *new]):
            yield from _walk(old.get(key, _ABSENT), new.get(key, _ABSENT), _join(name, key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for place, (first, second) in enumerate(zip(old, new, strict=True)):
            yield from _walk(first, second, f"{name}[{_label(first, second, place)}]")
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


def _is_hash(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None
