"""Fields of a schema, and the kinds of values that they hold.

A kind knows three forms of a value: the entry of a TOML file, the checked value, and the text of a form's field. Each
field is declared once, in `SECTIONS` or `COLUMN_FIELDS`. Files, the studio's editor and messages are made from these
lists, so that a new field is one entry there, and the code that uses its value.
"""

import contextlib
import datetime as dt
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from matrixdp.checks import LARGEST, check_integer, check_magnitude, check_number
from matrixdp.domain.columns import PAIRS
from matrixdp.domain.file_rules import THOUSANDS, UNITS
from matrixdp.errors import ParameterError, show

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")


def _require(met: bool, value: Any, name: str, rule: str) -> Any:
    if not met:
        raise ParameterError(f"{name} must be {rule}, got {show(value)} instead.", parameter=name)
    return value


@dataclass(frozen=True)
class Kind:
    """A kind of values, with the widget of a form that shows it.

    `check` gives the checked value of an entry and the name of its field, or raises a `ParameterError`; `show` gives
    the text of an entry; `parse` gives the entry in a text, which is the text itself where that cannot be read, or
    raises a `ParameterError` whose message continues the name of the field. Whoever uses a value refuses those that
    are not among the `options`, which are texts and what a form calls them; the first is the default, not written.
    """

    widget: str = "text"
    check: Callable[[Any, str], Any] = lambda value, name: _require(isinstance(value, str), value, name, "a text")
    show: Callable[[Any], str] = str
    parse: Callable[[str], Any] = str
    example: str = ""  # as a file has it, where that is not obvious
    options: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Field:
    """One field of a schema, with the name of its entry in a file."""

    name: str
    kind: Kind | Mapping[str, Kind]  # by the type of a column, where it depends on it; others do not have the field
    label: str = ""
    hint: str = ""
    required: str = ""  # what is missing where there is no entry; empty for a field that may be left out
    group: str = ""  # the heading under which a form folds it away with others

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


def _check_levels(value: Any, name: str) -> list[Any]:
    listed = isinstance(value, list) and {type(level) for level in value} in ({str}, {int})
    _require(listed, value, name, 'a list of texts, as in ["yes", "no"], or a list of integers')
    if "" in value:
        raise ParameterError(f"{name} must not have an empty text. For empty values, write missing = true.")
    return list(value)


def _must(holds: Callable[[Any], bool], rule: str) -> Callable[[Any, str], Any]:
    """The check of a kind whose entries are as they are, if they hold."""
    return lambda value, name: _require(holds(value), value, name, rule)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _check_number(value: Any, name: str) -> float:
    endless = isinstance(value, float) and not math.isfinite(value)
    long = isinstance(value, int) and abs(value) > LARGEST
    rule = "finite, and at most 1e60 in absolute value" if endless or long else "a number"
    return check_number(value, name, rule=rule)


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


def _read_when(what: str, text: str) -> dt.date | dt.time | str:
    parsers: tuple[Any, ...] = (dt.date.fromisoformat, dt.datetime.fromisoformat)
    for parse in parsers if what == "date" else (dt.time.fromisoformat,):
        with contextlib.suppress(ValueError):
            return parse(text.strip())  # type: ignore[no-any-return]
    return text


def read_number(text: str) -> int | float | str:
    """The number in a text, or the text if there is none that TOML can hold.

    A comma is a decimal one, as in ``0,5``, unless it could separate thousands, as in ``1,500``.
    """
    text = text.strip()
    if re.fullmatch(r"[-+]?(0,[0-9]+|[0-9]+,([0-9]{1,2}|[0-9]{4,}))", text):
        text = text.replace(",", ".")
    for parse in (int, float):
        with contextlib.suppress(ValueError):
            value = parse(text)
            if math.isfinite(value) if isinstance(value, float) else abs(value) < 1 << 63:
                return value
    return text


def show_number(value: float | str) -> str:
    """A number as a text, exactly; whole ones without a point."""
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 1e15
    return str(int(value)) if whole else str(value)


def join_lines(values: Iterable[str | int]) -> str:
    """Texts and integers as the lines of a text area.

    A text that a line cannot show as it is (empty, with spaces at its ends, beginning with a quotation mark, or with
    characters that are not printable) is written in quotation marks, as in TOML. So is one that looks like an integer.
    """
    lines = ((value, isinstance(value, str) and _INTEGER.fullmatch(value)) for value in values)
    return "\n".join(quote_text(str(value)) if digits else quote_line(str(value)) for value, digits in lines)


def split_lines(text: str) -> list[str]:
    """The texts in the lines of a text area; empty lines are left out."""
    return [unquote_line(line) for line in _lines(text)]


def _lines(text: str) -> list[str]:
    return [line for line in re.split(r"\r\n|\r|\n", text) if line.strip()]


def quote_line(value: str) -> str:
    """A text as one line; see `join_lines`."""
    if value and value == value.strip() and value.isprintable() and not value.startswith('"'):
        return value
    return quote_text(value)


def unquote_line(line: str) -> str:
    """The text in a line; raises a `ParameterError` for one that begins with a quotation mark and is not quoted."""
    line = line.strip()
    if not line.startswith('"'):
        return line
    if re.fullmatch(r'"(?:[^"\\]|\\.)*"', line):
        with contextlib.suppress(ValueError):
            return str(tomllib.loads(f"value = {line}")["value"])
    rule = 'must have a quotation mark at both ends of a line or at none, as in "north"'
    raise ParameterError(f"{rule}, got {show(line)} instead.")


def _read_levels(text: str) -> list[str] | list[int]:
    """Integers if all lines are, and otherwise texts."""
    lines = text.split()
    return [*map(int, lines)] if all(map(_INTEGER.fullmatch, lines)) else split_lines(text)


def quote_key(name: str) -> str:
    """A name, as of a column, as a TOML key."""
    plain = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if plain else quote_text(name)


def quote_text(text: str) -> str:
    """A text as a TOML string."""
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in quoted) + '"'


def write_value(value: Any) -> str:
    """A value in one line of TOML."""
    if isinstance(value, dict):
        return f"{{ {_write_entries(value)} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(write_value, value))}]"
    return quote_text(value) if isinstance(value, str) else str(value).lower()


def _write_entries(table: Mapping[str, Any], separator: str = ", ") -> str:
    return separator.join(f"{quote_key(key)} = {write_value(value)}" for key, value in table.items())


def _table_kind(check: Callable[[Any, str], Any], rule: str) -> Kind:
    """A kind of TOML tables, whose text has one entry to a line."""

    def parse(text: str) -> Any:
        try:
            return tomllib.loads(text.replace("\r", ""))
        except ValueError:
            raise ParameterError(f"{rule}, got {show(text)} instead.") from None

    return Kind("lines", check, partial(_write_entries, separator="\n"), parse)


def _read_pairs(text: str) -> list[Any]:
    try:
        return [tomllib.loads(f"pair = {{{line}}}")["pair"] for line in _lines(text)]
    except ValueError:
        rule = 'must be two columns with levels in each line, as in season = "winter", month = ["6", "7"]'
        raise ParameterError(f"{rule}, got {show(text)} instead.") from None


TEXT = Kind()
NUMBER = Kind("number", _check_number, show_number, read_number)
SIZE = Kind("number", check_magnitude, show_number, read_number)
COUNT = Kind("number", partial(check_integer, at_least=1), show_number, read_number)
FROM_ZERO = Kind("number", partial(check_integer, at_least=0), show_number, read_number)
FLAG = Kind(
    "flag", _must(lambda value: isinstance(value, bool), "true or false"), lambda value: "on" if value else "", bool
)
COLUMN = Kind(
    "column",
    _must(lambda value: isinstance(value, str) and value.isprintable(), "the name of a column"),
    quote_line,
    unquote_line,
)
WORDS = Kind(
    "lines",
    _must(_are_texts, 'a list of texts, as in ["NA", "."]'),
    lambda words: join_lines(words or [""]),
    split_lines,
)
FORMATS = Kind(
    "lines",
    _must(
        lambda value: isinstance(value, str) or (_are_texts(value) and value != [] and all(value)),
        'a format, as in "%d.%m.%Y", or a list of several',
    ),
    lambda value: join_lines([value] if isinstance(value, str) else value),
    lambda text: lines if len(lines := split_lines(text)) != 1 else lines[0],
)
ALIASES = _table_kind(
    _must(
        lambda value: isinstance(value, dict) and all(_are_texts(texts) and all(texts) for texts in value.values()),
        'levels and other texts for them, as in {north = ["North", "nrth"]}',
    ),
    'must be a level and a list of texts in each line, as in north = ["North", "nrth"]',
)
SHARES = _table_kind(
    _check_shares, "must be a level and its share in each line, as in north = 0.6, and each level once"
)
PAIRS_OF_LEVELS = Kind(
    "lines",
    _must(lambda value: isinstance(value, list) and all(isinstance(entry, dict) for entry in value), PAIRS),
    lambda pairs: "\n".join(map(_write_entries, pairs)),
    _read_pairs,
)
LEVELS = Kind("lines", _check_levels, join_lines, _read_levels)
DATE, TIME = (
    Kind("text", partial(_check_when, what, example), str, partial(_read_when, what), example)
    for what, example in (("date", "1900-01-01"), ("time", "07:30:00"))
)

# The types of columns, and what the editor says about each.
TYPES = {
    "number": "Values outside of the bounds are moved to them.",
    "category": "Every value must be among the levels, unless others are allowed.",
    "yes/no": "True, yes, 1 and false, no, 0.",
    "date": "As in 1900-01-01. Dates are read as numbers since the lower bound, or since the origin.",
    "time": "As in 07:30. Times of day are read as numbers since midnight.",
}
_MARKS = dict(zip(THOUSANDS, ("Nothing", "Point", "Comma", "Space", "Apostrophe", "Underscore"), strict=False))
_MARKS |= {"\u00a0": "No-break space", "\u202f": "Narrow no-break space"}
_UNIT = Kind("choice", options=(("", "As usual: days, and hours for times"), *((unit, unit) for unit in UNITS)))
_POINTS = ((".", "Point: 1.5"), (",", "Comma: 1,5"))
_GROUPS = tuple((mark, f"{word}: 1{mark}000") for mark, word in _MARKS.items())
_DECIMAL, _THOUSANDS = Kind("choice", options=_POINTS), Kind("choice", options=_GROUPS)
_AS_IN_FILES = ("", "As in all columns")
_OWN_DECIMAL, _OWN_THOUSANDS = (Kind("choice", options=(_AS_IN_FILES, *marks)) for marks in (_POINTS, _GROUPS[1:]))
_BOUND = {"number": NUMBER, "date": DATE, "time": TIME}
_LEVELS_HINT = "All integers, or all texts. Write a text of digits, or one with spaces at its ends, in quotation marks."
_SHARES_HINT = "One to a line, as in north = 0.6. Levels that are left out share the rest equally."
_WHEN = {"date": FORMATS, "time": FORMATS}
_FORMATS_HINT = "As in %d.%m.%Y; else ISO. The first that fits a text is used."
_EXPECTED_HINT = "A guess of their number, where it varies. Forecasts use it, and releases for which it is private."
_PERSON_HINT = "If people have several rows: each person is then protected with all of them."
_IDS = "column with the ids of people"
_WORDS = "Words for missing values, one to a line"
_WORDS_HINT = (
    "Empty: the usual ones, which are NA, NaN, null and their like in columns of numbers. Those listed here, as in NA, "
    'hold in all columns; "" alone for none. A value that is empty is always missing.'
)
_RADIUS_HINT = (
    "Optional, for numbers that are never missing: records are moved into a ball of this radius around the middle of "
    "their bounds."
)
_ALIASES_HINT = 'Other texts for a level, one level to a line, as in north = ["North", "nrth"].'
_OWN_WORDS_HINT = "Besides the usual ones; capital letters do not count."
_HEADER_HINT = "Counted from 1. Empty: the first."
_PAIRS_HINT = (
    'One pair of columns to a line, as in season = "winter", month = ["6", "7"], known without the data. Synthetic '
    "tables do not have them."
)
_GUESSES, _WRITING = "Guesses for the forecast", "How values are written"

COLUMN_FIELDS = (
    Field("missing", dict.fromkeys(TYPES, FLAG), "Values may be missing"),
    Field("lower", _BOUND, "Lower bound", required="lower bound"),
    Field("upper", _BOUND, "Upper bound", required="upper bound"),
    Field("step", dict.fromkeys(_BOUND, SIZE), "Step", "Of values, as 1 for whole numbers. Empty: any."),
    Field("levels", {"category": LEVELS}, "Levels, one to a line", _LEVELS_HINT, required="levels"),
    Field("other", {"category": FLAG}, "Other values count as one more level"),
    Field("expected_mean", {"number": NUMBER}, "Mean", "From public knowledge.", group=_GUESSES),
    Field("expected_std", {"number": NUMBER}, "Standard deviation", "No release depends on it.", group=_GUESSES),
    Field("expected_missing", dict.fromkeys(TYPES, NUMBER), "Share of missing values", "From 0 to 1.", group=_GUESSES),
    Field("expected_shares", {"category": SHARES, "yes/no": SHARES}, "Shares of levels", _SHARES_HINT, group=_GUESSES),
    Field("unit", {"date": _UNIT, "time": _UNIT}, "Unit", group=_WRITING),
    Field("format", _WHEN, "Formats of texts, one to a line", _FORMATS_HINT, group=_WRITING),
    Field("origin", {"date": DATE}, "Origin", "Empty: the lower bound.", group=_WRITING),
    Field("aliases", {"category": ALIASES}, "Aliases", _ALIASES_HINT, group=_WRITING),
    Field("yes", {"yes/no": WORDS}, "Words for yes, one to a line", _OWN_WORDS_HINT, group=_WRITING),
    Field("no", {"yes/no": WORDS}, "Words for no, one to a line", _OWN_WORDS_HINT, group=_WRITING),
    Field("decimal", {"number": _OWN_DECIMAL}, "Decimal mark", group=_WRITING),
    Field("thousands", {"number": _OWN_THOUSANDS}, "Between groups of three digits", group=_WRITING),
    Field("missing_words", dict.fromkeys(TYPES, WORDS), _WORDS, "In place of those for all columns.", group=_WRITING),
    Field("strip", dict.fromkeys(TYPES, FLAG), "Spaces at the ends of texts do not count", group=_WRITING),
)
SECTIONS = {
    "": (
        Field("records", COUNT, "Number of records", "If it is public. Forecasts need it."),
        Field("expected_records", COUNT, "Expected records", _EXPECTED_HINT),
        Field("contact", TEXT, "Contact", "Who answers questions about releases; every report names them."),
        Field("expected_correlation", NUMBER, "Guess of a typical correlation", "From 0 to 1, for forecasts alone."),
        Field("radius", SIZE, "Radius", _RADIUS_HINT, group="Limit on the length of a record"),
        Field("impossible", PAIRS_OF_LEVELS, "Levels of two columns", _PAIRS_HINT, group="Pairs that cannot occur"),
    ),
    "person": (
        Field("column", COLUMN, _IDS.capitalize(), _PERSON_HINT, required=_IDS),
        Field("rows", COUNT, "Rows of a person that count", "Empty: each person counts once."),
    ),
    "files": (
        Field("encoding", TEXT, "Encoding", "Of text files, as in cp1252 or latin-1. Empty: UTF-8."),
        Field("delimiter", TEXT, "Separator of columns", "Of text files. Empty: the one in the line of names."),
        Field("header_row", COUNT, "Row with the names of the columns", _HEADER_HINT),
        Field("skip_rows", FROM_ZERO, "Rows between the names and the first record", "As for units. Empty: none."),
        Field("skip_lines", WORDS, "Beginnings of lines that are no records", "As in Total: for a line at the end."),
        Field("decimal", _DECIMAL, "Decimal mark", "In texts."),
        Field("thousands", _THOUSANDS, "Between groups of three digits", "In texts."),
        Field("missing_words", WORDS, _WORDS, _WORDS_HINT),
        Field("strip", FLAG, "Spaces at the ends of texts do not count"),
        Field("sheet", TEXT, "Sheet of the workbook", "Empty: the first."),
    ),
}
_ANYTHING = Kind(check=lambda value, _: value)
_KINDS = {"nodes": _ANYTHING, "weight": NUMBER, "unit": TEXT, "max_degree": NUMBER}
GRAPH = tuple(Field(name, kind) for name, kind in _KINDS.items())
