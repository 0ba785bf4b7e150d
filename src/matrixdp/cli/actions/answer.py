"""The work of ``matrixdp answer``: post-processing of a stored release."""

from __future__ import annotations

import io
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from matrixdp.answers.named import HIDDEN, NamedEstimate
from matrixdp.cli.actions.output import echo_json, write_file
from matrixdp.display.numbers import make_visible
from matrixdp.errors import ParameterError
from matrixdp.queries import TableMoments
from matrixdp.release import Release
from matrixdp.report.content import REPLACED
from matrixdp.report.files import quote_formula
from matrixdp.report.tables import format_matrix

_LARGEST_FILE = 1 << 31  # bytes
_NO_COST = "This costs no privacy: it follows from the release alone, however many answers are read off it."


@dataclass(frozen=True, eq=False)
class _Answer:
    """What is printed: a title, numbers, and how to read them."""

    title: str
    estimate: NamedEstimate
    notes: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)


_BARS = "± is one standard deviation of the privacy noise; sampling error is not in it."


def answer_means(path: Path, by: str | None, **options: Any) -> None:
    """Print means, by level if `by` is given."""
    release, group = _read(path, options)
    title = "Means" if by is None else f"Means by {by}"
    _print(release, _Answer(title, release.means(by, group), (_BARS,)), **options)


def answer_table(path: Path, rows: str, columns: str, **options: Any) -> None:
    """Print how many records or people have each pair of levels."""
    release, group = _read(path, options)
    shares = release.table(rows, columns, group)
    query = release.design.query
    records = query.records  # type: ignore[attr-defined]
    counts = replace(shares, value=shares.value * records, std=shares.std * records)
    _print(release, _Answer(f"{query.count_word.capitalize()} by {rows} and {columns}", counts, (_BARS,)), **options)


def answer_matrix(path: Path, kind: str, **options: Any) -> None:
    """Print correlations or covariances."""
    release, group = _read(path, options)
    found = release.correlation(group) if kind == "correlation" else release.covariance(group)
    assert isinstance(found, NamedEstimate)
    _print(release, _Answer(kind.capitalize(), found, (_BARS,)), **options)


def answer_components(path: Path, count: int | None, **options: Any) -> None:
    """Print principal components."""
    release, group = _read(path, options)
    found = release.components(count, group)
    notes = [_BARS, "Loadings of the standardised numbers; the sign of a component is arbitrary."]
    if not found.reliable.all():
        notes.append("A component that noise mixes with another one is not shown.")
    _print(release, _Answer("Principal components", found, tuple(notes)), **options)


def answer_regression(path: Path, target: str, on: str | None, **options: Any) -> None:
    """Print the coefficients of a linear regression."""
    release, group = _read(path, options)
    found = release.regression(target, _names(on), group)
    low, high = found.interval()
    value = np.column_stack([found.coefficients, found.noise_std, found.sampling_std, low, high])
    columns = ("coefficient", "noise std", "sampling std", "95% low", "95% high")
    notes = (
        f"R^2 {found.r_squared:.3f}. The intervals cover the privacy noise and the sampling error.",
        "Of a category, coefficients are differences from its first level.",
    )
    facts = {"target": target, "r_squared": found.r_squared}
    if np.isnan(found.noise_std).any():
        notes += ("A dash: features are nearly collinear, and noise hides which of them matters.",)
    reasons = np.full(value.shape, HIDDEN, object)
    estimate = NamedEstimate(value, np.full_like(value, np.nan), found.names, columns, reasons)
    _print(release, _Answer(f"Regression of {target}", estimate, notes, facts), **options)


def answer_discriminant(path: Path, target: str, on: str | None, **options: Any) -> None:
    """Print the scores of a linear discriminant analysis."""
    release, group = _read(path, options)
    found = release.discriminant(target, _names(on), group)
    value = np.column_stack([found.intercepts, found.coefficients]).T
    value = value - value.mean(axis=1, keepdims=True)
    std = np.column_stack([found.intercept_std, found.coefficient_std]).T
    estimate = NamedEstimate(value, std, ("intercept", *found.names), found.classes)
    notes = (
        "The score of a level is its intercept plus the sum of coefficients times values (1 for a level that a record "
        "has, beside the first one), here as the difference from the mean of all scores. A record is classified as the "
        "level with the largest score.",
        _BARS,
    )
    _print(release, _Answer(f"Discriminant scores of {target}", estimate, notes, {"target": target}), **options)


def _read(path: Path, options: dict[str, Any]) -> tuple[Release, dict[str, str] | None]:
    """The release of a table, and the group of --group."""
    file = path / "release.json" if path.is_dir() else path
    try:
        if file.stat().st_size > _LARGEST_FILE:
            raise ParameterError(f"RELEASE must be at most 2 GiB, and {file} is larger.")
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ParameterError(f"RELEASE must be a release.json, or the folder of one; {file} is not text.") from None
    except OSError as error:
        raise ParameterError(
            f"RELEASE must be a release.json, or the folder of one: {file} cannot be read: "
            f"{error.strerror or type(error).__name__}."
        ) from None
    try:
        release = Release.from_json(text)
    except ParameterError as error:
        raise ParameterError(f"{file}: {error}") from None
    if not isinstance(release.design.query, TableMoments):
        raise ParameterError(
            f"{file}: RELEASE must be of the moments of a table (--query everything, means or table), got "
            f"{release.design.query.title} instead."
        )
    return release, _group(options.pop("group"))


def _group(text: str | None) -> dict[str, str] | None:
    if text is None:
        return None
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(mark and name.strip() for name, mark, _ in pairs):
        raise ParameterError(f"--group must be NAME=LEVEL,..., got {text!r} instead.")
    return {name.strip(): level.strip() for name, _, level in pairs}


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]


def _print(release: Release, answer: _Answer, *, csv_file: Path | None, as_json: bool) -> None:
    estimate = answer.estimate
    caveats = [REPLACED] if release.missing == "midpoint" else []
    if release.simulation:
        caveats.append("This is a simulation: it protects nothing.")
    if csv_file is not None:
        write_file(csv_file, _to_csv(answer), option="csv")
    if as_json:
        notes = [*answer.notes, _NO_COST, *caveats]
        echo_json({"title": answer.title, **answer.facts, **estimate.to_dict(), "notes": notes})
        return
    click.echo(click.style(make_visible(answer.title), bold=True))
    bars = estimate.std if np.isfinite(estimate.std).any() else None
    undefined = estimate.reason
    click.echo(format_matrix(estimate.value, estimate.rows, estimate.columns, bars, undefined=undefined))
    click.echo()
    for note in (*answer.notes, _NO_COST, *caveats):
        click.echo(make_visible(note))
    if csv_file is not None:
        click.echo(f"Written to {csv_file}")


def _to_csv(answer: _Answer) -> str:
    """One number to a line, as in the files of a release."""
    import csv

    estimate, text = answer.estimate, io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["row", "column", "value", "std", "note"])
    for i, row in enumerate(estimate.rows):
        for j, column in enumerate(estimate.columns):
            numbers = [float(array[i, j]) for array in (estimate.value, estimate.std)]
            shown = [number if np.isfinite(number) else "" for number in numbers]
            writer.writerow([quote_formula(row), quote_formula(column), *shown, estimate.reason(i, j)])
    return text.getvalue()
