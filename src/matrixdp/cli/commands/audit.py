"""``matrixdp audit``: look for neighbours that exceed a claim."""

from __future__ import annotations

from typing import Any

import click

from matrixdp.cli.options import PATH, design_options, json_option
from matrixdp.cli.styles import Command


@click.command(
    cls=Command,
    example="matrixdp audit --schema schema.toml --query covariance --epsilon 1 --delta 1e-6 --out audit/\n"
    "matrixdp audit study:histogram --epsilon 1 --delta 1e-6 --generate study:random_record --out audit/",
)
@click.argument("target", required=False, metavar="[MODULE:NAME]")
@design_options
@click.option("--generate", metavar="MODULE:NAME", help="Function that returns one record, for a query of your own.")
@click.option("--first", type=PATH, help="NPY or CSV file with the data set on which a function is measured.")
@click.option("--second", type=PATH, help="NPY or CSV file with its neighbour.")
@click.option("--trials", type=int, default=4000, show_default=True, help="Runs of a function on each data set.")
@click.option("--replays", type=int, default=50, show_default=True, help="Fits of an estimator to replay.")
@click.option("--starts", type=int, default=16, show_default=True, help="Families of neighbours to search.")
@click.option("--seconds", type=float, default=30.0, show_default=True, help="Stop an attack after this time.")
@click.option("--out", type=PATH, help="Folder to write: report.html, audit.json and pictures.")
@click.option("--force", is_flag=True, help="Replace an existing folder.")
@json_option
def audit(**options: Any) -> int:
    """Look for neighbouring data sets that exceed a claim. Reads no private data.

    The options of design name a design; --schema alone, all designs for its columns. MODULE:NAME is a design, a query,
    an estimator, or a function from data to numbers. The exit code is 1 if a claim does not hold.
    """
    from matrixdp.cli.actions.audit import run_audit

    return run_audit(**options)


for _parameter in audit.params:
    _parameter.required = False  # a Python object needs none of the options of design
