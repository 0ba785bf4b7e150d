"""The ledger: registers data sets, charges releases to them, stores the results, and says what is left."""

import contextlib
import inspect
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Protocol, Self, TypedDict, Unpack

from matrixdp.checks import check_number
from matrixdp.errors import BudgetExceededError, LedgerError, ParameterError, RefusedError, show
from matrixdp.gdp import gdp_mu
from matrixdp.ledger.accounting import NOTHING, payment_options, total_amount
from matrixdp.ledger.audit import Audit
from matrixdp.ledger.balance import allowance_size
from matrixdp.ledger.entries import LAST_ENTRY, Author, Row, canonical_json, check_mapping, check_name, request_content
from matrixdp.ledger.journal import Journal
from matrixdp.ledger.location import Address, Location, PostgresURL, parse_location
from matrixdp.ledger.metrics import render_ledger
from matrixdp.ledger.place import check_anchor, record_anchor
from matrixdp.ledger.postgres import PostgresStore
from matrixdp.ledger.sqlite import SQLiteStore
from matrixdp.ledger.store import Store, copy_ledger
from matrixdp.ledger.values import (
    Allowance,
    Charge,
    Event,
    Gaussian,
    Head,
    Receipt,
    Registration,
    Remaining,
    Reserve,
    Step,
    Summary,
)
from matrixdp.privacy import Neighbours, Privacy, Unit

_STEP = 20_000  # entries that are read in one transaction


class LedgerOptions(TypedDict, total=False):
    """Options of `Ledger`."""

    timeout: float
    actor: str | None
    purpose: str | None
    groups: tuple[str, ...]
    anchor: str | os.PathLike[str] | None
    wait: float


class Chargeable(Protocol):
    """Anything with the event that its release would be charged as, such as a design."""

    @property
    def event(self) -> Event:
        """The event that a release would be charged as."""


class Ledger:
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
    groups : tuple of str
        The groups of the actor. An allowance for one of them can be charged.
    anchor : path, optional
        A file to which the number and hash of the last entry are appended after each charge. Before the next charge,
        the last entry in the file must be in the ledger.
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

    def __init__(
        self,
        path: Address,
        timeout: float = 30.0,
        *,
        actor: str | None = None,
        purpose: str | None = None,
        groups: tuple[str, ...] = (),
        anchor: str | os.PathLike[str] | None = None,
        wait: float = 30.0,
    ) -> None:
        self.author = Author(actor, purpose, tuple(groups))  # of the entries that are written with this object
        if not isinstance(anchor, str | os.PathLike | None):
            raise ParameterError(f"anchor must be a path, got {show(anchor)} instead.")
        self._anchor = None if anchor is None else Path(anchor).absolute()
        self.wait = check_number(wait, "wait", at_least=0)
        self._store = _open_store(path, timeout)
        with self._store.reading():
            pass

    @classmethod
    def open(cls, path: Address, **options: Unpack[LedgerOptions]) -> Self:
        """Open the ledger at `path`, with the options of `Ledger`. Raises a `LedgerError` if there is none."""
        return cls(path, **options)

    @classmethod
    def create(cls, path: Address, **options: Unpack[LedgerOptions]) -> Self:
        """Create a new ledger at `path`, with the options of `Ledger`. Raises a `LedgerError` if the path exists."""
        store, author = _prepare(path, **options)
        store.create(author)
        return cls(path, **options)

    @classmethod
    def restore(cls, file: Address, path: Address, **options: Unpack[LedgerOptions]) -> Self:
        """Make a new ledger at `path` from a backup, which is verified first, with the options of `Ledger`.

        The new ledger refuses charges to each data set until `settle` says what was spent since the backup was made.
        """
        store, author = _prepare(path, **options)
        with contextlib.closing(store):
            store.restore(_prepare(file, **options)[0], author)
        return cls(path, **options)

    @classmethod
    def moved(cls, path: Address, **options: Unpack[LedgerOptions]) -> Self:
        """Confirm that the ledger's file was moved to `path`, and open it, with the options of `Ledger`.

        A ledger is written at one place only: copies of a file, and other names of it, would spend its total twice. So
        a file that was moved is not charged until this is called. The whole ledger is verified first.
        """
        store, author = _prepare(path, **options)
        store.confirm_move(author)
        return cls(path, **options)

    @staticmethod
    def copy(source: Address, target: Address, **options: Unpack[LedgerOptions]) -> Head:
        """Copy a ledger with all its entries to a new file or PostgreSQL database; the last entry of the copy.

        From then on, the copy is charged and the original is not, but can still be read. Both are verified.
        """
        store, author = _prepare(source, **options)
        return copy_ledger(store, _prepare(target, **options)[0], author)

    @property
    def path(self) -> Location:
        """Path of the file, or URL of the database; as text, the URL has no password."""
        return self._store.address

    @property
    def head(self) -> Head:
        """Number and hash of the last entry. A copy kept outside of the ledger can serve as an anchor: see `verify`."""
        with self._store.reading() as journal:
            return journal.head()

    @property
    def blind_spots(self) -> list[str]:
        """What could be done to the ledger's file and would not be noticed here; nothing, if there is an anchor."""
        return self._store.find_blind_spots() if self._anchor is None else []

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
        name, kind = check_name(dataset, "dataset"), Neighbours.parse(neighbours)
        wanted = Registration(name, privacy, kind, reserve or Reserve(), Unit.parse(unit))
        total = total_amount(wanted.privacy, wanted.reserve)
        with self._writing() as journal:
            if (row := journal.row("registration", dataset)) is not None:
                found, _ = row.registration()
                if found != wanted:
                    raise RefusedError(
                        f"{dataset!r} is registered with {found.privacy} for {str(found.neighbours)!r} "
                        f"neighbours, the unit {str(found.unit)!r} and {found.reserve}, and that cannot be changed. "
                        "Use those values."
                    )
            else:
                facts = {**asdict(wanted), "unit": str(wanted.unit)}
                journal.append("register", {**facts, "total": total.to_json()}, dataset=dataset)
        return wanted

    def allow(
        self,
        dataset: str,
        name: str,
        *,
        epsilon: float | None = None,
        share: float | Fraction | str | None = None,
        reserve: Reserve | None = None,
        payers: Iterable[str] = (),
    ) -> Allowance:
        """Set a part of a data set's total apart, which only charges that name it can spend.

        Setting it apart again with the same size changes nothing; another size raises a `LedgerError`. More than what
        is neither spent nor allotted raises a `BudgetExceededError`.

        Parameters
        ----------
        dataset : str
        name : str
            Of the allowance: a person, a team, a project. A name that was returned cannot be used again.
        epsilon : float, optional
            The size, either as an epsilon at the data set's delta or as a `share`.
        share : float, Fraction or str, optional
            The size as a share of the total, such as 0.25 or ``"1/3"``; it includes that share of the reserve. A float
            counts as the decimal number that it prints as, so that ten shares of 0.1 are the whole.
        reserve : Reserve, optional
            The part of `epsilon` and delta that is for events that are not Gaussian. Empty by default.
        payers : iterable of str
            The people, as their entries name them, and groups who may charge it; by default everybody. In PostgreSQL,
            the server enforces it: payers are roles there, and members of a role belong to it.

        Privacy
        -------
        What charges to the allowance add to all other releases is (epsilon, delta)-DP, at the data set's delta.
        ``docs/composition.md`` has the proof.
        """
        check_name(name, "name")
        people = tuple(sorted({check_name(payer, "payers") for payer in payers}))
        with self._writing() as journal:
            balance = journal.balance(dataset)
            size, guarantee = allowance_size(
                balance.total, balance.registration.privacy, epsilon=epsilon, share=share, reserve=reserve
            )
            if journal.row("allowance", dataset, name) is None:
                journal.require_settled(dataset)
                balance.require_room(name, size, self._store.location)
                content = {"size": size.to_json(), "epsilon": guarantee, **({"payers": people} if people else {})}
                return journal.change("allowance", content, balance, allowance=name)[1].describe()
            balance = journal.balance(dataset, name)
            found = balance.describe()
            if found.returned:
                raise RefusedError(f"the allowance {name!r} of {dataset!r} was returned. Choose another name.")
            if balance.allowance is None or balance.allowance.size != size:
                raise RefusedError(
                    f"{dataset!r} has an allowance {name!r} of another size, which cannot be changed. "
                    "Choose another name, or return it first."
                )
            if found.payers != people:
                raise RefusedError(
                    f"the allowance {name!r} of {dataset!r} is for {', '.join(found.payers) or 'everybody'}, which "
                    "cannot be changed. Choose another name, or return it first."
                )
            return found

    def return_allowance(self, dataset: str, name: str) -> Allowance:
        """Return what is left of an allowance to its data set. Nothing can be charged to it afterwards.

        What was charged to it stays spent. Returning it again changes nothing.
        """
        with self._writing() as journal:
            balance = journal.balance(dataset, name)
            if (part := balance.allowance) is not None and not part.returned:
                _, balance = journal.change("return", {"returned": part.unspent.to_json()}, balance)
            return balance.describe()

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
        payload: str | None = None,
    ) -> Receipt:
        """Charge an event, before any of its noise is drawn; the charge is durable when this returns.

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
        payload : str, optional
            The text of `complete`, for what is known before noise is drawn: stored together with the charge.

        Raises
        ------
        BudgetExceededError
            If the charge would exceed the total, or its allowance. Nothing is charged then.
        LedgerError
            If the data set is registered for another unit, the allowance is for others, or the request id was used for
            something else.
        """
        wanted = request_content(event, check_mapping(description, "description"), options)
        payments = payment_options(event)  # before other writers have to wait
        if request is not None:
            check_name(request, "request")
        with self._writing() as journal:
            journal.balance(dataset).require(neighbours, unit)
            if request is not None and (earlier := journal.row("request", dataset, request)) is not None:
                earlier.require_match(wanted)
                raise earlier.already_charged_error()
            journal.require_settled(dataset)
            balance = journal.balance(dataset, allowance)
            payer = journal.find_payer(balance)
            cost, _ = balance.pay(payments, self._store.location)
            released = {**payer, "neighbours": str(Neighbours.parse(neighbours)), "unit": str(Unit.parse(unit))}
            content = {**wanted, **released, "cost": cost.to_json()}
            head, _ = journal.change("charge", content, balance, request=request)
            if payload is not None:
                journal.append("release", {}, dataset=dataset, charge=head.entry, allowance=allowance, payload=payload)
        return Receipt(dataset, event, request, head.entry, head.hash)

    def complete(self, receipt: Receipt, payload: str) -> None:
        """Store the finished release, a public JSON text that `stored` returns, and mark its charge as released.

        Storing the same text again changes nothing; another text raises a `LedgerError`.
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
            charge = journal.find(Head(receipt.entry, receipt.hash))
            if charge is None or charge.kind != "charge":
                raise LedgerError(
                    f"{self._store.location} has no charge for this receipt. Use the ledger that issued it."
                )
            release = journal.row("release", receipt.entry)
            if release is None:
                columns: dict[str, Any] = {"charge": receipt.entry, "allowance": charge.allowance, "payload": payload}
                journal.append("release", {}, dataset=charge.dataset, **columns)
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
        wanted = request_content(event, description, options)
        deadline, pause = time.monotonic() + check_number(wait, "wait", at_least=0), 0.01
        while True:
            with self._store.reading() as journal:
                journal.balance(dataset)
                charge = journal.row("request", dataset, request)
                if charge is None:
                    return None
                charge.require_match(wanted)
                release = journal.row("release", charge.entry)
                if release is not None:
                    release.content()  # compares the hash of the payload
                    return release.payload
            if time.monotonic() >= deadline:
                raise charge.already_charged_error()
            time.sleep(min(pause, max(0.0, deadline - time.monotonic())))
            pause = min(2 * pause, 0.5)

    def add_step(self, dataset: str, request: str, *, number: int, step: str, digest: str) -> None:
        """Record a step of a stream that `request` paid for, which costs nothing; durable when this returns.

        `number` steps were recorded before, and `digest` is the SHA-256 hash of what this one publishes. Recording it
        again changes nothing; a `LedgerError` is raised if it has another hash, or is not the next one.
        """
        with self._writing(anchored=False) as journal:
            charge, found = _find_steps(journal, dataset, request)
            if number < len(found) and (found[number].name, found[number].digest) == (step, digest):
                return
            if number != len(found):
                raise LedgerError(
                    f"{self._store.location} has {len(found)} steps of {request!r}, and step {step!r} would be number "
                    f"{number + 1}. The stream was continued elsewhere, or its state is an older copy. Nothing was "
                    "published. Continue with restart."
                )
            content = {"stream": request, "step": check_name(step, "step"), "number": number, "digest": digest}
            columns: dict[str, Any] = {"dataset": dataset, "charge": charge.entry, "allowance": charge.allowance}
            journal.append("step", content, **columns)

    def steps(self, dataset: str, request: str) -> list[Step]:
        """The steps of a stream that a request paid for, in order."""
        with self._store.reading() as journal:
            return _find_steps(journal, dataset, request)[1]

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
            restore = journal.row("restore", LAST_ENTRY)
            if restore is None:
                raise LedgerError(f"{self._store.location} was not restored from a backup; there is nothing to settle.")
            if isinstance(spent, str) and spent != "all":
                raise ParameterError(f"spent must be an epsilon, an event or 'all', got {show(spent)} instead.")
            if spent == "all":
                cost = balance.total - balance.spent
            elif not isinstance(spent, Event) and check_number(spent, "spent", at_least=0) == 0:
                cost = NOTHING
            else:
                delta = balance.registration.privacy.delta
                event = spent if isinstance(spent, Event) else Gaussian(gdp_mu(epsilon=float(spent), delta=delta))
                unallotted = replace(balance, allotted=NOTHING)  # allowances may have spent it
                try:
                    cost, _ = unallotted.pay(payment_options(event), self._store.location)
                except BudgetExceededError as error:
                    remedy = "To settle it as spent entirely, use --all or spent='all'."
                    raise BudgetExceededError(f"{error}\n{remedy}") from None
            journal.change("settle", {"restore": restore.entry, "cost": cost.to_json()}, balance)

    def require(self, dataset: str, *, neighbours: str, unit: str | Unit) -> None:
        """Raise the error of `charge` if a data set is registered for other neighbours or another unit."""
        with self._store.reading() as journal:
            journal.balance(dataset).require(neighbours, unit)

    def remaining(self, dataset: str, *, allowance: str | None = None) -> Remaining:
        """The budget that an allowance has left or, without one, what is neither spent nor allotted; rounded down."""
        with self._store.reading() as journal:
            return journal.balance(dataset, allowance).remaining()

    def whatif(self, dataset: str, event: Event | Chargeable, *, allowance: str | None = None) -> Remaining:
        """The budget that would be left after an event or the release of a design. Nothing is charged.

        Parameters
        ----------
        dataset : str
        event : Event, or anything with an attribute event, such as a Design
            If it does not fit, a `BudgetExceededError` is raised.
        allowance : str, optional
            The allowance that would pay; the result is what would be left of it.
        """
        with self._store.reading() as journal:
            balance = journal.balance(dataset, allowance)
            balance.require(getattr(event, "neighbours", None), getattr(event, "unit", None))
            journal.require_settled(dataset)
            journal.author = self.author
            journal.find_payer(balance)
        wanted = event if isinstance(event, Event) else event.event
        return balance.pay(payment_options(wanted), self._store.location)[1].remaining()

    def datasets(self) -> list[Registration]:
        """The registered data sets, in order of registration."""
        with self._store.reading() as journal:
            return journal.registrations()

    def allowances(self, dataset: str) -> list[Allowance]:
        """The data set's allowances, in the order of their names."""
        return list(self.summary(dataset).allowances)

    def summary(self, dataset: str) -> Summary:
        """The state of a data set. Takes the same time for any number of charges."""
        with self._store.reading() as journal:
            return journal.summarise(dataset)

    def summaries(self) -> list[Summary]:
        """The state of every data set, in order of registration."""
        with self._store.reading() as journal:
            return [journal.summarise(found.dataset) for found in journal.registrations()]

    def history(self, dataset: str | None = None) -> list[Charge]:
        """All charges, or those to one data set, in order.

        Those that are not `released` are in progress, or were interrupted. They remain spent.
        """
        with self._store.reading() as journal:
            if dataset is not None:
                journal.balance(dataset)
        found: list[Charge] = []
        while True:  # in steps, so that writers need not wait until all are read
            with self._store.reading() as journal:
                if journal.read_charges(found, dataset, _STEP):
                    return found

    def verify(self, anchor: Head | None = None, *, resume: bool = False) -> Head:
        """Check every entry, every sum and the hash chain, and return the head; a `LedgerError` names the first fault.

        Parameters
        ----------
        anchor : Head, optional
            An earlier `head` that was kept outside of the ledger. Without one, a ledger that was rewritten entirely,
            or restored with its folder or server, cannot be distinguished from the original.
        resume : bool
            Check only the entries after the anchor, which an earlier `verify` returned. The sums begin with those that
            the entries up to the anchor contain. This proves that the anchored entry and all later ones are intact and
            that the sums are right since. It does not prove that earlier entries were not altered or removed since
            they were verified; only `verify` without `resume` reads those.
        """
        if resume and anchor is None:
            raise ParameterError("«anchor» must be given with «resume»: the entry after which to begin.")
        audit = Audit(anchor, resume=resume)
        while True:
            with self._store.reading() as journal:
                if audit.advance(journal):
                    self._store.require_latest(journal)
                    return audit.head

    def backup(self, file: Address) -> Head:
        """Copy the ledger, which may be in use, to a new file, and return the head of the copy.

        A backup is not charged: `Ledger.restore` makes a ledger of it.
        """
        return self._store.back_up(_open_store(file, self._store.timeout))

    def close(self) -> None:
        """Close the file. It is opened again when next used."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _repr_html_(self) -> str:
        return render_ledger(self)

    def __repr__(self) -> str:
        return f"Ledger.open({self._store.location!r})"

    def __reduce__(self) -> tuple[Callable[..., Self], tuple[Location, float]]:
        actor, purpose, groups = self.author.actor, self.author.purpose, tuple(sorted(self.author.names))
        who: Any = {"actor": actor, "purpose": purpose, "groups": groups}
        opened = partial(type(self), **who, anchor=self._anchor, wait=self.wait)
        return opened, (self._store.address, self._store.timeout)

    @contextlib.contextmanager
    def _writing(self, *, anchored: bool = True) -> Iterator[Journal]:
        """A transaction that appends entries; the last of them is anchored, if it is `anchored`."""
        with self._store.writing(self.author) as journal:
            if self._anchor is not None:
                check_anchor(self._anchor, journal)
            before = journal.head()
            yield journal
            head = journal.head()
        if self._anchor is not None and anchored and head != before:
            record_anchor(self._anchor, head)


def find_charges(ledger: Ledger, dataset: str, asked: str | Mapping[str, Any]) -> list[Charge]:
    """The charges to a data set with a request id or a description, the latest first, by one query of the ledger."""
    with ledger._store.reading() as journal:
        journal.balance(dataset)
        described = isinstance(asked, Mapping)
        wanted = f'"description":{canonical_json(asked)}' if described else asked
        rows = list(journal.rows("described" if described else "request", dataset, wanted))
        return [row.describe_charge(released=journal.row("release", row.entry) is not None) for row in rows]


def _find_steps(journal: Journal, dataset: str, request: str) -> tuple[Row, list[Step]]:
    """The charge of a stream, or a `LedgerError` if there is none, and its steps."""
    charge = journal.row("request", dataset, request)
    if charge is None:
        raise LedgerError(f"{journal.location} has no charge {request!r} to {dataset!r}. Use the ledger that has it.")
    contents = [row.content() for row in journal.rows("steps", charge.entry, charge.entry)]
    return charge, [Step(one["step"], one["digest"], one["time"]) for one in contents]


def _prepare(path: Address, **options: Any) -> tuple[Store, Author]:
    """What is needed before a ledger can be opened; unknown options are a `TypeError` now, and not later."""
    given = inspect.signature(Ledger).bind(path, **options)
    given.apply_defaults()
    who = (given.arguments[name] for name in ("actor", "purpose", "groups"))
    return _open_store(path, given.arguments["timeout"]), Author(*who)


def _open_store(location: Address, timeout: float) -> Store:
    """The store of the ledger at `location`; nothing is opened yet."""
    found = parse_location(location)
    return PostgresStore(found, timeout) if isinstance(found, PostgresURL) else SQLiteStore(found, timeout)
