"""The place of a ledger's file: the file itself, its directory and its name.

SQLite finds the journal of an interrupted transaction by the name of the file. If a file were written under two names,
or moved without its journal, a journal could be missed, or undo entries that were written since. So a ledger records
the one place at which it is written, and other places only read it.

A second record, the mark, is not in the file but on it: an extended attribute with the number and hash of the last
entry. A copy of the file has none, and an old copy that is written over the file leaves it in place.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from matrixdp.errors import LedgerError
from matrixdp.ledger.values import Head

_MARK = "user.matrixdp.head"


@dataclass(frozen=True)
class Place:
    """Where a file is: inodes of the file and its directory, and its name there. `path` is for messages only.

    Devices are left out, since their numbers may change when a computer is started again.
    """

    file: str
    directory: str
    name: str
    path: str

    def matches(self, other: Place) -> bool:
        """Whether both are the same place."""
        return (self.file, self.directory, self.name) == (other.file, other.directory, other.name)


def find_place(path: Path, file: Path | None = None) -> Place:
    """The place of the file at `path`, or of the file at `file` once it is moved to `path`. Links are followed."""
    real = Path(os.path.realpath(path))
    try:
        inode, directory = (real if file is None else file).stat().st_ino, real.parent.stat().st_ino
    except OSError as error:
        raise LedgerError(f"{path} cannot be found: {error.strerror}. Nothing was charged.") from None
    return Place(str(inode), str(directory), _as_text(real.name), _as_text(str(real)))


def read_place(connection: sqlite3.Connection) -> Place:
    """The place that the ledger recorded."""
    return Place(*map(str, connection.execute("SELECT file, directory, name, path FROM place").fetchone()))


def write_place(connection: sqlite3.Connection, place: Place) -> None:
    """Record the place at which the ledger is written from now on."""
    values = (place.file, place.directory, place.name, place.path)
    connection.execute("INSERT OR REPLACE INTO place VALUES (1, ?, ?, ?, ?)", values)


def peek_place(path: Path) -> Place | None:
    """The place that the ledger recorded, read without using a journal; None if it cannot be read or has none."""
    with contextlib.suppress(sqlite3.Error, TypeError), contextlib.closing(connect_immutable(path)) as connection:
        return read_place(connection)
    return None


def connect_immutable(path: Path) -> sqlite3.Connection:
    """A connection that reads the file alone: no journal, no log, no locks."""
    uri = f"{path.as_uri()}?mode=ro&immutable=1"
    return sqlite3.connect(uri, isolation_level=None, check_same_thread=False, uri=True)


def find_leftovers(path: Path) -> list[Path]:
    """Journals and logs beside `path` that are not empty: of a transaction in progress, or an interrupted one."""
    real = os.path.realpath(path)
    found = [Path(f"{real}{suffix}") for suffix in ("-journal", "-wal", "-shm")]
    return [file for file in found if file.exists() and file.stat().st_size > 0]


def require_own_journal(path: Path) -> None:
    """Raise a `LedgerError` if there is a journal beside the file that cannot belong to its present content.

    SQLite would undo what it names, and with it entries that were written at another place since.
    """
    journal = Path(f"{os.path.realpath(path)}-journal")
    with contextlib.suppress(FileNotFoundError):
        if journal.stat().st_size > 0 and (recorded := peek_place(path)) is not None:
            here = find_place(path)
            if not recorded.matches(here):
                raise LedgerError(
                    f"{journal} was left by an interrupted write, but {path} has been written as {recorded.path} "
                    "since. Nothing was read or charged. Remove that journal."
                )


def require_place(connection: sqlite3.Connection, path: Path) -> None:
    """Raise a `LedgerError` unless the file is where it was recorded to be."""
    recorded, here = read_place(connection), find_place(path)
    if recorded.matches(here):
        return
    if recorded.file == here.file:
        raise LedgerError(
            f"{path} is another name of the ledger {recorded.path}, or it was moved. A ledger is written under one "
            f"name only. Nothing was charged. Use {recorded.path}, or confirm the move: matrixdp ledger moved {path}"
        )
    raise LedgerError(
        f"{path} is a copy of the ledger {recorded.path}, or it was moved to another disk. A copy would spend the "
        f"total twice. Nothing was charged. Use the original. If the original is lost and this is a backup: "
        f"matrixdp ledger restore {path} NEW. If the original was moved here: matrixdp ledger moved {path}"
    )


def require_original_gone(recorded: Place | None, path: Path) -> None:
    """Raise a `LedgerError` if the file that `recorded` describes is still there, beside the one at `path`."""
    if recorded is None or os.path.realpath(recorded.path) == os.path.realpath(path):
        return
    original = Path(recorded.path)
    found = file_id(original)
    if found is not None and str(found[1]) == recorded.file:
        raise LedgerError(
            f"{path} is a copy or another name of the ledger {original}, which is still there: both would spend the "
            "total twice. Nothing was changed. Use the original, or move it away first."
        )
    if found is None and find_leftovers(original):
        raise LedgerError(
            f"{path} was moved from {original} after an interrupted write, whose journal is still there. Nothing was "
            f"changed. Move the file back, run `matrixdp ledger show {original}`, which undoes that write, and move it "
            "again."
        )


def read_mark(path: Path) -> Head | None:
    """The entry that is marked on the file as its last, or None if there is no mark."""
    with contextlib.suppress(OSError, AttributeError, ValueError):
        entry, _, digest = os.getxattr(path, _MARK).decode().partition(":")
        return Head(int(entry), digest)
    return None


def require_mark(connection: sqlite3.Connection, path: Path) -> None:
    """Raise a `LedgerError` if the entry that is marked on the file is not in it: an old copy replaced it."""
    mark = read_mark(path)
    if mark is None:
        return
    found = connection.execute("SELECT hash FROM entries WHERE entry = ?", (mark.entry,)).fetchone()
    if found != (mark.hash,):
        raise LedgerError(
            f"{path} was replaced by an earlier copy of itself, or by another ledger: entry {mark.entry}, which was "
            "written to this file, is not in it. Nothing was charged. Put the latest file back; if it is lost: "
            f"matrixdp ledger restore {path} NEW"
        )


def write_mark(path: Path, head: Head) -> None:
    """Mark the last entry on the file, where the file system has extended attributes."""
    with contextlib.suppress(OSError, AttributeError):
        os.setxattr(path, _MARK, f"{head.entry}:{head.hash}".encode())


def file_id(path: Path) -> tuple[int, int] | None:
    """Device and inode of the file, or None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _as_text(name: str) -> str:
    return name.encode("utf-8", "backslashreplace").decode()
