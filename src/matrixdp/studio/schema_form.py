"""The schema of a table as a form, and as the TOML that every command reads.

Types are proposed from the Arrow type of a column alone, never from its values. `schema_checks.find_mistakes` says what
is wrong with a form, field by field.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from matrixdp.cli.actions.schema_file import parse_schema, quote_key, quote_text
from matrixdp.cli.actions.schema_guesses import NUMBER_GUESSES
from matrixdp.cli.actions.schema_rules import DATE_TYPES
from matrixdp.cli.actions.schema_template import describe_type, propose_type
from matrixdp.errors import ParameterError, show
from matrixdp.studio.field_text import (
    join_lines,
    quote_line,
    read_date,
    read_number,
    show_date,
    show_number,
    split_lines,
    unquote_line,
)

SCHEMA = Path("schema")  # how messages name the schema; `schema_checks` removes it
_COLUMN_FIELD = re.compile(r"column\.(\d{1,6})\.([a-z_]+)")
_WIDTH = 100  # characters of a list that is written on one line


@dataclass(frozen=True)
class ColumnForm:
    """The fields of one column, as texts.

    Attributes
    ----------
    name : str
    type : str
        One of those of the schema; empty as long as it is not chosen.
    lower, upper, expected_mean, expected_std, expected_missing : str
    expected_shares : str
        Shares of levels, each in a line with its level after it.
    levels : str
        One to a line.
    level_type : 'text' or 'integer'
    unit, origin, format : str
        Of dates and times.
    other, missing : bool
    """

    name: str
    type: str = ""
    lower: str = ""
    upper: str = ""
    expected_mean: str = ""
    expected_std: str = ""
    expected_missing: str = ""
    expected_shares: str = ""
    levels: str = ""
    level_type: str = "text"
    unit: str = ""
    origin: str = ""
    format: str = ""
    other: bool = False
    missing: bool = False


@dataclass(frozen=True)
class SchemaForm:
    """The fields of a schema, as texts.

    Attributes
    ----------
    columns : tuple of ColumnForm
    records, radius, expected_correlation : str
    person, person_rows : str
        The column that says whose each row is, and how many rows of a person count.
    decimal, thousands, sheet : str
    missing_rule : 'default' or 'listed'
        Whether `missing_words` are the words for missing values.
    missing_words : str
        One to a line.
    """

    columns: tuple[ColumnForm, ...] = ()
    records: str = ""
    radius: str = ""
    expected_correlation: str = ""
    person: str = ""
    person_rows: str = ""
    decimal: str = "."
    thousands: str = ""
    sheet: str = ""
    missing_rule: str = "default"
    missing_words: str = ""

    def without_column(self, number: int) -> SchemaForm:
        """The form without the column at this place."""
        return replace(self, columns=self.columns[:number] + self.columns[number + 1 :])

    def with_column(self, column: ColumnForm) -> SchemaForm:
        """The form with one more column, unless there is one of its name."""
        known = {one.name for one in self.columns}
        return self if column.name in known else replace(self, columns=(*self.columns, column))


def propose_form(table: Mapping[str, Any]) -> SchemaForm:
    """A form with the columns of a table; bounds and levels are empty.

    Parameters
    ----------
    table : mapping of str to Arrow field or None
        The columns; None where the type is unknown, as in CSV.

    Privacy
    -------
    Only names and types are used.
    """
    return SchemaForm(tuple(propose_column(name, field) for name, field in table.items() if name and _usable(field)))


def propose_column(name: str, field: Any) -> ColumnForm:
    """The form of a column of this Arrow field; without a type if that is unknown."""
    if field is None:
        return ColumnForm(name)
    import pyarrow as pa

    coded = pa.types.is_dictionary(field.type) and pa.types.is_integer(field.type.value_type)
    return ColumnForm(name, propose_type(field.type) or "", level_type="integer" if coded else "text")


def list_unusable(table: Mapping[str, Any]) -> dict[str, str]:
    """The columns of a table that a schema cannot describe, and what they hold."""
    return {name: describe_type(field.type) for name, field in table.items() if not _usable(field)}


def _usable(field: Any) -> bool:
    return field is None or propose_type(field.type) is not None


def read_form(sent: Mapping[str, str]) -> SchemaForm:
    """The form that a browser sent; unknown fields are ignored, and a box that is not ticked is not sent.

    Examples
    --------
    >>> read_form({"column.0.name": "age", "column.0.type": "number", "column.0.missing": "on"}).columns[0].missing
    True
    """
    columns: dict[int, dict[str, Any]] = {}
    for key, value in sent.items():
        found = _COLUMN_FIELD.fullmatch(key)
        if found:
            columns.setdefault(int(found[1]), {})[found[2]] = value
    return SchemaForm(
        tuple(_read_column(columns[number]) for number in sorted(columns)),
        **{field.name: sent[field.name] for field in fields(SchemaForm)[1:] if field.name in sent},
    )


def fold_column(column: ColumnForm) -> str:
    """All fields of a column as the text of one, ``folded``, for columns that a page does not show in full."""
    found = {field.name: getattr(column, field.name) for field in fields(ColumnForm)}
    found |= {"name": quote_line(column.name)}
    return json.dumps({name: value if isinstance(value, str) else "on" for name, value in found.items() if value})


def _unfold(text: str) -> dict[str, str]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return {name: value for name, value in found.items() if isinstance(value, str)} if isinstance(found, dict) else {}


def _read_column(sent: dict[str, str]) -> ColumnForm:
    sent = {**_unfold(sent.get("folded", "")), **sent}
    found: dict[str, Any] = {field.name: sent[field.name] for field in fields(ColumnForm) if field.name in sent}
    found |= {flag: flag in sent for flag in ("other", "missing")}
    try:
        name = unquote_line(sent.get("name", ""))
    except ParameterError:
        name = ""
    return ColumnForm(**{**found, "name": name})


def form_from_toml(text: str) -> SchemaForm:
    """The form of a schema that `matrixdp schema check` accepts."""
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ParameterError(f"the schema is not a TOML file: {error}") from None
    schema = parse_schema(SCHEMA, content)
    if schema.graph is not None:
        raise ParameterError("the schema has a [graph], which this form does not show. Edit its file.")
    files, person = content.get("files", {}), content.get("person", {})
    words = files.get("missing_words")
    return SchemaForm(
        tuple(_column_from_entry(name, entry) for name, entry in content.get("columns", {}).items()),
        **{name: show_number(content.get(name)) for name in ("records", "radius", "expected_correlation")},
        person=quote_line(person["column"]) if person else "",
        person_rows=show_number(person.get("rows")),
        decimal=files.get("decimal", "."),
        thousands=files.get("thousands", ""),
        sheet=files.get("sheet", ""),
        missing_rule="default" if words is None else "listed",
        missing_words=join_lines(words or ()),
    )


def _column_from_entry(name: str, entry: Mapping[str, Any]) -> ColumnForm:
    levels = entry.get("levels", entry.get("categories"))
    kind = entry.get("type", "number" if levels is None else "category")
    show_end = show_date if kind in DATE_TYPES else show_number
    return ColumnForm(
        name,
        kind,
        **{end: show_end(entry.get(end)) for end in ("lower", "upper")},
        **{guess: show_number(entry.get(guess)) for guess in NUMBER_GUESSES},
        expected_shares=_join_shares(entry.get("expected_shares", {})),
        levels=join_lines(map(str, levels or ())),
        level_type="integer" if levels and isinstance(levels[0], int) else "text",
        unit=entry.get("unit", ""),
        origin=show_date(entry.get("origin")),
        format=entry.get("format", ""),
        other=entry.get("other", False),
        missing=entry.get("missing", False),
    )


def column_entry(column: ColumnForm) -> dict[str, Any]:
    """The entries of a column in the schema; a field that cannot be read is there as text."""
    bounds: dict[str, Any]
    flags = {"other": True} if column.other and column.type == "category" else {}
    flags |= {"missing": True} if column.missing else {}
    if column.type in ("category", "yes/no"):
        levels = {"levels": read_levels(column)} if column.type == "category" else {}
        shares = {"expected_shares": _read_shares(column)} if column.expected_shares.strip() else {}
        return {"type": column.type, **levels, **shares, **flags}
    if column.type == "number":
        guesses = {name: read_number(getattr(column, name)) for name in NUMBER_GUESSES}
        bounds = {end: read_number(getattr(column, end)) for end in ("lower", "upper")}
        return {"type": column.type, **bounds, **_drop_empty(guesses), **flags}
    if column.type in DATE_TYPES:
        bounds = {end: read_date(getattr(column, end), column.type) for end in ("lower", "upper")}
        origin = read_date(column.origin, column.type) if column.type == "date" else ""
        rules = {"unit": column.unit, "origin": origin, "format": column.format}
        return {"type": column.type, **bounds, **_drop_empty(rules), **flags}
    return {"type": column.type, **flags} if column.type else {}


def read_levels(column: ColumnForm) -> list[str] | list[int]:
    """The levels of a column; raises a `ParameterError` for a line that is none."""
    lines = split_lines(column.levels)
    if column.level_type != "integer":
        return lines
    found = [read_number(line) for line in lines]
    for value in found:
        if not isinstance(value, int):
            raise ParameterError(f"levels must be integers, one to a line, got {show(value)} instead. Or choose texts.")
    return found  # type: ignore[return-value]


def _join_shares(shares: Mapping[str, Any]) -> str:
    return "\n".join(f"{show_number(share)} {quote_line(level)}" for level, share in shares.items())


def _read_shares(column: ColumnForm) -> dict[str, Any]:
    """The guessed shares of levels; raises a `ParameterError` for a line that is none."""
    found: dict[str, Any] = {}
    for line in column.expected_shares.splitlines():
        if not line.strip():
            continue
        share, *rest = line.split(maxsplit=1)
        level = unquote_line("".join(rest))
        if not level or level in found:
            raise ParameterError(
                f"expected_shares must be a share and a level in each line, as in 0.6 north, and each level once, got "
                f"{show(line)} instead."
            )
        found[level] = read_number(share)
    return found


def form_content(form: SchemaForm, columns: Iterable[ColumnForm] | None = None) -> dict[str, Any]:
    """The schema as the content of a TOML file, with some of the columns or with all."""
    content: dict[str, Any] = _drop_empty(
        {name: read_number(getattr(form, name)) for name in ("records", "radius", "expected_correlation")}
    )
    if form.person.strip() or form.person_rows.strip():
        rows = _drop_empty({"rows": read_number(form.person_rows)})
        content["person"] = {"column": unquote_line(form.person), **rows}
    files = _drop_empty({"thousands": form.thousands, "sheet": form.sheet})
    if form.decimal != ".":
        files["decimal"] = form.decimal
    if form.missing_rule == "listed":
        files["missing_words"] = split_lines(form.missing_words)
    if files:
        content["files"] = files
    chosen = form.columns if columns is None else columns
    return {**content, "columns": {column.name: column_entry(column) for column in chosen}}


def _drop_empty(entries: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entries.items() if value != ""}


def form_to_toml(form: SchemaForm) -> str:
    """The schema as TOML; `find_mistakes` of the form is empty, or the text says what is not filled in yet."""
    content = form_content(form)
    columns = content.pop("columns")
    sections: dict[tuple[str, ...], dict[str, Any]] = {
        (): {name: value for name, value in content.items() if not isinstance(value, dict)}
    }
    sections |= {(name,): value for name, value in content.items() if isinstance(value, dict)}
    sections |= {("columns", name): entry for name, entry in columns.items()}
    return "\n".join(_write_section(path, entries) for path, entries in sections.items() if path or entries)


def _write_section(path: tuple[str, ...], entries: Mapping[str, Any]) -> str:
    heading = [f"[{'.'.join(map(quote_key, path))}]"] if path else []
    return "".join(f"{line}\n" for line in (*heading, *(f"{name} = {_write(v)}" for name, v in entries.items())))


def _write(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        parts = [_write(one) for one in value]
        line = f"[{', '.join(parts)}]"
        return line if len(line) <= _WIDTH else "[\n" + "".join(f"  {part},\n" for part in parts) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{quote_key(name)} = {_write(one)}" for name, one in value.items()) + " }"
    if isinstance(value, dt.date | dt.time):
        return show_date(value)
    return repr(value) if isinstance(value, int | float) else quote_text(value)
