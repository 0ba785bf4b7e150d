"""A chain of entries: each is a canonical JSON text that holds the SHA-256 of the text before it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from matrixdp.errors import ParameterError


@dataclass(frozen=True)
class Head:
    """The last entry of a ledger: its number, from 1 on, and its hash.

    Keep a copy elsewhere, and `Ledger.verify(anchor=...)` proves that nothing up to it was altered since.
    """

    entry: int
    hash: str


ORIGIN = Head(entry=0, hash="0" * 64)


def canonical(content: object) -> str:
    r"""The one JSON text for `content`: sorted keys, no spaces, ASCII; a `ParameterError` when there is none.

    Examples
    --------
    >>> canonical({"b": 0.1, "a": [1, "é"]})
    '{"a":[1,"\\u00e9"],"b":0.1}'
    """
    try:
        return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"description must be finite, plain JSON content: {error}.") from None


def seal(content: Mapping[str, Any], previous: Head) -> tuple[str, Head]:
    """The text of the entry that follows `previous`, and the head that it makes.

    Examples
    --------
    >>> body, head = seal({"kind": "note"}, ORIGIN)
    >>> head.entry, head.hash == digest(body)
    (1, True)
    """
    body = canonical({**content, "entry": previous.entry + 1, "previous": previous.hash})
    return body, Head(previous.entry + 1, digest(body))


def digest(text: str) -> str:
    """SHA-256 of `text` in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()
