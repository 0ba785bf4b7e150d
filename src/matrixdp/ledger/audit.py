"""The audit of a ledger: every entry is checked again, from the first to the last, and so are all sums."""

from dataclasses import replace
from typing import Any

from matrixdp.errors import LedgerError, MatrixDPError
from matrixdp.ledger.accounting import NOTHING, total_amount
from matrixdp.ledger.balance import TOLERANCE, AllowanceBalance, Balance
from matrixdp.ledger.entries import ORIGIN, RESTORE, Counters, Row, canonical_json
from matrixdp.ledger.journal import Journal
from matrixdp.ledger.values import Head

Content = dict[str, Any]

_ENTRIES_AT_ONCE = 20_000


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
        self._anchor, self._resume, self._begun = anchor, resume, False
        self._first = 0  # the entry after which it begins
        self._last_kind = "create"
        self._balances: dict[str, Balance] = {}
        self._allowances: dict[tuple[str, str | None], AllowanceBalance] = {}
        self._unfinished: dict[int, tuple[str, str | None]] = {}  # charges without a release so far
        self._requests: dict[tuple[str, str], int] = {}  # and their charges
        self._released: set[int] = set()  # charges before the anchor whose release is after it
        self._counters: dict[tuple[str, str], Counters] = {}
        self._steps: dict[int, int] = {}  # of streams, by their charge
        self._unsettled: set[str] = set()
        self._restored = False

    def advance(self, journal: Journal) -> bool:
        """Check the next entries, and return whether these were the last."""
        try:
            return self._advance(journal)
        except LedgerError as error:
            raise LedgerError(f"{journal.location} cannot be trusted: {error} {RESTORE}.") from error

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
        entry, last = self._anchor.entry, journal.find(self._anchor)
        if last is None:
            raise LedgerError(f"entry {entry} is not the one that was anchored.")
        last.content()
        self.head, self._first, self._last_kind = self._anchor, entry, last.kind
        self._restored = journal.row("restore", entry) is not None
        for row in journal.rows("registrations"):
            if row.entry <= entry and row.dataset is not None:
                self._register(row)
                self._balances[row.dataset] = journal.balance(row.dataset, entry=entry)
                if journal.restored_from(row.dataset, entry) is None:
                    self._unsettled.discard(row.dataset)
        for dataset, name in journal.all_counters():
            if name and (found := journal.row("allowance", dataset, name)) is not None and found.entry <= entry:
                self._allowances[dataset, name] = journal.allowance(dataset, name, entry)

    def _add(self, row: Row, content: Content) -> None:
        """Apply an entry, or raise an error if it contradicts the earlier ones."""
        if (row.kind == "arrive") != (self._last_kind == "leave"):
            raise LedgerError("entries of the kinds 'leave' and 'arrive' must follow each other.")
        self._last_kind = row.kind
        if row.kind == "register":
            self._register(row)
        elif row.kind in ("charge", "settle", "allowance", "return"):
            self._change(row, content)
        elif row.kind == "release":
            self._release(row, content)
        elif row.kind == "step":
            self._step(row, content)
        elif row.kind == "restore":
            if content["backup"] != {"entry": row.entry - 1, "hash": content["previous"]}:
                raise LedgerError("it does not name the last entry of the backup.")
            self._restored, self._unsettled = True, set(self._balances)
        elif row.kind not in ("move", "leave", "arrive") and (row.kind, row.entry) != ("create", 1):
            raise LedgerError(f"an entry of kind {row.kind!r} is not allowed there.")

    def _register(self, row: Row) -> None:
        registration, total = row.registration()
        if registration.dataset in self._balances:
            raise LedgerError("its data set is registered twice.")
        if not total.within(total_amount(registration.privacy, registration.reserve).scale(1 + TOLERANCE)):
            raise LedgerError("its total is more than its guarantee allows.")
        self._balances[registration.dataset] = Balance(registration, total, NOTHING)
        self._counters[registration.dataset, ""] = Counters()
        if self._restored:
            self._unsettled.add(registration.dataset)

    def _change(self, row: Row, content: Content) -> None:
        """Apply an entry that changes a balance, and compare the sums that it contains."""
        kind, dataset, name = row.kind, content["dataset"], row.allowance
        part = None if kind == "settle" else self._allowances.get((dataset, name))
        if kind == "allowance":
            if part is not None:
                raise LedgerError("its allowance was set apart twice.")
            self._counters[dataset, content["allowance"]] = Counters()
        elif name is not None and (part is None or part.returned):
            raise LedgerError("its allowance does not exist, or was returned before.")
        if kind == "settle" and not self._restored:
            raise LedgerError("it settles a ledger that was not restored.")
        if kind == "charge" and dataset in self._unsettled:
            raise LedgerError("it is a charge to a restored data set that was not settled.")
        before = self._balances[dataset]
        after = replace(before, allowance=part).apply(kind, content)
        for field, value in after.list_sums(kind).items():
            if content[field] != value:
                raise LedgerError(f"its sum {field!r} is wrong.")
        self._balances[dataset] = replace(after, allowance=None)
        if after.allowance is not None:
            self._allowances[dataset, name] = after.allowance
        if kind == "settle":
            self._unsettled.discard(dataset)
            if after.spent != before.spent:
                stale = {key: found for key, found in self._allowances.items() if key[0] == dataset}
                self._allowances |= {key: replace(found, stale=True) for key, found in stale.items()}
        elif kind == "charge":
            self._unfinished[row.entry] = (dataset, name)
            self._count(row, content)
            if row.request is not None:
                if (dataset, row.request) in self._requests:
                    raise LedgerError("its request was charged before.")
                self._requests[dataset, row.request] = row.entry

    def _release(self, row: Row, content: Content) -> None:
        charge, account = content["charge"], (content["dataset"], row.allowance)
        if charge <= self._first:  # then the index `one_release` alone excludes a second release
            self._released.add(charge)
        elif self._unfinished.pop(charge, None) != account:
            raise LedgerError("it is a release without a charge of its own.")
        self._count(row, content)

    def _step(self, row: Row, content: Content) -> None:
        """Check that a step follows the charge of its stream, and the step before it."""
        charge, number, named = content["charge"], content["number"], (content["dataset"], content["stream"])
        if charge > self._first and self._requests.get(named) != charge:
            raise LedgerError("it is a step of a stream that was not charged.")
        if charge <= self._first and charge not in self._steps:  # then its steps before the anchor were not read
            self._steps[charge] = number
        if number != self._steps.get(charge, 0) or len(content["digest"]) != 64:
            raise LedgerError("it is not the next step of its stream.")
        self._steps[charge] = number + 1

    def _count(self, row: Row, content: Content) -> None:
        """Count a charge or a release, and check its number; the first one after the anchor is taken as it is."""
        dataset, name = content["dataset"], f"{row.kind}s"
        for key in {(dataset, ""), (dataset, row.allowance or "")}:
            self._counters[key] = self._counters.get(key, Counters()).count(row.kind, row.entry)
        counters = self._counters[dataset, ""]
        if self._first and getattr(counters, name) == 1:
            self._counters[dataset, ""] = replace(counters, **{name: content[name]})
        elif content[name] != getattr(counters, name):
            raise LedgerError(f"its number of {name} is wrong.")

    def _check_counters(self, journal: Journal) -> None:
        """Raise a `LedgerError` unless the counters that the ledger keeps are those of its entries."""
        unfinished = {entry for entry in journal.unfinished() if entry > self._first or entry in self._released}
        if unfinished != self._unfinished.keys():
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
