"""Entries of a ledger, read and appended within one transaction of any store.

Entries are only appended: triggers refuse to alter or delete them, move the head with each one, and count charges and
releases. The table `counters` has a row for each data set, with the allowance '', and one for each allowance.
`counters` and `unfinished` save reading all entries; `verify` computes them again.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from matrixdp.errors import LedgerError, RefusedError, show
from matrixdp.ledger.accounting import NOTHING, Amount
from matrixdp.ledger.balance import AllowanceBalance, Balance
from matrixdp.ledger.entries import COLUMNS, COUNTERS, LAST_ENTRY, RESTORE, Author, Counters, Row, next_entry, sha256
from matrixdp.ledger.values import Charge, Counts, Head, Registration, Summary

# Kinds of entries that change the balance of a data set. The index `states` is used only where a query has these words.
_IN_STATES = "kind IN ('charge', 'allowance', 'return', 'settle')"
_LAST = "ORDER BY entry DESC LIMIT 1"
_QUERIES = {
    "entry": "WHERE entry = ?",
    "last": _LAST,
    "registration": "WHERE kind = 'register' AND dataset = ?",
    "registrations": "WHERE kind = 'register' ORDER BY entry",
    "state": f"WHERE {_IN_STATES} AND dataset = ? AND entry <= ? {_LAST}",
    "request": "WHERE kind = 'charge' AND dataset = ? AND request = ?",
    "described": f"WHERE {_IN_STATES} AND dataset = ? AND kind = 'charge' AND replace(body, ?, '') <> body "
    "ORDER BY entry DESC",
    "release": "WHERE kind = 'release' AND charge = ?",
    "steps": "WHERE entry > ? AND kind = 'step' AND charge = ? ORDER BY entry",
    "allowance": "WHERE kind = 'allowance' AND dataset = ? AND allowance = ?",
    "allowance charge": f"WHERE kind = 'charge' AND dataset = ? AND allowance = ? AND entry <= ? {_LAST}",
    "return": "WHERE kind = 'return' AND dataset = ? AND allowance = ? AND entry <= ?",
    "settlement": f"WHERE kind = 'settle' AND dataset = ? AND entry <= ? {_LAST}",
    "settlements between": "WHERE kind = 'settle' AND dataset = ? AND entry > ? AND entry <= ?",
    "restore": f"WHERE kind = 'restore' AND entry <= ? {_LAST}",
    "after": "WHERE entry > ? ORDER BY entry LIMIT ?",
}
HEAD_QUERY = "SELECT entry, hash FROM head"
INSERT = f"INSERT INTO entries ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
_CHARGE = ", ".join(f"c.{name}" for name in COLUMNS.split(", "))


def select_entries(query: str) -> str:
    """The SQL of a named query."""
    return f"SELECT {COLUMNS} FROM entries {_QUERIES[query]}"  # noqa: S608


class Journal(ABC):
    """The entries of a ledger, as seen by one transaction of a connection to its store."""

    def __init__(self, connection: Any, location: str, author: Author | None) -> None:
        self.connection = connection
        self.location = location  # the path or address of the ledger, for messages
        self.author = author  # who appends entries

    @abstractmethod
    def execute(self, sql: str, values: Sequence[object] = ()) -> Iterable[tuple[Any, ...]]:
        """The rows of a statement of plain SQL, with question marks in place of `values`."""

    @abstractmethod
    def faults(self) -> Iterator[str]:
        """Faults of the database itself: missing triggers or indexes, damaged pages."""

    def find_payer(self, balance: Balance) -> dict[str, str]:
        """What a charge contains about who pays; a `LedgerError` if its allowance is for others than the author."""
        if balance.allowance is None or not balance.allowance.payers:
            return {}
        assert self.author is not None  # of a charge, or of one that is tried
        actor, payers = str(self.author.actor), balance.allowance.payers
        found = sorted(set(payers).intersection(self.payer_names()))
        if not found:
            raise RefusedError(
                f"{balance.name} is for {', '.join(payers)}, and not for {show(actor)}. Nothing was charged. Name your "
                "own allowance, or none."
            )
        return {"payer": actor if actor in found else found[0]}

    def payer_names(self) -> frozenset[str]:
        """The names under which the author may charge an allowance that is for some people or groups."""
        return frozenset() if self.author is None else self.author.names

    def head(self) -> Head:
        """The last entry, according to the table `head`."""
        rows = list(self.execute(HEAD_QUERY))
        if len(rows) != 1 or not isinstance(rows[0][0], int) or not isinstance(rows[0][1], str):
            raise self.damage("the record of its last entry is missing")
        return Head(*rows[0])

    def first_hash(self) -> str:
        """The hash of the first entry, which no other ledger has."""
        if (first := self.row("entry", 1)) is None:
            raise self.damage("its first entry is missing")
        return first.hash

    def append(
        self, kind: str, content: dict[str, Any], *, dataset: str | None = None, payload: str | None = None, **more: Any
    ) -> Head:
        """Append an entry, and move the head to it; charges and releases of a data set are numbered.

        Further columns are `request`, `charge` and `allowance`.

        The time of an entry is never before that of the previous one: if the clock was set back, the entry has the
        time of the previous one, and the clock's time as `clock`.
        """
        columns = {"dataset": dataset, "request": None, "charge": None, "allowance": None, **more}
        hashed = {**columns, "payload": None if payload is None else sha256(payload)}
        given = {name: value for name, value in hashed.items() if value is not None}
        author = {} if self.author is None else self.author.to_json()
        previous, times = self.head(), {"time": datetime.now(UTC).isoformat(timespec="milliseconds")}
        last = self.row("entry", previous.entry)
        if last is not None and last.kind == "leave" and kind != "arrive":
            raise LedgerError(
                f"{self.location} was copied to {last.content()['to']}, and is charged there only. Nothing was "
                "charged. Use that ledger."
            )
        if last is not None and (time := str(last.content()["time"])) > times["time"]:
            times = {"time": time, "clock": times["time"]}
        if kind in ("charge", "release") and dataset is not None:
            content = {**content, f"{kind}s": getattr(self.counters(dataset), f"{kind}s") + 1}
        body, head = next_entry({**content, **author, **given, "kind": kind, **times}, previous)
        self.insert([Row(head.entry, kind, **columns, body=body, payload=payload, hash=head.hash)])
        return head

    def change(self, kind: str, content: dict[str, Any], before: Balance, **columns: Any) -> tuple[Head, Balance]:
        """Append an entry that changes a balance, with the sums after it; the new head and the balance after it."""
        dataset = before.registration.dataset
        name = columns.pop("allowance", None) if before.allowance is None else before.allowance.name
        after = before.apply(kind, {**content, "allowance": name})
        content = {**content, **after.list_sums(kind)}
        return self.append(kind, content, dataset=dataset, allowance=name, **columns), after

    def insert(self, rows: Sequence[Row]) -> None:
        """Append entries as they are."""
        for row in rows:
            self.execute(INSERT, tuple(vars(row).values()))

    def rows(self, query: str, *values: object) -> Iterator[Row]:
        """The entries that a named query finds."""
        return (Row(*row) for row in self.execute(select_entries(query), values))

    def row(self, query: str, *values: object) -> Row | None:
        """The first entry that a named query finds, or None."""
        return next(self.rows(query, *values), None)

    def find(self, head: Head) -> Row | None:
        """The entry with this number and this hash, or None."""
        found = self.row("entry", head.entry)
        return found if found is not None and found.hash == head.hash else None

    def require_intact_end(self) -> None:
        """Raise a `LedgerError` unless the last entry is the one that the head names, and is counted."""
        head, last = self.head(), self.row("last")
        if last is None or (last.entry, last.hash) != (head.entry, head.hash):
            raise self.damage("its last entry is not the one that its table head names")
        content = last.content()
        if last.kind != content["kind"] or last.dataset != content.get("dataset"):
            raise self.damage(f"the columns of entry {last.entry} were altered")
        if last.kind in ("charge", "release") and last.dataset is not None:
            self.counters(last.dataset)

    def balance(self, dataset: str, allowance: str | None = None, entry: int = LAST_ENTRY) -> Balance:
        """The data set's balance (after `entry`), from its registration and the last entry that changed what is spent.

        `allowance` is the one that pays, if any does.
        """
        row = self.row("registration", dataset)
        if row is None:
            raise LedgerError(
                f"{self.location} has no data set {show(dataset)}. Check the name, or register it first: matrixdp "
                f"ledger add, or ledger.register({show(dataset)}, privacy, neighbours=...) in Python."
            )
        content, last = row.content(), self.row("state", dataset, entry)
        state = {} if last is None else last.content()
        if content["dataset"] != dataset or state.get("dataset", dataset) != dataset:
            raise self.damage("an index names an entry of another data set")
        counted = self.counters(dataset).last_charge if entry == LAST_ENTRY else 0
        if counted > (0 if last is None else last.entry) or (
            entry == LAST_ENTRY and last is not None and last.kind == "charge" and counted != last.entry
        ):
            raise self.damage(f"the last charge to {show(dataset)} is not the one that was counted")
        spent, allotted = (Amount.from_json(state[name]) if state else NOTHING for name in ("spent", "allotted"))
        part = None if allowance is None else self.allowance(dataset, allowance, entry)
        return Balance(*row.registration(), spent, allotted, part)

    def registrations(self) -> list[Registration]:
        """The registered data sets, in order of registration."""
        found = [row.registration()[0] for row in self.rows("registrations")]
        if {each.dataset for each in found} != {dataset for dataset, _ in self.all_counters()}:
            raise self.damage("its data sets are not those that it counts")
        return found

    def allowance(self, dataset: str, name: str, entry: int = LAST_ENTRY) -> AllowanceBalance:
        """The balance of an allowance (after `entry`), from its own entry, its last charge and its return."""
        row = self.row("allowance", dataset, name)
        if row is None:
            raise RefusedError(
                f"{dataset!r} has no allowance {show(name)}.\nSee which it has: matrixdp ledger show {self.location}"
            )
        last = self.row("allowance charge", dataset, name, entry)
        end = self.row("return", dataset, name, entry)
        if entry == LAST_ENTRY and self.counters(dataset, name).last_charge != (0 if last is None else last.entry):
            raise self.damage(f"the last charge to the allowance {show(name)} is not the one that was counted")
        contents = [found.content() for found in (row, last, end) if found is not None]
        if any((content["dataset"], content["allowance"]) != (dataset, name) for content in contents):
            raise self.damage("an index names an entry of another allowance")
        settled = [found.content()["cost"] for found in self.rows("settlements between", dataset, row.entry, entry)]
        return AllowanceBalance(
            name=name,
            size=Amount.from_json(contents[0]["size"]),
            spent=NOTHING if last is None else Amount.from_json(last.content()["allowance_spent"]),
            epsilon=contents[0]["epsilon"],
            returned=end is not None,
            stale=any(Amount.from_json(cost) != NOTHING for cost in settled),
            payers=tuple(contents[0].get("payers", ())),
        )

    def summarise(self, dataset: str) -> Summary:
        """The state of a data set, with its allowances in the order of their names."""
        balance = self.balance(dataset)
        sql = "SELECT allowance FROM counters WHERE dataset = ? AND allowance <> ''"
        names = sorted(name for (name,) in self.execute(sql, (dataset,)))
        allowances = [self.allowance(dataset, name) for name in names]
        return balance.summarise(allowances, self.counts(dataset), self.restored_from(dataset))

    def restored_from(self, dataset: str, entry: int = LAST_ENTRY) -> int | None:
        """The last entry of the backup from which the ledger was restored, if the data set was not settled since.

        Only entries until `entry` count.
        """
        restore = self.row("restore", entry)
        settled = None if restore is None else self.row("settlement", dataset, entry)
        if restore is None or (settled is not None and settled.entry > restore.entry):
            return None
        return int(restore.content()["backup"]["entry"])

    def require_settled(self, dataset: str) -> None:
        """Raise a `LedgerError` if the ledger was restored from a backup and the data set was not settled since."""
        if (backup := self.restored_from(dataset)) is not None:
            raise RefusedError(
                f"the ledger was restored from a backup that ends at entry {backup}, and does not know what was spent "
                f"on {show(dataset)} since. Nothing was charged.\nSay what was: matrixdp ledger settle "
                f"{self.location} --dataset {dataset} --spent EPSILON (0 if nothing was spent, or --all to treat the "
                "rest as spent)"
            )

    def counters(self, dataset: str, allowance: str = "") -> Counters:
        """The counters of a data set, compared with its last charge and release, or those of one of its allowances."""
        sql = f"SELECT {COUNTERS} FROM counters WHERE dataset = ? AND allowance = ?"  # noqa: S608
        found = next((Counters(*row) for row in self.execute(sql, (dataset, allowance))), None)
        if found is None:
            raise self.damage(f"the counters of {show(dataset)} are missing")
        last = (("charge", found.last_charge, found.charges), ("release", found.last_release, found.releases))
        for kind, entry, number in () if allowance else last:
            row = self.row("entry", entry) if entry else None
            named = None if row is None else tuple(map(row.content().get, ("dataset", "kind", f"{kind}s")))
            if named != ((dataset, kind, number) if number else None):
                raise self.damage(f"the counters of {show(dataset)} do not agree with entry {entry}")
        return found

    def counts(self, dataset: str) -> Counts:
        """Charges to a data set."""
        found = self.counters(dataset)
        ((oldest,),) = self.execute("SELECT MIN(entry) FROM unfinished WHERE dataset = ?", (dataset,))
        if (oldest is None) != (found.charges == found.releases):
            raise self.damage(f"the unfinished charges of {show(dataset)} are not those that were counted")
        unfinished = found.charges - found.releases
        return Counts(found.charges, unfinished, self._charge_time(found.last_charge), self._charge_time(oldest))

    def all_counters(self) -> dict[tuple[str, str], Counters]:
        """All counters as they are stored, by data set and allowance; the allowance '' is the data set itself."""
        rows = self.execute(f"SELECT dataset, allowance, {COUNTERS} FROM counters")  # noqa: S608
        return {(dataset, allowance): Counters(*numbers) for dataset, allowance, *numbers in rows}

    def unfinished(self) -> set[int]:
        """The numbers of all unfinished charges, as they are stored."""
        return {entry for (entry,) in self.execute("SELECT entry FROM unfinished")}

    def read_charges(self, found: list[Charge], dataset: str | None, limit: int) -> bool:
        """Append the next charges, to all data sets or to one, to those that were `found`; whether these are all."""
        sql = (
            f"SELECT r.entry, u.entry, {_CHARGE} FROM entries c LEFT JOIN unfinished u ON u.entry = c.entry "  # noqa: S608
            "LEFT JOIN entries r ON r.kind = 'release' AND r.charge = c.entry WHERE c.kind = 'charge' AND c.entry > ?"
        )
        if dataset is not None:
            sql += f" AND c.{_IN_STATES} AND c.dataset = ?"
        values = (found[-1].entry if found else 0, *([] if dataset is None else [dataset]), limit)
        before = len(found)
        for release, waits, *row in self.execute(f"{sql} ORDER BY c.entry LIMIT ?", values):
            if (release is None) != (waits is not None):
                raise self.damage(f"entry {row[0]} is both released and unfinished, or neither")
            found.append(Row(*row).describe_charge(released=release is not None))
        if len(found) == before + limit:
            return False
        names = {name for name, _ in self.all_counters()} if dataset is None else {dataset}
        if len(found) != sum(self.counts(name).charges for name in names):
            raise self.damage("its charges are not as many as were counted")
        return True

    def damage(self, what: str) -> LedgerError:
        """The error for a ledger whose tables disagree."""
        return LedgerError(f"{self.location} is damaged: {what}. {RESTORE}.")

    def _charge_time(self, entry: int | None) -> str | None:
        if not entry:
            return None
        row = self.row("entry", entry)
        if row is None or row.kind != "charge":
            raise self.damage(f"entry {entry} is counted as a charge")
        return str(row.content()["time"])
