"""The audit of a ledger: every entry is checked again, from the first to the last."""

from __future__ import annotations

from matrixdp.errors import LedgerError, MatrixDPError
from matrixdp.ledger.chain import ORIGIN, Head, canonical_json
from matrixdp.ledger.entry_table import Row
from matrixdp.ledger.journal import Journal
from matrixdp.ledger.replay import Replay

_ENTRIES_AT_ONCE = 20_000


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
