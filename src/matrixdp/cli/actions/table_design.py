"""What ``matrixdp design`` predicts of the answers from the moments of a table, for data as the schema expects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import click
import numpy as np

from matrixdp.answers.described_table import SHAPES
from matrixdp.answers.table_forecast import TableForecast
from matrixdp.cli.actions.design_options import DesignOptions, build_design
from matrixdp.cli.actions.method import parse_features
from matrixdp.design import Design
from matrixdp.display import Numbers, format_number, format_numbers, format_table, make_visible
from matrixdp.domain.schema import Schema
from matrixdp.errors import ParameterError
from matrixdp.queries import TableMoments
from matrixdp.report.answers import MODELS, Answer, make_answers, make_model
from matrixdp.types import Floats

DESCRIBED = (
    "by simulation of releases, for data as the schema expects (expected_mean, expected_std, expected_missing,\n"
    "  expected_shares, expected_correlation), or as tables usually are; no data were read\n"
    "  percentages are of the width of the bounds, for covariances of the product of two widths"
)
_MOST_TABLES = 12
_MOST_NUMBERS = 40  # with more, other epsilons take too long to simulate
_EPSILON_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
_NUMBER_COLUMNS = ("mean", "standard deviation")


def list_predictions(options: DesignOptions, design: Design, schema: Schema, *, data: str = "typical") -> list[Answer]:
    """What a report shows of all records, and of all groups in one table, with predicted errors.

    `data` is 'friendly', 'typical' or 'hostile': what is assumed where the schema has no guess.
    """
    forecast = TableForecast(design, schema.guesses, data)
    if options.kind in MODELS:
        found = make_model(forecast, options.kind, options.target, parse_features(options))
        return [found[0]]  # how much a regression explains has no error bar
    return list(make_answers(forecast, options.kind, groups=False))


def print_predictions(options: DesignOptions, design: Design, schema: Schema) -> None:
    """The predicted error of each answer for typical data, its range, and the error at other epsilons."""
    ranges = {data: list_predictions(options, design, schema, data=data) for data in SHAPES}
    for answer in ranges["typical"][:_MOST_TABLES]:
        estimate = answer.estimate
        columns = 1 if answer.name == "regression" else None  # the second one is the sampling error
        shown = Numbers(estimate.std[:, :columns], None, estimate.rows, estimate.columns[:columns], estimate.reason)
        print_section(make_visible(f"Predicted error of: {answer.title}"), format_numbers(shown))
    table = _tabulate_medians(design, list(ranges), list(ranges.values()))
    print_section("Median error, by how easy the data are where the schema has no guess", table)
    click.echo(f"  {DESCRIBED}")
    if len(_table(design).used.numbers) <= _MOST_NUMBERS and options.kind != "components":
        others = list(vary_design(options, design))
        found = [list_predictions(options, other, schema) for other in others]
        table = _tabulate_medians(design, [f"epsilon {other.privacy.epsilon:g}" for other in others], found)
        print_section("Median error at other epsilons, for typical data", table)


def vary_design(options: DesignOptions, design: Design) -> Iterator[Design]:
    """The same design at smaller and larger epsilons."""
    for factor in _EPSILON_FACTORS:
        try:
            scaled = replace(options, epsilon=options.epsilon * factor)
            yield design if factor == 1.0 else build_design(scaled, design.query)
        except ParameterError:  # an epsilon for which no design can be made
            continue


def print_section(title: str, text: str) -> None:
    """Print a text under a title."""
    click.echo(f"\n{click.style(title, bold=True)}\n{text}")


def _tabulate_medians(design: Design, header: list[str], found: list[list[Answer]]) -> str:
    """Median errors of each table, in one column for each list of tables."""
    rows: list[list[str]] = []
    for answers in list(zip(*found, strict=True))[:_MOST_TABLES]:
        parts = [_list_parts(answer, design) for answer in answers]
        rows += [[make_visible(one[0].label), *map(_show_median, one)] for one in zip(*parts, strict=True)]
    return format_table(["", *header], rows)


def _table(design: Design) -> TableMoments:
    assert isinstance(design.query, TableMoments)  # as of all queries with places
    return design.query


class _Part(NamedTuple):
    """Errors that can be compared with each other."""

    label: str
    errors: Floats
    relative: bool = False  # to the width of the bounds


def _list_parts(answer: Answer, design: Design) -> list[_Part]:
    """The errors of a table, in units in which they can be compared."""
    std, title = answer.estimate.std, answer.title
    widths = np.array([[number.upper - number.lower for number in _table(design).used.numbers]])
    if answer.name == "means":
        return [_Part(f"{title}: {name}", std[:, [k]] / widths.T, True) for k, name in enumerate(_NUMBER_COLUMNS)]
    if answer.name == "groups":
        return [_Part(f"{title}: share", std[:, :1]), _Part(f"{title}: means", std[:, 1:] / widths, True)]
    if answer.name == "means_by_level":
        return [_Part(title, std[:, 1:] / widths, True)]
    if answer.name == "covariance":
        return [_Part(title, std / widths / widths.T, True)]
    if answer.name == "regression":
        return [_Part(f"{title}: {name}", std[k, :1]) for k, name in enumerate(answer.estimate.rows)]
    return [_Part(title, std)]


def _show_median(part: _Part) -> str:
    errors = np.where(np.isnan(part.errors), np.inf, part.errors)
    noisy = errors[errors > 0]
    median = float(np.median(noisy)) if noisy.size else 0.0
    if not np.isfinite(median):
        return "hidden"
    return f"{median:.2%}" if part.relative else format_number(median, 3)


def collect_predictions(options: DesignOptions, design: Design, schema: Schema) -> list[dict[str, Any]]:
    """The predictions as content of JSON; None where noise would hide an answer."""
    found = {data: list_predictions(options, design, schema, data=data) for data in SHAPES}
    return [
        {
            "title": answers[0].title,
            "rows": answers[0].estimate.rows,
            "columns": answers[0].estimate.columns,
            "std": _list_errors(found["typical"][number].estimate.std),
            **{data: _list_errors(one.estimate.std) for data, one in zip(found, answers, strict=True)},
        }
        for number, answers in enumerate(zip(*found.values(), strict=True))
    ]


def _list_errors(std: Floats) -> list[list[float | None]]:
    return [[float(value) if np.isfinite(value) else None for value in row] for row in std]
