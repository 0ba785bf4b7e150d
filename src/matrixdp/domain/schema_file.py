"""The file of a schema: how the fields that `fields` lists are read from TOML, and the text of a new one.

A new schema has a type for each column from its Arrow type alone, never from its values.
"""

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from string import Template
from typing import Any

from matrixdp.display import make_visible
from matrixdp.domain.bounds import Bounds
from matrixdp.domain.columns import NO, YES, Category, Column, Columns, Number, YesNo
from matrixdp.domain.fields import COLUMN_FIELDS, GRAPH, SECTIONS, TYPES, Field, quote_key, quote_text
from matrixdp.domain.file_rules import DEFAULT_RULES, ColumnRule, DateRule, FileRules
from matrixdp.domain.person import Person
from matrixdp.domain.schema import GUESSES, Graph, Place, Schema, TableDescription, list_conflicts, name_place
from matrixdp.errors import ParameterError, import_extra, show

_UNITS = {"date": "days", "time": "hours"}


def as_schema(table: Any) -> Schema:
    """The schema that a `Schema`, `Columns`, `Bounds` with names, a mapping for `from_dict` or a path describes."""
    if isinstance(table, Schema):
        return table
    if isinstance(table, str | os.PathLike):
        return read_schema(Path(table))
    if isinstance(table, Columns):
        return Schema(table)
    if isinstance(table, Mapping):
        return Schema(Columns.from_dict(table))
    if isinstance(table, Bounds) and table.names is not None:
        ends = zip(table.names, table.lower.tolist(), table.upper.tolist(), strict=True)
        return Schema(Columns([Number(*end) for end in ends]), radius=table.radius)
    rule = "must be a Schema, Columns, Bounds with names, a dict of columns or the path of a schema"
    raise ParameterError(f"schema {rule}, got {type(table).__name__} instead.", parameter="schema")


def read_schema(path: str | Path) -> Schema:
    """The schema in a file; a `ParameterError` names the file, the entry and the remedy."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ParameterError(f"there is no schema at {path}. Create one: matrixdp schema new DATA -o {path}") from None
    except OSError as error:
        raise ParameterError(f"{path} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise ParameterError(f"{path} is not a TOML file: {error}.") from None
    return parse_schema(text, path)


def parse_schema(text: str, path: str | Path = "schema") -> Schema:
    """The schema in the text of a TOML file; messages name it as `path`."""
    schema, mistakes = read_content(parse_toml(text, path))
    for place, message in mistakes.items():
        section = f"[{place[0]}] " if len(place) > 1 and place[0] != "columns" else ""
        raise ParameterError(f"{path}: {section}{message}", parameter=name_place(place))
    return replace(schema, path=Path(path))


def parse_toml(text: str, path: str | Path = "schema") -> dict[str, Any]:
    """The content of a TOML file, or a `ParameterError` that says where it is none."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ParameterError(f"{path} is nested too deeply. Write [columns.NAME] with lower and upper.") from None
    except ValueError as error:
        remedy = (
            "Write texts, and names of columns and levels that have more than the letters a to z, in quotation marks, "
            "a comma between entries, numbers with a decimal point, and each column once."
        )
        raise ParameterError(f"{path} is not a TOML file: {error}. {remedy}") from None


def read_content(content: Mapping[str, Any]) -> tuple[Schema, dict[Place, str]]:
    """The schema that the content of a TOML file describes, and all mistakes by the place of their entry.

    Where there are mistakes, the schema is empty.
    """
    reader = _Reader({})
    return reader.read(content), reader.mistakes


@dataclass(frozen=True)
class _Reader:
    """Reads the content of a schema, and keeps the first mistake at each place."""

    mistakes: dict[Place, str]

    def note(self, place: Place, message: str) -> None:
        self.mistakes.setdefault(place, message)

    def read(self, content: Mapping[str, Any]) -> Schema:
        """The schema; an empty one if there are mistakes."""
        self._require_known(content, {"columns", "graph", *SECTIONS, *_names(SECTIONS[""])} - {""}, ())
        entries = self._table(content.get("columns", {}), "columns")
        columns = [one for name, entry in entries.items() for one in self._column(name, entry)]
        top = self._values(content, SECTIONS[""], ())
        complete = len(columns) == len(entries)  # otherwise one that the radius or a pair needs may be left out
        dates = [date for _, _, date, _ in columns if date is not None]
        rules = partial(FileRules, dates=dates, columns=[rule for _, rule, _, _ in columns if rule.to_options()])
        guesses: dict[str, Any] = {
            name: {one.name: found[f"expected_{key}"] for one, *_, found in columns if f"expected_{key}" in found}
            for name, key in GUESSES.items()
        }
        guesses |= {key: top.get(f"expected_{key}") for key in ("correlation", "records")}
        found: dict[str, Any] = {
            "columns": self._columns([one for one, *_ in columns], top if complete else {}),
            "radius": top.get("radius"),
            "person": self._section("person", content.get("person"), SECTIONS["person"], Person),
            "guesses": TableDescription(**guesses),
            "rules": self._section("files", content.get("files", {}), SECTIONS["files"], rules) or DEFAULT_RULES,
        }
        graph = self._section("graph", content.get("graph"), GRAPH, Graph)
        for place, message in list_conflicts(**found):
            if complete or place != ("radius",):
                self.note(place, message)
        found |= {name: top.get(name) for name in ("records", "contact")}
        return Schema() if self.mistakes else Schema(**found, graph=graph)

    def _columns(self, columns: list[Column], top: Mapping[str, Any]) -> Columns | None:
        try:
            return Columns(columns, impossible=top.get("impossible", ())) if columns else None
        except ParameterError as error:
            self.note(("impossible",), str(error))
        return Columns(columns)

    def _table(self, value: Any, name: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            self.note((name,), f"{name} must be a table, [{name}].")
        return value if isinstance(value, dict) else {}

    def _section(self, name: str, entry: Any, fields: Iterable[Field], make: Callable[..., Any]) -> Any:
        """What `make` returns for the checked values of a section; None without one, or if it cannot be made."""
        if entry is None:
            return None
        entry = self._table(entry, name)
        self._require_known(entry, _names(fields), (name,))
        values = self._values(entry, fields, (name,))
        if any(one.required and one.name not in values for one in fields):
            return None
        try:
            return make(**values)
        except ParameterError as error:
            self.note((name, error.parameter), str(error))
        return None

    def _values(
        self, entry: Mapping[str, Any], fields: Iterable[Field], place: Place, owner: str = "", kind: str = ""
    ) -> dict[str, Any]:
        """Checked values of the fields that are given and sound."""
        found = {}
        for one in fields:
            value = entry.get(one.name)
            if value is None or value == "" or (value == [] and one.required):
                if one.required:
                    self.note((*place, one.name), _demand(one, owner, kind))
                continue
            try:
                found[one.name] = one.kind_for(kind).check(value, one.name)
            except ParameterError as error:
                self.note((*place, one.name), f"{owner}: {error}" if owner else str(error))
        return found

    def _require_known(self, entry: Mapping[str, Any], names: set[str], place: Place, owner: str = "") -> None:
        for unknown in sorted(set(entry) - names)[:1]:
            message = f"unknown entry {unknown!r}; it must be one of {', '.join(sorted(names))}."
            self.note((*place, unknown), f"{owner}: {message}" if owner else message)

    def _column(self, name: str, entry: Any) -> Iterator[tuple[Column, ColumnRule, DateRule | None, dict[str, Any]]]:
        """What `_make_column` makes of a column, and its checked values; nothing if there is a mistake."""
        place, owner = ("columns", name), f"column {name!r}"
        before = len(self.mistakes)
        kind, entry = self._find_type(name, entry)
        if not kind:
            return
        fields = [one for one in COLUMN_FIELDS if kind in one.types]
        label = f"{owner}, of type {kind!r}" if "type" in entry else owner
        self._require_known(entry, {"type", *_names(fields)}, place, label)
        values = self._values(entry, fields, place, owner, kind)
        if len(self.mistakes) == before:
            try:
                yield *_make_column(name, kind, values), values
            except ParameterError as error:
                self.note((*place, error.parameter or "type"), str(error))

    def _find_type(self, name: str, entry: Any) -> tuple[str, dict[str, Any]]:
        """The type of a column, which bounds or levels show if there is none, and its entry; empty with a mistake."""
        owner, names = f"column {name!r}", ", ".join(f'"{name}"' for name in TYPES)
        message = ""
        if not isinstance(entry, dict):
            message = f'{owner} must be {{ type = "number", lower = ..., upper = ... }}, or of another type.'
            if name in _names(SECTIONS[""]):
                message = f"{name} must be above [columns] and all other headings; below one, it is read as its part."
        elif not entry or entry == {"type": ""}:
            message = f"{owner} has no type yet. Set its type to one of {names}, or delete the column."
        elif "type" in entry and (not isinstance(entry["type"], str) or entry["type"] not in TYPES):
            message = f"{owner}: type must be one of {names}, got {show(entry['type'])} instead."
        elif "type" not in entry and {"lower", "upper"} & set(entry) and {"levels", "other"} & set(entry):
            message = f"{owner} has bounds and levels; remove one of them."
        if message:
            self.note(("columns", name, "type"), message)
            return "", {}
        return entry.get("type") or ("category" if {"levels", "other"} & set(entry) else "number"), entry


def _demand(missing: Field, owner: str, kind: str) -> str:
    """The message for a required field of a column or a section without a value."""
    if not owner:
        return f'{missing.name} must be given: the {missing.required}, as in {missing.name} = "NAME".'
    example, it = missing.kind_for(kind).example, "them" if missing.name == "levels" else "it"
    ending = f", as in {missing.name} = {example}." if example else "."
    return f"{owner} has no {missing.required} yet. Fill {it} in from public knowledge, not from the data{ending}"


def _make_column(name: str, kind: str, values: Mapping[str, Any]) -> tuple[Column, ColumnRule, DateRule | None]:
    """The column of checked values, how its texts are written, and how dates and times are read as numbers."""
    column: Column
    flags, date = {flag: values[flag] for flag in ("other", "missing") if flag in values}, None
    if kind == "category":
        column = Category(name, values["levels"], **flags)
    elif kind == "yes/no":
        column = YesNo(name, **flags)
    else:
        lower, upper = values["lower"], values["upper"]
        if kind != "number":
            origin = values.get("origin", lower) if kind == "date" else None
            date = DateRule(name, values.get("unit", _UNITS[kind]), origin, values.get("format"))
            lower, upper = date.number(lower), date.number(upper)
        column = Number(name, lower, upper, step=values.get("step"), **flags)
    keys = ("decimal", "thousands", "missing_words", "strip", "aliases")
    given = {key: values[key] for key in keys if key in values}
    if words := {word: values[word] for word in ("yes", "no") if word in values}:
        given |= {"aliases": words, "fold": True}
    rule = ColumnRule(name, **given)
    _check_aliases(column, rule)
    return column, rule, date


def _check_aliases(column: Column, rule: ColumnRule) -> None:
    """Raise a `ParameterError` unless each alias means one level, which is there."""
    taken = dict.fromkeys(YES, "yes") | dict.fromkeys(NO, "no")
    if isinstance(column, Category):
        taken = {str(level): str(level) for level in column.levels}
    for level, texts in rule.aliases.items():
        parameter = "aliases" if isinstance(column, Category) else level
        if level not in taken:
            known = ", ".join(list(taken)[:20])
            rest = f"must be of levels among {known}, got {show(level)} instead."
            raise ParameterError(f"aliases of column {column.name!r} {rest}", parameter=parameter)
        for text in texts:
            meaning = taken.setdefault(rule.key(text), level)
            if meaning != level:
                rest = f"has {show(text)}, which means {show(meaning)} already. Remove it."
                raise ParameterError(f"{parameter} of column {column.name!r} {rest}", parameter=parameter)


def _names(fields: Iterable[Field]) -> set[str]:
    return {one.name for one in fields}


def write_toml(content: Mapping[str, Any]) -> str:
    """The content of a schema as TOML, without empty sections."""
    tomli_w = import_extra("tomli_w", "writing a schema requires tomli-w", "cli")
    return str(tomli_w.dumps({name: value for name, value in content.items() if value != {}}))


_ASKED = {
    "sheet": "    # Is this the sheet with the table?",
    "header_row": "    # Are these the names of the columns? They are below.",
    "encoding": "    # Are these letters right in the names below? Otherwise try another one.",
}
_TEMPLATE = Path(__file__).with_name("new_schema.toml")


def make_template(fields: Mapping[str, Any], source: str, rules: Mapping[str, Any] | None = None) -> str:
    """Text of a schema for the columns of the file `source`, with empty bounds and levels, from their types alone.

    `fields` are the Arrow fields of the columns, None where the type is unknown; `rules` are entries of ``[files]``.
    """
    written = {key: quote_text(value) if isinstance(value, str) else value for key, value in (rules or {}).items()}
    files = "".join(f"{key} = {value}{_ASKED.get(key, '')}\n" for key, value in written.items())
    columns = "\n".join(_describe_column(name, field) for name, field in fields.items())
    person = quote_text(next(iter(find_ids(fields)), "patient_id"))
    text = Template(_TEMPLATE.read_text(encoding="utf-8"))
    return text.substitute(name=make_visible(source), person=person, files=files, columns=columns)


def _describe_column(name: str, field: Any) -> str:
    if not name:
        return "# A column without a name is left out. To use it, give it a name in the file."
    key = quote_key(name)
    if _looks_like("id", name):
        return f"# {key} is left out: its name looks like ids. Does it say whose a row is? Then see person, above."
    shown = next((one for one in _SIGNS if _looks_like(one, name)), "")
    proposed = shown if field is None else propose_type(field.type)
    if proposed == "":
        return f'{key} = {{ type = "" }}'
    if proposed is None:
        held = describe_type(field.type)
        return f"# {key} holds {held}, which cannot be used as they are. Make them numbers or a category first."
    required = [one.name for one in COLUMN_FIELDS if proposed in one.types and one.required]
    empty = [f", {name} = []" if name == "levels" else f', {name} = ""' for name in required]
    return f'{key} = {{ type = "{proposed}"{"".join(empty)} }}'


# What a column is in a schema, by the letters with which the name of its Arrow type begins.
_PROPOSED = {
    **dict.fromkeys(("int", "uint", "halffloat", "float", "double", "decimal"), "number"),
    **dict.fromkeys(("string", "large_string", "string_view"), "category"),
    "bool": "yes/no",
    "date": "date",
    "timestamp": "date",
    "time": "time",
}


def propose_type(kind: Any) -> str | None:
    """The type in the schema for a column of this Arrow type, or None if it cannot be used."""
    encoded = str(kind).startswith("dictionary<")
    name = re.split(r"[^a-z_]", str(kind.value_type if encoded else kind))[0]
    if encoded:
        return "category" if name in ("int", "uint") or _PROPOSED.get(name) == "category" else None
    return _PROPOSED.get(name)


# Words in the names of columns that show what they hold, or whose a row is.
_SIGNS = {
    "person": r"patient|person|subject|customer|kunde|client",
    "id": r"(^|[_\W])(id|ids|nr|no|mrn|key)\W*$|patient|person|subject|customer|kunde|client|[a-z](Id|ID|Nr)\W*$",
    "date": r"date|datum|birth|born|geburt|geb(\W|$)|naissance|fecha|fech|(^|[_\W])(day|tag|dob)$",
    "time": r"(^|[_\W])(time|zeit|uhrzeit|heure|hora)$",
}


def _looks_like(kind: str, name: str) -> bool:
    return any(re.search(_SIGNS[kind], one) for one in (name, name.lower()))


def find_ids(names: Iterable[str]) -> list[str]:
    """The columns whose names look like ids, those of people first."""
    found = [name for name in names if _looks_like("id", name)]
    return sorted(found, key=lambda name: not _looks_like("person", name))


def describe_type(kind: Any) -> str:
    """What a column that cannot be used holds, in words."""
    return "lengths of time" if str(kind).startswith("duration") else "values of another type"
