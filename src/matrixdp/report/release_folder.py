"""A release as a folder of files: rehearsed before the charge, written, and moved to its place when complete."""

import csv
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from matrixdp.display import ENTRY, blank_hidden, has_equal_rows, list_entries, quote_formula
from matrixdp.errors import ChargedError, LedgerError, ParameterError, RequestPendingError
from matrixdp.ledger.ledger import find_charges
from matrixdp.records.files import Files
from matrixdp.release.adaptive_release import AdaptiveRelease
from matrixdp.release.charging import Account
from matrixdp.release.dataset import MANIFEST, DatasetRelease
from matrixdp.release.options import MATRICES
from matrixdp.release.output_folder import OutputFolder
from matrixdp.release.plan import Plan, refuse_extremes
from matrixdp.release.result import Release
from matrixdp.release.run import Outcome, run
from matrixdp.report.answers import Answer
from matrixdp.report.content import LedgerSummary, ReportContent, make_content
from matrixdp.report.dates import DATES, add_dates, list_dates, write_dates
from matrixdp.report.pictures import draw_matrix
from matrixdp.report.provenance import PROVENANCE, write_provenance
from matrixdp.report.release_page import DATASET_PAGE, render_release
from matrixdp.types import Floats

_MAX_REHEARSED = 1 << 20  # entries of a matrix whose files are written once for trial
_MOST_FILES = 3  # that a report names


@dataclass(frozen=True, eq=False)
class ReleaseFolder:
    """A release that was written."""

    outcome: Outcome
    files: tuple[str, ...]  # their names
    content: ReportContent  # what the report shows
    problem: str = ""  # why the page of a noisy data set in files, which is complete, could not be written


def write_release(
    plan: Plan,
    source: Files,
    out: str | os.PathLike[str],
    account: Account | None = None,
    *,
    force: bool = False,
    **reading: Any,
) -> ReleaseFolder:
    """Release a plan from files, and write the new or empty folder `out`, which appears when it is complete.

    A request that was released before may write the folder again that holds its release.

    `reading` are `workers`, `progress` and `ready` of `matrixdp.release.run.run`. Any error after the charge is a
    `ChargedError`; it says what was spent, and how to get the release.

    Privacy
    -------
    That of `run`. A made-up release is written for trial, so that what cannot be written fails before the charge.
    """
    account = None if account is None else replace(account, request=plan.request.id)
    left = 0.0
    if account is not None:
        left = account.ledger.remaining(account.dataset, allowance=account.allowance).epsilon
        force = force or _holds_release(account, Path(out))
    if plan.in_files:
        with explain_charge(plan, account, out):
            outcome = run(plan, source, account, out=out, force=force, **reading)
            released = outcome.release
            assert isinstance(released, DatasetRelease)
            ledger = _summarise(account, left, outcome)
        content, problem = _describe_outcome(plan, source, account, outcome, ledger), ""
        try:  # the data set is complete, and stays so if this fails
            (released.path / f"_{PROVENANCE}").write_text(write_provenance(content), encoding="utf-8")
            page = render_release(content, files=[MANIFEST, f"_{PROVENANCE}", *released.files])
            (released.path / DATASET_PAGE).write_text(page, encoding="utf-8")
        except OSError as error:
            reason = error.strerror or type(error).__name__
            problem = f"the data set is complete; {DATASET_PAGE} cannot be written: {reason}."
        return ReleaseFolder(outcome, (*released.files, f"_{PROVENANCE}", DATASET_PAGE, MANIFEST), content, problem)
    with OutputFolder(out, force=force) as folder, explain_charge(plan, account), np.errstate(all="ignore"):

        def show(outcome: Outcome, ledger: LedgerSummary | None = None) -> ReportContent:
            return _describe_outcome(plan, source, account, outcome, ledger)

        def rehearse(sample: Release | AdaptiveRelease) -> None:
            if plan.entries <= _MAX_REHEARSED:
                with refuse_extremes(), tempfile.TemporaryDirectory(dir=folder.drafts) as place:
                    write_folder(show(Outcome(sample, plan)), place)

        outcome = run(plan, source, account, rehearse=rehearse, **reading)
        content = show(outcome, _summarise(account, left, outcome))
        try:
            files = write_folder(content, folder.path)
            folder.finish()
        except OSError as error:
            raise ParameterError(f"out: {folder.place} cannot be written: {error.strerror or error}.") from None
        return ReleaseFolder(outcome, tuple(files), content)


def _holds_release(account: Account, out: Path) -> bool:
    """Whether a folder holds the stored release of the request, so that a repeat may write it again."""
    try:
        written = json.loads((out / "release.json").read_text(encoding="utf-8"))
        stored = None if account.request is None else account.ledger.stored(account.dataset, account.request)
    except (OSError, ValueError, LedgerError):
        return False
    found = {} if stored is None or not isinstance(written, dict) else json.loads(stored)
    return bool(found) and all(written.get(name) == value for name, value in found.items())  # and its receipt


def _describe_outcome(
    plan: Plan, source: Files, account: Account | None, outcome: Outcome, ledger: LedgerSummary | None
) -> ReportContent:
    """A release, ready to be shown."""
    request, notes = plan.request, []
    if plan.choice is not None and plan.choice.method == "plain":
        notes.append(f"By a plain release. {plan.choice.reason}")
    on = None if request.on is None else list(request.on)
    content = make_content(
        outcome.release, request.kind, ledger=ledger, notes=tuple(notes), target=request.target, on=on
    )
    names = [place.name for place in source.roots or [Path(file.place) for file in source.files]]
    more = len(names) - _MOST_FILES
    table = ", ".join(names[:_MOST_FILES]) + (f" and {more:,} more" if more > 0 else "")
    table = table if account is None else account.dataset
    released = None if ledger is None else ledger.time
    origin: dict[str, Any] = {"question": request.title, "table": table, "released": released or datetime.now(UTC)}
    variables = request.parse_cells() if request.question == "counts" else content.variables
    contact = request.schema.contact or ""
    return add_dates(replace(content, **origin, contact=contact, variables=variables), request.schema.rules.dates)


def _summarise(account: Account | None, left: float, outcome: Outcome) -> LedgerSummary | None:
    """The state of the ledger after a release, and who was charged for it, when and why."""
    if account is None:
        return None
    ledger, dataset, allowance, author = account.ledger, account.dataset, account.allowance, account.ledger.author
    actor, purpose, time = author.actor, author.purpose, datetime.now(UTC)
    if not outcome.charged:  # by an earlier run of the request
        assert account.request is not None  # by which the release was found
        (charge,) = find_charges(ledger, dataset, account.request)
        actor, purpose, time = charge.actor, charge.purpose, datetime.fromisoformat(charge.time)
    total: Any = ledger.summary(dataset).registration.privacy
    if allowance is not None:
        total = next(found for found in ledger.allowances(dataset) if found.name == allowance)
    head = ledger.head
    return LedgerSummary(
        dataset=dataset,
        epsilon=total.epsilon,
        delta=total.delta,
        left_before=left,
        left_after=ledger.remaining(dataset, allowance=allowance).epsilon,
        entry=head.entry,
        hash=head.hash,
        allowance=allowance,
        charged=outcome.charged,
        unnoticed=tuple(ledger.blind_spots),
        actor=actor,
        purpose=purpose,
        time=time,
    )


@contextmanager
def explain_charge(plan: Plan, account: Account | None, folder: str | os.PathLike[str] | None = None) -> Iterator[None]:
    """Add to an error after the charge what was spent, and how to get the release; `folder` is that of a data set."""
    if account is None:
        yield
        return
    before = account.ledger.head.entry
    try:
        yield
    except RequestPendingError:  # another process was charged
        raise
    except (Exception, KeyboardInterrupt) as error:
        try:
            recovery = _describe_recovery(plan, account, before, folder)
        except LedgerError:
            recovery = "The budget may be spent; matrixdp ledger history shows it."
        if not recovery:
            raise
        raise ChargedError(error, recovery) from error


def _describe_recovery(plan: Plan, account: Account, before: int, folder: str | os.PathLike[str] | None) -> str:
    """What was charged after an entry, and how to get the release; empty if nothing was charged."""
    request, asked = account.request, plan.description
    new = [one for one in account.ledger.history(account.dataset) if one.entry > before and one.request == request]
    charges = [one for one in new if request is not None or one.description == asked]
    if not charges:
        return ""
    if request is None:
        return "The budget is spent, and the release is lost. Running again is charged again."
    if charges[-1].released:
        return f"The budget is spent, and the ledger has the release: run again with --request {request}, at no cost."
    with suppress(ParameterError):  # raised where there is no data set
        if folder is not None and DatasetRelease.open(folder).request == request:
            how = "run again with the same --request and --out, at no cost."
            return f"The budget is spent, and the data set in {folder} is complete: {how}"
    return "The budget is spent, and the release is lost. Running again with a new request is charged again."


# Files


def write_folder(content: ReportContent, folder: str | os.PathLike[str]) -> list[str]:
    """Write the release, its provenance, the matrix, its error bars, pictures and the report; returns the files.

    Answers from the moments of a table are written as one CSV file for each kind, with one number to a line.
    A name in a CSV file that begins as a formula of a spreadsheet does (with ``= + - @``, a tab or a line end) has a
    single quote before it; the other files have the names as they are. The Parquet file is left out if `pyarrow` is not
    installed.
    """
    place = Path(folder)
    (place / "release.json").write_bytes(content.text.encode())
    (place / PROVENANCE).write_text(write_provenance(content), encoding="utf-8")
    _write_answers(place, content)
    if remarks := content.caveats + content.units:
        (place / "notes.txt").write_text("\n".join(remarks) + "\n", encoding="utf-8")
    if content.dates:
        (place / DATES).write_text(write_dates(content.dates), encoding="utf-8")
    if content.main is not None:
        _write_matrix(place, content, content.main)
    names = sorted(path.name for path in place.iterdir())
    (place / "report.html").write_text(render_release(content, files=names), encoding="utf-8")
    return ["report.html", *names]


def _write_matrix(place: Path, content: ReportContent, main: Answer) -> None:
    found = main.estimate
    values = found.value if main.name in MATRICES else found.measured
    names = found.rows if found.rows == found.columns or not found.rows[0].isdigit() else None  # otherwise numbered
    np.save(place / "matrix.npy", values)
    _write_csv(place / "matrix.csv", found.columns, names, values)
    _write_parquet(place / "matrix.parquet", found.columns, names, values, write_provenance(content))
    picture = draw_matrix(main, counted=content.query.count_word)
    (place / "matrix.svg").write_text(picture, encoding="utf-8")
    rows, std = (None, found.std[:1]) if has_equal_rows(found.std) else (names, found.std)
    _write_csv(place / "std.csv", found.columns, rows, std)


def _write_answers(place: Path, content: ReportContent) -> None:
    """One CSV file for each kind of answer, with one number and its error bar a line, and a picture of correlations."""
    query: Any = content.query
    by = getattr(query, "by", ())
    lines: dict[str, list[list[Any]]] = {}
    for answer in content.answers:
        if answer is content.main:
            continue
        title, own = quote_formula(answer.title), [quote_formula(level) for level in answer.group] or [""] * len(by)
        dates = list_dates(answer, content.dates)
        head = [*map(quote_formula, by), "table", *ENTRY, *dates]
        for (i, entry), *texts in zip(list_entries(answer.estimate), *dates.values(), strict=True):
            group = map(quote_formula, query.group_levels[i]) if answer.name == "groups" else own
            lines.setdefault(answer.name, [head]).append([*group, title, *entry, *texts])
        if answer.name == "correlation" and not answer.group and len(answer.estimate.rows) > 1:
            (place / "correlation.svg").write_text(draw_matrix(answer), encoding="utf-8")
    for name, table in lines.items():
        with (place / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(table)


def _write_csv(path: Path, columns: Sequence[str], rows: Sequence[str] | None, values: Floats) -> None:
    """Numbers of shape (rows, columns) with their names."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer, header = csv.writer(file), [*map(quote_formula, columns)]
        writer.writerow(["", *header] if rows is not None else header)
        names = [[]] * len(values) if rows is None else [[quote_formula(name)] for name in rows]
        writer.writerows([*name, *blank_hidden(line.tolist())] for name, line in zip(names, values, strict=True))


def _write_parquet(
    path: Path, columns: Sequence[str], rows: Sequence[str] | None, values: Floats, provenance: str
) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        return
    arrays, names = [pa.array(np.ascontiguousarray(column)) for column in values.T], list(columns)
    if rows is not None:
        arrays.insert(0, pa.array(rows))
        names.insert(0, "row" if "row" not in names else "row names")
    table = pa.Table.from_arrays(arrays, names=names).replace_schema_metadata({"matrixdp": provenance})
    with path.open("wb") as file:  # a path would have to be in UTF-8
        pq.write_table(table, file)
