"""What ``matrixdp release`` does where an adaptive fit is the method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from matrixdp.adaptive.method import MethodChoice
from matrixdp.cli.actions.charge_target import ChargeTarget, PlannedCharge, explain_charge, open_target
from matrixdp.cli.actions.date_units import add_dates
from matrixdp.cli.actions.design_options import DesignOptions, refuse_extremes
from matrixdp.cli.actions.interrupts import DeferredInterrupts
from matrixdp.cli.actions.method import parse_features
from matrixdp.cli.actions.release_options import MonitoredRecords, ReleaseOptions
from matrixdp.cli.actions.release_output import print_release, print_remarks, write_results
from matrixdp.cli.actions.report_origin import add_origin
from matrixdp.domain.bounds import Bounds
from matrixdp.domain.person import Person
from matrixdp.release import AdaptiveRelease
from matrixdp.release.release_covariance import describe_adaptive, release_adaptive
from matrixdp.release.sample import make_sample_release
from matrixdp.ledger import Gaussian
from matrixdp.privacy import Neighbours
from matrixdp.queries import Moments
from matrixdp.records.file_rules import FileRules
from matrixdp.records.files import Files
from matrixdp.release.output_folder import OutputFolder
from matrixdp.report.content import ReportContent, make_content
from matrixdp.report.files import rehearse_folder
from matrixdp.report.ledger_summary import LedgerSummary


@dataclass(frozen=True)
class AdaptiveJob:
    """One run of the command: its options, the files and their rules, public bounds and number, and the method."""

    design_options: DesignOptions
    release_options: ReleaseOptions
    source: Files
    bounds: Bounds
    records: int
    choice: MethodChoice
    rules: FileRules
    person: Person | None = None

    @property
    def neighbours(self) -> Neighbours:
        """What one person may change."""
        return Neighbours.parse(self.design_options.neighbours or Neighbours.REPLACE)

    @property
    def targets(self) -> int:
        """Number of last columns that a regression explains."""
        return int(self.design_options.query == "regression")

    def plan_charge(self) -> PlannedCharge:
        """What the ledger will be charged with."""
        options = self.design_options
        asked = (self.bounds, options.privacy, options.query, self.records, self.neighbours, self.targets, self.person)
        return PlannedCharge(Gaussian(options.privacy.mu), partial(describe_adaptive, *asked), self.bounds.size**2)

    def make_sample(self) -> AdaptiveRelease:
        """A made-up release of the same shape."""
        options = self.design_options
        asked = self.bounds, options.privacy, self.records, self.neighbours
        return make_sample_release(*asked, aim=options.query, person=self.person)

    def show(self, release: AdaptiveRelease, ledger: LedgerSummary | None = None) -> ReportContent:
        """The release, ready to be shown."""
        options = self.design_options
        features = parse_features(options)
        content = make_content(release, options.kind, ledger=ledger, target=options.target, on=features)
        return add_origin(add_dates(content, self.rules), options, self.release_options)


def run_adaptive_release(job: AdaptiveJob) -> Callable[[], None]:
    """Read the data, charge the ledger, fit and write the folder, in this order.

    Returns
    -------
    callable
        Prints the release.
    """
    options = job.release_options
    ids = () if job.person is None else (job.person.column,)
    job.source.require([*(job.bounds.names or ()), *ids])
    with (
        DeferredInterrupts() as interrupts,
        open_target(options, job.plan_charge()) as target,
        OutputFolder(options.out, force=options.force) as out,
        explain_charge(target),
        np.errstate(all="ignore"),
    ):
        if not target.released_before:
            with refuse_extremes():
                rehearse_folder(job.show(job.make_sample()), out.drafts)
        content = job.show(_fit(job, target, interrupts), target.summarise())
        files = write_results(content, out)

    def show() -> None:
        print_remarks(options, interrupted=interrupts.pending, released_before=target.released_before)
        print_release(content, options, files, choice=job.choice)

    return show


def _fit(job: AdaptiveJob, target: ChargeTarget, interrupts: DeferredInterrupts) -> AdaptiveRelease:
    options = job.design_options
    # Says how many records a progress bar expects, and whether it may show their number.
    query = Moments(job.bounds, job.records, neighbours=job.neighbours, person=job.person)
    return release_adaptive(
        MonitoredRecords(job.release_options, query, interrupts, job.rules),
        job.bounds,
        options.privacy,
        aim=options.query,
        choice=job.choice,
        records=job.records,
        neighbours=job.neighbours,
        person=job.person,
        targets=job.targets,
        options=options.list_aims(),
        **target.make_arguments(),
    )
