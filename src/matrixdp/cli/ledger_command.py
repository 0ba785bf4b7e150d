"""What the ledger's commands do."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from matrixdp.cli.output import echo_json
from matrixdp.errors import LedgerError, ParameterError
from matrixdp.ledger import Gaussian, Ledger
from matrixdp.ledger.chain import Head
from matrixdp.ledger.events import event_to_json
from matrixdp.privacy import Privacy
from matrixdp.report.tables import table


def open_ledger(path: Path, *, timeout: float = 30.0) -> Ledger:
    """The ledger at `path`, or an error with the command that makes one."""
    if not path.exists():
        raise LedgerError(
            f"there is no ledger at {path}. Check the path, or make one: "
            f"matrixdp ledger new {path} --dataset NAME --epsilon E --delta D"
        )
    return Ledger.open(path, timeout=timeout)


def create(path: Path, dataset: str, epsilon: float, delta: float, neighbours: str, *, as_json: bool) -> None:
    """A new ledger with one data set."""
    privacy = Privacy(epsilon, delta)
    if not dataset.isprintable() or not dataset:
        raise ParameterError("--dataset must be a printable, non-empty text.")
    with Ledger.create(path) as ledger:
        ledger.register(dataset, privacy, neighbours=neighbours)
    overview(path, as_json=as_json)


def register(path: Path, dataset: str, epsilon: float, delta: float, neighbours: str, *, as_json: bool) -> None:
    """One more data set."""
    privacy = Privacy(epsilon, delta)
    with open_ledger(path) as ledger:
        ledger.register(dataset, privacy, neighbours=neighbours)
    overview(path, as_json=as_json)


def overview(path: Path, *, as_json: bool) -> None:
    """Totals and what is left of them."""
    with open_ledger(path) as ledger:
        rows = [_line(ledger, entry) for entry in ledger.datasets()]
        head = ledger.head
    if as_json:
        echo_json({"ledger": str(path), "datasets": rows, "head": {"entry": head.entry, "hash": head.hash}})
        return
    header = ["data set", "epsilon", "delta", "neighbours", "charges", "unfinished", "epsilon left", "mu left"]
    body = [
        [
            row["dataset"],
            f"{row['epsilon']:g}",
            f"{row['delta']:g}",
            row["neighbours"],
            str(row["charges"]),
            str(row["unfinished"]),
            f"{row['epsilon_left']:.4g}",
            f"{row['mu_left']:.4g}",
        ]
        for row in rows
    ]
    click.echo(table(header, body))


def _line(ledger: Ledger, entry: Any) -> dict[str, Any]:
    left = ledger.remaining(entry.dataset)
    history = ledger.history(entry.dataset)
    return {
        "dataset": entry.dataset,
        "epsilon": entry.privacy.epsilon,
        "delta": entry.privacy.delta,
        "neighbours": str(entry.neighbours),
        "reserve": asdict(entry.reserve),
        "charges": len(history),
        "unfinished": sum(not charge.released for charge in history),
        "epsilon_left": left.epsilon,
        "mu_left": left.mu,
    }


def charges(path: Path, dataset: str | None, *, as_json: bool) -> None:
    """All charges, in their order."""
    with open_ledger(path) as ledger:
        found = ledger.history(dataset)
    if as_json:
        echo_json(
            [
                {
                    "entry": charge.entry,
                    "time": charge.time,
                    "dataset": charge.dataset,
                    "event": event_to_json(charge.event),
                    "description": dict(charge.description),
                    "request": charge.request,
                    "released": charge.released,
                }
                for charge in found
            ]
        )
        return
    if not found:
        click.echo("Nothing has been charged.")
        return
    rows = [
        [
            str(charge.entry),
            charge.time,
            charge.dataset,
            str(charge.description.get("query", "")),
            _event(charge.event),
            "released" if charge.released else "not released",
            charge.request or "",
        ]
        for charge in found
    ]
    click.echo(table(["entry", "time", "data set", "query", "event", "state", "request"], rows))


def _event(event: Any) -> str:
    content = event_to_json(event)
    return " ".join(
        [content.pop("kind"), *(f"{name} {value:.4g}" for name, value in content.items() if isinstance(value, float))]
    )


def check(path: Path, anchor: str | None, *, as_json: bool) -> None:
    """The whole chain."""
    with open_ledger(path) as ledger:
        head = ledger.verify(None if anchor is None else _anchor(anchor))
    if as_json:
        echo_json({"ledger": str(path), "entry": head.entry, "hash": head.hash, "verified": True})
        return
    click.echo(f"{path} is whole: {head.entry} entries. Keep this elsewhere, as a witness of them:")
    click.echo(f"  --anchor {head.entry}:{head.hash}")


def _anchor(text: str) -> Head:
    entry, mark, digest = text.partition(":")
    if not mark or not entry.isdigit() or not digest:
        raise ParameterError(
            f"--anchor must be ENTRY:HASH, as `matrixdp ledger verify` shows it, got {text!r} instead."
        )
    return Head(int(entry), digest)


def suppose(path: Path, dataset: str, epsilon: float, delta: float, *, as_json: bool) -> None:
    """What would be left."""
    privacy = Privacy(epsilon, delta)
    with open_ledger(path) as ledger:
        before = ledger.remaining(dataset)
        after = ledger.whatif(dataset, Gaussian(privacy.mu))
    if as_json:
        echo_json(
            {
                "dataset": dataset,
                "delta": before.delta,
                "epsilon_left_before": before.epsilon,
                "epsilon_left_after": after.epsilon,
                "mu_left_after": after.mu,
            }
        )
        return
    rows = [["now", f"{before.epsilon:.4g}", f"{before.mu:.4g}"], ["after", f"{after.epsilon:.4g}", f"{after.mu:.4g}"]]
    click.echo(table([dataset, f"epsilon left at delta {before.delta:g}", "mu left"], rows))
