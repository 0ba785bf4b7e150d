"""The schema of the SQLite file, whose entries are only appended, and its migrations."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from matrixdp.errors import LedgerError

APPLICATION_ID = 0x4D78_4450  # "MxDP"

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
    """
    CREATE TRIGGER head_lasts BEFORE DELETE ON head
    BEGIN SELECT RAISE(ABORT, 'the head is never deleted'); END
    """,
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (_VERSION_1,)
"""Statements that migrate each version of the schema to the next. Published ones are never altered."""


def check_schema(connection: sqlite3.Connection, path: Path) -> None:
    """Migrate the file to this version, or raise a `LedgerError` if it is newer or not a ledger."""
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
    if version < len(MIGRATIONS):
        migrate(connection)


def migrate(connection: sqlite3.Connection) -> None:
    """Apply the missing migrations in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    for statements in MIGRATIONS[_pragma(connection, "user_version") :]:
        for statement in statements:
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    connection.execute("COMMIT")


def missing_guards(connection: sqlite3.Connection) -> set[str]:
    """Names of triggers and indexes of the schema that this file lacks."""
    with sqlite3.connect(":memory:", isolation_level=None) as pattern:
        migrate(pattern)
        wanted = _guards(pattern)
    pattern.close()
    return {name for name, _ in wanted - _guards(connection)}


def _guards(connection: sqlite3.Connection) -> set[tuple[str, str]]:
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE type IN ('trigger', 'index')")
    return {(str(name), str(sql)) for name, sql in rows}


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])
