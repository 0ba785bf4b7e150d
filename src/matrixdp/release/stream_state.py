"""The private state of a stream, in a SQLite file that nobody else may read: its key, and the sums of its steps."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from matrixdp.errors import LedgerError, ParameterError
from matrixdp.ledger.sqlite import connect, new_file
from matrixdp.noise.stream import BlockKey
from matrixdp.records.ids import Hashes
from matrixdp.sensitivity.stream_change import Integers

_TABLES = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE steps (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, sums BLOB NOT NULL, file BLOB UNIQUE);
CREATE TABLE people (hash INTEGER PRIMARY KEY, used INTEGER NOT NULL, last INTEGER NOT NULL);
"""
_TIMEOUT = 30.0  # seconds to wait for other processes


class StreamState:
    """The state of a stream: a key, the integers of each step, and in which steps people were.

    Privacy
    -------
    As private as the data. Noise of a step follows from the key, its number and all integers up to it: a copy of the
    state draws the same noise for the same integers, and independent noise for others.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            mode = path.stat().st_mode
        except OSError as error:
            raise LedgerError(
                f"{path}, the private state of the stream, cannot be read: {error.strerror}. Use the latest copy, or "
                "continue with restart."
            ) from None
        if os.name == "posix" and mode & 0o077:
            raise ParameterError(
                f"{path} must be readable by its owner only, as it holds private data: chmod 600 {path}"
            )
        with self._use() as connection:
            facts = dict(connection.execute("SELECT name, value FROM facts"))
        self.stream = facts["stream"].decode()  # the digest of the plan and the charge
        self.start = int(facts["start"])  # number of the first step
        self.seeded = facts["seeded"] == b"1"
        self._key = facts["key"]

    @classmethod
    def create(cls, path: Path, *, stream: str, start: int = 0, key: bytes | None = None) -> StreamState:
        """Make a new state, which appears when it is complete; `key` is for simulations only."""
        facts = {"key": os.urandom(32) if key is None else key, "stream": stream.encode()}
        facts |= {"start": b"%d" % start, "seeded": b"%d" % (key is not None)}
        with new_file(path) as draft, contextlib.closing(connect(draft, _TIMEOUT)) as connection:
            connection.executescript(_TABLES)
            connection.executemany("INSERT INTO facts VALUES (?, ?)", list(facts.items()))
        return cls(path)

    @contextlib.contextmanager
    def _use(self) -> Iterator[sqlite3.Connection]:
        """A transaction, durable at its end."""
        try:
            with contextlib.closing(connect(self.path, _TIMEOUT)) as connection, connection:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
        except sqlite3.Error as error:
            raise LedgerError(f"{self.path} cannot be used as the state of a stream: {error}.") from error

    def steps(self) -> list[tuple[int, str]]:
        """The steps whose answers are stored: their numbers in the stream, and names."""
        with self._use() as connection:
            return connection.execute("SELECT number, name FROM steps ORDER BY number").fetchall()

    def add(self, number: int, name: str, sums: Integers, people: Hashes, file: bytes | None) -> None:
        """Store the integers of the next step, with the people in it; durable when this returns."""
        with self._use() as connection:
            ((count,),) = connection.execute("SELECT COUNT(*) FROM steps")
            if count + self.start != number:
                raise LedgerError(f"{self.path} was written by another process in the meantime. Try again.")
            values = (number, name, sums.astype("<i8").tobytes(), file)
            connection.execute("INSERT INTO steps VALUES (?, ?, ?, ?)", values)
            connection.executemany(
                "INSERT INTO people VALUES (?, 1, ?) ON CONFLICT (hash) DO UPDATE SET used = used + 1, last = ?",
                [(hashed, number, number) for hashed in people.view(np.int64).tolist()],
            )

    def read(self, number: int) -> tuple[list[Integers], BlockKey, bytes]:
        """The integers of all steps up to one, the key of the noise, and the hash of the integers."""
        with self._use() as connection:
            found = connection.execute("SELECT sums FROM steps WHERE number <= ? ORDER BY number", (number,))
            rows = [row for (row,) in found]
        key, content = BlockKey.from_secret(self.derive(b"noise"), seeded=self.seeded), hashlib.sha256(b"".join(rows))
        return [np.frombuffer(row, "<i8") for row in rows], key, content.digest()

    def find_file(self, file: bytes) -> str | None:
        """The step that a file was published for, by the keyed hash of its content."""
        with self._use() as connection:
            row = connection.execute("SELECT name FROM steps WHERE file = ?", (file,)).fetchone()
        return None if row is None else str(row[0])

    def choose_people(self, hashes: Hashes, number: int, *, steps: int, apart: int) -> Hashes:
        """Those of some people who may count in a step: they were in fewer than `steps`, the last `apart` ago."""
        with self._use() as connection:
            connection.execute("CREATE TEMP TABLE wanted (hash INTEGER PRIMARY KEY)")
            connection.executemany("INSERT INTO wanted VALUES (?)", [(one,) for one in hashes.view(np.int64).tolist()])
            rows = connection.execute(
                "SELECT w.hash FROM wanted w JOIN people p ON p.hash = w.hash WHERE p.used >= ? OR p.last > ?",
                (steps, number - apart),
            )
            out = np.array([hashed for (hashed,) in rows], np.int64).view(np.uint64)
        return np.unique(hashes[np.isin(hashes, out, invert=True, kind="sort")])  # NumPy 2.0 overflows otherwise

    def derive(self, label: bytes) -> bytes:
        """A secret of 32 bytes for one use."""
        return hmac.digest(self._key, b"matrixdp stream " + label, "sha256")

    def hash_files(self, data: Any) -> bytes | None:
        """Keyed hash of the content of a file, or of several; None for other data."""
        paths = data if isinstance(data, list | tuple) else [data]
        if not paths or not all(isinstance(one, str | os.PathLike) and os.path.isfile(one) for one in paths):
            return None
        digest = hmac.new(self.derive(b"file"), digestmod="sha256")
        for path in paths:
            with open(path, "rb") as file:
                hashlib.file_digest(file, lambda: digest)
        return digest.digest()
