"""``matrixdp schema``: what is public about a table."""

from __future__ import annotations

from pathlib import Path

import click

from matrixdp.cli.options import PATH, delimiter_option, json_option, parse_delimiter
from matrixdp.cli.styles import Group


@click.group(cls=Group)
def schema() -> None:
    """Write and check what is public about a table."""


@schema.command("new", example="matrixdp schema new clinic.csv -o schema.toml")
@click.argument("data", type=PATH)
@click.option("-o", "--output", type=PATH, help="Where to write it. [default: standard output]")
@click.option("--force", is_flag=True, help="Replace a file that is there already.")
@delimiter_option
def new(data: Path, output: Path | None, force: bool, delimiter: str | None) -> None:
    """Write a template with the columns of DATA and empty bounds to fill in.

    Only the columns' names are read, which are taken to be public.
    """
    from matrixdp.cli.output import write_file
    from matrixdp.cli.schema_file import new_schema
    from matrixdp.records.files import open_files

    text = new_schema(open_files(data, delimiter=parse_delimiter(delimiter)).column_names(), data.name)
    if output is None:
        click.echo(text, nl=False)
        return
    write_file(output, text, option="output", keep=not force)
    click.echo(f"Wrote {output}. Fill in the bounds, then: matrixdp schema check {output}", err=True)


@schema.command("check", example="matrixdp schema check schema.toml --data clinic.csv")
@click.argument("path", metavar="SCHEMA", type=PATH)
@click.option("--data", type=PATH, help="A table that must have the schema's columns; only its names are read.")
@delimiter_option
@json_option
def check(path: Path, data: Path | None, delimiter: str | None, as_json: bool) -> None:
    """Check that SCHEMA is complete, and show it."""
    from matrixdp.cli.output import echo_json
    from matrixdp.cli.schema_file import read_schema
    from matrixdp.records.files import open_files
    from matrixdp.report.tables import table

    found = read_schema(path)
    if found.graph is None or found.columns:
        found.check()
    if data is not None:
        open_files(data, delimiter=parse_delimiter(delimiter)).require(list(found.columns))
    if as_json:
        echo_json(
            {
                "columns": {
                    name: {"categories": list(column.categories)}
                    if column.categories is not None
                    else {"lower": column.lower, "upper": column.upper}
                    for name, column in found.columns.items()
                },
                "radius": found.radius,
                "records": found.records,
                "nodes": None if found.graph is None else list(found.graph.nodes),
            }
        )
        return
    rows = [
        [name, "categories", str(len(column.categories))]
        if column.categories is not None
        else [name, f"{column.lower:g}", f"{column.upper:g}"]
        for name, column in found.columns.items()
    ]
    click.echo(f"{path} is complete.")
    if rows:
        click.echo(table(["column", "lower", "upper"], rows))
    if found.graph is not None:
        click.echo(f"  a graph on {len(found.graph.nodes)} nodes, weights up to {found.graph.weight:g}")
