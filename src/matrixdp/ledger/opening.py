"""From the path or the URL of a ledger to its store, and what is done with whole ledgers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from matrixdp.errors import LedgerError
from matrixdp.ledger.author import Author
from matrixdp.ledger.chain import Head
from matrixdp.ledger.entry_content import create_content
from matrixdp.ledger.journal import Journal
from matrixdp.ledger.location import Address, PostgresURL, parse_location
from matrixdp.ledger.postgres.creation import create_tables, mark_restored
from matrixdp.ledger.postgres.store import PostgresStore
from matrixdp.ledger.sqlite.copies import confirm_move, restore_backup, write_backup
from matrixdp.ledger.sqlite.creation import create_file
from matrixdp.ledger.sqlite.store import SQLiteStore
from matrixdp.ledger.store import Store


def open_store(location: Address, timeout: float) -> Store:
    """The store of the ledger at `location`; nothing is opened yet."""
    found = parse_location(location)
    return PostgresStore(found, timeout) if isinstance(found, PostgresURL) else SQLiteStore(found, timeout)


def create_store(
    location: Address, timeout: float, author: Author, fill: Callable[[Journal], object] | None = None
) -> None:
    """Create a new ledger at `location`, durable when this returns. Raises a `LedgerError` if there is one.

    `fill` appends its entries; by default, these are the first entry alone.
    """
    found, write = parse_location(location), fill or _append_first
    if isinstance(found, PostgresURL):
        create_tables(found, timeout, author, write)
    else:
        create_file(found, timeout, author, write)


def _append_first(journal: Journal) -> None:
    journal.append("create", create_content())


def backup_store(store: Store, target: Address) -> Head:
    """Copy a ledger in a file to a new file; the head of the copy."""
    if not isinstance(store, SQLiteStore):
        raise LedgerError(f"{store.location} is not a file. Back it up with the tools of its database.")
    return write_backup(store, _require_file(target))


def restore_store(source: Address, location: Address, timeout: float, author: Author) -> Head:
    """Make a new ledger at `location` from a backup; the head of the backup.

    A ledger in PostgreSQL is restored with its server. Given as both arguments, it is marked as restored.
    """
    found = parse_location(location)
    if isinstance(found, PostgresURL) and parse_location(source) == found:
        return mark_restored(found, timeout, author)
    return restore_backup(_require_file(source), _require_file(location), timeout, author)


def move_store(location: Address, timeout: float, author: Author) -> Head:
    """Record that the ledger's file was moved to `location`; the head."""
    return confirm_move(_require_file(location), timeout, author)


def _require_file(location: Address) -> Path:
    found = parse_location(location)
    if isinstance(found, PostgresURL):
        raise LedgerError(f"{found} is not a file. Use the tools of its database, or matrixdp ledger copy.")
    return found
