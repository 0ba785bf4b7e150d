"""``matrixdp design``: how accurate a release would be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from matrixdp.cli.ledger import preview_ledger, require_dataset
from matrixdp.cli.options import PATH, design_options, json_option, ledger_options, method_options, split_request
from matrixdp.cli.output import Command, warn_about_delta
from matrixdp.errors import ParameterError


@click.command(
    cls=Command,
    example="matrixdp design --schema schema.toml --query correlation --records 10000 --epsilon 1 --delta 1e-6",
)
@design_options
@method_options
@click.option("--plot", type=PATH, help="Draw the noise ellipse of two features and all standard deviations, as SVG.")
@click.option("--features", metavar="NAME,NAME", help="The two features of the ellipse. [default: the first two]")
@ledger_options("Show what would be left in this ledger.", "would pay")
@json_option
def design(schema: Path, plot: Path | None, features: str | None, as_json: bool, **options: Any) -> None:
    """Show how accurate a release would be and what it would cost. Reads no data."""
    from matrixdp.cli.design_text import draw_plot, print_design, print_fit
    from matrixdp.domain.schema_file import read_schema
    from matrixdp.release.plan import plan, refuse_extremes
    from matrixdp.release.request import Request

    asked, payment = split_request(options)
    made = plan(Request.parse(read_schema(schema), asked))
    if made.adaptive and (plot is not None or features is not None):
        raise ParameterError("--plot and --features show the noise of a plain release: add --method plain.")
    warn_about_delta(made.request.privacy, made.records)
    left = None
    if payment["ledger"] is not None:
        left = preview_ledger(payment["ledger"], require_dataset(payment["dataset"]), made, payment["allowance"])
    if made.design is None:
        print_fit(made, left, as_json=as_json)
        return
    with refuse_extremes():
        if plot is not None:
            draw_plot(made.design, plot, features)
        print_design(made, made.design, left, plot, as_json=as_json)
