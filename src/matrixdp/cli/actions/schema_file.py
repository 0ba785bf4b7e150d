"""The schema: a TOML file with what is public about a table."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from matrixdp.cli.actions.schema_guesses import CATEGORY_GUESSES, NUMBER_GUESSES, Guess, parse_guess, read_number
from matrixdp.cli.actions.schema_rules import DATE_TYPES, parse_date_column, parse_file_rules, require_known
from matrixdp.display import render_card, render_facts
from matrixdp.domain.bounds import Bounds
from matrixdp.domain.columns import Category, Column, Columns, Number, YesNo
from matrixdp.domain.person import Person
from matrixdp.errors import ParameterError, show
from matrixdp.records.file_rules import DEFAULT_RULES, FileRules

_TOML = (
    "Write texts, and names of columns with spaces or special characters, in quotation marks, a comma between entries, "
    "numbers with a decimal point, and each column once."
)
MAX_SIDE = 10_000  # rows and columns of a square matrix, which is held in memory several times
TYPES = ("number", "category", "yes/no", *DATE_TYPES)
_KEYS = {
    "number": ("lower", "upper", "missing", *NUMBER_GUESSES),
    "category": ("levels", "categories", "other", "missing", *CATEGORY_GUESSES),
    "yes/no": ("missing", *CATEGORY_GUESSES),
    **dict.fromkeys(DATE_TYPES, ("lower", "upper", "unit", "origin", "format", "missing")),
}


@dataclass(frozen=True)
class Graph:
    """The public nodes of a graph, the largest weight of an edge, and what is protected: an edge or a node."""

    nodes: tuple[str, ...]
    weight: float = 1.0
    unit: str = "edge"
    max_degree: float | None = None


@dataclass(frozen=True)
class Schema:
    """Everything that is public about a table.

    Attributes
    ----------
    path : Path
    columns : Columns or None
        None if the file describes no columns.
    radius, records : optional
    graph : Graph, optional
    guesses : mapping from names of columns to Guess
    expected_correlation : float, optional
    person : Person, optional
        The column that says whose each row is.
    rules : FileRules
        How values are written in files, with the columns of dates, which are numbers in `columns`.
    """

    path: Path
    columns: Columns | None = None
    radius: float | None = None
    records: int | None = None
    graph: Graph | None = None
    guesses: Mapping[str, Guess] = field(default_factory=dict)
    expected_correlation: float | None = None
    person: Person | None = None
    rules: FileRules = DEFAULT_RULES

    def _repr_html_(self) -> str:
        person = None if self.person is None else self.person.column
        found = (("radius", self.radius), ("records", self.records), ("person", person))
        facts = [("file", str(self.path)), *((name, str(value)) for name, value in found if value is not None)]
        facts += [("graph", str(self.graph))] if self.graph is not None else []
        columns = "" if self.columns is None else self.columns.render()
        return render_card("Schema", render_facts(facts), columns)

    def require_columns(self) -> Columns:
        """The columns, or a `ParameterError` if there are none."""
        if self.columns is None:
            raise ParameterError(f"{self.path}: there are no columns. Add [columns.NAME] with lower and upper.")
        return self.columns

    def choose(self, names: Sequence[str] | None, option: str) -> Columns:
        """The columns of these names, in the order of the schema, or all of them; `option` named them."""
        columns = self.require_columns()
        if names is None:
            return columns
        if len(set(names)) != len(names) or not all(names):
            raise ParameterError(f"{option} must name each column once, as in {option} age,bmi.")
        for name in names:
            if name not in columns.names:
                known = ", ".join(columns.names[:20])
                raise ParameterError(f"{option}: {self.path} has no column {show(name)}; it has {known}.")
        return Columns(tuple(column for column in columns if column.name in names))

    def bounds(self, columns: Columns) -> Bounds:
        """Bounds of `columns`, all of which hold numbers, with the radius of the schema."""
        try:
            lower, upper = [one.lower for one in columns.numbers], [one.upper for one in columns.numbers]
            return Bounds(lower, upper, names=list(columns.names), radius=self.radius)
        except ParameterError as error:
            raise ParameterError(f"{self.path}: {error}") from None

    def number_bounds(self) -> Bounds:
        """Bounds of all columns, or a `ParameterError` if one of them is a category."""
        columns = self.require_columns()
        for column in columns.categories:
            raise ParameterError(f"{self.path}: column {column.name!r} is a category; only numbers can be used here.")
        return self.bounds(columns)

    def check(self) -> None:
        """Raise a `ParameterError` unless there are columns, and a radius fits them."""
        numbers = self.require_columns().numbers
        if self.radius is not None:
            if not numbers:
                raise ParameterError(f"{self.path}: radius is for columns of numbers, and there are none. Remove it.")
            self.bounds(Columns(numbers))

    def category(self, name: str) -> Category | YesNo:
        """The category of this name, or a `ParameterError` that names the file."""
        columns = self.require_columns()
        if name not in columns.names:
            raise ParameterError(f"{self.path}: there is no [columns.{quote_key(name)}]. Add it with its levels.")
        found = columns[name]
        if isinstance(found, Number):
            raise ParameterError(
                f'{self.path}: column {name!r} holds numbers, and must be a category here. Give it levels = ["...", '
                '"..."] in place of bounds.'
            )
        return found

    def pair_levels(self, name: str) -> tuple[str | int, ...]:
        """Levels of a category of pairs that are counted by --query counts."""
        found = self.category(name)
        if not isinstance(found, Category) or found.other or found.missing:
            what = "is yes/no" if isinstance(found, YesNo) else "has levels for other or missing values"
            raise ParameterError(f"{self.path}: column {name!r} {what}: use --query table in place of counts.")
        return tuple(found.levels)


def read_schema(path: Path) -> Schema:
    """The schema in a file; a `ParameterError` names the file, the entry and the remedy."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ParameterError(f"there is no schema at {path}. Create one: matrixdp schema new DATA -o {path}") from None
    except OSError as error:
        raise ParameterError(f"{path} cannot be read: {error.strerror}.") from None
    except RecursionError:
        raise ParameterError(f"{path} is nested too deeply. Write [columns.NAME] with lower and upper.") from None
    except ValueError as error:
        raise ParameterError(f"{path} is not a TOML file: {error}. {_TOML}") from None
    return parse_schema(path, content)


def parse_schema(path: Path, content: dict[str, Any]) -> Schema:
    """The schema that the content of a TOML file describes; messages name the file as `path`."""
    known = {"columns", "files", "radius", "records", "graph", "person", "expected_correlation"}
    require_known(content, known, f"{path}")
    entries = _read_table(content, "columns", path)
    found = tuple(_parse_column(path, name, entry) for name, entry in entries.items())
    columns = Columns(found) if found else None
    graph = _parse_graph(path, _read_table(content, "graph", path)) if "graph" in content else None
    person = _parse_person(path, _read_table(content, "person", path)) if "person" in content else None
    radius = read_number(content, "radius", f"{path}")
    records = content.get("records")
    if records is not None and (isinstance(records, bool) or not isinstance(records, int) or records < 1):
        raise ParameterError(f"{path}: records must be a positive integer, got {show(records)} instead.")
    guesses = {one.name: parse_guess(one, entries[one.name], f"{path}: column {one.name!r}") for one in found}
    correlation = read_number(content, "expected_correlation", f"{path}")
    if correlation is not None and not 0 <= correlation <= 1:
        raise ParameterError(f"{path}: expected_correlation must be from 0 to 1, got {correlation:g} instead.")
    rules = parse_file_rules(path, _read_table(content, "files", path), entries)
    return Schema(path, columns, radius, records, graph, guesses, correlation, person, rules)


def _parse_person(path: Path, entry: dict[str, Any]) -> Person:
    where = f"{path}: [person]"
    require_known(entry, {"column", "rows"}, where)
    column, rows = entry.get("column"), entry.get("rows")
    if not isinstance(column, str) or not column or not column.isprintable():
        raise ParameterError(f'{where} must have column = "NAME", the column that says whose each row is.')
    if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int) or rows < 1):
        raise ParameterError(f"{where} rows must be a positive integer, got {show(rows)} instead.")
    return Person(column, rows)


def _parse_column(path: Path, name: str, entry: Any) -> Column:
    where = f"{path}: column {name!r}"
    if not isinstance(entry, dict):
        if name in ("records", "radius", "expected_correlation"):
            raise ParameterError(
                f"{path}: {name} must be above [columns] and all other headings; below one, it is read as a part of it."
            )
        raise ParameterError(f'{where} must be {{ type = "number", lower = ..., upper = ... }}, or of another type.')
    if not entry or entry == {"type": ""}:
        names = ", ".join(f'"{name}"' for name in TYPES)
        raise ParameterError(f"{where} has no type yet. Set its type to one of {names}, or delete the column.")
    kind = _find_type(entry, where)
    require_known(entry, {"type", *_KEYS[kind]}, f"{where}, of type {kind!r}" if "type" in entry else where)
    flags = {flag: _read_flag(entry, flag, where) for flag in ("missing", "other") if flag in entry}
    try:
        if kind in DATE_TYPES:
            return parse_date_column(path, name, entry)
        if kind == "number":
            lower, upper = _read_bounds(entry, where)
            return Number(name, lower, upper, **flags)
        if kind == "yes/no":
            return YesNo(name, **flags)
        return Category(name, _read_levels(entry, where), **flags)
    except ParameterError as error:
        text = str(error)
        raise (error if text.startswith(str(path)) else ParameterError(f"{path}: {text}")) from None


def _find_type(entry: dict[str, Any], where: str) -> str:
    """The type of a column; without one, what its other entries say."""
    if "type" not in entry:
        if {"levels", "categories", "other"} & set(entry):
            if {"lower", "upper"} & set(entry):
                raise ParameterError(f"{where} has bounds and levels; remove one of them.")
            return "category"
        require_known(entry, {"type", "levels", *_KEYS["number"]}, where)
        return "number"
    kind = entry["type"]
    if not isinstance(kind, str) or kind not in TYPES:
        names = ", ".join(f'"{name}"' for name in TYPES)
        raise ParameterError(f"{where}: type must be one of {names}, got {show(kind)} instead.")
    return kind


def _read_bounds(entry: dict[str, Any], where: str) -> list[float]:
    found: list[float] = []
    for end in ("lower", "upper"):
        value = read_number(entry, end, where)
        if value is None:
            raise ParameterError(
                f"{where} has no {end} bound yet. Fill it in from public knowledge, not from the data."
            )
        found.append(value)
    return found


def _read_levels(entry: dict[str, Any], where: str) -> tuple[str | int, ...]:
    if "levels" in entry and "categories" in entry:
        raise ParameterError(f"{where} has levels and categories, which are the same. Keep levels.")
    key = "categories" if "categories" in entry else "levels"
    values = entry.get(key)
    if values is None or values == []:
        raise ParameterError(f"{where} has no {key} yet. Fill them in from public knowledge, not from the data.")
    if not isinstance(values, list) or {type(value) for value in values} not in ({str}, {int}):
        raise ParameterError(f'{where}: {key} must be a list of texts, as in ["yes", "no"], or a list of integers.')
    if "" in values:
        raise ParameterError(f"{where} has an empty text among its {key}. For empty values, write missing = true.")
    return tuple(values)


def _read_flag(entry: dict[str, Any], name: str, where: str) -> bool:
    value = entry[name]
    if not isinstance(value, bool):
        raise ParameterError(f"{where}: {name} must be true or false, got {show(value)} instead.")
    return value


def _parse_graph(path: Path, entry: dict[str, Any]) -> Graph:
    require_known(entry, {"nodes", "weight", "unit", "max_degree"}, f"{path}: [graph]")
    nodes = entry.get("nodes")
    if (nodes if isinstance(nodes, int) else len(nodes) if isinstance(nodes, list) else 0) > MAX_SIDE:
        raise ParameterError(f"{path}: [graph] nodes must be at most {MAX_SIDE:,}; their matrix is held in memory.")
    if isinstance(nodes, int) and not isinstance(nodes, bool) and nodes >= 2:
        nodes = [str(i) for i in range(nodes)]
    if not isinstance(nodes, list) or len(nodes) < 2 or len(set(map(str, nodes))) != len(nodes):
        raise ParameterError(
            f"{path}: [graph] nodes must be a list of at least two different names, or a number of nodes."
        )
    weight = read_number(entry, "weight", f"{path}: [graph]")
    unit, degree = entry.get("unit", "edge"), read_number(entry, "max_degree", f"{path}: [graph]")
    if unit not in ("edge", "node") or (unit == "node") != (degree is not None):
        raise ParameterError(
            f'{path}: [graph] unit must be "edge", without max_degree, or "node", with max_degree = a public bound on '
            "the sum of a node's weights."
        )
    return Graph(tuple(map(str, nodes)), 1.0 if weight is None else weight, unit, degree)


def _read_table(content: dict[str, Any], name: str, path: Path) -> dict[str, Any]:
    value = content.get(name, {})
    if not isinstance(value, dict):
        raise ParameterError(f"{path}: {name} must be a table, [{name}].")
    return value


def quote_key(name: str) -> str:
    """The name of a column as a TOML key."""
    if name.isascii() and name.replace("_", "").replace("-", "").isalnum():
        return name
    return quote_text(name)


def quote_text(text: str) -> str:
    """A text as a TOML string."""
    return '"' + "".join(map(_quote_character, text)) + '"'


def _quote_character(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    return char if char.isprintable() else f"\\U{ord(char):08x}"
