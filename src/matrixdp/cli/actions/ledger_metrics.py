"""What ``matrixdp ledger metrics`` does."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from matrixdp.cli.actions.ledger import open_ledger
from matrixdp.cli.exits import ExitCode
from matrixdp.display import make_visible
from matrixdp.ledger.location import Location
from matrixdp.ledger.metrics import Threshold, find_low, render_metrics


def print_metrics(path: Location, alert_below: str | None) -> ExitCode:
    """Print the metrics of a ledger; what is below the threshold goes to standard error and sets the exit code."""
    threshold = None if alert_below is None else Threshold.parse(alert_below)
    with open_ledger(path) as ledger:
        summaries, entries = ledger.summaries(), ledger.head.entry
    click.echo(render_metrics(summaries, entries, datetime.now(UTC)), nl=False)
    low = [] if threshold is None else find_low(summaries, threshold)
    for message in low:
        click.echo(f"matrixdp: {make_visible(message)}", err=True)
    return ExitCode.LOW if low else ExitCode.SUCCESS
