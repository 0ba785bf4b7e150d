"""Means of columns of dates and times, shown as dates and times, and the file that keeps how they are counted."""

import datetime as dt
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from matrixdp.answers.estimate import Estimate
from matrixdp.display import Texts, format_estimate
from matrixdp.domain.file_rules import DateRule
from matrixdp.errors import ParameterError
from matrixdp.report.answers import Answer
from matrixdp.report.content import ReportContent

DATES = "dates.json"  # beside release.json, where columns are dates or times
AS_DATE = ("value_as_date", "low_as_date", "high_as_date")  # columns of CSV files
_FORMAT = "matrixdp dates 1"


def show_date(rule: DateRule, value: float, std: float, *ends: float) -> str:
    """A mean as a date or time; empty where the calendar has no such date.

    With its error bar in the rule's unit or, if they are given, both ends of its interval.
    """
    shown = rule.show(value)
    dates = [rule.show(end) for end in ends]
    if shown and dates and all(dates):
        return f"{shown} [{', '.join(dates)}]"
    bar = f" ± {format_estimate(value, std, None)[1]} {rule.unit}" if 0 < std < math.inf else ""
    return f"{shown}{bar}" if shown else ""


def show_dates(answer: Answer, dates: Sequence[DateRule]) -> Texts | None:
    """Text in place of numbers of an answer: its own, or dates and times where it has means of them."""
    names = answer.list_means() if dates else None
    if names is None:
        return answer.text
    rules = {rule.name: rule for rule in dates}
    own = answer.text or [[""] * len(line) for line in names]
    return [
        [show_date(rules[name], *parts) if name in rules else text for name, parts, text in zip(*line, strict=True)]
        for line in zip(names, list_parts(answer.estimate), own, strict=True)
    ]


def list_dates(answer: Answer, dates: Sequence[DateRule]) -> dict[str, list[str]]:
    """Further columns of a CSV file: value and ends of each mean of dates, as dates; empty for other numbers."""
    names = answer.list_means() if dates else None
    if names is None:
        return {}
    known, found = {rule.name: rule for rule in dates}, answer.estimate
    rules = [known.get(name) for line in names for name in line]
    return {
        head: ["" if rule is None else rule.show(one) for rule, one in zip(rules, part.ravel().tolist(), strict=True)]
        for head, part in zip(AS_DATE, (found.value, *found.interval()), strict=True)
    }


def list_parts(found: Estimate) -> list[list[list[float]]]:
    """What `show_date` needs of each number, by rows; the ends are NaN where a number is not shown with them."""
    ends = (np.where(found.ranged, end, np.nan) for end in found.interval())
    parts: list[list[list[float]]] = np.stack([found.value, found.std, *ends], axis=-1).tolist()
    return parts


def add_dates(content: ReportContent, dates: Sequence[DateRule]) -> ReportContent:
    """The content with a sentence for each column of dates or times, and its mean as a date where it was released."""
    means: dict[str, list[float]] = {}
    for one in (one.estimate for one in content.answers if one.name == "means" and not one.group):
        means |= {name: parts[0] for name, parts in zip(one.rows, list_parts(one.column("mean")), strict=True)}
    dates = [rule for rule in dates if rule.name in content.query.read_names]
    units = []
    for rule in dates:
        shown = show_date(rule, *means.get(rule.name, (math.nan, 0.0)))
        ending = f"; its mean is {shown}" if shown else ""
        units.append(f"{rule.name}: a {rule.kind}, shown in {rule.meaning}{ending}.")
    return replace(content, units=tuple(units), dates=tuple(dates))


def write_dates(dates: Sequence[DateRule]) -> str:
    """The contents of ``dates.json``: unit, origin and format of each column of dates or times."""
    columns = [{"name": rule.name, **rule.to_options()} for rule in dates]
    return json.dumps({"format": _FORMAT, "columns": columns}, indent=1) + "\n"


def read_dates(folder: Path) -> tuple[DateRule, ...]:
    """The rules of the release in a folder; none if it has no dates."""
    path = folder / DATES
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != _FORMAT:
            raise ValueError
        return tuple(parse_rule(one["name"], one) for one in content["columns"])
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, KeyError, TypeError):
        raise ParameterError(f"{path} must be a file that matrixdp wrote; remove it to see dates as numbers.") from None


def parse_rule(name: str, options: Mapping[str, Any]) -> DateRule:
    """The rule of a column from `DateRule.to_options`, by which its numbers are shown."""
    origin = options["origin"]
    if origin is not None:
        origin = dt.datetime.fromisoformat(origin) if "T" in origin else dt.date.fromisoformat(origin)
    return DateRule(name, options["unit"], origin, options.get("format"))
