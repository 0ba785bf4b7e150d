"""``matrixdp schema``: what is public about a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from matrixdp.cli import options as flags
from matrixdp.cli.exits import ExitCode
from matrixdp.cli.options import Command, Group

if TYPE_CHECKING:
    from matrixdp.domain.schema import Schema
    from matrixdp.records.checking import TableCheck


@click.group(cls=Group)
def schema() -> None:
    """Write and check a schema: what is public about a table."""


@schema.command("new", example="matrixdp schema new clinic.csv -o schema.toml")
@click.argument("data")
@click.option("-o", "--output", type=flags.PATH, help="File to write. [default: standard output]")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@click.option(
    "--delimiter",
    callback=lambda _context, _parameter, mark: "\t" if mark in ("tab", "\\t") else mark,
    help="Column separator of CSV files: one character, or 'tab'. [default: the one in the line of column names]",
)
@click.option("--sheet", help="Sheet of an Excel workbook, which the schema then names. [default: the first]")
@click.option("--header-row", type=click.IntRange(min=1), help="Row with the names. [default: the first below titles]")
@click.option("--encoding", help="Encoding of a text file, such as cp1252. [default: the one that the names show]")
@flags.sql_option
def new(data: str, output: Path | None, force: bool, sql: str | None, **given: Any) -> None:
    """Write a template of a schema for the table DATA.

    It has the columns of DATA with their types, and empty bounds and levels to fill in. Only the names and types of the
    columns are used, never their values, and how many cells of the first rows are filled, which shows where the names
    are. CSV has no types. They are assumed to be public.
    """
    from matrixdp.domain.file_rules import FileRules
    from matrixdp.domain.schema_file import make_template
    from matrixdp.records.files import open_files
    from matrixdp.records.heads import propose_rules
    from matrixdp.release.output_folder import write_file

    rules = {key: value for key, value in given.items() if value is not None}
    rules = propose_rules(open_files(data, rules=FileRules(**rules), sql=sql).files[0]) | rules
    text = make_template(open_files(data, rules=FileRules(**rules), sql=sql).fields(), Path(data).name, rules)
    if output is None:
        click.echo(text, nl=False)
        return
    write_file(output, text, option="output", overwrite=force)
    with flags.output_after_work():
        following = f"matrixdp check {data} --schema {output}"
        click.echo(f"Wrote {output}. Fill in types, bounds and levels, then run: {following}", err=True)


@click.command("check", cls=Command, example="matrixdp check clinic.csv --schema schema.toml")
@click.argument("data", nargs=-1, required=True)
@flags.schema_option
@flags.sql_option
@flags.json_option
def check(data: tuple[str, ...], schema: Schema, sql: str | None, as_json: bool) -> int:
    """List all that does not fit the schema in the table DATA, for the eyes of its owner.

    It reads all values, and shows rows, counts and examples of them, and what to write in the schema. Nothing is
    written or released. The exit code is 3 if a release would fail.
    """
    from matrixdp.records.checking import check_table
    from matrixdp.records.files import open_files

    schema.check()
    rows = open_files(data, rules=schema.rules, sql=sql).estimate()
    with flags.show_progress(rows, "checking", quiet=as_json or not rows) as progress:
        result = check_table(data, schema, sql=sql, progress=progress)
    if as_json:
        problems = [{**vars(problem), "write": dict(problem.write)} for problem in result.problems]
        flags.echo_json({"rows": result.rows, "facts": result.facts, "problems": problems, "entries": result.entries()})
    else:
        _print_check(result, schema.path)
    return ExitCode.DATA if result.stops else ExitCode.SUCCESS


def _print_check(result: TableCheck, path: Path) -> None:
    from matrixdp.display import format_table

    click.echo("For the owner of the data alone: this shows private values. Nothing was written or released.")
    click.echo("; ".join([f"{result.rows:,} rows", *result.facts]))
    for stops, title in ((True, "Problems that stop a release"), (False, "Worth a look")):
        chosen = [problem for problem in result.problems if problem.stops is stops]
        if not chosen:
            continue
        table = [["column", "problem", "rows", "first in row", "examples"]]
        for one in chosen:
            count, first = "" if one.rows is None else f"{one.rows:,}", ", ".join(map(str, one.first))
            table.append([one.column or "(file)", one.what, count, first, ", ".join(one.examples)])
        for i in (1, 4):  # texts are flush left
            width = max(len(row[i]) for row in table)
            table = [[*row[:i], row[i].ljust(width), *row[i + 1 :]] for row in table]
        flags.echo_section(title, format_table(table[0], table[1:]))
        for advice in dict.fromkeys(f"{one.column or 'file'}: {one.advice}" for one in chosen if one.advice):
            click.echo(flags.wrap_text(advice))
    if entries := result.entries():
        files = ["[files]", *entries.pop("[files]").splitlines()] if "[files]" in entries else []
        lines = [*files, *(f"{name}: {entry}" for name, entry in entries.items())]
        flags.echo_section(f"Write in {path}", "\n".join(f"  {line}" for line in lines))
    elif not result.stops:
        click.echo(f"No problems: a release can read all rows by {path}.")


@schema.command("check", example="matrixdp schema check schema.toml --data clinic.csv")
@click.argument("schema", metavar="SCHEMA", type=flags.SCHEMA)
@click.option("--data", help="A table that must have the schema's columns; only its header is read.")
@flags.json_option
def check_schema(schema: Schema, data: str | None, as_json: bool) -> None:
    """Check that SCHEMA is complete, and show it."""
    from matrixdp.domain.columns import describe_column
    from matrixdp.records.files import open_files

    schema.check()
    if data is not None:
        open_files(data, rules=schema.rules).require(schema.required_names())
    columns: dict[str, Any] = {}
    rows = []
    for column in schema.columns or ():
        (kind, values), rule = describe_column(column), schema.rules.date(column.name)
        facts = {name: value for name, value in vars(column).items() if name != "name"}
        columns[column.name] = {**({} if rule is None else {"meaning": rule.meaning}), "type": column.type, **facts}
        if rule is not None:
            kind, values = rule.kind, f"{values} {rule.meaning}"
        rows.append([column.name, kind, values, "allowed" if column.missing else "error"])
    graph, person = schema.graph, schema.person
    if as_json:
        protected = {"nodes": graph and list(graph.nodes), "person": person and vars(person)}
        flags.echo_json({"columns": columns, "radius": schema.radius, "records": schema.records, **protected})
        return
    click.echo(f"{schema.path} is complete.")
    if rows:
        flags.echo_table(["column", "type", "values", "missing"], rows)
    if graph is not None:
        click.echo(f"  a graph with {len(graph.nodes)} nodes, weights up to {graph.weight:g}")
        if graph.max_degree is not None:
            click.echo(f"  protects one node with all its edges, degrees up to {graph.max_degree:g}")
    if person is not None:
        counts = "counts once" if person.rows is None else f"has up to {person.rows} rows that count"
        click.echo(f"  protects one person with all their rows (column {person.column!r}); each {counts}")
