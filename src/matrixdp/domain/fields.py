"""Fields of a schema, and the kinds of values that they hold.

A kind knows three forms of a value: the entry of a TOML file, the checked value, and the text of a form's field. So a
field is declared once (`domain.schema.SECTIONS` and `COLUMN_FIELDS`), and files, forms and messages follow.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matrixdp.errors import ParameterError, show


class Kind:
    """Texts; the base of all kinds.

    Messages of errors continue the name of the field, as in "sheet must be a text".
    """

    widget = "text"  # the form's element: text, number, choice, lines or flag

    def check(self, value: Any) -> Any:
        """The checked value of an entry that is not empty."""
        if not isinstance(value, str):
            raise ParameterError(f"must be a text, got {show(value)} instead.")
        return value

    def to_texts(self, name: str, value: Any) -> dict[str, str]:
        """An entry as texts of a form, by the names of their fields."""
        return {name: str(value)}

    def from_texts(self, name: str, texts: Mapping[str, str]) -> Any:
        """The entry in the texts of a form; None if there is none, a text that cannot be read as it is."""
        return texts.get(name) or None


@dataclass(frozen=True)
class NumberKind(Kind):
    """Numbers.

    Parameters
    ----------
    low, high : float
        Limits that are included.
    whole : bool
        Whether they are positive integers.
    """

    low: float = -math.inf
    high: float = math.inf
    whole: bool = False
    widget = "number"

    def check(self, value: Any) -> Any:
        """The number as a float, or an int if it is whole."""
        if self.whole:
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ParameterError(f"must be a positive integer, got {show(value)} instead.")
            return value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ParameterError(f"must be a number, got {show(value)} instead.")
        try:
            number = float(value)
        except OverflowError:
            raise ParameterError("must be at most 1e60 in size; change the units.") from None
        if not self.low <= number <= self.high:
            raise ParameterError(f"must be from {self.low:g} to {self.high:g}, got {number:g} instead.")
        return number

    def to_texts(self, name: str, value: Any) -> dict[str, str]:
        """The number, exactly."""
        return {name: show_number(value)}

    def from_texts(self, name: str, texts: Mapping[str, str]) -> Any:
        """The number, or the text if it is none."""
        text = texts.get(name, "").strip()
        return read_number(text) if text else None


@dataclass(frozen=True)
class Choice(Kind):
    """One of a few texts; the first one is the default, which is not written. Whoever uses the value refuses others.

    Parameters
    ----------
    options : sequence of pairs of str
        Each value with what a form calls it.
    """

    options: Sequence[tuple[str, str]]
    widget = "choice"

    def from_texts(self, name: str, texts: Mapping[str, str]) -> Any:
        """The text, unless it is the default."""
        text = texts.get(name, "")
        return None if text in ("", self.options[0][0]) else text


class ColumnName(Kind):
    """The name of a column of the table."""

    widget = "column"

    def check(self, value: Any) -> Any:
        """The name, which a message can show."""
        if not isinstance(value, str) or not value.isprintable():
            raise ParameterError(f"must be the name of a column, got {show(value)} instead.")
        return value

    def to_texts(self, name: str, value: Any) -> dict[str, str]:
        """The name as a line."""
        return {name: quote_line(value)}

    def from_texts(self, name: str, texts: Mapping[str, str]) -> Any:
        """The name in a line."""
        return unquote_line(texts.get(name, "")) or None


class Flag(Kind):
    """True or false; a form sends only a box that is ticked."""

    widget = "flag"

    def check(self, value: Any) -> Any:
        """The flag."""
        if not isinstance(value, bool):
            raise ParameterError(f"must be true or false, got {show(value)} instead.")
        return value

    def to_texts(self, name: str, value: Any) -> dict[str, str]:
        """A ticked box, or none."""
        return {name: "on"} if value else {}

    def from_texts(self, name: str, texts: Mapping[str, str]) -> Any:
        """True if the box is ticked."""
        return True if texts.get(name) else None


class Words(Kind):
    """A list of texts, or none at all; in a form, ``NAME_rule`` is "listed" if there is one."""

    widget = "words"

    def check(self, value: Any) -> Any:
        """The texts as a tuple."""
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            raise ParameterError('must be a list of texts, as in ["NA", "."].')
        return tuple(value)

    def to_texts(self, name: str, value: Any) -> dict[str, str]:
        """The texts in lines."""
        return {name: join_lines(value), f"{name}_rule": "listed"}

    def from_texts(self, name: str, texts: Mapping[str, str]) -> Any:
        """The texts in the lines, if they are wanted."""
        return split_lines(texts.get(name, "")) if texts.get(f"{name}_rule") == "listed" else None


class Levels(Kind):
    """A list of texts or of integers; in a form, ``NAME_type`` says which."""

    widget = "levels"

    def check(self, value: Any) -> Any:
        """The levels as a tuple."""
        if not isinstance(value, list) or {type(level) for level in value} not in ({str}, {int}):
            raise ParameterError('must be a list of texts, as in ["yes", "no"], or a list of integers.')
        if "" in value:
            raise ParameterError("must not have an empty text. For empty values, write missing = true.")
        return tuple(value)

    def to_texts(self, name: str, value: Any) -> dict[str, str]:
        """The levels in lines."""
        return {name: join_lines(map(str, value)), f"{name}_type": "integer" if isinstance(value[0], int) else ""}

    def from_texts(self, name: str, texts: Mapping[str, str]) -> Any:
        """The levels in the lines."""
        lines = split_lines(texts.get(name, ""))
        return (list(map(read_number, lines)) if texts.get(f"{name}_type") == "integer" else lines) or None


class Shares(Kind):
    """Levels and their shares; in a form, each line has a share and its level."""

    widget = "lines"

    def check(self, value: Any) -> Any:
        """A dict of floats by level."""
        if not isinstance(value, dict):
            example = "{north = 0.6, south = 0.3}"
            raise ParameterError(f"must be levels and shares, as in {example}, got {show(value)} instead.")
        for level, share in value.items():
            if isinstance(share, bool) or not isinstance(share, int | float):
                raise ParameterError(f"must be a number for {level!r}, got {show(share)} instead.")
        return {level: float(share) for level, share in value.items()}

    def to_texts(self, name: str, value: Any) -> dict[str, str]:
        """A line for each level."""
        return {name: "\n".join(f"{show_number(share)} {quote_line(level)}" for level, share in value.items())}

    def from_texts(self, name: str, texts: Mapping[str, str]) -> Any:
        """The shares in the lines."""
        found: dict[str, Any] = {}
        for line in filter(str.strip, _break_lines(texts.get(name, ""))):
            share, *rest = line.split(maxsplit=1)
            level = unquote_line("".join(rest))
            if not level or level in found:
                raise ParameterError(
                    f"must be a share and a level in each line, as in 0.6 north, and each level once, got {show(line)} "
                    "instead."
                )
            found[level] = read_number(share)
        return found or None


@dataclass(frozen=True)
class When(Kind):
    """Dates, or times of day.

    Parameters
    ----------
    what : 'date' or 'time'
    example : str
    """

    what: str
    example: str

    def check(self, value: Any) -> Any:
        """The date or time, without a zone."""
        if not isinstance(value, dt.date if self.what == "date" else dt.time):
            quoted = isinstance(value, str) and not isinstance(self._parse(value), str)
            rule = f"a {self.what}{' without quotes' * quoted}, as in {self.example}"
            raise ParameterError(f"must be {rule}, got {show(value)} instead.")
        if getattr(value, "tzinfo", None) is not None:
            raise ParameterError("must have no zone; dates and times are in UTC.")
        return value

    def to_texts(self, name: str, value: Any) -> dict[str, str]:
        """The date or time as in ISO 8601, with a space between them."""
        return {name: value.isoformat(" ") if isinstance(value, dt.datetime) else value.isoformat()}

    def from_texts(self, name: str, texts: Mapping[str, str]) -> Any:
        """The date or time, or the text if it is none."""
        text = texts.get(name, "").strip()
        return self._parse(text) if text else None

    def _parse(self, text: str) -> dt.date | dt.time | str:
        parsers: tuple[Any, ...] = (dt.date.fromisoformat, dt.datetime.fromisoformat)
        for parse in parsers if self.what == "date" else (dt.time.fromisoformat,):
            try:
                return parse(text)  # type: ignore[no-any-return]
            except ValueError:
                continue
        return text


@dataclass(frozen=True)
class Field:
    """One field of a schema.

    Parameters
    ----------
    name : str
        Of the entry in a file.
    kind : Kind, or mapping of types of columns to Kind
        A mapping if it depends on the type of a column; columns of other types do not have the field.
    label, hint : str
        What a form calls it, and what it says besides.
    required : str
        What is missing where there is no entry; empty for a field that may be left out.
    group : str
        The heading under which a form folds it away with others; empty for those that are always shown.
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
        """The kind of its values, in a column of this type."""
        return self.kind[column_type] if isinstance(self.kind, Mapping) else self.kind

    @property
    def widget(self) -> str:
        """The element of a form that shows it."""
        return (next(iter(self.kind.values())) if isinstance(self.kind, Mapping) else self.kind).widget

    @property
    def options(self) -> Sequence[tuple[str, str]]:
        """The texts that may be chosen, and what a form calls them."""
        kind = next(iter(self.kind.values())) if isinstance(self.kind, Mapping) else self.kind
        return kind.options if isinstance(kind, Choice) else ()


def read_number(text: str) -> int | float | str:
    """The number in a text, or the text if there is none that TOML can hold.

    Examples
    --------
    >>> read_number(" 120 "), read_number("0.5"), read_number("1,5"), read_number("")
    (120, 0.5, '1,5', '')
    """
    text = text.strip()
    for parse in (int, float):
        try:
            value = parse(text)
        except ValueError:
            continue
        if math.isfinite(value) if isinstance(value, float) else abs(value) < 1 << 63:
            return value
    return text


def show_number(value: float | str | None) -> str:
    """A number as a text, exactly.

    Examples
    --------
    >>> show_number(120.0), show_number(0.1), show_number(None)
    ('120', '0.1', '')
    """
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return repr(value)


def join_lines(values: Iterable[str]) -> str:
    r"""Texts as the lines of a text area.

    A text that a line cannot show as it is (empty, with spaces at its ends, beginning with a quotation mark, or with
    characters that are not printable) is written in quotation marks, as in JSON.

    Examples
    --------
    >>> print(join_lines(["north", " south", "a\nb"]))
    north
    " south"
    "a\nb"
    """
    return "\n".join(map(quote_line, values))


def split_lines(text: str) -> list[str]:
    r"""The texts in the lines of a text area; empty lines are left out.

    Examples
    --------
    >>> split_lines('north\r\n\r\n" south"')
    ['north', ' south']
    """
    return [unquote_line(line) for line in _break_lines(text) if line.strip()]


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
    if not isinstance(value, str):
        raise ParameterError(
            f'must have a quotation mark at both ends of a line or at none, as in "north", got {show(line)} instead.'
        )
    return value


def _break_lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
