"""``matrixdp ledger``: what data sets may spend, and what they have spent."""

from __future__ import annotations

from pathlib import Path

import click

from matrixdp.cli.options import PATH, F, delta_option, epsilon_option, json_option
from matrixdp.cli.styles import Group


@click.group(cls=Group)
def ledger() -> None:
    """Keep account of what is spent on each data set."""


_path = click.argument("path", metavar="LEDGER", type=PATH)
_dataset = click.option("--dataset", required=True, help="Name of the data set.")
_registration = (
    _path,
    _dataset,
    epsilon_option,
    delta_option,
    click.option(
        "--neighbours",
        type=click.Choice(("replace", "add-remove")),
        default="replace",
        show_default=True,
        help="What one person may change in these data.",
    ),
    json_option,
)


def _registering(function: F) -> F:
    for option in reversed(_registration):
        function = option(function)
    return function


@ledger.command("new", example="matrixdp ledger new clinic.db --dataset clinic --epsilon 4 --delta 1e-6")
@_registering
def new(path: Path, dataset: str, epsilon: float, delta: float, neighbours: str, as_json: bool) -> None:
    """Make a LEDGER with one data set and its total, which cannot be changed later."""
    from matrixdp.cli.ledger_command import create

    create(path, dataset, epsilon, delta, neighbours, as_json=as_json)


@ledger.command("add", example="matrixdp ledger add clinic.db --dataset laboratory --epsilon 1 --delta 1e-6")
@_registering
def add(path: Path, dataset: str, epsilon: float, delta: float, neighbours: str, as_json: bool) -> None:
    """Add another data set, with its total, to a LEDGER."""
    from matrixdp.cli.ledger_command import register

    register(path, dataset, epsilon, delta, neighbours, as_json=as_json)


@ledger.command("show", example="matrixdp ledger show clinic.db")
@_path
@json_option
def show(path: Path, as_json: bool) -> None:
    """Show what every data set of a LEDGER may spend, and what is left."""
    from matrixdp.cli.ledger_command import overview

    overview(path, as_json=as_json)


@ledger.command("history", example="matrixdp ledger history clinic.db --dataset clinic")
@_path
@click.option("--dataset", help="Of this data set only.")
@json_option
def history(path: Path, dataset: str | None, as_json: bool) -> None:
    """Show every charge in a LEDGER, and whether its release was finished."""
    from matrixdp.cli.ledger_command import charges

    charges(path, dataset, as_json=as_json)


@ledger.command("verify", example="matrixdp ledger verify clinic.db")
@_path
@click.option("--anchor", metavar="ENTRY:HASH", help="A number and hash that were kept elsewhere; see the output.")
@json_option
def verify(path: Path, anchor: str | None, as_json: bool) -> None:
    """Check every entry, every sum and the whole chain of a LEDGER."""
    from matrixdp.cli.ledger_command import check

    check(path, anchor, as_json=as_json)


@ledger.command("whatif", example="matrixdp ledger whatif clinic.db --dataset clinic --epsilon 1 --delta 1e-6")
@_path
@_dataset
@epsilon_option
@delta_option
@json_option
def whatif(path: Path, dataset: str, epsilon: float, delta: float, as_json: bool) -> None:
    """Show what would be left after a release; nothing is charged."""
    from matrixdp.cli.ledger_command import suppose

    suppose(path, dataset, epsilon, delta, as_json=as_json)
