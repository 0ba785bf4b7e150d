"""``matrixdp design``: what a release would be like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from matrixdp.answers.moments import correlation, covariance
from matrixdp.cli.design_options import GRAPHS, Asked, load_schema, make_asked_design, make_query, require_records
from matrixdp.cli.ledger_command import open_ledger
from matrixdp.cli.output import echo_json, write_file
from matrixdp.design import Design
from matrixdp.errors import ParameterError
from matrixdp.privacy import share_mu
from matrixdp.report.pictures import design_picture
from matrixdp.report.tables import matrix_table, table
from matrixdp.types import Floats

_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)


def run_design(
    asked: Asked,
    *,
    plot: Path | None,
    features: str | None,
    ledger: Path | None,
    dataset: str | None,
    as_json: bool,
) -> None:
    """Make the design and show it."""
    schema = load_schema(asked)
    records = None if asked.query in GRAPHS else require_records(asked, schema)
    query = make_query(asked, schema, records)
    design = make_asked_design(asked, query)
    left = None if ledger is None else _left(ledger, dataset, asked, design)
    if plot is not None:
        _plot(design, plot, features)
    if as_json:
        echo_json(_facts(asked, design, left))
    else:
        _show(asked, design, left, plot)


def predicted(asked: Asked, design: Design) -> tuple[Floats, Sequence[str], Sequence[str]]:
    """Standard deviation of every entry that will be shown, and the entries' names.

    For a covariance or correlation they depend on the data; here for features that are uncorrelated and spread evenly
    over their bounds.
    """
    rows, columns = design.query.entry_names
    if asked.kind == "matrix":
        return design.std, rows, columns
    assert design.query.moment_bounds is not None
    supposed = np.diag(np.concatenate([[1.0], design.query.moment_bounds.halfwidths**2 / 3]))
    estimate = (covariance if asked.kind == "covariance" else correlation)(supposed, design)
    return estimate.std, rows[1:], columns[1:]


def _left(path: Path, dataset: str | None, asked: Asked, design: Design) -> tuple[float, float]:
    if dataset is None:
        raise ParameterError("--dataset must be given with --ledger: the name under which the data are registered.")
    with open_ledger(path) as ledger:
        before = ledger.remaining(dataset).epsilon
        # Learned directions and the release together cost what the whole budget allows.
        event = type(design.event)(asked.privacy.mu) if asked.learned else design.event
        after = ledger.whatif(dataset, event).epsilon
        ledger.whatif(dataset, design)
    return before, after


def _budgets(asked: Asked, design: Design) -> list[dict[str, float]]:
    """Error against epsilon."""
    rows = []
    for factor in _FACTORS:
        try:
            other = make_asked_design(replace(asked, epsilon=asked.epsilon * factor), design.query)
        except ParameterError:  # beyond what the mechanism can be asked for
            continue
        std, _, _ = predicted(asked, other)
        rows.append(
            {
                "epsilon": other.privacy.epsilon,
                "mu": other.distance,
                "median_std": float(np.nanmedian(std[std > 0])),
                "largest_std": float(np.nanmax(std)),
                "relative_error": other.relative_error,
            }
        )
    return rows


def _facts(asked: Asked, design: Design, left: tuple[float, float] | None) -> dict[str, Any]:
    std, rows, columns = predicted(asked, design)
    shown = std[:1] if std.strides[0] == 0 else std
    facts: dict[str, Any] = {
        "query": asked.query,
        "shape": list(design.query.shape),
        "epsilon": design.privacy.epsilon,
        "delta": design.privacy.delta,
        "neighbours": str(design.neighbours),
        "calibration": design.calibration,
        "allocation": design.allocation.rule,
        "mu": design.distance,
        "mu_squared": design.distance**2,
        "directions_mu": share_mu(asked.privacy.mu, asked.directions_share) if asked.learned else None,
        "exact": design.exact,
        "gain": design.gain,
        "relative_error": design.relative_error,
        "rows": list(rows) if shown is std else None,
        "columns": list(columns),
        "std": shown.tolist(),
        "budgets": _budgets(asked, design),
    }
    if left is not None:
        facts["ledger"] = {"epsilon_left_before": left[0], "epsilon_left_after": left[1]}
    return facts


def _show(asked: Asked, design: Design, left: tuple[float, float] | None, plot: Path | None) -> None:
    std, rows, columns = predicted(asked, design)
    click.echo(design.explain())
    title = "Predicted standard deviation of every entry"
    if asked.kind != "matrix":
        title += f" of the {asked.kind}, for uncorrelated features spread evenly over their bounds"
    if std.strides[0] == 0:
        title, std, rows = f"{title.replace('every entry', 'each entry of every row')}", std[:1], ["all"]
    _say(title, matrix_table(std, rows, columns))
    budgets = [
        [f"{row['epsilon']:g}", f"{row['median_std']:.3g}", f"{row['largest_std']:.3g}", f"{row['relative_error']:.2%}"]
        for row in _budgets(asked, design)
    ]
    _say("Error against epsilon", table(["epsilon", "median std", "largest std", "relative to range"], budgets))
    _say("In the ledger", _cost(asked, design, left))
    if plot is not None:
        click.echo(f"\nThe picture: {plot}")


def _cost(asked: Asked, design: Design, left: tuple[float, float] | None) -> str:
    words = f"  a release costs mu {design.distance:.6g}, which is mu^2 {design.distance**2:.6g}"
    if asked.learned:
        share = share_mu(asked.privacy.mu, asked.directions_share)
        words += f"\n  learning its directions first costs mu {share:.6g} besides; the errors above are "
        words += "for the features' own axes. Along learned ones they may be less, or far more if ranges differ much"
    if left is not None:
        words += f"\n  epsilon {left[0]:.4g} is left, and {left[1]:.4g} would be left after it"
    return words


def _plot(design: Design, path: Path, features: str | None) -> None:
    rows, columns = design.query.entry_names
    names = columns[-design.query.features :] if design.query.side != "rows" else rows
    pair = _pair(features, names)
    chosen = ("", "") if pair is None else (names[pair[0]], names[pair[1]])
    write_file(path, design_picture(design, rows, columns, pair, chosen), option="plot")


def _pair(features: str | None, names: Sequence[str]) -> tuple[int, int] | None:
    if features is None:
        return (0, 1) if len(names) > 1 else None
    chosen = [name.strip() for name in features.split(",")]
    if len(chosen) != 2 or chosen[0] == chosen[1] or not set(chosen) <= set(names):
        raise ParameterError(f"--features must name two of {', '.join(names[:20])}, got {features!r} instead.")
    return names.index(chosen[0]), names.index(chosen[1])


def _say(title: str, words: str) -> None:
    click.echo(f"\n{click.style(title, bold=True)}\n{words}")
