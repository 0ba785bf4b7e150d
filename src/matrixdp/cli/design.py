"""``matrixdp design``: how accurate a release would be."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from matrixdp.cli.ledger import open_ledger, require_dataset
from matrixdp.cli.options import PATH, design_options, json_option, ledger_options, method_options, split_request
from matrixdp.cli.output import Command, warn_about_delta
from matrixdp.errors import ParameterError

if TYPE_CHECKING:
    from matrixdp.cli.design_text import Left
    from matrixdp.ledger.location import Location
    from matrixdp.release.plan import Plan


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
    left = _preview_ledger(made, **payment)
    if made.design is None:
        print_fit(made, left, as_json=as_json)
        return
    with refuse_extremes():
        if plot is not None:
            draw_plot(made.design, plot, features)
        print_design(made, made.design, left, plot, as_json=as_json)


def _preview_ledger(made: Plan, ledger: Location | None, dataset: str | None, allowance: str | None) -> Left:
    """Epsilon in the ledger, now and after the release."""
    if ledger is None:
        return None
    name = require_dataset(dataset)
    with open_ledger(ledger) as opened:
        before = opened.remaining(name, allowance=allowance)
        after = opened.whatif(name, made, allowance=allowance)
    return before.epsilon, after.epsilon
