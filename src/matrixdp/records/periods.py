"""Periods of time by name, and the records of one period or of some people only."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain.file_rules import DateRule
from matrixdp.errors import DataError, ParameterError, show
from matrixdp.records.ids import Hashes, IdHash
from matrixdp.records.people import split_ids
from matrixdp.records.records import MappedRecords, OwnedBlock, Records
from matrixdp.records.tables import column_names, library_of, pa, take_column

Mask = NDArray[np.bool_]

PER_YEAR = {"hour": 8760, "day": 365, "night": 365, "week": 52, "month": 12, "year": 10, "step": 52}
_FORMS = {
    "hour": ("%Y-%m-%dT%H", "2031-01-05T13"),
    "day": ("%Y-%m-%d", "2031-01-05"),
    "night": ("%Y-%m-%d", "2031-01-05"),
    "week": ("%G-w%V-%u", "2031-w05"),
    "month": ("%Y-%m", "2031-01"),
    "year": ("%Y", "2031"),
}
_HOURS = {"hour": 1, "day": 24, "night": 24, "week": 168}
_LATEST = np.datetime64("9999-12-31T23:59:59")
_ZONE = re.compile(r":\d\d.*[Zz+-]|T\d\d[Zz+-]")  # after the time
_DELAY = re.compile(r"\s*(\d{1,4})\s*(hour|day|night|week)s?\s*")


@dataclass(frozen=True, order=True)
class Period:
    """A period from `start` to before `end`, with its name."""

    start: datetime
    end: datetime
    name: str

    @classmethod
    def parse(cls, name: Any, every: str) -> Period:
        """The hour, day, night, week, month or year of a name such as 2031-w05, or a `ParameterError`."""
        form, example = _FORMS[every]
        try:
            start = datetime.strptime(name + "-1" if every == "week" else name, form)
            if _write(start, every) == name:
                return cls(start, _following(start, every), name)
        except (TypeError, ValueError, OverflowError):
            pass
        raise ParameterError(f"«step» must be a {every} such as {example!r}, got {show(name)} instead.")

    @classmethod
    def of(cls, moment: datetime, every: str) -> Period:
        """The period that a moment is in."""
        return cls.parse(_write(moment, every), every)

    def following(self, every: str) -> Period:
        """The next period."""
        return Period.of(self.end, every)


def parse_delay(text: str, option: str = "«delay»") -> timedelta:
    """A time such as '1 week', or a `ParameterError` about the option."""
    found = _DELAY.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise ParameterError(f"{option} must be a time such as '3 days' or '1 week', got {show(text)} instead.")
    return timedelta(hours=int(found[1]) * _HOURS[found[2]])


def _write(start: datetime, every: str) -> str:
    return start.strftime(_FORMS[every][0].removesuffix("-%u"))


def _following(start: datetime, every: str) -> datetime:
    if every in ("month", "year"):
        months = start.year * 12 + start.month - 1 + (1 if every == "month" else 12)
        return start.replace(year=months // 12, month=months % 12 + 1)
    return start + timedelta(hours=_HOURS[every])


@dataclass(frozen=True, eq=False)
class InPeriod:
    """Chooses the rows of a block whose date in a column is in a period; rows without a date are in none."""

    column: str
    start: datetime
    end: datetime
    rule: DateRule | None = None  # by which the dates were read as numbers

    def __call__(self, block: Any) -> Mask:
        data = block.data if isinstance(block, OwnedBlock) else block
        if self.column not in (column_names(data) or ()):
            raise DataError(f"when: the data must have a column {self.column!r} of dates.")
        if self.rule is not None:
            times = np.asarray(take_column(data, self.column), np.float64)
            start, end = self.rule.number(self.start), self.rule.number(self.end)
            return np.asarray((times >= start) & (times < end))
        times = _read_dates(self.column, take_column(data, self.column))
        with np.errstate(invalid="ignore"):
            return np.asarray((times >= np.datetime64(self.start, "s")) & (times < np.datetime64(self.end, "s")))


@dataclass(frozen=True, eq=False)
class OfPeople:
    """Chooses the rows of a block whose ids have one of some hashes, which are sorted."""

    key: IdHash
    hashes: Hashes

    @property
    def column(self) -> str:
        """The column of ids."""
        return self.key.column

    def __call__(self, block: Any) -> Mask:
        hashes = self.key(split_ids(block, self.column)[0])[0]
        return np.isin(hashes, self.hashes, kind="sort")  # NumPy 2.0 overflows otherwise


def choose_rows(records: Records, choose: InPeriod | OfPeople) -> MappedRecords:
    """Some rows of records; `choose` says which of a block, by one of its columns."""
    return MappedRecords(records, partial(_choose, choose), named=True, reads=(choose.column,))


def _choose(choose: Callable[[Any], Mask], block: Any) -> Any:
    return _take_rows(block, choose(block))


def _take_rows(block: Any, mask: Mask) -> Any:
    """Some rows of an array, a table, a mapping of columns or a list of rows; all of None."""
    if block is None:
        return None
    if isinstance(block, OwnedBlock):
        return OwnedBlock(*(_take_rows(one, mask) for one in (block.data, block.ids, block.counts)))
    if isinstance(block, Mapping):
        return {name: _take_rows(column, mask) for name, column in block.items()}
    if library_of(block) in ("pyarrow", "polars"):
        return block.filter(pa.array(mask) if library_of(block) == "pyarrow" else mask)
    if isinstance(block, list | tuple):
        return [row for row, kept in zip(block, mask, strict=True) if kept]
    return block[mask]


def _to_utc(text: str) -> str:  # without a zone; NumPy would warn of each, and tell how many there are
    return datetime.fromisoformat(text).astimezone(UTC).replace(tzinfo=None).isoformat()


def _read_dates(name: str, column: Any) -> NDArray[Any]:
    """A column of dates as datetime64, in UTC, NaT where there is none; texts must be ISO dates or times."""
    try:
        if library_of(column) == "pyarrow":
            column = column if hasattr(column, "chunks") else pa.chunked_array([column])
            column = column.cast(pa.timestamp("s")) if pa.types.is_date(column.type) else column
        array = column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)
        if array.dtype.kind == "M":
            return array.astype("datetime64[s]")
        texts = ["NaT" if value is None or value != value else str(value).strip() or "NaT" for value in array.tolist()]
        times = np.array([_to_utc(text) if _ZONE.search(text) else text for text in texts], "datetime64[s]")
        if (times > _LATEST).any():  # as of numbers such as 20310105, which would be years
            raise ValueError
        return times
    except (TypeError, ValueError, AttributeError, OverflowError):
        raise DataError(
            f"when: column {name!r} must have dates such as 2031-01-05 or 2031-01-05T13:00, and has others."
        ) from None
