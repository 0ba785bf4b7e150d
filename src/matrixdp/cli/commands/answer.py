"""``matrixdp answer``: what else follows from a release, at no further cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from matrixdp.cli.options import PATH, combine_options, json_option
from matrixdp.cli.styles import Group


@click.group(cls=Group)
def answer() -> None:
    """Read further answers off a release. Costs no privacy: only the release is read."""


_release = click.argument("release", metavar="RELEASE", type=PATH)
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
    click.option("--csv", "csv_file", type=PATH, help="Also write the numbers to this CSV file."),
    json_option,
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
def means(release: Path, by: str | None, **options: Any) -> None:
    """Means and standard deviations of numbers, or means and shares of records by level."""
    from matrixdp.cli.actions.answer import answer_means

    answer_means(release, by, **options)


@answer.command("table", example="matrixdp answer table out/ smoker outcome")
@_release
@click.argument("rows")
@click.argument("columns")
@_shrunk
@_output
def table(release: Path, rows: str, columns: str, **options: Any) -> None:
    """Numbers of records by the levels of two categories, with totals that add up.

    A column by which the release is grouped is a category, too.
    """
    from matrixdp.cli.actions.answer import answer_table

    answer_table(release, rows, columns, **options)


@answer.command("correlation", example="matrixdp answer correlation out/")
@_release
@_shrunk
@_output
def correlation(release: Path, **options: Any) -> None:
    """Correlations of the numbers."""
    from matrixdp.cli.actions.answer import answer_matrix

    answer_matrix(release, "correlation", **options)


@answer.command("covariance", example="matrixdp answer covariance out/ --group ward=north")
@_release
@_output
def covariance(release: Path, **options: Any) -> None:
    """Covariances of the numbers."""
    from matrixdp.cli.actions.answer import answer_matrix

    answer_matrix(release, "covariance", **options)


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
@click.option("--csv", "csv_file", type=PATH, help="Also write the numbers to this CSV file.")
@json_option
def sampling(release: Path, kind: str, **options: Any) -> None:
    """The error that privacy adds and the sampling error, separately. For adaptive and plain releases."""
    from matrixdp.cli.actions.answer import answer_sampling

    answer_sampling(release, kind, **options)


@answer.command("regression", example="matrixdp answer regression out/ --target pressure --on age,smoker")
@_release
@click.option("--target", metavar="NAME", required=True, help="The number that is explained.")
@_on
@_output
def regression(release: Path, target: str, on: str | None, **options: Any) -> None:
    """Linear regression of a number on other columns, with standard errors."""
    from matrixdp.cli.actions.answer import answer_regression

    answer_regression(release, target, on, **options)


@answer.command("discriminant", example="matrixdp answer discriminant out/ --target outcome --on age,bmi")
@_release
@click.option("--target", metavar="NAME", required=True, help="The category whose level is predicted.")
@_on
@_output
def discriminant(release: Path, target: str, on: str | None, **options: Any) -> None:
    """Linear discriminant analysis: a score for each level of a category; a record is of the level with the largest."""
    from matrixdp.cli.actions.answer import answer_discriminant

    answer_discriminant(release, target, on, **options)


@answer.command("components", example="matrixdp answer components out/ -k 2")
@_release
@click.option("-k", "--count", type=int, help="How many. [default: as many as numbers]")
@_output
def components(release: Path, count: int | None, **options: Any) -> None:
    """Principal components of the numbers, in units of their standard deviations."""
    from matrixdp.cli.actions.answer import answer_components

    answer_components(release, count, **options)
