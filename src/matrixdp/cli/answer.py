"""``matrixdp answer``: what else follows from a release, at no further cost."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from matrixdp.cli.options import PATH, Group, combine_options, echo_json, json_option
from matrixdp.errors import ParameterError
from matrixdp.release.options import split_names


@click.group(cls=Group)
def answer() -> None:
    """Read further answers off a release. Costs no privacy: only the release is read."""


_release = click.argument("release", metavar="RELEASE", type=PATH)
_written = (
    click.option("--csv", "csv_file", type=PATH, help="Also write the numbers to this CSV file."),
    json_option,
)
_read = (
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
)
_shrunk = click.option(
    "--shrunk",
    is_flag=True,
    help="Less error on average where noise dominates, at the price of a bias towards no differences.",
)
_by = click.option("--by", metavar="NAME", help="A category, or a column by which the release is grouped.")
_on = click.option(
    "--on",
    metavar="NAME,...",
    callback=lambda _context, _parameter, names: names and split_names(names),
    help="The columns that explain it. [default: all others]",
)
_target = partial(click.option, "--target", metavar="NAME", required=True)
_count = click.option("-k", "--count", type=int, help="How many. [default: as many as numbers]")
_of = click.option(
    "--of",
    "kind",
    type=click.Choice(["means", "covariance", "correlation"]),
    default="means",
    help="The numbers whose errors are shown.",
)


def _add(name: str, words: str, example: str, *parameters: Any, ask: str = "", read: Any = _read, **fixed: Any) -> None:
    """Add a command that prints what a function of `matrixdp.report.answers` reads off RELEASE."""
    options = combine_options(_release, *parameters, *read, *_written)
    command = partial(_answer, f"answer_{ask or name}", fixed)
    answer.command(name, help=words, example=f"matrixdp answer {name} out/ {example}".rstrip())(options(command))


def _answer(
    function: str,
    fixed: dict[str, Any],
    release: Path,
    csv_file: Path | None,
    as_json: bool,
    group: str | None = None,
    schema: Path | None = None,
    **options: Any,
) -> None:
    """Ask a release, and print the answer with notes on how its dates are counted."""
    import numpy as np

    from matrixdp.display import Numbers, format_numbers, make_visible, write_csv
    from matrixdp.domain.schema_file import read_schema
    from matrixdp.release.output_folder import write_file
    from matrixdp.release.reading import load
    from matrixdp.report import answers
    from matrixdp.report.advice import list_notes, to_facts
    from matrixdp.report.dates import list_dates, read_dates, show_dates

    found = answers.as_answerable(load(release))
    if found is None:
        raise ParameterError(
            f"{release}: no further answers follow from this release. They follow from --query everything, means, "
            "table, moments, covariance, correlation, components or regression."
        )
    folder = release if release.is_dir() else release.parent
    dates = read_dates(folder) if schema is None else read_schema(schema).rules.dates
    if group is not None:
        options["group"] = _parse_group(group)
    answer = getattr(answers, function)(found, **fixed, **options)
    estimate = answer.estimate
    terms = {*estimate.rows, *estimate.columns, answer.facts.get("target")}
    counted = [f"{rule.name}: a {rule.kind}, counted in {rule.meaning}." for rule in dates if rule.name in terms]
    answer = replace(answer, notes=(*answer.notes, *counted))
    if csv_file is not None:
        write_file(csv_file, write_csv(estimate, list_dates(answer, dates)), option="csv")
    if as_json:
        echo_json(to_facts(found, answer))
        return
    click.echo(click.style(make_visible(answer.title), bold=True))
    shown: Numbers = estimate
    if not np.nan_to_num(estimate.std).any() and not estimate.ranged.any():  # errors have no error bars
        shown = Numbers(estimate.value, None, estimate.rows, estimate.columns, estimate.reasons, estimate.unknown)
    click.echo(f"{format_numbers(shown, show_dates(answer, dates))}\n")
    for note in list_notes(found, answer):
        click.echo(make_visible(note))
    if csv_file is not None:
        click.echo(f"Written to {csv_file}")


def _parse_group(text: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(mark and name.strip() for name, mark, _ in pairs):
        raise ParameterError(f"--group must be NAME=LEVEL,..., got {text!r} instead.")
    return {name.strip(): level.strip() for name, _, level in pairs}


_add(
    "means",
    "Means and standard deviations of numbers, or means and shares of records by level.",
    "--by ward",
    _by,
    _shrunk,
)
_add(
    "table",
    "Numbers of records by the levels of two categories, with totals that add up.\n\n"
    "A column by which the release is grouped is a category, too.",
    "smoker outcome",
    click.argument("rows"),
    click.argument("columns"),
    _shrunk,
)
_add("correlation", "Correlations of the numbers.", "", _shrunk, ask="matrix", kind="correlation")
_add("covariance", "Covariances of the numbers.", "--group ward=north", ask="matrix", kind="covariance")
_add(
    "sampling",
    "The error that privacy adds and the sampling error, separately. For adaptive and plain releases.",
    "--of correlation",
    _of,
    read=(),
)
_add(
    "regression",
    "Linear regression of a number on other columns, with standard errors.",
    "--target pressure --on age,smoker",
    _target(help="The number that is explained."),
    _on,
)
_add(
    "discriminant",
    "Linear discriminant analysis: a score for each level of a category; a record is of the level with the largest.",
    "--target outcome --on age,bmi",
    _target(help="The category whose level is predicted."),
    _on,
)
_add("components", "Principal components of the numbers, in units of their standard deviations.", "-k 2", _count)
