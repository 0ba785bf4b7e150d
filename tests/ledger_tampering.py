"""Edits of a ledger with its triggers dropped, as with any database tool."""

from __future__ import annotations

import contextlib
import json
import sqlite3

from matrixdp.ledger.entries import ORIGIN, next_entry


@contextlib.contextmanager
def tampering(ledger, *, rechain=False):
    """A connection without triggers, which are restored afterwards, so that only the entries show the change."""
    with contextlib.closing(sqlite3.connect(ledger.path)) as connection, connection:
        guards = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in guards:
            connection.execute(f"DROP TRIGGER {name}")
        yield connection
        if rechain:
            rehash(connection)
        for _, sql in guards:
            connection.execute(sql)


def rehash(connection):
    """Recompute all hashes, so that the chain is consistent again."""
    head = ORIGIN
    for entry, body in connection.execute("SELECT entry, body FROM entries ORDER BY entry").fetchall():
        content = {k: v for k, v in json.loads(body).items() if k not in ("entry", "previous")}
        text, head = next_entry(content, head)
        connection.execute("UPDATE entries SET body = ?, hash = ? WHERE entry = ?", (text, head.hash, entry))
    connection.execute("UPDATE head SET entry = ?, hash = ?", (head.entry, head.hash))


def edit(connection, entry, change):
    (body,) = connection.execute("SELECT body FROM entries WHERE entry = ?", (entry,)).fetchone()
    content = json.loads(body)
    change(content)
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    connection.execute("UPDATE entries SET body = ? WHERE entry = ?", (text, entry))
