"""How values are written in files: separators of digits, words for missing values, dates; declared, never guessed.

Rules are public: they come from the schema, never from the values. `records.file_values` reads by them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from matrixdp.errors import ParameterError, show

MICROSECONDS = {"seconds": 10**6, "hours": 3600 * 10**6, "days": 86_400 * 10**6, "years": 31_556_952 * 10**6}
UNITS = tuple(MICROSECONDS)  # a year has 365.2425 days, the mean of the calendar
THOUSANDS = ("", ".", ",", " ", "'", "_", "\u00a0", "\u202f")
EPOCH = dt.datetime(1970, 1, 1)


@dataclass(frozen=True)
class DateRule:
    """A column of dates or times of day, read as a number of units since `origin`.

    Parameters
    ----------
    name : str
    unit : {"seconds", "hours", "days", "years"}
        A year has 365.2425 days.
    origin : datetime, date or None
        None for times of day, which count from midnight.
    format : str, optional
        How texts are written, as for `datetime.strptime`; by default as in 2020-12-31 or 2020-12-31 23:59:59, and
        23:59 or 23:59:59 for times.

    Examples
    --------
    >>> rule = DateRule("birth", "days", dt.date(1900, 1, 1))
    >>> rule.number(dt.date(1900, 1, 31)), rule.meaning
    (30.0, 'days since 1900-01-01')
    """

    name: str
    unit: str = "days"
    origin: dt.date | None = None
    format: str | None = None

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            rule = f"must be one of {', '.join(UNITS)}, got {show(self.unit)} instead."
            raise ParameterError(f"unit of column {self.name!r} {rule}", parameter="unit")
        if self.origin is not None:
            _count_microseconds(self.name, self.origin)  # which checks it

    def to_options(self) -> dict[str, Any]:
        """How the column is read, as JSON content."""
        origin = None if self.origin is None else self.origin.isoformat()
        return {"unit": self.unit, "origin": origin, "format": self.format}

    @property
    def kind(self) -> str:
        """Whether it holds dates or times of day."""
        return "time" if self.origin is None else "date"

    @property
    def meaning(self) -> str:
        """What the numbers count."""
        return f"{self.unit} since {'midnight' if self.origin is None else self.origin}"

    def number(self, when: dt.date | dt.time) -> float:
        """The number for a date, a time or both."""
        return (_count_microseconds(self.name, when) - self.start) / MICROSECONDS[self.unit]

    def show(self, number: float) -> str:
        """The date or time for a number, to the day or to the second; empty where the calendar has none.

        Examples
        --------
        >>> DateRule("birth", "years", dt.date(1900, 1, 1)).show(58.25), DateRule("start", "hours").show(7.5)
        ('1958-04-02', '07:30:00')
        """
        when = self.moment(number)
        if when is None or (self.origin is None and when.date() != EPOCH.date()):
            return ""
        if self.origin is None:
            return when.time().isoformat("seconds")
        return when.date().isoformat() if self.unit in ("days", "years") else when.isoformat(" ", "seconds")

    def moment(self, number: float) -> dt.datetime | None:
        """The moment for a number, for times on the first day of 1970; None where the calendar has none."""
        if not abs(number) < 1e18:
            return None
        try:
            return EPOCH + dt.timedelta(microseconds=self.start + round(number * MICROSECONDS[self.unit]))
        except OverflowError:
            return None

    @property
    def example(self) -> str:
        """How texts are written."""
        if self.format:
            return show(self.format)
        return "23:59 or 23:59:59" if self.origin is None else "2020-12-31 or 2020-12-31 23:59:59"

    @cached_property
    def start(self) -> int:
        """The origin in microseconds since 1970, or since midnight."""
        return 0 if self.origin is None else _count_microseconds(self.name, self.origin)


@dataclass(frozen=True)
class FileRules:
    """How values are written in files.

    Parameters
    ----------
    decimal, thousands : str
        The character before the decimals of a number in a text file, and the one between groups of three digits; none
        by default.
    missing_words : sequence of str, optional
        The texts that mean that a value is missing, in all columns, besides an empty one. By default, columns of
        numbers in text files have Arrow's words (NA, N/A, NaN, null and their like), and others have none.
    sheet : str, optional
        The sheet of an Excel workbook; by default the first.
    dates : sequence of DateRule
    """

    decimal: str = "."
    thousands: str = ""
    missing_words: Sequence[str] | None = None
    sheet: str | None = None
    dates: Sequence[DateRule] = ()

    def __post_init__(self) -> None:
        if self.missing_words is not None:
            object.__setattr__(self, "missing_words", tuple(self.missing_words))
        object.__setattr__(self, "dates", tuple(self.dates))
        if self.decimal not in (".", ","):
            raise ParameterError(f"decimal must be '.' or ',', got {show(self.decimal)} instead.", parameter="decimal")
        if self.thousands not in THOUSANDS or self.thousands == self.decimal:
            raise ParameterError(
                "thousands must be one of '.', ',', a space, an apostrophe or an underscore, and not the same as "
                f"decimal, got {show(self.thousands)} instead.",
                parameter="thousands",
            )

    def to_options(self) -> dict[str, Any]:
        """The rules that are not the default, as JSON content.

        Examples
        --------
        >>> FileRules(decimal=",", dates=[DateRule("birth", "days", dt.date(1900, 1, 1))]).to_options()
        {'decimal': ',', 'dates': {'birth': {'unit': 'days', 'origin': '1900-01-01', 'format': None}}}
        """
        given = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "dates"}
        found = {name: value for name, value in given.items() if value != getattr(FileRules, name)}
        dates = {rule.name: rule.to_options() for rule in self.dates}
        listed = {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}
        return {**listed, **({"dates": dates} if dates else {})}

    def date(self, name: str) -> DateRule | None:
        """The rule of a column of dates, None for other columns."""
        return next((rule for rule in self.dates if rule.name == name), None)


DEFAULT_RULES = FileRules()


def _count_microseconds(name: str, when: dt.date | dt.time) -> int:
    """Microseconds since 1970, or since midnight for a time."""
    if getattr(when, "tzinfo", None) is not None:
        raise ParameterError(f"dates and times of column {name!r} in the schema must have no zone; they are in UTC.")
    if isinstance(when, dt.time):
        since = dt.datetime.combine(EPOCH.date(), when) - EPOCH
    elif isinstance(when, dt.datetime):
        since = when - EPOCH
    else:
        since = dt.datetime.combine(when, dt.time()) - EPOCH
    return since // dt.timedelta(microseconds=1)
