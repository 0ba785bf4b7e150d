"""Who is signed in: tokens of persons, cookies of browsers, printed addresses, and a count of wrong tokens."""

import hashlib
import json
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from sqlite3 import Connection, Row
from threading import Lock

from matrixdp.errors import ParameterError, show
from matrixdp.ledger.entries import check_name
from matrixdp.studio.refusals import NotFoundError, UnavailableError
from matrixdp.studio.roles import Role, Viewer
from matrixdp.studio.state import State, insert, now

_BYTES = 32  # of a random text that can be a part of a URL
_LONGEST_NAME = 100
SESSION = timedelta(hours=12)  # that a browser stays signed in
_LINK = "link-"  # begins the ids of printed addresses
_SEEN_STEP = timedelta(minutes=1)


@dataclass(frozen=True)
class Token:
    """What is known of a token: never the token itself. Times are in UTC."""

    id: str  # that of a printed address begins with ``link-``
    name: str  # of the person
    roles: frozenset[Role]
    created: str
    expires: str | None
    revoked: str | None

    @property
    def is_link(self) -> bool:
        """Whether it was the token of a printed address, which is used up and stands for the browser that used it."""
        return self.id.startswith(_LINK)

    @property
    def is_valid(self) -> bool:
        """Whether it is neither revoked nor expired."""
        return self.revoked is None and (self.expires is None or now() < self.expires)


def hash_secret(secret: str) -> str:
    """SHA-256 of a text with 256 random bits, which cannot be guessed, so no slow hash is needed."""
    return hashlib.sha256(secret.encode()).hexdigest()


def create_token(
    state: State, name: str, roles: Iterable[Role], days: float | None = None, groups: Sequence[str] | None = None
) -> tuple[str, Token]:
    """A new token for a person, and what is stored of it. The token cannot be shown again.

    It expires after some `days`, by default never. The `groups` of the person stay as they are unless they are given.
    """
    name, given = check_name(name, "name"), frozenset(roles)
    if len(name) > _LONGEST_NAME:
        raise ParameterError(f"name must have at most {_LONGEST_NAME} characters, got {len(name)} instead.")
    if not given:
        raise ParameterError("roles must name a role: curator, analyst or both.", parameter="roles")
    if days is not None and not 0 < days <= 36500:
        raise ParameterError(f"days must be from 0 to 36500, got {show(days)} instead.", parameter="days")
    check_distinct(state, name, groups or ())
    secret = secrets.token_urlsafe(_BYTES)
    expires = None if days is None else now(timedelta(days=days))
    token = Token(secrets.token_hex(4), name, given, now(), expires, None)
    with state.writing() as connection:
        taken = connection.execute(
            "SELECT 1 FROM tokens WHERE name = ? AND roles <> ? AND revoked IS NULL AND id NOT LIKE ?",
            (name, write_roles(given), f"{_LINK}%"),
        ).fetchone()
        if taken:
            raise ParameterError(
                f"name: {name!r} has a token with other roles. Revoke it first, or use another name.", parameter="name"
            )
        _insert(connection, token, secret)
        if groups is not None:
            _write_groups(connection, name, groups)
    return secret, token


def check_distinct(state: State, name: str, groups: Iterable[str] = ()) -> None:
    """Raise if a person has the name of a group of others, or a group that of a person: allowances name both alike."""
    others = [one for one in list_people(state) if one.name != name]
    taken = {"groups": {one.name for one in others}, "name": {group for one in others for group in one.groups}}
    for field, given in (("name", [name]), ("groups", groups)):
        if clash := sorted(taken[field].intersection(given)):
            other = "groups" if field == "name" else "people"
            message = f"must differ from names of {other}, got {show(clash[0])} instead: allowances name both alike."
            raise ParameterError(f"{field} {message}", parameter=field)


def _write_groups(connection: Connection, name: str, groups: Iterable[str]) -> None:
    text = json.dumps(sorted({check_name(group, "groups") for group in groups}))
    insert(connection, "people", name=name, groups=text)
    connection.execute("UPDATE people SET groups = ? WHERE name = ?", (text, name))


def find_person(state: State, name: str, roles: frozenset[Role] = frozenset()) -> Viewer:
    """Somebody by their name, with their groups; without roles, for what is done in their name."""
    rows = state.select("SELECT groups FROM people WHERE name = ?", name)
    return Viewer(name, roles, tuple(json.loads(rows[0]["groups"])) if rows else ())


@dataclass(frozen=True)
class Person:
    """Somebody who has a token, or whom a proxy has signed in: their groups, tokens, and when they were last seen."""

    name: str
    groups: tuple[str, ...]
    seen: str | None
    tokens: tuple[Token, ...]


def list_people(state: State) -> list[Person]:
    """Everybody, by name."""
    tokens = list_tokens(state)
    known = {one.name: ("[]", None) for one in tokens}
    known |= {row["name"]: (row["groups"], row["seen"]) for row in state.select("SELECT * FROM people")}
    return [
        Person(name, tuple(json.loads(groups)), seen, tuple(one for one in tokens if one.name == name))
        for name, (groups, seen) in sorted(known.items())
    ]


def list_revoked(state: State) -> set[str]:
    """The names of those who had tokens, none of which is valid any more."""
    tokens = list_tokens(state)
    return {one.name for one in tokens if one.revoked} - {one.name for one in tokens if one.is_valid}


def note_sighting(state: State, viewer: Viewer, *, keep_groups: bool) -> None:
    """Note that somebody is there, and the groups that a proxy says unless those that are known are kept.

    At most once a minute for each, unless the groups have changed.
    """
    recent = "SELECT groups FROM people WHERE name = ? AND seen > ?"
    known = [json.loads(row["groups"]) for row in state.select(recent, viewer.name, now(-_SEEN_STEP))]
    if known and (keep_groups or known == [sorted(viewer.groups)]):
        return
    with suppress(UnavailableError), state.writing() as connection:
        insert(connection, "people", name=viewer.name, groups="[]")
        connection.execute("UPDATE people SET seen = ? WHERE name = ?", (now(), viewer.name))
        if not keep_groups:
            _write_groups(connection, viewer.name, viewer.groups)


def _insert(connection: Connection, token: Token, secret: str) -> None:
    insert(connection, "tokens", **{**vars(token), "roles": write_roles(token.roles), "hash": hash_secret(secret)})


def list_tokens(state: State) -> list[Token]:
    """All tokens, in the order in which they were made."""
    return [_read_token(row) for row in state.select("SELECT * FROM tokens ORDER BY created, id")]


def find_token(state: State, secret: str) -> Token | None:
    """The token with this text, if it is valid."""
    found = map(_read_token, state.select("SELECT * FROM tokens WHERE hash = ?", hash_secret(secret)))
    return next((token for token in found if token.is_valid), None)


def revoke_token(state: State, token_id: str) -> tuple[Token, int]:
    """Revoke a token, and end the sessions that began with it, whose number is returned. A second time is no error."""
    with state.writing() as connection:
        connection.execute("UPDATE tokens SET revoked = ? WHERE id = ? AND revoked IS NULL", (now(), token_id))
        live = connection.execute("DELETE FROM sessions WHERE token = ? AND expires > ?", (token_id, now())).rowcount
        row = connection.execute("SELECT * FROM tokens WHERE id = ?", (token_id,)).fetchone()
    if row is None:
        raise NotFoundError(f"there is no token {show(token_id)}. See: matrixdp studio token list")
    return _read_token(row), live


def write_roles(roles: Iterable[Role]) -> str:
    """Roles as text, such as ``analyst,curator``."""
    return ",".join(sorted(role.value for role in roles))


def read_roles(text: str) -> frozenset[Role]:
    """Roles from their text."""
    return frozenset(Role(name) for name in text.split(","))


def _read_token(row: Row) -> Token:
    return Token(row["id"], row["name"], read_roles(row["roles"]), row["created"], row["expires"], row["revoked"])


@dataclass(frozen=True)
class Session:
    """A browser that is signed in, and the token that its forms carry."""

    viewer: Viewer
    csrf: str
    is_forwarded: bool = False  # whether a proxy signed the person in, for one request


class OneTimeLinks:
    """The tokens in the addresses that the command prints: each signs in one browser, and is forgotten then."""

    def __init__(self) -> None:
        self._viewers: dict[str, Viewer] = {}

    def create(self, viewer: Viewer) -> str:
        """A new token for an address."""
        secret = secrets.token_urlsafe(_BYTES)
        self._viewers[hash_secret(secret)] = viewer
        return secret

    def take(self, state: State, secret: str) -> Token | None:
        """An entry among the tokens for the browser, so that it can be revoked; None for a text that is not known."""
        viewer = self._viewers.pop(hash_secret(secret), None)
        if viewer is None:
            return None
        token = Token(f"{_LINK}{secrets.token_hex(4)}", viewer.name, viewer.roles, now(), now(SESSION), None)
        with state.writing() as connection:
            connection.execute("DELETE FROM tokens WHERE id LIKE ? AND expires <= ?", (f"{_LINK}%", now()))
            _insert(connection, token, secrets.token_urlsafe(_BYTES))  # no text is its token
        return token


def start_session(state: State, token: Token) -> str:
    """The text of the cookie for a browser that has sent a valid token."""
    cookie, csrf = (secrets.token_urlsafe(_BYTES) for _ in range(2))
    values = {"hash": hash_secret(cookie), "csrf": csrf, "name": token.name, "roles": write_roles(token.roles)}
    values |= {"token": token.id, "expires": min(now(SESSION), token.expires or now(SESSION))}
    with state.writing() as connection:
        connection.execute("DELETE FROM sessions WHERE expires <= ?", (now(),))
        insert(connection, "sessions", **values)
    return cookie


def find_session(state: State, cookie: str) -> Session | None:
    """The session of a cookie, unless it or its token has expired or was revoked."""
    rows = state.select(
        "SELECT sessions.*, people.groups FROM sessions JOIN tokens ON tokens.id = sessions.token "
        "LEFT JOIN people ON people.name = sessions.name "
        "WHERE sessions.hash = ? AND sessions.expires > ? AND tokens.revoked IS NULL",
        hash_secret(cookie),
        now(),
    )
    for row in rows:
        viewer = Viewer(row["name"], read_roles(row["roles"]), tuple(json.loads(row["groups"] or "[]")))
        return Session(viewer, row["csrf"])
    return None


def sign_out(state: State, cookie: str) -> None:
    """End a session, and forget the printed address that it began with."""
    with state.writing() as connection:
        connection.execute(
            "DELETE FROM tokens WHERE id LIKE ? AND id IN (SELECT token FROM sessions WHERE hash = ?)",
            (f"{_LINK}%", hash_secret(cookie)),
        )
        connection.execute("DELETE FROM sessions WHERE hash = ?", (hash_secret(cookie),))


MOST_WRONG, _WINDOW = 10, 60.0  # wrong tokens from an address, and seconds
_MOST_ADDRESSES = 10_000  # that are remembered


class WrongTokens:
    """Counts wrong tokens by the address that sent them, and begins again after a minute.

    A right token is always accepted: it cannot be guessed, and nobody can lock others out by sending wrong ones. Of
    wrong ones, all after the first `MOST_WRONG` in a minute are answered with 429.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._begun = clock, clock()
        self._counts: Counter[str] = Counter()
        self._lock = Lock()

    def add(self, address: str) -> bool:
        """Count a wrong token; returns whether there were too many."""
        with self._lock:
            if self._clock() - self._begun >= _WINDOW or len(self._counts) > _MOST_ADDRESSES:
                self._counts.clear()
                self._begun = self._clock()
            self._counts[address] += 1
            return self._counts[address] > MOST_WRONG
