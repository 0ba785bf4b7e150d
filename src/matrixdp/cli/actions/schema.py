"""What ``matrixdp schema`` does."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from matrixdp.cli.actions.output import echo_json, output_after_work, write_file
from matrixdp.cli.actions.schema_file import Column, Schema, make_template, read_schema
from matrixdp.records.files import open_files
from matrixdp.report.tables import format_table


def write_template(data: Path, output: Path | None, *, delimiter: str | None, force: bool) -> None:
    """Write a schema with the names of the columns of `data` and empty bounds."""
    text = make_template(open_files(data, delimiter=delimiter).column_names(), data.name)
    if output is None:
        click.echo(text, nl=False)
        return
    write_file(output, text, option="output", overwrite=force)
    with output_after_work():
        click.echo(f"Wrote {output}. Fill in the bounds, then run: matrixdp schema check {output}", err=True)


def check_schema(path: Path, data: Path | None, *, delimiter: str | None, as_json: bool) -> None:
    """Print a schema if it is complete, and if `data` has its columns."""
    schema = read_schema(path)
    if schema.graph is None or schema.columns:
        schema.check()
    if data is not None:
        open_files(data, delimiter=delimiter).require(list(schema.columns))
    if as_json:
        echo_json(_collect_facts(schema))
    else:
        _print_schema(schema)


def _collect_facts(schema: Schema) -> dict[str, Any]:
    return {
        "columns": {
            name: {entry: value for entry, value in asdict(column).items() if value is not None}
            for name, column in schema.columns.items()
        },
        "radius": schema.radius,
        "records": schema.records,
        "nodes": None if schema.graph is None else list(schema.graph.nodes),
    }


def _print_schema(schema: Schema) -> None:
    click.echo(f"{schema.path} is complete.")
    if schema.columns:
        rows = [[name, *_describe_column(column)] for name, column in schema.columns.items()]
        click.echo(format_table(["column", "lower", "upper"], rows))
    if schema.graph is not None:
        click.echo(f"  a graph with {len(schema.graph.nodes)} nodes, weights up to {schema.graph.weight:g}")


def _describe_column(column: Column) -> tuple[str, str]:
    if column.categories is not None:
        return "categories", str(len(column.categories))
    return f"{column.lower:g}", f"{column.upper:g}"
