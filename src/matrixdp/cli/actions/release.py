"""What ``matrixdp release`` does: plan, run, write a folder, and print what was released."""

from __future__ import annotations

import logging
import shlex
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from matrixdp.cli.actions.design_options import DesignOptions
from matrixdp.cli.actions.interrupts import DeferredInterrupts
from matrixdp.cli.actions.ledger import open_ledger, require_dataset
from matrixdp.cli.actions.output import output_after_work, warn_about_delta
from matrixdp.cli.actions.progress import Progress
from matrixdp.cli.actions.release_output import print_dataset, print_release
from matrixdp.domain.schema_file import read_schema
from matrixdp.errors import LedgerError, ParameterError
from matrixdp.ledger import Head
from matrixdp.ledger.location import Location
from matrixdp.records.files import Files, open_files
from matrixdp.release.charging import Account
from matrixdp.release.plan import Plan, plan
from matrixdp.release.run import count_units
from matrixdp.report.release_folder import write_release

_MAX_STORED = 10**6  # entries of a release that the ledger stores, so that it can be requested again


@dataclass(frozen=True, kw_only=True)
class ReleaseOptions:
    """The options of a release besides those of its design, as they were given."""

    data: tuple[str, ...]
    out: Path
    ledger: Location | None
    ledger_timeout: float
    dataset: str | None
    request: str | None
    allowance: str | None
    wait: float
    actor: str | None
    purpose: str | None
    anchor_to: Path | None
    anchor_command: str | None
    missing: str
    delimiter: str | None
    workers: str | None
    force: bool
    as_json: bool


def run_release(design_options: DesignOptions, options: ReleaseOptions) -> None:
    """Write the release, and print it."""
    schema = read_schema(design_options.schema)
    source = open_files(options.data, delimiter=options.delimiter, rules=schema.rules)
    source.check_output(options.out)
    request = design_options.to_request(schema, missing=options.missing, id=options.request)
    made = plan(request, lambda: count_units(request, source))
    warn_about_delta(request.privacy, made.records)
    with (
        DeferredInterrupts() as interrupts,
        _open_account(options) as account,
        _show_progress(made, source, quiet=options.as_json) as progress,
    ):
        made = _name_request(made, options.request) if account is not None else made
        folder = write_release(
            made,
            source,
            options.out,
            account,
            force=options.force,
            workers=_parse_workers(options.workers),
            progress=progress,
            ready=interrupts.defer,
        )
    with output_after_work():
        if interrupts.pending:
            _remark("interrupted after the charge, so the release was finished first.")
        if account is not None and not folder.outcome.charged:
            _remark(f"{options.request} was released before; it was not charged again.")
        if folder.problem:
            _remark(folder.problem)
        printed = print_release if folder.content is not None else print_dataset
        printed(folder, options.out, as_json=options.as_json)


def _remark(text: str) -> None:
    sys.stderr.write(f"matrixdp: {text}\n")


def _name_request(made: Plan, given: str | None) -> Plan:
    """The plan with a new request id, unless it has one or is too large to be stored."""
    if given is not None or made.entries > _MAX_STORED:
        return made
    return replace(made, request=replace(made.request, id=f"release-{uuid.uuid4().hex[:12]}"))


@contextmanager
def _open_account(options: ReleaseOptions) -> Iterator[Account | None]:
    """What pays for the release; None without a ledger."""
    if options.ledger is None:
        yield None
        return
    dataset = require_dataset(options.dataset)
    author: dict[str, Any] = {"actor": options.actor, "purpose": options.purpose, "anchor": _find_anchor(options)}
    with open_ledger(options.ledger, timeout=options.ledger_timeout, wait=options.wait, **author) as ledger:
        yield Account(ledger, dataset, allowance=options.allowance)


def _parse_workers(text: str | None) -> Any:
    """A number of threads, or the address of a cluster."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # an EngineError reports what went wrong
    return int(text) if text is not None and text.isdecimal() and len(text) < 10 else text


@contextmanager
def _show_progress(made: Plan, source: Files, *, quiet: bool) -> Iterator[Callable[[int], object]]:
    """A progress bar, unless it would show a private number of records."""
    hidden = quiet or not made.public_progress
    label = f"reading {Path(source.files[0].place).name}"
    with Progress(made.records or 0, label, quiet=hidden) as progress:
        yield progress.advance


def _find_anchor(options: ReleaseOptions) -> Path | Callable[[Head], object] | None:
    """Where the charge is anchored: a file, a command, or nowhere."""
    if options.anchor_command is None:
        return options.anchor_to
    try:
        words = shlex.split(options.anchor_command)
    except ValueError as error:
        raise ParameterError(f"--anchor-command must be a command line: {error}.") from None
    if not words or shutil.which(words[0]) is None:
        raise ParameterError(f"--anchor-command must name a program that can be run, got {options.anchor_command!r}.")
    return partial(_run_anchor_command, words)


def _run_anchor_command(words: list[str], head: Head) -> None:
    anchor = f"{head.entry}:{head.hash}"
    done = subprocess.run([*words, anchor], stdout=subprocess.DEVNULL, check=False)  # noqa: S603 (the user's command)
    if done.returncode != 0:
        raise LedgerError(
            f"entry {head.entry} was charged, but --anchor-command failed with code {done.returncode}. Nothing was "
            "released."
        )
