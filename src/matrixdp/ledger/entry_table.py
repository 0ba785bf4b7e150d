"""Rows of the table of entries, counters beside it, and the SQL that finds them."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from matrixdp.errors import LedgerError
from matrixdp.ledger.chain import sha256

COLUMNS = "entry, kind, dataset, request, charge, allowance, body, payload, hash"
STATES = "kind IN ('charge', 'allowance', 'return', 'settle')"  # as in the index `states`
_QUERIES = {
    "entry": "WHERE entry = ?",
    "last": "ORDER BY entry DESC LIMIT 1",
    "registration": "WHERE kind = 'register' AND dataset = ?",
    "registrations": "WHERE kind = 'register' ORDER BY entry",
    "state": f"WHERE {STATES} AND dataset = ? ORDER BY entry DESC LIMIT 1",
    "request": "WHERE kind = 'charge' AND dataset = ? AND request = ?",
    "release": "WHERE kind = 'release' AND charge = ?",
    "allowance": "WHERE kind = 'allowance' AND dataset = ? AND allowance = ?",
    "allowance charge until": "WHERE kind = 'charge' AND dataset = ? AND allowance = ? AND entry <= ? "
    "ORDER BY entry DESC LIMIT 1",
    "return until": "WHERE kind = 'return' AND dataset = ? AND allowance = ? AND entry <= ?",
    "state until": f"WHERE {STATES} AND dataset = ? AND entry <= ? ORDER BY entry DESC LIMIT 1",
    "settlement until": "WHERE kind = 'settle' AND dataset = ? AND entry <= ? ORDER BY entry DESC LIMIT 1",
    "settlements between": "WHERE kind = 'settle' AND dataset = ? AND entry > ? AND entry <= ?",
    "restore until": "WHERE kind = 'restore' AND entry <= ? ORDER BY entry DESC LIMIT 1",
    "after": "WHERE entry > ? ORDER BY entry LIMIT ?",
}
LAST_ENTRY = 2**62  # more than the number of any entry
HEAD_QUERY = "SELECT entry, hash FROM head"
COUNTERS = "charges, releases, last_charge, last_release"


def select_entries(query: str) -> str:
    """The SQL of a named query."""
    return f"SELECT {COLUMNS} FROM entries {_QUERIES[query]}"  # noqa: S608


ENTRY_QUERY, LAST_QUERY = select_entries("entry"), select_entries("last")
FIRST_QUERIES: tuple[tuple[str, tuple[int, ...]], ...] = (
    (ENTRY_QUERY, (1,)),
    (HEAD_QUERY, ()),
    (LAST_QUERY, ()),
    (select_entries("restore until"), (LAST_ENTRY,)),
)
"""Statements, with their values, that nearly every transaction runs: a store may fetch them all at once."""


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
        texts = (self.kind, self.body, self.hash)
        options = (self.dataset, self.request, self.allowance, self.payload)
        if (
            not isinstance(self.entry, int)
            or not isinstance(self.charge, int | None)
            or not all(isinstance(text, str) for text in texts)
            or not all(isinstance(text, str | None) for text in options)
        ):
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


@dataclass(frozen=True)
class Counters:
    """How many charges and releases a data set or an allowance has, and the entries of the last ones (or 0)."""

    charges: int = 0
    releases: int = 0
    last_charge: int = 0
    last_release: int = 0

    def __post_init__(self) -> None:
        if not all(isinstance(number, int) for number in (self.charges, self.releases, self.last_charge)):
            raise LedgerError("the counters hold values of a wrong type. Restore the ledger from a backup.")

    def with_charge(self, entry: int) -> Counters:
        """The counters after a charge."""
        return replace(self, charges=self.charges + 1, last_charge=entry)

    def with_release(self, entry: int) -> Counters:
        """The counters after a release."""
        return replace(self, releases=self.releases + 1, last_release=entry)
