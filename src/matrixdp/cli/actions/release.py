"""What ``matrixdp release`` does: write a folder with a private matrix and its report, or with a noisy data set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import click
import numpy as np

from matrixdp.adaptive.directions import PrincipalDirections, principal_directions
from matrixdp.adaptive.method import MethodChoice
from matrixdp.cli.actions.adaptive_release import AdaptiveJob, run_adaptive_release
from matrixdp.cli.actions.charge_target import DIRECTIONS, ChargeTarget, PlannedCharge, explain_charge, open_target
from matrixdp.cli.actions.date_units import add_dates
from matrixdp.cli.actions.design_options import (
    GRAPHS,
    TABLES,
    DesignOptions,
    build_design,
    build_query,
    find_records,
    refuse_extremes,
)
from matrixdp.cli.actions.input_files import read_graph, read_pairs
from matrixdp.cli.actions.interrupts import DeferredInterrupts
from matrixdp.cli.actions.method import choose_method_for, find_bounds, parse_features
from matrixdp.cli.actions.output import output_after_work, warn_about_delta
from matrixdp.cli.actions.person_options import counts_people, find_person
from matrixdp.cli.actions.release_options import MonitoredRecords, ReleaseOptions
from matrixdp.cli.actions.release_output import print_dataset, print_release, print_remarks, write_results
from matrixdp.cli.actions.report_origin import add_origin, name_origin
from matrixdp.design import Design
from matrixdp.domain.schema import Schema
from matrixdp.domain.schema_file import read_schema
from matrixdp.errors import DataError, ParameterError
from matrixdp.privacy import Neighbours
from matrixdp.queries import Identity, MatrixQuery, TableMoments
from matrixdp.records import Blocks, as_records, open_records, with_ids
from matrixdp.records.files import Files, open_files
from matrixdp.records.people import number_of_people
from matrixdp.release import DatasetRelease, Release, release_dataset
from matrixdp.release.matrix import release_with_options
from matrixdp.release.output_folder import OutputFolder
from matrixdp.report.content import ReportContent, make_content
from matrixdp.report.files import rehearse_folder
from matrixdp.report.guarantee import LedgerSummary
from matrixdp.report.release_page import DATASET_PAGE, render_dataset

_MAX_IN_MEMORY = 1 << 22  # entries of a noisy data set; a larger one is written as files

_MAX_REHEARSED = 1 << 20  # entries of a matrix whose files are written once for trial


@dataclass(frozen=True)
class _ReleaseJob:
    """One run of the command: its options, the schema, the files and the design.

    Where directions are still to be learned, `design` is one with other directions but the same cost.
    """

    design_options: DesignOptions
    release_options: ReleaseOptions
    schema: Schema
    source: Files
    design: Design
    choice: MethodChoice | None = None

    @property
    def query(self) -> MatrixQuery:
        """The query of the design."""
        return self.design.query


def run_release(design_options: DesignOptions, release_options: ReleaseOptions) -> None:
    """Write the release, and print it."""
    show = write_release(design_options, release_options)
    with output_after_work():
        show()


def write_release(design_options: DesignOptions, release_options: ReleaseOptions) -> Callable[[], None]:
    """Read the data, charge the ledger, draw the noise and write the folder, in this order.

    Returns
    -------
    callable
        Prints the release.
    """
    schema = read_schema(design_options.schema)
    source = open_files(release_options.data, delimiter=release_options.delimiter, rules=schema.rules)
    source.check_output(release_options.out)
    records = find_records(
        design_options, schema, lambda: _count_units(design_options, release_options, schema, source)
    )
    choice = choose_method_for(design_options, schema, records, release_options.missing)
    if choice is not None and choice.method == "adaptive":
        assert records is not None  # only graphs have none
        warn_about_delta(design_options.privacy, records)
        bounds, person = find_bounds(design_options, schema), find_person(design_options, schema)
        return run_adaptive_release(
            AdaptiveJob(design_options, release_options, source, bounds, records, choice, schema.rules, person)
        )
    query = build_query(design_options, schema, records)
    warn_about_delta(design_options.privacy, records)
    job = _ReleaseJob(design_options, release_options, schema, source, _plan_design(design_options, query), choice)
    if isinstance(query, Identity) and query.shape[0] * query.shape[1] > _MAX_IN_MEMORY:
        return _release_dataset(job)
    return _release_matrix(job)


def _count_units(options: DesignOptions, release_options: ReleaseOptions, schema: Schema, source: Files) -> int:
    """The number of people where each counts once, otherwise that of the records."""
    person, rows = find_person(options, schema), _count_records(source)
    if person is None or not counts_people(options, person):
        return rows
    source.require([person.column])
    records = open_records(list(release_options.data), delimiter=release_options.delimiter, rules=schema.rules)
    return number_of_people(records, person, rows=rows)


def _count_records(source: Files) -> int:
    count = source.count()
    if count == 0:
        raise DataError(f"{source.place} has no records.")
    return count


def _plan_design(options: DesignOptions, query: MatrixQuery) -> Design:
    """The design, with the standard directions in place of those to be learned; raises for every invalid option."""
    if not options.learned:
        return build_design(options, query)
    if options.query not in TABLES or query.neighbours is not Neighbours.REPLACE or query.person is not None:
        raise ParameterError(
            f"--directions learned is for {', '.join(TABLES)}, with replace neighbours and without --person. Leave it "
            "out, or give a file."
        )
    return build_design(options, query, np.eye(query.features))


def _release_matrix(job: _ReleaseJob) -> Callable[[], None]:
    options = job.release_options
    with (
        DeferredInterrupts() as interrupts,
        open_target(options, PlannedCharge.of_design(job.design, job.design_options)) as target,
        OutputFolder(options.out, force=options.force) as out,
        explain_charge(target),
        np.errstate(all="ignore"),
    ):
        if not target.released_before:
            _rehearse(job, out)
        content, learned = _make_release(job, target, interrupts)
        files = write_results(content, out, None if learned is None else learned.release.to_json())

    def show() -> None:
        print_remarks(options, interrupted=interrupts.pending, released_before=target.released_before)
        print_release(content, options, files, choice=job.choice)

    return show


def _rehearse(job: _ReleaseJob, out: OutputFolder) -> None:
    """Try all that does not need the data, so that what would fail does so before the charge."""
    height, width = job.query.shape
    if height * width <= _MAX_REHEARSED:
        with refuse_extremes():
            zeros = Release(job.query.finish(np.zeros(job.query.shape)), job.design)
            rehearse_folder(_show(job, zeros), out.drafts)


def _show(
    job: _ReleaseJob, release: Release, ledger: LedgerSummary | None = None, notes: tuple[str, ...] = ()
) -> ReportContent:
    """A release, ready to be shown."""
    options = job.design_options
    if job.choice is not None:
        notes = (f"By a plain release. {job.choice.reason}", *notes)
    features = parse_features(options)
    content = make_content(release, options.kind, ledger=ledger, notes=notes, target=options.target, on=features)
    return add_origin(add_dates(content, job.schema.rules), options, job.release_options)


def _make_release(
    job: _ReleaseJob, target: ChargeTarget, interrupts: DeferredInterrupts
) -> tuple[ReportContent, PrincipalDirections | None]:
    """The release, ready to be shown, and the directions that were learned for it, if any."""
    options = job.design_options
    data = _open_data(job, interrupts)
    learned = _learn_directions(job, data, target) if options.learned else None
    design = job.design if learned is None else build_design(options, job.query, learned.directions)
    missing, account = job.release_options.missing, target.make_arguments()
    released = release_with_options(design, data, options.list_aims(), missing=missing, **account)
    notes = () if learned is None else (_describe_learning(options, learned.mu),)
    return _show(job, released, target.summarise(), notes), learned


def _open_data(job: _ReleaseJob, interrupts: DeferredInterrupts) -> Any:
    """The private data as the query takes them; interrupts are deferred once they are read."""
    data: Any
    if job.design_options.query in GRAPHS:
        assert job.schema.graph is not None  # otherwise there is no query
        data = read_graph(job.source, job.schema.graph)
    elif job.design_options.query == "counts":
        data = read_pairs(job.source, job.design_options.parse_cells(), job.schema)
        if job.query.person is not None:
            (found,) = job.source.read_columns((job.query.person.column,), as_text=True)
            data = with_ids(data, list(found))
    else:
        columns = job.query.columns.names if isinstance(job.query, TableMoments) else job.query.names
        ids = () if job.query.person is None else (job.query.person.column,)
        job.source.require([*(columns or ()), *ids])
        return MonitoredRecords(job.release_options, job.query, interrupts, job.schema.rules)
    interrupts.defer()
    blocks = as_records(data)
    assert isinstance(blocks, Blocks)  # they are in memory
    return replace(blocks, read_options=job.source.read_options)


def _learn_directions(job: _ReleaseJob, data: Any, target: ChargeTarget) -> PrincipalDirections:
    """Private principal directions, for their share of the budget."""
    return principal_directions(
        data,
        job.query.bounds,  # type: ignore[attr-defined]
        job.design_options.privacy,
        records=job.query.records,  # type: ignore[attr-defined]
        share=job.design_options.directions_share,
        missing=job.release_options.missing,
        **target.make_arguments(DIRECTIONS),
    )


def _describe_learning(options: DesignOptions, mu: float) -> str:
    return (
        f"The directions were learned from the same data in a separate release (directions.json), which spent "
        f"μ = {mu:.6g}, {options.directions_share:.0%} of the budget; both together are "
        f"({options.epsilon:g}, {options.delta:.3g})-differentially private."
    )


def _release_dataset(job: _ReleaseJob) -> Callable[[], None]:
    """Write a noisy data set that is too large for a report as Parquet files."""
    options, design = job.release_options, job.design
    if job.design_options.learned:
        raise ParameterError(
            f"--directions learned is for noisy data sets of up to {_MAX_IN_MEMORY:,} entries; learn them from "
            "moments, and pass them as a file."
        )
    with (
        DeferredInterrupts() as interrupts,
        open_target(options, PlannedCharge.of_design(design, job.design_options)) as target,
        explain_charge(replace(target, request=options.request, folder=options.out)),  # it has no id of its own
    ):
        data = _open_data(job, interrupts)
        released = release_dataset(
            design,
            data,
            options.out,
            missing=options.missing,
            force=options.force,
            ledger=target.ledger,
            dataset=target.dataset,
            request=options.request,
            allowance=target.allowance,
        )
        ledger = target.summarise()
    _write_dataset_page(released, options, ledger)

    def show() -> None:
        print_remarks(options, interrupted=interrupts.pending, released_before=target.released_before)
        print_dataset(released, options, ledger)

    return show


def _write_dataset_page(released: DatasetRelease, options: ReleaseOptions, ledger: LedgerSummary | None) -> None:
    """Write the report of a data set, which is complete and stays so if this fails."""
    table, written = name_origin(options)
    page = render_dataset(released, ledger=ledger, table=table, written=written)
    try:
        (released.path / DATASET_PAGE).write_text(page, encoding="utf-8")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        click.echo(f"matrixdp: the data set is complete; {DATASET_PAGE} cannot be written: {reason}.", err=True)
