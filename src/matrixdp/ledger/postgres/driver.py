"""Connections to PostgreSQL by psycopg, and its errors as those of a ledger."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from matrixdp.errors import LedgerError, install_hint
from matrixdp.ledger.location import PostgresURL

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

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
    "XX001": "it is damaged. Restore it from a backup; until then, treat its data sets as spent",
    "XX002": "it is damaged. Restore it from a backup; until then, treat its data sets as spent",
}
_REFUSALS = {
    "password authentication failed": "the user or the password is wrong. Check them, PGPASSWORD and ~/.pgpass",
    "no password supplied": "a password is needed. Put it into ~/.pgpass, PGPASSWORD or the URL",
    "does not exist": "the database or the role does not exist. Check the URL, or create them first",
    "permission denied": f"this role may not connect. {_ROLES}",
}


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
        raise _refused(error, url) from None
    return connection


def is_lost(error: Exception) -> bool:
    """Whether an error of psycopg means that the connection is gone."""
    code = getattr(error, "sqlstate", None)
    if code is None:
        return isinstance(error, import_psycopg().OperationalError)
    return code[:2] == "08" or code in ("57P01", "57P02", "57P03", "57P05", "25P03")


def translate(error: Exception, url: PostgresURL) -> LedgerError:
    """The `LedgerError` for an error of psycopg, with the ledger and the remedy."""
    code = getattr(error, "sqlstate", None)
    if code not in _REMEDIES and is_lost(error):
        what = "the connection to the server was lost. Make sure that it runs, and try again"
    else:
        what = _REMEDIES.get(code or "", "PostgreSQL refused")
    return LedgerError(f"{url}: {what} ({_one_line(error)}). Nothing was released.")


def _refused(error: Exception, url: PostgresURL) -> LedgerError:
    """The error of a connection that was not made; libpq gives no code, so its message has to do."""
    message = _one_line(error)
    remedy = "the server cannot be reached. Check host and port, and that the server runs"
    for part, found in _REFUSALS.items():
        if part in message:
            remedy = found
    return LedgerError(f"{url}: {remedy} ({message}). Nothing was charged.")


def _one_line(error: Exception) -> str:
    message = getattr(getattr(error, "diag", None), "message_primary", None) or str(error)
    return " ".join(message.split())[:500].rstrip(".")
