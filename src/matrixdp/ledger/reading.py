"""Reading a ledger: remaining budgets, past charges, and verification."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Protocol, Self

from matrixdp.errors import LedgerError
from matrixdp.ledger.accounting import payment_options
from matrixdp.ledger.audit import audit
from matrixdp.ledger.author import Author
from matrixdp.ledger.balance import Balance
from matrixdp.ledger.chain import Head
from matrixdp.ledger.events import Event
from matrixdp.ledger.journal import registration_from_json
from matrixdp.ledger.location import Location, PostgresURL
from matrixdp.ledger.opening import open_store
from matrixdp.ledger.values import Charge, Counts, Registration, Remaining


class Chargeable(Protocol):
    """Anything with the event that its release would be charged as, such as a design."""

    @property
    def event(self) -> Event:
        """The event that a release would be charged as."""


class LedgerReader:
    """The methods of `Ledger` that do not change the file."""

    def __init__(
        self,
        path: str | os.PathLike[str] | PostgresURL,
        timeout: float = 30.0,
        *,
        actor: str | None = None,
        purpose: str | None = None,
    ) -> None:
        self._author = Author(purpose=purpose) if actor is None else Author(actor, purpose)
        self._store = open_store(path, timeout)
        with self._store.reading():
            pass

    @property
    def path(self) -> Location:
        """Path of the file, or URL of the database; as text, the URL has no password."""
        return self._store.address

    @property
    def author(self) -> Author:
        """Who writes entries with this object, and why."""
        return self._author

    @property
    def head(self) -> Head:
        """Number and hash of the last entry. A copy kept outside of the ledger can serve as an anchor: see `verify`."""
        with self._store.reading() as journal:
            return journal.head()

    def remaining(self, dataset: str) -> Remaining:
        """The budget that the data set has left, rounded down."""
        return self._balance(dataset).remaining()

    def whatif(self, dataset: str, event: Event | Chargeable) -> Remaining:
        """The budget that would be left after an event or the release of a design. Nothing is charged.

        Raises
        ------
        BudgetExceededError
            If it does not fit.
        """
        balance = self._balance(dataset)
        neighbours = getattr(event, "neighbours", None)
        if neighbours is not None:
            balance.require_neighbours(neighbours)
        wanted = event if isinstance(event, Event) else event.event
        _, after = balance.pay(wanted, payment_options(wanted), self._store.location)
        return after.remaining()

    def datasets(self) -> list[Registration]:
        """The registered data sets, in order of registration."""
        with self._store.reading() as journal:
            return [registration_from_json(row.content()) for row in journal.rows("registrations")]

    def counts(self, dataset: str) -> Counts:
        """How many charges the data set has, and how many of them have no stored release."""
        with self._store.reading() as journal:
            journal.balance(dataset)
            return journal.counts(dataset)

    def history(self, dataset: str | None = None) -> list[Charge]:
        """All charges, or those to one data set, in order."""
        with self._store.reading() as journal:
            if dataset is not None:
                journal.balance(dataset)
            return journal.charges(dataset)

    def incomplete(self, dataset: str | None = None) -> list[Charge]:
        """Charges without a stored release: in progress, or interrupted. They remain spent."""
        return [charge for charge in self.history(dataset) if not charge.released]

    def verify(self, anchor: Head | None = None) -> Head:
        """Check every entry, every sum and the hash chain, and return the head.

        Parameters
        ----------
        anchor : Head, optional
            An earlier `head` that was kept outside of the ledger. Without one, a ledger that was rewritten entirely
            or replaced by an earlier copy cannot be distinguished from the original.

        Raises
        ------
        LedgerError
            Names the first fault.
        """
        with self._store.reading() as journal:
            try:
                return audit(journal, anchor)
            except LedgerError as error:
                raise LedgerError(
                    f"{self._store.location} cannot be trusted: {error} Restore it from a backup; until then, treat "
                    "its data sets as spent."
                ) from error

    def close(self) -> None:
        """Close the file. It is opened again when next used."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger.open({self._store.location!r})"

    def __reduce__(self) -> tuple[Callable[..., Self], tuple[Location, float]]:
        opened = partial(type(self), actor=self._author.actor, purpose=self._author.purpose)
        return opened, (self._store.address, self._store.timeout)

    def _balance(self, dataset: str) -> Balance:
        with self._store.reading() as journal:
            return journal.balance(dataset)
