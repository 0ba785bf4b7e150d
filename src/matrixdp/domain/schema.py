"""The schema: everything that is public about a table, declared before any of its values is read.

It says what a record can be (columns with bounds or levels, a radius, a graph), how files are read, who is protected,
and what forecasts may assume. `schema_file` reads and writes it, and lists its fields.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from matrixdp.checks import check_integer, check_magnitude
from matrixdp.display import render_card, render_facts
from matrixdp.domain.bounds import Bounds
from matrixdp.domain.columns import NO, YES, Category, Column, Columns, Number, YesNo
from matrixdp.domain.fields import quote_key
from matrixdp.domain.file_rules import DEFAULT_RULES, ColumnRule, FileRules
from matrixdp.domain.person import Person
from matrixdp.errors import ParameterError, join_names, show
from matrixdp.types import Floats

MAX_SIDE = 10_000  # rows and columns of a square matrix, which is held in memory several times
GUESSES = {"means": "mean", "stds": "std", "missing": "missing", "shares": "shares"}  # of columns: expected_mean, ...
Place: TypeAlias = tuple[str, ...]  # of an entry: ("columns", "age", "lower")


@dataclass(frozen=True)
class Graph:
    """The public nodes of a graph, the largest weight of an edge, and what is protected: an edge or a node.

    Nodes are given by their names, or by their number.
    """

    nodes: tuple[str, ...] = ()
    weight: float = 1.0
    unit: str = "edge"
    max_degree: float | None = None

    def __post_init__(self) -> None:
        nodes: Any = self.nodes
        if isinstance(nodes, int) and not isinstance(nodes, bool):
            nodes = range(min(nodes, MAX_SIDE + 1))
        nodes = tuple(map(str, nodes)) if isinstance(nodes, list | tuple | range) else ()
        object.__setattr__(self, "nodes", nodes)
        if len(nodes) < 2 or len(nodes) > MAX_SIDE or len(set(nodes)) != len(nodes):
            few = "a list of at least two different names, or a number of nodes"
            rule = f"at most {MAX_SIDE:,}; their matrix is held in memory" if len(nodes) > MAX_SIDE else few
            raise ParameterError(f"nodes must be {rule}.", parameter="nodes")
        if self.unit not in ("edge", "node") or (self.unit == "node") != (self.max_degree is not None):
            raise ParameterError(
                'unit must be "edge", without max_degree, or "node", with max_degree = a public bound on the sum of a '
                "node's weights.",
                parameter="unit",
            )


@dataclass(frozen=True)
class TableDescription:
    """Public guesses about a table, for forecasts; all are optional.

    Parameters
    ----------
    means, stds : mapping of names of numbers to float
        Mean and standard deviation, in the data's units.
    correlation : float, optional
        Root mean square of the correlations of the numbers, from 0 to 1.
    shares : mapping of names of categories to mapping of levels to float
        Shares of the values that are there. Levels that are not named share the rest equally.
    missing : mapping of names of columns to float
        Share of the values that are missing.
    records : int, optional
        Number of records, or of people if they count once. Releases use it, too, where the true number is private.

    Examples
    --------
    >>> guess = TableDescription(stds={"age": 12}, shares={"ward": {"north": 0.6, "south": 0.35}})
    """

    means: Mapping[str, float] = field(default_factory=dict)
    stds: Mapping[str, float] = field(default_factory=dict)
    correlation: float | None = None
    shares: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    missing: Mapping[str, float] = field(default_factory=dict)
    records: int | None = None

    def check(self, columns: Columns) -> None:
        """Raise a `ParameterError` unless the guesses are possible for these columns; others may be described, too."""
        for guess, name, rule in self.list_mistakes(columns):
            raise ParameterError(f"{guess} of {name!r} {rule}" if name else f"{guess} {rule}", parameter=guess)

    def list_mistakes(self, columns: Columns | None) -> Iterator[tuple[str, str, str]]:
        """Guesses that are not possible: the attribute, the column, and what is wrong, as in "must be a number"."""
        yield from _check_range("correlation", "", self.correlation, 0.0, 1.0)
        if columns is None:
            return
        for number in columns.numbers:
            name, half = number.name, (number.upper - number.lower) / 2
            yield from _check_range("means", name, self.means.get(name), number.lower, number.upper)
            yield from _check_range("stds", name, self.stds.get(name), 0.0, half)
        for column in columns:
            yield from _check_range("missing", column.name, self.missing.get(column.name), 0.0, 1.0)
        for category in columns.categories:
            for rule in _check_shares(category, self.shares.get(category.name, {})):
                yield "shares", category.name, rule


def spread_shares(category: Category | YesNo, shares: Mapping[str, float], missing: float) -> Floats:
    """Share of each level, of shape (levels,): the given ones of values that are there, and equal ones of the rest."""
    for rule in _check_shares(category, shares):
        raise ParameterError(f"shares of {category.name!r} {rule}", parameter="shares")
    names = category.level_names[: -1 if category.missing else None]
    rest, others = 1 - sum(shares.values()), len(names) - len(shares)
    found = np.array([shares.get(name, max(rest, 0.0) / max(others, 1)) for name in names])
    return np.append(found * (1 - missing), missing) if category.missing else found


def _check_shares(category: Category | YesNo, shares: Mapping[str, float]) -> Iterator[str]:
    names = category.level_names[: -1 if category.missing else None]
    for level, share in shares.items():
        if level not in names:
            instead = " Write expected_missing for it." if level in category.level_names else ""
            yield f"must be of levels among {', '.join(names[:20])}, got {show(level)}.{instead}"
            return
        for *_, rule in _check_range("shares", category.name, share, 0.0, 1.0):
            yield f"of level {level!r} {rule}"
            return
    rest, others = 1 - sum(shares.values()), len(names) - len(shares)
    if rest < -1e-6 or (not others and rest > 1e-6):
        yield f"must sum to {'at most ' * bool(others)}1, got {1 - rest:g} instead."


def _check_range(guess: str, name: str, value: Any, low: float, high: float) -> Iterator[tuple[str, str, str]]:
    if value is None:
        return
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not number or not low <= value <= high:
        yield guess, name, f"must be a number from {low:g} to {high:g}, got {show(value)} instead."


@dataclass(frozen=True)
class Schema:
    """Everything that is public about a table.

    Parameters
    ----------
    columns : Columns, optional
        None if only a graph is described.
    radius : float, optional
        Of the ball about the middle of the bounds into which records are moved.
    records : int, optional
        The public number of records.
    person : Person, optional
        The column with the ids of people, who are then protected with all their rows.
    graph : Graph, optional
    guesses : TableDescription
        For forecasts.
    rules : FileRules
        How values are written in files, with the columns of dates, which are numbers in `columns`.
    contact : str, optional
        Who answers questions about releases; reports name them.
    path : Path
        The file, as messages name it.

    Examples
    --------
    >>> schema = Schema(Columns([Number("age", 0, 120)]), records=500)
    >>> schema.number_bounds().upper.tolist()
    [120.0]
    >>> Schema(Columns([Number("age", 0, 120)]), person=Person("age"))
    Traceback (most recent call last):
    matrixdp.errors.ParameterError: column 'age' has the ids of people, and cannot be released as well. Remove \
[columns.age].
    """

    columns: Columns | None = None
    radius: float | None = None
    records: int | None = None
    person: Person | None = None
    graph: Graph | None = None
    guesses: TableDescription = field(default_factory=TableDescription)
    rules: FileRules = DEFAULT_RULES
    contact: str | None = None
    path: Path = Path("schema")

    def __post_init__(self) -> None:
        if self.records is not None:
            object.__setattr__(self, "records", check_integer(self.records, "records", at_least=1))
        if self.radius is not None:
            object.__setattr__(self, "radius", check_magnitude(self.radius, "radius"))
        for place, message in list_conflicts(self.columns, self.radius, self.person, self.guesses, self.rules):
            raise ParameterError(message, parameter=name_place(place))

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

    def check(self) -> None:
        """Raise a `ParameterError` unless there are columns or a graph."""
        if self.graph is None:
            self.require_columns()

    def choose(self, names: Sequence[str] | None, option: str) -> Columns:
        """The columns of these names, in the order of the schema, or all of them; `option` named them."""
        columns, parameter = self.require_columns(), option.removeprefix("--")
        if names is None:
            return columns
        if len(set(names)) != len(names) or not all(names):
            raise ParameterError(f"{option} must name each column once, as in {option} age,bmi.", parameter=parameter)
        for name in (name for name in names if name not in columns.names):
            rule = f"has no column {show(name)}; it has {join_names(columns.names[:20], ', ')}."
            raise ParameterError(f"{option}: {self.path} {rule}", parameter=parameter)
        return columns.pick([name for name in columns.names if name in names])

    def bounds(self, columns: Columns) -> Bounds:
        """Bounds of `columns`, all of which hold numbers, with the radius of the schema."""
        return Bounds.from_dict({one.name: (one.lower, one.upper) for one in columns.numbers}, self.radius)

    def number_bounds(self) -> Bounds:
        """Bounds of all columns, or a `ParameterError` if one of them is a category."""
        columns = self.require_columns()
        for column in columns.categories:
            raise ParameterError(f"{self.path}: column {column.name!r} is a category; only numbers can be used here.")
        return self.bounds(columns)

    def category(self, name: str) -> Category | YesNo:
        """The category of this name, or a `ParameterError` that names the file."""
        columns = self.require_columns()
        try:
            return columns.category(name)
        except ParameterError as error:
            raise error.within(self.path) from None

    def pair_levels(self, name: str) -> tuple[str | int, ...]:
        """Levels of a category of pairs that are counted by --query counts."""
        found = self.category(name)
        if not isinstance(found, Category) or found.other or found.missing:
            what = "is yes/no" if isinstance(found, YesNo) else "has levels for other or missing values"
            raise ParameterError(f"{self.path}: column {name!r} {what}: use --query table in place of counts.")
        return tuple(found.levels)

    def required_names(self) -> list[str]:
        """The columns that a table must have: those described, and the one with the ids of people."""
        columns = () if self.columns is None else self.columns.names
        return [*columns, *(() if self.person is None else (self.person.column,))]


def list_conflicts(
    columns: Columns | None,
    radius: float | None = None,
    person: Person | None = None,
    guesses: TableDescription | None = None,
    rules: FileRules = DEFAULT_RULES,
) -> Iterator[tuple[Place, str]]:
    """Entries of a schema that are impossible beside others, and why, by their places."""
    described = () if columns is None else tuple(columns)
    if radius is not None and described and not any(isinstance(column, Number) for column in described):
        yield ("radius",), "radius is for columns of numbers, and there are none. Remove it."
    if person is not None and person.column in [column.name for column in described]:
        message = f"column {person.column!r} has the ids of people, and cannot be released as well."
        yield ("person", "column"), f"{message} Remove [columns.{quote_key(person.column)}]."
    for guess, name, rule in () if guesses is None else guesses.list_mistakes(columns):
        key = f"expected_{GUESSES.get(guess, guess)}"
        yield (("columns", name, key), f"column {name!r}: {key} {rule}") if name else ((key,), f"{key} {rule}")
    for one, other in () if columns is None else _list_excluded(columns):
        yield ("impossible",), f"impossible must leave some pair of levels of {one!r} and {other!r}, and excludes all."
    for column in described:
        if guesses is not None and column.name in guesses.missing and not column.missing:
            place = ("columns", column.name, "expected_missing")
            yield place, f"column {column.name!r}: expected_missing needs missing = true."
        own = any(one.name == column.name and one.missing_words is not None for one in rules.columns)
        for message in _check_words(rules.of(column.name), column):
            section = ("columns", column.name) if own else ("files",)
            yield (*section, "missing_words"), f"missing_words has {message}"


def _list_excluded(columns: Columns) -> Iterator[tuple[str, str]]:
    """Pairs of categories of which no pair of levels can occur."""
    excluded: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for entry in columns.impossible:
        (one, these), (other, those) = sorted(entry)
        excluded.setdefault((one, other), set()).update(product(these, those))
    for names, pairs in excluded.items():
        if len(pairs) == math.prod(len(columns.category(name).level_names) for name in names):
            yield names


def _check_words(rule: ColumnRule, column: Column) -> Iterator[str]:
    """Words for missing values that have another meaning in a column."""
    levels = {*map(str, column.levels), *rule.meanings} if isinstance(column, Category) else {*rule.meanings}
    for word in rule.missing_words or ():
        if word in levels:
            what = "an alias" if word in rule.meanings else "a level"
            yield f"{show(word)}, which is also {what} of column {column.name!r}. Remove one of them."
        elif isinstance(column, YesNo) and word.strip().lower() in (*YES, *NO):
            yield (
                f"{show(word)}, which means yes or no in column {column.name!r}. Remove the word, or describe the "
                'column as type = "category" with its levels.'
            )


def name_place(place: Place) -> str:
    """The name of an entry, as in a heading of TOML: ``columns."body mass".lower``."""
    return ".".join(map(quote_key, place))
