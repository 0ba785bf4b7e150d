"""Moving a ledger from one store to another, with all its entries.

Both ledgers would spend the same total, so at no time may both accept charges. The last entry of the original is of the
kind `leave`; after it, only an entry of the kind `arrive` is accepted, which the copy gets. These are the steps:

1. The original is locked and verified, and gets its entry `leave`, which is not committed yet.
2. The copy is made, with all entries up to `leave`, and committed and verified. It accepts no charges.
3. The original is committed. Neither accepts charges now.
4. The copy gets its entry `arrive`.

If the process is stopped before step 3, the original is as it was, and the copy can be removed. After step 3, the same
call again finishes step 4.
"""

from __future__ import annotations

from matrixdp.errors import LedgerError
from matrixdp.ledger.audit import audit
from matrixdp.ledger.author import Author
from matrixdp.ledger.chain import Head
from matrixdp.ledger.journal import Journal
from matrixdp.ledger.location import Address
from matrixdp.ledger.opening import create_store, open_store
from matrixdp.ledger.store import Store

_BLOCK = 2000  # entries that are copied at a time


def copy_ledger(source: Address, target: Address, timeout: float, author: Author) -> Head:
    """Copy a ledger to a new place, where it is charged from now on; the head of the copy.

    Privacy
    -------
    At no time do both ledgers accept charges, also if the process is stopped at any step.
    """
    original, copy = open_store(source, timeout), open_store(target, timeout)
    try:
        head = _leave(original, copy, target, author)
        return _arrive(original, copy, head, author)
    finally:
        original.close()
        copy.close()


def _leave(original: Store, copy: Store, target: Address, author: Author) -> Head:
    """Steps 1 to 3; the entry `leave`."""
    with original.writing(author) as journal:
        last = journal.row("last")
        if last is not None and last.kind == "leave":  # an earlier call got as far as this
            return journal.head()
        audit(journal)
        head = journal.append("leave", {"to": copy.location})
        create_store(target, copy.timeout, author, lambda written: _copy_entries(journal, written))
        with copy.reading() as written:
            if audit(written) != head:
                raise LedgerError(f"{copy.location} differs from {original.location}. Remove it and try again.")
    return head


def _arrive(original: Store, copy: Store, head: Head, author: Author) -> Head:
    """Step 4; the entry `arrive`."""
    with copy.writing(author) as journal:
        if journal.head() != head:
            raise LedgerError(
                f"{original.location} was copied already, and is charged elsewhere: its last entry says where."
            )
        return journal.append("arrive", {"from": original.location})


def _copy_entries(source: Journal, target: Journal) -> None:
    last = 0
    while rows := list(source.rows("after", last, _BLOCK)):
        target.insert(rows)
        last = rows[-1].entry
