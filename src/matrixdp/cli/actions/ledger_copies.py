"""Commands that check a ledger, copy it, move it and restore it from a backup."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import click

from matrixdp.cli.actions.ledger import open_ledger, show_ledger
from matrixdp.cli.actions.output import echo_json, output_after_work
from matrixdp.errors import LedgerError, ParameterError
from matrixdp.ledger import Ledger
from matrixdp.ledger.anchors import parse_anchor
from matrixdp.ledger.ledger import LedgerOptions
from matrixdp.ledger.location import Location
from matrixdp.ledger.values import Head

_COPY_TIMEOUT = 3600.0  # seconds that either ledger may be locked while a long one is copied


def verify_ledger(path: Location, anchor: str | None, *, resume: bool, as_json: bool) -> None:
    """Check the whole ledger, or what follows an anchor, and print a new anchor."""
    start = None if anchor is None else _parse_anchor(anchor)
    if resume and start is None:
        raise ParameterError("--anchor must be given with --resume: the entry after which to begin.")
    with open_ledger(path) as ledger:
        head = ledger.verify(start, resume=resume)
        found = ledger.datasets()
    if as_json:
        units = {registration.dataset: str(registration.unit) for registration in found}
        echo_json({"ledger": str(path), "entry": head.entry, "hash": head.hash, "verified": True, "units": units})
        return
    checked = f"{head.entry - start.entry} since the anchor" if resume and start is not None else f"{head.entry}"
    click.echo(f"{path} is intact: {checked} entries. Keep this anchor elsewhere, to check them again later:")
    click.echo(f"  --anchor {head.entry}:{head.hash}")
    for registration in found:
        click.echo(f"{registration.dataset} protects {registration.unit.words}, {registration.neighbours} neighbours.")


def _parse_anchor(text: str) -> Head:
    try:
        return parse_anchor(text)
    except ParameterError as error:
        raise ParameterError(str(error).replace("an anchor", "--anchor")) from None


def backup_ledger(path: Location, file: Location, *, as_json: bool) -> None:
    """Copy a ledger, which may be in use, to a new file."""
    with open_ledger(path) as ledger:
        head = ledger.backup(file)
    with output_after_work():
        if as_json:
            echo_json({"ledger": str(path), "backup": str(file), "entry": head.entry, "hash": head.hash})
            return
        click.echo(f"{file} has {path} up to entry {head.entry}. To use it: matrixdp ledger restore {file} LEDGER")


def restore_ledger(file: Location, path: Location, *, as_json: bool, **author: Unpack[LedgerOptions]) -> None:
    """Make a new ledger from a backup, and print it."""
    if isinstance(file, Path) and not file.exists():
        raise LedgerError(f"there is no backup at {file}. Check the path.")
    Ledger.restore(file, path, **author).close()
    with output_after_work():
        show_ledger(path, as_json=as_json)


def settle_dataset(
    path: Location,
    dataset: str,
    spent: float | None,
    *,
    everything: bool,
    as_json: bool,
    **author: Unpack[LedgerOptions],
) -> None:
    """Record what was spent on a data set since the backup from which its ledger was restored."""
    if (spent is None) != everything:
        raise ParameterError("--spent EPSILON or --all must be given: what was spent since the backup was made.")
    with open_ledger(path, **author) as ledger:
        ledger.settle(dataset, "all" if spent is None else spent)
    with output_after_work():
        show_ledger(path, as_json=as_json)


def confirm_move(path: Location, *, as_json: bool, **author: Unpack[LedgerOptions]) -> None:
    """Record that a ledger was moved, and print it."""
    if isinstance(path, Path) and not path.exists():
        raise LedgerError(f"there is no ledger at {path}. Check the path.")
    Ledger.moved(path, **author).close()
    with output_after_work():
        show_ledger(path, as_json=as_json)


def copy_ledger(source: Location, target: Location, *, as_json: bool, **author: Unpack[LedgerOptions]) -> None:
    """Copy a ledger to a new place, where it is charged from now on, and print the copy."""
    with open_ledger(source):
        pass
    options: LedgerOptions = {**author, "timeout": _COPY_TIMEOUT}
    Ledger.copy(source, target, **options)
    with output_after_work():
        if not as_json:
            click.echo(f"{source} was copied to {target}, and is charged there only from now on.")
        show_ledger(target, as_json=as_json)
