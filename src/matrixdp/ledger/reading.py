"""What a ledger can tell: what is left, what was charged, and whether it can be trusted."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from matrixdp.errors import LedgerError
from matrixdp.ledger.accounting import ways_to_pay
from matrixdp.ledger.audit import audit
from matrixdp.ledger.balance import Account
from matrixdp.ledger.chain import Head
from matrixdp.ledger.events import Event
from matrixdp.ledger.journal import registration_from_json
from matrixdp.ledger.store import Store
from matrixdp.ledger.values import Charge, Registration, Remaining


class Chargeable(Protocol):
    """Anything that knows the event that its release would be, such as a design."""

    @property
    def event(self) -> Event:
        """What a release would be charged as."""


class LedgerReader:
    """The reading half of `Ledger`. Nothing here changes the file."""

    def __init__(self, path: str | os.PathLike[str], timeout: float = 30.0) -> None:
        self._store = Store(Path(path).absolute(), timeout)
        with self._store.reading():
            pass

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self._store.path

    @property
    def head(self) -> Head:
        """The last entry's number and hash. Kept elsewhere, it anchors all that came before: see `verify`."""
        with self._store.reading() as journal:
            return journal.head()

    def remaining(self, dataset: str) -> Remaining:
        """What the data set has left, rounded down."""
        return self._account(dataset).remaining()

    def whatif(self, dataset: str, event: Event | Chargeable) -> Remaining:
        """What would be left after an event or a design's release, which is not charged.

        Raises
        ------
        BudgetExceededError
            If it does not fit.
        """
        account = self._account(dataset)
        neighbours = getattr(event, "neighbours", None)
        if neighbours is not None:
            account.require_neighbours(neighbours)
        wanted = event if isinstance(event, Event) else event.event
        _, after = account.pay(wanted, ways_to_pay(wanted), self.path)
        return after.remaining()

    def datasets(self) -> list[Registration]:
        """The registered data sets, in the order of their registration."""
        with self._store.reading() as journal:
            return [registration_from_json(row.content()) for row in journal.rows("registrations")]

    def history(self, dataset: str | None = None) -> list[Charge]:
        """All charges, or those to one data set, in their order."""
        with self._store.reading() as journal:
            if dataset is not None:
                journal.account(dataset)
            return journal.charges(dataset)

    def incomplete(self, dataset: str | None = None) -> list[Charge]:
        """The charges without a stored release: under way, or cut short. They stay spent."""
        return [charge for charge in self.history(dataset) if not charge.released]

    def verify(self, anchor: Head | None = None) -> Head:
        """The head, after every entry, every sum and the chain that binds them were checked.

        Parameters
        ----------
        anchor : Head, optional
            An earlier `head` that was kept elsewhere. Only with one can a ledger that was rewritten as a
            whole, or set back to an earlier state, be told from the true one.

        Raises
        ------
        LedgerError
            That names the first fault.
        """
        with self._store.reading() as journal:
            try:
                return audit(journal, anchor)
            except LedgerError as error:
                raise LedgerError(
                    f"{self.path} cannot be trusted: {error} Restore it from a backup; until then, treat its "
                    "data sets as spent."
                ) from error

    def close(self) -> None:
        """Let go of the file. A later use opens it again."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger.open({str(self.path)!r})"

    def __reduce__(self) -> tuple[type[Self], tuple[str, float]]:
        return type(self), (str(self.path), self._store.timeout)

    def _account(self, dataset: str) -> Account:
        with self._store.reading() as journal:
            return journal.account(dataset)
