"""``matrixdp answer``: what else follows from a release, at no further cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from matrixdp.cli.options import PATH, combine_options, json_option
from matrixdp.cli.output import Group, echo_json
from matrixdp.errors import ParameterError
from matrixdp.release.options import split_names

if TYPE_CHECKING:
    from matrixdp.display import Texts
    from matrixdp.report.answers import Answer

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


_target = partial(click.option, "--target", metavar="NAME", required=True)


def _command(
    name: str, *parameters: Any, example: str, output: Any = _output
) -> Callable[[Callable[..., Answer]], click.Command]:
    """A command that reads RELEASE, and prints the answer that the decorated function reads off it."""

    def decorate(ask: Callable[..., Answer]) -> click.Command:
        @wraps(ask)
        def run(release: Path, csv_file: Path | None, as_json: bool, **options: Any) -> None:
            source = _Source(release, options.pop("group", None), options.pop("schema", None))
            _print(source, ask(source, **options), csv_file, as_json=as_json)

        made: click.Command = answer.command(name, example=example)(combine_options(_release, *parameters, output)(run))
        return made

    return decorate


@_command(
    "means",
    click.option("--by", metavar="NAME", help="A category, or a column by which the release is grouped."),
    _shrunk,
    example="matrixdp answer means out/ --by ward",
)
def means(source: _Source, by: str | None, shrunk: bool) -> Answer:
    """Means and standard deviations of numbers, or means and shares of records by level."""
    return source.ask("means", by, shrunk=shrunk)


@_command(
    "table",
    click.argument("rows"),
    click.argument("columns"),
    _shrunk,
    example="matrixdp answer table out/ smoker outcome",
)
def table(source: _Source, rows: str, columns: str, shrunk: bool) -> Answer:
    """Numbers of records by the levels of two categories, with totals that add up.

    A column by which the release is grouped is a category, too.
    """
    return source.ask("table", rows, columns, shrunk=shrunk)


@_command("correlation", _shrunk, example="matrixdp answer correlation out/")
def correlation(source: _Source, shrunk: bool) -> Answer:
    """Correlations of the numbers."""
    return source.ask("matrix", "correlation", shrunk=shrunk)


@_command("covariance", example="matrixdp answer covariance out/ --group ward=north")
def covariance(source: _Source) -> Answer:
    """Covariances of the numbers."""
    return source.ask("matrix", "covariance")


_of = click.option(
    "--of",
    "kind",
    type=click.Choice(["means", "covariance", "correlation"]),
    default="means",
    show_default=True,
    help="The numbers whose errors are shown.",
)


@_command("sampling", _of, example="matrixdp answer sampling out/ --of correlation", output=_written)
def sampling(source: _Source, kind: str) -> Answer:
    """The error that privacy adds and the sampling error, separately. For adaptive and plain releases."""
    return source.ask("sampling", kind)


@_command(
    "regression",
    _target(help="The number that is explained."),
    _on,
    example="matrixdp answer regression out/ --target pressure --on age,smoker",
)
def regression(source: _Source, target: str, on: str | None) -> Answer:
    """Linear regression of a number on other columns, with standard errors."""
    return source.ask("regression", target, on and split_names(on))


@_command(
    "discriminant",
    _target(help="The category whose level is predicted."),
    _on,
    example="matrixdp answer discriminant out/ --target outcome --on age,bmi",
)
def discriminant(source: _Source, target: str, on: str | None) -> Answer:
    """Linear discriminant analysis: a score for each level of a category; a record is of the level with the largest."""
    return source.ask("discriminant", target, on and split_names(on))


_count = click.option("-k", "--count", type=int, help="How many. [default: as many as numbers]")


@_command("components", _count, example="matrixdp answer components out/ -k 2")
def components(source: _Source, count: int | None) -> Answer:
    """Principal components of the numbers, in units of their standard deviations."""
    return source.ask("components", count)


class _Source:
    """A release with the group of --group and the rules of its columns of dates; `answers` has what can be asked."""

    def __init__(self, path: Path, group: str | None, schema: Path | None) -> None:
        from matrixdp.domain.schema_file import read_schema
        from matrixdp.release.reading import from_json
        from matrixdp.report import answers
        from matrixdp.report.dates import read_dates

        self.answers = answers
        self.file, text = _read_text(path)
        try:
            release = answers.as_answerable(from_json(text))
        except ParameterError as error:
            raise ParameterError(f"{self.file}: {error}") from None
        if release is None:
            raise ParameterError(
                f"{self.file}: no further answers follow from this release. They follow from --query everything, "
                "means, table, moments, covariance, correlation, components or regression."
            )
        self.release = release
        self.dates = read_dates(self.file.parent) if schema is None else read_schema(schema).rules.dates
        self.group = None if group is None else _parse_group(group)

    def ask(self, question: str, *asked: Any, **options: Any) -> Answer:
        """The answer to a question about the release, or about the group."""
        group = {} if self.group is None else {"group": self.group}
        answer: Answer = getattr(self.answers, f"answer_{question}")(self.release, *asked, **group, **options)
        return answer


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


def _print(source: _Source, answer: Answer, csv_file: Path | None, *, as_json: bool) -> None:
    """Print an answer, with notes on how its dates are counted."""
    import numpy as np

    from matrixdp.display import Numbers, format_numbers, make_visible, write_csv
    from matrixdp.release.output_folder import write_file
    from matrixdp.report.dates import show_dates

    estimate = answer.estimate
    terms = {*estimate.rows, *estimate.columns, answer.facts.get("target")}
    counted = [f"{rule.name}: a {rule.kind}, counted in {rule.meaning}." for rule in source.dates if rule.name in terms]
    answer = replace(answer, notes=(*answer.notes, *counted))
    if csv_file is not None:
        write_file(csv_file, write_csv(estimate), option="csv")
    if as_json:
        echo_json(source.answers.to_facts(source.release, answer))
        return
    click.echo(click.style(make_visible(answer.title), bold=True))
    bars = estimate.std if np.isfinite(estimate.std).any() and estimate.std.any() else None
    shown = Numbers(estimate.value, bars, estimate.rows, estimate.columns, estimate.reasons, estimate.unknown)
    text: Texts | None = None
    if answer.name in ("means", *source.answers.BY_COLUMN):
        text = show_dates(estimate, source.dates, by_column=answer.name != "means")
    elif answer.name in ("sampling", "regression"):
        text = source.answers.align_rows(estimate, (1, 2))
    click.echo(f"{format_numbers(shown, text=text)}\n")
    for note in source.answers.list_notes(source.release, answer):
        click.echo(make_visible(note))
    if csv_file is not None:
        click.echo(f"Written to {csv_file}")
