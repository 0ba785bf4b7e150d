"""The ledger: registers data sets, charges releases to them and stores the results."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Self

from matrixdp.errors import LedgerError, ParameterError, show
from matrixdp.ledger.accounting import Reserve, payment_options, total_amount
from matrixdp.ledger.author import Author
from matrixdp.ledger.events import Event
from matrixdp.ledger.journal import amount_to_json, registration_from_json, registration_to_json
from matrixdp.ledger.location import PostgresURL
from matrixdp.ledger.opening import create_store
from matrixdp.ledger.reading import LedgerReader
from matrixdp.ledger.request import ChargeRequest, already_charged_error, check_description, check_name
from matrixdp.ledger.values import Receipt, Registration
from matrixdp.privacy import Neighbours, Privacy


class Ledger(LedgerReader):
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

    Privacy
    -------
    All releases charged to a data set together are (epsilon, delta)-DP for the registered total and neighbours, also if
    each event is chosen after seeing earlier releases, as long as the choices depend on the data only through charged
    releases.

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
    def open(
        cls,
        path: str | os.PathLike[str] | PostgresURL,
        *,
        timeout: float = 30.0,
        actor: str | None = None,
        purpose: str | None = None,
    ) -> Self:
        """Open the ledger at `path`. Raises a `LedgerError` if there is none."""
        return cls(path, timeout=timeout, actor=actor, purpose=purpose)

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str] | PostgresURL,
        *,
        timeout: float = 30.0,
        actor: str | None = None,
        purpose: str | None = None,
    ) -> Self:
        """Create a new ledger at `path`. Raises a `LedgerError` if the path exists."""
        author = Author(purpose=purpose) if actor is None else Author(actor, purpose)
        create_store(path, timeout, author)
        return cls(path, timeout=timeout, actor=author.actor, purpose=purpose)

    def register(
        self, dataset: str, privacy: Privacy, *, neighbours: str, reserve: Reserve | None = None
    ) -> Registration:
        """Register a data set with its total and its neighbours, which cannot be changed later.

        Registering it again with the same values changes nothing; other values raise a `LedgerError`.

        Parameters
        ----------
        dataset : str
        privacy : Privacy
            The guarantee of all releases from the data set together.
        neighbours : str
            ``"replace"`` or ``"add-remove"``; events for the other kind are refused.
        reserve : Reserve, optional
            The part of `privacy` that is set aside for events that are not Gaussian. Empty by default.
        """
        wanted = Registration(
            check_name(dataset, "dataset"), privacy, Neighbours.parse(neighbours), reserve or Reserve()
        )
        total = total_amount(wanted.privacy, wanted.reserve)
        with self._store.writing(self._author) as journal:
            if (row := journal.row("registration", dataset)) is not None:
                found = registration_from_json(row.content())
                if found != wanted:
                    raise LedgerError(
                        f"{dataset!r} is registered with {found.privacy} for {str(found.neighbours)!r} "
                        f"neighbours and {found.reserve}, and that cannot be changed. Use those values."
                    )
            else:
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
        request: str | None = None,
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
        request : str, optional
            An id by which the stored release can be retrieved later. An id is charged only once.

        Returns
        -------
        Receipt
            The charge is durable when this returns.

        Raises
        ------
        BudgetExceededError
            If the charge would exceed the total. Nothing is charged then.
        """
        wanted, options = ChargeRequest.from_event(event, check_description(description)), payment_options(event)
        if request is not None:
            check_name(request, "request")
        with self._store.writing(self._author) as journal:
            balance = journal.balance(dataset)
            balance.require_neighbours(neighbours)
            if request is not None and (earlier := journal.row("request", dataset, request)) is not None:
                wanted.require_match(earlier)
                raise already_charged_error(earlier)
            cost, after = balance.pay(event, options, self._store.location)
            content = {
                **wanted.content,
                "neighbours": str(Neighbours.parse(neighbours)),
                "cost": amount_to_json(cost),
                "spent": amount_to_json(after.spent),
            }
            head = journal.append("charge", content, dataset=dataset, request=request)
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
        with self._store.writing(self._author) as journal:
            charge = journal.row("entry", receipt.entry)
            if charge is None or charge.kind != "charge" or charge.hash != receipt.hash:
                raise LedgerError(
                    f"{self._store.location} has no charge for this receipt. Use the ledger that issued it."
                )
            release = journal.row("release", receipt.entry)
            if release is None:
                journal.append(
                    "release",
                    {},
                    dataset=charge.dataset,
                    charge=receipt.entry,
                    allowance=charge.allowance,
                    payload=payload,
                )
            elif release.payload != payload:
                raise LedgerError(
                    f"entry {receipt.entry} already has another release. A second one needs its own charge."
                )

    def stored(
        self,
        dataset: str,
        request: str,
        *,
        event: Event | None = None,
        description: Mapping[str, Any] | None = None,
    ) -> str | None:
        """The release that was stored for an earlier request, or None if there was no such request. Costs nothing.

        Parameters
        ----------
        dataset, request : str
        event, description : optional
            What the caller is about to charge. A `LedgerError` is raised if the request was for something else.

        Raises
        ------
        LedgerError
            If the request was charged but its release was never stored. Its noise may have been seen, so the charge is
            neither reused nor refunded.
        """
        wanted = ChargeRequest.from_event(event, description)
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
