"""`Request`: everything public that decides a release."""

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from matrixdp.checks import check_flag, check_integer, check_number
from matrixdp.domain import Bounds, Columns, Person, Schema, YesNo, as_schema
from matrixdp.errors import ParameterError, join_names, show
from matrixdp.privacy import Neighbours, Privacy
from matrixdp.release.options import GRAPHS, OPTION, OPTIONS, PER_RECORD, Asked, Option, parse_options
from matrixdp.types import lock_arrays

_SHOWN = 6  # names in a message


@lock_arrays
@dataclass(frozen=True, kw_only=True, eq=False)
class Request(Asked):
    """What is released, of which table, and with which guarantee.

    The fields are the options that `matrixdp.release.options.Asked` declares and explains, and two more.

    Parameters
    ----------
    schema : Schema, or what `domain.as_schema` takes: columns, a dict, or the path of a file
        What is public about the table.
    clip : bool
        Move records into their bounds; otherwise one outside is an error.
    """

    schema: Schema
    clip: bool = True

    def __post_init__(self) -> None:
        if self.schema is not None:  # a stored request gets its schema later
            self._set("schema", as_schema(self.schema))
        for name in ("columns", "by", "cells", "on"):
            value = getattr(self, name)
            if isinstance(value, str):
                raise ParameterError(f"«{name}» must be a list of columns, as in ['age', 'bmi'], got a string instead.")
            self._set(name, None if value is None else tuple(value))
        if isinstance(self.importance, Mapping):
            self._set("importance", tuple(self.importance.items()))
        check_flag(self.clip, "clip")
        for option in OPTIONS:  # the question is the first
            value = getattr(self, option.name)
            check_option(option, value)
            if option.questions and self.question not in option.questions and value != option.default:
                raise option.error(
                    f"must be left out for «question» {self.question}; it is for {', '.join(option.questions)}."
                )

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    @classmethod
    def parse(cls, schema: Schema, values: Mapping[str, Any]) -> Self:
        """A request from texts or JSON content, by the names of the command line."""
        return cls(schema=schema, **parse_options(values))

    @cached_property
    def privacy(self) -> Privacy:
        """The whole budget."""
        return Privacy(self.epsilon, self.delta)

    @property
    def relation(self) -> Neighbours:
        """The neighbours that the guarantee is for."""
        default = Neighbours.ADD_REMOVE if self.question in GRAPHS else Neighbours.REPLACE
        return Neighbours.parse(self.neighbours or default)

    @cached_property
    def whose(self) -> Person | None:
        """The column of ids and how its rows count, or None where records are protected."""
        if self.question in GRAPHS:
            if self.person is not None or self.rows is not None:
                raise ParameterError(
                    f"«person» must be left out for «question» {self.question}: to protect a node, write unit = "
                    '"node" and max_degree in [graph] of the schema.'
                )
            return None
        schema, given = self.schema, self.schema.person
        column, rows = (None, None) if given is None else (given.column, given.rows)
        for name, public, asked in (("person", column, self.person), ("rows", rows, self.rows)):
            if asked is not None and public is not None and asked != public:
                raise ParameterError(
                    f"«{name}» must be {public!r}, as {schema.path} says in [person], got {asked!r} instead. Leave it "
                    "out, or change the schema."
                )
        column, rows = column or self.person, rows or self.rows
        if column is None:
            if rows is not None:
                raise ParameterError("«person» must be given with «rows»: the column that says whose a row is.")
            return None
        if schema.columns is not None and column in schema.columns.names:
            raise ParameterError(
                f"{schema.path}: column {column!r} says whose each row is, and cannot be released as well. Remove it "
                "from the columns.",
                parameter="person",
            )
        return Person(column, rows)

    @property
    def counts_people(self) -> bool:
        """Whether the public number of records is one of people."""
        return self.whose is not None and self.whose.rows is None and self.question not in PER_RECORD

    def parse_cells(self) -> tuple[str, str]:
        """The two columns of a table of counts."""
        names = tuple(self.cells or ())
        if len(names) != 2 or not all(names) or names[0] == names[1]:
            raise ParameterError(
                f"«cells» must name two different columns, as in «cells» smoker,outcome, for «question» "
                f"{self.question}."
            )
        return names[0], names[1]

    def choose_columns(self) -> Columns:
        """The columns that were chosen, or those of a regression; by default all of the schema."""
        if self.question != "regression" or self.on is None:
            return self.schema.choose(self.columns, "«columns»")
        if self.columns is not None:
            raise ParameterError("«columns» must be left out with «on», which names the columns of a regression.")
        return self.schema.choose([*self.on, *([] if self.target is None else [self.target])], "«on»")

    def choose_numbers(self) -> Columns:
        """The columns that were chosen, all of which must hold numbers; those of `by` are not counted."""
        columns, schema = self.choose_columns(), self.schema
        category = next((column for column in columns.categories if column.name not in (self.by or ())), None)
        if category is not None:
            kind = "yes/no" if isinstance(category, YesNo) else "a category"
            numbers = shlex.quote(join_names(column.name for column in columns.numbers[:_SHOWN]))
            choice = (
                f"choose columns of numbers («columns» {numbers})" if columns.numbers else "describe columns of numbers"
            )
            raise ParameterError(
                f"{schema.path}: column {category.name!r} is {kind}, which «question» {self.question} cannot use: "
                f"{choice}, or release all columns together («question» everything).",
                parameter="columns",
            )
        if not columns.numbers:
            raise ParameterError(
                f"{schema.path}: «question» {self.question} needs a column of numbers besides those of «by»."
            )
        return columns

    def require_complete(self, columns: Columns) -> Bounds:
        """Bounds of columns of numbers, none of which may be missing."""
        for column in columns:
            if column.missing:
                raise ParameterError(
                    f"{self.schema.path}: column {column.name!r} may be missing, which «question» {self.question} "
                    "cannot use: use «question» everything, means, covariance or correlation, or remove missing = "
                    "true; a missing value is then an error, unless «missing» midpoint is given.",
                    parameter="columns",
                )
        return self.schema.bounds(columns)

    def check_model(self) -> None:
        """Raise unless target and predictors are those of a regression, where one is asked for."""
        if self.question != "regression":
            return
        if self.target is None:
            if self.on is not None:
                raise ParameterError("«target» must be given with «on»: the number that is explained.")
            return
        columns = self.choose_columns()
        self.schema.choose([self.target], "«target»")
        features = self.on or [name for name in columns.names if name != self.target]
        if not features or self.target in features:
            raise ParameterError("«on» must name at least one column, and not the «target».")
        if self.target not in [column.name for column in columns.numbers]:
            raise ParameterError(f"«target» must be a column of numbers, got {show(self.target)} instead.")

    def weigh(self, names: Sequence[str]) -> tuple[tuple[str, float], ...]:
        """The weights of columns, which must be among `names`."""
        option = OPTION["importance"]
        pairs: tuple[tuple[str, float], ...] = tuple(self.importance or ())
        for name, weight in pairs:
            if name not in names:
                known = ", ".join(names[:20])
                raise option.error(f"must be NAME=NUMBER,... with names among {known}; got {name!r} instead.")
            if not option.at_least <= weight <= option.at_most:
                raise option.error(
                    f"must be positive, from {option.at_least:g} to {option.at_most:g}, for every feature."
                )
        return pairs


def check_option(option: Option, value: Any) -> None:
    """Raise a `ParameterError` unless a value is one of the option's choices, or a number within its limits."""
    if value is None and option.default is None and not option.required:
        return
    if option.choices and value not in option.choices:
        raise option.error(f"must be one of {', '.join(option.choices)}, got {show(value)} instead.")
    if option.kind == "integer":
        most = None if option.at_most == math.inf else int(option.at_most)
        check_integer(value, f"«{option.name}»", at_least=int(option.at_least), at_most=most)
    if option.kind == "number":
        limits = {name: getattr(option, name) for name in ("above", "at_least", "below", "at_most")}
        check_number(value, f"«{option.name}»", **limits)
