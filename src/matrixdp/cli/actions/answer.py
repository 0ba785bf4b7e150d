"""The work of ``matrixdp answer``: post-processing of a stored release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from matrixdp.cli.actions.output import echo_json
from matrixdp.display import Numbers, format_numbers, make_visible, write_csv
from matrixdp.domain.file_rules import DateRule
from matrixdp.domain.schema_file import read_schema
from matrixdp.errors import ParameterError
from matrixdp.release.adaptive_release import AdaptiveRelease
from matrixdp.release.output_folder import write_file
from matrixdp.release.reading import from_json
from matrixdp.release.result import Release
from matrixdp.report import answers as questions
from matrixdp.report.answers import Answer, Answerable, align_rows
from matrixdp.report.dates import read_dates, show_dates

_LARGEST_FILE = 1 << 31  # bytes


def answer_means(path: Path, by: str | None, *, shrunk: bool, **options: Any) -> None:
    """Print means, by level if `by` is given."""
    release, group = _read(path, options)
    answer = questions.answer_means(release, by, group, shrunk=shrunk)
    text = show_dates(answer.estimate, options["dates"], by_column=by is not None)
    _print(release, answer, text, **options)


def answer_table(path: Path, rows: str, columns: str, *, shrunk: bool, **options: Any) -> None:
    """Print how many records or people have each pair of levels."""
    release, group = _read(path, options)
    _print(release, questions.answer_table(release, rows, columns, group, shrunk=shrunk), **options)


def answer_matrix(path: Path, kind: str, *, shrunk: bool = False, **options: Any) -> None:
    """Print correlations or covariances."""
    release, group = _read(path, options)
    _print(release, questions.answer_matrix(release, kind, group, shrunk=shrunk), **options)


def answer_sampling(path: Path, kind: str, *, csv_file: Path | None, as_json: bool) -> None:
    """Print what privacy costs and what sampling adds."""
    file, text = _read_text(path)
    try:
        release = from_json(text)
        if not isinstance(release, AdaptiveRelease | Release):
            raise ParameterError("RELEASE must be of means, a covariance, a correlation or the moments of a table.")
        answer = questions.answer_sampling(release, kind)
    except ParameterError as error:
        raise ParameterError(f"{file}: {error}") from None
    _write(release, answer, align_rows(answer.estimate, (1, 2)), csv_file=csv_file, as_json=as_json)


def answer_components(path: Path, count: int | None, **options: Any) -> None:
    """Print principal components."""
    release, group = _read(path, options)
    _print(release, questions.answer_components(release, count, group), **options)


def answer_regression(path: Path, target: str, on: str | None, **options: Any) -> None:
    """Print the coefficients of a linear regression."""
    release, group = _read(path, options)
    answer = questions.answer_regression(release, target, _names(on), group)
    _print(release, answer, align_rows(answer.estimate, (1, 2)), **options)


def answer_discriminant(path: Path, target: str, on: str | None, **options: Any) -> None:
    """Print the scores of a linear discriminant analysis."""
    release, group = _read(path, options)
    _print(release, questions.answer_discriminant(release, target, _names(on), group), **options)


def _read(path: Path, options: dict[str, Any]) -> tuple[Answerable, dict[str, str] | None]:
    """The release, and the group of --group; `options` get the rules of its columns of dates."""
    file, text = _read_text(path)
    try:
        release = questions.as_answerable(from_json(text))
    except ParameterError as error:
        raise ParameterError(f"{file}: {error}") from None
    if release is None:
        raise ParameterError(
            f"{file}: no further answers follow from this release. They follow from --query everything, means, table, "
            "moments, covariance, correlation, components or regression."
        )
    schema = options.pop("schema")
    options["dates"] = read_dates(file.parent) if schema is None else tuple(read_schema(schema).rules.dates)
    return release, _group(options.pop("group"))


def _read_text(path: Path) -> tuple[Path, str]:
    """The file of a release and its text."""
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
    return file, text


def _group(text: str | None) -> dict[str, str] | None:
    if text is None:
        return None
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(mark and name.strip() for name, mark, _ in pairs):
        raise ParameterError(f"--group must be NAME=LEVEL,..., got {text!r} instead.")
    return {name.strip(): level.strip() for name, _, level in pairs}


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]


def _print(
    release: Answerable,
    answer: Answer,
    text: Callable[[int, int], str] = lambda _row, _column: "",
    *,
    dates: Sequence[DateRule],
    csv_file: Path | None,
    as_json: bool,
) -> None:
    terms = {*answer.estimate.rows, *answer.estimate.columns, answer.facts.get("target")}
    used = [rule for rule in dates if rule.name in terms]
    counted = [f"{rule.name}: a {rule.kind}, counted in {rule.meaning}." for rule in used]
    _write(release, replace(answer, notes=(*answer.notes, *counted)), text, csv_file=csv_file, as_json=as_json)


def _write(
    release: Answerable | AdaptiveRelease,
    answer: Answer,
    text: Callable[[int, int], str] = lambda _row, _column: "",
    *,
    csv_file: Path | None,
    as_json: bool,
) -> None:
    estimate = answer.estimate
    if csv_file is not None:
        write_file(csv_file, write_csv(answer.estimate), option="csv")
    if as_json:
        echo_json(questions.to_facts(release, answer))
        return
    click.echo(click.style(make_visible(answer.title), bold=True))
    bars = estimate.std if np.isfinite(estimate.std).any() and estimate.std.any() else None
    shown = Numbers(estimate.value, bars, estimate.rows, estimate.columns, estimate.reason)
    click.echo(format_numbers(shown, text=text))
    click.echo()
    for note in questions.list_notes(release, answer):
        click.echo(make_visible(note))
    if csv_file is not None:
        click.echo(f"Written to {csv_file}")
