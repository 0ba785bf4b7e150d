"""Whose privacy a release protects: --person and --rows-per-person, or [person] in the schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matrixdp.checks import check_integer
from matrixdp.domain.person import Person
from matrixdp.domain.schema import Schema, quote_key
from matrixdp.errors import ParameterError

if TYPE_CHECKING:
    from matrixdp.cli.actions.design_options import DesignOptions

ROW_PER_RECORD = ("identity", "gram")  # whose answers have a row for each record


def find_person(options: DesignOptions, schema: Schema) -> Person | None:
    """The column of ids and how its rows count, or None where records are protected."""
    if options.query in ("adjacency", "laplacian"):
        if options.person is not None or options.rows_per_person is not None:
            raise ParameterError(
                f'--person must be left out for --query {options.query}: to protect a node, write unit = "node" and '
                "max_degree in [graph] of the schema."
            )
        return None
    given, rows = schema.person, options.rows_per_person
    if options.person is not None and given is not None and options.person != given.column:
        raise ParameterError(
            f"--person must be {given.column!r}, as {schema.path} says in [person], got {options.person!r} instead. "
            "Leave it out, or change the schema."
        )
    column = options.person if given is None else given.column
    if rows is not None:
        check_integer(rows, "rows (--rows-per-person)", at_least=1)
    if column is None:
        if rows is not None:
            raise ParameterError("--person must be given with --rows-per-person: the column that says whose a row is.")
        return None
    if given is not None and given.rows is not None:
        if rows not in (None, given.rows):
            raise ParameterError(
                f"--rows-per-person must be {given.rows}, as {schema.path} says in [person], got {rows} instead. "
                "Leave it out, or change the schema."
            )
        rows = given.rows
    if schema.columns is not None and column in schema.columns.names:
        raise ParameterError(
            f"{schema.path}: column {column!r} says whose each row is, and cannot be released as well. Remove "
            f"[columns.{quote_key(column)}]."
        )
    return Person(column, rows)


def counts_people(options: DesignOptions, person: Person | None) -> bool:
    """Whether the public number of records is one of people."""
    return person is not None and person.rows is None and options.query not in ROW_PER_RECORD


def require_number(options: DesignOptions, person: Person | None) -> None:
    """Raise a `ParameterError` where the number of records is private, so that it cannot be counted."""
    if person is not None and person.rows is not None and options.query not in ROW_PER_RECORD:
        raise ParameterError(
            "--records must be given with --rows-per-person: a public estimate of the number of rows that count, since "
            "the true number is private."
        )
