"""Where a release is charged: a ledger, a data set and a request id."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from matrixdp.cli.actions.design_options import DesignOptions
from matrixdp.cli.actions.ledger import open_ledger, require_dataset
from matrixdp.cli.actions.release_options import ReleaseOptions
from matrixdp.cli.exits import ChargedError
from matrixdp.design import Design
from matrixdp.errors import LedgerError, ParameterError, RequestPendingError
from matrixdp.ledger import Allowance, Event, Gaussian, Head, Ledger
from matrixdp.ledger.request import Difference, changed_request_error
from matrixdp.privacy import Neighbours, Privacy, Unit
from matrixdp.release import DatasetRelease
from matrixdp.release.charging import describe_design
from matrixdp.report.guarantee import LedgerSummary

_MAX_STORED = 10**6  # entries of a release that the ledger stores, so that it can be requested again
DIRECTIONS = "-directions"  # added to the request id of the release that learns directions


@dataclass(frozen=True)
class PlannedCharge:
    """What a release will be charged with.

    Attributes
    ----------
    event : Event
    describe : callable
        Returns the description that the ledger stores.
    entries : int
        Of the release, which the ledger stores if they are not too many.
    whole : Event, optional
        Of the release and the learning of its directions together, if they are learned.
    neighbours, unit : optional
        What the guarantee is for, which the data set must be registered for.
    """

    event: Event
    describe: Callable[[], dict[str, Any]]
    entries: int
    whole: Event | None = None
    neighbours: Neighbours | None = None
    unit: Unit | None = None

    @classmethod
    def of_design(cls, design: Design, options: DesignOptions) -> PlannedCharge:
        """The charge of a design, and of directions that are learned for it."""
        height, width = design.query.shape
        whole = Gaussian(options.privacy.mu) if options.learned else None
        describe = partial(describe_design, design)
        return cls(design.event, describe, height * width, whole, design.neighbours, design.unit)


@dataclass(frozen=True)
class ChargeTarget:
    """The ledger, data set, allowance and request id that a release is charged to; without a ledger, none of them.

    Attributes
    ----------
    left_before : float
        Epsilon left before the release.
    released_before : bool
        Whether the request id was charged already, so that the release is not new.
    entry_before : int
        The last entry of the ledger before the release.
    planned : PlannedCharge, optional
        What is charged.
    allowance : str, optional
        The allowance that pays.
    folder : Path, optional
        Where a noisy data set is written, which the ledger does not store.
    """

    ledger: Ledger | None = None
    dataset: str | None = None
    request: str | None = None
    left_before: float = 0.0
    released_before: bool = False
    entry_before: int = 0
    planned: PlannedCharge | None = None
    allowance: str | None = None
    folder: Path | None = None

    def make_arguments(self, suffix: str = "") -> dict[str, Any]:
        """The arguments of a release that name its account; `suffix` is added to the request id."""
        if self.ledger is None:
            return {}
        request = None if self.request is None else self.request + suffix
        return {"ledger": self.ledger, "dataset": self.dataset, "request": request, "allowance": self.allowance}

    def summarise(self) -> LedgerSummary | None:
        """The state of the ledger after the release."""
        if self.ledger is None or self.dataset is None:
            return None
        total: Privacy | Allowance
        if self.allowance is None:
            total = next(found.privacy for found in self.ledger.datasets() if found.dataset == self.dataset)
        else:
            total = next(found for found in self.ledger.allowances(self.dataset) if found.name == self.allowance)
        head = self.ledger.head
        return LedgerSummary(
            path=str(self.ledger.path),
            dataset=self.dataset,
            epsilon=total.epsilon,
            delta=total.delta,
            left_before=self.left_before,
            left_after=self.ledger.remaining(self.dataset, allowance=self.allowance).epsilon,
            entry=head.entry,
            hash=head.hash,
            allowance=self.allowance,
            charged=not self.released_before,
        )

    def describe_recovery(self) -> str:
        """What this run charged before an error, and how to get the release; empty if it charged nothing."""
        if self.ledger is None or self.planned is None:
            return ""
        charges = [charge for charge in self.ledger.history(self.dataset) if charge.entry > self.entry_before]
        if self.request is None:
            description = self.planned.describe()
            charged = any(charge.request is None and charge.description == description for charge in charges)
            return "The budget is spent, and the release is lost. Running again is charged again." if charged else ""
        states = {charge.request: charge.released for charge in charges}
        if states.get(self.request):
            return (
                f"The budget is spent, and the ledger has the release: run again with --request {self.request}, "
                "at no cost."
            )
        if self.request in states and self._has_dataset():
            return (
                f"The budget is spent, and the data set in {self.folder} is complete: run again with the same "
                "--request and --out, at no cost."
            )
        if self.request in states:
            return "The budget is spent, and the release is lost. Running again with a new request is charged again."
        if states.get(self.request + DIRECTIONS):
            return f"The directions are charged and stored: run again with --request {self.request}."
        return ""

    def _has_dataset(self) -> bool:
        """Whether the folder has the data set of the request."""
        try:
            return self.folder is not None and DatasetRelease.open(self.folder).request == self.request
        except ParameterError:
            return False


@contextmanager
def explain_charge(target: ChargeTarget) -> Iterator[None]:
    """Add to an error after the charge what was spent, and how to get the release."""
    try:
        yield
    except RequestPendingError:  # another process was charged
        raise
    except (Exception, KeyboardInterrupt) as error:
        try:
            recovery = target.describe_recovery()
        except LedgerError:
            recovery = "The budget may be spent; matrixdp ledger history shows it."
        if not recovery:
            raise
        raise ChargedError(error, recovery) from error


@contextmanager
def open_target(options: ReleaseOptions, planned: PlannedCharge) -> Iterator[ChargeTarget]:
    """The target of a charge, after a check that the budget is large enough for it."""
    if options.ledger is None:
        yield ChargeTarget()
        return
    dataset = require_dataset(options.dataset)
    with open_ledger(
        options.ledger,
        timeout=options.ledger_timeout,
        wait=options.wait,
        actor=options.actor,
        purpose=options.purpose,
        anchor=_find_anchor(options),
    ) as ledger:
        allowance = options.allowance
        left = ledger.remaining(dataset, allowance=allowance).epsilon
        released = _was_charged(ledger, dataset, options.request)
        learned = planned.whole is not None and _was_charged(ledger, dataset, options.request, DIRECTIONS)
        if released and planned.whole is not None and not learned:  # directions would be charged before it is refused
            changed = Difference("directions", "given", "learned")
            raise changed_request_error(dataset, options.request, "", [changed])
        if not released:
            ledger.whatif(dataset, planned, allowance=allowance)
            if planned.whole is not None and not learned:
                ledger.whatif(dataset, planned.whole, allowance=allowance)
        new_request = f"release-{uuid.uuid4().hex[:12]}" if planned.entries <= _MAX_STORED else None
        request = options.request or new_request
        yield ChargeTarget(ledger, dataset, request, left, released, ledger.head.entry, planned, allowance)


def _find_anchor(options: ReleaseOptions) -> Path | Callable[[Head], object] | None:
    """Where the charge is anchored: a file, a command, or nowhere."""
    if options.anchor_command is None:
        return options.anchor_to
    try:
        words = shlex.split(options.anchor_command)
    except ValueError as error:
        raise ParameterError(f"--anchor-command must be a command line: {error}.") from None
    if not words or shutil.which(words[0]) is None:
        raise ParameterError(f"--anchor-command must name a program that can be run, got {options.anchor_command!r}.")
    return partial(_run_anchor_command, words)


def _run_anchor_command(words: list[str], head: Head) -> None:
    anchor = f"{head.entry}:{head.hash}"
    done = subprocess.run([*words, anchor], stdout=subprocess.DEVNULL, check=False)  # noqa: S603 (the user's command)
    if done.returncode != 0:
        raise LedgerError(
            f"entry {head.entry} was charged, but --anchor-command failed with code {done.returncode}. Nothing was "
            "released."
        )


def _was_charged(ledger: Ledger, dataset: str, request: str | None, suffix: str = "") -> bool:
    """Whether a request is stored or pending; the release compares its options, and waits for it."""
    try:
        return request is not None and ledger.stored(dataset, request + suffix) is not None
    except RequestPendingError:
        return True
