"""``matrixdp release``: a private matrix from a table."""

from __future__ import annotations

from typing import Any

import click

from matrixdp.cli.options import (
    LEDGER,
    PATH,
    author_options,
    delimiter_option,
    design_options,
    json_option,
    method_options,
    name_option,
    request_option,
    split_options,
)
from matrixdp.cli.styles import Command


@click.command(
    cls=Command,
    example="matrixdp release clinic.parquet --schema schema.toml --query covariance --epsilon 1 --delta 1e-6 \\\n"
    "  --ledger clinic.db --dataset clinic --out out/",
)
@click.argument("data", type=click.Path(), nargs=-1, required=True)
@design_options
@method_options
@click.option("--ledger", type=LEDGER, metavar="PATH|URL", help="The ledger that the release is charged to.")
@name_option("--dataset", help="Name of the data set in the ledger.")
@name_option("--allowance", help="The allowance of the data set that pays. [default: what is not allotted]")
@click.option(
    "--ledger-timeout",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    help="Seconds to wait while another process uses the ledger.",
)
@author_options
@click.option(
    "--anchor-to",
    type=PATH,
    help="File to which the number and hash of the charge are appended, so that a roll-back of the ledger shows.",
)
@click.option(
    "--anchor-command",
    metavar="COMMAND",
    help="Command to run after the charge, with its number and hash (ENTRY:HASH) as last argument.",
)
@click.option("--no-ledger", is_flag=True, help="Release without a ledger. The report warns that no total is kept.")
@request_option("id")
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    help="Seconds to wait for another process that releases the same --request.",
)
@click.option("--out", type=PATH, required=True, help="Folder for the release. It appears when it is complete.")
@click.option("--force", is_flag=True, help="Replace an existing folder.")
@request_option("missing")
@click.option(
    "--workers",
    metavar="NUMBER|ADDRESS",
    help="Number of threads, or the scheduler of a Dask cluster (tcp://host:8786). [default: one thread per core]",
)
@delimiter_option
@json_option
def release(no_ledger: bool, **options: Any) -> None:
    """Release a private matrix of the table DATA.

    DATA is one or more CSV, Excel, Parquet or Feather files, a folder of them, or a pattern. They are read in bounded
    memory, then the ledger is charged, then noise is drawn. Values outside their bounds are moved to the bounds.
    A large noisy data set (--query identity) is written as a set of Parquet files.
    """
    if options["ledger"] is None and not no_ledger:
        raise click.UsageError(
            "--ledger must be given, so that the total spent is known. Create one: matrixdp ledger new clinic.db ... "
            "To release without one, add --no-ledger."
        )
    if options["ledger"] is not None and no_ledger:
        raise click.UsageError("--ledger and --no-ledger cannot be used together.")
    if no_ledger and options["allowance"] is not None:
        raise click.UsageError("--allowance must be left out with --no-ledger: it is a part of a ledger's total.")
    if no_ledger and options["request"] is not None:
        raise click.UsageError("--request must be left out with --no-ledger: the ledger stores releases by their ids.")
    anchors = [options["anchor_to"], options["anchor_command"]]
    if no_ledger and anchors != [None, None]:
        raise click.UsageError("--anchor-to and --anchor-command must be left out with --no-ledger.")
    if None not in anchors:
        raise click.UsageError("--anchor-to and --anchor-command cannot be used together.")
    from matrixdp.cli.actions.design_options import DesignOptions
    from matrixdp.cli.actions.release import ReleaseOptions, run_release

    chosen, rest = split_options(options, DesignOptions)
    run_release(chosen, ReleaseOptions(**rest))
