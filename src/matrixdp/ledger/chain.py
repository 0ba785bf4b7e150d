"""The hash chain of the entries: each is a canonical JSON text that contains the SHA-256 hash of the one before it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from matrixdp.errors import ParameterError


@dataclass(frozen=True)
class Head:
    """Number and hash of the last entry of a ledger. Entries are numbered from 1.

    If a copy is kept outside of the ledger, `Ledger.verify(anchor=...)` proves that no entry up to it was altered.
    """

    entry: int
    hash: str


ORIGIN = Head(entry=0, hash="0" * 64)


def canonical_json(content: object, name: str = "description") -> str:
    r"""`content` as JSON text with sorted keys, no spaces and ASCII only, or a `ParameterError` if it is not JSON.

    Examples
    --------
    >>> canonical_json({"b": 0.1, "a": [1, "é"]})
    '{"a":[1,"\\u00e9"],"b":0.1}'
    """
    try:
        return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"{name} must be finite, plain JSON content: {error}.") from None


def next_entry(content: Mapping[str, Any], previous: Head) -> tuple[str, Head]:
    """Text of the entry that follows `previous`, and the new head.

    Examples
    --------
    >>> body, head = next_entry({"kind": "note"}, ORIGIN)
    >>> head.entry, head.hash == sha256(body)
    (1, True)
    """
    body = canonical_json({**content, "entry": previous.entry + 1, "previous": previous.hash})
    return body, Head(previous.entry + 1, sha256(body))


def sha256(text: str) -> str:
    """SHA-256 hash of `text`, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()
