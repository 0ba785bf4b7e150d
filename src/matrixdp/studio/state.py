"""What a studio is started with, and its own SQLite file: tokens, sessions, tables of data sets, and requests."""

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address, ip_network
from pathlib import Path

from matrixdp.errors import ParameterError
from matrixdp.ledger.location import Location
from matrixdp.studio.refusals import UnavailableError

LOCAL_HOSTS = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, kw_only=True)
class Proxy:
    """A proxy that signs people in, as by OpenID Connect, and says in headers who they are."""

    networks: tuple[str, ...]  # from which requests are believed
    user_header: str = "x-forwarded-user"
    groups_header: str = "x-forwarded-groups"
    curators: tuple[str, ...] = ()  # groups whose members are curators
    analysts: tuple[str, ...] = ()  # and analysts; without any, everybody whom the proxy lets through is an analyst

    def trusts(self, address: str) -> bool:
        """Whether a request comes from the proxy."""
        try:
            found = ip_address(address)
        except ValueError:
            return False
        return any(found in ip_network(network) for network in self.networks)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a studio is started with."""

    folder: Path  # of tables
    ledger: Location
    state: Path  # the folder of the studio's own files
    port: int = 8765
    hosts: tuple[str, ...] = LOCAL_HOSTS  # names, without ports, under which browsers reach it; others are refused
    tls: bool = False
    origins: tuple[str, ...] = ()  # addresses by way of a proxy, in place of those that the three fields above say
    isolated: bool = True  # releases run in processes of their own, which finish even if the server is killed
    proxy: Proxy | None = None

    @property
    def addresses(self) -> tuple[str, ...]:
        """Accepted values of the header ``Origin``, the one to print first."""
        scheme, usual = ("https", 443) if self.tls else ("http", 80)
        place = "" if self.port == usual else f":{self.port}"
        return self.origins or tuple(f"{scheme}://{name.lower()}{place}" for name in self.hosts)

    @property
    def secure(self) -> bool:
        """Whether browsers reach it by HTTPS alone."""
        return all(address.startswith("https:") for address in self.addresses)

    @property
    def database(self) -> Path:
        """The studio's own SQLite file."""
        return self.state / "studio.db"

    @property
    def releases(self) -> Path:
        """The folder of releases, one folder for each request."""
        return self.state / "releases"

    @property
    def streams(self) -> Path:
        """The folder of streams, of which only the public files, NAME.json, are shown."""
        return self.state / "streams"


_TABLES = """
CREATE TABLE IF NOT EXISTS tokens (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, roles TEXT NOT NULL, hash TEXT NOT NULL UNIQUE,
    created TEXT NOT NULL, expires TEXT, revoked TEXT
) STRICT;
CREATE TABLE IF NOT EXISTS sessions (
    hash TEXT PRIMARY KEY, token TEXT REFERENCES tokens (id), name TEXT NOT NULL, roles TEXT NOT NULL,
    csrf TEXT NOT NULL, expires TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS dataset_tables (
    dataset TEXT NOT NULL, table_name TEXT NOT NULL, PRIMARY KEY (dataset, table_name)
) STRICT;
CREATE TABLE IF NOT EXISTS requests (
    id TEXT PRIMARY KEY, asker TEXT NOT NULL, form_id TEXT NOT NULL, dataset TEXT NOT NULL, table_name TEXT NOT NULL,
    spec TEXT NOT NULL, purpose TEXT NOT NULL, schema TEXT NOT NULL, asked TEXT NOT NULL, status TEXT NOT NULL,
    decided_by TEXT, decided TEXT, reason TEXT, finished TEXT, progress REAL, error_kind TEXT, error TEXT,
    payment TEXT,
    UNIQUE (asker, form_id)
) STRICT;
CREATE TABLE IF NOT EXISTS people (name TEXT PRIMARY KEY, groups TEXT NOT NULL, seen TEXT) STRICT;
CREATE TABLE IF NOT EXISTS removed_datasets (dataset TEXT PRIMARY KEY, by TEXT NOT NULL, time TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS place (one INTEGER PRIMARY KEY, content TEXT NOT NULL) STRICT;
CREATE INDEX IF NOT EXISTS requests_by_status ON requests (status);
"""
_VERSION = 1
_APPLICATION = 0x4D785354


class State:
    """The studio's SQLite file, which is created if it is missing; readable by its owner only.

    Every transaction is durable when it ends. Threads and processes may share it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            raise UnavailableError(
                f"{path} cannot be written: {error.strerror}. Make its folder writable, or choose another --state."
            ) from None
        with self.writing() as connection:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            if (version, application) not in ((0, 0), (_VERSION, _APPLICATION)):
                raise UnavailableError(f"{path} is not a studio's file of this version. Choose another --state.")
            for statement in _TABLES.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {_VERSION}")
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection whose rows have names."""
        try:
            with closing(sqlite3.connect(self.path, timeout=30.0, isolation_level=None)) as connection:
                connection.row_factory = sqlite3.Row
                yield connection
        except sqlite3.Error as error:
            reason = "it is not a database" if error.sqlite_errorname == "SQLITE_NOTADB" else str(error)
            raise UnavailableError(f"{self.path.name}, the studio's own file, cannot be used: {reason}.") from None

    def select(self, query: str, *values: object) -> list[sqlite3.Row]:
        """The rows that a query gives."""
        with self.reading() as connection:
            return connection.execute(query, values).fetchall()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that excludes other writers; rolled back if an error is raised in it."""
        with self.reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.rollback()
                raise
            connection.execute("COMMIT")


def update_request(state: State, request_id: str, condition: str = "1", **values: str | float | None) -> None:
    """Set columns of a request, if it meets a condition in SQL."""
    names = ", ".join(f"{name} = :{name}" for name in values)
    query = f"UPDATE requests SET {names} WHERE id = :id AND ({condition})"  # noqa: S608
    with state.writing() as connection:
        connection.execute(query, {**values, "id": request_id})


@contextmanager
def hold_lock(path: Path, refusal: str = "") -> Iterator[None]:
    """Hold a lock alone: wait for it, or raise an error that says the refusal; a killed process holds no lock."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (fcntl.LOCK_NB if refusal else 0))
        except OSError:
            if not refusal:
                raise
            raise ParameterError(refusal) from None
        yield
    finally:
        os.close(handle)


def insert(connection: sqlite3.Connection, table: str, **values: str | None) -> None:
    """Add a row to a table of the studio's file, unless it has one with the same key."""
    names, places = ", ".join(values), ", ".join(f":{name}" for name in values)
    connection.execute(f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({places})", values)  # noqa: S608


def now(after: timedelta = timedelta()) -> str:
    """The time in UTC, or that after a while, as text that sorts by time."""
    return (datetime.now(UTC) + after).isoformat(timespec="microseconds")
