"""A ledger in a SQLite file: its connection, transactions and errors; new files, backups, and files that were moved."""

import contextlib
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from matrixdp.errors import LedgerError
from matrixdp.ledger import place
from matrixdp.ledger.audit import audit
from matrixdp.ledger.entries import RESTORE, Author
from matrixdp.ledger.journal import Journal
from matrixdp.ledger.store import Store, append_first, append_restore, require_version
from matrixdp.ledger.values import Head

# What makes an empty file a ledger. Read at once: a process may have given up the right to read it when it needs it.
SCRIPT = Path(__file__).with_name("sql").joinpath("sqlite.sql").read_text(encoding="utf-8")
_FORMAT = 0x4D78_4450  # "MxDP"
_VERSION = 3  # earlier ones were never published
_WRITABLE = "Make the file and its directory writable for this user"
_REMEDIES = {
    sqlite3.SQLITE_BUSY: "another process holds it locked. Try again, or open it with a longer timeout",
    sqlite3.SQLITE_READONLY: f"it cannot be written. {_WRITABLE}",
    sqlite3.SQLITE_CANTOPEN: f"it cannot be opened. Check the path, which must be that of a file. {_WRITABLE}",
    sqlite3.SQLITE_PERM: f"permission was denied. {_WRITABLE}",
    sqlite3.SQLITE_FULL: "the disk is full. Free some space and try again",
    sqlite3.SQLITE_IOERR: "the disk cannot be read or written. Make sure that it works and has free space",
    sqlite3.SQLITE_CORRUPT: f"it is damaged, perhaps truncated. {RESTORE}",
    sqlite3.SQLITE_NOTADB: f"it is not a ledger, or it is damaged. Check the path. {RESTORE}",
}

# EXTRA syncs the journal, the database and, once the journal is deleted, the directory: the charge is durable then.
_SETTINGS = ("synchronous = EXTRA", "fullfsync = ON", "temp_store = MEMORY", "trusted_schema = OFF")


class SQLiteJournal(Journal):
    """A transaction of a connection."""

    connection: sqlite3.Connection

    def execute(self, sql: str, values: Sequence[object] = ()) -> Iterator[tuple[Any, ...]]:
        return self.connection.execute(sql, values)

    def faults(self) -> Iterator[str]:
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as pattern:
            pattern.executescript(SCRIPT)
            missing = _guards(pattern) - _guards(self.connection)
        for name, _ in sorted(missing):
            yield f"its guard {name} was removed or altered."
        for (finding,) in self.connection.execute("PRAGMA integrity_check"):
            if finding != "ok":
                yield f"its pages are damaged: {finding}."


class SQLiteStore(Store):
    """A ledger in a SQLite file with a rollback journal.

    SQLite's locks are on the file itself, so they hold under every name of it.
    """

    driver_errors = (sqlite3.Error,)

    def __init__(self, path: Path, timeout: float) -> None:
        self.path = path
        self._file_id: tuple[int, int] | None = None
        self._moving = False
        super().__init__(path, timeout)

    def create(self, author: Author, fill: Callable[[Journal], object] = append_first) -> None:
        exists = (
            "already exists, and may be a ledger. Open it (Ledger.open, or matrixdp ledger add), or choose another path"
        )
        self._make(lambda new: new.executescript(f"BEGIN IMMEDIATE; {SCRIPT}"), author, fill, "created", exists)

    def back_up(self, target: Store) -> Head:
        if not isinstance(target, SQLiteStore):
            raise target.not_a_file()
        with new_file(target.path) as draft, closing(connect(draft, self.timeout)) as copy, self.reading() as journal:
            _copy(journal, copy, target)  # remembers the place of the original, so that it is not charged by mistake
            return journal.head()

    def restore(self, backup: Store, author: Author) -> None:
        if not isinstance(backup, SQLiteStore):
            raise backup.not_a_file()
        if not backup.path.exists():
            raise LedgerError(f"there is no backup at {backup.path}. Check the path.")

        def copy_backup(connection: sqlite3.Connection) -> None:
            with backup.reading() as journal:
                audit(journal)
                place.require_original_gone(place.peek_place(backup.path), self.path)
                _copy(journal, connection, self)
            connection.execute("BEGIN IMMEDIATE")

        with closing(backup):
            self._make(copy_backup, author, append_restore)

    def _make(
        self,
        prepare: Callable[[sqlite3.Connection], object],
        author: Author,
        fill: Callable[[Journal], object],
        *words: str,
    ) -> None:
        """Make a new file with the entries that `fill` appends; `prepare` makes its tables and begins a transaction."""
        place.require_local(self.path)
        with new_file(self.path, *words) as draft, closing(connect(draft, self.timeout)) as connection:
            prepare(connection)
            journal = SQLiteJournal(connection, self.location, author)
            fill(journal)
            place.write_place(journal, place.find_place(self.path, draft))
            marked = journal.head(), journal.first_hash()
            connection.execute("COMMIT")
        place.write_marks(self.path, *marked, anew=True)

    def confirm_move(self, author: Author) -> None:
        recorded = place.peek_place(self.path)
        place.require_original_gone(recorded, self.path)
        with self._lock:
            self._moving = True
            try:
                with self.writing(author) as journal:
                    marks = place.read_marks(Path(os.path.realpath(self.path)), journal.first_hash())
                    here = place.find_place(self.path, marks=marks)
                    if recorded is not None and not (recorded.matches(here) and recorded.marks <= here.marks):
                        place.require_marked_entries(journal, self.path, Path(recorded.path))
                        audit(journal)
                        journal.append("move", {"from": recorded.path, "to": here.path})
                        place.write_place(journal, here)
            finally:
                self._moving = False
                self.close()

    def find_blind_spots(self) -> list[str]:
        with self.reading() as journal:  # the file system may not show what was done
            marks, spots = place.read_marks(Path(os.path.realpath(self.path)), journal.first_hash()), []
        if "born" not in place.find_identity(self.path) and "directory" not in marks:
            spots.append("that the file was removed and an old copy put in its place")
        if not marks:
            spots.append("that an old copy was written over the file")
        elif "directory" not in marks:
            spots.append("that an old copy was written over the file together with its extended attributes (cp -a)")
        return spots

    def require_latest(self, journal: Journal) -> None:
        place.require_marked_entries(journal, self.path, Path(os.path.realpath(self.path)))

    def _begin(self, author: Author | None) -> SQLiteJournal:
        place.require_own_journal(self.path)  # before SQLite uses it
        connection = self._open()
        connection.execute("BEGIN DEFERRED" if author is None else "BEGIN IMMEDIATE")
        self._require_same_file()
        self._require_schema(connection)
        journal = SQLiteJournal(connection, self.location, author)
        if author is not None:
            if connection.execute("PRAGMA journal_mode").fetchone() == ("wal",):
                raise LedgerError(
                    f"{self.path} has a write-ahead log, which another program set up. Two names of the file would "
                    "have two. Nothing was charged. Leave it: sqlite3 FILE 'PRAGMA journal_mode = DELETE'"
                )
            place.require_local(self.path)
            place.require_place(journal, self.path, moving=self._moving)
        return journal

    def _commit(self, journal: Journal) -> None:
        head, first = journal.head(), journal.first_hash()
        journal.execute("COMMIT")
        self._require_same_file("What was just charged may be in the other file only, so nothing was released")
        if journal.author is not None:
            place.write_marks(self.path, head, first)

    def _translate(self, error: Exception) -> LedgerError:
        return translate_error(self.path, error)

    def _connect(self) -> sqlite3.Connection:
        self._file_id = place.file_id(self.path)
        if self._file_id is None:
            raise LedgerError(
                f"there is no ledger at {self.path}. Check the path, or create one: matrixdp ledger new {self.path} "
                "--dataset NAME --epsilon E --delta D, or Ledger.create(path) in Python."
            )
        return connect(self.path, self.timeout)

    def _require_same_file(self, result: str = "Nothing was charged") -> None:
        """Raise a `LedgerError` if the file was removed or replaced: a charge to it would be lost."""
        if place.file_id(self.path) != self._file_id:
            self._disconnect()
            raise LedgerError(
                f"{self.path} was removed or replaced while it was open. {result}. Put it back, or open it again."
            )

    def _require_schema(self, connection: sqlite3.Connection) -> None:
        """Raise a `LedgerError` unless the file is a ledger of the version that is written today."""
        found, version = (
            connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        )
        if found != _FORMAT:
            raise LedgerError(
                f"{self.path} is not a matrixdp ledger, or its creation was interrupted. Check the path. If the file "
                "is not needed, remove it and create a ledger there: Ledger.create(path)."
            )
        require_version(version, _VERSION, self.location)


@contextlib.contextmanager
def new_file(
    path: Path,
    verb: str = "written",
    exists: str = "already exists and is not replaced. Choose another path, or move that file away first",
) -> Iterator[Path]:
    """A new file beside a path, which only its owner may read, and which gets that name once it is complete.

    An existing file is never replaced. Journals and logs that an earlier file left there are renamed: SQLite would
    replay them over the new file.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        if os.path.lexists(path):
            raise FileExistsError
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        try:
            yield draft
            _sync(draft)
            leftovers = place.find_leftovers(path)
            if os.path.lexists(path):  # made meanwhile, so that the journal may be its own
                raise FileExistsError
            for leftover in leftovers:
                leftover.rename(f"{leftover}.{secrets.token_hex(4)}.old")
            _publish(draft, path)
        finally:
            draft.unlink(missing_ok=True)
        with contextlib.suppress(PermissionError):  # not every system can open a directory
            _sync(path.parent)
    except FileExistsError:
        raise LedgerError(f"{path} {exists}.") from None
    except OSError as error:
        raise LedgerError(
            f"{path} cannot be {verb}: {error.strerror}. Choose a path in a writable directory."
        ) from None
    except sqlite3.Error as error:
        raise translate_error(path, error) from error


def translate_error(path: Path, error: Exception) -> LedgerError:
    """The `LedgerError` for an error of SQLite, with the file and the remedy."""
    code = getattr(error, "sqlite_errorcode", None)
    if code in (sqlite3.SQLITE_READONLY_ROLLBACK, sqlite3.SQLITE_READONLY_RECOVERY):
        return LedgerError(
            f"{path}: a write to it was interrupted, and must be undone by a user who may write the file and its "
            f"directory: matrixdp ledger show {path}"
        )
    what = "SQLite refused" if code is None else _REMEDIES.get(code & 0xFF, "SQLite refused")
    return LedgerError(f"{path}: {what} ({error}). Nothing was released.")


def connect(path: Path, timeout: float) -> sqlite3.Connection:
    """A connection to an existing file, whose commits are durable when they return."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw", timeout=timeout, isolation_level=None, check_same_thread=False, uri=True
    )
    try:
        for setting in _SETTINGS:
            connection.execute(f"PRAGMA {setting}")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _guards(connection: sqlite3.Connection) -> set[tuple[str, str]]:
    """Triggers and indexes of a file by their names, with single spaces."""
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE type IN ('trigger', 'index')")
    return {(str(name), " ".join(str(sql).split())) for name, sql in rows}


def _copy(journal: Journal, copy: sqlite3.Connection, target: SQLiteStore) -> None:
    """Copy the database of a transaction, as it is in this transaction; errors of writing name the target."""
    assert isinstance(journal, SQLiteJournal)
    try:
        journal.connection.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE").fetchone()
    except sqlite3.OperationalError as error:  # a damaged original raises a `sqlite3.DatabaseError`
        raise translate_error(target.path, error) from error


def _publish(draft: Path, target: Path) -> None:
    """Give a complete file its name, unless there is such a file."""
    try:
        os.link(draft, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        os.close(os.open(target, os.O_CREAT | os.O_EXCL, 0o600))
        os.replace(draft, target)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
