"""The place of a ledger's file: the file itself, its directory and its name.

SQLite finds the journal of an interrupted transaction by the name of the file. If a file were written under two names,
or moved without its journal, a journal could be missed, or undo entries that were written since. So a ledger knows the
one place at which it is written.
"""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path


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


def find_place(path: Path) -> Place:
    """The place of the file at `path`, where SQLite looks for its journal: links to files are followed."""
    real = Path(os.path.realpath(path))
    file, directory = real.stat().st_ino, real.parent.stat().st_ino
    return Place(str(file), str(directory), _as_text(real.name), _as_text(str(real)))


def read_place(connection: sqlite3.Connection) -> Place | None:
    """The place that the ledger recorded, or None if there is no record."""
    row = connection.execute("SELECT file, directory, name, path FROM place").fetchone()
    return None if row is None else Place(*map(str, row))


def write_place(connection: sqlite3.Connection, place: Place) -> None:
    """Record the place at which the ledger is written from now on."""
    values = (place.file, place.directory, place.name, place.path)
    connection.execute("INSERT OR REPLACE INTO place VALUES (1, ?, ?, ?, ?)", values)


def file_id(path: Path) -> tuple[int, int] | None:
    """Device and inode of the file, or None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _as_text(name: str) -> str:
    return name.encode("utf-8", "backslashreplace").decode()
