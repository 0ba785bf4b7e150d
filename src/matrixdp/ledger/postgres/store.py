"""The PostgreSQL database of a ledger: its connection, its transactions, and commits whose answer was lost."""

from __future__ import annotations

import contextlib
import secrets
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from matrixdp.errors import LedgerError
from matrixdp.ledger.entry_table import ENTRY_QUERY, FIRST_QUERIES, HEAD_QUERY, LAST_QUERY
from matrixdp.ledger.location import PostgresURL
from matrixdp.ledger.postgres.driver import connect, import_psycopg, is_lost, translate
from matrixdp.ledger.postgres.schema import VERSION, check_schema, check_version, faults
from matrixdp.ledger.store import Store

if TYPE_CHECKING:
    from matrixdp.ledger.postgres.driver import Connection

_PAUSE = 0.05  # seconds between attempts to reach a server that went away during a commit
# All settings end with the transaction.
_BEGIN_READING = """
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
SET LOCAL search_path = {schema}, pg_temp;
SET LOCAL lock_timeout = {milliseconds};
SELECT 0, ''
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
# Sent with the beginning of a transaction, to save round trips while the lock is held.
_FIRST = ";".join(["", *(sql.replace("?", "%d") % values for sql, values in FIRST_QUERIES)])


class PostgresTransaction:
    """A transaction of a connection, as a `Journal` uses it.

    Attributes
    ----------
    token : str
        Stored with each entry that this transaction appends, so that it can be asked for if the answer to the commit
        is lost.
    entry : int or None
        The last entry that was appended.
    waits_for_standby : bool
        Whether a commit waits for another server.
    version : int
        Of the ledger's schema.
    """

    def __init__(self, connection: Connection, schema: str, token: str) -> None:
        self.connection = connection
        self.token = token
        self.entry: int | None = None
        self.waits_for_standby = False
        self.version = VERSION
        self._schema = schema
        self._known: dict[tuple[object, ...], list[tuple[Any, ...]]] = {}

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

    def insert(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """Append entries; the number and hash of the last one, its first and last value, become the head."""
        self._known.clear()
        with self.connection.cursor() as cursor:
            if len(rows) == 1:
                cursor.execute(sql.replace("?", "%s"), rows[0])
            else:
                cursor.executemany(sql.replace("?", "%s"), rows)
        self.entry = int(str(rows[-1][0]))
        self.learn(HEAD_QUERY, (), [(rows[-1][0], rows[-1][-1])])

    def faults(self) -> Iterator[str]:
        """Missing or altered triggers, functions and indexes."""
        return faults(self.connection, self._schema)

    def require_units(self) -> None:
        """Raise the version of an older ledger, which only its owner may do."""
        if self.version >= VERSION:
            return
        try:
            self.connection.execute(f"UPDATE {self._schema}.ledger SET version = {VERSION}")  # noqa: S608
        except import_psycopg().errors.InsufficientPrivilege:
            raise LedgerError(
                "this ledger is from before data sets had units, and only its owner can upgrade it. Nothing was "
                "registered. Let its owner register the data set."
            ) from None
        self.version = VERSION


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
        self._connection: Connection | None = None
        self._current: PostgresTransaction | None = None
        self._warnings: list[str] = []
        super().__init__(timeout)

    @property
    def address(self) -> PostgresURL:
        """The URL, with its password if it has one."""
        return self.url

    def _begin(self, *, writing: bool) -> PostgresTransaction:
        reused = self._connection is not None
        try:
            self._current = self._begin_now(writing=writing)
        except self.driver_errors as error:
            if not (reused and is_lost(error)):
                raise
            self._disconnect()  # lost while it was idle: nothing was asked of it yet
            self._current = self._begin_now(writing=writing)
        return self._current

    def _begin_now(self, *, writing: bool) -> PostgresTransaction:
        connection, token = self._open(), secrets.token_hex(16)
        milliseconds = max(1, min(int(1000 * self.timeout), 2**31 - 1))
        cursor = connection.cursor()
        begin = (_BEGIN_WRITING if writing else _BEGIN_READING) + _FIRST
        cursor.execute(begin.format(schema=self.url.schema, milliseconds=milliseconds, token=token))
        answers = []
        while cursor.nextset():
            if cursor.description is not None:
                answers.append(cursor.fetchall())
        ((version, standbys),), *known = answers
        check_version(version, self.url)
        transaction = PostgresTransaction(connection, self.url.schema, token)
        transaction.waits_for_standby = standbys != ""
        transaction.version = version
        for (sql, values), rows in zip(FIRST_QUERIES, known, strict=True):
            transaction.learn(sql, values, rows)
            if sql == LAST_QUERY and rows:
                transaction.learn(ENTRY_QUERY, (rows[0][0],), rows)
        return transaction

    def _commit(self, *, writing: bool) -> None:
        current, connection = self._current, self._connection
        if current is None or connection is None:
            return
        self._warnings.clear()
        try:
            with _cancelling(connection, self.timeout) if current.waits_for_standby else contextlib.nullcontext():
                status = connection.execute("COMMIT").statusmessage
        except self.driver_errors as error:
            self._disconnect()
            if current.entry is None or not self._find_entry(current.entry, current.token):
                raise translate(error, self.url) from error
            return
        self._current = None
        if status != "COMMIT":
            raise LedgerError(f"{self.url}: the server rolled the transaction back. Nothing was released.")
        if self._warnings:
            self._disconnect()
            raise LedgerError(
                f"{self.url}: the commit is on the server, but its standby did not confirm it ({self._warnings[0]}). "
                "What was charged stays spent, and nothing was released. Make sure that the standby runs."
            )

    def _find_entry(self, entry: int, token: str) -> bool:
        """Whether an entry was committed, although the answer to the commit was lost.

        The head's lock is taken before looking. The lost transaction held that lock, so it has ended by then.
        """
        deadline = time.monotonic() + self.timeout
        while True:
            try:
                transaction = self._begin_now(writing=True)
                rows = list(transaction.execute("SELECT attempt FROM entries WHERE entry = ?", (entry,)))
                self._roll_back()
                return rows == [(token,)]
            except (LedgerError, import_psycopg().Error) as error:
                self._disconnect()
                if time.monotonic() > deadline:
                    raise LedgerError(
                        f"{self.url}: the connection was lost during a commit, and the server does not say whether it "
                        f"was made. Nothing was released. If the ledger has an entry {entry} of this time, it stays "
                        "spent: see matrixdp ledger history once the server runs."
                    ) from error
            time.sleep(_PAUSE)

    def _roll_back(self) -> None:
        self._current = None
        connection = self._connection
        if connection is None:
            return
        try:
            if connection.info.transaction_status != import_psycopg().pq.TransactionStatus.IDLE:
                connection.execute("ROLLBACK")
        except self.driver_errors:
            self._disconnect()

    def _disconnect(self) -> None:
        connection, self._connection = getattr(self, "_connection", None), None
        self._current = None
        if connection is not None:
            with contextlib.suppress(*self.driver_errors):
                connection.close()

    def _translate(self, error: Exception) -> LedgerError:
        return translate(error, self.url)

    def _open(self) -> Connection:
        if self._connection is None:
            connection = connect(self.url, self.timeout)
            try:
                check_schema(connection, self.url)
            except BaseException:
                connection.close()
                raise
            connection.add_notice_handler(self._note_warning)
            self._connection = connection
        return self._connection

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
