"""The file on disk: connections, transactions, locks, forks and their errors.

There is one connection per `Store` and process, used by one thread at a time. SQLite's locks do not survive a fork, and
a connection that did could write to a log that another process has already removed. So all connections are closed
before this process forks, and parent and child open them again when needed.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path

from matrixdp.errors import LedgerError
from matrixdp.ledger.journal import Journal
from matrixdp.ledger.schema import check_schema

_WRITABLE = "Make the file and its directory writable for this user"
_BACKUP = "Restore it from a backup; until then, treat its data sets as spent"
_REMEDIES = {
    sqlite3.SQLITE_BUSY: "another process holds it locked. Try again, or open it with a longer timeout",
    sqlite3.SQLITE_READONLY: f"it cannot be written. {_WRITABLE}",
    sqlite3.SQLITE_CANTOPEN: f"it cannot be opened. Check the path. {_WRITABLE}",
    sqlite3.SQLITE_PERM: f"permission was denied. {_WRITABLE}",
    sqlite3.SQLITE_FULL: "the disk is full. Free some space and try again",
    sqlite3.SQLITE_IOERR: "the disk cannot be read or written. Make sure that it works and has free space",
    sqlite3.SQLITE_CORRUPT: f"it is damaged, perhaps truncated. {_BACKUP}",
    sqlite3.SQLITE_NOTADB: f"it is not a ledger, or it is damaged. Check the path. {_BACKUP}",
}

# With a write-ahead log, EXTRA is the same as FULL: the log is synced at each commit. With other journals, EXTRA also
# syncs the directory.
_SETTINGS = ("synchronous = EXTRA", "fullfsync = ON", "checkpoint_fullfsync = ON", "trusted_schema = OFF")


class Store:
    """The file of a ledger.

    Privacy
    -------
    When a `writing` block ends without an error, its entries are durable.
    """

    def __init__(self, path: Path, timeout: float) -> None:
        self.path = path
        self.timeout = timeout
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._file_id: tuple[int, int] | None = None
        self._first_hash: str | None = None
        self._pid = os.getpid()
        with _REGISTRY_LOCK:
            _STORES.add(self)

    def __del__(self) -> None:
        self._disconnect()

    def reading(self) -> contextlib.AbstractContextManager[Journal]:
        """Context manager of a transaction that reads one state of the file."""
        return self._transaction("BEGIN DEFERRED")

    def writing(self) -> contextlib.AbstractContextManager[Journal]:
        """Context manager of a transaction that excludes other writers; durable at its end, rolled back on an error."""
        return self._transaction("BEGIN IMMEDIATE")

    def close(self) -> None:
        """Close the connection, once it is idle. It is opened again when next used."""
        with self._lock:
            self._disconnect()

    @contextlib.contextmanager
    def _transaction(self, begin: str) -> Iterator[Journal]:
        with self._lock:
            try:
                connection = self._open()
                connection.execute(begin)
                self._require_same_file()
                yield Journal(connection, self.path)
                connection.execute("COMMIT")
            except sqlite3.Error as error:
                self._disconnect()  # its state is unknown; the next use opens a new one
                raise ledger_error(error, self.path) from error
            except BaseException:
                self._roll_back()
                raise

    def _open(self) -> sqlite3.Connection:
        if self._pid != os.getpid():
            raise LedgerError(
                f"{self.path}: this process was forked without Python's knowledge, and may not use the "
                "ledger. Start it with multiprocessing or subprocess."
            )
        if self._connection is not None:
            return self._connection
        file_id = _file_id(self.path)
        if file_id is None:
            raise LedgerError(f"there is no ledger at {self.path}. Check the path, or create one: Ledger.create(path).")
        connection = connect(self.path, self.timeout)
        try:
            check_schema(connection, self.path)
            first = connection.execute("SELECT hash FROM entries WHERE entry = 1").fetchone()
        except BaseException:
            connection.close()
            raise
        self._connection, self._file_id = connection, file_id
        if first is None or self._first_hash not in (None, first[0]):
            self._disconnect()
            raise LedgerError(f"{self.path} is not the ledger that was first opened here. Open it again.")
        self._first_hash = first[0]
        return connection

    def _disconnect(self) -> None:
        """Close the connection, which rolls back what was not committed."""
        connection, self._connection = getattr(self, "_connection", None), None
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.close()

    def _roll_back(self) -> None:
        try:
            if self._connection is not None and self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            self._disconnect()

    def _require_same_file(self) -> None:
        """Raise a `LedgerError` if the file was removed or replaced: a charge to it would be lost."""
        if _file_id(self.path) != self._file_id:
            self._disconnect()
            raise LedgerError(
                f"{self.path} was removed or replaced while it was open. Nothing was charged. Put it back, "
                "or open it again."
            )


def connect(path: Path, timeout: float) -> sqlite3.Connection:
    """A connection to an existing file, whose commits are durable when they return."""
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode=rw", timeout=timeout, isolation_level=None, check_same_thread=False, uri=True
    )
    try:
        for setting in _SETTINGS:
            connection.execute(f"PRAGMA {setting}")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def ledger_error(error: sqlite3.Error, path: Path) -> LedgerError:
    """The `LedgerError` for an error of SQLite, with the file and the remedy."""
    code = getattr(error, "sqlite_errorcode", None)
    what = "SQLite refused" if code is None else _REMEDIES.get(code & 0xFF, "SQLite refused")
    return LedgerError(f"{path}: {what} ({error}). Nothing was released.")


def _file_id(path: Path) -> tuple[int, int] | None:
    """Device and inode of the file, or None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


_STORES: weakref.WeakSet[Store] = weakref.WeakSet()
_REGISTRY_LOCK = threading.RLock()
_locked_stores: list[Store] = []


def _before_fork() -> None:
    _REGISTRY_LOCK.acquire()
    for store in list(_STORES):
        store._lock.acquire()
        store._disconnect()
        _locked_stores.append(store)


def _after_fork() -> None:
    while _locked_stores:
        store = _locked_stores.pop()
        store._pid = os.getpid()
        store._lock.release()
    _REGISTRY_LOCK.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
