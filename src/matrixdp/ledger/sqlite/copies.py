"""Backups of a ledger's file, restored backups, and files that were moved."""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from matrixdp.errors import LedgerError
from matrixdp.ledger.audit import audit
from matrixdp.ledger.author import Author
from matrixdp.ledger.chain import Head
from matrixdp.ledger.journal import Journal
from matrixdp.ledger.sqlite.place import (
    find_leftovers,
    find_place,
    peek_place,
    require_original_gone,
    write_mark,
    write_place,
)
from matrixdp.ledger.sqlite.schema import check_schema, leave_log, migrate
from matrixdp.ledger.sqlite.store import SQLiteStore, SQLiteTransaction, connect, ledger_error


def write_backup(store: SQLiteStore, target: Path) -> Head:
    """Copy the ledger, which may be in use, to a new file, durable when this returns; the head of the copy.

    The copy remembers the place of the original, so that it is not charged by mistake.
    """
    with _new_file(target) as draft:
        with store.reading() as journal, contextlib.closing(connect(draft, store.timeout)) as copy:
            head = journal.head()
            _copy(journal, copy)
        return head


def restore_backup(source: Path, target: Path, timeout: float, author: Author) -> Head:
    """Make a new ledger from a backup, with an entry that says so; the head of the backup.

    Journals and logs that an earlier file left beside `target` are renamed: SQLite would replay them over the new file.
    """
    store = SQLiteStore(source.absolute(), timeout)
    try:
        with _new_file(target) as draft:
            with store.reading() as journal, contextlib.closing(connect(draft, timeout)) as copy:
                head = audit(journal)
                recorded = peek_place(store.path)
                if recorded is not None:
                    require_original_gone(recorded, target)
                _copy(journal, copy)
                if not check_schema(copy, draft):
                    migrate(copy, draft)
                copy.execute("BEGIN IMMEDIATE")
                content = {"backup": {"entry": head.entry, "hash": head.hash}}
                new = Journal(SQLiteTransaction(copy), str(target), author).append("restore", content)
                write_place(copy, find_place(target, draft))
                copy.execute("COMMIT")
            write_mark(draft, new)
            for leftover in find_leftovers(target):
                leftover.rename(f"{leftover}.{secrets.token_hex(4)}.old")
        return head
    finally:
        store.close()


def confirm_move(path: Path, timeout: float, author: Author) -> Head:
    """Record that the file was moved to `path`, after a check of the whole ledger; the new head."""
    store, recorded = SQLiteStore(path, timeout), peek_place(path)
    try:
        if recorded is not None:
            require_original_gone(recorded, path)
        with store.moving(author) as journal:
            here = find_place(path)
            if recorded is None or recorded.matches(here):
                return journal.head()
            audit(journal)
            head = journal.append("move", {"from": recorded.path, "to": here.path})
            store.record_place(here)
        return head
    finally:
        store.close()


def _copy(journal: Journal, copy: sqlite3.Connection) -> None:
    """Copy the database of a transaction, as it is in this transaction."""
    transaction = journal.transaction
    assert isinstance(transaction, SQLiteTransaction)
    transaction.connection.backup(copy)
    leave_log(copy, timeout=0.0)


@contextlib.contextmanager
def _new_file(target: Path) -> Iterator[Path]:
    """A new file beside `target`, which gets that name once it is complete; an existing file is never replaced."""
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        if os.path.lexists(target):
            raise FileExistsError
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        try:
            yield draft
            _sync(draft)
            _publish(draft, target)
        finally:
            draft.unlink(missing_ok=True)
        _sync(target.parent)
    except FileExistsError:
        raise LedgerError(
            f"{target} already exists and is not replaced. Choose another path, or move that file away first."
        ) from None
    except OSError as error:
        raise LedgerError(
            f"{target} cannot be written: {error.strerror}. Choose a path in a writable directory."
        ) from None
    except sqlite3.Error as error:
        raise ledger_error(error, target) from error


def _publish(draft: Path, target: Path) -> None:
    """Give a complete file its name, unless there is such a file."""
    try:
        os.link(draft, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if os.path.lexists(target):
            raise FileExistsError from None
        os.replace(draft, target)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
