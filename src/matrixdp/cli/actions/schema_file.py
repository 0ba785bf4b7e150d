"""The schema: a TOML file with what is public about a table."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from matrixdp.domain.bounds import Bounds
from matrixdp.errors import ParameterError, show
from matrixdp.report.numbers import make_visible

MAX_SIDE = 10_000  # rows and columns of a square matrix, which is held in memory several times
_HEADER = """\
# What is public about {name}. Take the bounds from general knowledge of what the values can be (a scale, a physical
# limit, a rule of the survey), never from the data. Values outside the bounds are moved to the bounds.
# Delete the columns that are not to be released. For a column of categories, replace the bounds by:
#   categories = ["yes", "no"]

# Optional: records are also moved into a ball of this radius around the middle of their bounds.
# radius = 1.0
# Optional: the public number of records.
# records = 10000
"""


@dataclass(frozen=True)
class Column:
    """Bounds or categories of one column."""

    lower: float | None = None
    upper: float | None = None
    categories: tuple[str | int, ...] | None = None


@dataclass(frozen=True)
class Graph:
    """The public nodes of a graph, and the largest weight of an edge."""

    nodes: tuple[str, ...]
    weight: float = 1.0


@dataclass(frozen=True)
class Schema:
    """Everything that is public about a table."""

    path: Path
    columns: dict[str, Column] = field(default_factory=dict)
    radius: float | None = None
    records: int | None = None
    graph: Graph | None = None

    def bounds(self) -> Bounds:
        """Bounds of all columns that have them."""
        bounded = {name: column for name, column in self.columns.items() if column.categories is None}
        if not bounded:
            raise ParameterError(f"{self.path}: no column has bounds. Add [columns.NAME] with lower and upper.")
        try:
            lower = [column.lower for column in bounded.values()]
            upper = [column.upper for column in bounded.values()]
            return Bounds(lower, upper, names=list(bounded), radius=self.radius)  # type: ignore[arg-type]
        except ParameterError as error:
            raise ParameterError(f"{self.path}: {error}") from None

    def check(self) -> None:
        """Raise a `ParameterError` unless there are columns, with valid bounds or categories."""
        if not self.columns or any(column.categories is None for column in self.columns.values()):
            self.bounds()

    def categories(self, name: str) -> tuple[str | int, ...]:
        """The public categories of a column."""
        if name not in self.columns:
            raise ParameterError(f"{self.path}: there is no [columns.{_quote_key(name)}]. Add it with its categories.")
        found = self.columns[name].categories
        if found is None:
            raise ParameterError(f'{self.path}: column {name!r} needs categories = ["...", "..."] to be counted.')
        return found


def make_template(names: Sequence[str], source: str) -> str:
    """Text of a schema for the columns `names` of the file `source`, with empty bounds."""
    columns = (f'[columns.{_quote_key(name)}]\nlower = ""\nupper = ""\n' for name in names)
    return "\n".join([_HEADER.format(name=make_visible(source)), *columns])


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
        raise ParameterError(f"{path} is not a TOML file: {error}") from None
    _require_known(content, {"columns", "radius", "records", "graph"}, f"{path}")
    columns = {name: _parse_column(path, name, entry) for name, entry in _read_table(content, "columns", path).items()}
    graph = _parse_graph(path, _read_table(content, "graph", path)) if "graph" in content else None
    radius = _read_number(content, "radius", f"{path}")
    records = content.get("records")
    if records is not None and (isinstance(records, bool) or not isinstance(records, int) or records < 1):
        raise ParameterError(f"{path}: records must be a positive integer, got {show(records)} instead.")
    return Schema(path, columns, radius, records, graph)


def _parse_column(path: Path, name: str, entry: Any) -> Column:
    where = f"{path}: column {name!r}"
    if not isinstance(entry, dict):
        raise ParameterError(f"{where} must be a table with lower and upper.")
    _require_known(entry, {"lower", "upper", "categories"}, where)
    if "categories" in entry:
        values = entry["categories"]
        if "lower" in entry or "upper" in entry:
            raise ParameterError(f"{where} has bounds and categories; remove one of them.")
        if not isinstance(values, list) or not values or not all(isinstance(value, str | int) for value in values):
            raise ParameterError(f"{where}: categories must be a list of strings or integers.")
        return Column(categories=tuple(values))
    ends = {end: _read_number(entry, end, where) for end in ("lower", "upper")}
    for end, value in ends.items():
        if value is None:
            raise ParameterError(
                f"{where} has no {end} bound yet. Fill it in from public knowledge, not from the data."
            )
    return Column(ends["lower"], ends["upper"])


def _parse_graph(path: Path, entry: dict[str, Any]) -> Graph:
    _require_known(entry, {"nodes", "weight"}, f"{path}: [graph]")
    nodes = entry.get("nodes")
    if (nodes if isinstance(nodes, int) else len(nodes) if isinstance(nodes, list) else 0) > MAX_SIDE:
        raise ParameterError(f"{path}: [graph] nodes must be at most {MAX_SIDE:,}; their matrix is held in memory.")
    if isinstance(nodes, int) and not isinstance(nodes, bool) and nodes >= 2:
        nodes = [str(i) for i in range(nodes)]
    if not isinstance(nodes, list) or len(nodes) < 2 or len(set(map(str, nodes))) != len(nodes):
        raise ParameterError(
            f"{path}: [graph] nodes must be a list of at least two different names, or a number of nodes."
        )
    weight = _read_number(entry, "weight", f"{path}: [graph]")
    return Graph(tuple(map(str, nodes)), 1.0 if weight is None else weight)


def _read_number(content: dict[str, Any], name: str, where: str) -> float | None:
    value = content.get(name)
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ParameterError(f"{where}: {name} must be a number, got {show(value)} instead.")
    try:
        return float(value)
    except OverflowError:
        raise ParameterError(f"{where}: {name} must be at most 1e60 in size; change the units.") from None


def _read_table(content: dict[str, Any], name: str, path: Path) -> dict[str, Any]:
    value = content.get(name, {})
    if not isinstance(value, dict):
        raise ParameterError(f"{path}: {name} must be a table, [{name}].")
    return value


def _require_known(content: dict[str, Any], names: set[str], where: str) -> None:
    unknown = sorted(set(content) - names)
    if unknown:
        raise ParameterError(f"{where}: unknown entry {unknown[0]!r}; it must be one of {', '.join(sorted(names))}.")


def _quote_key(name: str) -> str:
    """The name of a column as a TOML key."""
    if name.isascii() and name.replace("_", "").replace("-", "").isalnum():
        return name
    return '"' + "".join(map(_quote_character, name)) + '"'


def _quote_character(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    return char if char.isprintable() else f"\\U{ord(char):08x}"
