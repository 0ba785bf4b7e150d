"""``matrixdp design`` predicts the errors of a release, ``release`` makes it, ``plan`` finds releases for errors."""

from __future__ import annotations

import logging
import sys
import uuid
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from matrixdp.cli import options as flags
from matrixdp.cli.exits import DeferredInterrupts, ExitCode
from matrixdp.cli.ledger import open_account, preview_ledger
from matrixdp.errors import ParameterError
from matrixdp.release.options import MOST_STORED, name_flag

if TYPE_CHECKING:
    from matrixdp.domain.schema import Schema
    from matrixdp.privacy import Privacy
    from matrixdp.records.files import Files
    from matrixdp.release.charging import Account
    from matrixdp.release.plan import Plan
    from matrixdp.release.request import Request
    from matrixdp.report.release_folder import ReleaseFolder


_paying = flags.combine_options(
    flags.charge_options,
    click.option(
        "--wait",
        type=click.FloatRange(min=0),
        default=30.0,
        help="Seconds to wait for another process that uses the ledger, or releases the same --request.",
    ),
)
_force = click.option("--force", is_flag=True, help="Replace an existing folder.")
_reading = flags.combine_options(_force, flags.request_option("missing"), flags.file_options)


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
def design(schema: Schema, plot: Path | None, features: str | None, as_json: bool, **options: Any) -> None:
    """Show how accurate a release would be and what it would cost. Reads no data."""
    from matrixdp.cli.release_text import draw_plot, print_design
    from matrixdp.release.plan import plan, refuse_extremes

    request, payment = parse_request(schema, options)
    made = plan(request)
    if made.adaptive and (plot is not None or features is not None):
        raise ParameterError("--plot and --features show the noise of a plain release: add --method plain.")
    warn_about_delta(made.request.privacy, made.records)
    left = preview_ledger(made, **payment)
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
@_paying
@click.option("--no-ledger", is_flag=True, help="Release without a ledger. The report warns that no total is kept.")
@flags.request_option("id")
@click.option("--out", type=flags.PATH, required=True, help="Folder for the release. It appears when it is complete.")
@_reading
@flags.json_option
def release(data: tuple[str, ...], schema: Schema, out: Path, as_json: bool, **options: Any) -> None:
    """Release a private matrix of the table DATA.

    DATA is one or more CSV, Excel, Parquet or Feather files, a folder of them, a pattern, or a table in a database
    (postgresql://USER@HOST/DATABASE?table=NAME, duckdb:///FILE?table=NAME, sqlite:///FILE?table=NAME). Records are read
    in bounded memory, then the ledger is charged, then noise is drawn. Values outside their bounds are moved to the
    bounds.
    A large noisy data set (--query identity) is written as a set of Parquet files.
    """
    writing = {name: options.pop(name) for name in ("force", "workers")}
    sql = options.pop("sql")
    check_payment(options.pop("no_ledger"), options)
    from matrixdp.cli.release_text import print_release
    from matrixdp.release.plan import plan
    from matrixdp.release.run import count_units

    source = _open_source(data, schema, sql, out, options)
    request, payment = parse_request(schema, options)
    made = plan(request, lambda: count_units(request, source))
    warn_about_delta(made.request.privacy, made.records)
    folder, _ = _write(made, source, out, payment, quiet=as_json, **writing)
    with flags.output_after_work():
        print_release(folder, out, as_json=as_json)


@click.command(
    "plan",
    cls=flags.Command,
    example="matrixdp plan --want 'means of stay by ward ± 0.5' --want 'table of ward and smoker ± 20' \\\n"
    "  --schema schema.toml --ledger clinic.db --dataset clinic",
)
@click.argument("questions", type=flags.PATH, required=False)
@click.option(
    "--want",
    "wants",
    multiple=True,
    metavar="'QUESTION of COLUMNS ± ERROR'",
    help="A question and the error that its numbers may have, as in 'means of stay by ward ± 0.5'; several times for "
    "several. The questions are means, table, covariance, correlation, and 'regression of stay on age, ward ± 0.1'.",
)
@flags.schema_option
@flags.ledger_options("The ledger whose data set pays.", "would pay")
@flags.request_option("records")
@flags.request_option("rows")
@click.option(
    "--run",
    "data",
    type=click.Path(),
    multiple=True,
    metavar="DATA",
    help="Make the releases from this table, if all fit; DATA is as for release, several times for several files.",
)
@click.option("--out", type=flags.PATH, help="With --run: folder in which each release has a folder of its own.")
@_paying
@flags.text_option(
    "--request",
    default="plan",
    help="Begins the ids of the releases. The same releases with the same one are charged once.",
)
@_reading
@flags.json_option
def plan_questions(
    questions: Path | None, wants: tuple[str, ...], schema: Schema, as_json: bool, **options: Any
) -> ExitCode | None:
    """Find the cheapest releases that reach wanted errors, within what a ledger has left.

    QUESTIONS is a TOML file with a list of wants, as in want = ["means of stay ± 0.5"]; --want adds others. An error is
    one standard deviation of the privacy noise, in the unit of the numbers. It is predicted as by design, for typical
    data, and no data are read. With --run the releases are made; nothing is charged unless all of them fit.
    """
    from matrixdp.cli.release_text import collect_release, collect_wants, print_wants
    from matrixdp.report.wants import Want, price_wants, read_wants

    run = {name: options.pop(name) for name in ("data", "out", "force", "workers", "sql")}
    asked, payment = flags.split_request(options)
    prefix = asked.pop("request")
    if payment["ledger"] is None:
        raise click.UsageError("--ledger must be given: a plan is made for what is left in it.")
    check_payment(False, options)
    if bool(run["data"]) != (run["out"] is not None):
        raise click.UsageError("--run and --out must be given together.")
    wanted = [*(() if questions is None else read_wants(questions)), *map(Want.parse, wants)]
    with open_account(**payment) as account:
        assert account is not None  # as a ledger is given
        priced = price_wants(wanted, schema, account, prefix, asked)
    warn_about_delta((first := priced.releases[0].plan).request.privacy, first.records)
    facts = collect_wants(priced)
    if not as_json:
        print_wants(priced)
    if priced.problem is not None:
        if as_json:
            flags.echo_json(facts)
        raise priced.problem
    made = 0
    for place, folder in _run_plans([one.plan for one in priced.releases], payment, **run, quiet=as_json):
        facts["releases"][made]["released"] = collect_release(folder, place)
        made += 1
        with flags.output_after_work():
            if not as_json:
                click.echo(f"Released {made} of {len(priced.releases)}: {place / 'report.html'}")
    with flags.output_after_work():
        if as_json:
            flags.echo_json(facts)
    return ExitCode.INTERRUPTED if run["data"] and made < len(priced.releases) else None


def parse_request(schema: Schema, options: dict[str, Any]) -> tuple[Request, dict[str, Any]]:
    """The request, by default with the neighbours of the data set in the ledger, and what pays for it."""
    from matrixdp.release.request import Request

    asked, payment = flags.split_request(options)
    if asked["neighbours"] is None and payment["dataset"] is not None:
        with open_account(**payment) as account:
            registered = () if account is None else account.ledger.datasets()
        named = {one.dataset: str(one.neighbours) for one in registered}
        asked["neighbours"] = named.get(payment["dataset"])
    return Request.parse(schema, asked), payment


def _open_source(data: tuple[str, ...], schema: Schema, sql: str | None, out: Path, payment: dict[str, Any]) -> Files:
    """The tables to be read; neither they nor other files that the command needs are in the output folder."""
    from matrixdp.records.files import open_files
    from matrixdp.release.output_folder import refuse_inside

    source = open_files(data, rules=schema.rules, sql=sql)
    source.check_output(out)
    refuse_inside(out, (schema.path, payment["anchor_to"], payment["ledger"]))
    return source


def _run_plans(
    plans: list[Plan], payment: dict[str, Any], data: tuple[str, ...], out: Path, sql: str | None, **writing: Any
) -> Iterator[tuple[Path, ReleaseFolder]]:
    """Make each release in a folder of its own, after it was tried whether all can be read and written.

    An interrupt ends it after the release that was charged.
    """
    from matrixdp.release.output_folder import OutputFolder
    from matrixdp.release.plan import plan
    from matrixdp.release.run import count_units, open_data

    if not data:
        return
    source = _open_source(data, plans[0].request.schema, sql, out, payment)
    # A guess of a public number was for forecasts alone: it is counted now.
    plans = [plan(one.request, partial(count_units, one.request, source)) for one in plans]
    places = [out / f"{number}-{made.request.question}" for number, made in enumerate(plans, start=1)]
    for made, place in zip(plans, places, strict=True):
        open_data(made, source)
        with OutputFolder(place, force=writing["force"]):
            pass
    for made, place in zip(plans, places, strict=True):
        folder, interrupted = _write(made, source, place, payment, **writing)
        yield place, folder
        if interrupted:
            return


def _write(
    made: Plan, source: Files, out: Path, payment: dict[str, Any], *, force: bool, workers: str | None, quiet: bool
) -> tuple[ReleaseFolder, bool]:
    """Release a plan into a folder, and whether there was an interrupt; a bar shows the progress, unless `quiet`."""
    from matrixdp.report.release_folder import write_release

    label = f"reading {Path(source.files[0].place).name}"
    hidden = quiet or not made.public_progress  # a bar would show a private number of records
    with (
        DeferredInterrupts() as interrupts,
        open_account(**payment) as account,
        flags.show_progress(made.records or 0, label, quiet=hidden) as progress,
    ):
        if account is not None and made.request.id is None:
            _remark_repeat(made, account)
            if made.entries <= MOST_STORED:
                made = replace(made, request=replace(made.request, id=f"release-{uuid.uuid4().hex[:12]}"))
        reading = {"workers": parse_workers(workers), "progress": progress, "ready": interrupts.defer}
        folder = write_release(made, source, out, account, force=force, **reading)
    with flags.output_after_work():
        if interrupts.pending:
            remark("interrupted after the charge, so the release was finished first.")
        if account is not None and not folder.outcome.charged:
            remark(f"{made.request.id} was released before; it was not charged again.")
        if folder.problem:
            remark(folder.problem)
    return folder, interrupts.pending


def _remark_repeat(made: Plan, account: Account) -> None:
    """Say, before the charge, that the same question was released before, and how to get that release."""
    from matrixdp.ledger.ledger import find_charges

    asked = made.request.question
    for charge in find_charges(account.ledger, account.dataset, made.description):
        same = (charge.options or {}).get("aim", asked) == asked
        if same and charge.released and charge.request is not None:
            remark(
                f"this question was released from {account.dataset} on {charge.time[:10]}; each release is charged. "
                "That release is stored; where the data are the same, get it at no cost with "
                f"--request {charge.request}"
            )
            return


def warn_about_delta(privacy: Privacy, records: int | None) -> None:
    """Warn on standard error, before anything is charged, if delta is above one over the number of records."""
    from matrixdp.privacy import describe_large_delta

    if message := "" if records is None else describe_large_delta(privacy, records):
        click.echo(f"matrixdp: {click.style('warning:', bold=True)} {message}", err=True)


def check_payment(no_ledger: bool, options: dict[str, Any]) -> None:
    """Raise unless either a ledger is named, or --no-ledger is given without what needs a ledger."""
    if options["ledger"] is None and not no_ledger:
        raise click.UsageError(
            "--ledger must be given, so that the total spent is known. Create one: matrixdp ledger new clinic.db ... "
            "To release without one, add --no-ledger."
        )
    for name in ("ledger", "allowance", "request", "anchor_to") if no_ledger else ():  # the ledger stores by requests
        if options.get(name) is not None:
            raise click.UsageError(f"{name_flag(name)} must be left out with --no-ledger.")


def remark(text: str) -> None:
    """Say something on the standard error stream."""
    sys.stderr.write(f"matrixdp: {text}\n")


def parse_workers(text: str | None) -> Any:
    """A number of threads, or the address of a cluster."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # an EngineError reports what went wrong
    return int(text) if text is not None and text.isdecimal() and len(text) < 10 else text
