"""A ledger in a PostgreSQL database: its connection, transactions and errors, and commits whose answer was lost."""

from __future__ import annotations

import contextlib
import math
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matrixdp.errors import LedgerError, install_hint
from matrixdp.ledger.audit import audit
from matrixdp.ledger.entries import LAST_ENTRY, RESTORE, Author, Row
from matrixdp.ledger.journal import HEAD_QUERY, INSERT, Journal, select_entries
from matrixdp.ledger.location import PostgresURL
from matrixdp.ledger.store import Store, append_first, append_restore, require_version

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

# Read at once: a process may have given up the right to read them when it needs them.
_TABLES, _GUARDS, _ROLES_SQL = (
    Path(__file__).with_name("sql").joinpath(f"postgres_{name}.sql").read_text(encoding="utf-8")
    for name in ("tables", "guards", "roles")
)
_FORMAT = "matrixdp ledger"
_VERSION = 5
_OLDEST = 2  # is upgraded; earlier ones were never published
_ROLES = "Ask its owner for the role that you need: matrixdp ledger roles prints them"
_REMEDIES = {
    "22021": "it cannot store this text. Use characters that UTF-8 can encode, and no NUL",
    "25006": "the server is read-only, perhaps a standby. Use the URL of the primary server",
    "25P03": "the server ended a transaction that was idle for too long. Try again, or use a longer timeout",
    "42501": f"this role may not do that. {_ROLES}",
    "53100": "the server's disk is full. Free some space and try again",
    "53300": "the server has too many connections. Try again later",
    "54000": "the name of the data set or the request id is too long. Use at most 2,000 bytes",
    "55P03": "another client holds it locked. Try again, or open it with a longer timeout",
    "57014": "another client holds it locked, or the server is too slow. Try again, or open it with a longer timeout",
    "XX001": f"it is damaged. {RESTORE}",
    "XX002": f"it is damaged. {RESTORE}",
}
_REFUSALS = {
    "password authentication failed": "the user or the password is wrong. Check them, PGPASSWORD and ~/.pgpass",
    "no password supplied": "a password is needed. Put it into ~/.pgpass, PGPASSWORD or the URL",
    "does not exist": "the database or the role does not exist. Check the URL, or create them first",
    "permission denied": f"this role may not connect. {_ROLES}",
}
_PAUSE = 0.05  # seconds between attempts to reach a server that went away during a commit
# Makes a ledger of an earlier version one of today. Who wrote entries of version 2 is not known.
_UPGRADE = f"""
DROP FUNCTION IF EXISTS {{schema}}.amounts(text, text);
ALTER TABLE {{schema}}.entries ADD COLUMN IF NOT EXISTS role text COLLATE "C";
ALTER TABLE {{schema}}.entries ALTER COLUMN role SET DEFAULT session_user;
{_GUARDS}
UPDATE {{schema}}.ledger SET version = {_VERSION};
"""  # noqa: S608
# All settings end with the transaction.
_BEGIN_READING = """
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
SET LOCAL search_path = {schema}, pg_temp;
SET LOCAL lock_timeout = {milliseconds};
SELECT {version}, ''
"""
_BEGIN_WRITING = """
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
SET LOCAL search_path = {schema}, pg_temp;
SET LOCAL synchronous_commit = on;
SET LOCAL lock_timeout = {milliseconds};
SET LOCAL statement_timeout = {milliseconds};
SET LOCAL idle_in_transaction_session_timeout = {milliseconds};
SET LOCAL matrixdp.attempt = '{token}';
SELECT version, current_setting('synchronous_standby_names') FROM {schema}.lock_head()
"""
# Statements that nearly every transaction runs. They are sent with its beginning, to save round trips while the lock is
# held.
_ENTRY_QUERY, _LAST_QUERY = select_entries("entry"), select_entries("last")
_FIRST_QUERIES: tuple[tuple[str, tuple[int, ...]], ...] = (
    (_ENTRY_QUERY, (1,)),
    (HEAD_QUERY, ()),
    (_LAST_QUERY, ()),
    (select_entries("restore"), (LAST_ENTRY,)),
)
_FIRST = ";".join(["", *(sql.replace("?", "%d") % values for sql, values in _FIRST_QUERIES)])


def roles_sql(schema: str) -> str:
    """SQL that creates the roles of the ledger in `schema`, with their rights."""
    return _ROLES_SQL.replace("{schema}", schema)


def postgres_guards(schema: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Queries that find the definitions of all guards by their names, and what they should find.

    The name of a schema was checked when the URL was read, so that it is safe to insert into SQL.
    """
    tables, guards = (text.replace("{schema}", schema) for text in (_TABLES, _GUARDS))
    triggers = re.findall(r"^CREATE OR REPLACE TRIGGER (\w+) ([^;]*);", guards, re.MULTILINE)
    yield (
        "SELECT t.tgname, pg_get_triggerdef(t.oid) || ' ' || t.tgenabled::text FROM pg_trigger t "
        "JOIN pg_class c ON c.oid = t.tgrelid WHERE c.relnamespace = %s::regnamespace",
        {name: f"CREATE TRIGGER {name} {' '.join(text.split())} A" for name, text in triggers},
    )
    indexes = re.findall(r"^(CREATE (?:UNIQUE )?INDEX (\w+) [^;]*);", tables, re.MULTILINE)
    yield (
        "SELECT c.relname, pg_get_indexdef(i.indexrelid) || ' ' || i.indisvalid::text FROM pg_index i "
        "JOIN pg_class c ON c.oid = i.indexrelid WHERE c.relnamespace = %s::regnamespace",
        {name: f"{' '.join(text.split())} true" for text, name in indexes},
    )
    functions = re.findall(r"^CREATE OR REPLACE FUNCTION \w+\.(\w+)\(.*?\$body\$(.*?)\$body\$;", guards, re.M | re.S)
    yield (
        "SELECT proname, prosrc || prosecdef::text || array_to_string(proconfig, ' ') FROM pg_proc "
        "WHERE pronamespace = %s::regnamespace",
        {name: f"{source}truesearch_path=pg_catalog, pg_temp extra_float_digits=1" for name, source in functions},
    )
    yield (
        "SELECT relname || ' (row security)', relrowsecurity::text FROM pg_class "
        "WHERE relkind = 'r' AND relnamespace = %s::regnamespace",
        {"entries (row security)": "true"},
    )


class PostgresJournal(Journal):
    """A transaction of a connection."""

    connection: Connection

    def __init__(self, connection: Connection, url: PostgresURL, token: str, author: Author | None) -> None:
        super().__init__(connection, str(url), author)
        self.token = token  # is stored with each entry, to ask for it if the answer to the commit is lost
        self.entry: int | None = None  # the last one that was appended
        self.waits_for_standby = False  # whether a commit waits for another server
        self._schema = url.schema
        self._known: dict[tuple[object, ...], list[tuple[Any, ...]]] = {}

    def payer_names(self) -> frozenset[str]:
        """The author's names; if nobody named the author, also those of the roles that the user has logged in with.

        The server accepts a charge from a role that is the payer or a member of it, and from curators, who vouch for
        the author that they name.
        """
        names = super().payer_names()
        if self.author is not None and not self.author.is_default:
            return names
        roles = "SELECT rolname::text FROM pg_catalog.pg_roles WHERE pg_has_role(session_user, oid, 'MEMBER')"
        return names.union(name for (name,) in self.execute(roles))

    def execute(self, sql: str, values: Sequence[object] = ()) -> Iterable[tuple[Any, ...]]:
        """The rows of a statement.

        Until it appends an entry, a transaction sees one state of the ledger: a reader has a snapshot, and a writer
        excludes others. So the server is asked for a short answer only once.
        """
        key = (sql, *values)
        if key in self._known:
            return self._known[key]
        cursor = self.connection.execute(sql.replace("?", "%s"), tuple(values) or None)
        rows = [] if cursor.description is None else cursor.fetchall()
        self.learn(sql, values, rows)
        return rows

    def learn(self, sql: str, values: Sequence[object], rows: list[tuple[Any, ...]]) -> None:
        """Remember a short answer."""
        if len(rows) <= 1:
            self._known[(sql, *values)] = rows

    def insert(self, rows: Sequence[Row]) -> None:
        self._known.clear()
        values = [tuple(vars(row).values()) for row in rows]
        with self.connection.cursor() as cursor:
            if len(rows) == 1:
                cursor.execute(INSERT.replace("?", "%s"), values[0])
            else:
                cursor.executemany(INSERT.replace("?", "%s"), values)
        self.entry = rows[-1].entry
        self.learn(HEAD_QUERY, (), [(rows[-1].entry, rows[-1].hash)])

    def faults(self) -> Iterator[str]:
        """Triggers, functions and indexes of the schema that are missing, altered or disabled."""
        self.connection.execute("SET LOCAL search_path = pg_catalog, pg_temp")  # so that all names are printed in full
        for query, wanted in postgres_guards(self._schema):
            found: dict[str, str] = dict(self.connection.execute(query, (self._schema,)).fetchall())
            for name, definition in wanted.items():
                if found.get(name) != definition:
                    yield f"its guard {name} was removed or altered."
        self.connection.execute(f"SET LOCAL search_path = {self._schema}, pg_temp")


class PostgresStore(Store):
    """A ledger in one schema of a PostgreSQL database.

    A writer locks the row of the head and holds it until its transaction ends. Its later statements see all that was
    committed before it got the lock (READ COMMITTED), so what it reads is the state that its entry follows.

    Privacy
    -------
    A commit whose answer was lost counts as made only if its entry is found, with the token of this attempt.
    """

    def __init__(self, url: PostgresURL, timeout: float) -> None:
        self.url = url
        self.driver_errors = (import_psycopg().Error,)
        self._warnings: list[str] = []
        super().__init__(url, timeout)

    def create(self, author: Author, fill: Callable[[Journal], object] = append_first) -> None:
        errors, schema = import_psycopg().errors, self.url.schema
        with contextlib.closing(connect(self.url, self.timeout)) as connection:
            try:
                exists = _require_free(connection, self.url)
                connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
                connection.execute("SET LOCAL synchronous_commit = on")
                if not exists:
                    connection.execute(f"CREATE SCHEMA {schema}")
                connection.execute((_TABLES + _GUARDS).replace("{schema}", schema))
                connection.execute(f"SET LOCAL search_path = {schema}, pg_temp")
                fill(PostgresJournal(connection, self.url, secrets.token_hex(16), author))
                connection.execute("COMMIT")
            except (errors.DuplicateSchema, errors.UniqueViolation):
                raise LedgerError(
                    f"{self.url}: another client is creating a ledger there. Open it: Ledger.open(url)."
                ) from None
            except self.driver_errors as error:
                raise self._translate(error) from error

    def restore(self, backup: Store, author: Author) -> None:
        """Record that the server was restored from a backup, after a check of the whole ledger.

        A ledger in PostgreSQL is restored with its server, so `backup` must be the same place.
        """
        if backup.address != self.url:
            raise (backup if isinstance(backup, PostgresStore) else self).not_a_file()
        with self.writing(author) as journal:
            audit(journal)
            append_restore(journal)

    def _begin(self, author: Author | None) -> PostgresJournal:
        reused = self._connection is not None
        try:
            return self._begin_now(author)
        except self.driver_errors as error:
            if not (reused and is_lost(error)):
                raise
            self._disconnect()  # lost while it was idle: nothing was asked of it yet
            return self._begin_now(author)

    def _begin_now(self, author: Author | None) -> PostgresJournal:
        connection, token = self._open(), secrets.token_hex(16)
        milliseconds = max(1, min(int(1000 * self.timeout), 2**31 - 1))
        settings = {"schema": self.url.schema, "milliseconds": milliseconds, "token": token, "version": _VERSION}
        begin = (_BEGIN_READING if author is None else _BEGIN_WRITING) + _FIRST
        cursor = connection.cursor()
        cursor.execute(begin.format(**settings))
        answers = []
        while cursor.nextset():
            if cursor.description is not None:
                answers.append(cursor.fetchall())
        ((version, standbys),), *known = answers
        require_version(version, _VERSION, self.location)
        journal = PostgresJournal(connection, self.url, token, author)
        journal.waits_for_standby = standbys != ""
        for (sql, places), rows in zip(_FIRST_QUERIES, known, strict=True):
            journal.learn(sql, places, rows)
            if sql == _LAST_QUERY and rows:
                journal.learn(_ENTRY_QUERY, (rows[0][0],), rows)
        return journal

    def _commit(self, journal: Journal) -> None:
        assert isinstance(journal, PostgresJournal)
        connection = journal.connection
        self._warnings.clear()
        try:
            with _cancelling(connection, self.timeout) if journal.waits_for_standby else contextlib.nullcontext():
                status = connection.execute("COMMIT").statusmessage
        except self.driver_errors as error:
            self._disconnect()
            if not self._find_entry(journal):
                raise self._translate(error) from error
            return
        if status != "COMMIT":
            raise LedgerError(f"{self.url}: the server rolled the transaction back. Nothing was released.")
        if self._warnings:
            self._disconnect()
            raise LedgerError(
                f"{self.url}: the commit is on the server, but its standby did not confirm it ({self._warnings[0]}). "
                "What was charged stays spent, and nothing was released. Make sure that the standby runs."
            )

    def _find_entry(self, lost: PostgresJournal) -> bool:
        """Whether the last entry of a transaction was committed, although the answer to the commit was lost.

        The head's lock is taken before looking. The lost transaction held that lock, so it has ended by then.
        """
        if lost.entry is None:
            return False
        deadline = time.monotonic() + self.timeout
        while True:
            try:
                journal = self._begin_now(lost.author)
                rows = list(journal.execute("SELECT attempt FROM entries WHERE entry = ?", (lost.entry,)))
                self._roll_back()
                return rows == [(lost.token,)]
            except (LedgerError, import_psycopg().Error) as error:
                self._disconnect()
                if time.monotonic() > deadline:
                    raise LedgerError(
                        f"{self.url}: the connection was lost during a commit, and the server does not say whether it "
                        f"was made. Nothing was released. If the ledger has an entry {lost.entry} of this time, it "
                        "stays spent: see matrixdp ledger history once the server runs."
                    ) from error
            time.sleep(_PAUSE)

    def _translate(self, error: Exception) -> LedgerError:
        code = getattr(error, "sqlstate", None)
        if code not in _REMEDIES and is_lost(error):
            what = "the connection to the server was lost. Make sure that it runs, and try again"
        else:
            what = _REMEDIES.get(code or "", "PostgreSQL refused")
        return LedgerError(f"{self.url}: {what} ({_one_line(error)}). Nothing was released.")

    def _connect(self) -> Connection:
        connection = connect(self.url, self.timeout)
        try:
            _require_schema(connection, self.url)
        except BaseException:
            connection.close()
            raise
        connection.add_notice_handler(self._note_warning)
        return connection

    def _note_warning(self, notice: Any) -> None:
        if notice.severity_nonlocalized == "WARNING":
            self._warnings.append(str(notice.message_primary))


@contextlib.contextmanager
def _cancelling(connection: Connection, timeout: float) -> Iterator[None]:
    """Let the server stop waiting for a standby after `timeout`; its own time-outs do not apply to that."""

    def cancel() -> None:
        with contextlib.suppress(import_psycopg().Error):
            connection.cancel()

    timer = threading.Timer(min(timeout, threading.TIMEOUT_MAX), cancel)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def import_psycopg() -> Any:
    """The module psycopg; a `LedgerError` that says how to install it if it is missing."""
    try:
        import psycopg
    except ImportError:
        raise LedgerError(f"a ledger in PostgreSQL requires psycopg. {install_hint('postgres')}") from None
    return psycopg


def connect(url: PostgresURL, timeout: float) -> Connection:
    """A connection that is in no transaction, or a `LedgerError`."""
    psycopg = import_psycopg()
    seconds = max(2, math.ceil(timeout))  # libpq's minimum is 2
    parameters = {
        "connect_timeout": seconds,
        "keepalives_idle": seconds,
        "keepalives_interval": max(1, seconds // 3),
        "tcp_user_timeout": 1000 * seconds,
        "client_encoding": "UTF8",
        "application_name": "matrixdp",
        **url.parameters,
    }
    try:
        connection: Connection = psycopg.connect(**parameters, autocommit=True)
    except (psycopg.Error, UnicodeError) as error:
        message = _one_line(error)  # libpq gives no code, so its message has to do
        remedies = [remedy for part, remedy in _REFUSALS.items() if part in message]
        remedy = remedies[-1] if remedies else "the server cannot be reached. Check host and port, and that it runs"
        raise LedgerError(f"{url}: {remedy} ({message}). Nothing was charged.") from None
    return connection


def is_lost(error: Exception) -> bool:
    """Whether an error of psycopg means that the connection is gone."""
    code = getattr(error, "sqlstate", None)
    if code is None:
        return isinstance(error, import_psycopg().OperationalError)
    return code[:2] == "08" or code in ("57P01", "57P02", "57P03", "57P05", "25P03")


def _one_line(error: Exception) -> str:
    message = getattr(getattr(error, "diag", None), "message_primary", None) or str(error)
    return " ".join(message.split())[:500].rstrip(".")


def _find_tables(connection: Connection, url: PostgresURL) -> tuple[bool, str, list[str]]:
    """Whether the schema exists, the encoding of its database, and its tables; only on a server that syncs commits."""
    (row,) = connection.execute(
        "SELECT current_setting('fsync'), pg_catalog.to_regnamespace(%(schema)s) IS NOT NULL, "
        "current_setting('server_encoding'), ARRAY(SELECT c.relname::text FROM pg_catalog.pg_class c "
        "WHERE c.relnamespace = pg_catalog.to_regnamespace(%(schema)s))",
        {"schema": url.schema},
    )
    fsync, exists, encoding, tables = row
    if fsync != "on":
        raise LedgerError(
            f"{url}: the server runs with fsync = off, so it may lose charges when its machine stops. Nothing was "
            "charged. Set fsync = on in its configuration."
        )
    return exists, encoding, tables


def _require_free(connection: Connection, url: PostgresURL) -> bool:
    """Whether the schema exists; a `LedgerError` if it holds anything, or the database cannot hold a ledger."""
    exists, encoding, tables = _find_tables(connection, url)
    if encoding != "UTF8":
        raise LedgerError(f"{url}: the database must have the encoding UTF8, not {encoding}. Create one that has.")
    if tables:
        what = "already exists, and may be a ledger. Open it (Ledger.open, or matrixdp ledger add), or choose another"
        if "ledger" not in tables:
            what = f"cannot be made: its schema {url.schema!r} holds other tables. Choose another"
        raise LedgerError(f"{url} {what} schema with the URL's option schema=NAME.")
    return exists


def _require_schema(connection: Connection, url: PostgresURL) -> None:
    """Raise a `LedgerError` unless the schema holds a ledger that this version can use."""
    _, _, tables = _find_tables(connection, url)
    if not tables:
        raise LedgerError(
            f"there is no ledger at {url}, in its schema {url.schema!r}. Check the URL, or create one: "
            "Ledger.create(url), or matrixdp ledger new."
        )
    found = connection.execute(f"SELECT * FROM {url.schema}.ledger").fetchone() if "ledger" in tables else None  # noqa: S608
    if found is None or len(found) != 3 or found[1] != _FORMAT:
        raise LedgerError(
            f"{url} is not a matrixdp ledger: its schema {url.schema!r} holds other tables. Check the URL, or add the "
            "option schema=NAME to it."
        )
    if _OLDEST <= found[2] < _VERSION:
        _upgrade(connection, url)
    else:
        require_version(found[2], _VERSION, str(url))


def _upgrade(connection: Connection, url: PostgresURL) -> None:
    """Give a ledger of an earlier version the triggers and functions of today; only its owner may."""
    try:
        with connection.transaction():
            connection.execute("SET LOCAL synchronous_commit = on")
            (version,) = connection.execute(f"SELECT version FROM {url.schema}.ledger FOR UPDATE").fetchall()[0]  # noqa: S608
            if version != _VERSION:  # another client may have been first
                connection.execute(_UPGRADE.replace("{schema}", url.schema))
    except import_psycopg().errors.InsufficientPrivilege:
        raise LedgerError(
            f"{url} was made by an earlier matrixdp, and must be upgraded once, by its owner: matrixdp ledger show "
            f"{url}. Nothing was charged."
        ) from None
