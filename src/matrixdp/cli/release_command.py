"""``matrixdp release``: from files to a folder with a private matrix and its report, or with a noisy data set."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import click
import numpy as np

from matrixdp.adaptive.directions import PrincipalDirections, principal_directions
from matrixdp.cli.design_options import GRAPHS, Asked, load_schema, make_asked_design, make_query, require_records
from matrixdp.cli.display import release_facts, show_guarantee, show_result
from matrixdp.cli.interrupts import Deferral
from matrixdp.cli.ledger_command import open_ledger
from matrixdp.cli.output import echo_json
from matrixdp.cli.private_inputs import read_graph, read_pairs
from matrixdp.cli.release_options import Job, Watched
from matrixdp.cli.schema_file import Schema
from matrixdp.design import Design
from matrixdp.errors import DataError, MatrixDPError, ParameterError
from matrixdp.ledger import Gaussian, Ledger
from matrixdp.privacy import Neighbours, Privacy
from matrixdp.queries import MatrixQuery
from matrixdp.records.files import Files, open_files
from matrixdp.release import release_dataset
from matrixdp.release.output_folder import OutputFolder
from matrixdp.report.content import LedgerState, Result, make_result
from matrixdp.report.files import write_folder
from matrixdp.report.tables import matrix_table

_STORED = 10**6  # entries of a release that the ledger keeps, so that it can be asked for again
_IN_MEMORY = 1 << 22  # entries of a noisy data set up to which it gets a report, and not a set of files


def run_release(asked: Asked, job: Job) -> None:
    """Read, charge, draw, write: in this order, and all of it or nothing."""
    schema = load_schema(asked)
    source = open_files(job.data, delimiter=job.delimiter)
    source.check_output(job.out)
    query = make_query(asked, schema, _records(asked, schema, source))
    planned = _plan(asked, query)
    if query.rowwise and query.shape[0] * query.shape[1] > _IN_MEMORY:
        _release_files(asked, job, schema, source, planned)
        return
    with (
        Deferral() as deferral,
        _account(asked, job, planned) as account,
        OutputFolder(job.out, force=job.force) as out,
    ):
        result, learned = _release(asked, job, account, schema, source, query, deferral)
        try:
            if learned is not None:
                (out.path / "directions.json").write_text(learned.release.to_json(), encoding="utf-8")
            files = write_folder(result, out.path)
            out.finish()
        except OSError as error:
            raise ParameterError(
                f"out: {out.place} cannot be written: {error.strerror or error}. {account.remedy()}"
            ) from None
        if deferral.asked:
            click.echo("matrixdp: the budget was charged already, so the release was finished.", err=True)
        if account.kept:
            click.echo(f"matrixdp: given back from the ledger, as {job.request} was released before.", err=True)
    show_result(result, job, files)


@dataclass
class _Account:
    """The ledger's side of a release, or that there is none."""

    ledger: Ledger | None
    dataset: str | None
    request: str | None
    before: float = 0.0
    kept: bool = False

    def options(self, suffix: str = "") -> dict[str, Any]:
        """What `Design.release` is told."""
        if self.ledger is None:
            return {}
        request = None if self.request is None else self.request + suffix
        return {"ledger": self.ledger, "dataset": self.dataset, "request": request}

    def state(self) -> LedgerState | None:
        """What the ledger says after the release."""
        if self.ledger is None or self.dataset is None:
            return None
        found = next(entry for entry in self.ledger.datasets() if entry.dataset == self.dataset)
        left, head = self.ledger.remaining(self.dataset), self.ledger.head
        total = found.privacy
        place = str(self.ledger.path)
        return LedgerState(
            place, self.dataset, total.epsilon, total.delta, self.before, left.epsilon, head.entry, head.hash
        )

    def remedy(self) -> str:
        """How to get at a release that was charged but not written."""
        if self.request is None:
            return "What was charged stays charged." if self.ledger else "Nothing was released."
        return f"The release is kept in the ledger: run again with --request {self.request}, at no cost."


@contextmanager
def _account(asked: Asked, job: Job, planned: Design) -> Iterator[_Account]:
    """The account to charge, after a look at whether the budget will do."""
    if job.ledger is None:
        yield _Account(None, None, None)
        return
    if job.dataset is None:
        raise ParameterError("--dataset must be given with --ledger: the name under which the data are registered.")
    with open_ledger(job.ledger, timeout=job.ledger_timeout) as ledger:
        before = ledger.remaining(job.dataset).epsilon
        kept = _kept(ledger, job.dataset, job.request)
        if not kept:
            ledger.whatif(job.dataset, planned)
            if asked.learned and not _kept(ledger, job.dataset, job.request, "-directions"):
                ledger.whatif(job.dataset, Gaussian(asked.privacy.mu))  # directions and release together
        height, width = planned.query.shape
        small = height * width <= _STORED
        request = job.request or (f"release-{uuid.uuid4().hex[:12]}" if small else None)
        yield _Account(ledger, job.dataset, request, before, kept)


def _kept(ledger: Ledger, dataset: str, request: str | None, suffix: str = "") -> bool:
    """Whether a release was made under this id before."""
    return request is not None and ledger.stored(dataset, request + suffix) is not None


def _plan(asked: Asked, query: MatrixQuery) -> Design:
    """The design, or one like it where directions are yet to be learned: every error in the options comes from here."""
    if not asked.learned:
        return make_asked_design(asked, query)
    if asked.query in (*GRAPHS, "counts", "gram") or query.neighbours is not Neighbours.REPLACE:
        raise ParameterError(
            "--directions learned is for moments, second-moment, covariance, correlation and identity, with "
            "replace-one neighbours."
        )
    return make_asked_design(asked, query, np.eye(query.features))


def _records(asked: Asked, schema: Schema, source: Files) -> int | None:
    """The public number of records."""
    if asked.query in GRAPHS:
        return None
    known = asked.records or schema.records
    private = asked.neighbours == Neighbours.ADD_REMOVE
    counted = source.count() if known is None and not private else 1
    if counted == 0:
        raise DataError(f"{source.place} has no records.")
    return require_records(asked, schema, counted=counted)


def _release(
    asked: Asked,
    job: Job,
    account: _Account,
    schema: Schema,
    source: Files,
    query: MatrixQuery,
    deferral: Deferral,
) -> tuple[Result, PrincipalDirections | None]:
    data = _data(asked, job, schema, source, query, deferral)
    options: dict[str, Any] = {"missing": job.missing}
    learned = None
    if asked.learned:
        learned = _learn(asked, schema, query, data(), {**options, **account.options("-directions")})
    design = make_asked_design(asked, query, None if learned is None else learned.directions)
    try:
        release = design.release(data(), **options, **account.options())
    except MatrixDPError as error:
        if learned is None or account.request is None:
            raise
        raise type(error)(
            f"{error}\nThe directions are charged and kept: run again with --request {account.request}."
        ) from None
    notes = () if learned is None else (_note(asked, learned.mu),)
    return make_result(release, asked.kind, ledger=account.state(), notes=notes), learned


def _note(asked: Asked, mu: float) -> str:
    return (
        f"The directions were learned from the same data by a release of their own (directions.json), which spent "
        f"μ = {mu:.6g}, {asked.directions_share:.0%} of the budget; both together are "
        f"({asked.epsilon:g}, {asked.delta:.3g})-differentially private."
    )


def _learn(asked: Asked, schema: Schema, query: MatrixQuery, data: Any, options: dict[str, Any]) -> PrincipalDirections:
    """Private principal directions, for their share of the budget."""
    records: int = query.records  # type: ignore[attr-defined]
    privacy: Privacy = asked.privacy
    return principal_directions(
        data, schema.bounds(), privacy, records=records, share=asked.directions_share, **options
    )


def _data(
    asked: Asked, job: Job, schema: Schema, source: Files, query: MatrixQuery, deferral: Deferral
) -> Callable[[], Any]:
    """A function that gives the private data; once they are read, interrupts are put off."""
    if asked.query in GRAPHS:
        assert schema.graph is not None
        matrix = read_graph(source, schema.graph)
        return lambda: _then(matrix, deferral)
    if asked.query == "counts":
        pairs = read_pairs(source, asked.cell_columns(), schema)
        return lambda: _then(pairs, deferral)
    names = list(schema.bounds().names or ())
    source.require(names)
    return lambda: Watched(job, query, deferral)


def _then(data: Any, deferral: Deferral) -> Any:
    deferral.begin()
    return data


def _release_files(asked: Asked, job: Job, schema: Schema, source: Files, design: Design) -> None:
    """A noisy data set that is too large for a report, as Parquet files."""
    if asked.learned:
        raise ParameterError(
            f"--directions learned is for noisy data sets of up to {_IN_MEMORY:,} entries; learn them from "
            "moments, and give them as a file."
        )
    if job.request is not None:
        raise ParameterError("--request must be left out for a data set of this size, which the ledger does not keep.")
    with Deferral() as deferral, _account(asked, job, design) as account:
        data = _data(asked, job, schema, source, design.query, deferral)()
        options = {name: value for name, value in account.options().items() if name != "request"}
        release = release_dataset(design, data, job.out, missing=job.missing, force=job.force, **options)
        state = account.state()
    rows, columns = design.query.shape
    if job.as_json:
        files = [*release.files, "_release.json"]
        echo_json(release_facts(job, design, files, "noisy data set", (rows, columns), state))
        return
    count = len(release.files)
    click.echo(f"Wrote {rows:,} noisy records of {columns} columns to {job.out}, in {count:,} Parquet files")
    click.echo("\nStandard deviation of the noise in every row:")
    click.echo(matrix_table(release.std[None], ("noise",), design.query.names or (), None))
    show_guarantee(design, state)
