"""Reading a ledger: remaining budgets, past charges, and verification."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Protocol, Self

from matrixdp.checks import check_number
from matrixdp.errors import ParameterError
from matrixdp.ledger.accounting import payment_options
from matrixdp.ledger.allowance import AllowanceBalance
from matrixdp.ledger.anchors import make_anchor
from matrixdp.ledger.audit import Audit
from matrixdp.ledger.author import Author, make_author
from matrixdp.ledger.balance import Balance
from matrixdp.ledger.chain import Head
from matrixdp.ledger.entry_content import registration_from_json
from matrixdp.ledger.events import Event
from matrixdp.ledger.journal import Journal
from matrixdp.ledger.location import Address, Location
from matrixdp.ledger.notebook import render_ledger
from matrixdp.ledger.opening import backup_store, open_store
from matrixdp.ledger.schedule import Schedule, divide_amount
from matrixdp.ledger.values import Allowance, Charge, Counts, Registration, Remaining, Summary

_STEP = 20_000  # entries that are read in one transaction


class Chargeable(Protocol):
    """Anything with the event that its release would be charged as, such as a design."""

    @property
    def event(self) -> Event:
        """The event that a release would be charged as."""


class LedgerReader:
    """The methods of `Ledger` that do not change the file."""

    def __init__(
        self,
        path: Address,
        timeout: float = 30.0,
        *,
        actor: str | None = None,
        purpose: str | None = None,
        anchor: str | os.PathLike[str] | Callable[[Head], object] | None = None,
        wait: float = 30.0,
    ) -> None:
        self._author = make_author(actor, purpose)
        self._anchor = make_anchor(anchor)
        self._anchored = anchor
        self.wait = check_number(wait, "wait", at_least=0)
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

    def remaining(self, dataset: str, *, allowance: str | None = None) -> Remaining:
        """The budget that an allowance has left or, without one, what is neither spent nor allotted; rounded down."""
        balance, part = self._balance(dataset, allowance)
        return balance.remaining(part)

    def whatif(self, dataset: str, event: Event | Chargeable, *, allowance: str | None = None) -> Remaining:
        """The budget that would be left after an event or the release of a design. Nothing is charged.

        Parameters
        ----------
        dataset : str
        event : Event, or anything with an attribute event, such as a Design
        allowance : str, optional
            The allowance that would pay; the result is what would be left of it.

        Raises
        ------
        BudgetExceededError
            If it does not fit.
        """
        balance, part = self._balance(dataset, allowance)
        neighbours = getattr(event, "neighbours", None)
        if neighbours is not None:
            balance.require_neighbours(neighbours)
        unit = getattr(event, "unit", None)
        if unit is not None:
            balance.require_unit(unit)
        with self._store.reading() as journal:
            journal.require_settled(dataset)
        wanted = event if isinstance(event, Event) else event.event
        cost, after = balance.pay(wanted, payment_options(wanted), self._store.location, part)
        return after.remaining(None if part is None else part.pay(cost))

    def schedule(self, dataset: str, releases: int, *, allowance: str | None = None) -> Schedule:
        """The budget that each of `releases` equal releases may have, if they divide what is left. Nothing is charged.

        Parameters
        ----------
        dataset : str
        releases : int
            Their number; `count_releases` gives it for a period and a time.
        allowance : str, optional
            The allowance that would pay.
        """
        balance, part = self._balance(dataset, allowance)
        return divide_amount(balance.available(part), balance.registration.privacy, releases)

    def datasets(self) -> list[Registration]:
        """The registered data sets, in order of registration."""
        with self._store.reading() as journal:
            return _registrations(journal)

    def allowances(self, dataset: str) -> list[Allowance]:
        """The data set's allowances, in the order of their names."""
        with self._store.reading() as journal:
            balance = journal.balance(dataset)
            return [balance.describe(found) for found in journal.allowances(dataset)]

    def summaries(self) -> list[Summary]:
        """The state of every data set, in order of registration. Takes the same time for any number of charges."""
        with self._store.reading() as journal:
            names = [registration.dataset for registration in _registrations(journal)]
            return [
                journal.balance(name).summarise(
                    journal.allowances(name), journal.counts(name), _restored_from(journal, name)
                )
                for name in names
            ]

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
        found: list[Charge] = []
        while True:  # in steps, so that writers need not wait until all are read
            with self._store.reading() as journal:
                step = journal.charges(dataset, found[-1].entry if found else 0, _STEP)
                found += step
                if len(step) < _STEP:
                    journal.require_all(found, dataset)
                    return found

    def incomplete(self, dataset: str | None = None) -> list[Charge]:
        """Charges without a stored release: in progress, or interrupted. They remain spent."""
        with self._store.reading() as journal:
            if dataset is not None:
                journal.balance(dataset)
            found = journal.unfinished_charges(dataset)
            names = {each for each, _ in journal.all_counters()} if dataset is None else {dataset}
            if len(found) != sum(journal.counts(name).unfinished for name in names):
                raise journal.damage("its unfinished charges are not those that were counted")
            return found

    def restored(self, dataset: str) -> int | None:
        """The last entry of the backup from which the ledger was restored, if `dataset` was not settled since."""
        with self._store.reading() as journal:
            journal.balance(dataset)
            return _restored_from(journal, dataset)

    def verify(self, anchor: Head | None = None, *, resume: bool = False) -> Head:
        """Check every entry, every sum and the hash chain, and return the head.

        Parameters
        ----------
        anchor : Head, optional
            An earlier `head` that was kept outside of the ledger. Without one, a ledger that was rewritten entirely
            or replaced by an earlier copy cannot be distinguished from the original.
        resume : bool
            Check only the entries after the anchor, which an earlier `verify` returned. The sums begin with those that
            the entries up to the anchor contain. This proves that the anchored entry and all later ones are intact and
            that the sums are right since. It does not prove that earlier entries were not altered or removed since
            they were verified; only `verify` without `resume` reads those.

        Raises
        ------
        LedgerError
            Names the first fault.
        """
        if resume and anchor is None:
            raise ParameterError("anchor must be given with resume: the entry after which to begin.")
        audit = Audit(anchor, resume=resume)
        while True:
            with self._store.reading() as journal:
                if audit.advance(journal):
                    return audit.head

    def backup(self, file: Address) -> Head:
        """Copy the ledger, which may be in use, to a new file, and return the head of the copy.

        A backup is not charged: `Ledger.restore` makes a ledger of it.
        """
        return backup_store(self._store, file)

    def close(self) -> None:
        """Close the file. It is opened again when next used."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _repr_html_(self) -> str:
        return render_ledger(self)

    def __repr__(self) -> str:
        return f"Ledger.open({self._store.location!r})"

    def __reduce__(self) -> tuple[Callable[..., Self], tuple[Location, float]]:
        author = self._author
        opened = partial(type(self), actor=author.actor, purpose=author.purpose, anchor=self._anchored, wait=self.wait)
        return opened, (self._store.address, self._store.timeout)

    def _balance(self, dataset: str, allowance: str | None) -> tuple[Balance, AllowanceBalance | None]:
        with self._store.reading() as journal:
            return journal.balance(dataset), None if allowance is None else journal.allowance(dataset, allowance)


def _registrations(journal: Journal) -> list[Registration]:
    found = [registration_from_json(row.content()) for row in journal.rows("registrations")]
    if {each.dataset for each in found} != {dataset for dataset, _ in journal.all_counters()}:
        raise journal.damage("its data sets are not those that it counts")
    return found


def _restored_from(journal: Journal, dataset: str) -> int | None:
    restore = journal.unsettled(dataset)
    return None if restore is None else int(restore.content()["backup"]["entry"])
