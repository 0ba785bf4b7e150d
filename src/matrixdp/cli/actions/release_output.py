"""What ``matrixdp release`` writes, and prints for people or as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
import numpy as np

from matrixdp.adaptive.method import MethodChoice
from matrixdp.cli.actions.output import echo_json, wrap_text
from matrixdp.cli.actions.release_options import ReleaseOptions
from matrixdp.display.numbers import make_visible
from matrixdp.errors import ParameterError
from matrixdp.release import AdaptiveRelease
from matrixdp.release import DatasetRelease, Guaranteed, MechanismRelease
from matrixdp.release.output_folder import OutputFolder
from matrixdp.report.answer_tables import BY_COLUMN, AnswerTable
from matrixdp.report.content import REPLACED, ReportContent
from matrixdp.report.dataset_page import DATASET_PAGE
from matrixdp.report.dates import show_dates
from matrixdp.report.files import write_folder
from matrixdp.report.ledger_summary import LedgerSummary
from matrixdp.report.strength import describe_odds, name_loss
from matrixdp.report.tables import format_matrix
from matrixdp.report.words import DASH

_MOST_TABLES = 12


def write_results(content: ReportContent, out: OutputFolder, directions: str | None = None) -> Sequence[str]:
    """Write the folder of a release, with learned directions if there are any; return the names of its files."""
    try:
        if directions is not None:
            (out.path / "directions.json").write_text(directions, encoding="utf-8")
        files = write_folder(content, out.path)
        out.finish()
    except OSError as error:
        raise ParameterError(f"out: {out.place} cannot be written: {error.strerror or error}.") from None
    return files


def print_remarks(options: ReleaseOptions, *, interrupted: bool, released_before: bool) -> None:
    """Say on standard error what was unusual about a release."""
    if interrupted:
        click.echo("matrixdp: interrupted after the charge, so the release was finished first.", err=True)
    if released_before:
        click.echo(f"matrixdp: {options.request} was released before; it was not charged again.", err=True)


def print_release(
    content: ReportContent, options: ReleaseOptions, files: Sequence[str], choice: MethodChoice | None = None
) -> None:
    """Print a released matrix, its guarantee and the path of its report."""
    release = content.release
    assert not isinstance(release, MechanismRelease)
    if options.as_json:
        facts = _collect_facts(release, options, files, content.ledger) | {"notes": list(content.remarks)}
        if choice is not None:
            facts |= choice._asdict()
        if content.answers:
            facts["answers"] = [_collect_answer(answer, content) for answer in content.answers]
        echo_json({**facts, "result": content.title, "shape": list(content.matrix.shape)})
        return
    click.echo(click.style(f"Private {content.title} ± error bars", bold=True))
    if not content.summary:
        click.echo(format_matrix(content.matrix, content.rows, content.columns, content.std))
        if content.kind == "correlation" and np.isnan(content.matrix).any():
            click.echo(f"\n{DASH}")
    _print_answers(content)
    for remark in content.remarks:
        click.echo(f"\n{click.style('Note:', bold=True)} {remark}")
    if choice is not None:
        what = "an adaptive fit" if choice.method == "adaptive" else "a plain release"
        click.echo(f"\nMethod: {what}. {choice.reason}")
    _print_guarantee(release, content.ledger, content.mechanism.query.protects)
    click.echo(f"Report: {options.out / 'report.html'}")


def _print_answers(content: ReportContent) -> None:
    """Print the answers for all records and the table of groups; the others are in the report."""
    shown = [answer for answer in content.answers if not answer.group and answer.name != "covariance"]
    for answer in shown[:_MOST_TABLES]:
        estimate = answer.estimate
        click.echo(f"\n{make_visible(answer.title)}")
        undefined = estimate.reason
        by_column, has_means = answer.name in BY_COLUMN, answer.name in ("means", *BY_COLUMN)
        text = show_dates(estimate, content.dates if has_means else (), by_column=by_column)
        numbers = (estimate.value, estimate.rows, estimate.columns, estimate.std)
        click.echo(format_matrix(*numbers, undefined=undefined, text=text))
    if len(shown) < len(content.answers):
        click.echo("\nThe other tables are in the report and in the CSV files.")


def _collect_answer(answer: AnswerTable, content: ReportContent) -> dict[str, Any]:
    by: tuple[str, ...] = getattr(content.mechanism.query, "by", ())
    group = dict(zip(by, answer.group, strict=True)) if answer.group else None
    return {"file": f"{answer.name}.csv", "title": answer.title, "group": group, **answer.estimate.to_dict()}


def print_dataset(release: DatasetRelease, options: ReleaseOptions, ledger: LedgerSummary | None) -> None:
    """Print where a noisy data set is, how large its noise is, and its guarantee."""
    design = release.design
    rows, columns = design.query.shape
    if options.as_json:
        facts = _collect_facts(release, options, [*release.files, DATASET_PAGE, "_release.json"], ledger)
        facts["notes"] = [REPLACED] if release.missing == "midpoint" else []
        echo_json({**facts, "result": "noisy data set", "shape": [rows, columns]})
        return
    count = len(release.files)
    click.echo(f"Wrote {rows:,} noisy records of {columns} columns to {options.out}, in {count:,} Parquet files")
    click.echo("\nStandard deviation of the noise in every row:")
    click.echo(format_matrix(release.std[None], ("noise",), design.query.names or ()))
    if release.missing == "midpoint":
        click.echo(f"\n{click.style('Note:', bold=True)} {REPLACED}")
    _print_guarantee(release, ledger, design.query.protects)
    click.echo(f"Report: {options.out / DATASET_PAGE}")


def _print_guarantee(release: Guaranteed | AdaptiveRelease, ledger: LedgerSummary | None, unit: str) -> None:
    epsilon, delta = release.privacy.epsilon, release.privacy.delta
    click.echo(
        f"\nGuarantee: ({epsilon:g}, {delta:.3g})-DP, {release.neighbours} neighbours, protects {unit}: "
        f"{name_loss(epsilon)}"
    )
    click.echo(wrap_text(describe_odds(epsilon, delta, unit)))
    if ledger is None:
        click.echo("No ledger was used: nothing keeps the total spent on these data.")
    else:
        click.echo(
            f"Ledger: epsilon {ledger.left_after:.4g} of {ledger.epsilon:g} is left, {ledger.left_before:.4g} before "
            "this release (releases add up as squares of mu, not as epsilons)"
        )


def _collect_facts(
    release: Guaranteed | AdaptiveRelease, options: ReleaseOptions, files: Sequence[str], ledger: LedgerSummary | None
) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "out": str(options.out),
        "files": list(files),
        "epsilon": release.privacy.epsilon,
        "delta": release.privacy.delta,
        "loss": name_loss(release.privacy.epsilon),
        "neighbours": str(release.neighbours),
        "unit": str(release.unit),
        "mu": release.mu,
        "ledger": None,
    }
    if ledger is not None:
        facts["ledger"] = {
            "dataset": ledger.dataset,
            "allowance": ledger.allowance,
            "charged": ledger.charged,
            "epsilon_left_before": ledger.left_before,
            "epsilon_left_after": ledger.left_after,
            "head": {"entry": ledger.entry, "hash": ledger.hash},
        }
    return facts
