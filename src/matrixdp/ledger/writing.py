"""Transactions that append entries to a ledger, and anchor them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from matrixdp.ledger.journal import Journal
from matrixdp.ledger.reading import LedgerReader


class LedgerWriter(LedgerReader):
    """What all methods of `Ledger` that append entries have in common."""

    @contextlib.contextmanager
    def _writing(self, *, anchored: bool = True) -> Iterator[Journal]:
        """A transaction that appends entries; the last of them is anchored, if it is `anchored`."""
        with self._store.writing(self._author) as journal:
            if self._anchor is not None:
                self._anchor.check(journal)
            before = journal.head()
            yield journal
            head = journal.head()
        if self._anchor is not None and anchored and head != before:
            self._anchor.record(head)
