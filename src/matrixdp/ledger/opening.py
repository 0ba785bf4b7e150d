"""From the path of a ledger to its store."""

from __future__ import annotations

import os
from pathlib import Path

from matrixdp.ledger.author import Author
from matrixdp.ledger.sqlite.creation import create_file
from matrixdp.ledger.sqlite.store import SQLiteStore
from matrixdp.ledger.store import Store


def open_store(location: str | os.PathLike[str], timeout: float) -> Store:
    """The store of the ledger at `location`; nothing is opened yet."""
    return SQLiteStore(Path(location).absolute(), timeout)


def create_store(location: str | os.PathLike[str], timeout: float, author: Author) -> None:
    """Create a new ledger at `location`, durable when this returns. Raises a `LedgerError` if there is one."""
    create_file(Path(location).absolute(), timeout, author)
