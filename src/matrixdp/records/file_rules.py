"""Rules by which the values in files are read: separators, words for missing values, and dates as numbers.

Rules are public: they come from the schema, never from the values. Each value is read on its own.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from matrixdp.errors import DataError, ParameterError, show

_MICROSECONDS = {"seconds": 10**6, "hours": 3600 * 10**6, "days": 86_400 * 10**6, "years": 31_556_952 * 10**6}
UNITS = tuple(_MICROSECONDS)  # a year has 365.2425 days, the mean of the calendar
_EPOCH = dt.datetime(1970, 1, 1)
_LARGEST = 1 << 61  # microseconds, some 70,000 years


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
            raise ParameterError(
                f"unit of column {self.name!r} must be one of {', '.join(UNITS)}, got {show(self.unit)} instead."
            )
        if self.origin is not None:
            _check_zone(self.name, self.origin)

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
        return (_count_microseconds(self.name, when) - self._start) / _MICROSECONDS[self.unit]

    def show(self, number: float) -> str:
        """The date or time for a number, to the day or to the second; empty where the calendar has none.

        Examples
        --------
        >>> DateRule("birth", "years", dt.date(1900, 1, 1)).show(58.25), DateRule("start", "hours").show(7.5)
        ('1958-04-02', '07:30:00')
        """
        if not abs(number) < 1e18:
            return ""
        try:
            when = _EPOCH + dt.timedelta(microseconds=self._start + round(number * _MICROSECONDS[self.unit]))
        except OverflowError:
            return ""
        if self.origin is None:
            return when.time().isoformat("seconds") if when.date() == _EPOCH.date() else ""
        return when.date().isoformat() if self.unit in ("days", "years") else when.isoformat(" ", "seconds")

    def numbers(self, column: Any) -> Any:
        """An Arrow array of dates, timestamps, times or texts as an array of floats; null where a value is missing."""
        import numpy as np
        import pyarrow as pa

        try:
            counted = self._microseconds(column)
        except (pa.ArrowException, ValueError, OverflowError):
            counted = None
        if counted is None:  # not inside of `except`: the original error quotes the data
            raise DataError(
                f"column {self.name!r} must hold {self.kind}s, written as "
                f"{show(self.format) if self.format else self._example}, and a value is something else. Correct it, "
                'or give the format in the schema, as in format = "%d.%m.%Y".'
            )
        missing = counted.is_null().to_numpy(zero_copy_only=False)
        since = np.clip(counted.fill_null(0).to_numpy(), -_LARGEST, _LARGEST) - self._start
        return pa.array(since / _MICROSECONDS[self.unit], pa.float64(), mask=missing)

    @property
    def _example(self) -> str:
        return "23:59 or 23:59:59" if self.origin is None else "2020-12-31 or 2020-12-31 23:59:59"

    @cached_property
    def _start(self) -> int:
        return 0 if self.origin is None else _count_microseconds(self.name, self.origin)

    def _microseconds(self, column: Any) -> Any:
        """Microseconds since 1970 or midnight, as an Arrow array of integers."""
        import pyarrow as pa

        if pa.types.is_null(column.type):
            return pa.nulls(len(column), pa.int64())
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            return self._parse(column).cast(pa.int64())
        fits = pa.types.is_time if self.origin is None else _is_date
        if not fits(column.type):
            raise ValueError
        if pa.types.is_timestamp(column.type) and column.type.tz is not None:  # zones are not in the number: UTC
            column = column.cast(pa.timestamp(column.type.unit))
        fine = str(column.type).endswith("[ns]")
        kind = pa.time64("us") if self.origin is None else pa.timestamp("us")
        return column.cast(kind, safe=not fine).cast(pa.int64())

    def _parse(self, column: Any) -> Any:
        """Texts as timestamps, times as those of the first day, with empty ones missing."""
        import pyarrow as pa
        from pyarrow import compute

        column = compute.utf8_trim_whitespace(column)
        column = compute.if_else(compute.equal(column, ""), pa.scalar(None, column.type), column)
        kind = pa.timestamp("us")
        if self.format is None:
            if self.origin is None:
                column = compute.binary_join_element_wise(pa.scalar("1970-01-01", column.type), column, " ")
            return column.cast(kind)
        unique = column.dictionary_encode()
        parsed = [dt.datetime.strptime(text, self.format) for text in unique.dictionary.to_pylist()]
        if self.origin is None:
            parsed = [dt.datetime.combine(_EPOCH.date(), when.time()) for when in parsed]
        return pa.array(parsed, kind).take(unique.indices)


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
            raise ParameterError(f"decimal must be '.' or ',', got {show(self.decimal)} instead.")
        if self.thousands not in ("", ".", ",", " ", "'", "_", "\u00a0", "\u202f") or self.thousands == self.decimal:
            raise ParameterError(
                "thousands must be one of '.', ',', a space, an apostrophe or an underscore, and not the same as "
                f"decimal, got {show(self.thousands)} instead."
            )

    def to_options(self) -> dict[str, Any]:
        """The rules that are not the default, as JSON content.

        Examples
        --------
        >>> FileRules(decimal=",", dates=[DateRule("birth", "days", dt.date(1900, 1, 1))]).to_options()
        {'decimal': ',', 'dates': {'birth': {'unit': 'days', 'origin': '1900-01-01', 'format': None}}}
        """
        names = ("decimal", "thousands", "missing_words", "sheet")
        found = {name: getattr(self, name) for name in names if getattr(self, name) != getattr(FileRules, name)}
        if self.missing_words is not None:
            found["missing_words"] = list(self.missing_words)
        dates = {rule.name: rule.to_options() for rule in self.dates}
        return {**found, **({"dates": dates} if dates else {})}

    def date(self, name: str) -> DateRule | None:
        """The rule of a column of dates, None for other columns."""
        return next((rule for rule in self.dates if rule.name == name), None)

    def parse_numbers(self, name: str, texts: Any) -> Any:
        """An Arrow array of texts as floats, null where one is missing."""
        import pyarrow as pa
        from pyarrow import compute

        missing = compute.is_in(texts, pa.array(self.number_words))
        texts = compute.utf8_trim_whitespace(compute.if_else(missing, pa.scalar(None, pa.string()), texts))
        if self.thousands:
            mark, point = re.escape(self.thousands), re.escape(self.decimal)
            grouped = compute.match_substring_regex(texts, rf"^[+-]?\d{{1,3}}({mark}\d{{3}})+({point}\d*)?$")
            plain = compute.replace_substring(texts, self.thousands, "")
            texts = compute.if_else(grouped, plain, texts)
        if self.decimal != ".":
            # A point is no digit here: "1.5" must not be read as 1.5.
            texts = compute.replace_substring(compute.replace_substring(texts, ".", "?"), self.decimal, ".")
        try:
            return texts.cast(pa.float64())
        except pa.ArrowInvalid:
            pass
        raise not_a_number(name)

    @cached_property
    def number_words(self) -> list[str]:
        """The words for missing values in columns of numbers."""
        from pyarrow import csv

        return csv.ConvertOptions().null_values if self.missing_words is None else ["", *self.missing_words]

    def apply(self, batch: Any) -> Any:
        """A record batch with null in place of the words for missing values, and numbers in place of dates."""
        for i, name in enumerate(batch.schema.names):
            column = batch.column(i)
            if self.missing_words is not None:
                column = _without_words(column, self.missing_words)
            rule = self.date(name)
            if rule is not None:
                column = rule.numbers(column)
            if column is not batch.column(i):
                batch = batch.set_column(i, name, column)
        return batch


DEFAULT_RULES = FileRules()


def not_a_number(name: str) -> DataError:
    """The error for a text in a column of numbers."""
    return DataError(
        f"column {name!r} must hold numbers, but it contains text. In the schema, give it the type of what it holds: "
        'type = "yes/no" for TRUE and FALSE or yes and no, "category" for names, "date" for dates; declare a decimal '
        "comma, thousands or words for missing values under [files] (decimal, thousands, missing_words); or delete the "
        "column there."
    )


def _without_words(column: Any, words: Sequence[str]) -> Any:
    """Null in place of the words, in a column of texts, which may have a dictionary."""
    import pyarrow as pa
    from pyarrow import compute

    encoded = pa.types.is_dictionary(column.type)
    kind = column.type.value_type if encoded else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)) or not words:
        return column
    values = column.dictionary if encoded else column
    missing = compute.is_in(values, pa.array(words, kind))
    if not encoded:
        return compute.if_else(missing, pa.scalar(None, kind), column)
    indices = compute.if_else(missing.take(column.indices), pa.scalar(None, column.type.index_type), column.indices)
    return pa.DictionaryArray.from_arrays(indices, column.dictionary)


def _is_date(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _count_microseconds(name: str, when: dt.date | dt.time) -> int:
    _check_zone(name, when)
    if isinstance(when, dt.time):
        since = dt.datetime.combine(_EPOCH.date(), when) - _EPOCH
    elif isinstance(when, dt.datetime):
        since = when - _EPOCH
    else:
        since = dt.datetime.combine(when, dt.time()) - _EPOCH
    return since // dt.timedelta(microseconds=1)


def _check_zone(name: str, when: dt.date | dt.time) -> None:
    if getattr(when, "tzinfo", None) is not None:
        raise ParameterError(f"dates and times of column {name!r} in the schema must have no zone; they are in UTC.")
