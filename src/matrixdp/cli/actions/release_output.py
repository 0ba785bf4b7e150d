"""What ``matrixdp release`` prints, for people or as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from matrixdp.cli.actions.output import echo_json
from matrixdp.cli.actions.release_options import ReleaseOptions
from matrixdp.design import Design
from matrixdp.display.numbers import make_visible
from matrixdp.release import DatasetRelease, Release
from matrixdp.report.answer_tables import AnswerTable
from matrixdp.report.content import REPLACED, LedgerSummary, ReportContent
from matrixdp.report.tables import format_matrix

_MOST_TABLES = 12


def print_release(content: ReportContent, options: ReleaseOptions, files: Sequence[str]) -> None:
    """Print a released matrix, its guarantee and the path of its report."""
    release = content.release
    assert isinstance(release, Release)
    if options.as_json:
        facts = _collect_facts(release.design, options, files, content.ledger) | {"notes": list(content.caveats)}
        if content.answers:
            facts["answers"] = [_collect_answer(answer, content) for answer in content.answers]
        echo_json({**facts, "result": content.title, "shape": list(content.matrix.shape)})
        return
    click.echo(click.style(f"Private {content.title} ± error bars", bold=True))
    if not content.summary:
        click.echo(format_matrix(content.matrix, content.rows, content.columns, content.std))
    _print_answers(content)
    for caveat in content.caveats:
        click.echo(f"\n{click.style('Note:', bold=True)} {caveat}")
    _print_guarantee(release.design, content.ledger)
    click.echo(f"Report: {options.out / 'report.html'}")


def _print_answers(content: ReportContent) -> None:
    """Print the answers for all records and the table of groups; the others are in the report."""
    shown = [answer for answer in content.answers if not answer.group and answer.name != "covariance"]
    for answer in shown[:_MOST_TABLES]:
        estimate = answer.estimate
        click.echo(f"\n{make_visible(answer.title)}")
        undefined = estimate.reason
        click.echo(format_matrix(estimate.value, estimate.rows, estimate.columns, estimate.std, undefined=undefined))
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
        facts = _collect_facts(design, options, [*release.files, "_release.json"], ledger)
        facts["notes"] = [REPLACED] if release.missing == "midpoint" else []
        echo_json({**facts, "result": "noisy data set", "shape": [rows, columns]})
        return
    count = len(release.files)
    click.echo(f"Wrote {rows:,} noisy records of {columns} columns to {options.out}, in {count:,} Parquet files")
    click.echo("\nStandard deviation of the noise in every row:")
    click.echo(format_matrix(release.std[None], ("noise",), design.query.names or ()))
    if release.missing == "midpoint":
        click.echo(f"\n{click.style('Note:', bold=True)} {REPLACED}")
    _print_guarantee(design, ledger)


def _print_guarantee(design: Design, ledger: LedgerSummary | None) -> None:
    epsilon, delta = design.privacy.epsilon, design.privacy.delta
    click.echo(
        f"\nGuarantee: ({epsilon:g}, {delta:.3g})-DP, {design.neighbours} neighbours, protects {design.query.protects}"
    )
    if ledger is None:
        click.echo("No ledger was used: nothing keeps the total spent on these data.")
    else:
        click.echo(
            f"Ledger: epsilon {ledger.left_after:.4g} of {ledger.epsilon:g} is left, {ledger.left_before:.4g} before "
            "this release (releases add up as squares of mu, not as epsilons)"
        )


def _collect_facts(
    design: Design, options: ReleaseOptions, files: Sequence[str], ledger: LedgerSummary | None
) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "out": str(options.out),
        "files": list(files),
        "epsilon": design.privacy.epsilon,
        "delta": design.privacy.delta,
        "neighbours": str(design.neighbours),
        "unit": str(design.unit),
        "mu": design.distance,
        "ledger": None,
    }
    if ledger is not None:
        facts["ledger"] = {
            "dataset": ledger.dataset,
            "allowance": ledger.allowance,
            "epsilon_left_before": ledger.left_before,
            "epsilon_left_after": ledger.left_after,
            "head": {"entry": ledger.entry, "hash": ledger.hash},
        }
    return facts
