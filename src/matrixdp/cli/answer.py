"""``matrixdp answer`` and ``matrixdp stream answer``: what else follows from what was released, at no further cost."""

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


@click.group("answer", cls=Group)
def stream_answer() -> None:
    """Read answers off a stream: of all its periods together, one of them, or several. Costs no privacy."""


def _split(_context: Any, _parameter: Any, names: str | None) -> tuple[str, ...] | None:
    return None if names is None else split_names(names)


def _read_shares(_context: Any, _parameter: Any, text: str) -> list[float]:
    try:
        return [float(part) for part in split_names(text)]
    except ValueError:
        raise click.BadParameter(f"must be numbers between 0 and 1, as in 0.25,0.5,0.75, got {text!r}.") from None


_SHARES = "Shares of the values below; 0.5 is the median."
stream_argument = click.argument("stream", metavar="STREAM", type=PATH)
_release = click.argument("release", metavar="RELEASE", type=PATH)
_window = (
    click.option("--step", metavar="NAME", help="Of this period alone. [default: all periods together]"),
    click.option("--last", type=int, metavar="N", help="Of the last N periods together."),
    click.option("--from", "first", metavar="NAME", help="Of the periods from this one on together."),
    click.option("--to", "until", metavar="NAME", help="Of the periods up to this one together."),
)
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
    callback=_split,
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
    """Add commands that print what a function of `matrixdp.report.answers` reads off RELEASE, or off a STREAM."""
    command = partial(_answer, f"answer_{ask or name}", fixed)
    options = combine_options(_release, *parameters, *read, *_written)
    answer.command(name, help=words, example=f"matrixdp answer {name} out/ {example}".rstrip())(options(command))
    options = combine_options(stream_argument, *parameters, *_window, *read, *_written)
    shown = f"matrixdp stream answer {name} ward.json {example} --last 4".replace("  ", " ")
    stream_answer.command(name, help=words, example=shown)(options(command))


def find_public_file(stream: Path) -> Path:
    """The public file of a stream, by its path or by the name of the stream."""
    return stream if stream.suffix == ".json" else stream.with_name(f"{stream.name}.json")


def find_stream_dates(stream: Path) -> Any:
    """The columns of dates in the schema that ``stream open`` stored beside a stream; none without it."""
    from matrixdp.domain.schema_file import read_schema

    public = find_public_file(stream)
    stored = public.with_name(f"{public.stem}.schema.toml")
    return read_schema(stored).rules.dates if stored.is_file() else ()


def _read_stream(path: Path, step: str | None, last: int | None, first: str | None, until: str | None) -> Any:
    """The release of some periods of a stream."""
    from matrixdp.release.stream import PublishedStream

    if sum((step is not None, last is not None, first is not None or until is not None)) > 1:
        raise click.UsageError("--step, --last, and --from with --to cannot be used together.")
    stream = PublishedStream.open(find_public_file(path))
    if step is not None:
        return stream.period(step)
    if last is not None:
        return stream.last(last)
    if (first is None and until is None) or not stream.steps:
        return stream.total()
    return stream.between(first or stream.steps[0], until or stream.steps[-1])


def _answer(
    function: str,
    fixed: dict[str, Any],
    csv_file: Path | None,
    as_json: bool,
    release: Path | None = None,
    stream: Path | None = None,
    group: str | None = None,
    schema: Path | None = None,
    **options: Any,
) -> None:
    """Ask a release or a stream, and print the answer."""
    from matrixdp.domain.schema_file import read_schema
    from matrixdp.release.reading import load
    from matrixdp.report import answers
    from matrixdp.report.dates import read_dates

    place = release or stream
    assert place is not None  # as one of them is an argument
    windows = {name: options.pop(name) for name in ("step", "last", "first", "until") if stream is not None}
    found = answers.as_answerable(load(place) if stream is None else _read_stream(stream, **windows))
    if found is None:
        raise ParameterError(
            f"{place}: no further answers follow from this release. They follow from --query everything, means, "
            "table, moments, covariance, correlation, components or regression."
        )
    if schema is not None:
        dates = read_schema(schema).rules.dates
    else:
        folder = place if place.is_dir() else place.parent
        dates = read_dates(folder) if stream is None else find_stream_dates(stream)
    if group is not None:
        options["group"] = _parse_group(group)
    answer = getattr(answers, function)(found, **fixed, **options)
    part = getattr(found, "part", None)
    if part is not None:
        facts = {"stream": part.stream, "periods": part.periods, **answer.facts}
        answer = replace(answer, title=f"{answer.title}, {part.periods}", facts=facts)
    _print_answer(found, answer, dates, csv_file, as_json=as_json)


def _print_answer(found: Any, answer: Any, dates: Any, csv_file: Path | None, *, as_json: bool) -> None:
    """Print an answer with notes on how its dates are counted."""
    import numpy as np

    from matrixdp.display import Numbers, format_numbers, make_visible, write_csv
    from matrixdp.release.output_folder import write_file
    from matrixdp.report.advice import list_notes, to_facts
    from matrixdp.report.dates import list_dates, show_dates

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


@stream_answer.command("series", example="matrixdp stream answer series ward.json --of age --by ward --smooth")
@stream_argument
@click.option("--of", "column", metavar="NAME", help="The number whose means are shown. [default: numbers of records]")
@click.option("--by", metavar="NAME", help="A category, or a column by which the stream is grouped.")
@click.option(
    "--smooth", is_flag=True, help="Shorter bars, which rest on the assumption that numbers change slowly; marked."
)
@click.option("--difference", metavar="LATER,EARLIER", help="The difference of two periods, with its own error bar.")
@combine_options(*_written)
def series(
    stream: Path,
    column: str | None,
    by: str | None,
    smooth: bool,
    difference: str | None,
    csv_file: Path | None,
    as_json: bool,
) -> None:
    """Means, or numbers of records, in each period."""
    from matrixdp.release.stream import PublishedStream
    from matrixdp.report.answers import Answer

    public = PublishedStream.open(find_public_file(stream))
    found = public.series(column, by, smooth=smooth)
    label, estimate, title = "period", found.to_estimate(), f"{found.what} by period"
    if difference is not None:
        periods = split_names(difference)
        if len(periods) != 2:
            raise ParameterError(f"--difference must name two periods, as in 2031-w02,2031-w01, got {difference!r}.")
        label, estimate, title = by or "", found.difference(*periods), f"difference of {found.what}"
    notes = [*([found.note] if found.smoothed or difference is None else [])]
    notes = [f"{note[:1].upper()}{note[1:]}." for note in notes]
    facts = {"stream": public.name, "smoothed": found.smoothed}
    shown = Answer(title[:1].upper() + title[1:], label, estimate, tuple(notes), facts)
    dates = () if column is None else find_stream_dates(stream)
    _print_answer(public.period(), shown, dates, csv_file, as_json=as_json)
