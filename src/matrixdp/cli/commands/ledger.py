"""``matrixdp ledger``: what data sets may spend, and what they have spent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from matrixdp.cli.commands.ledger_sharing import allow, metrics, plan, return_allowance
from matrixdp.cli.options import (
    LEDGER,
    NEIGHBOURS,
    UNITS,
    author_options,
    combine_options,
    delta_option,
    epsilon_option,
    json_option,
    name_option,
)
from matrixdp.cli.styles import Group


@click.group(cls=Group)
def ledger() -> None:
    """Keep the total of what is spent on each data set."""


_path = click.argument("path", metavar="LEDGER", type=LEDGER)
_dataset = name_option("--dataset", required=True, help="Name of the data set.")
_registration = combine_options(
    _path,
    _dataset,
    epsilon_option,
    delta_option,
    click.option(
        "--neighbours",
        type=click.Choice(NEIGHBOURS),
        default="replace",
        show_default=True,
        help="Whether one unit is replaced by another, or comes and goes.",
    ),
    click.option(
        "--unit",
        type=click.Choice(UNITS),
        help="What all releases protect: one record (row), one person, one edge or one node. [default: record]",
    ),
    name_option("--person", metavar="COLUMN", help="Protect persons: the column that says whose each row is."),
    author_options,
    json_option,
)


@ledger.command("new", example="matrixdp ledger new clinic.db --dataset clinic --epsilon 4 --delta 1e-6")
@_registration
def new(**options: Any) -> None:
    """Create a LEDGER with one data set and its total budget.

    The total budget cannot be changed later.
    """
    from matrixdp.cli.actions.ledger import register_dataset

    register_dataset(new=True, **options)


@ledger.command("add", example="matrixdp ledger add clinic.db --dataset laboratory --epsilon 1 --delta 1e-6")
@_registration
def add(**options: Any) -> None:
    """Add another data set, with its total budget, to a LEDGER."""
    from matrixdp.cli.actions.ledger import register_dataset

    register_dataset(new=False, **options)


@ledger.command("show", example="matrixdp ledger show clinic.db")
@_path
@json_option
def show(path: Path, as_json: bool) -> None:
    """Show the total budgets in a LEDGER and what is left."""
    from matrixdp.cli.actions.ledger import show_ledger

    show_ledger(path, as_json=as_json)


@ledger.command("history", example="matrixdp ledger history clinic.db --dataset clinic")
@_path
@name_option("--dataset", help="Show only the charges to this data set.")
@json_option
def history(path: Path, dataset: str | None, as_json: bool) -> None:
    """Show the charges in a LEDGER, and which were released."""
    from matrixdp.cli.actions.ledger import show_history

    show_history(path, dataset, as_json=as_json)


@ledger.command("verify", example="matrixdp ledger verify clinic.db")
@_path
@click.option(
    "--anchor", metavar="ENTRY:HASH", help="An anchor that an earlier verify printed; it must still be in the ledger."
)
@click.option("--resume", is_flag=True, help="Check only the entries after the anchor.")
@json_option
def verify(path: Path, anchor: str | None, resume: bool, as_json: bool) -> None:
    """Check every entry, every total and the hash chain of a LEDGER."""
    from matrixdp.cli.actions.ledger_copies import verify_ledger

    verify_ledger(path, anchor, resume=resume, as_json=as_json)


@ledger.command("backup", example="matrixdp ledger backup clinic.db clinic-2031-02-07.db")
@_path
@click.argument("file", metavar="FILE", type=LEDGER)
@json_option
def backup(path: Path, file: Path, as_json: bool) -> None:
    """Copy a LEDGER, which may be in use, to a new FILE."""
    from matrixdp.cli.actions.ledger_copies import backup_ledger

    backup_ledger(path, file, as_json=as_json)


@ledger.command("restore", example="matrixdp ledger restore clinic-2031-02-07.db clinic.db")
@click.argument("file", metavar="FILE", type=LEDGER)
@_path
@author_options
@json_option
def restore(file: Path, path: Path, **options: Any) -> None:
    """Make a new LEDGER from the backup FILE.

    It refuses charges to each data set until settle says what was spent since the backup was made.
    """
    from matrixdp.cli.actions.ledger_copies import restore_ledger

    restore_ledger(file, path, **options)


@ledger.command("settle", example="matrixdp ledger settle clinic.db --dataset clinic --spent 0.5")
@_path
@_dataset
@click.option("--spent", type=float, metavar="EPSILON", help="Epsilon that was spent, at the data set's delta; or 0.")
@click.option("--all", "everything", is_flag=True, help="Treat all that is left as spent.")
@author_options
@json_option
def settle(path: Path, dataset: str, spent: float | None, **options: Any) -> None:
    """Say what was spent on a data set since the backup from which its LEDGER was restored."""
    from matrixdp.cli.actions.ledger_copies import settle_dataset

    settle_dataset(path, dataset, spent, **options)


@ledger.command("moved", example="matrixdp ledger moved /new/place/clinic.db")
@_path
@author_options
@json_option
def moved(path: Path, **options: Any) -> None:
    """Confirm that a LEDGER was moved, after a check of all its entries.

    A ledger is charged at one place only, so that a copy or another name of it cannot spend its total again.
    """
    from matrixdp.cli.actions.ledger_copies import confirm_move

    confirm_move(path, **options)


@ledger.command("copy", example="matrixdp ledger copy clinic.db postgresql://ann@db.example.org/privacy")
@click.argument("source", metavar="FROM", type=LEDGER)
@click.argument("target", metavar="TO", type=LEDGER)
@author_options
@json_option
def copy(source: Path, target: Path, **options: Any) -> None:
    """Move a ledger to a new place, with all its entries.

    FROM and TO are files or URLs of PostgreSQL. Afterwards, only the copy is charged; the original can still be read.
    """
    from matrixdp.cli.actions.ledger_copies import copy_ledger

    copy_ledger(source, target, **options)


@ledger.command("roles", example="matrixdp ledger roles postgresql://ann@db.example.org/privacy | psql privacy")
@_path
def roles(path: Path) -> None:
    """Print the SQL for the roles of a LEDGER in PostgreSQL.

    It connects to nothing.
    """
    from matrixdp.cli.actions.ledger import print_roles

    print_roles(path)


@ledger.command("whatif", example="matrixdp ledger whatif clinic.db --dataset clinic --epsilon 1 --delta 1e-6")
@_path
@_dataset
@name_option("--allowance", help="The allowance that would pay. [default: what is not allotted]")
@epsilon_option
@delta_option
@json_option
def whatif(path: Path, dataset: str, allowance: str | None, epsilon: float, delta: float, as_json: bool) -> None:
    """Show what would be left after a release. Nothing is charged."""
    from matrixdp.cli.actions.ledger import show_whatif

    show_whatif(path, dataset, allowance, epsilon, delta, as_json=as_json)


for _command in (allow, return_allowance, plan, metrics):
    ledger.add_command(_command)
