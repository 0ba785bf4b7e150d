"""Entries of a ledger, read and appended within one transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from matrixdp.errors import LedgerError, show
from matrixdp.ledger.accounting import Amount, Reserve
from matrixdp.ledger.balance import Balance
from matrixdp.ledger.chain import Head, next_entry, sha256
from matrixdp.ledger.events import event_from_json
from matrixdp.ledger.schema import missing_guards
from matrixdp.ledger.values import Charge, Registration
from matrixdp.privacy import Neighbours, Privacy

_COLUMNS = "entry, kind, dataset, request, charge, body, payload, hash"
_QUERIES = {
    "entry": "WHERE entry = ?",
    "registration": "WHERE kind = 'register' AND dataset = ?",
    "registrations": "WHERE kind = 'register' ORDER BY entry",
    "last charge": "WHERE kind = 'charge' AND dataset = ? ORDER BY entry DESC LIMIT 1",
    "request": "WHERE kind = 'charge' AND dataset = ? AND request = ?",
    "release": "WHERE kind = 'release' AND charge = ?",
    "all": "ORDER BY entry",
}


@dataclass(frozen=True)
class Row:
    """One row of the table of entries."""

    entry: int
    kind: str
    dataset: str | None
    request: str | None
    charge: int | None
    body: str
    payload: str | None
    hash: str

    def content(self) -> dict[str, Any]:
        """The content of the entry, or a `LedgerError` if its hash does not match."""
        intact = sha256(self.body) == self.hash
        content: dict[str, Any] = json.loads(self.body) if intact else {}
        if not intact or (self.payload is not None and content["payload"] != sha256(self.payload)):
            raise LedgerError(
                f"entry {self.entry} was altered: its hash does not match. Restore the ledger from a backup."
            )
        return content


class Journal:
    """The entries of a ledger, as seen by one transaction."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.path = path
        self._connection = connection

    def head(self) -> Head:
        """The last entry, according to the table `head`."""
        rows = self._connection.execute("SELECT entry, hash FROM head").fetchall()
        if len(rows) != 1:
            raise LedgerError(f"{self.path}: the record of its last entry is missing. Restore it from a backup.")
        return Head(*rows[0])

    def append(
        self,
        kind: str,
        content: dict[str, Any],
        *,
        dataset: str | None = None,
        request: str | None = None,
        charge: int | None = None,
        payload: str | None = None,
    ) -> Head:
        """Append an entry, and move the head to it."""
        hashed = None if payload is None else sha256(payload)
        columns = {"dataset": dataset, "request": request, "charge": charge, "payload": hashed}
        given = {name: value for name, value in columns.items() if value is not None}
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        body, head = next_entry({**content, **given, "kind": kind, "time": time}, self.head())
        self._connection.execute(
            f"INSERT INTO entries ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
            (head.entry, kind, dataset, request, charge, body, payload, head.hash),
        )
        return head

    def faults(self) -> Iterator[str]:
        """Faults of the database itself: missing triggers or indexes, damaged pages."""
        for name in sorted(missing_guards(self._connection)):
            yield f"its guard {name} was removed or altered."
        for (finding,) in self._connection.execute("PRAGMA integrity_check"):
            if finding != "ok":
                yield f"its pages are damaged: {finding}."

    def rows(self, query: str, *values: object) -> Iterator[Row]:
        """The entries that a named query finds."""
        sql = f"SELECT {_COLUMNS} FROM entries {_QUERIES[query]}"  # noqa: S608
        return (Row(*row) for row in self._connection.execute(sql, values))

    def row(self, query: str, *values: object) -> Row | None:
        """The first entry that a named query finds, or None."""
        return next(self.rows(query, *values), None)

    def balance(self, dataset: str) -> Balance:
        """The data set's balance, from its registration and its last charge."""
        row = self.row("registration", dataset)
        if row is None:
            raise LedgerError(
                f"{self.path} has no data set {show(dataset)}. Check the name, or register it first: "
                f"ledger.register({show(dataset)}, privacy, neighbours=...)."
            )
        content = row.content()
        last = self.row("last charge", dataset)
        spent = amount_from_json(last.content()["spent"]) if last else Amount()
        return Balance(registration_from_json(content), amount_from_json(content["total"]), spent)

    def charges(self, dataset: str | None) -> list[Charge]:
        """All charges, or those to one data set, in order."""
        rows = self._connection.execute(
            "SELECT c.entry, c.body, c.hash, r.entry IS NOT NULL FROM entries c "
            "LEFT JOIN entries r ON r.kind = 'release' AND r.charge = c.entry "
            "WHERE c.kind = 'charge' AND (?1 IS NULL OR c.dataset = ?1) ORDER BY c.entry",
            (dataset,),
        )
        found = []
        for entry, body, sha, released in rows:
            content = Row(entry, "charge", None, None, None, body, None, sha).content()
            event, request = event_from_json(content["event"]), content.get("request")
            time, name, description = content["time"], content["dataset"], content["description"]
            found.append(Charge(entry, time, name, event, description, request, bool(released)))
        return found


def amount_to_json(amount: Amount) -> list[str]:
    """Units as decimal text, since they exceed the integers that many JSON parsers support."""
    return [str(amount.mu_squared), str(amount.epsilon), str(amount.delta)]


def amount_from_json(texts: list[str]) -> Amount:
    """The amount that `amount_to_json` wrote."""
    return Amount(*map(int, texts))


def registration_to_json(registration: Registration) -> dict[str, Any]:
    """A registration as JSON content, without the name of the data set."""
    privacy, reserve = registration.privacy, registration.reserve
    return {
        "privacy": {"epsilon": privacy.epsilon, "delta": privacy.delta},
        "neighbours": str(registration.neighbours),
        "reserve": {"epsilon": reserve.epsilon, "delta": reserve.delta},
    }


def registration_from_json(content: dict[str, Any]) -> Registration:
    """The registration that `registration_to_json` wrote."""
    return Registration(
        dataset=content["dataset"],
        privacy=Privacy(**content["privacy"]),
        neighbours=Neighbours.parse(content["neighbours"]),
        reserve=Reserve(**content["reserve"]),
    )
