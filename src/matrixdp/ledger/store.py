"""Where a ledger is kept: transactions, forks and errors, for any database; and moving a ledger to another store.

There is one connection per `Store` and process, used by one thread at a time. Connections to databases do not survive a
fork. So all connections are closed before this process forks, and parent and child open them again when needed.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

from matrixdp.errors import LedgerError, MatrixDPError
from matrixdp.ledger.audit import audit
from matrixdp.ledger.entries import RESTORE, Author
from matrixdp.ledger.journal import Journal
from matrixdp.ledger.location import Location
from matrixdp.ledger.values import Head

_BLOCK = 2000  # entries that are copied at a time


def append_first(journal: Journal) -> None:
    """Append the first entry of a new ledger: unique to it, and every later hash depends on it."""
    journal.append("create", {"ledger": secrets.token_hex(16)})


def append_restore(journal: Journal) -> None:
    """Append the entry which says that the ledger was restored from a backup that ends at the last entry."""
    journal.append("restore", {"backup": vars(journal.head())})


def require_version(found: int, supported: int, location: str) -> None:
    """Raise a `LedgerError` unless the ledger's schema is the one that is written today."""
    if found == supported:
        return
    writer, remedy = ("a newer", "Upgrade matrixdp") if found > supported else ("an unpublished", "Use that matrixdp")
    raise LedgerError(
        f"{location} was written by {writer} matrixdp: its schema is version {found}, and this matrixdp reads "
        f"{supported}. Nothing was changed. {remedy} to use it."
    )


class Store(ABC):
    """The database of a ledger. A subclass knows one kind of database.

    Privacy
    -------
    When a `writing` block ends without an error, its entries are durable.
    """

    driver_errors: tuple[type[Exception], ...]  # of the database driver

    def __init__(self, address: Location, timeout: float) -> None:
        self.address = address  # what opens this ledger again: a path, or a URL with its password if it has one
        self.location = str(address)  # for messages, without a password
        self.timeout = timeout
        self._connection: Any = None
        self._lock = threading.RLock()
        self._first_hash: str | None = None
        self._pid = os.getpid()
        with _REGISTRY_LOCK:
            _STORES.add(self)

    def __del__(self) -> None:
        self._disconnect()

    @abstractmethod
    def create(self, author: Author, fill: Callable[[Journal], object] = append_first) -> None:
        """Create a new ledger with the entries that `fill` appends, durable when this returns.

        Raises a `LedgerError` if there is anything in its place.
        """

    @abstractmethod
    def restore(self, backup: Store, author: Author) -> None:
        """Make a new ledger here from a backup, with an entry that says so."""

    def back_up(self, target: Store) -> Head:
        """Copy the ledger, which may be in use, to the new file `target`, durable when this returns; its head."""
        raise self.not_a_file()

    def confirm_move(self, author: Author) -> None:
        """Record that the file was moved here, after a check of the whole ledger."""
        raise self.not_a_file()

    def find_blind_spots(self) -> list[str]:
        """What could be done to the ledger's file and would not be noticed."""
        return []

    def require_latest(self, journal: Journal) -> None:  # noqa: B027
        """Raise a `LedgerError` if there is evidence beside the ledger of later entries than it has."""

    def not_a_file(self) -> LedgerError:
        """The error for a ledger in a database server where a file is needed."""
        return LedgerError(f"{self.location} is not a file. Use the tools of its database, or matrixdp ledger copy.")

    @abstractmethod
    def _connect(self) -> Any:
        """A new connection to the ledger, or a `LedgerError` if there is none."""

    def _open(self) -> Any:
        """The connection, which is made if there is none."""
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    @abstractmethod
    def _begin(self, author: Author | None) -> Journal:
        """Connect, check that this is a ledger, and begin a transaction; with an author, other writers are excluded."""

    @abstractmethod
    def _commit(self, journal: Journal) -> None:
        """End the transaction; a writer's entries are durable when this returns."""

    @abstractmethod
    def _translate(self, error: Exception) -> LedgerError:
        """The `LedgerError` for an error of the driver, with the ledger and the remedy."""

    def reading(self) -> contextlib.AbstractContextManager[Journal]:
        """Context manager of a transaction that reads one state of the ledger."""
        return self.writing(None)

    def close(self) -> None:
        """Close the connection, once it is idle. It is opened again when next used."""
        with self._lock:
            self._disconnect()

    def _roll_back(self) -> None:
        """End the transaction without its changes, if there is one."""
        try:
            if self._connection is not None:
                self._connection.execute("ROLLBACK")
        except self.driver_errors:
            self._disconnect()

    def _disconnect(self) -> None:
        """Close the connection, which rolls back what was not committed. Raises nothing."""
        connection, self._connection = getattr(self, "_connection", None), None
        if connection is not None:
            with contextlib.suppress(*self.driver_errors):
                connection.close()

    @contextlib.contextmanager
    def writing(self, author: Author | None) -> Iterator[Journal]:
        """A transaction that excludes other writers; durable at its end, rolled back on an error."""
        with self._lock:
            try:
                if self._pid != os.getpid():
                    raise LedgerError(
                        f"{self.location}: this process was forked without Python's knowledge, and may not use the "
                        "ledger. Start it with multiprocessing or subprocess."
                    )
                journal = self._begin(author)
                first = journal.first_hash()  # of no other ledger
                if self._first_hash not in (None, first):
                    raise LedgerError(f"{self.location} is not the ledger that was first opened here. Open it again.")
                self._first_hash = first
                if author is not None:
                    journal.require_intact_end()
                yield journal
                self._commit(journal)
            except self.driver_errors as error:
                self._disconnect()  # its state is unknown; the next use opens a new one
                raise self._translate(error) from error
            except (KeyError, TypeError, ValueError, OverflowError) as error:
                self._roll_back()
                if isinstance(error, MatrixDPError):
                    raise
                what = f"an entry cannot be read ({type(error).__name__})"
                raise LedgerError(f"{self.location} is damaged: {what}. {RESTORE}.") from error
            except BaseException:
                self._roll_back()
                raise


def copy_ledger(original: Store, copy: Store, author: Author) -> Head:
    """Copy a ledger to a new store, where it is charged from now on; the head of the copy.

    The last entry of the original is of the kind `leave`; after it, only an entry of the kind `arrive` is accepted,
    which the copy gets. ``docs/ledger.md`` ("Moving a ledger") lists the steps. If the process is stopped before the
    third, the original is as it was, and the copy can be removed. After it, the same call again finishes the fourth.

    Privacy
    -------
    At no time do both ledgers accept charges, also if the process is stopped at any step.
    """
    try:
        return _arrive(original, copy, _leave(original, copy, author), author)
    finally:
        original.close()
        copy.close()


def _leave(original: Store, copy: Store, author: Author) -> Head:
    """Steps 1 to 3; the entry `leave`."""
    with original.writing(author) as journal:
        last = journal.row("last")
        if last is not None and last.kind == "leave":  # an earlier call got as far as this
            return journal.head()
        audit(journal)
        head = journal.append("leave", {"to": copy.location})
        copy.create(author, lambda written: _copy_entries(journal, written))
        with copy.reading() as written:
            if audit(written) != head:
                raise LedgerError(f"{copy.location} differs from {original.location}. Remove it and try again.")
    return head


def _arrive(original: Store, copy: Store, head: Head, author: Author) -> Head:
    """Step 4; the entry `arrive`."""
    with copy.writing(author) as journal:
        if journal.head() != head:
            raise LedgerError(
                f"{original.location} was copied already, and is charged elsewhere: its last entry says where."
            )
        return journal.append("arrive", {"from": original.location})


def _copy_entries(source: Journal, target: Journal) -> None:
    last = 0
    while rows := list(source.rows("after", last, _BLOCK)):
        target.insert(rows)
        last = rows[-1].entry


_STORES: weakref.WeakSet[Store] = weakref.WeakSet()
_REGISTRY_LOCK = threading.RLock()
_locked_stores: list[Store] = []


def _before_fork() -> None:
    _REGISTRY_LOCK.acquire()
    for store in list(_STORES):
        store._lock.acquire()
        store._disconnect()
        _locked_stores.append(store)


def _after_fork() -> None:
    while _locked_stores:
        store = _locked_stores.pop()
        store._pid = os.getpid()
        store._lock.release()
    _REGISTRY_LOCK.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
