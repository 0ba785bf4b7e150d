"""The audit: everything in the file checked again from its first entry."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

from matrixdp.errors import LedgerError, MatrixDPError
from matrixdp.ledger.accounting import Amount, total_amount, ways_to_pay
from matrixdp.ledger.balance import Account
from matrixdp.ledger.chain import ORIGIN, Head, canonical
from matrixdp.ledger.events import event_from_json
from matrixdp.ledger.journal import Journal, Row, amount_from_json, registration_from_json

# Costs that involve special functions may differ in the last places between machines.
_TOLERANCE = Fraction(1, 10**9)


def audit(journal: Journal, anchor: Head | None) -> Head:
    """The head of a ledger in which nothing was altered, or a `LedgerError` that names the first fault."""
    for fault in journal.faults():
        raise LedgerError(fault)
    replay, head = _Replay(), ORIGIN
    for row in journal.rows("all"):
        try:
            head = _follow(row, head)
            replay.add(row)
        except (KeyError, TypeError, ValueError, MatrixDPError) as error:
            raise LedgerError(f"entry {row.entry} is wrong: {error}") from error
        if anchor is not None and anchor.entry == head.entry and anchor != head:
            raise LedgerError(f"entry {row.entry} is not the one that was anchored.")
    if head != journal.head():
        raise LedgerError(f"it ends at entry {head.entry}, but its record of the end is {journal.head().entry}.")
    if anchor is not None and anchor.entry > head.entry:
        raise LedgerError(f"it ends at entry {head.entry}, before the anchored entry {anchor.entry}.")
    return head


def _follow(row: Row, head: Head) -> Head:
    """The head after `row`, if it follows `head` and says the same in its columns as in its body."""
    if row.entry != head.entry + 1:
        raise LedgerError(f"it follows entry {head.entry}, so that entries are missing.")
    content = row.content()
    if content["previous"] != head.hash:
        raise LedgerError("it does not hold the hash of the one before.")
    said = (
        content["entry"],
        content["kind"],
        content.get("dataset"),
        content.get("request"),
        content.get("charge"),
    )
    if said != (row.entry, row.kind, row.dataset, row.request, row.charge) or canonical(content) != row.body:
        raise LedgerError("its columns were altered.")
    if row.payload is None and "payload" in content:
        raise LedgerError("its stored release was removed.")
    return Head(row.entry, row.hash)


class _Replay:
    """The accounts as they follow from the entries alone."""

    def __init__(self) -> None:
        self._accounts: dict[str, Account] = {}
        self._charges: dict[int, str] = {}
        self._requests: set[tuple[str, str]] = set()
        self._released: set[int] = set()

    def add(self, row: Row) -> None:
        content = json.loads(row.body)
        match row.kind:
            case "create" if row.entry == 1:
                pass
            case "register":
                self._register(content)
            case "charge":
                self._charge(row.entry, content)
            case "release":
                self._release(content)
            case _:
                raise LedgerError(f"an entry of kind {row.kind!r} has no place there.")

    def _register(self, content: dict[str, Any]) -> None:
        registration, total = registration_from_json(content), amount_from_json(content["total"])
        if registration.dataset in self._accounts:
            raise LedgerError("its data set is registered twice.")
        allowed = total_amount(registration.privacy, registration.reserve)
        if not total.within(_scaled(allowed, 1 + _TOLERANCE)):
            raise LedgerError("its total is more than its guarantee allows.")
        self._accounts[registration.dataset] = Account(registration, total, Amount())

    def _charge(self, entry: int, content: dict[str, Any]) -> None:
        account, event = self._accounts[content["dataset"]], event_from_json(content["event"])
        account.require_neighbours(content["neighbours"])
        cost, spent = amount_from_json(content["cost"]), amount_from_json(content["spent"])
        if not any(_scaled(way, 1 - _TOLERANCE).within(cost) for way in ways_to_pay(event)):
            raise LedgerError("its cost is less than its event's.")
        if spent != account.spent + cost or not spent.within(account.total):
            raise LedgerError("its sum of what is spent is wrong or passes the total.")
        self._accounts[content["dataset"]] = Account(account.registration, account.total, spent)
        self._charges[entry] = content["dataset"]
        if (request := content.get("request")) is not None:
            if (content["dataset"], request) in self._requests:
                raise LedgerError("its request was charged before.")
            self._requests.add((content["dataset"], request))

    def _release(self, content: dict[str, Any]) -> None:
        charge = content["charge"]
        if self._charges.get(charge) != content["dataset"] or charge in self._released:
            raise LedgerError("it is a release without a charge of its own.")
        self._released.add(charge)


def _scaled(amount: Amount, factor: Fraction) -> Amount:
    return Amount(*(int(units * factor) for units in (amount.mu_squared, amount.epsilon, amount.delta)))
