"""Where a release is charged: a ledger, the data set's name in it, and perhaps a request id."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from matrixdp.design.design import Design
from matrixdp.errors import ParameterError
from matrixdp.ledger import Ledger, Receipt
from matrixdp.serialise import to_plain


@dataclass(frozen=True)
class Account:
    """Where a release is charged, under which name and id."""

    ledger: Ledger
    dataset: str
    request: str | None
    design: Design

    @cached_property
    def description(self) -> dict[str, Any]:
        """What was asked for: public, and the same on every machine and in every version."""
        design = self.design
        asked = (design.query, design.privacy, design.share, design.calibration, design.allocation, design.directions)
        text = json.dumps(to_plain(asked), allow_nan=False)
        return {
            "query": type(design.query).__name__,
            "shape": list(design.query.shape),
            "epsilon": design.privacy.epsilon,
            "delta": design.privacy.delta,
            "calibration": design.calibration,
            "allocation": design.allocation.rule,
            "design": hashlib.sha256(text.encode()).hexdigest(),
        }

    def stored(self) -> str | None:
        """The release of an earlier request with the same id, as JSON text."""
        if self.request is None:
            return None
        return self.ledger.stored(self.dataset, self.request, event=self.design.event, description=self.description)

    def charge(self) -> Receipt:
        """Pay, before a bit of noise is drawn."""
        return self.ledger.charge(
            self.dataset,
            self.design.event,
            neighbours=self.design.neighbours,
            description=self.description,
            request=self.request,
        )

    def complete(self, receipt: Receipt, text: Callable[[], str]) -> None:
        """Mark the charge as released; the release's text is kept only if it can be asked for again."""
        self.ledger.complete(receipt, text() if self.request is not None else "")


def open_account(
    design: Design,
    ledger: Ledger | str | os.PathLike[str] | None,
    dataset: str | None,
    request: str | None,
    *,
    simulation: bool,
) -> Account | None:
    """The account that a release names, or None if it names none."""
    check_account(ledger, dataset, request, simulation=simulation)
    if ledger is None or dataset is None:
        return None
    return Account(ledger if isinstance(ledger, Ledger) else Ledger.open(ledger), dataset, request, design)


def check_account(ledger: Any, dataset: str | None, request: str | None = None, *, simulation: bool) -> None:
    """An error for a ledger without a data set's name, a name without a ledger, or a simulation that is charged."""
    if ledger is None:
        if dataset is not None or request is not None:
            raise ParameterError("ledger must be given with dataset or request: nothing can be charged without it.")
    elif dataset is None:
        raise ParameterError("dataset must be given with a ledger: the name under which the data were registered.")
    elif simulation:
        raise ParameterError("ledger must be left out for a simulation, which protects nothing and costs nothing.")
