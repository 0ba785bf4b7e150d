"""A ledger as HTML, for notebooks."""

from __future__ import annotations

from typing import Protocol

from matrixdp.display import render_card, render_facts, render_note, render_table
from matrixdp.errors import MatrixDPError
from matrixdp.ledger.chain import Head
from matrixdp.ledger.location import Location
from matrixdp.ledger.values import Summary

_HEAD = ("", "protects", "neighbours", "total", "spent", "left", "delta", "charges", "without a release")

_NOTE = (
    "Total, spent and left are epsilons at the delta of the data set. Spent and left do not sum to the total: the "
    "squares of mu add up. What is allotted to allowances is not left."
)


class Readable(Protocol):
    """What is shown of a ledger."""

    @property
    def path(self) -> Location:
        """Where it is."""

    @property
    def head(self) -> Head:
        """Its last entry."""

    def summaries(self) -> list[Summary]:
        """The state of every data set."""


def render_ledger(ledger: Readable) -> str:
    """Data sets with what is spent and left of their totals; the reason, if the ledger cannot be read."""
    try:
        found, head = ledger.summaries(), ledger.head
    except MatrixDPError as error:
        return render_card("Ledger", render_facts([("place", str(ledger.path))]), warnings=[str(error)])
    facts = [("place", str(ledger.path)), ("last entry", f"{head.entry}, hash {head.hash[:16]}…")]
    restored = [one.registration.dataset for one in found if one.restored_from is not None]
    marks = [f"Restored from a backup; settle {', '.join(restored)} before the next charge."] if restored else []
    table = render_table(_HEAD, map(_row, found), texts=3) if found else render_note("no data set is registered")
    note = render_note(_NOTE)
    return render_card("Ledger", render_facts(facts), table, note if found else "", warnings=marks)


def _row(summary: Summary) -> tuple[str, ...]:
    registration, counts = summary.registration, summary.counts
    return (
        registration.dataset,
        str(registration.unit),
        str(registration.neighbours),
        f"{registration.privacy.epsilon:.4g}",
        f"{summary.spent_epsilon:.4g}",
        f"{summary.left.epsilon:.4g}",
        f"{registration.privacy.delta:.3g}",
        f"{counts.charges:,}",
        f"{counts.unfinished:,}",
    )
