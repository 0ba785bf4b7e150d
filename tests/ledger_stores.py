"""The places in which tests keep ledgers: SQLite files, and schemas of a PostgreSQL database.

A module of tests that holds for every store begins with ``pytestmark = both_stores``; the fixtures `store`, `path` and
`ledger` then give each test once for each of them.
"""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from matrixdp.ledger.location import PostgresURL, parse_location
from postgres_server import PostgresServer

both_stores = pytest.mark.parametrize("store", ["sqlite", "postgres"], indirect=True)


class RawConnection(Protocol):
    """A connection that goes past the ledger."""

    def execute(self, sql: str, values: tuple[object, ...] = ()) -> Any:
        """A cursor; `values` take the place of question marks."""


class LedgerStore(Protocol):
    """One kind of store."""

    def new_path(self, name: str = "clinic") -> Path | str:
        """Where a new ledger can be created."""

    def raw(self, path: Any) -> contextlib.AbstractContextManager[RawConnection]:
        """A connection to the tables of a ledger, with one transaction."""

    def without_triggers(self, path: Any) -> contextlib.AbstractContextManager[RawConnection]:
        """The same with all triggers disabled, and enabled again afterwards."""


class SQLiteFiles:
    """Ledgers in files of one folder."""

    kind = "sqlite"

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def new_path(self, name: str = "clinic") -> Path:
        return self.folder / f"{name}.db"

    @contextlib.contextmanager
    def raw(self, path: Path) -> Iterator[RawConnection]:
        with contextlib.closing(sqlite3.connect(path)) as connection, connection:
            yield connection

    @contextlib.contextmanager
    def without_triggers(self, path: Path) -> Iterator[RawConnection]:
        with self.raw(path) as connection:
            guards = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
            for name, _ in guards:
                connection.execute(f"DROP TRIGGER {name}")
            yield connection
            for _, sql in guards:
                connection.execute(sql)


class PostgresSchemas:
    """Ledgers in schemas of one database."""

    kind = "postgres"
    _numbers = itertools.count()

    def __init__(self, server: PostgresServer) -> None:
        self.server = server

    def new_path(self, name: str = "clinic") -> str:
        return self.server.url(options=f"&schema={name}_{next(self._numbers)}")

    @contextlib.contextmanager
    def raw(self, path: str | PostgresURL) -> Iterator[RawConnection]:
        with contextlib.closing(self.server.connect()) as connection, connection.transaction():
            connection.execute(f"SET search_path = {schema_of(path)}")
            yield _QuestionMarks(connection)

    @contextlib.contextmanager
    def without_triggers(self, path: str | PostgresURL) -> Iterator[RawConnection]:
        with self.raw(path) as connection:
            guards = connection.execute(
                "SELECT c.relname, t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid "
                "WHERE c.relnamespace = ?::regnamespace",
                (schema_of(path),),
            ).fetchall()
            for table, name in guards:
                connection.execute(f"ALTER TABLE {table} DISABLE TRIGGER {name}")
            yield connection
            for table, name in guards:
                connection.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {name}")


def schema_of(path: str | PostgresURL) -> str:
    """The schema that a URL names."""
    url = parse_location(path)
    assert isinstance(url, PostgresURL)
    return url.schema


class _QuestionMarks:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def execute(self, sql: str, values: tuple[object, ...] = ()) -> Any:
        return self._connection.execute(sql.replace("?", "%s"), values or None)
