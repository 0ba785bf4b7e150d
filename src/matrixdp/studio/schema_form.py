"""The schema of a table as a form: the texts of all fields, as `domain.schema_file` lists them.

Fields of the table are named as in the file (``records``, ``person.column``, ``files.decimal``), those of columns
``column.NUMBER.FIELD``, by the place of the column in the form. Types are proposed from the Arrow type of a column
alone, never from its values.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from matrixdp.domain.fields import Field, quote_line, unquote_line
from matrixdp.domain.schema_file import COLUMN_FIELDS, SECTIONS, parse_schema, parse_toml, read_content, write_toml
from matrixdp.domain.schema_template import describe_type, propose_type
from matrixdp.errors import ParameterError

_COLUMN_FIELD = re.compile(r"column\.(\d{1,6})\.([a-z_]+)")
Texts: TypeAlias = dict[str, str]


@dataclass(frozen=True)
class SchemaForm:
    """The texts of a schema.

    Parameters
    ----------
    columns : tuple of dicts of str to str
        The fields of each column that are not empty, with its ``name`` and ``type``.
    texts : dict of str to str
        The other fields that are not empty.
    """

    columns: tuple[Texts, ...] = ()
    texts: Texts = field(default_factory=dict)

    def without_column(self, number: int) -> SchemaForm:
        """The form without the column at this place."""
        return replace(self, columns=self.columns[:number] + self.columns[number + 1 :])

    def with_column(self, column: Texts) -> SchemaForm:
        """The form with one more column, unless there is one of its name."""
        known = {one["name"] for one in self.columns}
        return self if column["name"] in known else replace(self, columns=(*self.columns, column))


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


def propose_column(name: str, field: Any) -> Texts:
    """The texts of a column of this Arrow field; without a type if that is unknown."""
    kind = None if field is None else propose_type(field.type)
    return {"name": name} if kind is None else {"name": name, "type": kind}


def list_unusable(table: Mapping[str, Any]) -> Texts:
    """The columns of a table that a schema cannot describe, and what they hold."""
    return {name: describe_type(field.type) for name, field in table.items() if not _usable(field)}


def _usable(field: Any) -> bool:
    return field is None or propose_type(field.type) is not None


def read_form(sent: Mapping[str, str]) -> SchemaForm:
    """The form that a browser sent; a column may come as one field, ``folded``.

    Examples
    --------
    >>> read_form({"column.0.name": "age", "column.0.type": "number", "column.0.missing": "on"}).columns
    ({'name': 'age', 'type': 'number', 'missing': 'on'},)
    """
    columns: dict[int, Texts] = {}
    texts: Texts = {}
    for key, text in sent.items():
        found = _COLUMN_FIELD.fullmatch(key)
        if found:
            columns.setdefault(int(found[1]), {})[found[2]] = text
        elif text:
            texts[key] = text
    return SchemaForm(tuple(_read_column(columns[number]) for number in sorted(columns)), texts)


def fold_column(column: Texts) -> str:
    """All fields of a column as the text of one, ``folded``, for columns that a page does not show in full."""
    return json.dumps({**column, "name": quote_line(column["name"])})


def _read_column(sent: Texts) -> Texts:
    folded = sent.pop("folded", "")
    try:
        found = json.loads(folded) if folded else {}
    except (ValueError, RecursionError):
        found = {}
    found = {**(found if isinstance(found, dict) else {}), **sent}
    found = {name: text for name, text in found.items() if isinstance(text, str) and text}
    try:
        name = unquote_line(found.get("name", ""))
    except ParameterError:
        name = ""
    return {**found, "name": name}


def form_from_toml(text: str) -> SchemaForm:
    """The form of a schema that `matrixdp schema check` accepts."""
    if parse_schema(text).graph is not None:
        raise ParameterError("the schema has a [graph], which this form does not show. Edit its file.")
    content = parse_toml(text)
    texts = {
        f"{section}.{one.name}".strip("."): one.show(content.get(section, {}) if section else content)
        for section, fields in SECTIONS.items()
        for one in fields
    }
    columns = tuple(_show_column(name, entry) for name, entry in content.get("columns", {}).items())
    return SchemaForm(columns, {name: text for name, text in texts.items() if text})


def _show_column(name: str, entry: Mapping[str, Any]) -> Texts:
    entry = {"levels" if key == "categories" else key: value for key, value in entry.items()}
    kind = entry.get("type", "category" if "levels" in entry else "number")
    texts = {one.name: one.show(entry, kind) for one in COLUMN_FIELDS if kind in one.types}
    return {"name": name, "type": kind, **{name: text for name, text in texts.items() if text}}


class FormContent:
    """A form as the content of a TOML file.

    Attributes
    ----------
    content : dict
        A field that cannot be read is there as text.
    mistakes : dict of str to str
        By the names of fields: texts that are not as the form wants them, and columns that are described twice.
    """

    def __init__(self, form: SchemaForm) -> None:
        self.content: dict[str, Any] = {}
        self.mistakes: Texts = {}
        for section, fields in SECTIONS.items():
            entry = self._read(form.texts, fields, f"{section}." if section else "")
            self.content |= {section: entry} if section and entry else entry
        columns: dict[str, Any] = {}
        for number, column in enumerate(form.columns):
            name, kind, place = column["name"], column.get("type", ""), f"column.{number}."
            if name in columns:
                self.mistakes[f"{place}name"] = f"column {name!r} is described twice. Remove one of them."
            sent = {f"{place}{key}": text for key, text in column.items()}
            entry = self._read(sent, [one for one in COLUMN_FIELDS if kind in one.types], place, kind)
            columns.setdefault(name, {"type": kind, **entry})
        self.content["columns"] = columns

    def _read(self, texts: Texts, fields: Iterable[Field], prefix: str, kind: str = "") -> dict[str, Any]:
        found = {}
        for one in fields:
            try:
                found[one.name] = one.parse(texts.get(f"{prefix}{one.name}", ""), kind)
            except ParameterError as error:
                self.mistakes[f"{prefix}{one.name}"] = str(error)
        return {name: value for name, value in found.items() if value is not None}


def find_mistakes(form: SchemaForm) -> Texts:
    """Messages by the name of the field that they are about; those about the whole form have an empty name.

    Examples
    --------
    >>> form = SchemaForm(({"name": "age", "type": "number", "lower": "0"},), {"records": "many"})
    >>> for field, message in find_mistakes(form).items():
    ...     print(f"{field}: {message}")
    column.0.upper: Column 'age' has no upper bound yet. Fill it in from public knowledge, not from the data.
    records: Records must be a positive integer, got 'many' instead.
    """
    read = FormContent(form)
    places = {column["name"]: number for number, column in reversed(list(enumerate(form.columns)))}
    found: Texts = {}
    for place, message in read_content(read.content)[1].items():
        name = f"column.{places[place[1]]}.{place[2]}" if place[0] == "columns" else ".".join(place)
        found[name] = message
    found |= read.mistakes
    if not form.columns:
        found[""] = "there are no columns. Add at least one."
    return {name: message[:1].upper() + message[1:] for name, message in sorted(found.items(), key=_find_place)}


def _find_place(mistake: tuple[str, str]) -> float:
    """Where the field of a mistake is in the form: columns come first."""
    found = _COLUMN_FIELD.fullmatch(mistake[0])
    return int(found[1]) if found else math.inf


def form_to_toml(form: SchemaForm) -> str:
    """The schema as TOML; texts that cannot be read are left out, and comments say so."""
    read = FormContent(form)
    return "".join(f"# {message}\n" for message in read.mistakes.values()) + write_toml(read.content)
