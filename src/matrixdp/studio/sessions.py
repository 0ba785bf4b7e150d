"""Browsers that are signed in: a cookie with a random text, whose hash is stored, and a token against forged forms."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import Lock

from matrixdp.studio.roles import Viewer
from matrixdp.studio.state import State, now
from matrixdp.studio.tokens import (
    Token,
    find_token,
    forget_link,
    hash_secret,
    make_secret,
    note_link,
    read_roles,
    write_roles,
)


@dataclass(frozen=True)
class Session:
    """A browser that is signed in, and the token that its forms carry."""

    viewer: Viewer
    csrf: str


class OneTimeLinks:
    """The tokens in the addresses that the command prints: each signs in one browser, and is forgotten then."""

    def __init__(self) -> None:
        self._viewers: dict[str, Viewer] = {}
        self._lock = Lock()

    def create(self, viewer: Viewer) -> str:
        """A new token for an address."""
        secret = make_secret()
        with self._lock:
            self._viewers[hash_secret(secret)] = viewer
        return secret

    def take(self, secret: str) -> Viewer | None:
        """The person that the token signs in; None if it is unknown, or was taken before."""
        with self._lock:
            return self._viewers.pop(hash_secret(secret), None)


def enter_by_link(state: State, links: OneTimeLinks, secret: str, hours: float) -> str | None:
    """The text of the cookie for the token of a printed address; None if it is unknown, or was used."""
    viewer = links.take(secret)
    return None if viewer is None else _start_session(state, note_link(state, viewer, hours), hours)


def enter_by_token(state: State, secret: str, hours: float) -> str | None:
    """The text of the cookie for a person's token; None if it is not valid."""
    token = find_token(state, secret)
    return None if token is None else _start_session(state, token, hours)


def _start_session(state: State, token: Token, hours: float) -> str:
    cookie = make_secret()
    expires = (datetime.now(UTC) + timedelta(hours=hours)).isoformat(timespec="microseconds")
    if token.expires is not None:
        expires = min(expires, token.expires)
    row = (
        hash_secret(cookie),
        token.id,
        token.name,
        write_roles(token.roles),
        secrets.token_urlsafe(32),
        expires,
    )
    with state.writing() as connection:
        connection.execute("DELETE FROM sessions WHERE expires <= ?", (now(),))
        connection.execute(
            "INSERT INTO sessions (hash, token, name, roles, csrf, expires) VALUES (?, ?, ?, ?, ?, ?)", row
        )
    return cookie


def find_session(state: State, cookie: str) -> Session | None:
    """The session of a cookie, unless it or its token has expired or was revoked."""
    with state.reading() as connection:
        row = connection.execute(
            "SELECT sessions.* FROM sessions LEFT JOIN tokens ON tokens.id = sessions.token "
            "WHERE sessions.hash = ? AND sessions.expires > ? AND tokens.revoked IS NULL",
            (hash_secret(cookie), now()),
        ).fetchone()
    return None if row is None else Session(Viewer(row["name"], read_roles(row["roles"])), row["csrf"])


def sign_out(state: State, cookie: str) -> None:
    """End a session, and forget the printed address that it began with."""
    with state.writing() as connection:
        row = connection.execute("SELECT token FROM sessions WHERE hash = ?", (hash_secret(cookie),)).fetchone()
        if row is not None:
            forget_link(connection, row["token"])
        connection.execute("DELETE FROM sessions WHERE hash = ?", (hash_secret(cookie),))
