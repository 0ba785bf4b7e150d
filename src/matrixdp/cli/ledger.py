"""``matrixdp ledger``: what data sets may spend, what they have spent, and who may spend it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from matrixdp.cli import options as flags
from matrixdp.cli.exits import ExitCode
from matrixdp.errors import ParameterError

if TYPE_CHECKING:
    from matrixdp.domain.schema import Schema
    from matrixdp.ledger import Event, Ledger, Remaining
    from matrixdp.ledger.ledger import Chargeable
    from matrixdp.ledger.location import Location
    from matrixdp.release.charging import Account

_COPY_TIMEOUT = 3600.0  # seconds that either ledger may be locked while a long one is copied
_NOTED = ("request", "allowance", "actor", "purpose", "version")


def ledgers() -> type[Ledger]:
    """The class of ledgers, which is slow to import."""
    from matrixdp.ledger import Ledger

    return Ledger


@contextmanager
def open_account(
    ledger: Location | None,
    dataset: str | None,
    allowance: str | None = None,
    anchor_to: Path | None = None,
    wait: float = 30.0,
    **author: Any,
) -> Iterator[Account | None]:
    """What pays for a release, or has paid for a stream; None without a ledger."""
    from matrixdp.release.charging import Account

    if ledger is None:
        yield None
        return
    if dataset is None:
        raise ParameterError("--dataset must be given with --ledger: the name under which the data are registered.")
    with ledgers().open(ledger, timeout=wait, wait=wait, anchor=anchor_to, **author) as opened:
        yield Account(opened, dataset, allowance=allowance)


def preview_ledger(
    cost: Chargeable | Event, ledger: Location | None, dataset: str | None, allowance: str | None
) -> tuple[Remaining, Remaining] | None:
    """What is left of a data set's total, or of an allowance, now and after a charge; None without a ledger."""
    with open_account(ledger, dataset) as account:
        if account is None:
            return None
        name, book = account.dataset, account.ledger
        return book.remaining(name, allowance=allowance), book.whatif(name, cost, allowance=allowance)


def name_left(left: tuple[Remaining, Remaining]) -> dict[str, float]:
    """What is left now and after a charge, as JSON content."""
    return {"epsilon_left_before": left[0].epsilon, "epsilon_left_after": left[1].epsilon}


@click.group(cls=flags.Group)
def ledger() -> None:
    """Keep the total of what is spent on each data set."""


_QUESTION = (
    "May everybody know how many records (or people) the data have? If not, releases also protect whether somebody is "
    "in them at all, and use a public estimate of the number. It cannot be changed later."
)
_path = click.argument("path", metavar="LEDGER", type=flags.LEDGER)
_file = click.argument("file", metavar="FILE", type=flags.LEDGER)
_dataset = flags.text_option("--dataset", required=True, help="Name of the data set.")
_allowance = flags.text_option("--allowance", required=True, help="Name of the allowance: a person, a team, a project.")
_registration = (
    _path,
    _dataset,
    flags.epsilon_option,
    flags.delta_option,
    click.option(
        "--count",
        type=click.Choice(("public", "private")),
        help="Is the number of records (or people) public? If it is private, because it varies and must not be known, "
        "releases also protect whether somebody is in the data at all (add-remove neighbours). [default: public; on a "
        "terminal it is asked]",
    ),
    click.option(
        "--unit",
        type=click.Choice(("record", "person", "values", "edge", "node")),
        help="What all releases protect: one record (row), one person with all their rows, the values in them, one "
        "edge or one node. [default: record]",
    ),
    flags.text_option("--person", metavar="COLUMN", help="Protect persons: the column that says whose each row is."),
)


def _command(name: str, *parameters: Any, example: str) -> Callable[[Callable[..., str | None]], click.Command]:
    """A command that changes the ledger at ``path`` as the decorated function does, and then shows it.

    What the function returns is printed before, if it is not None.
    """

    def decorate(change: Callable[..., str | None]) -> click.Command:
        @wraps(change)
        def run(path: Location, as_json: bool, **options: Any) -> None:
            message = change(path, **options)
            with flags.output_after_work():
                if message is not None and not as_json:
                    click.echo(message)
                _print_ledger(path, as_json=as_json)

        options = flags.combine_options(*parameters, flags.author_options, flags.json_option)
        made: click.Command = ledger.command(name, example=example)(options(run))
        return made

    return decorate


@_command("new", *_registration, example="matrixdp ledger new clinic.db --dataset clinic --epsilon 4 --delta 1e-6")
def new(path: Location, **options: Any) -> None:
    """Create a LEDGER with one data set and its total budget.

    The total budget cannot be changed later.
    """
    _register(ledgers().create, path, **options)


@_command("add", *_registration, example="matrixdp ledger add clinic.db --dataset laboratory --epsilon 1 --delta 1e-6")
def add(path: Location, **options: Any) -> None:
    """Add another data set, with its total budget, to a LEDGER."""
    _register(ledgers().open, path, **options)


def _register(
    make: Callable[..., Ledger], path: Location, dataset: str, count: Any, unit: Any, person: str | None, **options: Any
) -> None:
    """Register a data set in the ledger that `make` opens or creates; --unit or --person says what it protects."""
    from matrixdp.privacy import Privacy, Unit

    privacy = Privacy(options.pop("epsilon"), options.pop("delta"))
    if count is None and sys.stdin.isatty() and sys.stderr.isatty():
        count = "public" if click.confirm(_QUESTION, default=True, err=True) else "private"
    neighbours = "add-remove" if count == "private" else "replace"
    if person is not None and unit not in (None, "person", "values"):
        raise ParameterError(f"--unit must be person or values with --person, or left out, got {unit!r} instead.")
    if unit in ("person", "values") and person is None:
        raise ParameterError(f"--person COLUMN must be given with --unit {unit}: the column that says whose a row is.")
    protected = Unit(unit or ("person" if person else "record"), person)
    with make(path, **options) as ledger:
        ledger.register(dataset, privacy, neighbours=neighbours, unit=protected)


@ledger.command("show", example="matrixdp ledger show clinic.db")
@_path
@flags.json_option
def show(path: Location, as_json: bool) -> None:
    """Show the total budgets in a LEDGER and what is left."""
    _print_ledger(path, as_json=as_json)


def _print_ledger(path: Location, *, as_json: bool) -> None:
    """Print the total of every data set and what is left of it."""
    with ledgers().open(path) as ledger:
        found, head, unnoticed = ledger.summaries(), ledger.head, ledger.blind_spots
    if as_json:
        datasets = []
        for one in found:
            facts = asdict(one)
            registration = facts.pop("registration") | {"unit": str(one.registration.unit)}
            datasets.append(registration | facts)
        shown = {"ledger": str(path), "datasets": datasets, "head": vars(head)}
        flags.echo_json(shown | ({"unnoticed": unnoticed} if unnoticed else {}))
        return
    rows, allowances = [], []
    for one in found:
        of, privacy = one.registration, one.registration.privacy
        words = [str(of.neighbours), str(of.unit), str(one.counts.charges), str(one.counts.unfinished)]
        rows.append([of.dataset, f"{privacy.epsilon:g}", f"{privacy.delta:g}", *words, *_write_left(one.left)])
        for part in one.allowances:
            left = ["returned", ""] if part.returned else _write_left(part.left)
            whose = ", ".join(part.payers) or "everybody"
            allowances.append([part.name, of.dataset, whose, f"{part.epsilon:.4g}", *left])
    names = ["data set", "epsilon", "delta", "neighbours", "protects", "charges", "unfinished"]
    flags.echo_table([*names, "epsilon left", "mu left"], rows)
    if allowances:
        click.echo()
        flags.echo_table(["allowance", "data set", "for", "epsilon", "epsilon left", "mu left"], allowances)
    for one in found:
        if one.restored_from is not None:
            name = one.registration.dataset
            click.echo(
                f"{name} was restored from a backup that ends at entry {one.restored_from}. Say what was spent since: "
                f"matrixdp ledger settle {path} --dataset {name} --spent EPSILON (or --all)"
            )
    for what in unnoticed:
        click.echo(
            f"This file system does not show {what}, so a total could be spent again. Keep an anchor where others "
            "cannot change it: matrixdp release --anchor-to FILE"
        )


def _write_left(left: Remaining) -> list[str]:
    return [f"{left.epsilon:.4g}", f"{left.mu:.4g}"]


@ledger.command("history", example="matrixdp ledger history clinic.db --dataset clinic")
@_path
@flags.text_option("--dataset", help="Show only the charges to this data set.")
@flags.json_option
def history(path: Location, dataset: str | None, as_json: bool) -> None:
    """Show the charges in a LEDGER, and which were released; for a stream also its steps, which cost nothing."""
    from matrixdp.ledger.values import event_to_json
    from matrixdp.release.options import title_charge
    from matrixdp.report.dossier import charge_epsilon, list_steps

    facts, rows = [], []
    with ledgers().open(path) as ledger:
        deltas = {one.dataset: one.privacy.delta for one in ledger.datasets()}
        for charge in ledger.history(dataset):
            question, epsilon = title_charge(charge), charge_epsilon(charge, deltas[charge.dataset])
            noted = [getattr(charge, name) or "" for name in _NOTED]
            state = "released" if charge.released else "not released"
            rows.append([str(charge.entry), charge.time, charge.dataset, question, f"{epsilon:.4g}", state, *noted])
            steps = list_steps(ledger, charge)
            for one in steps:
                named = [one.time, charge.dataset, f"step {one.name}", "0", f"hash {one.digest[:12]}"]
                rows.append(["", *named, noted[0], *[""] * (len(_NOTED) - 1)])
            known = {"event": event_to_json(charge.event), "unit": str(charge.unit), "question": question}
            facts.append({**asdict(charge), **known, "epsilon": epsilon, "steps": [vars(one) for one in steps]})
    if as_json:
        flags.echo_json(facts)
    elif not facts:
        click.echo("Nothing has been charged.")
    else:
        flags.echo_table(["entry", "time", "data set", "question", "epsilon", "state", *_NOTED], rows)


@click.command(cls=flags.Command, example="matrixdp dossier clinic.db --dataset clinic --out dossier.html")
@_path
@_dataset
@click.option("--schema", type=flags.SCHEMA, help="The schema whose contact is named.")
@click.option("--out", type=flags.PATH, required=True, help="The HTML file to write.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
def dossier(path: Location, dataset: str, schema: Schema | None, out: Path, force: bool) -> None:
    """Write one document about all releases of a data set, for a committee.

    It says in plain words what is protected, lists every release with its purpose, cost and answers, and how to verify
    the ledger. It reads no data, and prints on A4.
    """
    from matrixdp.release.output_folder import write_file
    from matrixdp.report.dossier import write_dossier

    contact = "" if schema is None else schema.contact or ""
    with ledgers().open(path) as ledger:
        write_file(out, write_dossier(ledger, dataset, contact), option="out", overwrite=force)
    click.echo(f"Wrote {out}.")


@ledger.command("verify", example="matrixdp ledger verify clinic.db")
@_path
@click.option(
    "--anchor", metavar="ENTRY:HASH", help="An anchor that an earlier verify printed; it must still be in the ledger."
)
@click.option("--resume", is_flag=True, help="Check only the entries after the anchor.")
@flags.json_option
def verify(path: Location, anchor: str | None, resume: bool, as_json: bool) -> None:
    """Check every entry, every total and the hash chain of a LEDGER."""
    from matrixdp.ledger.place import parse_anchor

    start = None if anchor is None else parse_anchor(anchor)
    with ledgers().open(path) as ledger:
        head = ledger.verify(start, resume=resume)
        found = ledger.datasets()
    if as_json:
        units = {registration.dataset: str(registration.unit) for registration in found}
        flags.echo_json({"ledger": str(path), "entry": head.entry, "hash": head.hash, "verified": True, "units": units})
        return
    checked = f"{head.entry - start.entry} since the anchor" if resume and start is not None else f"{head.entry}"
    click.echo(f"{path} is intact: {checked} entries. Keep this anchor elsewhere, to check them again later:")
    click.echo(f"  --anchor {head.entry}:{head.hash}")
    for registration in found:
        click.echo(f"{registration.dataset} protects {registration.unit.words}, {registration.neighbours} neighbours.")


@ledger.command("backup", example="matrixdp ledger backup clinic.db clinic-2031-02-07.db")
@_path
@_file
@flags.json_option
def backup(path: Location, file: Location, as_json: bool) -> None:
    """Copy a LEDGER, which may be in use, to a new FILE."""
    with ledgers().open(path) as ledger:
        head = ledger.backup(file)
    with flags.output_after_work():
        if as_json:
            flags.echo_json({"ledger": str(path), "backup": str(file), "entry": head.entry, "hash": head.hash})
            return
        click.echo(f"{file} has {path} up to entry {head.entry}. To use it: matrixdp ledger restore {file} LEDGER")


@_command("restore", _file, _path, example="matrixdp ledger restore clinic-2031-02-07.db clinic.db")
def restore(path: Location, file: Location, **author: Any) -> None:
    """Make a new LEDGER from the backup FILE.

    It refuses charges to each data set until settle says what was spent since the backup was made.
    """
    ledgers().restore(file, path, **author).close()


@_command(
    "settle",
    _path,
    _dataset,
    click.option(
        "--spent", type=float, metavar="EPSILON", help="Epsilon that was spent, at the data set's delta; or 0."
    ),
    click.option("--all", "everything", is_flag=True, help="Treat all that is left as spent."),
    example="matrixdp ledger settle clinic.db --dataset clinic --spent 0.5",
)
def settle(path: Location, dataset: str, spent: float | None, everything: bool, **author: Any) -> None:
    """Say what was spent on a data set since the backup from which its LEDGER was restored."""
    if (spent is None) != everything:
        raise ParameterError("--spent EPSILON or --all must be given: what was spent since the backup was made.")
    with ledgers().open(path, **author) as ledger:
        ledger.settle(dataset, "all" if spent is None else spent)


@_command("moved", _path, example="matrixdp ledger moved /new/place/clinic.db")
def moved(path: Location, **author: Any) -> None:
    """Confirm that a LEDGER was moved, after a check of all its entries.

    A ledger is charged at one place only, so that a copy or another name of it cannot spend its total again.
    """
    ledgers().moved(path, **author).close()


@_command(
    "copy",
    click.argument("source", metavar="FROM", type=flags.LEDGER),
    click.argument("path", metavar="TO", type=flags.LEDGER),
    example="matrixdp ledger copy clinic.db postgresql://ann@db.example.org/privacy",
)
def copy(path: Location, source: Location, **author: Any) -> str:
    """Move a ledger to a new place, with all its entries.

    FROM and TO are files or URLs of PostgreSQL. Afterwards, only the copy is charged; the original can still be read.
    """
    ledgers().copy(source, path, **author, timeout=_COPY_TIMEOUT)
    return f"{source} was copied to {path}, and is charged there only from now on."


@ledger.command("roles", example="matrixdp ledger roles postgresql://ann@db.example.org/privacy | psql privacy")
@_path
def roles(path: Location) -> None:
    """Print the SQL for the roles of a LEDGER in PostgreSQL.

    It connects to nothing.
    """
    from matrixdp.ledger.postgres import roles_sql

    if isinstance(path, Path):
        raise ParameterError("LEDGER must be the URL of a ledger in PostgreSQL: files have no roles.")
    click.echo(roles_sql(path.schema), nl=False)


@ledger.command("whatif", example="matrixdp ledger whatif clinic.db --dataset clinic --epsilon 1 --delta 1e-6")
@_path
@_dataset
@flags.text_option("--allowance", help="The allowance that would pay. [default: what is not allotted]")
@flags.epsilon_option
@flags.delta_option
@flags.json_option
def whatif(path: Location, dataset: str, allowance: str | None, epsilon: float, delta: float, as_json: bool) -> None:
    """Show what would be left after a release. Nothing is charged."""
    from matrixdp.ledger import Gaussian
    from matrixdp.privacy import Privacy

    left = preview_ledger(Gaussian(Privacy(epsilon, delta).mu), path, dataset, allowance)
    assert left is not None  # as there is a ledger
    now, after = left
    if as_json:
        facts = {"dataset": dataset, "allowance": allowance, "delta": now.delta}
        flags.echo_json({**facts, **name_left(left), "mu_left_after": after.mu})
        return
    rows = [["now", *_write_left(now)], ["after", *_write_left(after)]]
    flags.echo_table([allowance or dataset, f"epsilon left at delta {now.delta:g}", "mu left"], rows)


@_command(
    "allow",
    _path,
    _dataset,
    _allowance,
    click.option("--epsilon", type=float, help="Its size: all charges to it together, at the data set's delta."),
    click.option("--share", metavar="NUMBER", help="Its size as a share of the total, such as 0.25 or 1/3."),
    click.option(
        "--for",
        "payers",
        multiple=True,
        metavar="NAME",
        help="A person (--actor, or user without @host) or a group who may charge it; may be given several times. "
        "In PostgreSQL, a role. [default: everybody]",
    ),
    example="matrixdp ledger allow clinic.db --dataset clinic --allowance ann --epsilon 1 --for ann",
)
def allow(path: Location, dataset: str, allowance: str, **options: Any) -> None:
    """Set a part of a data set's total apart, for charges that name it.

    The size is given by --epsilon or --share. Releases that name the allowance can spend no more than it, and other
    releases cannot use it.
    """
    size = {name: options.pop(name) for name in ("epsilon", "share", "payers")}
    with ledgers().open(path, **options) as ledger:
        ledger.allow(dataset, allowance, **size)


@_command(
    "return", _path, _dataset, _allowance, example="matrixdp ledger return clinic.db --dataset clinic --allowance ann"
)
def return_allowance(path: Location, dataset: str, allowance: str, **author: Any) -> None:
    """Return what is left of an allowance to its data set. Nothing can be charged to it afterwards."""
    with ledgers().open(path, **author) as ledger:
        ledger.return_allowance(dataset, allowance)


@ledger.command("metrics", example="matrixdp ledger metrics clinic.db --alert-below 10%")
@_path
@click.option(
    "--alert-below",
    metavar="EPSILON|SHARE%",
    help="Exit with code 8 if a data set or an allowance has less than this left: an epsilon, or a share such as 10%.",
)
def metrics(path: Location, alert_below: str | None) -> int:
    """Print the state of a LEDGER for monitoring, in the text format of Prometheus."""
    from matrixdp.display import make_visible
    from matrixdp.ledger.metrics import find_low, parse_threshold, render_metrics

    threshold = None if alert_below is None else parse_threshold(alert_below)
    with ledgers().open(path) as ledger:
        summaries, entries = ledger.summaries(), ledger.head.entry
    click.echo(render_metrics(summaries, entries, datetime.now(UTC)), nl=False)
    low = [] if threshold is None else find_low(summaries, threshold)
    for message in low:
        click.echo(f"matrixdp: {make_visible(message)}", err=True)
    return ExitCode.LOW if low else ExitCode.SUCCESS
