"""What ``matrixdp release`` prints, for people or as JSON: the answers, their guarantee, and what is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from matrixdp.cli.output import echo_json, wrap_text
from matrixdp.display import format_numbers, make_visible
from matrixdp.release.adaptive_release import AdaptiveRelease
from matrixdp.release.dataset import DatasetRelease
from matrixdp.release.registered import MechanismRelease
from matrixdp.release.result import Guaranteed
from matrixdp.report.dates import show_dates
from matrixdp.report.guarantee import LedgerSummary, describe_odds, name_loss
from matrixdp.report.release_folder import ReleaseFolder
from matrixdp.report.release_page import DATASET_PAGE, write_words

_MOST_TABLES = 12


def print_release(folder: ReleaseFolder, out: Path, *, as_json: bool) -> None:
    """Print a released matrix, its guarantee and the path of its report."""
    content, choice = folder.content, folder.outcome.plan.choice
    release, (height, width) = content.release, content.matrix.shape
    assert not isinstance(release, MechanismRelease)
    if as_json:
        facts = _collect_facts(folder, out) | {"notes": list(content.caveats + content.units)}
        if choice is not None:
            facts |= choice._asdict()
        by = getattr(content.mechanism.query, "by", ())
        answers = () if content.in_files else content.answers
        if answers:
            facts["answers"] = []
        for answer in answers:
            group = dict(zip(by, answer.group, strict=True)) if answer.group else None
            named = {"file": f"{answer.name}.csv", "title": answer.title, "group": group}
            facts["answers"].append({**named, **answer.estimate.to_dict()})
        echo_json({**facts, "result": content.title, "shape": [height, width]})
        return
    if isinstance(release, DatasetRelease):
        count = len(release.files)
        click.echo(f"Wrote {height:,} noisy records of {width} columns to {out}, in {count:,} Parquet files")
    else:
        click.echo(click.style(f"Private {content.title} ± error bars", bold=True))
    if not content.summary:
        click.echo(format_numbers(content.entries))
        if content.has_dashes:
            click.echo("\n" + "\n".join(write_words("dash")))
    shown = [answer for answer in content.answers if not answer.group and answer.name != "covariance"]
    for answer in shown[:_MOST_TABLES]:
        table = format_numbers(answer.estimate, show_dates(answer, content.dates))
        click.echo(f"\n{make_visible(answer.title)}\n{table}")
    if len(shown) < len(content.answers):
        click.echo("\nThe other tables are in the report and in the CSV files.")
    for remark in content.caveats + content.units:
        click.echo(f"\n{click.style('Note:', bold=True)} {remark}")
    if choice is not None:
        what = "an adaptive fit" if choice.method == "adaptive" else "a plain release"
        click.echo(f"\nMethod: {what}. {choice.reason}")
    _print_guarantee(release, content.ledger, content.mechanism.query.protects)
    click.echo(f"Report: {out / (DATASET_PAGE if content.in_files else 'report.html')}")


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


def _collect_facts(folder: ReleaseFolder, out: Path) -> dict[str, Any]:
    release, ledger = folder.outcome.release, folder.content.ledger
    facts: dict[str, Any] = {
        "out": str(out),
        "files": list(folder.files),
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
