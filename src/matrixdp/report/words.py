"""The prose of a report: passages of ``templates/words.txt`` with the facts of a release."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matrixdp.display import format_number
from matrixdp.domain.columns import Number
from matrixdp.domain.file_rules import DateRule
from matrixdp.queries import ContingencyTable, GramMatrix, Identity, MatrixQuery, Moments, TableMoments
from matrixdp.queries.base import BoundedQuery
from matrixdp.release.result import Release
from matrixdp.report.content import ReportContent, list_numbers
from matrixdp.report.guarantee import MechanismFacts
from matrixdp.report.page import load_template

_KINDS = (ContingencyTable, Moments, TableMoments, Identity, GramMatrix)
_NAMED = 12  # columns whose bounds are named


def write_words(passage: str, *facts: Any) -> list[str]:
    """The lines of a passage, a macro of the template."""
    return [line for line in getattr(load_template("words.txt").module, passage)(*facts).splitlines() if line]


def name_kind(query: MatrixQuery) -> str:
    """The class of a query as the template names it; empty for others."""
    return next((one.__name__ for one in _KINDS if isinstance(query, one)), "")


def explain_error_bars(content: ReportContent) -> list[str]:
    """How to read the error bars."""
    adjusted = isinstance(content.release, Release)
    return write_words("error_bars", content, name_kind(content.mechanism.query), adjusted)


def describe_treatment(content: ReportContent) -> list[str]:
    """Sentences on clipping and missing values, as far as the release says what was done."""
    query, found = content.mechanism.query, list(content.caveats)
    if isinstance(query, TableMoments) and any(column.missing for column in query.columns):
        found = [*write_words("observed"), *found]
    elif not found and (isinstance(query, TableMoments) or (content.mechanism.clips and _has_bounds(query))):
        found = write_words("refused")
    return [*describe_clipping(content.mechanism, content.dates), *found]


def _has_bounds(query: MatrixQuery) -> bool:
    return isinstance(query, BoundedQuery) or query.unit in ("edge", "node")


def describe_clipping(mechanism: MechanismFacts, dates: Sequence[DateRule] = ()) -> list[str]:
    """What was done to values outside their bounds; nothing where that is unknown or there are none."""
    query, numbers = mechanism.query, tuple[Number, ...]()
    if isinstance(query, TableMoments):
        numbers = query.used.numbers
    elif isinstance(query, BoundedQuery) and query.bounds.names:
        numbers = list_numbers(query.bounds)
    if not mechanism.clips or not (numbers or _has_bounds(query)):
        return []
    return write_words("clipping", query, _list_bounds(numbers, dates))


def _list_bounds(numbers: Sequence[Number], dates: Sequence[DateRule]) -> str:
    rules = {rule.name: rule for rule in dates}
    if len({(one.lower, one.upper) for one in numbers}) == 1 < len(numbers) and not rules:
        return f"{format_number(numbers[0].lower, 6)} to {format_number(numbers[0].upper, 6)} in all columns"
    shown = []
    for one in numbers[:_NAMED]:
        rule = rules.get(one.name)
        low, high = ((rule and rule.show(end)) or format_number(end, 6) for end in (one.lower, one.upper))
        shown.append(f"{one.name} {low} to {high}")
    more = len(numbers) - len(shown)
    return ", ".join(shown) + (f", and {more:,} more" if more else "")
