"""How values outside of their bounds and missing values were treated, to be said beside the numbers."""

from __future__ import annotations

from collections.abc import Sequence

from matrixdp.display import format_number
from matrixdp.domain.bounds import Bounds
from matrixdp.domain.columns import Number
from matrixdp.domain.file_rules import DateRule
from matrixdp.queries import TableMoments
from matrixdp.queries.base import BoundedQuery
from matrixdp.report.content import ReportContent
from matrixdp.report.mechanism_facts import MechanismFacts

_NAMED = 12  # columns whose bounds are named
OBSERVED = (
    "Missing values: each number is computed from the records in which all of its columns are there, and nothing is "
    "filled in. That describes all records only if values are missing at random."
)
REFUSED = "Missing values: not accepted; a table with a missing value would have been refused."


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
        numbers = _read_bounds(query.bounds)
    else:
        return []
    if isinstance(query, TableMoments) and not numbers:
        return []
    listed = f" ({_list_bounds(numbers, dates)})" if numbers else ""
    return [f"Values outside the bounds{listed} were moved to the bounds {private}"]


def _read_bounds(bounds: Bounds) -> tuple[Number, ...]:
    if bounds.names is None:
        return ()
    return tuple(Number(*one) for one in zip(bounds.names, bounds.lower.tolist(), bounds.upper.tolist(), strict=True))


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
