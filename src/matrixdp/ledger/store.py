"""Where a ledger is kept: transactions, forks and errors, for any database.

There is one connection per `Store` and process, used by one thread at a time. Connections to databases do not survive a
fork. So all connections are closed before this process forks, and parent and child open them again when needed.
"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator

from matrixdp.errors import LedgerError, MatrixDPError
from matrixdp.ledger.author import Author
from matrixdp.ledger.journal import Journal, Transaction
from matrixdp.ledger.location import Location


class Store(ABC):
    """The database of a ledger. A subclass knows one kind of database.

    Privacy
    -------
    When a `writing` block ends without an error, its entries are durable.
    """

    driver_errors: tuple[type[Exception], ...]
    """Errors of the database driver, which `_translate` turns into a `LedgerError`."""

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self._lock = threading.RLock()
        self._first_hash: str | None = None
        self._pid = os.getpid()
        with _REGISTRY_LOCK:
            _STORES.add(self)

    def __del__(self) -> None:
        self._disconnect()

    @property
    @abstractmethod
    def address(self) -> Location:
        """What opens this ledger again: a path, or a URL with its password if it has one."""

    @property
    def location(self) -> str:
        """Path or URL as shown in messages, without a password."""
        return str(self.address)

    @abstractmethod
    def _begin(self, *, writing: bool) -> Transaction:
        """Connect if necessary, check that this is a ledger, and begin a transaction. A writer excludes others."""

    @abstractmethod
    def _commit(self, *, writing: bool) -> None:
        """End the transaction; a writer's entries are durable when this returns."""

    @abstractmethod
    def _roll_back(self) -> None:
        """End the transaction without its changes, if there is one."""

    @abstractmethod
    def _disconnect(self) -> None:
        """Close the connection, which rolls back what was not committed. Raises nothing."""

    @abstractmethod
    def _translate(self, error: Exception) -> LedgerError:
        """The `LedgerError` for an error of the driver, with the ledger and the remedy."""

    def reading(self) -> contextlib.AbstractContextManager[Journal]:
        """Context manager of a transaction that reads one state of the ledger."""
        return self._transaction(None)

    def writing(self, author: Author) -> contextlib.AbstractContextManager[Journal]:
        """Context manager of a transaction that excludes other writers; durable at its end, rolled back on an error."""
        return self._transaction(author)

    def close(self) -> None:
        """Close the connection, once it is idle. It is opened again when next used."""
        with self._lock:
            self._disconnect()

    @contextlib.contextmanager
    def _transaction(self, author: Author | None) -> Iterator[Journal]:
        writing = author is not None
        with self._lock:
            try:
                self._require_own_process()
                journal = Journal(self._begin(writing=writing), self.location, author)
                self._require_same_ledger(journal)
                if writing:
                    journal.require_intact_end()
                yield journal
                self._commit(writing=writing)
            except self.driver_errors as error:
                self._disconnect()  # its state is unknown; the next use opens a new one
                raise self._translate(error) from error
            except (KeyError, TypeError, ValueError, OverflowError) as error:
                self._roll_back()
                if isinstance(error, MatrixDPError):
                    raise
                raise LedgerError(
                    f"{self.location} is damaged: an entry cannot be read ({type(error).__name__}). Restore it from a "
                    "backup; until then, treat its data sets as spent."
                ) from error
            except BaseException:
                self._roll_back()
                raise

    def _require_own_process(self) -> None:
        if self._pid != os.getpid():
            raise LedgerError(
                f"{self.location}: this process was forked without Python's knowledge, and may not use the "
                "ledger. Start it with multiprocessing or subprocess."
            )

    def _require_same_ledger(self, journal: Journal) -> None:
        """Raise a `LedgerError` if this is not the ledger that was first opened: their first entries differ."""
        first = journal.row("entry", 1)
        if first is None:
            raise LedgerError(f"{self.location} is damaged: its first entry is missing. Restore it from a backup.")
        if self._first_hash not in (None, first.hash):
            raise LedgerError(f"{self.location} is not the ledger that was first opened here. Open it again.")
        self._first_hash = first.hash


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
