"""From the path of a ledger to its store, and what is done with whole ledgers."""

from __future__ import annotations

import os
from pathlib import Path

from matrixdp.errors import LedgerError
from matrixdp.ledger.author import Author
from matrixdp.ledger.chain import Head
from matrixdp.ledger.sqlite.copies import confirm_move, restore_backup, write_backup
from matrixdp.ledger.sqlite.creation import create_file
from matrixdp.ledger.sqlite.store import SQLiteStore
from matrixdp.ledger.store import Store


def open_store(location: str | os.PathLike[str], timeout: float) -> Store:
    """The store of the ledger at `location`; nothing is opened yet."""
    return SQLiteStore(Path(location).absolute(), timeout)


def create_store(location: str | os.PathLike[str], timeout: float, author: Author) -> None:
    """Create a new ledger at `location`, durable when this returns. Raises a `LedgerError` if there is one."""
    create_file(Path(location).absolute(), timeout, author)


def backup_store(store: Store, target: str | os.PathLike[str]) -> Head:
    """Copy a ledger in a file to a new file; the head of the copy."""
    if not isinstance(store, SQLiteStore):
        raise LedgerError(f"{store.location} is not a file. Back it up with the tools of its database.")
    return write_backup(store, Path(target).absolute())


def restore_store(
    source: str | os.PathLike[str], location: str | os.PathLike[str], timeout: float, author: Author
) -> Head:
    """Make a new ledger at `location` from a backup; the head of the backup."""
    return restore_backup(Path(source).absolute(), Path(location).absolute(), timeout, author)


def move_store(location: str | os.PathLike[str], timeout: float, author: Author) -> Head:
    """Record that the ledger's file was moved to `location`; the head."""
    return confirm_move(Path(location).absolute(), timeout, author)
