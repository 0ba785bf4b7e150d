"""``matrixdp ledger allow``, ``return``, ``plan`` and ``metrics``: a budget that is shared, planned and monitored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from matrixdp.cli.options import LEDGER, author_options, json_option, name_option
from matrixdp.cli.styles import Command

_path = click.argument("path", metavar="LEDGER", type=LEDGER)
_dataset = name_option("--dataset", required=True, help="Name of the data set.")
_allowance = name_option("--allowance", required=True, help="Name of the allowance: a person, a team, a project.")


@click.command(cls=Command, example="matrixdp ledger allow clinic.db --dataset clinic --allowance ann --epsilon 1")
@_path
@_dataset
@_allowance
@click.option("--epsilon", type=float, help="Its size: all charges to it together, at the data set's delta.")
@click.option("--share", metavar="NUMBER", help="Its size as a share of the total, such as 0.25 or 1/3.")
@author_options
@json_option
def allow(path: Path, dataset: str, allowance: str, epsilon: float | None, share: str | None, **options: Any) -> None:
    """Set a part of a data set's total apart, for charges that name it.

    The size is given by --epsilon or --share. Releases that name the allowance can spend no more than it, and other
    releases cannot use it.
    """
    if (epsilon is None) == (share is None):
        raise click.UsageError("Give either --epsilon or --share.")
    from matrixdp.cli.actions.ledger_sharing import add_allowance

    add_allowance(path, dataset, allowance, epsilon, share, **options)


@click.command("return", cls=Command, example="matrixdp ledger return clinic.db --dataset clinic --allowance ann")
@_path
@_dataset
@_allowance
@author_options
@json_option
def return_allowance(path: Path, dataset: str, allowance: str, **options: Any) -> None:
    """Return what is left of an allowance to its data set. Nothing can be charged to it afterwards."""
    from matrixdp.cli.actions.ledger_sharing import end_allowance

    end_allowance(path, dataset, allowance, **options)


@click.command(
    cls=Command,
    example="matrixdp ledger plan clinic.db --dataset clinic --every night --for 90\n"
    "matrixdp ledger plan --epsilon 4 --delta 1e-6 --every week --for '1 year'",
)
@click.argument("path", metavar="[LEDGER]", type=LEDGER, required=False)
@name_option("--dataset", help="Divide what this data set has left.")
@name_option("--allowance", help="Divide what this allowance of the data set has left.")
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
    allowance: str | None,
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
    if path is None and (dataset is not None or allowance is not None or epsilon is None or delta is None):
        raise click.UsageError("Give a LEDGER and --dataset, or --epsilon and --delta.")
    from matrixdp.cli.actions.ledger_sharing import plan_dataset, plan_total

    if path is not None and dataset is not None:
        plan_dataset(path, dataset, allowance, every, duration, as_json=as_json)
    elif epsilon is not None and delta is not None:
        plan_total(epsilon, delta, every, duration, as_json=as_json)


@click.command(cls=Command, example="matrixdp ledger metrics clinic.db --alert-below 10%")
@_path
@click.option(
    "--alert-below",
    metavar="EPSILON|SHARE%",
    help="Exit with code 8 if a data set or an allowance has less than this left: an epsilon, or a share such as 10%.",
)
def metrics(path: Path, alert_below: str | None) -> int:
    """Print the state of a LEDGER for monitoring, in the text format of Prometheus."""
    from matrixdp.cli.actions.ledger_metrics import print_metrics

    return print_metrics(path, alert_below)
