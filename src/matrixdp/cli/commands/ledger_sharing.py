"""``matrixdp ledger allow``, ``return`` and ``plan``: a budget that is shared by people, or by repeated releases."""

from __future__ import annotations

from pathlib import Path

import click

from matrixdp.cli.options import PATH, json_option, name_option
from matrixdp.cli.styles import Command


@click.command(
    cls=Command,
    example="matrixdp ledger plan clinic.db --dataset clinic --every night --for 90\n"
    "matrixdp ledger plan --epsilon 4 --delta 1e-6 --every week --for '1 year'",
)
@click.argument("path", metavar="[LEDGER]", type=PATH, required=False)
@name_option("--dataset", help="Divide what this data set has left.")
@click.option("--epsilon", type=float, help="Without a LEDGER: the total privacy loss.")
@click.option("--delta", type=float, help="Without a LEDGER: the delta of the total.")
@click.option(
    "--every",
    metavar="PERIOD",
    required=True,
    help="Time from one release to the next: hour, day, night, week, month, year, or several, such as '2 weeks'.",
)
@click.option(
    "--for",
    "duration",
    metavar="NUMBER|TIME",
    required=True,
    help="The number of releases, or the time in which they are made, such as '90 days' or '1 year'.",
)
@json_option
def plan(
    path: Path | None,
    dataset: str | None,
    epsilon: float | None,
    delta: float | None,
    every: str,
    duration: str,
    as_json: bool,
) -> None:
    """Show which budget each of several equal releases may have.

    They divide what a data set in a LEDGER has left, or a total that is given by --epsilon and --delta. Nothing is
    charged.
    """
    if path is not None and (dataset is None or epsilon is not None or delta is not None):
        raise click.UsageError("With a LEDGER, give --dataset, and leave out --epsilon and --delta.")
    if path is None and (dataset is not None or epsilon is None or delta is None):
        raise click.UsageError("Give a LEDGER and --dataset, or --epsilon and --delta.")
    from matrixdp.cli.actions.ledger_sharing import plan_dataset, plan_total

    if path is not None and dataset is not None:
        plan_dataset(path, dataset, every, duration, as_json=as_json)
    elif epsilon is not None and delta is not None:
        plan_total(epsilon, delta, every, duration, as_json=as_json)
