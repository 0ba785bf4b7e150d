"""What ``matrixdp ledger`` does."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, Unpack

import click

from matrixdp.cli.actions.output import echo_json, output_after_work
from matrixdp.display import format_table
from matrixdp.errors import LedgerError, ParameterError
from matrixdp.ledger import Gaussian, Ledger, Summary
from matrixdp.ledger.events import event_to_json
from matrixdp.ledger.ledger import LedgerOptions
from matrixdp.ledger.location import Location
from matrixdp.ledger.schema import roles_sql
from matrixdp.privacy import Privacy, Unit


def open_ledger(path: Location, **options: Unpack[LedgerOptions]) -> Ledger:
    """The ledger at `path`; the error for a missing one names the command that creates it."""
    if isinstance(path, Path) and not path.exists():
        raise LedgerError(
            f"there is no ledger at {path}. Check the path, or create one: "
            f"matrixdp ledger new {path} --dataset NAME --epsilon E --delta D"
        )
    return Ledger.open(path, **options)


def require_dataset(dataset: str | None) -> str:
    """The value of --dataset; an error if it was left out."""
    if dataset is None:
        raise ParameterError("--dataset must be given with --ledger: the name under which the data are registered.")
    return dataset


def register_dataset(
    path: Location,
    dataset: str,
    epsilon: float,
    delta: float,
    neighbours: str,
    *,
    new: bool,
    unit: str | None,
    person: str | None,
    as_json: bool,
    **author: Unpack[LedgerOptions],
) -> None:
    """Register a data set in a `new` ledger or an existing one, and print the ledger."""
    privacy, protected = Privacy(epsilon, delta), _parse_unit(unit, person)
    with (Ledger.create if new else open_ledger)(path, **author) as ledger:
        ledger.register(dataset, privacy, neighbours=neighbours, unit=protected)
    with output_after_work():
        show_ledger(path, as_json=as_json)


def _parse_unit(unit: str | None, person: str | None) -> Unit:
    """The unit that --unit or --person names; records by default."""
    if person is not None and unit not in (None, "person"):
        raise ParameterError(f"--unit must be left out with --person, which protects persons, got {unit!r} instead.")
    if unit == "person" and person is None:
        raise ParameterError("--person COLUMN must be given with --unit person: the column that says whose a row is.")
    return Unit(unit or "record") if person is None else Unit("person", person)


def show_ledger(path: Location, *, as_json: bool) -> None:
    """Print the total of every data set and what is left of it."""
    with open_ledger(path) as ledger:
        facts = [_collect_facts(summary) for summary in ledger.summaries()]
        head = ledger.head
    if as_json:
        echo_json({"ledger": str(path), "datasets": facts, "head": {"entry": head.entry, "hash": head.hash}})
        return
    rows = [
        [
            fact["dataset"],
            f"{fact['epsilon']:g}",
            f"{fact['delta']:g}",
            fact["neighbours"],
            fact["unit"],
            str(fact["charges"]),
            str(fact["unfinished"]),
            f"{fact['epsilon_left']:.4g}",
            f"{fact['mu_left']:.4g}",
        ]
        for fact in facts
    ]
    header = [
        "data set",
        "epsilon",
        "delta",
        "neighbours",
        "protects",
        "charges",
        "unfinished",
        "epsilon left",
        "mu left",
    ]
    click.echo(format_table(header, rows))
    allowances = [
        [
            allowance["name"],
            fact["dataset"],
            f"{allowance['epsilon']:.4g}",
            "returned" if allowance["returned"] else f"{allowance['epsilon_left']:.4g}",
            "" if allowance["returned"] else f"{allowance['mu_left']:.4g}",
        ]
        for fact in facts
        for allowance in fact["allowances"]
    ]
    if allowances:
        click.echo()
        click.echo(format_table(["allowance", "data set", "epsilon", "epsilon left", "mu left"], allowances))
    for fact in facts:
        if fact["restored_from"] is not None:
            click.echo(
                f"{fact['dataset']} was restored from a backup that ends at entry {fact['restored_from']}. Say what "
                f"was spent since: matrixdp ledger settle {path} --dataset {fact['dataset']} --spent EPSILON (or --all)"
            )


def _collect_facts(summary: Summary) -> dict[str, Any]:
    registration, left, counts = summary.registration, summary.left, summary.counts
    return {
        "dataset": registration.dataset,
        "epsilon": registration.privacy.epsilon,
        "delta": registration.privacy.delta,
        "neighbours": str(registration.neighbours),
        "unit": str(registration.unit),
        "reserve": asdict(registration.reserve),
        "charges": counts.charges,
        "unfinished": counts.unfinished,
        "epsilon_left": left.epsilon,
        "mu_left": left.mu,
        "epsilon_unspent": summary.unspent.epsilon,
        "mu_unspent": summary.unspent.mu,
        "allowances": [
            {
                "name": allowance.name,
                "epsilon": allowance.epsilon,
                "epsilon_left": allowance.left.epsilon,
                "mu_left": allowance.left.mu,
                "reserve_left": asdict(allowance.left.reserve),
                "returned": allowance.returned,
            }
            for allowance in summary.allowances
        ],
        "restored_from": summary.restored_from,
    }


def show_history(path: Location, dataset: str | None, *, as_json: bool) -> None:
    """Print all charges, or those to one data set, in their order."""
    with open_ledger(path) as ledger:
        history = ledger.history(dataset)
    if as_json:
        echo_json(
            [
                {
                    "entry": charge.entry,
                    "time": charge.time,
                    "dataset": charge.dataset,
                    "event": event_to_json(charge.event),
                    "description": dict(charge.description),
                    "options": charge.options,
                    "request": charge.request,
                    "allowance": charge.allowance,
                    "unit": str(charge.unit),
                    "released": charge.released,
                    "actor": charge.actor,
                    "purpose": charge.purpose,
                    "version": charge.version,
                }
                for charge in history
            ]
        )
        return
    if not history:
        click.echo("Nothing has been charged.")
        return
    rows = [
        [
            str(charge.entry),
            charge.time,
            charge.dataset,
            str(charge.description.get("query", "")),
            _format_event(charge.event),
            "released" if charge.released else "not released",
            charge.request or "",
            charge.allowance or "",
            charge.actor or "",
            charge.purpose or "",
            charge.version or "",
        ]
        for charge in history
    ]
    header = ["entry", "time", "data set", "query", "event", "state", "request"]
    click.echo(format_table([*header, "allowance", "actor", "purpose", "version"], rows))


def _format_event(event: Any) -> str:
    content = event_to_json(event)
    numbers = (f"{name} {value:.4g}" for name, value in content.items() if isinstance(value, float))
    return " ".join([content["kind"], *numbers])


def print_roles(path: Location) -> None:
    """Print the SQL for the roles of a ledger in PostgreSQL."""
    if isinstance(path, Path):
        raise ParameterError("LEDGER must be the URL of a ledger in PostgreSQL: files have no roles.")
    click.echo(roles_sql(path.schema), nl=False)


def show_whatif(
    path: Location, dataset: str, allowance: str | None, epsilon: float, delta: float, *, as_json: bool
) -> None:
    """Print what would be left of a data set's total, or of an allowance, after a release."""
    privacy = Privacy(epsilon, delta)
    with open_ledger(path) as ledger:
        before = ledger.remaining(dataset, allowance=allowance)
        after = ledger.whatif(dataset, Gaussian(privacy.mu), allowance=allowance)
    if as_json:
        echo_json(
            {
                "dataset": dataset,
                "allowance": allowance,
                "delta": before.delta,
                "epsilon_left_before": before.epsilon,
                "epsilon_left_after": after.epsilon,
                "mu_left_after": after.mu,
            }
        )
        return
    rows = [[name, f"{left.epsilon:.4g}", f"{left.mu:.4g}"] for name, left in (("now", before), ("after", after))]
    click.echo(format_table([allowance or dataset, f"epsilon left at delta {before.delta:g}", "mu left"], rows))
