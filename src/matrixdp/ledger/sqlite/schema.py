"""The schema of the SQLite file, whose entries are only appended, and its migrations."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from pathlib import Path

from matrixdp.errors import LedgerError
from matrixdp.ledger.sqlite.place import find_place, write_place

APPLICATION_ID = 0x4D78_4450  # "MxDP"

_ENTRY_TRIGGERS = (
    """
    CREATE TRIGGER entries_follow BEFORE INSERT ON entries
    WHEN NEW.entry IS NOT (SELECT entry + 1 FROM head)
      OR NEW.entry IS NOT (SELECT COALESCE(MAX(entry), 0) + 1 FROM entries)
    BEGIN SELECT RAISE(ABORT, 'an entry must follow the last one'); END
    """,
    """
    CREATE TRIGGER entries_move_head AFTER INSERT ON entries
    BEGIN UPDATE head SET entry = NEW.entry, hash = NEW.hash; END
    """,
    """
    CREATE TRIGGER head_follows BEFORE UPDATE ON head
    WHEN NEW.entry IS NOT OLD.entry + 1 OR NEW.hash IS NOT (SELECT hash FROM entries WHERE entry = NEW.entry)
    BEGIN SELECT RAISE(ABORT, 'the head moves with the entries only'); END
    """,
    """
    CREATE TRIGGER entries_stay BEFORE UPDATE ON entries
    BEGIN SELECT RAISE(ABORT, 'entries are never altered'); END
    """,
    """
    CREATE TRIGGER entries_last BEFORE DELETE ON entries
    BEGIN SELECT RAISE(ABORT, 'entries are never deleted'); END
    """,
)

_VERSION_1 = (
    """
    CREATE TABLE entries (
        entry   INTEGER PRIMARY KEY,
        kind    TEXT NOT NULL CHECK (kind IN ('create', 'register', 'charge', 'release')),
        dataset TEXT,
        request TEXT,
        charge  INTEGER,
        body    TEXT NOT NULL,
        payload TEXT,
        hash    TEXT NOT NULL
    )
    """,
    "CREATE UNIQUE INDEX one_registration ON entries (dataset) WHERE kind = 'register'",
    """
    CREATE UNIQUE INDEX one_charge ON entries (dataset, request)
    WHERE kind = 'charge' AND request IS NOT NULL
    """,
    "CREATE UNIQUE INDEX one_release ON entries (charge) WHERE kind = 'release'",
    "CREATE INDEX charges ON entries (dataset, entry) WHERE kind = 'charge'",
    "CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), entry INTEGER NOT NULL, hash TEXT NOT NULL)",
    "INSERT INTO head VALUES (1, 0, '0000000000000000000000000000000000000000000000000000000000000000')",
    *_ENTRY_TRIGGERS,
    """
    CREATE TRIGGER head_lasts BEFORE DELETE ON head
    BEGIN SELECT RAISE(ABORT, 'the head is never deleted'); END
    """,
)

# The table is built again, since SQLite cannot alter its list of kinds. `verify` checks the kinds now.
# `counters` and `unfinished` save reading all entries; `verify` computes them again. A data set is counted under the
# allowance ''.
_VERSION_2 = (
    "DROP TRIGGER head_follows",
    """
    CREATE TABLE entries_2 (
        entry     INTEGER PRIMARY KEY,
        kind      TEXT NOT NULL,
        dataset   TEXT,
        request   TEXT,
        charge    INTEGER,
        allowance TEXT,
        body      TEXT NOT NULL,
        payload   TEXT,
        hash      TEXT NOT NULL
    )
    """,
    """
    INSERT INTO entries_2
    SELECT entry, kind, dataset, request, charge, NULL, body, payload, hash FROM entries ORDER BY entry
    """,
    "DROP TABLE entries",
    "ALTER TABLE entries_2 RENAME TO entries",
    "CREATE UNIQUE INDEX one_registration ON entries (dataset) WHERE kind = 'register'",
    "CREATE INDEX registrations ON entries (entry) WHERE kind = 'register'",
    """
    CREATE UNIQUE INDEX one_charge ON entries (dataset, request)
    WHERE kind = 'charge' AND request IS NOT NULL
    """,
    "CREATE UNIQUE INDEX one_release ON entries (charge) WHERE kind = 'release'",
    "CREATE UNIQUE INDEX one_allowance ON entries (dataset, allowance) WHERE kind = 'allowance'",
    "CREATE UNIQUE INDEX one_return ON entries (dataset, allowance) WHERE kind = 'return'",
    """
    CREATE INDEX states ON entries (dataset, entry)
    WHERE kind IN ('charge', 'allowance', 'return', 'settle')
    """,
    """
    CREATE INDEX allowances ON entries (dataset, allowance, entry)
    WHERE kind = 'charge' AND allowance IS NOT NULL
    """,
    "CREATE INDEX restores ON entries (entry) WHERE kind = 'restore'",
    "CREATE INDEX settlements ON entries (dataset, entry) WHERE kind = 'settle'",
    """
    CREATE TABLE counters (
        dataset      TEXT NOT NULL,
        allowance    TEXT NOT NULL,
        charges      INTEGER NOT NULL,
        releases     INTEGER NOT NULL,
        last_charge  INTEGER NOT NULL,
        last_release INTEGER NOT NULL,
        PRIMARY KEY (dataset, allowance)
    )
    """,
    """
    INSERT INTO counters
    SELECT dataset, '', SUM(kind = 'charge'), SUM(kind = 'release'),
           MAX(entry * (kind = 'charge')), MAX(entry * (kind = 'release'))
    FROM entries WHERE dataset IS NOT NULL GROUP BY dataset
    """,
    "CREATE TABLE unfinished (entry INTEGER PRIMARY KEY, dataset TEXT NOT NULL, allowance TEXT)",
    "CREATE INDEX oldest_unfinished ON unfinished (dataset, entry)",
    """
    INSERT INTO unfinished
    SELECT c.entry, c.dataset, NULL FROM entries c
    LEFT JOIN entries r ON r.kind = 'release' AND r.charge = c.entry
    WHERE c.kind = 'charge' AND r.entry IS NULL
    """,
    """
    CREATE TABLE place (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        file TEXT NOT NULL, directory TEXT NOT NULL, name TEXT NOT NULL, path TEXT NOT NULL
    )
    """,
    *_ENTRY_TRIGGERS,
    """
    CREATE TRIGGER registrations_count AFTER INSERT ON entries WHEN NEW.kind IN ('register', 'allowance')
    BEGIN
        INSERT INTO counters VALUES (NEW.dataset, COALESCE(NEW.allowance, ''), 0, 0, 0, 0);
    END
    """,
    """
    CREATE TRIGGER charges_count AFTER INSERT ON entries WHEN NEW.kind = 'charge'
    BEGIN
        INSERT INTO unfinished VALUES (NEW.entry, NEW.dataset, NEW.allowance);
        UPDATE counters SET charges = charges + 1, last_charge = NEW.entry
        WHERE dataset = NEW.dataset AND allowance IN ('', COALESCE(NEW.allowance, ''));
    END
    """,
    """
    CREATE TRIGGER releases_count AFTER INSERT ON entries WHEN NEW.kind = 'release'
    BEGIN
        DELETE FROM unfinished WHERE entry = NEW.charge;
        UPDATE counters SET releases = releases + 1, last_release = NEW.entry
        WHERE dataset = NEW.dataset AND allowance IN ('', COALESCE(NEW.allowance, ''));
    END
    """,
)

# Registrations name a unit since version 3. The tables are the same, but programs that would ignore it must not charge.
_VERSION_3 = ()

MIGRATIONS: tuple[tuple[str, ...], ...] = (_VERSION_1, _VERSION_2, _VERSION_3)
"""Statements that migrate each version of the schema to the next. Published ones are never altered."""

# What a file of version 1 would hold in version 2. Temporary views are found before tables of the same name.
_VIEWS_OF_VERSION_1 = (
    """
    CREATE TEMP VIEW entries AS
    SELECT entry, kind, dataset, request, charge, NULL AS allowance, body, payload, hash FROM main.entries
    """,
    """
    CREATE TEMP VIEW counters AS
    SELECT dataset, '' AS allowance, SUM(kind = 'charge') AS charges, SUM(kind = 'release') AS releases,
           MAX(entry * (kind = 'charge')) AS last_charge, MAX(entry * (kind = 'release')) AS last_release
    FROM main.entries WHERE dataset IS NOT NULL GROUP BY dataset
    """,
    """
    CREATE TEMP VIEW unfinished AS
    SELECT c.entry, c.dataset, NULL AS allowance FROM main.entries c
    LEFT JOIN main.entries r ON r.kind = 'release' AND r.charge = c.entry
    WHERE c.kind = 'charge' AND r.entry IS NULL
    """,
)


def check_schema(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether the file has the latest schema; a `LedgerError` if it is newer or not a ledger."""
    if _pragma(connection, "application_id") != APPLICATION_ID:
        raise LedgerError(
            f"{path} is not a matrixdp ledger, or its creation was interrupted. Check the path. If the file "
            "is not needed, remove it and create a ledger there: Ledger.create(path)."
        )
    version = _pragma(connection, "user_version")
    if version > len(MIGRATIONS):
        raise LedgerError(
            f"{path} was written by a newer matrixdp: its schema is version {version}, and this "
            f"matrixdp supports up to {len(MIGRATIONS)}. Nothing was changed. Upgrade matrixdp to use it."
        )
    return version == len(MIGRATIONS)


def view_as_latest(connection: sqlite3.Connection) -> None:
    """Let the queries of the latest schema read an older file, without changing it."""
    if _pragma(connection, "user_version") > 1:
        return
    for view in _VIEWS_OF_VERSION_1:
        connection.execute(view)


def upgrade(connection: sqlite3.Connection, path: Path, timeout: float) -> None:
    """Migrate a file to the latest schema, in which it has a rollback journal.

    Version 1 had a write-ahead log. Leaving it needs a lock on the file itself, so no other connection is open then,
    under any name of the file, and the log's entries are all in the file afterwards.
    """
    if has_log(connection) and os.stat(path).st_nlink > 1:
        raise LedgerError(
            f"{path} has other names (hard links), under which entries may have been written that are not in it yet. "
            "Nothing was changed. Remove the other names and try again."
        )
    leave_log(connection, timeout)
    if not check_schema(connection, path):
        migrate(connection, path)


def has_log(connection: sqlite3.Connection) -> bool:
    """Whether the file has a write-ahead log, as in version 1, or because another program set one up."""
    return bool(connection.execute("PRAGMA journal_mode").fetchone() == ("wal",))


def leave_log(connection: sqlite3.Connection, timeout: float) -> None:
    """Write what is in the write-ahead log into the file, and change to a rollback journal, for good."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            connection.execute("PRAGMA journal_mode = DELETE").fetchone()
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def migrate(connection: sqlite3.Connection, path: Path | None = None) -> None:
    """Apply the missing migrations in one transaction, and record the place of a file that knows none yet."""
    connection.execute("BEGIN IMMEDIATE")
    version = _pragma(connection, "user_version")
    for statements in MIGRATIONS[version:]:
        for statement in statements:
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    if path is not None and version < 2:  # from version 2 on, the file says where it may be written
        write_place(connection, find_place(path))
    connection.execute("COMMIT")


def missing_guards(connection: sqlite3.Connection) -> set[str]:
    """Names of triggers and indexes of the file's version of the schema that this file lacks."""
    version = _pragma(connection, "user_version")
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as pattern:
        for statements in MIGRATIONS[:version]:
            for statement in statements:
                pattern.execute(statement)
        wanted = _guards(pattern)
    return {name for name, _ in wanted - _guards(connection)}


def _guards(connection: sqlite3.Connection) -> set[tuple[str, str]]:
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE type IN ('trigger', 'index')")
    return {(str(name), str(sql)) for name, sql in rows}


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])
