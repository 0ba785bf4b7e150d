"""The audit of a ledger: every entry is checked again, from the first to the last, and so are all sums."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from matrixdp.errors import LedgerError, MatrixDPError
from matrixdp.ledger.accounting import NOTHING, payment_options, total_amount
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
from matrixdp.ledger.journal import Journal
from matrixdp.ledger.values import Head, event_from_json
from matrixdp.privacy import Unit

Content = dict[str, Any]

_ENTRIES_AT_ONCE = 20_000
# Costs that involve special functions may differ in the last places between machines.
_TOLERANCE = Fraction(1, 10**9)


def audit(journal: Journal) -> Head:
    """The head of the ledger, if nothing in it was altered; otherwise a `LedgerError` that names the first fault."""
    running = Audit()
    while not running.advance(journal):
        pass
    return running.head


class Audit:
    """An audit in steps, so that writers need not wait until it is finished. Balances come from the entries alone.

    With `resume`, it begins after the anchor, with the balances that the entries up to it contain.
    """

    def __init__(self, anchor: Head | None = None, *, resume: bool = False) -> None:
        self.head = ORIGIN
        self._anchor = anchor
        self._resume = resume
        self._begun = False
        self._first = 0  # the entry after which it begins
        self._balances: dict[str, Balance] = {}
        self._allowances: dict[tuple[str, str], AllowanceBalance] = {}
        self._charges: dict[int, tuple[str, str | None]] = {}
        self._requests: set[tuple[str, str]] = set()
        self._released: set[int] = set()
        self._counters: dict[tuple[str, str], Counters] = {}
        self._unsettled: set[str] = set()
        self._restored = False
        self._left = False

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
        if not self._begun:
            self._begin(journal)
        for row in journal.rows("after", self.head.entry, _ENTRIES_AT_ONCE):
            try:
                content = _check_link(row, self.head)
                self.head = Head(row.entry, row.hash)
                self._add(row, content)
            except (KeyError, TypeError, ValueError, MatrixDPError) as error:
                raise LedgerError(f"entry {row.entry} is wrong: {error}") from error
            if self._anchor is not None and self._anchor.entry == row.entry and self._anchor != self.head:
                raise LedgerError(f"entry {row.entry} is not the one that was anchored.")
        last = journal.head()
        if self.head.entry < last.entry and journal.row("entry", self.head.entry + 1) is not None:
            return False
        if self.head != last:
            raise LedgerError(f"it ends at entry {self.head.entry}, but its table head says {last.entry}.")
        self._check_counters(journal)
        if self._anchor is not None and self._anchor.entry > self.head.entry:
            raise LedgerError(f"it ends at entry {self.head.entry}, before the anchored entry {self._anchor.entry}.")
        return True

    def _begin(self, journal: Journal) -> None:
        for fault in journal.faults():
            raise LedgerError(fault)
        self._begun = True
        if not self._resume or self._anchor is None:
            return
        entry, last = self._anchor.entry, journal.row("entry", self._anchor.entry)
        if last is None or last.hash != self._anchor.hash:
            raise LedgerError(f"entry {entry} is not the one that was anchored.")
        last.content()
        self.head, self._first, self._left = self._anchor, entry, last.kind == "leave"
        for row in journal.rows("registrations"):
            if row.entry <= entry:
                self._register(row.entry, row.content())
                if (state := journal.row("state", row.dataset, entry)) is not None:
                    spent, allotted = sums_from_json(state.content())
                    balance = self._balances[str(row.dataset)]
                    self._balances[str(row.dataset)] = replace(balance, spent=spent, allotted=allotted)
        for dataset, name in journal.all_counters():
            if name and (found := journal.row("allowance", dataset, name)) is not None and found.entry <= entry:
                self._allowances[dataset, name] = journal.allowance(dataset, name, entry)
        self._restored = journal.row("restore", entry) is not None
        self._unsettled = {name for name in self._balances if journal.restored_from(name, entry) is not None}

    def _add(self, row: Row, content: Content) -> None:
        """Apply an entry, or raise an error if it contradicts the earlier ones."""
        if (row.kind == "arrive") != self._left:
            raise LedgerError("entries of the kinds 'leave' and 'arrive' must follow each other.")
        self._left = row.kind == "leave"
        apply = {
            "register": self._register,
            "charge": self._charge,
            "allowance": self._allow,
            "return": self._return,
            "release": self._release,
            "restore": self._restore,
            "settle": self._settle,
        }
        if row.kind in apply:
            apply[row.kind](row.entry, content)
        elif row.kind not in ("move", "leave", "arrive") and (row.kind, row.entry) != ("create", 1):
            raise LedgerError(f"an entry of kind {row.kind!r} is not allowed there.")

    def _register(self, _: int, content: Content) -> None:
        registration, total = registration_from_json(content), amount_from_json(content["total"])
        if registration.dataset in self._balances:
            raise LedgerError("its data set is registered twice.")
        allowed = total_amount(registration.privacy, registration.reserve)
        if not total.within(allowed.scale(1 + _TOLERANCE)):
            raise LedgerError("its total is more than its guarantee allows.")
        self._balances[registration.dataset] = Balance(registration, total, NOTHING)
        self._counters[registration.dataset, ""] = Counters()
        if self._restored:
            self._unsettled.add(registration.dataset)

    def _restore(self, entry: int, content: Content) -> None:
        if content["backup"] != {"entry": entry - 1, "hash": content["previous"]}:
            raise LedgerError("it does not name the last entry of the backup.")
        self._restored, self._unsettled = True, set(self._balances)

    def _settle(self, _: int, content: Content) -> None:
        if not self._restored:
            raise LedgerError("it settles a ledger that was not restored.")
        balance, cost = self._balances[content["dataset"]], amount_from_json(content["cost"])
        if not NOTHING.within(cost) or not cost.within(balance.total - balance.spent):
            raise LedgerError("its cost is more than what was available.")
        self._set_balance(content, balance.spend(cost))
        self._unsettled.discard(content["dataset"])
        for key, allowance in self._allowances.items():
            if key[0] == content["dataset"] and cost != NOTHING:
                self._allowances[key] = replace(allowance, stale=True)

    def _charge(self, entry: int, content: Content) -> None:
        balance, event = self._account(content), event_from_json(content["event"])
        balance.require(content["neighbours"], None)
        if not Unit.parse(content["unit"]).covers(balance.registration.unit):
            raise LedgerError("its unit is not the one that its data set is registered for.")
        cost = amount_from_json(content["cost"])
        if not any(option.scale(1 - _TOLERANCE).within(cost) for option in payment_options(event)):
            raise LedgerError("its cost is less than its event's.")
        if content["dataset"] in self._unsettled:
            raise LedgerError("it is a charge to a restored data set that was not settled.")
        if not cost.within(balance.available()):
            raise LedgerError("its cost is more than what was available.")
        after = balance.spend(cost)
        self._set_balance(content, after)
        if after.allowance is not None and amount_from_json(content["allowance_spent"]) != after.allowance.spent:
            raise LedgerError("its sum of what is spent of its allowance is wrong.")
        self._charges[entry] = (content["dataset"], content.get("allowance"))
        self._count("charge", entry, content)
        if (request := content.get("request")) is not None:
            if (content["dataset"], request) in self._requests:
                raise LedgerError("its request was charged before.")
            self._requests.add((content["dataset"], request))

    def _allow(self, _: int, content: Content) -> None:
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
        self._counters[content["dataset"], content["allowance"]] = Counters()

    def _return(self, _: int, content: Content) -> None:
        balance = self._account(content)
        if balance.allowance is None or amount_from_json(content["returned"]) != balance.allowance.unspent:
            raise LedgerError("it does not return what is left of its allowance.")
        self._set_balance(content, balance.take_back())

    def _account(self, content: Content) -> Balance:
        """The balance of the entry's data set, with the open allowance that it names, if it names one."""
        balance = self._balances[content["dataset"]]
        if content.get("allowance") is None:
            return balance
        found = self._allowances.get((content["dataset"], content["allowance"]))
        if found is None or found.returned:
            raise LedgerError("its allowance does not exist, or was returned before.")
        return replace(balance, allowance=found)

    def _set_balance(self, content: Content, after: Balance) -> None:
        if sums_from_json(content) != (after.spent, after.allotted):
            raise LedgerError("its sum of what is spent or allotted is wrong.")
        self._balances[content["dataset"]] = replace(after, allowance=None)
        if after.allowance is not None:
            self._allowances[content["dataset"], after.allowance.name] = after.allowance

    def _release(self, entry: int, content: Content) -> None:
        charge = content["charge"]
        earlier = charge <= self._first  # then the index `one_release` alone excludes a second release
        account = (content["dataset"], content.get("allowance"))
        if not earlier and (self._charges.get(charge) != account or charge in self._released):
            raise LedgerError("it is a release without a charge of its own.")
        self._released.add(charge)
        self._count("release", entry, content)

    def _count(self, kind: str, entry: int, content: Content) -> None:
        """Count a charge or a release, and check its number; the first one after the anchor is taken as it is."""
        dataset, name = content["dataset"], f"{kind}s"
        for key in {(dataset, ""), (dataset, content.get("allowance") or "")}:
            self._counters[key] = self._counters.get(key, Counters()).count(kind, entry)
        counters = self._counters[dataset, ""]
        if self._first and getattr(counters, name) == 1:
            self._counters[dataset, ""] = replace(counters, **{name: content[name]})
        elif content[name] != getattr(counters, name):
            raise LedgerError(f"its number of {name} is wrong.")

    def _check_counters(self, journal: Journal) -> None:
        """Raise a `LedgerError` unless the counters that the ledger keeps are those of its entries."""
        unfinished = {entry for entry in journal.unfinished() if entry > self._first or entry in self._released}
        if unfinished != self._charges.keys() - self._released:
            raise LedgerError("its list of unfinished charges does not agree with its entries.")
        agree = journal.all_counters() == self._counters
        if self._first:  # those before the anchor were not counted; the stored ones are compared with the last entries
            agree = all(
                counted.last_charge in (0, found.last_charge) and counted.last_release in (0, found.last_release)
                for found, counted in ((journal.counters(name), self._counters[name, ""]) for name in self._balances)
            )
        if not agree:
            raise LedgerError("its counters of charges do not agree with its entries.")


def _check_link(row: Row, head: Head) -> Content:
    """The content of `row`, if it follows `head` and its columns agree with its body."""
    if row.entry != head.entry + 1:
        raise LedgerError(f"it follows entry {head.entry}, so entries are missing.")
    content = row.content()
    if content["previous"] != head.hash:
        raise LedgerError("it does not contain the hash of the previous entry.")
    columns = ("entry", "kind", "dataset", "request", "charge", "allowance")
    if any(content.get(name) != getattr(row, name) for name in columns) or canonical_json(content) != row.body:
        raise LedgerError("its columns were altered.")
    if row.payload is None and "payload" in content:
        raise LedgerError("its stored release was removed.")
    return content
