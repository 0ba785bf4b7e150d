"""The ledger: registers data sets, charges releases to them and stores the results."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Self, TypedDict, Unpack

from matrixdp.checks import check_number
from matrixdp.errors import BudgetExceededError, LedgerError, ParameterError, RequestPendingError, show
from matrixdp.gdp import gdp_mu
from matrixdp.ledger.accounting import NOTHING, Amount, Reserve, payment_options, total_amount
from matrixdp.ledger.allotting import LedgerAllotter
from matrixdp.ledger.author import Author, make_author
from matrixdp.ledger.balance import Balance
from matrixdp.ledger.chain import Head
from matrixdp.ledger.copying import copy_ledger
from matrixdp.ledger.entry_content import amount_to_json, registration_from_json, registration_to_json, sums_to_json
from matrixdp.ledger.entry_table import LAST_ENTRY
from matrixdp.ledger.events import Event, Gaussian
from matrixdp.ledger.location import Address
from matrixdp.ledger.opening import create_store, move_store, restore_store
from matrixdp.ledger.request import ChargeRequest, already_charged_error, check_mapping, check_name
from matrixdp.ledger.values import Receipt, Registration
from matrixdp.privacy import RECORD, Neighbours, Privacy, Unit


class LedgerOptions(TypedDict, total=False):
    """Options of `Ledger`."""

    timeout: float
    actor: str | None
    purpose: str | None
    anchor: str | os.PathLike[str] | Callable[[Head], object] | None
    wait: float


def _timeout_and_author(
    *,
    timeout: float = 30.0,
    actor: str | None = None,
    purpose: str | None = None,
    anchor: object = None,  # noqa: ARG001
    wait: float = 30.0,  # noqa: ARG001
) -> tuple[float, Author]:
    """The options that are needed before a ledger can be opened; others are a `TypeError` now, and not later."""
    return timeout, make_author(actor, purpose)


class Ledger(LedgerAllotter):
    """A file that records the privacy budget spent on each data set, and refuses charges that would exceed its total.

    Copies and pickles of a `Ledger` use the same file. Threads and processes may share it, also across forks.

    Parameters
    ----------
    path : str or path
        Path of an existing ledger, or the URL of one in PostgreSQL: ``postgresql://USER@HOST/DATABASE``.
        `Ledger.create` creates one.
    timeout : float
        Seconds to wait while other processes write.
    actor : str, optional
        Who writes entries, by default the user and the host of this process; recorded in every entry.
    purpose : str, optional
        What the releases are for; recorded in every entry.
    anchor : path or function, optional
        A file to which the number and hash of the last entry are appended after each charge, or a function that is
        called with this `Head`. Before the next charge, the last entry in the file must be in the ledger.
    wait : float
        Seconds that a release with a request id waits for another process that releases the same request.

    Privacy
    -------
    All releases charged to a data set together are (epsilon, delta)-DP for the registered total, neighbours and unit
    (one record, one person with all their rows, one edge or one node), also if each event is chosen after seeing
    earlier releases, as long as the choices depend on the data only through charged releases.

    Examples
    --------
    >>> import tempfile
    >>> from matrixdp.ledger import Gaussian, Ledger
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.create(folder.name + "/clinic.db")
    >>> _ = ledger.register("clinic", Privacy(epsilon=1, delta=1e-6), neighbours="replace")
    >>> receipt = ledger.charge("clinic", Gaussian(0.1), neighbours="replace", description={"query": "mean"})
    >>> ledger.complete(receipt, "{}")
    >>> round(ledger.remaining("clinic").mu, 4), round(ledger.remaining("clinic").epsilon, 4)
    (0.2145, 0.8995)
    >>> ledger.close()
    >>> folder.cleanup()
    """

    @classmethod
    def open(cls, path: Address, **options: Unpack[LedgerOptions]) -> Self:
        """Open the ledger at `path`, with the options of `Ledger`. Raises a `LedgerError` if there is none."""
        return cls(path, **options)

    @classmethod
    def create(cls, path: Address, **options: Unpack[LedgerOptions]) -> Self:
        """Create a new ledger at `path`, with the options of `Ledger`. Raises a `LedgerError` if the path exists."""
        create_store(path, *_timeout_and_author(**options))
        return cls(path, **options)

    @classmethod
    def restore(cls, file: Address, path: Address, **options: Unpack[LedgerOptions]) -> Self:
        """Make a new ledger at `path` from a backup, with the options of `Ledger`.

        The backup is verified first. The new ledger knows that it was restored, and refuses charges to each data set
        until `settle` says what was spent since the backup was made.
        """
        restore_store(file, path, *_timeout_and_author(**options))
        return cls(path, **options)

    @classmethod
    def moved(cls, path: Address, **options: Unpack[LedgerOptions]) -> Self:
        """Confirm that the ledger's file was moved to `path`, and open it, with the options of `Ledger`.

        A ledger is written at one place only: copies of a file, and other names of it, would spend its total twice. So
        a file that was moved is not charged until this is called. The whole ledger is verified first.
        """
        move_store(path, *_timeout_and_author(**options))
        return cls(path, **options)

    @staticmethod
    def copy(source: Address, target: Address, **options: Unpack[LedgerOptions]) -> Head:
        """Copy a ledger to a new place, in a file or in PostgreSQL, with all its entries.

        From then on, the copy is charged and the original is not, but can still be read. Both are verified.

        Returns
        -------
        Head
            The last entry of the copy.
        """
        timeout, author = _timeout_and_author(**options)
        return copy_ledger(source, target, timeout, author)

    def register(
        self,
        dataset: str,
        privacy: Privacy,
        *,
        neighbours: str,
        unit: str | Unit = "record",
        reserve: Reserve | None = None,
    ) -> Registration:
        """Register a data set with its total, its neighbours and its unit, which cannot be changed later.

        Registering it again with the same values changes nothing; other values raise a `LedgerError`.

        Parameters
        ----------
        dataset : str
        privacy : Privacy
            The guarantee of all releases from the data set together.
        neighbours : str
            ``"replace"`` or ``"add-remove"``; events for the other kind are refused.
        unit : str or Unit
            What releases protect: ``"record"``, ``"person:COLUMN"`` with the column that says whose each row is,
            ``"edge"`` or ``"node"``. Releases that protect something else are refused.
        reserve : Reserve, optional
            The part of `privacy` that is set aside for events that are not Gaussian. Empty by default.
        """
        wanted = Registration(
            dataset=check_name(dataset, "dataset"),
            privacy=privacy,
            neighbours=Neighbours.parse(neighbours),
            reserve=reserve or Reserve(),
            unit=Unit.parse(unit),
        )
        total = total_amount(wanted.privacy, wanted.reserve)
        with self._writing() as journal:
            if (row := journal.row("registration", dataset)) is not None:
                found = registration_from_json(row.content())
                if found != wanted:
                    raise LedgerError(
                        f"{dataset!r} is registered with {found.privacy} for {str(found.neighbours)!r} "
                        f"neighbours, the unit {str(found.unit)!r} and {found.reserve}, and that cannot be changed. "
                        "Use those values."
                    )
            else:
                if wanted.unit != RECORD:
                    journal.transaction.require_units()
                content = {**registration_to_json(wanted), "total": amount_to_json(total)}
                journal.append("register", content, dataset=dataset)
        return wanted

    def charge(
        self,
        dataset: str,
        event: Event,
        *,
        neighbours: str,
        description: Mapping[str, Any],
        unit: str | Unit = "record",
        request: str | None = None,
        options: Mapping[str, Any] | None = None,
        allowance: str | None = None,
    ) -> Receipt:
        """Charge an event, before any of its noise is drawn.

        Parameters
        ----------
        dataset : str
        event : Gaussian, Pure, Approximate or Plan
        neighbours : str
            The neighbours for which the event's guarantee holds. They must be the registered ones.
        description : mapping
            What is released and how, as JSON content: designs and guarantees, never data or anything computed from
            data.
        unit : str or Unit
            What the event's guarantee protects, as for `register`. It must be the registered one.
        request : str, optional
            An id by which the stored release can be retrieved later. An id is charged only once; the second time is a
            `RequestPendingError`.
        options : mapping, optional
            All public options of the request, as JSON content, by name. They are stored with the charge, and a repeat
            of the request with others is refused. Values of more than 10,000 characters are stored as hashes.
        allowance : str, optional
            The allowance that pays. Without one, what is neither spent nor allotted does.

        Returns
        -------
        Receipt
            The charge is durable when this returns.

        Raises
        ------
        BudgetExceededError
            If the charge would exceed the total, or its allowance. Nothing is charged then.
        LedgerError
            If the data set is registered for another unit, or the request id was used for something else. Nothing is
            charged then.
        """
        wanted = ChargeRequest.from_event(event, check_mapping(description, "description"), options)
        payments = payment_options(event)
        if request is not None:
            check_name(request, "request")
        with self._writing() as journal:
            balance = journal.balance(dataset)
            balance.require_neighbours(neighbours)
            balance.require_unit(unit)
            if request is not None and (earlier := journal.row("request", dataset, request)) is not None:
                wanted.require_match(earlier)
                raise already_charged_error(earlier)
            journal.require_settled(dataset)
            part = None if allowance is None else journal.allowance(dataset, allowance)
            cost, after = balance.pay(event, payments, self._store.location, part)
            content = {
                **wanted.content,
                "neighbours": str(Neighbours.parse(neighbours)),
                "unit": str(Unit.parse(unit)),
                "cost": amount_to_json(cost),
                **sums_to_json(after),
                "charges": journal.counters(dataset).charges + 1,
            }
            if part is not None:
                content["allowance_spent"] = amount_to_json(part.pay(cost).spent)
            head = journal.append("charge", content, dataset=dataset, request=request, allowance=allowance)
        return Receipt(dataset, event, request, head.entry, head.hash)

    def complete(self, receipt: Receipt, payload: str) -> None:
        """Store the finished release and mark its charge as released.

        Storing the same text again changes nothing; another text raises a `LedgerError`.

        Parameters
        ----------
        receipt : Receipt
        payload : str
            The release as JSON text, which is public. `stored` returns it.
        """
        try:
            valid = b"\0" not in payload.encode()
        except (AttributeError, UnicodeEncodeError):
            valid = False
        if not valid:
            raise ParameterError(
                f"payload must be text that UTF-8 can encode, without NUL, got {show(payload)} instead."
            )
        with self._writing(anchored=False) as journal:
            charge = journal.row("entry", receipt.entry)
            if charge is None or charge.kind != "charge" or charge.hash != receipt.hash:
                raise LedgerError(
                    f"{self._store.location} has no charge for this receipt. Use the ledger that issued it."
                )
            release = journal.row("release", receipt.entry)
            if release is None:
                journal.append(
                    "release",
                    {"releases": journal.counters(receipt.dataset).releases + 1},
                    dataset=charge.dataset,
                    charge=receipt.entry,
                    allowance=charge.allowance,
                    payload=payload,
                )
            elif release.payload != payload:
                raise LedgerError(
                    f"entry {receipt.entry} already has another release. A second one needs its own charge."
                )

    def settle(self, dataset: str, spent: float | Event | str) -> None:
        """Say what was spent on a data set since the backup was made from which this ledger was restored.

        Parameters
        ----------
        dataset : str
        spent : float, event or "all"
            An epsilon, at the delta of the data set; an event; or ``"all"`` to treat all that is left as spent. If it
            is not known for sure, use ``"all"``. If anything was spent, any allowance may have paid for it: existing
            ones can be returned, and accept no further charges.
        """
        with self._writing() as journal:
            balance = journal.balance(dataset)
            restore = journal.row("restore until", LAST_ENTRY)
            if restore is None:
                raise LedgerError(f"{self._store.location} was not restored from a backup; there is nothing to settle.")
            if isinstance(spent, str):
                if spent != "all":
                    raise ParameterError(f"spent must be an epsilon, an event or 'all', got {show(spent)} instead.")
                cost = balance.total - balance.spent
            else:
                cost = self._settled_cost(replace(balance, allotted=NOTHING), spent)  # allowances may have spent it
            sums = {"cost": amount_to_json(cost), **sums_to_json(balance.spend(cost, None))}
            journal.append("settle", {"restore": restore.entry, **sums}, dataset=dataset)

    def _settled_cost(self, balance: Balance, spent: float | Event) -> Amount:
        if not isinstance(spent, Event):
            epsilon = check_number(spent, "spent", at_least=0)
            if epsilon == 0:
                return Amount()
            spent = Gaussian(gdp_mu(epsilon=epsilon, delta=balance.registration.privacy.delta))
        try:
            cost, _ = balance.pay(spent, payment_options(spent), self._store.location)
        except BudgetExceededError as error:
            raise BudgetExceededError(f"{error}\nTo settle it as spent entirely, use --all or spent='all'.") from None
        return cost

    def stored(
        self,
        dataset: str,
        request: str,
        *,
        event: Event | None = None,
        description: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        wait: float = 0.0,
    ) -> str | None:
        """The release that was stored for an earlier request, or None if there was no such request. Costs nothing.

        Parameters
        ----------
        dataset, request : str
        event, description, options : optional
            What the caller is about to charge. If the request was for something else, a `LedgerError` names the options
            that differ.
        wait : float
            Seconds to wait for the release, if the request was charged and its release is not stored yet.

        Raises
        ------
        RequestPendingError
            If the request was charged but its release is not stored, in time. Its noise may have been seen, so the
            charge is neither reused nor refunded.
        """
        wanted = ChargeRequest.from_event(event, description, options)
        deadline, pause = time.monotonic() + check_number(wait, "wait", at_least=0), 0.01
        while True:
            try:
                return self._find_stored(dataset, request, wanted)
            except RequestPendingError:
                if time.monotonic() >= deadline:
                    raise
            time.sleep(min(pause, max(0.0, deadline - time.monotonic())))
            pause = min(2 * pause, 0.5)

    def _find_stored(self, dataset: str, request: str, wanted: ChargeRequest) -> str | None:
        with self._store.reading() as journal:
            journal.balance(dataset)
            charge = journal.row("request", dataset, request)
            if charge is None:
                return None
            wanted.require_match(charge)
            release = journal.row("release", charge.entry)
            if release is None:
                raise already_charged_error(charge)
            release.content()
            return release.payload
