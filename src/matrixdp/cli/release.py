"""``matrixdp design`` shows how accurate a release would be; ``matrixdp release`` makes it from a table."""

from __future__ import annotations

import logging
import shlex
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from matrixdp.cli import options as flags
from matrixdp.cli.exits import DeferredInterrupts
from matrixdp.cli.ledger import find_neighbours, open_ledger, preview_ledger, require_dataset
from matrixdp.errors import LedgerError, ParameterError
from matrixdp.release.options import MOST_STORED

if TYPE_CHECKING:
    from matrixdp.ledger import Head
    from matrixdp.ledger.location import Location
    from matrixdp.release.charging import Account
    from matrixdp.release.plan import Plan


@click.command(
    cls=flags.Command,
    example="matrixdp design --schema schema.toml --query correlation --records 10000 --epsilon 1 --delta 1e-6",
)
@flags.design_options
@flags.method_options
@click.option(
    "--plot", type=flags.PATH, help="Draw the noise ellipse of two features and all standard deviations, as SVG."
)
@click.option("--features", metavar="NAME,NAME", help="The two features of the ellipse. [default: the first two]")
@flags.ledger_options("Show what would be left in this ledger.", "would pay")
@flags.json_option
def design(schema: Path, plot: Path | None, features: str | None, as_json: bool, **options: Any) -> None:
    """Show how accurate a release would be and what it would cost. Reads no data."""
    from matrixdp.cli.release_text import draw_plot, print_design
    from matrixdp.domain.schema_file import read_schema
    from matrixdp.release.plan import plan, refuse_extremes
    from matrixdp.release.request import Request

    asked, payment = flags.split_request(options)
    asked["neighbours"] = asked["neighbours"] or find_neighbours(options["ledger"], options["dataset"])
    made = plan(Request.parse(read_schema(schema), asked))
    if made.adaptive and (plot is not None or features is not None):
        raise ParameterError("--plot and --features show the noise of a plain release: add --method plain.")
    _warn_about_delta(made)
    left = None
    if payment["ledger"] is not None:
        left = preview_ledger(payment["ledger"], require_dataset(payment["dataset"]), made, payment["allowance"])
    with refuse_extremes():
        if plot is not None and made.design is not None:
            draw_plot(made.design, plot, features)
        print_design(made, left, plot, as_json=as_json)


@click.command(
    cls=flags.Command,
    example="matrixdp release clinic.parquet --schema schema.toml --query covariance --epsilon 1 --delta 1e-6 \\\n"
    "  --ledger clinic.db --dataset clinic --out out/",
)
@click.argument("data", type=click.Path(), nargs=-1, required=True)
@flags.design_options
@flags.method_options
@flags.ledger_options("The ledger that the release is charged to.", "pays")
@click.option(
    "--ledger-timeout",
    type=click.FloatRange(min=0),
    default=30.0,
    help="Seconds to wait while another process uses the ledger.",
)
@flags.author_options
@click.option(
    "--anchor-to",
    type=flags.PATH,
    help="File to which the number and hash of the charge are appended, so that a roll-back of the ledger shows.",
)
@click.option(
    "--anchor-command",
    metavar="COMMAND",
    help="Command to run after the charge, with its number and hash (ENTRY:HASH) as last argument.",
)
@click.option("--no-ledger", is_flag=True, help="Release without a ledger. The report warns that no total is kept.")
@flags.request_option("id")
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=30.0,
    help="Seconds to wait for another process that releases the same --request.",
)
@click.option("--out", type=flags.PATH, required=True, help="Folder for the release. It appears when it is complete.")
@click.option("--force", is_flag=True, help="Replace an existing folder.")
@flags.request_option("missing")
@click.option(
    "--workers",
    metavar="NUMBER|ADDRESS",
    help="Number of threads, or the scheduler of a Dask cluster (tcp://host:8786). [default: one thread per core]",
)
@flags.delimiter_option
@flags.sql_option
@flags.json_option
def release(
    data: tuple[str, ...],
    schema: Path,
    out: Path,
    force: bool,
    delimiter: str | None,
    sql: str | None,
    workers: str | None,
    as_json: bool,
    no_ledger: bool,
    **options: Any,
) -> None:
    """Release a private matrix of the table DATA.

    DATA is one or more CSV, Excel, Parquet or Feather files, a folder of them, a pattern, or a table in a database
    (postgresql://USER@HOST/DATABASE?table=NAME, duckdb:///FILE?table=NAME, sqlite:///FILE?table=NAME). Records are read
    in bounded memory, then the ledger is charged, then noise is drawn. Values outside their bounds are moved to the
    bounds.
    A large noisy data set (--query identity) is written as a set of Parquet files.
    """
    _check_payment(no_ledger, options)
    from matrixdp.cli.release_text import print_release
    from matrixdp.domain.schema_file import read_schema
    from matrixdp.records.files import open_files
    from matrixdp.release.output_folder import refuse_inside
    from matrixdp.release.plan import plan
    from matrixdp.release.request import Request
    from matrixdp.release.run import count_units
    from matrixdp.report.release_folder import write_release

    asked, payment = flags.split_request(options)
    found = read_schema(schema)
    source = open_files(data, delimiter=delimiter, rules=found.rules, sql=sql)
    source.check_output(out)
    needed = (schema, options["anchor_to"], options["ledger"])
    refuse_inside(out, [path for path in needed if isinstance(path, Path)])
    asked["neighbours"] = asked["neighbours"] or find_neighbours(options["ledger"], options["dataset"])
    request = Request.parse(found, asked)
    made = plan(request, lambda: count_units(request, source))
    _warn_about_delta(made)
    label = f"reading {Path(source.files[0].place).name}"
    hidden = as_json or not made.public_progress  # a bar would show a private number of records
    with (
        DeferredInterrupts() as interrupts,
        _open_account(**payment) as account,
        flags.show_progress(made.records or 0, label, quiet=hidden) as progress,
    ):
        folder = write_release(
            made if account is None else _name_request(made),
            source,
            out,
            account,
            force=force,
            workers=_parse_workers(workers),
            progress=progress,
            ready=interrupts.defer,
        )
    with flags.output_after_work():
        if interrupts.pending:
            _remark("interrupted after the charge, so the release was finished first.")
        if account is not None and not folder.outcome.charged:
            _remark(f"{request.id} was released before; it was not charged again.")
        if folder.problem:
            _remark(folder.problem)
        print_release(folder, out, as_json=as_json)


def _warn_about_delta(made: Plan) -> None:
    """Warn on standard error, before anything is charged, if delta is above one over the number of records."""
    from matrixdp.privacy import describe_large_delta

    message = "" if made.records is None else describe_large_delta(made.request.privacy, made.records)
    if message:
        click.echo(f"matrixdp: {click.style('warning:', bold=True)} {message}", err=True)


def _check_payment(no_ledger: bool, options: dict[str, Any]) -> None:
    """Raise unless either a ledger is named, or --no-ledger is given without what needs a ledger."""
    ledger, anchors = options["ledger"] is not None, [options["anchor_to"], options["anchor_command"]]
    wrong = {
        "--ledger must be given, so that the total spent is known. Create one: matrixdp ledger new clinic.db ... To "
        "release without one, add --no-ledger.": not ledger and not no_ledger,
        "--ledger and --no-ledger cannot be used together.": ledger and no_ledger,
        "--allowance must be left out with --no-ledger: it is a part of a ledger's total.": no_ledger
        and options["allowance"] is not None,
        "--request must be left out with --no-ledger: the ledger stores releases by their ids.": no_ledger
        and options["request"] is not None,
        "--anchor-to and --anchor-command must be left out with --no-ledger.": no_ledger and anchors != [None, None],
        "--anchor-to and --anchor-command cannot be used together.": None not in anchors,
    }
    for message, is_wrong in wrong.items():
        if is_wrong:
            raise click.UsageError(message)


def _remark(text: str) -> None:
    sys.stderr.write(f"matrixdp: {text}\n")


def _name_request(made: Plan) -> Plan:
    """The plan with a new request id, unless it has one or is too large to be stored."""
    if made.request.id is not None or made.entries > MOST_STORED:
        return made
    return replace(made, request=replace(made.request, id=f"release-{uuid.uuid4().hex[:12]}"))


@contextmanager
def _open_account(
    ledger: Location | None,
    dataset: str | None,
    allowance: str | None,
    ledger_timeout: float,
    anchor_to: Path | None,
    anchor_command: str | None,
    **author: Any,
) -> Iterator[Account | None]:
    """What pays for the release; None without a ledger."""
    from matrixdp.release.charging import Account

    if ledger is None:
        yield None
        return
    name = require_dataset(dataset)
    anchor = anchor_to if anchor_command is None else _make_anchor(anchor_command)
    with open_ledger(ledger, timeout=ledger_timeout, anchor=anchor, **author) as opened:
        yield Account(opened, name, allowance=allowance)


def _parse_workers(text: str | None) -> Any:
    """A number of threads, or the address of a cluster."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # an EngineError reports what went wrong
    return int(text) if text is not None and text.isdecimal() and len(text) < 10 else text


def _make_anchor(command: str) -> Callable[[Head], object]:
    """A function that runs the command of --anchor-command with an anchor."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ParameterError(f"--anchor-command must be a command line: {error}.") from None
    if not words or shutil.which(words[0]) is None:
        raise ParameterError(f"--anchor-command must name a program that can be run, got {command!r}.")

    def run(head: Head) -> None:
        done = subprocess.run([*words, f"{head.entry}:{head.hash}"], stdout=subprocess.DEVNULL, check=False)  # noqa: S603
        if done.returncode != 0:
            raise LedgerError(
                f"entry {head.entry} was charged, but --anchor-command failed with code {done.returncode}. Nothing was "
                "released."
            )

    return run
