"""From the path or the URL of a ledger to its store."""

from __future__ import annotations

import os

from matrixdp.ledger.author import Author
from matrixdp.ledger.location import PostgresURL, parse_location
from matrixdp.ledger.postgres.creation import create_tables
from matrixdp.ledger.postgres.store import PostgresStore
from matrixdp.ledger.sqlite.creation import create_file
from matrixdp.ledger.sqlite.store import SQLiteStore
from matrixdp.ledger.store import Store


def open_store(location: str | os.PathLike[str] | PostgresURL, timeout: float) -> Store:
    """The store of the ledger at `location`; nothing is opened yet."""
    found = parse_location(location)
    return PostgresStore(found, timeout) if isinstance(found, PostgresURL) else SQLiteStore(found, timeout)


def create_store(location: str | os.PathLike[str] | PostgresURL, timeout: float, author: Author) -> None:
    """Create a new ledger at `location`, durable when this returns. Raises a `LedgerError` if there is one."""
    found = parse_location(location)
    if isinstance(found, PostgresURL):
        create_tables(found, timeout, author)
    else:
        create_file(found, timeout, author)
