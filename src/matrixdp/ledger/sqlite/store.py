"""The SQLite file of a ledger: its connection, its transactions and their errors."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from matrixdp.errors import LedgerError
from matrixdp.ledger.author import Author
from matrixdp.ledger.chain import Head
from matrixdp.ledger.journal import Journal
from matrixdp.ledger.sqlite.place import (
    Place,
    connect_immutable,
    file_id,
    is_closed_log,
    read_mark,
    require_own_journal,
    require_place,
    write_mark,
    write_place,
)
from matrixdp.ledger.sqlite.schema import check_schema, has_log, missing_guards, upgrade, view_as_latest
from matrixdp.ledger.store import Store

_WRITABLE = "Make the file and its directory writable for this user"
_BACKUP = "Restore it from a backup; until then, treat its data sets as spent"
_REMEDIES = {
    sqlite3.SQLITE_BUSY: "another process holds it locked. Try again, or open it with a longer timeout",
    sqlite3.SQLITE_READONLY: f"it cannot be written. {_WRITABLE}",
    sqlite3.SQLITE_CANTOPEN: f"it cannot be opened. Check the path, which must be that of a file. {_WRITABLE}",
    sqlite3.SQLITE_PERM: f"permission was denied. {_WRITABLE}",
    sqlite3.SQLITE_FULL: "the disk is full. Free some space and try again",
    sqlite3.SQLITE_IOERR: "the disk cannot be read or written. Make sure that it works and has free space",
    sqlite3.SQLITE_CORRUPT: f"it is damaged, perhaps truncated. {_BACKUP}",
    sqlite3.SQLITE_NOTADB: f"it is not a ledger, or it is damaged. Check the path. {_BACKUP}",
}

# EXTRA syncs the journal, the database and, once the journal is deleted, the directory: the charge is durable then.
_SETTINGS = ("synchronous = EXTRA", "fullfsync = ON", "temp_store = MEMORY", "trusted_schema = OFF")


class SQLiteTransaction:
    """A transaction of a connection, as a `Journal` uses it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def execute(self, sql: str, values: Sequence[object] = ()) -> Iterator[tuple[Any, ...]]:
        """The rows of a statement."""
        return self.connection.execute(sql, values)

    def insert(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """Run a statement once for each of the rows."""
        self.connection.executemany(sql, rows)

    def faults(self) -> Iterator[str]:
        """Missing or altered triggers and indexes, and damaged pages."""
        for name in sorted(missing_guards(self.connection)):
            yield f"its guard {name} was removed or altered."
        for (finding,) in self.connection.execute("PRAGMA integrity_check"):
            if finding != "ok":
                yield f"its pages are damaged: {finding}."

    def require_units(self) -> None:
        """Nothing to do: a file has the latest schema when it is written."""


class SQLiteStore(Store):
    """A ledger in a SQLite file with a rollback journal.

    SQLite's locks are on the file itself, so they hold under every name of it. A file of an older version is read as
    it is, and upgraded when it is first written.
    """

    driver_errors = (sqlite3.Error,)

    def __init__(self, path: Path, timeout: float) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None
        self._file_id: tuple[int, int] | None = None
        self._latest = True
        self._moving = False
        super().__init__(timeout)

    @property
    def address(self) -> Path:
        """Path of the file."""
        return self.path

    def _begin(self, *, writing: bool) -> SQLiteTransaction:
        require_own_journal(self.path)  # before SQLite uses it
        connection = self._open()
        connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN DEFERRED")
        self._require_same_file()
        self._latest = check_schema(connection, self.path)
        if writing and (not self._latest or has_log(connection)):
            connection.execute("ROLLBACK")
            upgrade(connection, self.path, self.timeout)
            return self._begin(writing=True)
        if not self._latest:
            view_as_latest(connection)
        if writing:
            if not self._moving:
                require_place(connection, self.path)
            self._require_mark(connection)
        return SQLiteTransaction(connection)

    def _commit(self, *, writing: bool) -> None:
        connection = self._open()
        head = Head(*connection.execute("SELECT entry, hash FROM head").fetchone())
        connection.execute("COMMIT")
        self._require_same_file("What was just charged may be in the other file only, so nothing was released")
        if writing:
            write_mark(self.path, head)
        if not self._latest:  # an idle connection would keep others from upgrading the file
            self._disconnect()

    @contextlib.contextmanager
    def moving(self, author: Author) -> Iterator[Journal]:
        """A transaction that may write a file that was moved, and calls `record_place`."""
        with self._lock:
            self._moving = True
            try:
                with self.writing(author) as journal:
                    yield journal
            finally:
                self._moving = False

    def record_place(self, place: Place) -> None:
        """Record the place at which the ledger is written from now on."""
        write_place(self._open(), place)

    def _roll_back(self) -> None:
        try:
            if self._connection is not None and self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            self._disconnect()

    def _disconnect(self) -> None:
        connection, self._connection = getattr(self, "_connection", None), None
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.close()

    def _translate(self, error: Exception) -> LedgerError:
        return ledger_error(error, self.path)

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            found = file_id(self.path)
            if found is None:
                raise LedgerError(
                    f"there is no ledger at {self.path}. Check the path, or create one: Ledger.create(path)."
                )
            closed = is_closed_log(self.path)
            self._connection = connect_immutable(self.path) if closed else connect(self.path, self.timeout)
            self._file_id = found
        return self._connection

    def _require_mark(self, connection: sqlite3.Connection) -> None:
        """Raise a `LedgerError` if the entry that is marked on the file is not in it: an old copy replaced it."""
        mark = read_mark(self.path)
        if mark is None:
            return
        found = connection.execute("SELECT hash FROM entries WHERE entry = ?", (mark.entry,)).fetchone()
        if found != (mark.hash,):
            raise LedgerError(
                f"{self.path} was replaced by an earlier copy of itself, or by another ledger: entry {mark.entry}, "
                "which was written to this file, is not in it. Nothing was charged. Put the latest file back; "
                f"if it is lost: matrixdp ledger restore {self.path} NEW"
            )

    def _require_same_file(self, result: str = "Nothing was charged") -> None:
        """Raise a `LedgerError` if the file was removed or replaced: a charge to it would be lost."""
        if file_id(self.path) != self._file_id:
            self._disconnect()
            raise LedgerError(
                f"{self.path} was removed or replaced while it was open. {result}. Put it back, or open it again."
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


def ledger_error(error: Exception, path: Path) -> LedgerError:
    """The `LedgerError` for an error of SQLite, with the file and the remedy."""
    code = getattr(error, "sqlite_errorcode", None)
    if code in (sqlite3.SQLITE_READONLY_ROLLBACK, sqlite3.SQLITE_READONLY_RECOVERY):
        return LedgerError(
            f"{path}: a write to it was interrupted, and must be undone by a user who may write the file and its "
            f"directory: matrixdp ledger show {path}"
        )
    what = "SQLite refused" if code is None else _REMEDIES.get(code & 0xFF, "SQLite refused")
    return LedgerError(f"{path}: {what} ({error}). Nothing was released.")
