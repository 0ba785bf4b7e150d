"""``matrixdp answer``: what else follows from a release, at no further cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from matrixdp.cli.options import PATH, combine_options, json_option
from matrixdp.cli.output import Group, echo_json
from matrixdp.errors import ParameterError
from matrixdp.release.options import split_names

if TYPE_CHECKING:
    from matrixdp.display import Texts
    from matrixdp.domain.file_rules import DateRule
    from matrixdp.report.answers import Answer, Answerable

_LARGEST_FILE = 1 << 31  # bytes


@click.group(cls=Group)
def answer() -> None:
    """Read further answers off a release. Costs no privacy: only the release is read."""


_release = click.argument("release", metavar="RELEASE", type=PATH)
_written = combine_options(
    click.option("--csv", "csv_file", type=PATH, help="Also write the numbers to this CSV file."), json_option
)
_output = combine_options(
    click.option(
        "--group",
        metavar="NAME=LEVEL,...",
        help="Of these records alone: levels of columns by which the release is grouped. [default: all records]",
    ),
    click.option(
        "--schema",
        type=PATH,
        help="Schema by which columns of dates and times are shown. [default: dates.json beside the release]",
    ),
    _written,
)
_shrunk = click.option(
    "--shrunk",
    is_flag=True,
    help="Less error on average where noise dominates, at the price of a bias towards no differences.",
)
_on = click.option("--on", metavar="NAME,...", help="The columns that explain it. [default: all others]")


@answer.command("means", example="matrixdp answer means out/ --by ward")
@_release
@click.option("--by", metavar="NAME", help="A category, or a column by which the release is grouped.")
@_shrunk
@_output
def means(release: Path, by: str | None, shrunk: bool, **options: Any) -> None:
    """Means and standard deviations of numbers, or means and shares of records by level."""
    from matrixdp.report.answers import answer_means
    from matrixdp.report.dates import show_dates

    read = _Source(release, **options)
    answer = answer_means(read.release, by, read.group, shrunk=shrunk)
    read.print(answer, show_dates(answer.estimate, read.dates, by_column=by is not None))


@answer.command("table", example="matrixdp answer table out/ smoker outcome")
@_release
@click.argument("rows")
@click.argument("columns")
@_shrunk
@_output
def table(release: Path, rows: str, columns: str, shrunk: bool, **options: Any) -> None:
    """Numbers of records by the levels of two categories, with totals that add up.

    A column by which the release is grouped is a category, too.
    """
    from matrixdp.report.answers import answer_table

    read = _Source(release, **options)
    read.print(answer_table(read.release, rows, columns, read.group, shrunk=shrunk))


@answer.command("correlation", example="matrixdp answer correlation out/")
@_release
@_shrunk
@_output
def correlation(release: Path, shrunk: bool, **options: Any) -> None:
    """Correlations of the numbers."""
    _answer_matrix(release, "correlation", shrunk=shrunk, **options)


@answer.command("covariance", example="matrixdp answer covariance out/ --group ward=north")
@_release
@_output
def covariance(release: Path, **options: Any) -> None:
    """Covariances of the numbers."""
    _answer_matrix(release, "covariance", shrunk=False, **options)


def _answer_matrix(release: Path, kind: str, *, shrunk: bool, **options: Any) -> None:
    from matrixdp.report.answers import answer_matrix

    read = _Source(release, **options)
    read.print(answer_matrix(read.release, kind, read.group, shrunk=shrunk))


@answer.command("sampling", example="matrixdp answer sampling out/ --of correlation")
@_release
@click.option(
    "--of",
    "kind",
    type=click.Choice(["means", "covariance", "correlation"]),
    default="means",
    show_default=True,
    help="The numbers whose errors are shown.",
)
@_written
def sampling(release: Path, kind: str, csv_file: Path | None, as_json: bool) -> None:
    """The error that privacy adds and the sampling error, separately. For adaptive and plain releases."""
    from matrixdp.release.adaptive_release import AdaptiveRelease
    from matrixdp.release.reading import from_json
    from matrixdp.release.result import Release
    from matrixdp.report.answers import align_rows, answer_sampling

    file, text = _read_text(release)
    try:
        found = from_json(text)
        if not isinstance(found, AdaptiveRelease | Release):
            raise ParameterError("RELEASE must be of means, a covariance, a correlation or the moments of a table.")
        answer = answer_sampling(found, kind)
    except ParameterError as error:
        raise ParameterError(f"{file}: {error}") from None
    _print(found, answer, align_rows(answer.estimate, (1, 2)), csv_file=csv_file, as_json=as_json)


@answer.command("regression", example="matrixdp answer regression out/ --target pressure --on age,smoker")
@_release
@click.option("--target", metavar="NAME", required=True, help="The number that is explained.")
@_on
@_output
def regression(release: Path, target: str, on: str | None, **options: Any) -> None:
    """Linear regression of a number on other columns, with standard errors."""
    from matrixdp.report.answers import align_rows, answer_regression

    read = _Source(release, **options)
    answer = answer_regression(read.release, target, _split(on), read.group)
    read.print(answer, align_rows(answer.estimate, (1, 2)))


@answer.command("discriminant", example="matrixdp answer discriminant out/ --target outcome --on age,bmi")
@_release
@click.option("--target", metavar="NAME", required=True, help="The category whose level is predicted.")
@_on
@_output
def discriminant(release: Path, target: str, on: str | None, **options: Any) -> None:
    """Linear discriminant analysis: a score for each level of a category; a record is of the level with the largest."""
    from matrixdp.report.answers import answer_discriminant

    read = _Source(release, **options)
    read.print(answer_discriminant(read.release, target, _split(on), read.group))


@answer.command("components", example="matrixdp answer components out/ -k 2")
@_release
@click.option("-k", "--count", type=int, help="How many. [default: as many as numbers]")
@_output
def components(release: Path, count: int | None, **options: Any) -> None:
    """Principal components of the numbers, in units of their standard deviations."""
    from matrixdp.report.answers import answer_components

    read = _Source(release, **options)
    read.print(answer_components(read.release, count, read.group))


class _Source:
    """A release with the group of --group and the rules of its columns of dates, and where answers are written."""

    def __init__(
        self, path: Path, group: str | None, schema: Path | None, csv_file: Path | None, as_json: bool
    ) -> None:
        from matrixdp.domain.schema_file import read_schema
        from matrixdp.release.reading import from_json
        from matrixdp.report.answers import as_answerable
        from matrixdp.report.dates import read_dates

        file, text = _read_text(path)
        try:
            release = as_answerable(from_json(text))
        except ParameterError as error:
            raise ParameterError(f"{file}: {error}") from None
        if release is None:
            raise ParameterError(
                f"{file}: no further answers follow from this release. They follow from --query everything, means, "
                "table, moments, covariance, correlation, components or regression."
            )
        self.release: Answerable = release
        self.dates: Sequence[DateRule] = read_dates(file.parent) if schema is None else read_schema(schema).rules.dates
        self.group = None if group is None else _parse_group(group)
        self._csv_file, self._as_json = csv_file, as_json

    def print(self, answer: Answer, text: Texts | None = None) -> None:
        """Print an answer, with notes on how its dates are counted."""
        terms = {*answer.estimate.rows, *answer.estimate.columns, answer.facts.get("target")}
        used = [rule for rule in self.dates if rule.name in terms]
        counted = [f"{rule.name}: a {rule.kind}, counted in {rule.meaning}." for rule in used]
        noted = replace(answer, notes=(*answer.notes, *counted))
        _print(self.release, noted, text, csv_file=self._csv_file, as_json=self._as_json)


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


def _parse_group(text: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(mark and name.strip() for name, mark, _ in pairs):
        raise ParameterError(f"--group must be NAME=LEVEL,..., got {text!r} instead.")
    return {name.strip(): level.strip() for name, _, level in pairs}


def _split(names: str | None) -> tuple[str, ...] | None:
    return None if names is None else split_names(names)


def _print(release: Any, answer: Answer, text: Texts | None, *, csv_file: Path | None, as_json: bool) -> None:
    import numpy as np

    from matrixdp.display import Numbers, format_numbers, make_visible, write_csv
    from matrixdp.release.output_folder import write_file
    from matrixdp.report.answers import list_notes, to_facts

    estimate = answer.estimate
    if csv_file is not None:
        write_file(csv_file, write_csv(estimate), option="csv")
    if as_json:
        echo_json(to_facts(release, answer))
        return
    click.echo(click.style(make_visible(answer.title), bold=True))
    bars = estimate.std if np.isfinite(estimate.std).any() and estimate.std.any() else None
    shown = Numbers(estimate.value, bars, estimate.rows, estimate.columns, estimate.reasons, estimate.unknown)
    click.echo(format_numbers(shown, text=text))
    click.echo()
    for note in list_notes(release, answer):
        click.echo(make_visible(note))
    if csv_file is not None:
        click.echo(f"Written to {csv_file}")
