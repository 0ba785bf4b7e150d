"""The audit of a ledger: every entry is checked again, from the first to the last."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

from matrixdp.errors import LedgerError, MatrixDPError
from matrixdp.ledger.accounting import Amount, payment_options, total_amount
from matrixdp.ledger.balance import Balance
from matrixdp.ledger.chain import ORIGIN, Head, canonical_json
from matrixdp.ledger.events import event_from_json
from matrixdp.ledger.journal import Journal, Row, amount_from_json, registration_from_json

# Costs that involve special functions may differ in the last places between machines.
_TOLERANCE = Fraction(1, 10**9)


def audit(journal: Journal, anchor: Head | None) -> Head:
    """The head of the ledger, if nothing in it was altered; otherwise a `LedgerError` that names the first fault."""
    for fault in journal.faults():
        raise LedgerError(fault)
    replay, head = _Replay(), ORIGIN
    for row in journal.rows("all"):
        try:
            head = _check_link(row, head)
            replay.add(row)
        except (KeyError, TypeError, ValueError, MatrixDPError) as error:
            raise LedgerError(f"entry {row.entry} is wrong: {error}") from error
        if anchor is not None and anchor.entry == head.entry and anchor != head:
            raise LedgerError(f"entry {row.entry} is not the one that was anchored.")
    if head != journal.head():
        raise LedgerError(f"it ends at entry {head.entry}, but its table head says {journal.head().entry}.")
    replay.check_counters(journal)
    if anchor is not None and anchor.entry > head.entry:
        raise LedgerError(f"it ends at entry {head.entry}, before the anchored entry {anchor.entry}.")
    return head


def _check_link(row: Row, head: Head) -> Head:
    """The head after `row`, if `row` follows `head` and its columns agree with its body."""
    if row.entry != head.entry + 1:
        raise LedgerError(f"it follows entry {head.entry}, so entries are missing.")
    content = row.content()
    if content["previous"] != head.hash:
        raise LedgerError("it does not contain the hash of the previous entry.")
    columns = {
        "entry": row.entry,
        "kind": row.kind,
        "dataset": row.dataset,
        "request": row.request,
        "charge": row.charge,
        "allowance": row.allowance,
    }
    if any(content.get(name) != value for name, value in columns.items()) or canonical_json(content) != row.body:
        raise LedgerError("its columns were altered.")
    if row.payload is None and "payload" in content:
        raise LedgerError("its stored release was removed.")
    return Head(row.entry, row.hash)


class _Replay:
    """Balances recomputed from the entries alone."""

    def __init__(self) -> None:
        self._balances: dict[str, Balance] = {}
        self._charges: dict[int, str] = {}
        self._requests: set[tuple[str, str]] = set()
        self._released: set[int] = set()
        self._counters: dict[tuple[str, str], tuple[int, int, int]] = {}

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
                raise LedgerError(f"an entry of kind {row.kind!r} is not allowed there.")

    def _register(self, content: dict[str, Any]) -> None:
        registration, total = registration_from_json(content), amount_from_json(content["total"])
        if registration.dataset in self._balances:
            raise LedgerError("its data set is registered twice.")
        allowed = total_amount(registration.privacy, registration.reserve)
        if not total.within(_scale(allowed, 1 + _TOLERANCE)):
            raise LedgerError("its total is more than its guarantee allows.")
        self._balances[registration.dataset] = Balance(registration, total, Amount())

    def _charge(self, entry: int, content: dict[str, Any]) -> None:
        balance, event = self._balances[content["dataset"]], event_from_json(content["event"])
        balance.require_neighbours(content["neighbours"])
        cost, spent = amount_from_json(content["cost"]), amount_from_json(content["spent"])
        if not any(_scale(option, 1 - _TOLERANCE).within(cost) for option in payment_options(event)):
            raise LedgerError("its cost is less than its event's.")
        if spent != balance.spent + cost or not spent.within(balance.total):
            raise LedgerError("its sum of what is spent is wrong or exceeds the total.")
        self._balances[content["dataset"]] = replace(balance, spent=spent)
        self._charges[entry] = content["dataset"]
        for key in _counted(content):
            charges, releases, _ = self._counters.get(key, (0, 0, 0))
            self._counters[key] = (charges + 1, releases, entry)
        if (request := content.get("request")) is not None:
            if (content["dataset"], request) in self._requests:
                raise LedgerError("its request was charged before.")
            self._requests.add((content["dataset"], request))

    def _release(self, content: dict[str, Any]) -> None:
        charge = content["charge"]
        if self._charges.get(charge) != content["dataset"] or charge in self._released:
            raise LedgerError("it is a release without a charge of its own.")
        self._released.add(charge)
        for key in _counted(content):
            charges, releases, last = self._counters[key]
            self._counters[key] = (charges, releases + 1, last)

    def check_counters(self, journal: Journal) -> None:
        """Raise a `LedgerError` unless the counters that the ledger keeps are those of its entries."""
        if journal.counters() != (self._counters, self._charges.keys() - self._released):
            raise LedgerError("its counters of charges do not agree with its entries.")


def _counted(content: dict[str, Any]) -> set[tuple[str, str]]:
    """The counters that an entry counts for: that of its data set, and that of its allowance."""
    return {(content["dataset"], ""), (content["dataset"], content.get("allowance") or "")}


def _scale(amount: Amount, factor: Fraction) -> Amount:
    return Amount(*(int(units * factor) for units in (amount.mu_squared, amount.epsilon, amount.delta)))
