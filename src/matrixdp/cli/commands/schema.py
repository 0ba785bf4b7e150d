"""``matrixdp schema``: what is public about a table."""

from __future__ import annotations

from pathlib import Path

import click

from matrixdp.cli.options import PATH, delimiter_option, json_option
from matrixdp.cli.styles import Group


@click.group(cls=Group)
def schema() -> None:
    """Write and check a schema: what is public about a table."""


@schema.command("new", example="matrixdp schema new clinic.csv -o schema.toml")
@click.argument("data", type=PATH)
@click.option("-o", "--output", type=PATH, help="File to write. [default: standard output]")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@delimiter_option
@click.option("--sheet", help="Sheet of an Excel workbook, which the schema then names. [default: the first]")
def new(data: Path, output: Path | None, force: bool, delimiter: str | None, sheet: str | None) -> None:
    """Write a template of a schema for the table DATA.

    It has the columns of DATA with their types, and empty bounds and levels to fill in. Only the names and types of the
    columns are read, never their values; CSV has no types. They are assumed to be public.
    """
    from matrixdp.cli.actions.schema import write_template

    write_template(data, output, delimiter=delimiter, sheet=sheet, force=force)


@schema.command("check", example="matrixdp schema check schema.toml --data clinic.csv")
@click.argument("path", metavar="SCHEMA", type=PATH)
@click.option("--data", type=PATH, help="A table that must have the schema's columns; only its header is read.")
@delimiter_option
@json_option
def check(path: Path, data: Path | None, delimiter: str | None, as_json: bool) -> None:
    """Check that SCHEMA is complete, and show it."""
    from matrixdp.cli.actions.schema import check_schema

    check_schema(path, data, delimiter=delimiter, as_json=as_json)
