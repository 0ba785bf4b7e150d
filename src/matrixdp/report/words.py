"""Plain words on the numbers of a report: what is released, how to read its error bars, what was done to values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from matrixdp.display import format_number
from matrixdp.domain.columns import Number
from matrixdp.domain.file_rules import DateRule
from matrixdp.queries import ContingencyTable, Identity, MatrixQuery, Moments, TableMoments
from matrixdp.queries.base import BoundedQuery
from matrixdp.release.result import Release
from matrixdp.report.content import ReportContent, list_numbers
from matrixdp.report.guarantee import MechanismFacts

DASH = (
    "A dash (–) marks a correlation that noise hides: a variance that it needs is not positive, or its error bar would "
    "be as wide as the whole range from -1 to 1."
)
OBSERVED = (
    "Missing values: each number is computed from the records in which all of its columns are there, and nothing is "
    "filled in. That describes all records only if values are missing at random."
)
REFUSED = "Missing values: not accepted; a table with a missing value would have been refused."
_NAMED = 12  # columns whose bounds are named


def describe_subject(content: ReportContent) -> str:
    """One sentence on what is released."""
    query = content.mechanism.query
    count = getattr(query, "records", None)
    records = "" if count is None else f" of {count:,} {query.count_word}"
    if count is not None and not query.public_number:
        records = f" of about {count:,} {query.count_word} (a public figure; their true number is private)"
    if content.title == query.title:
        return describe_answer(query, records)
    if content.mechanism.adaptive:
        return f"The {content.title}{records}."
    if content.answers:
        return f"The {content.title}{records}, computed from {_lower_first(describe_answer(query, ''))}"
    height, width = content.matrix.shape
    return f"The {content.title}{records}, {height:,} x {width:,}."


def _lower_first(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def describe_answer(query: MatrixQuery, records: str) -> str:
    """Return one sentence on what is released; `records` says of how many records, such as " of 500 records"."""
    for kind, describe in _ANSWERS.items():
        if isinstance(query, kind):
            return describe(query, records)
    return f"The {query.title}{records}, {query.shape[0]:,} x {query.shape[1]:,}."


def _describe_counts(query: ContingencyTable, records: str) -> str:
    return f"A {query.shape[0]:,} x {query.shape[1]:,} table of counts{records}."


def _describe_moments(query: Moments, records: str) -> str:
    return (
        f"The mean and second moment{records} about the middle of their bounds, {query.shape[0]:,} x "
        f"{query.shape[1]:,}: the first row has the means, the rest the second moments."
    )


def _describe_table(query: TableMoments, records: str) -> str:
    counts = {"numbers": len(query.used.numbers), "categories": len(query.used.categories)}
    parts = [f"{count:,} column{'s' * (count > 1)} of {kind}" for kind, count in counts.items() if count]
    groups = f", for each of {query.groups:,} groups by {' and '.join(query.by)}" if query.by else ""
    return f"The moments{records} of {' and '.join(parts)}{groups}."


_ANSWERS: dict[type[MatrixQuery], Callable[[Any, str], str]] = {
    ContingencyTable: _describe_counts,
    Moments: _describe_moments,
    TableMoments: _describe_table,
}


def explain_error_bars(content: ReportContent) -> list[str]:
    """How to read the error bars."""
    if content.std is None:
        lines = [
            "Each number is the true one changed by the mechanism. The error bars are unknown: the mechanism does not "
            "say how large its noise is."
        ]
    elif content.mechanism.adaptive:
        lines = _explain_adaptive(content)
    elif content.summary:
        lines = _explain_answers(content.mechanism.query.count_word)
    else:
        lines = [
            "Each number is the true one plus noise. Its error bar, written after ±, is the standard deviation of that "
            "noise: the true number is within one error bar in 68 of 100 cases, and within two in 95.",
            "A pale entry is within two error bars of zero: it could be noise alone.",
            "The error bars cover only the noise that protects privacy. How far these data are from the population "
            "that they come from is a separate question, with its own error bars.",
        ]
    lines += _explain_weights(content.mechanism.query)
    if not content.answers and content.kind != "matrix" and not content.mechanism.adaptive:
        lines.append(
            f"The {content.title} and its error bars were computed from the released mean and second moment, to first "
            "order in the noise. This uses no privacy budget."
        )
    if content.kind == "correlation" and np.isnan(content.matrix).any():
        lines.append(DASH)
    if content.square and content.kind != "correlation" and not content.summary and not content.mechanism.adaptive:
        lines.append(
            "Noise can make a matrix of moments impossible (with a negative variance in some direction). "
            "matrixdp.answers.nearest_psd(matrix, std) returns the nearest possible one, where std are the error bars, "
            "and uses no privacy budget."
        )
    if isinstance(content.release, Release) and content.mechanism.query.total is not None:
        lines.append(
            f"The number of {content.mechanism.query.count_word} is public, so the noisy counts were adjusted to sum "
            "to it. This makes every error bar smaller, and the errors of two counts slightly opposite: the error of a "
            "sum of counts is smaller than if they were independent, and that of all counts together is zero."
        )
    if isinstance(content.mechanism.query, Identity):
        lines.append(
            "Every record has noise of its own, large enough to hide it: use averages of rows, not single rows."
        )
    return lines


def _explain_adaptive(content: ReportContent) -> list[str]:
    lines = [
        "Each number is an estimate from noisy answers. Its error bar, written after ±, is a standard deviation: the "
        "number without noise is within one error bar in about 68 of 100 cases, and within two in 95.",
        "A part of the budget was spent on finding where the records lie, so that they could be measured there with "
        "less noise. Records far away from the others were moved towards them, and variances that may be noise alone "
        "were shrunk. The error bars allow for this, as far as it can be told from noisy answers.",
        "The error bars are for these records. How far they are from the population that they come from is a separate "
        "question, with its own error bars: “matrixdp answer sampling” shows both.",
    ]
    if content.kind == "regression":
        lines.append(
            "Coefficients that may be noise alone are close to zero. The column “sampling std” is the standard error "
            "of a coefficient for the population, without the noise. “Hidden by noise” is a coefficient of columns "
            "that are nearly collinear, so that noise hides which of them matters."
        )
    return lines


def _explain_weights(query: MatrixQuery) -> list[str]:
    """How people with several rows count."""
    if query.person is None or isinstance(query, Identity):
        return []
    if query.person.rows is None:
        return [
            "Each person counts once, whatever the number of their rows: numbers are means over people, of the means "
            "over the rows of each, and shares and counts are of people."
        ]
    return [
        f"Each row counts, but all rows of a person with more than {query.person.rows:,} of them together count as "
        f"{query.person.rows:,}."
    ]


def _explain_answers(records: str) -> list[str]:
    return [
        "Each number is the true one plus noise. Its error bar, written after ±, is the standard deviation of that "
        "noise, to first order: the true number is within one error bar in about 68 of 100 cases, within two in 95.",
        f"“Too few” marks a number that would be computed from so few {records} that noise hides their number, and "
        "“hidden by noise” a standard deviation or correlation for which noise hides a variance. A pale number in "
        "grey is within two error bars of zero: it could be noise alone.",
        "All numbers follow from one noisy matrix, so showing more of them uses no privacy budget: “matrixdp answer” "
        "reads regressions, principal components and more off release.json. Counts, means and totals "
        "are adjusted to each other, so that they add up; a small count can be negative.",
        "The error bars cover only the noise that protects privacy. How far these data are from the population that "
        "they come from is a separate question, with its own error bars: “matrixdp answer sampling” shows both.",
    ]


def describe_treatment(content: ReportContent) -> list[str]:
    """Sentences on clipping and missing values, as far as the release says what was done."""
    return [*describe_clipping(content.mechanism, content.dates), *_describe_missing(content)]


def describe_clipping(mechanism: MechanismFacts, dates: Sequence[DateRule] = ()) -> list[str]:
    """What was done to values outside their bounds; nothing where that is unknown or there are none."""
    query = mechanism.query
    if not mechanism.clips:
        return []
    private = "before anything was computed. How many there were is private and is not recorded."
    if query.unit in ("edge", "node"):
        return [f"Weights outside 0 to {format_number(query.weight)} were moved into that range {private}"]  # type: ignore[attr-defined]
    if isinstance(query, TableMoments):
        numbers: tuple[Number, ...] = query.used.numbers
    elif isinstance(query, BoundedQuery):
        numbers = list_numbers(query.bounds) if query.bounds.names else ()
    else:
        return []
    if isinstance(query, TableMoments) and not numbers:
        return []
    listed = f" ({_list_bounds(numbers, dates)})" if numbers else ""
    return [f"Values outside the bounds{listed} were moved to the bounds {private}"]


def _list_bounds(numbers: Sequence[Number], dates: Sequence[DateRule]) -> str:
    rules = {rule.name: rule for rule in dates}
    shown: list[str] = []
    if len({(one.lower, one.upper) for one in numbers}) == 1 < len(numbers) and not rules:
        return f"{format_number(numbers[0].lower, 6)} to {format_number(numbers[0].upper, 6)} in all columns"
    for one in numbers[:_NAMED]:
        rule = rules.get(one.name)
        low, high = ((rule and rule.show(end)) or format_number(end, 6) for end in (one.lower, one.upper))
        shown.append(f"{one.name} {low} to {high}")
    more = len(numbers) - len(shown)
    return ", ".join(shown) + (f", and {more:,} more" if more else "")


def _describe_missing(content: ReportContent) -> list[str]:
    query = content.mechanism.query
    if isinstance(query, TableMoments):
        found = [OBSERVED] if any(column.missing for column in query.columns) else []
        return [*found, *content.caveats] or [REFUSED]
    known = content.mechanism.clips and (isinstance(query, BoundedQuery) or query.unit in ("edge", "node"))
    return [*content.caveats] or ([REFUSED] if known else [])
