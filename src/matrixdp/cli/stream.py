"""``matrixdp stream``: a release for each night, week or month, charged once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from matrixdp.cli import options as flags
from matrixdp.cli.answer import find_public_file, find_stream_rules, stream_argument
from matrixdp.cli.exits import DeferredInterrupts, ExitCode
from matrixdp.cli.ledger import name_left, open_account, preview_ledger
from matrixdp.cli.release import check_payment, parse_request, parse_workers, warn_about_delta
from matrixdp.errors import ParameterError
from matrixdp.release.options import STREAM_OPTION, split_names

if TYPE_CHECKING:
    from matrixdp.domain.schema import Schema
    from matrixdp.release.request import Request
    from matrixdp.release.stream import MatrixStream, PublishedStream
    from matrixdp.release.stream_plan import StreamPlan


@click.group(cls=flags.Group)
def stream() -> None:
    """Publish a matrix for each night, week or month, and pay once.

    Anybody can read each period, every sum of consecutive periods, and the total so far.
    """


_ASKED = ("question", "epsilon", "delta", "records", "neighbours", "person", "rows", "importance", "shapes", "bins",
          "columns", "by", "cells", "target", "on", "missing")  # fmt: skip
_design_options = flags.combine_options(flags.schema_option, *map(flags.request_option, (*_ASKED, *STREAM_OPTION)))
_name = click.argument("name", type=flags.PATH)
_charged_to = flags.combine_options(
    click.option("--ledger", type=flags.LEDGER, metavar="PATH|URL", help="The ledger that the stream was charged to."),
    flags.text_option("--dataset", help="Name of the data set in the ledger."),
    flags.author_options,
)


def _plan(schema: Schema, options: dict[str, Any]) -> tuple[Request, StreamPlan, dict[str, Any]]:
    """The request that each step answers, the plan of the stream, and what pays for it."""
    from matrixdp.release.plan import plan_stream

    own = {name: options.pop(name) for name in STREAM_OPTION}
    request, payment = parse_request(schema, options)
    plan = plan_stream(request, **own)
    warn_about_delta(request.privacy, getattr(plan.query, "records", None))
    return request, plan, payment


def _collect_plan(plan: StreamPlan) -> dict[str, Any]:
    """The facts of a plan, as JSON content."""
    query: Any = plan.query
    asked = {"query": query.title, "records": query.records, "epsilon": plan.privacy.epsilon}
    asked |= {"delta": plan.privacy.delta, "neighbours": str(plan.neighbours), "unit": str(plan.unit)}
    asked |= {name: getattr(plan, name) for name in (*STREAM_OPTION, "beta", "kappa", "mu", "promises")}
    return {**asked, "noise": [row._asdict() for row in plan.compare()]}


@stream.command(
    "design",
    example="matrixdp stream design --schema ward.toml --query everything --records 600 \\\n"
    "  --every week --when admitted --epsilon 1 --delta 1e-6",
)
@_design_options
@flags.ledger_options("Show what would be left in this ledger.", "would pay")
@flags.json_option
def design(schema: Schema, as_json: bool, **options: Any) -> None:
    """Show the noise of a period, of several and of the total, and what it would cost. Reads no data.

    --records, or expected_records in the schema, is a guess of the number in one period.
    """
    from matrixdp.cli.release_text import tabulate_medians
    from matrixdp.release.plan import Plan
    from matrixdp.report.forecast import predict

    request, plan, payment = _plan(schema, options)
    left = preview_ledger(plan.event, **payment)
    if as_json:
        flags.echo_json(_collect_plan(plan) | ({} if left is None else {"ledger": name_left(left)}))
        return
    click.echo(str(plan))
    predicted = {}
    for window in sorted({1, min(4, plan.horizon), plan.horizon}):
        made = plan.scaled_design(window, plan.noise(window))
        last = Plan(request, getattr(made.query, "records", None), made.query, made, None)
        predicted[plan.name_window(window)] = predict(last, ("typical",))["typical"]
    count = f"{getattr(plan.query, 'records', 0):,} {plan.query.count_word}"
    title = f"Median error for typical data, if a period has about {count}"
    flags.echo_section(title, tabulate_medians(last, predicted))
    if left is not None:
        words = f"epsilon {left[0].epsilon:.4g} is left, and {left[1].epsilon:.4g} would be left once it is open"
        flags.echo_section("Cost in the ledger", f"  {words}")


@stream.command(
    "open",
    example="matrixdp stream open ward --schema ward.toml --query everything --every week --when admitted \\\n"
    "  --epsilon 1 --delta 1e-6 --ledger clinic.db --dataset clinic",
)
@_name
@_design_options
@flags.ledger_options("The ledger that the stream is charged to.", "pays")
@flags.charge_options
@click.option("--no-ledger", is_flag=True, help="Open it without a ledger: no total is kept.")
@flags.json_option
def open_stream(name: Path, schema: Schema, no_ledger: bool, as_json: bool, **options: Any) -> None:
    """Charge a stream, once, and create its files.

    They are NAME.state, which is private and must be kept; NAME.json, which is public and has all that is published;
    and NAME.schema.toml, a copy of the schema. A stream that was opened before with the same options is not charged
    again.
    """
    check_payment(no_ledger, options)
    from matrixdp.release.output_folder import write_file
    from matrixdp.release.stream import name_request

    _, plan, payment = _plan(schema, options)
    public, copy = find_public_file(name), name.with_name(f"{name.name}.schema.toml")
    before = public.exists()
    if not before:  # also tries whether the folder can be written
        write_file(copy, schema.path.read_bytes())
    try:
        with open_account(**payment) as account:
            paid: dict[str, Any] = {} if account is None else {"ledger": account.ledger, "dataset": account.dataset}
            charged = account is not None and not replace(account, request=name_request(name.name)).was_charged()
            opened = plan.open(str(name), **paid, allowance=options["allowance"])
    except BaseException:
        if not public.exists():
            copy.unlink(missing_ok=True)
        raise
    with flags.output_after_work():
        if as_json:
            facts = {"stream": str(name), "opened_before": before, "charged": charged, "steps": list(opened.steps)}
            flags.echo_json({**facts, **_collect_plan(plan)})
            return
        if before:
            click.echo(f"{name} was opened before{'' if charged else '; it was not charged again'}.")
        click.echo(f"{plan}\n\nPrivate, keep it: {name}.state\nPublic: {name}.json and {copy}")


@contextmanager
def _open(name: Path, find: Any, **options: Any) -> Iterator[MatrixStream]:
    """A stream that was opened before, found with the ledger that it was charged to."""
    with open_account(**options) as account:
        yield find(name, ledger=None if account is None else account.ledger, dataset=options["dataset"])


@stream.command(
    "publish", example="matrixdp stream publish ward ward.csv --step 2031-w01 --ledger clinic.db --dataset clinic"
)
@_name
@click.argument("data", type=click.Path(), nargs=-1, required=True)
@click.option(
    "--step",
    metavar="NAME",
    help="The period, as in 2031-w01. [default: all that are over and were not published, after the first one]",
)
@_charged_to
@flags.file_options
@flags.json_option
def publish(name: Path, data: tuple[str, ...], step: str | None, as_json: bool, **options: Any) -> None:
    """Publish a period of the stream NAME from the table DATA. Costs nothing more.

    DATA is as for matrixdp release. The command can be repeated: a period that was published is returned as it is, and
    DATA are not read. If it was stopped anywhere, the same command finishes it with the same numbers.
    """
    from matrixdp.release.stream import MatrixStream

    reading = {"workers": parse_workers(options.pop("workers")), "sql": options.pop("sql")}
    reading["rules"], done = find_stream_rules(name), []
    finishing = DeferredInterrupts("the step is stored; finishing first.")
    with _open(name, MatrixStream.open, **options) as opened, finishing as interrupts:
        for one in [step] if step is not None else _list_due(opened):
            done.append({"step": one, "published_before": one in opened.steps})
            opened.publish(data[0] if len(data) == 1 else list(data), step=one, ready=interrupts.defer, **reading)
            if interrupts.pending:
                break
        facts = _collect_status(opened)
    with flags.output_after_work():
        if as_json:
            flags.echo_json({**facts, "published": done})
            return
        for period in done:
            again = "was published before; the data were not read" if period["published_before"] else "published"
            click.echo(f"{period['step']} {again}.")
        if not done:
            click.echo("Nothing to publish: all periods that are over were published.")
        _print_status(facts)


def _list_due(opened: MatrixStream) -> list[str]:
    """The periods that are over and were not published."""
    from matrixdp.records.periods import Period

    every, present = opened.plan.every, datetime.now()
    if opened.plan.when is None:
        raise ParameterError("--step must be given: the stream has no --when.", parameter="step")
    if not opened.steps:
        now = Period.of(present, every).name
        raise ParameterError(f"--step must be given: the first {every} to publish (this {every} is {now}).")
    return [one for one, ready in opened.upcoming(present) if ready <= present]


@stream.command("status", example="matrixdp stream status ward.json --alert-after '6 hours'")
@stream_argument
@click.option(
    "--alert-after",
    metavar="'6 hours'",
    help="Exit with code 9 if a period could have been published for longer than this and was not.",
)
@_charged_to
@flags.json_option
def status(stream: Path, alert_after: str | None, as_json: bool, **options: Any) -> ExitCode | None:
    """Show the periods that were published, and those that are missing.

    Reads the public file STREAM alone; with --ledger, also compares its periods with the hashes in the ledger.
    """
    from matrixdp.records.periods import parse_delay
    from matrixdp.release.stream import PublishedStream

    public = PublishedStream.open(find_public_file(stream))
    with open_account(**options) as account:
        if account is not None:
            public.verify(account.ledger, account.dataset)
    grace = None if alert_after is None else parse_delay(alert_after, "--alert-after")
    facts, present = _collect_status(public), datetime.now()
    waiting = [ready for _, ready in public.upcoming(present)] if public.steps else [datetime.min]
    late = grace is not None and any(ready < present - grace for ready in waiting)
    if as_json:
        flags.echo_json({**facts, "alert": late, "verified": account is not None})
    else:
        _print_status(facts)
        if account is not None:
            click.echo("The ledger has the same periods, with the same hashes.")
    return ExitCode.LATE if late else None


def _collect_status(public: PublishedStream) -> dict[str, Any]:
    present, privacy = datetime.now(), public.plan.privacy
    upcoming = public.upcoming(present)
    name, ready = upcoming[-1] if upcoming and upcoming[-1][1] > present else (None, None)
    following = {"next": name, "next_from": ready and ready.isoformat(sep=" ", timespec="minutes")}
    paid = {"mu": public.plan.mu, "epsilon": privacy.epsilon, "delta": privacy.delta}
    facts = {"stream": public.name, "steps": list(public.steps)}
    return {**facts, "missing": [one for one, ready in upcoming if ready <= present], **following, **paid}


def _print_status(facts: dict[str, Any]) -> None:
    from matrixdp.report.page import write_words

    click.echo("\n".join(write_words("stream_status", facts)))


@stream.command("report", example="matrixdp stream report ward.json --by ward --out ward.html")
@stream_argument
@click.option("--by", metavar="NAME", help="Also by the levels of this category.")
@flags.request_option("columns")
@click.option("--out", type=flags.PATH, required=True, help="The page, an HTML file.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
def report(stream: Path, by: str | None, columns: str | None, out: Path, force: bool) -> None:
    """Write a page with all periods of a stream: charts over time with error bars, totals, noise, guarantee."""
    from matrixdp.release.output_folder import write_file
    from matrixdp.release.stream import PublishedStream
    from matrixdp.report.stream_page import render_stream

    public = PublishedStream.open(find_public_file(stream))
    chosen = None if columns is None else split_names(columns)
    page = render_stream(public, by=by, columns=chosen, dates=find_stream_rules(stream).dates)
    write_file(out, page, option="out", overwrite=force)
    click.echo(f"Report: {out}")


@stream.command("restart", example="matrixdp stream restart ward --ledger clinic.db --dataset clinic")
@_name
@_charged_to
def restart(name: Path, **options: Any) -> None:
    """Continue a stream whose NAME.state was lost or is an older copy. Costs nothing.

    Totals then add the noise of both parts. Not for streams that protect people.
    """
    from matrixdp.release.stream import MatrixStream

    old = name.with_name(f"{name.name}.state").exists()
    with _open(name, MatrixStream.restart, **options) as made:
        kept = f" The old state is kept as {name}.state.*.old, and is as private as the data." * old
        click.echo(f"Restarted after {len(made):,} steps.{kept}")
