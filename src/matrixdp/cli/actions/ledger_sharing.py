"""What ``matrixdp ledger allow``, ``return`` and ``plan`` do."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Unpack

import click

from matrixdp.cli.actions.ledger import open_ledger, show_ledger
from matrixdp.cli.actions.output import echo_json, output_after_work
from matrixdp.display import format_table
from matrixdp.ledger import Schedule, count_releases, make_schedule
from matrixdp.ledger.ledger import LedgerOptions
from matrixdp.ledger.location import Location
from matrixdp.privacy import Privacy


def add_allowance(
    path: Location,
    dataset: str,
    name: str,
    epsilon: float | None,
    share: str | None,
    *,
    as_json: bool,
    **author: Unpack[LedgerOptions],
) -> None:
    """Set an allowance apart and print the ledger."""
    with open_ledger(path, **author) as ledger:
        ledger.allow(dataset, name, epsilon=epsilon, share=share)
    with output_after_work():
        show_ledger(path, as_json=as_json)


def end_allowance(path: Location, dataset: str, name: str, *, as_json: bool, **author: Unpack[LedgerOptions]) -> None:
    """Return what is left of an allowance and print the ledger."""
    with open_ledger(path, **author) as ledger:
        ledger.return_allowance(dataset, name)
    with output_after_work():
        show_ledger(path, as_json=as_json)


def plan_dataset(
    path: Location, dataset: str, allowance: str | None, every: str, duration: str, *, as_json: bool
) -> None:
    """Print the budget of each release, if they divide what a data set or an allowance has left."""
    releases = count_releases(every, duration)
    with open_ledger(path) as ledger:
        schedule = ledger.schedule(dataset, releases, allowance=allowance)
    _print_schedule(schedule, every, as_json=as_json)


def plan_total(epsilon: float, delta: float, every: str, duration: str, *, as_json: bool) -> None:
    """Print the budget of each release, if they divide (epsilon, delta)."""
    schedule = make_schedule(Privacy(epsilon, delta), count_releases(every, duration))
    _print_schedule(schedule, every, as_json=as_json)


def _print_schedule(schedule: Schedule, every: str, *, as_json: bool) -> None:
    if as_json:
        echo_json({**asdict(schedule), "every": every})
        return
    rows = [
        [name, _format_down(mu), _format_down(epsilon)]
        for name, mu, epsilon in (
            ("each release", schedule.mu, schedule.epsilon),
            ("all together", schedule.total_mu, schedule.total_epsilon),
        )
    ]
    header = [f"{schedule.releases:,} releases, one every {every}", "mu", f"epsilon at delta {schedule.delta:g}"]
    click.echo(format_table(header, rows))
    if schedule.epsilon == 0:
        click.echo(
            f"\nThat is too little for a release at delta {schedule.delta:g}. Plan fewer releases, or design them "
            "for a smaller delta."
        )


def _format_down(value: float) -> str:
    """A positive number with six digits, rounded down, so that what is shown can be spent.

    Examples
    --------
    >>> _format_down(0.34749999), _format_down(4.0), _format_down(0.0)
    ('0.347499', '4', '0')
    """
    text = f"{value:.6g}"
    if float(text) <= value:
        return text
    return f"{value - 10.0 ** (math.floor(math.log10(value)) - 5):.6g}"
