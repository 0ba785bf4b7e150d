"""Values of a schema as the text of form fields, and back."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Iterable
from typing import Any

from matrixdp.errors import ParameterError, show


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
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return [unquote_line(line) for line in lines if line.strip()]


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
            f'a line that begins with a quotation mark must end with one, as in "north", got {show(line)} instead.'
        )
    return value


def read_number(text: str) -> int | float | str:
    """The number in a field, or its text if there is none: the checks of the schema say so.

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
    """A number as the text of a field, exactly.

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


def read_date(text: str, kind: str) -> dt.date | dt.time | str:
    """The date, or time of day, in a field, or its text if there is none.

    Examples
    --------
    >>> read_date("1900-01-01", "date"), read_date("07:30", "time"), read_date("1.1.1900", "date")
    (datetime.date(1900, 1, 1), datetime.time(7, 30), '1.1.1900')
    """
    text = text.strip()
    parsers: tuple[Any, ...] = (dt.date.fromisoformat, dt.datetime.fromisoformat)
    for parse in parsers if kind == "date" else (dt.time.fromisoformat,):
        try:
            return parse(text)  # type: ignore[no-any-return]
        except ValueError:
            continue
    return text


def show_date(value: dt.date | dt.time | str | None) -> str:
    """A date or time as the text of a field."""
    if value is None or isinstance(value, str):
        return value or ""
    return value.isoformat(" ") if isinstance(value, dt.datetime) else value.isoformat()
