"""The ledger: what each data set may spend, what it has spent, and what came of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from matrixdp.errors import LedgerError, ParameterError
from matrixdp.ledger.accounting import Reserve, total_amount, ways_to_pay
from matrixdp.ledger.creation import create_file
from matrixdp.ledger.events import Event
from matrixdp.ledger.journal import amount_to_json, registration_from_json, registration_to_json
from matrixdp.ledger.reading import LedgerReader
from matrixdp.ledger.request import Asked, charged_before, require_mapping, require_name
from matrixdp.ledger.values import Receipt, Registration
from matrixdp.privacy import Neighbours, Privacy


class Ledger(LedgerReader):
    """A file that keeps what has been spent on each data set, and refuses what would overdraw it.

    A handle is a path: copies and pickles of it lead to the same file. Threads and processes may share it,
    also across forks.

    Parameters
    ----------
    path : str or path
        An existing ledger; `Ledger.create` makes one.
    timeout : float
        Seconds to wait while other processes write.

    Privacy
    -------
    Everything charged to a data set is together (epsilon, delta)-DP for the registered total and
    neighbours, also when each event is chosen after seeing earlier releases, as long as choices depend on
    the data through charged releases only.

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
    def open(cls, path: str | os.PathLike[str], *, timeout: float = 30.0) -> Self:
        """The ledger at `path`; a `LedgerError` if there is none."""
        return cls(path, timeout=timeout)

    @classmethod
    def create(cls, path: str | os.PathLike[str], *, timeout: float = 30.0) -> Self:
        """A new ledger at `path`; a `LedgerError` if anything is there already."""
        place = Path(path).absolute()
        create_file(place, timeout)
        return cls(place, timeout=timeout)

    def register(
        self, dataset: str, privacy: Privacy, *, neighbours: str, reserve: Reserve | None = None
    ) -> Registration:
        """Fix a data set's total and its neighbours, once and for all.

        Registering it again with the same values changes nothing; with others it is an error.

        Parameters
        ----------
        dataset : str
        privacy : Privacy
            What all releases from the data set together may reach.
        neighbours : str
            ``"replace"`` or ``"add-remove"``; events for the other kind are refused.
        reserve : Reserve, optional
            The part of `privacy` that is kept for events that are not Gaussian. None by default.
        """
        wanted = Registration(
            require_name(dataset, "dataset"), privacy, Neighbours.parse(neighbours), reserve or Reserve()
        )
        total = total_amount(wanted.privacy, wanted.reserve)
        with self._store.writing() as journal:
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
        """Pay for an event, before a bit of its noise is drawn.

        Parameters
        ----------
        dataset : str
        event : Gaussian, Pure, Approximate or Plan
        neighbours : str
            Those for which the event's guarantee holds; they must be the registered ones.
        description : mapping
            What is released and how, as JSON content: designs and guarantees, never data, nor anything
            computed from them.
        request : str, optional
            An id under which the release can be asked for again. It is charged once only.

        Returns
        -------
        Receipt
            On the disk by the time it is returned.

        Raises
        ------
        BudgetExceededError
            If the total would be overdrawn. Nothing is charged then.
        """
        asked, ways = Asked.of(event, require_mapping(description)), ways_to_pay(event)
        if request is not None:
            require_name(request, "request")
        with self._store.writing() as journal:
            account = journal.account(dataset)
            account.require_neighbours(neighbours)
            if request is not None and (earlier := journal.row("request", dataset, request)) is not None:
                asked.require_same(earlier)
                raise charged_before(earlier)
            cost, after = account.pay(event, ways, self.path)
            content = {
                **asked.content,
                "neighbours": str(Neighbours.parse(neighbours)),
                "cost": amount_to_json(cost),
                "spent": amount_to_json(after.spent),
            }
            head = journal.append("charge", content, dataset=dataset, request=request)
        return Receipt(dataset, event, request, head.entry, head.hash)

    def complete(self, receipt: Receipt, payload: str) -> None:
        """Store the finished release and mark its charge as released.

        Doing it again with the same text changes nothing; with another it is an error.

        Parameters
        ----------
        receipt : Receipt
        payload : str
            The release as JSON text. It is public, and it is what `stored` gives back.
        """
        try:
            payload.encode()
        except (AttributeError, UnicodeEncodeError):
            raise ParameterError(f"payload must be text, got a {type(payload).__name__} that is not.") from None
        with self._store.writing() as journal:
            charge = journal.row("entry", receipt.entry)
            if charge is None or charge.kind != "charge" or charge.hash != receipt.hash:
                raise LedgerError(f"{self.path} holds no charge for this receipt. Use the ledger that gave it.")
            release = journal.row("release", receipt.entry)
            if release is None:
                journal.append("release", {}, dataset=charge.dataset, charge=receipt.entry, payload=payload)
            elif release.payload != payload:
                raise LedgerError(
                    f"entry {receipt.entry} has another release already. A second one needs its own charge."
                )

    def stored(
        self,
        dataset: str,
        request: str,
        *,
        event: Event | None = None,
        description: Mapping[str, Any] | None = None,
    ) -> str | None:
        """The release that was stored for an earlier request, or None if there was none. Costs nothing.

        Parameters
        ----------
        dataset, request : str
        event, description : optional
            What the caller is about to charge; a `LedgerError` if the request was for something else.

        Raises
        ------
        LedgerError
            If the request was charged but its release never stored. Its noise may have been seen, so it is
            neither drawn again under that charge nor refunded.
        """
        asked = Asked.of(event, description)
        with self._store.reading() as journal:
            journal.account(dataset)
            charge = journal.row("request", dataset, request)
            if charge is None:
                return None
            asked.require_same(charge)
            release = journal.row("release", charge.entry)
            if release is None:
                raise charged_before(charge)
            release.content()
            return release.payload
