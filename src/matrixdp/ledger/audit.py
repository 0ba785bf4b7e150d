"""The audit of a ledger: every entry is checked again, from the first to the last, and so are all sums."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

from matrixdp.errors import LedgerError, MatrixDPError
from matrixdp.ledger.accounting import NOTHING, Amount, payment_options, total_amount
from matrixdp.ledger.balance import AllowanceBalance, Balance, guaranteed_epsilon
from matrixdp.ledger.entries import (
    ORIGIN,
    Counters,
    Row,
    amount_from_json,
    canonical_json,
    registration_from_json,
    sums_from_json,
)
from matrixdp.ledger.events import event_from_json
from matrixdp.ledger.journal import Journal
from matrixdp.ledger.values import Head
from matrixdp.privacy import Unit

_ENTRIES_AT_ONCE = 20_000
# Costs that involve special functions may differ in the last places between machines.
_TOLERANCE = Fraction(1, 10**9)


def audit(journal: Journal, anchor: Head | None = None) -> Head:
    """The head of the ledger, if nothing in it was altered; otherwise a `LedgerError` that names the first fault."""
    running = Audit(anchor)
    while not running.advance(journal):
        pass
    return running.head


class Audit:
    """An audit in steps, so that writers need not wait until it is finished.

    Parameters
    ----------
    anchor : Head, optional
        An entry that must be in the ledger.
    resume : bool
        Begin after the anchor, with the balances that the entries up to it contain.
    """

    def __init__(self, anchor: Head | None = None, *, resume: bool = False) -> None:
        self.head = ORIGIN
        self._anchor = anchor
        self._resume = resume
        self._replay: Replay | None = None

    def advance(self, journal: Journal) -> bool:
        """Check the next entries, and return whether these were the last."""
        try:
            return self._advance(journal)
        except LedgerError as error:
            raise LedgerError(
                f"{journal.location} cannot be trusted: {error} Restore it from a backup; until then, treat its data "
                "sets as spent."
            ) from error

    def _advance(self, journal: Journal) -> bool:
        replay = self._replay or self._begin(journal)
        for row in journal.rows("after", self.head.entry, _ENTRIES_AT_ONCE):
            try:
                self.head = _check_link(row, self.head)
                replay.add(row)
            except (KeyError, TypeError, ValueError, MatrixDPError) as error:
                raise LedgerError(f"entry {row.entry} is wrong: {error}") from error
            if self._anchor is not None and self._anchor.entry == row.entry and self._anchor != self.head:
                raise LedgerError(f"entry {row.entry} is not the one that was anchored.")
        last = journal.head()
        if self.head.entry < last.entry and journal.row("entry", self.head.entry + 1) is not None:
            return False
        if self.head != last:
            raise LedgerError(f"it ends at entry {self.head.entry}, but its table head says {last.entry}.")
        replay.check_counters(journal)
        if self._anchor is not None and self._anchor.entry > self.head.entry:
            raise LedgerError(f"it ends at entry {self.head.entry}, before the anchored entry {self._anchor.entry}.")
        return True

    def _begin(self, journal: Journal) -> Replay:
        for fault in journal.faults():
            raise LedgerError(fault)
        self._replay = Replay()
        if self._resume and self._anchor is not None:
            row = journal.row("entry", self._anchor.entry)
            if row is None or row.hash != self._anchor.hash:
                raise LedgerError(f"entry {self._anchor.entry} is not the one that was anchored.")
            row.content()
            self._replay = Replay.at(journal, self._anchor.entry)
            self.head = self._anchor
        return self._replay


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


class Replay:
    """Balances recomputed from the entries alone."""

    def __init__(self) -> None:
        self._balances: dict[str, Balance] = {}
        self._allowances: dict[tuple[str, str], AllowanceBalance] = {}
        self._charges: dict[int, tuple[str, str | None]] = {}
        self._requests: set[tuple[str, str]] = set()
        self._released: set[int] = set()
        self._counters: dict[tuple[str, str], Counters] = {}
        self._unsettled: set[str] = set()
        self._restored = False
        self._left = False
        self._first = 0

    @classmethod
    def at(cls, journal: Journal, entry: int) -> Replay:
        """The balances after `entry`, as the entries up to it contain them."""
        replay = cls()
        replay._first = entry
        for row in journal.rows("registrations"):
            if row.entry <= entry:
                replay.add(row)
                balance = replay._balances[str(row.dataset)]
                if (state := journal.row("state until", row.dataset, entry)) is not None:
                    spent, allotted = sums_from_json(state.content())
                    balance = replace(balance, spent=spent, allotted=allotted)
                replay._balances[str(row.dataset)] = balance
        for dataset, name in journal.all_counters():
            if name and (found := journal.row("allowance", dataset, name)) is not None and found.entry <= entry:
                replay._allowances[dataset, name] = journal.allowance(dataset, name, entry)
        replay._restored = journal.row("restore until", entry) is not None
        last = journal.row("entry", entry)
        replay._left = last is not None and last.kind == "leave"
        replay._unsettled = {name for name in replay._balances if journal.unsettled(name, entry) is not None}
        return replay

    def add(self, row: Row) -> None:
        """Apply an entry, or raise an error if it contradicts the earlier ones."""
        content = json.loads(row.body)
        if (row.kind == "arrive") != self._left:
            raise LedgerError("entries of the kinds 'leave' and 'arrive' must follow each other.")
        self._left = row.kind == "leave"
        match row.kind:
            case "create" if row.entry == 1:
                pass
            case "register":
                self._register(content)
            case "charge":
                self._charge(row.entry, content)
            case "allowance":
                self._allow(content)
            case "return":
                self._return(content)
            case "release":
                self._release(row.entry, content)
            case "restore":
                self._restore(row.entry, content)
            case "settle":
                self._settle(content)
            case "move" | "leave" | "arrive":
                pass
            case _:
                raise LedgerError(f"an entry of kind {row.kind!r} is not allowed there.")

    def _register(self, content: dict[str, Any]) -> None:
        registration, total = registration_from_json(content), amount_from_json(content["total"])
        if registration.dataset in self._balances:
            raise LedgerError("its data set is registered twice.")
        allowed = total_amount(registration.privacy, registration.reserve)
        if not total.within(allowed.scale(1 + _TOLERANCE)):
            raise LedgerError("its total is more than its guarantee allows.")
        self._balances[registration.dataset] = Balance(registration, total, Amount())
        self._counters[registration.dataset, ""] = Counters()
        if self._restored:
            self._unsettled.add(registration.dataset)

    def _restore(self, entry: int, content: dict[str, Any]) -> None:
        if content["backup"] != {"entry": entry - 1, "hash": content["previous"]}:
            raise LedgerError("it does not name the last entry of the backup.")
        self._restored, self._unsettled = True, set(self._balances)

    def _settle(self, content: dict[str, Any]) -> None:
        if not self._restored:
            raise LedgerError("it settles a ledger that was not restored.")
        balance, cost = self._balances[content["dataset"]], amount_from_json(content["cost"])
        if not NOTHING.within(cost) or not cost.within(balance.total - balance.spent):
            raise LedgerError("its cost is more than what was available.")
        self._set_balance(content, balance.spend(cost, None))
        self._unsettled.discard(content["dataset"])
        for key, allowance in self._allowances.items():
            if key[0] == content["dataset"] and cost != NOTHING:
                self._allowances[key] = replace(allowance, stale=True)

    def _charge(self, entry: int, content: dict[str, Any]) -> None:
        balance, event = self._balances[content["dataset"]], event_from_json(content["event"])
        balance.require_neighbours(content["neighbours"])
        if Unit.parse(content["unit"]) != balance.registration.unit:
            raise LedgerError("its unit is not the one that its data set is registered for.")
        cost, allowance = amount_from_json(content["cost"]), self._allowance(content)
        if not any(option.scale(1 - _TOLERANCE).within(cost) for option in payment_options(event)):
            raise LedgerError("its cost is less than its event's.")
        if content["dataset"] in self._unsettled:
            raise LedgerError("it is a charge to a restored data set that was not settled.")
        if not cost.within(balance.available(allowance)):
            raise LedgerError("its cost is more than what was available.")
        self._set_balance(content, balance.spend(cost, allowance))
        if allowance is not None:
            self._set_allowance(content, after := allowance.pay(cost))
            if amount_from_json(content["allowance_spent"]) != after.spent:
                raise LedgerError("its sum of what is spent of its allowance is wrong.")
        self._charges[entry] = (content["dataset"], content.get("allowance"))
        for key in _counted(content):
            self._counters[key] = self._counters.get(key, Counters()).with_charge(entry)
        self._check_number(content, "charges")
        if (request := content.get("request")) is not None:
            if (content["dataset"], request) in self._requests:
                raise LedgerError("its request was charged before.")
            self._requests.add((content["dataset"], request))

    def _allow(self, content: dict[str, Any]) -> None:
        balance, size = self._balances[content["dataset"]], amount_from_json(content["size"])
        if (content["dataset"], content["allowance"]) in self._allowances:
            raise LedgerError("its allowance was set apart twice.")
        if not NOTHING.within(size) or not size.within(balance.available()):
            raise LedgerError("its size is more than what was available.")
        guarantee = guaranteed_epsilon(size, balance.registration.privacy.delta)
        if not guarantee <= content["epsilon"] * float(1 + _TOLERANCE):
            raise LedgerError("its size is more than its guarantee allows.")
        allowance = AllowanceBalance(content["allowance"], size, NOTHING, content["epsilon"])
        self._set_balance(content, balance.allot(allowance, "the ledger"))
        self._set_allowance(content, allowance)
        self._counters[content["dataset"], content["allowance"]] = Counters()

    def _return(self, content: dict[str, Any]) -> None:
        balance, allowance = self._balances[content["dataset"]], self._allowance(content)
        if allowance is None or amount_from_json(content["returned"]) != allowance.unspent:
            raise LedgerError("it does not return what is left of its allowance.")
        self._set_balance(content, balance.take_back(allowance))
        self._set_allowance(content, replace(allowance, returned=True))

    def _allowance(self, content: dict[str, Any]) -> AllowanceBalance | None:
        """The open allowance that an entry names, or None if it names none."""
        if content.get("allowance") is None:
            return None
        found = self._allowances.get((content["dataset"], content["allowance"]))
        if found is None or found.returned:
            raise LedgerError("its allowance does not exist, or was returned before.")
        return found

    def _set_balance(self, content: dict[str, Any], after: Balance) -> None:
        if sums_from_json(content) != (after.spent, after.allotted):
            raise LedgerError("its sum of what is spent or allotted is wrong.")
        self._balances[content["dataset"]] = after

    def _set_allowance(self, content: dict[str, Any], after: AllowanceBalance) -> None:
        self._allowances[content["dataset"], content["allowance"]] = after

    def _release(self, entry: int, content: dict[str, Any]) -> None:
        charge = content["charge"]
        earlier = charge <= self._first  # then the index `one_release` alone excludes a second release
        account = (content["dataset"], content.get("allowance"))
        if not earlier and (self._charges.get(charge) != account or charge in self._released):
            raise LedgerError("it is a release without a charge of its own.")
        self._released.add(charge)
        for key in _counted(content):
            self._counters[key] = self._counters.get(key, Counters()).with_release(entry)
        self._check_number(content, "releases")

    def _check_number(self, content: dict[str, Any], name: str) -> None:
        """Check the number of charges or releases in an entry."""
        counters = self._counters[content["dataset"], ""]
        number = getattr(counters, name)
        if self._first and number == 1:  # the first one after the anchor
            self._counters[content["dataset"], ""] = counters = replace(counters, **{name: content[name]})
        if content[name] != getattr(counters, name):
            raise LedgerError(f"its number of {name} is wrong.")

    def check_counters(self, journal: Journal) -> None:
        """Raise a `LedgerError` unless the counters that the ledger keeps are those of its entries."""
        unfinished = {entry for entry in journal.unfinished() if entry > self._first or entry in self._released}
        if unfinished != self._charges.keys() - self._released:
            raise LedgerError("its list of unfinished charges does not agree with its entries.")
        if self._first:  # those before the anchor were not counted
            for dataset, counters in ((name, self._counters[name, ""]) for name in self._balances):
                found = journal.counters(dataset)  # compares the counters with the last charge and release
                if (counters.last_charge or found.last_charge) != found.last_charge or (
                    counters.last_release or found.last_release
                ) != found.last_release:
                    raise LedgerError("its counters of charges do not agree with its entries.")
        elif journal.all_counters() != self._counters:
            raise LedgerError("its counters of charges do not agree with its entries.")


def _counted(content: dict[str, Any]) -> set[tuple[str, str]]:
    """The counters that an entry counts for: that of its data set, and that of its allowance."""
    return {(content["dataset"], ""), (content["dataset"], content.get("allowance") or "")}
