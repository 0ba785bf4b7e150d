"""How files and their values are written: encoding, header, digits, dates, words; declared, never guessed.

Rules are public: they come from the schema, never from the values. `records.file_values` reads by them.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from matrixdp.errors import ParameterError, show

MICROSECONDS = {"seconds": 10**6, "hours": 3600 * 10**6, "days": 86_400 * 10**6, "years": 31_556_952 * 10**6}
UNITS = tuple(MICROSECONDS)  # a year has 365.2425 days, the mean of the calendar
THOUSANDS = ("", ".", ",", " ", "'", "_", "\u00a0", "\u202f")
HEAD_RULES = ("sheet", "header_row", "delimiter", "encoding")  # those that decide which columns a file has
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
    format : str or sequence of str, optional
        How texts are written, as for `datetime.strptime`; by default as in 2020-12-31 or 2020-12-31 23:59:59, and
        23:59 or 23:59:59 for times. A text is read by the first of several formats that fits it.

    Examples
    --------
    >>> rule = DateRule("birth", "days", dt.date(1900, 1, 1))
    >>> rule.number(dt.date(1900, 1, 31)), rule.meaning
    (30.0, 'days since 1900-01-01')
    """

    name: str
    unit: str = "days"
    origin: dt.date | None = None
    format: str | Sequence[str] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.format, list):
            object.__setattr__(self, "format", tuple(self.format))
        if self.unit not in UNITS:
            rule = f"must be one of {', '.join(UNITS)}, got {show(self.unit)} instead."
            raise ParameterError(f"unit of column {self.name!r} {rule}", parameter="unit")
        if self.origin is not None:
            _count_microseconds(self.name, self.origin)  # which checks it

    def to_options(self) -> dict[str, Any]:
        """How the column is read, as JSON content."""
        return {name: _as_json(getattr(self, name)) for name in ("unit", "origin", "format")}

    @property
    def formats(self) -> tuple[str, ...]:
        """The formats of texts, in the order in which they are tried; none for the default."""
        return (self.format,) if isinstance(self.format, str) else tuple(self.format or ())

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
        """The date or time for a number, to the day or to the second; empty where the calendar has none."""
        when = self.convert(number)
        if isinstance(when, dt.datetime):
            return when.isoformat(" ", "seconds")
        return when.isoformat("seconds") if isinstance(when, dt.time) else "" if when is None else when.isoformat()

    def convert(self, number: float) -> dt.date | dt.time | None:
        """The date, time or moment for a number; None where the calendar has none."""
        when = self.moment(number)
        if when is None or (self.origin is None and when.date() != EPOCH.date()):
            return None
        return when.time() if self.origin is None else when.date() if self.unit in ("days", "years") else when

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
        if self.formats:
            return " or ".join(map(show, self.formats))
        return "23:59 or 23:59:59" if self.origin is None else "2020-12-31 or 2020-12-31 23:59:59"

    @cached_property
    def start(self) -> int:
        """The origin in microseconds since 1970, or since midnight."""
        return 0 if self.origin is None else _count_microseconds(self.name, self.origin)


@dataclass(frozen=True)
class ColumnRule:
    """How the texts of one column are written: as `FileRules` say, and None for what holds in the file."""

    name: str
    decimal: str | None = None
    thousands: str | None = None
    missing_words: Sequence[str] | None = None
    strip: bool | None = None
    aliases: Mapping[str, Sequence[str]] = field(default_factory=dict, hash=False)  # levels with other texts for them
    fold: bool = False  # whether capital letters and spaces at the ends of aliases do not count

    def __post_init__(self) -> None:
        if self.missing_words is not None:
            object.__setattr__(self, "missing_words", tuple(self.missing_words))

    def to_options(self) -> dict[str, Any]:
        """The rules that are given, as JSON content."""
        given = {name: value for name, value in vars(self).items() if name != "name"}
        return {name: _as_json(value) for name, value in given.items() if value not in (None, {}, False)}

    @property
    def meanings(self) -> dict[str, str]:
        """The level that each alias means."""
        return {self.key(text): level for level, texts in self.aliases.items() for text in texts}

    def key(self, text: str) -> str:
        """A text as it is compared with aliases."""
        return text.strip().lower() if self.fold else text


@dataclass(frozen=True)
class FileRules:
    """How files and the values in them are written.

    Parameters
    ----------
    decimal, thousands : str
        The character before the decimals of a number in a text, and the one between groups of three digits; none by
        default.
    missing_words : sequence of str, optional
        The texts that mean that a value is missing, in all columns, besides an empty one. By default, columns of
        numbers have Arrow's words (NA, N/A, NaN, null and their like), and others have none.
    strip : bool
        Whether spaces at the ends of texts do not count.
    encoding : str, optional
        Of text files; by default UTF-8.
    delimiter : str, optional
        The character between columns of text files; by default the one that the line of names shows.
    header_row : int, optional
        The row with the names of the columns, counted from 1; by default the first.
    skip_rows : int
        Number of rows between the names and the first record.
    skip_lines : sequence of str
        Rows of text files and workbooks whose first cell begins with one of these are no records, such as a total.
    sheet : str, optional
        The sheet of an Excel workbook; by default the first.
    dates : sequence of DateRule
    columns : sequence of ColumnRule
        What differs in single columns.
    """

    decimal: str = "."
    thousands: str = ""
    missing_words: Sequence[str] | None = None
    strip: bool = False
    encoding: str | None = None
    delimiter: str | None = None
    header_row: int | None = None
    skip_rows: int = 0
    skip_lines: Sequence[str] = ()
    sheet: str | None = None
    dates: Sequence[DateRule] = ()
    columns: Sequence[ColumnRule] = ()

    def __post_init__(self) -> None:
        for name in ("missing_words", "skip_lines", "dates", "columns"):
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else tuple(value))
        if "" in self.skip_lines:
            message = "skip_lines must not have an empty text: all lines begin with it."
            raise ParameterError(message, parameter="skip_lines")
        _check_marks(self.decimal, self.thousands)
        for one in self.columns:
            rule = self.of(one.name)
            _check_marks(rule.decimal, rule.thousands, f" of column {one.name!r}")
        if self.encoding is not None and not _is_encoding(self.encoding):
            message = f'must be an encoding such as "latin-1", "cp1252" or "utf-16", got {show(self.encoding)} instead.'
            raise ParameterError(f"encoding {message}", parameter="encoding")
        mark = self.delimiter
        if mark is not None and (len(mark) != 1 or not mark.isascii() or mark in '"\r\n\0'):
            raise ParameterError(
                "delimiter (--delimiter) must be a single character of ASCII, and no quote or line end; a tab is 'tab' "
                "on the command line.",
                parameter="delimiter",
            )

    def to_options(self) -> dict[str, Any]:
        """The rules that are not the default, as JSON content."""
        given = {name: value for name, value in vars(self).items() if value != getattr(FileRules, name)}
        return {
            name: {one.name: one.to_options() for one in value} if name in ("dates", "columns") else _as_json(value)
            for name, value in given.items()
        }

    def skips(self, first: str) -> bool:
        """Whether a row with this first cell, or a line that begins with it, is no record."""
        return first.lstrip(' \t"').startswith(tuple(self.skip_lines))

    def date(self, name: str) -> DateRule | None:
        """The rule of a column of dates, None for other columns."""
        return next((rule for rule in self.dates if rule.name == name), None)

    def of(self, name: str) -> ColumnRule:
        """All that holds for the texts of a column: its own rule, and otherwise that of the file."""
        own = next((rule for rule in self.columns if rule.name == name), ColumnRule(name))
        shared = ("decimal", "thousands", "missing_words", "strip")
        return replace(own, **{key: getattr(self, key) for key in shared if getattr(own, key) is None})


def _check_marks(decimal: str | None, thousands: str | None, where: str = "") -> None:
    """Raise a `ParameterError` unless digits can be read with these marks."""
    if decimal not in (".", ","):
        rule = f"must be '.' or ',', got {show(decimal)} instead."
        raise ParameterError(f"decimal{where} {rule}", parameter="decimal")
    if thousands not in THOUSANDS or thousands == decimal:
        raise ParameterError(
            f"thousands{where} must be one of '.', ',', a space, an apostrophe or an underscore, and not the same as "
            f"decimal, got {show(thousands)} instead.",
            parameter="thousands",
        )


def _is_encoding(name: str) -> bool:  # of text, and not of bytes as other bytes
    try:
        return bool(bytes(4).decode(name))
    except (LookupError, ValueError):
        return False


def _as_json(value: Any) -> Any:
    return value.isoformat() if isinstance(value, dt.date) else list(value) if isinstance(value, tuple) else value


DEFAULT_RULES = FileRules()


def _count_microseconds(name: str, when: dt.date | dt.time) -> int:
    """Microseconds since 1970, or since midnight for a time."""
    if getattr(when, "tzinfo", None) is not None:
        raise ParameterError(f"dates and times of column {name!r} in the schema must have no zone; they are in UTC.")
    if isinstance(when, dt.time):
        when = dt.datetime.combine(EPOCH, when)
    elif not isinstance(when, dt.datetime):
        when = dt.datetime.combine(when, dt.time())
    return (when - EPOCH) // dt.timedelta(microseconds=1)
