"""Fields of a schema, and the kinds of values that they hold.

A kind knows three forms of a value: the entry of a TOML file, the checked value, and the text of a form's field. So a
field is declared once (`schema_file.SECTIONS` and `COLUMN_FIELDS`), and files, forms and messages follow.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from matrixdp.checks import LARGEST, check_integer, check_magnitude, check_number
from matrixdp.errors import ParameterError, show

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")


def _check_text(value: Any, name: str) -> Any:
    return _require(isinstance(value, str), value, name, "a text")


@dataclass(frozen=True)
class Kind:
    """A kind of values, with the widget of a form that shows it.

    `check` gives the checked value of an entry and the name of its field, or raises a `ParameterError`; `show` gives
    the text of an entry; `parse` gives the entry in a text, which is the text itself where that cannot be read, or
    raises a `ParameterError` whose message continues the name of the field. `example` is how a file has it, where that
    is not obvious. `options` are texts that may be chosen, and what a form calls them; the first is the default, which
    is not written.
    """

    widget: str = "text"
    check: Callable[[Any, str], Any] = _check_text
    show: Callable[[Any], str] = str
    parse: Callable[[str], Any] = str
    example: str = ""
    options: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Field:
    """One field of a schema, with the name of its entry in a file.

    `kind` is a mapping of types of columns to kinds if it depends on the type of a column; columns of other types do
    not have the field. `label` and `hint` are what a form calls it and says besides. `required` names what is missing
    where there is no entry; it is empty for a field that may be left out. `group` is the heading under which a form
    folds it away with others.
    """

    name: str
    kind: Kind | Mapping[str, Kind]
    label: str = ""
    hint: str = ""
    required: str = ""
    group: str = ""

    @property
    def types(self) -> tuple[str, ...]:
        """The types of columns that have the field."""
        return tuple(self.kind) if isinstance(self.kind, Mapping) else ()

    def kind_for(self, column_type: str = "") -> Kind:
        """The kind of its values, in a column of this type or, without one, of the first that has it."""
        if isinstance(self.kind, Mapping):
            return self.kind[column_type] if column_type else next(iter(self.kind.values()))
        return self.kind

    def show(self, entry: Mapping[str, Any], column_type: str = "") -> str:
        """The text of the field for its entry in `entry`; empty if there is none."""
        value = entry.get(self.name)
        return "" if value is None or value == "" else self.kind_for(column_type).show(value)

    def parse(self, text: str, column_type: str = "") -> Any:
        """The entry in a text, None if it is empty or the default; a `ParameterError` names the field."""
        kind = self.kind_for(column_type)
        if not text or (kind.options and text == kind.options[0][0]):
            return None
        try:
            value = kind.parse(text)
        except ParameterError as error:
            raise ParameterError(f"{self.name} {error}", parameter=self.name) from None
        return None if value in ("", [], {}) else value


def _require(met: bool, value: Any, name: str, rule: str) -> Any:
    if not met:
        raise ParameterError(f"{name} must be {rule}, got {show(value)} instead.", parameter=name)
    return value


def _check_flag(value: Any, name: str) -> bool:
    return bool(_require(isinstance(value, bool), value, name, "true or false"))


def _check_column(value: Any, name: str) -> Any:
    return _require(isinstance(value, str) and value.isprintable(), value, name, "the name of a column")


def _check_words(value: Any, name: str) -> tuple[str, ...]:
    listed = isinstance(value, list) and all(isinstance(word, str) for word in value)
    return tuple(_require(listed, value, name, 'a list of texts, as in ["NA", "."]'))


def _check_levels(value: Any, name: str) -> tuple[Any, ...]:
    listed = isinstance(value, list) and {type(level) for level in value} in ({str}, {int})
    rule = 'a list of texts, as in ["yes", "no"], or a list of integers'
    found = tuple(_require(listed, value, name, rule))
    if "" in found:
        raise ParameterError(f"{name} must not have an empty text. For empty values, write missing = true.")
    return found


def _check_number(value: Any, name: str) -> float:
    endless = isinstance(value, float) and not math.isfinite(value)
    long = isinstance(value, int) and abs(value) > LARGEST
    return check_number(
        value, name, rule="finite, and at most 1e60 in absolute value" if endless or long else "a number"
    )


def _check_shares(value: Any, name: str) -> dict[str, float]:
    _require(isinstance(value, dict), value, name, "levels and shares, as in {north = 0.6, south = 0.3}")
    return {level: check_number(share, name, rule=f"a number for {level!r}") for level, share in value.items()}


def _check_when(what: str, example: str, value: Any, name: str) -> dt.date | dt.time:
    quoted = isinstance(value, str) and not isinstance(_read_when(what, value), str)
    fits = isinstance(value, dt.date if what == "date" else dt.time)
    _require(fits, value, name, f"a {what}{' without quotes' * quoted}, as in {example}")
    if getattr(value, "tzinfo", None) is not None:
        raise ParameterError(f"{name} must have no zone; dates and times are in UTC.", parameter=name)
    return value  # type: ignore[no-any-return]


def _show_when(value: dt.date | dt.time) -> str:
    return value.isoformat(" ") if isinstance(value, dt.datetime) else value.isoformat()


def _read_when(what: str, text: str) -> dt.date | dt.time | str:
    parsers: tuple[Any, ...] = (dt.date.fromisoformat, dt.datetime.fromisoformat)
    for parse in parsers if what == "date" else (dt.time.fromisoformat,):
        try:
            return parse(text.strip())  # type: ignore[no-any-return]
        except ValueError:
            continue
    return text


def read_number(text: str) -> int | float | str:
    """The number in a text, or the text if there is none that TOML can hold."""
    text = text.strip()
    for parse in (int, float):
        try:
            value = parse(text)
        except ValueError:
            continue
        if math.isfinite(value) if isinstance(value, float) else abs(value) < 1 << 63:
            return value
    return text


def show_number(value: float | str) -> str:
    """A number as a text, exactly; whole ones without a point."""
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 1e15
    return str(int(value)) if whole else str(value)


def join_lines(values: Iterable[str | int]) -> str:
    r"""Texts and integers as the lines of a text area.

    A text that a line cannot show as it is (empty, with spaces at its ends, beginning with a quotation mark, or with
    characters that are not printable) is written in quotation marks, as in JSON. So is one that looks like an integer.

    Examples
    --------
    >>> join_lines(["north", " south", "7", 7]).split("\n")
    ['north', '" south"', '"7"', '7']
    """

    def line(value: str | int) -> str:
        if isinstance(value, int):
            return str(value)
        return json.dumps(value) if _INTEGER.fullmatch(value) else quote_line(value)

    return "\n".join(map(line, values))


def split_lines(text: str) -> list[str]:
    """The texts in the lines of a text area; empty lines are left out."""
    return [unquote_line(line) for line in _lines(text)]


def _lines(text: str) -> list[str]:
    return [line for line in re.split(r"\r\n|\r|\n", text) if line.strip()]


def quote_line(value: str) -> str:
    """A text as one line; see `join_lines`."""
    if value and value == value.strip() and value.isprintable() and not value.startswith('"'):
        return value
    return json.dumps(value, ensure_ascii=not value.isprintable())


def unquote_line(line: str) -> str:
    """The text in a line; raises a `ParameterError` for one that begins with a quotation mark and is not quoted."""
    line = line.strip()
    if not line.startswith('"'):
        return line
    try:
        value = json.loads(line)
    except ValueError:
        value = None
    rule = 'must have a quotation mark at both ends of a line or at none, as in "north"'
    if not isinstance(value, str):
        raise ParameterError(f"{rule}, got {show(line)} instead.")
    return value


def _read_levels(text: str) -> list[str] | list[int]:
    """Integers if all lines are, and otherwise texts."""
    lines = text.split()
    return [*map(int, lines)] if all(map(_INTEGER.fullmatch, lines)) else split_lines(text)


def _show_shares(shares: Mapping[str, float]) -> str:
    return "\n".join(f"{show_number(share)} {quote_line(level)}" for level, share in shares.items())


def _read_shares(text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for line in _lines(text):
        share, *rest = line.split(maxsplit=1)
        level = unquote_line("".join(rest))
        if not level or level in found:
            rule = "must be a share and a level in each line, as in 0.6 north, and each level once"
            raise ParameterError(f"{rule}, got {show(line)} instead.")
        found[level] = read_number(share)
    return found


TEXT = Kind()
NUMBER = Kind("number", _check_number, show_number, read_number)
SIZE = Kind("number", check_magnitude, show_number, read_number)
COUNT = Kind("number", partial(check_integer, at_least=1), show_number, read_number)
FLAG = Kind("flag", _check_flag, lambda value: "on" if value else "", bool)
COLUMN = Kind("column", _check_column, quote_line, unquote_line)
WORDS = Kind("lines", _check_words, lambda words: join_lines(words or [""]), split_lines)
LEVELS = Kind("lines", _check_levels, join_lines, _read_levels)
SHARES = Kind("lines", _check_shares, _show_shares, _read_shares)
DATE, TIME = (
    Kind("text", partial(_check_when, what, example), _show_when, partial(_read_when, what), example)
    for what, example in (("date", "1900-01-01"), ("time", "07:30:00"))
)


def choice(*options: tuple[str, str]) -> Kind:
    """One of a few texts, each with what a form calls it; whoever uses the value refuses others."""
    return Kind("choice", options=options)
