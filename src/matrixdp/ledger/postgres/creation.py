"""Creation of a new ledger in a PostgreSQL database."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING

from matrixdp.errors import LedgerError
from matrixdp.ledger.audit import audit
from matrixdp.ledger.author import Author
from matrixdp.ledger.chain import Head
from matrixdp.ledger.journal import Journal
from matrixdp.ledger.location import PostgresURL
from matrixdp.ledger.postgres.driver import connect, import_psycopg, translate
from matrixdp.ledger.postgres.schema import creation_sql, require_durability
from matrixdp.ledger.postgres.store import PostgresStore, PostgresTransaction

if TYPE_CHECKING:
    from matrixdp.ledger.postgres.driver import Connection


def create_tables(url: PostgresURL, timeout: float, author: Author, fill: Callable[[Journal], object]) -> None:
    """Create a ledger with the entries that `fill` appends in the schema that `url` names, durable when this returns.

    The schema is created if it does not exist. Raises a `LedgerError` if there is anything in it.
    """
    psycopg = import_psycopg()
    with contextlib.closing(connect(url, timeout)) as connection:
        try:
            _create(connection, url, author, fill)
        except (psycopg.errors.DuplicateSchema, psycopg.errors.UniqueViolation):
            raise LedgerError(f"{url}: another client is creating a ledger there. Open it: Ledger.open(url).") from None
        except psycopg.Error as error:
            raise translate(error, url) from error


def mark_restored(url: PostgresURL, timeout: float, author: Author) -> Head:
    """Record that the server was restored from a backup, after a check of the whole ledger; its head before."""
    with contextlib.closing(PostgresStore(url, timeout)) as store, store.writing(author) as journal:
        head = audit(journal)
        journal.append("restore", {"backup": {"entry": head.entry, "hash": head.hash}})
    return head


def _create(connection: Connection, url: PostgresURL, author: Author, fill: Callable[[Journal], object]) -> None:
    schema = url.schema
    fsync, encoding, exists, tables, ledger = connection.execute(
        "SELECT current_setting('fsync'), current_setting('server_encoding'), "
        "(SELECT count(*) FROM pg_catalog.pg_namespace n WHERE n.nspname = %(schema)s), "
        "(SELECT count(*) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname = %(schema)s), "
        "(SELECT count(*) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname = %(schema)s AND c.relname = 'ledger')",
        {"schema": schema},
    ).fetchall()[0]
    require_durability(fsync, url)
    if encoding != "UTF8":
        raise LedgerError(f"{url}: the database must have the encoding UTF8, not {encoding}. Create one that has.")
    if ledger:
        raise LedgerError(
            f"{url} already exists, and may be a ledger. Open it (Ledger.open, or matrixdp ledger add), or "
            "choose another schema with the URL's option schema=NAME."
        )
    if tables:
        raise LedgerError(
            f"{url}: its schema {schema!r} holds other tables. Choose another with the URL's option schema=NAME."
        )
    token = secrets.token_hex(16)
    connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
    connection.execute("SET LOCAL synchronous_commit = on")
    if not exists:
        connection.execute(f"CREATE SCHEMA {schema}")
    connection.execute(creation_sql(schema))
    connection.execute(f"SET LOCAL search_path = {schema}, pg_temp")
    fill(Journal(PostgresTransaction(connection, schema, token), url.shown, author))
    connection.execute("COMMIT")
