"""Entries of a ledger, read and appended within one transaction of any store."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from matrixdp.errors import LedgerError, show
from matrixdp.ledger.accounting import Amount, Reserve
from matrixdp.ledger.author import Author
from matrixdp.ledger.balance import Balance
from matrixdp.ledger.chain import Head, next_entry, sha256
from matrixdp.ledger.events import event_from_json
from matrixdp.ledger.values import Charge, Counts, Registration
from matrixdp.privacy import Neighbours, Privacy

_COLUMNS = "entry, kind, dataset, request, charge, allowance, body, payload, hash"
_STATES = "kind IN ('charge', 'allowance', 'return', 'settle')"  # as in the index `states`
_QUERIES = {
    "entry": "WHERE entry = ?",
    "last": "ORDER BY entry DESC LIMIT 1",
    "registration": "WHERE kind = 'register' AND dataset = ?",
    "registrations": "WHERE kind = 'register' ORDER BY entry",
    "state": f"WHERE {_STATES} AND dataset = ? ORDER BY entry DESC LIMIT 1",
    "request": "WHERE kind = 'charge' AND dataset = ? AND request = ?",
    "release": "WHERE kind = 'release' AND charge = ?",
    "all": "ORDER BY entry",
}


class Transaction(Protocol):
    """One transaction of a store, as a `Journal` uses it."""

    def execute(self, sql: str, values: Sequence[object] = ()) -> Iterable[tuple[Any, ...]]:
        """The rows of a statement of plain SQL, with question marks in place of `values`."""

    def faults(self) -> Iterator[str]:
        """Faults of the database itself: missing triggers or indexes, damaged pages."""


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


class Journal:
    """The entries of a ledger, as seen by one transaction.

    Parameters
    ----------
    transaction : Transaction
        A transaction of the store.
    location : str
        Path or address of the ledger, for messages.
    author : Author, optional
        Who appends entries; needed by `append` only.
    """

    def __init__(self, transaction: Transaction, location: str, author: Author | None = None) -> None:
        self.location = location
        self._transaction = transaction
        self._author = author

    def head(self) -> Head:
        """The last entry, according to the table `head`."""
        rows = list(self._transaction.execute("SELECT entry, hash FROM head"))
        if len(rows) != 1 or not isinstance(rows[0][0], int) or not isinstance(rows[0][1], str):
            raise LedgerError(f"{self.location}: the record of its last entry is missing. Restore it from a backup.")
        return Head(*rows[0])

    def append(
        self,
        kind: str,
        content: dict[str, Any],
        *,
        dataset: str | None = None,
        request: str | None = None,
        charge: int | None = None,
        allowance: str | None = None,
        payload: str | None = None,
    ) -> Head:
        """Append an entry, and move the head to it.

        The time of an entry is never before that of the previous one: if the clock was set back, the entry has the
        time of the previous one, and the clock's time as `clock`.
        """
        hashed = None if payload is None else sha256(payload)
        columns = {"dataset": dataset, "request": request, "charge": charge, "allowance": allowance, "payload": hashed}
        given = {name: value for name, value in columns.items() if value is not None}
        author = {} if self._author is None else self._author.to_json()
        previous, times = self.head(), {"time": datetime.now(UTC).isoformat(timespec="milliseconds")}
        last = self.row("entry", previous.entry)
        if last is not None and (time := str(last.content()["time"])) > times["time"]:
            times = {"time": time, "clock": times["time"]}
        body, head = next_entry({**content, **author, **given, "kind": kind, **times}, previous)
        self._transaction.execute(
            f"INSERT INTO entries ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
            (head.entry, kind, dataset, request, charge, allowance, body, payload, head.hash),
        )
        return head

    def faults(self) -> Iterator[str]:
        """Faults of the database itself: missing triggers or indexes, damaged pages."""
        return self._transaction.faults()

    def rows(self, query: str, *values: object) -> Iterator[Row]:
        """The entries that a named query finds."""
        sql = f"SELECT {_COLUMNS} FROM entries {_QUERIES[query]}"  # noqa: S608
        return (Row(*row) for row in self._transaction.execute(sql, values))

    def row(self, query: str, *values: object) -> Row | None:
        """The first entry that a named query finds, or None."""
        return next(self.rows(query, *values), None)

    def balance(self, dataset: str) -> Balance:
        """The data set's balance, from its registration and the last entry that changed what is spent."""
        row = self.row("registration", dataset)
        if row is None:
            raise LedgerError(
                f"{self.location} has no data set {show(dataset)}. Check the name, or register it first: "
                f"ledger.register({show(dataset)}, privacy, neighbours=...)."
            )
        content = row.content()
        last = self.row("state", dataset)
        spent = amount_from_json(last.content()["spent"]) if last else Amount()
        return Balance(registration_from_json(content), amount_from_json(content["total"]), spent)

    def counts(self, dataset: str, allowance: str | None = None) -> Counts:
        """Charges to a data set, or to one of its allowances, from the tables that count them."""
        found = self._transaction.execute(
            "SELECT charges, releases, entry FROM counters WHERE dataset = ? AND allowance = ?",
            (dataset, allowance or ""),
        )
        charges, releases, last = next(iter(found), (0, 0, None))
        sql, values = "SELECT MIN(entry) FROM unfinished WHERE dataset = ?", [dataset]
        if allowance is not None:
            sql, values = f"{sql} AND allowance = ?", [dataset, allowance]
        ((oldest,),) = self._transaction.execute(sql, values)
        return Counts(charges, charges - releases, self._time(last), self._time(oldest))

    def counters(self) -> tuple[dict[tuple[str, str], tuple[int, int, int]], set[int]]:
        """All counters as they are stored, and the numbers of unfinished charges, for `audit`."""
        rows = self._transaction.execute("SELECT dataset, allowance, charges, releases, entry FROM counters")
        counted = {
            (dataset, allowance): (charges, releases, entry) for dataset, allowance, charges, releases, entry in rows
        }
        return counted, {entry for (entry,) in self._transaction.execute("SELECT entry FROM unfinished")}

    def charges(self, dataset: str | None) -> list[Charge]:
        """All charges, or those to one data set, in order."""
        columns = ", ".join(f"c.{name}" for name in _COLUMNS.split(", "))
        sql = (
            f"SELECT r.entry, {columns} FROM entries c "  # noqa: S608
            "LEFT JOIN entries r ON r.kind = 'release' AND r.charge = c.entry WHERE c.kind = 'charge'"
        )
        if dataset is not None:
            sql += f" AND c.{_STATES} AND c.dataset = ?"
        rows = self._transaction.execute(f"{sql} ORDER BY c.entry", () if dataset is None else (dataset,))
        return [_charge_from_row(Row(*row), released=release is not None) for release, *row in rows]

    def _time(self, entry: int | None) -> str | None:
        row = None if entry is None else self.row("entry", entry)
        return None if row is None else str(row.content()["time"])


def _charge_from_row(row: Row, *, released: bool) -> Charge:
    content = row.content()
    return Charge(
        entry=row.entry,
        time=content["time"],
        dataset=content["dataset"],
        event=event_from_json(content["event"]),
        description=content["description"],
        request=content.get("request"),
        released=released,
        allowance=content.get("allowance"),
        actor=content.get("actor"),
        purpose=content.get("purpose"),
        version=content.get("version"),
    )


def create_content() -> dict[str, Any]:
    """Content of a ledger's first entry: unique to the ledger, and every later hash depends on it."""
    return {"ledger": secrets.token_hex(16)}


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
