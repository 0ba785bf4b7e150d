"""Means of columns of dates and times, shown as dates and times."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from matrixdp.answers.named import NamedEstimate
from matrixdp.records.file_rules import DateRule
from matrixdp.report.decimals import write_estimate


def show_date(rule: DateRule, value: float, std: float) -> str:
    """A mean as a date or time with its error bar in the rule's unit; empty where the calendar has no such date.

    Examples
    --------
    >>> import datetime
    >>> show_date(DateRule("birth", "days", datetime.date(1900, 1, 1)), 21275.4, 12.34)
    '1958-04-02 ± 12 days'
    """
    shown = rule.show(value)
    bar = f" ± {write_estimate(value, std, None)[1]} {rule.unit}" if 0 < std < math.inf else ""
    return f"{shown}{bar}" if shown else ""


def show_dates(estimate: NamedEstimate, dates: Sequence[DateRule], *, by_column: bool) -> Callable[[int, int], str]:
    """The text of each cell of a table of means that is a date; empty for all other cells.

    Parameters
    ----------
    estimate : NamedEstimate
    dates : sequence of DateRule
    by_column : bool
        Whether the columns of the table are columns of the data, as in means by group; otherwise its rows are, and the
        column "mean" has their means.
    """
    rules = {rule.name: rule for rule in dates}

    def show(i: int, j: int) -> str:
        name = estimate.columns[j] if by_column else estimate.rows[i]
        if name not in rules or not (by_column or estimate.columns[j] == "mean"):
            return ""
        return show_date(rules[name], float(estimate.value[i, j]), float(estimate.std[i, j]))

    return show
