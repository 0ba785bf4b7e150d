"""``matrixdp design``: how accurate a release would be."""

from __future__ import annotations

from typing import Any

import click

from matrixdp.cli.options import LEDGER, PATH, design_options, json_option, method_options, name_option, split_options
from matrixdp.cli.styles import Command


@click.command(
    cls=Command,
    example="matrixdp design --schema schema.toml --query correlation --records 10000 --epsilon 1 --delta 1e-6",
)
@design_options
@method_options
@click.option("--plot", type=PATH, help="Draw the noise ellipse of two features and all standard deviations, as SVG.")
@click.option("--features", metavar="NAME,NAME", help="The two features of the ellipse. [default: the first two]")
@click.option("--ledger", type=LEDGER, metavar="PATH|URL", help="Show what would be left in this ledger.")
@name_option("--dataset", help="Name of the data set in the ledger.")
@name_option("--allowance", help="The allowance of the data set that would pay. [default: what is not allotted]")
@json_option
def design(**options: Any) -> None:
    """Show how accurate a release would be and what it would cost. Reads no data."""
    from matrixdp.cli.actions.design import run_design
    from matrixdp.cli.actions.design_options import DesignOptions

    chosen, rest = split_options(options, DesignOptions)
    run_design(chosen, **rest)
