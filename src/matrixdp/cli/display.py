"""What a person, or a script, sees of a release."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from matrixdp.cli.output import echo_json
from matrixdp.cli.release_options import Job
from matrixdp.design import Design
from matrixdp.release import Release
from matrixdp.report.content import LedgerState, Result
from matrixdp.report.tables import matrix_table


def show_result(result: Result, job: Job, files: list[str]) -> None:
    """The matrix and its guarantee."""
    release: Release = result.release
    design: Design = release.design
    if job.as_json:
        echo_json(release_facts(job, design, files, result.title, result.matrix.shape, result.ledger))
        return
    click.echo(click.style(f"Private {result.title} ± error bars", bold=True))
    click.echo(matrix_table(result.matrix, result.rows, result.columns, result.std))
    show_guarantee(design, result.ledger)
    click.echo(f"The report: {job.out / 'report.html'}")


def show_guarantee(design: Design, left: LedgerState | None) -> None:
    """What is guaranteed, and what is left in the ledger."""
    epsilon, delta = design.privacy.epsilon, design.privacy.delta
    click.echo(f"\nGuarantee: ({epsilon:g}, {delta:.3g})-DP, {design.neighbours} neighbours")
    if left is None:
        click.echo("No ledger was used: nobody adds up what is spent on these data.")
    else:
        click.echo(
            f"Ledger: epsilon {left.left_before:.4g} was left of {left.epsilon:g}, {left.left_after:.4g} is now "
            "(releases add up by the squares of mu, not by epsilon)"
        )


def release_facts(
    job: Job, design: Design, files: Sequence[str], title: str, shape: Sequence[int], left: LedgerState | None
) -> dict[str, Any]:
    """The same for scripts."""
    ledger = None
    if left is not None:
        ledger = {
            "dataset": left.dataset,
            "epsilon_left_before": left.left_before,
            "epsilon_left_after": left.left_after,
            "head": {"entry": left.entry, "hash": left.hash},
        }
    return {
        "out": str(job.out),
        "files": list(files),
        "result": title,
        "shape": list(shape),
        "epsilon": design.privacy.epsilon,
        "delta": design.privacy.delta,
        "neighbours": str(design.neighbours),
        "mu": design.distance,
        "ledger": ledger,
    }
