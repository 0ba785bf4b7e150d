"""``matrixdp release``: a private matrix from a table."""

from __future__ import annotations

from typing import Any

import click

from matrixdp.cli.options import PATH, delimiter_option, design_options, json_option, parse_delimiter, split_options
from matrixdp.cli.styles import Command


@click.command(
    cls=Command,
    example="matrixdp release clinic.parquet --schema schema.toml --query covariance --epsilon 1 --delta 1e-6 \\\n"
    "  --ledger clinic.db --dataset clinic --out out/",
)
@click.argument("data", type=click.Path(), nargs=-1, required=True)
@design_options
@click.option("--ledger", type=PATH, help="The ledger that the release is charged to.")
@click.option("--dataset", help="Name of the data set in the ledger.")
@click.option(
    "--ledger-timeout",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    help="Seconds to wait while another process holds the ledger.",
)
@click.option("--no-ledger", is_flag=True, help="Release although nobody adds up what is spent; the report says so.")
@click.option("--request", help="An id: asked for again, the same release is given back at no cost.")
@click.option("--out", type=PATH, required=True, help="Folder for the release; it appears when it is complete.")
@click.option("--force", is_flag=True, help="Put the release in the place of a folder that is there already.")
@click.option(
    "--missing",
    type=click.Choice(("error", "midpoint")),
    default="error",
    show_default=True,
    help="What empty, NaN and infinite entries are.",
)
@click.option(
    "--workers",
    metavar="NUMBER|ADDRESS",
    help="Threads, or the scheduler of a Dask cluster (tcp://host:8786). [default: one thread a core]",
)
@delimiter_option
@json_option
def release(**options: Any) -> None:
    """Release a private matrix of the table DATA: CSV, Parquet or Feather files, a folder or a pattern.

    The data are read in bounded memory, the ledger is charged, and only then is noise drawn. Values outside their
    bounds are moved to the bounds. A large data set with noise (--query identity) is written as a set of Parquet files.
    """
    if (options["ledger"] is None) != options.pop("no_ledger"):
        raise click.UsageError(
            "--ledger must be given, so that what is spent is added up. Make one: matrixdp ledger new clinic.db ... "
            "To release without one, say --no-ledger."
            if options["ledger"] is None
            else "--ledger and --no-ledger exclude each other."
        )
    from matrixdp.cli.design_options import Asked
    from matrixdp.cli.release_command import run_release
    from matrixdp.cli.release_options import Job

    asked, rest = split_options(options)
    rest["delimiter"] = parse_delimiter(rest["delimiter"])
    run_release(Asked(**asked), Job(**rest))
