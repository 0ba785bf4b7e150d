"""``matrixdp demo``: the whole workflow on public data."""

from __future__ import annotations

from pathlib import Path

import click

from matrixdp.cli.styles import Command


@click.command(cls=Command, example="matrixdp demo")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("matrixdp-demo"),
    show_default=True,
    help="Folder for the results. The folder of an earlier demo is replaced.",
)
def demo(out: Path) -> None:
    """Run the whole workflow on patient data from scikit-learn.

    It prints and runs the commands that create a ledger, design a release, release it and write a report.
    """
    from matrixdp.cli.actions.demo import run_demo

    run_demo(out)
