"""What ``matrixdp schema`` does."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from matrixdp.cli.actions.output import echo_json, output_after_work, write_file
from matrixdp.cli.actions.schema_file import Schema, read_schema
from matrixdp.cli.actions.schema_template import make_template
from matrixdp.display import format_table
from matrixdp.domain.columns import Column, Number, YesNo
from matrixdp.records.file_rules import DateRule, FileRules
from matrixdp.records.files import open_files


def write_template(data: Path, output: Path | None, *, delimiter: str | None, sheet: str | None, force: bool) -> None:
    """Write a schema with the names and types of the columns of `data`, and empty bounds and levels."""
    source = open_files(data, delimiter=delimiter, rules=FileRules(sheet=sheet))
    text = make_template(source.fields(), data.name, sheet)
    if output is None:
        click.echo(text, nl=False)
        return
    write_file(output, text, option="output", overwrite=force)
    with output_after_work():
        click.echo(
            f"Wrote {output}. Fill in types, bounds and levels, then run: matrixdp schema check {output}", err=True
        )


def check_schema(path: Path, data: Path | None, *, delimiter: str | None, as_json: bool) -> None:
    """Print a schema if it is complete, and if `data` has its columns."""
    schema = read_schema(path)
    if schema.graph is None or schema.columns is not None:
        schema.check()
    if data is not None:
        columns = [] if schema.columns is None else list(schema.columns.names)
        ids = [] if schema.person is None else [schema.person.column]
        open_files(data, delimiter=delimiter, rules=schema.rules).require([*columns, *ids])
    if as_json:
        echo_json(_collect_facts(schema))
    else:
        _print_schema(schema)


def _collect_facts(schema: Schema) -> dict[str, Any]:
    columns = (
        {}
        if schema.columns is None
        else {column.name: _column_facts(column, schema.rules.date(column.name)) for column in schema.columns}
    )
    return {
        "columns": columns,
        "radius": schema.radius,
        "records": schema.records,
        "nodes": None if schema.graph is None else list(schema.graph.nodes),
        "person": None if schema.person is None else asdict(schema.person),
    }


def _column_facts(column: Column, rule: DateRule | None) -> dict[str, Any]:
    if isinstance(column, Number):
        meaning = {} if rule is None else {"meaning": rule.meaning}
        return meaning | {"type": "number", "lower": column.lower, "upper": column.upper, "missing": column.missing}
    if isinstance(column, YesNo):
        return {"type": "yes/no", "missing": column.missing}
    levels = list(column.levels)
    return {"type": "category", "levels": levels, "other": column.other, "missing": column.missing}


def _print_schema(schema: Schema) -> None:
    click.echo(f"{schema.path} is complete.")
    if schema.columns is not None:
        rows = [[column.name, *_describe_column(column, schema.rules.date(column.name))] for column in schema.columns]
        click.echo(format_table(["column", "type", "values", "missing"], rows))
    if schema.graph is not None:
        click.echo(f"  a graph with {len(schema.graph.nodes)} nodes, weights up to {schema.graph.weight:g}")
        if schema.graph.max_degree is not None:
            click.echo(f"  protects one node with all its edges, degrees up to {schema.graph.max_degree:g}")
    if schema.person is not None:
        counts = "counts once" if schema.person.rows is None else f"has up to {schema.person.rows} rows that count"
        click.echo(f"  protects one person with all their rows (column {schema.person.column!r}); each {counts}")


def _describe_column(column: Column, rule: DateRule | None) -> tuple[str, str, str]:
    missing = "allowed" if column.missing else "error"
    if isinstance(column, Number):
        if rule is not None:
            return rule.kind, f"{column.lower:g} to {column.upper:g} {rule.meaning}", missing
        return "number", f"{column.lower:g} to {column.upper:g}", missing
    if isinstance(column, YesNo):
        return "yes/no", "2 levels", missing
    count = f"{len(column.levels):,} level{'s' * (len(column.levels) > 1)}"
    return "category", count + " and other" * column.other, missing
