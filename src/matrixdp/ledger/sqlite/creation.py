"""Creation of a new ledger file."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

from matrixdp.errors import LedgerError
from matrixdp.ledger.author import Author
from matrixdp.ledger.journal import Journal
from matrixdp.ledger.sqlite.schema import migrate
from matrixdp.ledger.sqlite.store import SQLiteTransaction, connect, ledger_error


def create_file(path: Path, timeout: float, author: Author, fill: Callable[[Journal], object]) -> None:
    """Create a ledger at `path` with the entries that `fill` appends, durable when this returns.

    Raises a `LedgerError` if the path exists.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        raise LedgerError(
            f"{path} already exists, and may be a ledger. Open it (Ledger.open, or matrixdp ledger add), or "
            "choose another path."
        ) from None
    except OSError as error:
        raise LedgerError(
            f"{path} cannot be created: {error.strerror}. Choose a path in a writable directory."
        ) from None
    try:
        _write_entries(path, timeout, author, fill)
    except BaseException:
        path.unlink()
        raise
    _sync_directory(path.parent)


def _write_entries(path: Path, timeout: float, author: Author, fill: Callable[[Journal], object]) -> None:
    try:
        with contextlib.closing(connect(path, timeout)) as connection:
            migrate(connection, path)
            connection.execute("BEGIN IMMEDIATE")
            fill(Journal(SQLiteTransaction(connection), str(path), author))
            connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise ledger_error(error, path) from error


def _sync_directory(directory: Path) -> None:
    """Make the new file's name durable as well, on systems that can open a directory."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
