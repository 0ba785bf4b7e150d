"""``matrixdp answer`` and ``synthetic``: what else follows from what was released, at no further cost."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from matrixdp.cli.options import PATH, Command, Group, combine_options, echo_json, json_option
from matrixdp.errors import ParameterError
from matrixdp.release.options import split_names


@click.group(cls=Group)
def answer() -> None:
    """Read further answers off a release, or off the public file of a stream. Costs no privacy: only it is read."""


def _split(_context: Any, _parameter: Any, names: str | None) -> tuple[str, ...] | None:
    return None if names is None else split_names(names)


def _read_shares(_context: Any, _parameter: Any, text: str) -> list[float]:
    try:
        return [float(part) for part in split_names(text)]
    except ValueError:
        raise click.BadParameter(f"must be numbers between 0 and 1, as in 0.25,0.5,0.75, got {text!r}.") from None


_SHARES = "Shares of the values below; 0.5 is the median."
stream_argument = click.argument("stream", metavar="STREAM", type=PATH)
_place = click.argument("place", metavar="RELEASE|STREAM", type=PATH)
_window = (
    click.option("--last", type=int, metavar="N", help="Of the last N periods of a stream. [default: of all together]"),
    click.option(
        "--periods",
        metavar="FIRST[,LAST]",
        callback=_split,
        help="Of one period of a stream, or of those from FIRST to LAST.",
    ),
)
_written = (click.option("--csv", "csv_file", type=PATH, help="Also write the numbers to this CSV file."), json_option)
_group = click.option(
    "--group",
    metavar="NAME=LEVEL,...",
    help="Of these records alone: levels of columns by which the release is grouped. [default: all records]",
)
_shrunk = click.option(
    "--shrunk",
    is_flag=True,
    help="Less error on average where noise dominates, at the price of a bias towards no differences.",
)
_by = click.option("--by", metavar="NAME", help="A category, or a column by which the release is grouped.")
_on = click.option(
    "--on", metavar="NAME,...", callback=_split, help="The columns that explain it. [default: all others]"
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


def _add(
    name: str, words: str, example: str, *parameters: Any, ask: str = "", grouped: bool = True, **fixed: Any
) -> None:
    """Add a command that prints what a function of `matrixdp.report.answers` reads off a release."""
    options = combine_options(_place, *parameters, *_window, *([_group] if grouped else []), *_written)
    shown = f"matrixdp answer {name} out/ {example}".rstrip()
    answer.command(name, help=words, example=shown)(options(partial(_answer, f"answer_{ask or name}", fixed)))


def find_public_file(stream: Path) -> Path:
    """The public file of a stream, by its path or by the name of the stream."""
    return stream if stream.suffix == ".json" else stream.with_name(f"{stream.name}.json")


def find_stream_rules(stream: Path) -> Any:
    """How files are read, by the schema that ``stream open`` stored beside a stream; as usual without it."""
    from matrixdp.domain.file_rules import DEFAULT_RULES
    from matrixdp.domain.schema_file import read_schema

    public = find_public_file(stream)
    stored = public.with_name(f"{public.stem}.schema.toml")
    return read_schema(stored).rules if stored.is_file() else DEFAULT_RULES


def _load(place: Path, last: int | None, periods: tuple[str, ...] | None) -> tuple[Any, Any]:
    """A release, or that of some periods of a stream, and its columns of dates."""
    from matrixdp.release.reading import load
    from matrixdp.release.stream import PublishedStream
    from matrixdp.report.dates import read_dates

    found = load(place if place.exists() else find_public_file(place))
    if not isinstance(found, PublishedStream):
        if last is not None or periods is not None:
            raise click.UsageError("--last and --periods are for a stream.")
        return found, read_dates(place if place.is_dir() else place.parent)
    if (last is not None and periods is not None) or (periods is not None and len(periods) > 2):
        raise click.UsageError("Give either --last N, or --periods with one name or two.")
    if last is not None:
        part = found.last(last)
    else:
        part = found.total() if periods is None else found.between(periods[0], periods[-1])
    return part, find_stream_rules(place).dates


def _answer(function: str, fixed: dict[str, Any], place: Path, group: str | None = None, **options: Any) -> None:
    """Ask a release or a stream, and print the answer."""
    from matrixdp.report import answers

    shown = {name: options.pop(name) for name in ("csv_file", "as_json")}
    loaded, dates = _load(place, options.pop("last"), options.pop("periods"))
    found = answers.as_answerable(loaded)
    if found is None:
        raise ParameterError(
            f"{place}: no further answers follow from this release. They follow from --query everything, means, "
            "table, moments, covariance, correlation, components or regression."
        )
    if group is not None:
        pairs = [part.partition("=") for part in group.split(",")]
        if not all(mark and name.strip() for name, mark, _ in pairs):
            raise ParameterError(f"--group must be NAME=LEVEL,..., got {group!r} instead.")
        options["group"] = {name.strip(): level.strip() for name, _, level in pairs}
    answer = getattr(answers, function)(found, **fixed, **options)
    part = getattr(found, "part", None)
    if part is not None:
        facts = {"stream": part.stream, "periods": part.periods, **answer.facts}
        answer = replace(answer, title=f"{answer.title}, {part.periods}", facts=facts)
    _print_answer(found, answer, dates, **shown)


def _print_answer(found: Any, answer: Any, dates: Any, csv_file: Path | None, as_json: bool) -> None:
    """Print an answer, and write it to a file."""
    import numpy as np

    from matrixdp.display import Numbers, format_numbers, make_visible, write_csv
    from matrixdp.release.output_folder import write_file
    from matrixdp.report.advice import list_notes, to_facts
    from matrixdp.report.dates import list_dates, show_dates

    estimate = answer.estimate
    if csv_file is not None:
        write_file(csv_file, write_csv(estimate, list_dates(answer, dates)), option="csv")
    if as_json:
        echo_json(to_facts(found, answer, dates))
        return
    click.echo(click.style(make_visible(answer.title), bold=True))
    shown: Numbers = estimate
    if not np.nan_to_num(estimate.std).any() and not estimate.ranged.any():  # errors have no error bars
        shown = Numbers(estimate.value, None, estimate.rows, estimate.columns, estimate.reasons)
    click.echo(f"{format_numbers(shown, show_dates(answer, dates))}\n")
    for note in list_notes(found, answer, dates):
        click.echo(make_visible(note))
    if csv_file is not None:
        click.echo(f"Written to {csv_file}")


_add(
    "means",
    "Means and standard deviations of numbers, or means and shares of records by level.",
    "--by ward",
    _by,
    _shrunk,
)
_add(
    "quantiles",
    "Medians and other quantiles of numbers. For a release with --shapes.",
    "--columns age -q 0.1,0.5,0.9",
    click.option("--columns", metavar="NAME,...", callback=_split, help="Numbers. [default: all]"),
    click.option("-q", "q", metavar="SHARE,...", default="0.25,0.5,0.75", callback=_read_shares, help=_SHARES),
)
_add(
    "histogram",
    "Shares of the values of a number in bins, and at its bounds. For a release with --shapes.",
    "age",
    click.argument("column"),
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
    grouped=False,
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


@answer.command("series", example="matrixdp answer series ward.json --of age --by ward --smooth")
@stream_argument
@click.option("--of", "column", metavar="NAME", help="The number whose means are shown. [default: numbers of records]")
@click.option("--by", metavar="NAME", help="A category, or a column by which the stream is grouped.")
@click.option(
    "--smooth", is_flag=True, help="Shorter bars, which rest on the assumption that numbers change slowly; marked."
)
@click.option("--difference", metavar="LATER,EARLIER", help="The difference of two periods, with its own error bar.")
@combine_options(*_written)
def series(stream: Path, column: str | None, by: str | None, smooth: bool, difference: str | None, **out: Any) -> None:
    """Means, or numbers of records, in each period of a stream."""
    from matrixdp.release.stream import PublishedStream
    from matrixdp.report.answers import Answer

    public = PublishedStream.open(find_public_file(stream))
    found = public.series(column, by, smooth=smooth)
    label, estimate, title = "period", found.to_estimate(), f"{found.what} by period"
    if difference is not None:
        periods = split_names(difference)
        if len(periods) != 2:
            raise ParameterError(f"--difference must name two periods, as in 2031-w02,2031-w01, got {difference!r}.")
        label, estimate, title = by or "", found.difference(*periods), f"{found.what}, {' - '.join(periods)}"
    notes = [f"{found.note[:1].upper()}{found.note[1:]}."] if found.smoothed or difference is None else []
    facts = {"stream": public.name, "smoothed": found.smoothed}
    answer = Answer(title[:1].upper() + title[1:], label, estimate, tuple(notes), facts)
    dates = () if column is None else find_stream_rules(stream).dates
    _print_answer(public.period(), answer, dates, **out)


@click.command(cls=Command, example="matrixdp synthetic out/ --rows 10000 --seed 0 -o table.csv")
@click.argument("release", metavar="RELEASE", type=PATH)
@click.option("--rows", type=int, help="Number of rows. [default: the public number of records or people]")
@click.option("--seed", type=int, default=0, help="The same seed gives the same table.")
@click.option("--tables", type=int, metavar="M", help="Write M tables, for intervals with matrixdp.combine.")
@click.option("-o", "--output", type=PATH, required=True, help="A .csv, .parquet or .feather file.")
@click.option("--force", is_flag=True, help="Replace files that exist.")
def synthetic(release: Path, rows: int | None, seed: int, tables: int | None, output: Path, force: bool) -> None:
    """Make a synthetic table from the release of a table (--query everything), and a report beside it.

    It costs no privacy: only the release is read. With --tables, names of files end with -1, -2, ...
    """
    from matrixdp.release.output_folder import refuse_existing, write_file
    from matrixdp.release.reading import load
    from matrixdp.report.dates import read_dates
    from matrixdp.report.synthetic import list_remarks, load_table_release, make_files

    found = load_table_release(load(release))
    dates = read_dates(release if release.is_dir() else release.parent)
    files, table = make_files(found, output, rows=rows, tables=tables, seed=seed, dates=dates)
    if not force:
        refuse_existing(files, "output")
    for path, content in files.items():
        write_file(path, content, option="output")
    for line in list_remarks(found, table):
        click.echo(line, err=True)
    click.echo(f"Written to {', '.join(map(str, files))}")
