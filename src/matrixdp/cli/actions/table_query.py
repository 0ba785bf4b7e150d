"""From the options of the command line to the moments of a table. Reads no private data."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from matrixdp.cli.actions.person_options import find_person
from matrixdp.domain.columns import Columns, YesNo
from matrixdp.domain.schema import Schema
from matrixdp.errors import ParameterError, show
from matrixdp.privacy import Neighbours
from matrixdp.queries import TableMoments

if TYPE_CHECKING:
    from matrixdp.cli.actions.design_options import DesignOptions

SUMMARIES = ("means", "table", "everything")  # always from the moments of a table
MATRICES = ("covariance", "correlation")  # from the moments of a table where values may be missing, or by group
MODELS = ("components", "regression")  # likewise, unless they are fitted adaptively
_MEAN_SHARES = {"means": 0.5, "table": 0.05}  # what is best for them
_SHOWN = 6  # names in a message


def is_table_query(options: DesignOptions, schema: Schema) -> bool:
    """Whether the options name a query that is answered by the moments of a table."""
    if options.query in (*SUMMARIES, *MODELS):
        return True
    return options.query in MATRICES and (
        options.by is not None or any(column.missing for column in choose_columns(options, schema))
    )


def choose_columns(options: DesignOptions, schema: Schema) -> Columns:
    """The columns of --columns, or those of a regression; by default all of the schema."""
    if options.query != "regression" or options.on is None:
        return schema.choose(split_names(options.columns), "--columns")
    if options.columns is not None:
        raise ParameterError("--columns must be left out with --on, which names the columns of a regression.")
    names = split_names(options.on) or []
    return schema.choose([*names, *([] if options.target is None else [options.target])], "--on")


def choose_numbers(options: DesignOptions, schema: Schema, by: tuple[str, ...] = ()) -> Columns:
    """The columns that are chosen, all of which must hold numbers; those of `by` are not counted."""
    columns = choose_columns(options, schema)
    category = next((column for column in columns.categories if column.name not in by), None)
    if category is not None:
        kind = "yes/no" if isinstance(category, YesNo) else "a category"
        numbers = shlex.quote(",".join(column.name for column in columns.numbers[:_SHOWN]))
        choice = (
            f"choose columns of numbers (--columns {numbers})" if columns.numbers else "describe columns of numbers"
        )
        raise ParameterError(
            f"{schema.path}: column {category.name!r} is {kind}, which --query {options.query} cannot use: {choice}, "
            "or release all columns together (--query everything)."
        )
    if not columns.numbers:
        raise ParameterError(f"{schema.path}: --query {options.query} needs a column of numbers besides those of --by.")
    return columns


def require_complete(options: DesignOptions, schema: Schema, columns: Columns) -> None:
    """Raise a `ParameterError` if a column may be missing."""
    for column in columns:
        if column.missing:
            raise ParameterError(
                f"{schema.path}: column {column.name!r} may be missing, which --query {options.query} cannot use: use "
                "--query everything, means, covariance or correlation, or remove missing = true; a missing value is "
                "then an error, unless --missing midpoint is given."
            )


def build_table_query(options: DesignOptions, schema: Schema, records: int, neighbours: Neighbours) -> TableMoments:
    """The moments of the columns that the query needs."""
    if schema.radius is not None:
        raise ParameterError(
            f"{schema.path}: radius must be removed for --query {options.query}; it is for moments of numbers that are "
            "not missing."
        )
    if records < 2:
        raise ParameterError(f"records must be at least 2 for --query {options.query}, got {records} instead.")
    by = tuple(split_names(options.by) or ())
    columns = _choose(options, schema, by)
    if options.query == "means" and not columns.numbers:
        raise ParameterError(
            f"{schema.path}: no column holds numbers, and --query means needs one. For categories use --query "
            "everything, or --query table."
        )
    try:
        return TableMoments(
            columns,
            records,
            by,
            neighbours=neighbours,
            person=find_person(options, schema),
            mean_share=_MEAN_SHARES.get(options.query),
            importance=tuple(_parse_importance(options.importance, columns.without(by))),
        )
    except ParameterError as error:
        raise ParameterError(f"{schema.path}: {error}" if "by must" not in str(error) else f"--{error}") from None


def _choose(options: DesignOptions, schema: Schema, by: tuple[str, ...]) -> Columns:
    """The columns of the query, those of the groups among them."""
    for name in by:
        schema.choose([name], "--by")
        schema.category(name)
    if options.query == "table":
        if options.columns is not None:
            raise ParameterError("--columns must be left out for --query table: --cells names its columns.")
        cells = options.parse_cells()
        for name in cells:
            schema.category(name)
            if name in by:
                raise ParameterError(f"--by must name other columns than --cells, got {show(name)} in both.")
        columns = schema.require_columns()
        return Columns(tuple(columns[name] for name in (*by, *cells)))
    if options.query in MODELS:
        columns = choose_columns(options, schema)
    elif options.columns is None:
        columns = schema.require_columns()
    else:
        columns = schema.choose(list(dict.fromkeys([*(split_names(options.columns) or ()), *by])), "--columns")
    if options.query in MATRICES:
        choose_numbers(options, schema, by)
    return columns


def split_names(text: str | None) -> list[str] | None:
    """Names that are separated by commas."""
    return None if text is None else [name.strip() for name in text.split(",")]


def _parse_importance(text: str | None, columns: Columns) -> list[tuple[str, float]]:
    pairs = []
    for part in [] if text is None else text.split(","):
        name, mark, value = part.rpartition("=")
        name = name.strip()
        if not mark or name not in columns.names:
            known = ", ".join(columns.names[:20])
            raise ParameterError(
                f"--importance must be NAME=NUMBER,... with names among {known}; got {part!r} instead."
            )
        try:
            pairs.append((name, float(value)))
        except ValueError:
            raise ParameterError(f"--importance of {name} must be a number, got {value!r} instead.") from None
    return pairs
