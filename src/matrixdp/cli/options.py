"""What several commands have in common: options, help pages, and how they print."""

import json
import math
import os
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar

import click

from matrixdp.cli import discard_buffer
from matrixdp.release.options import OPTION, STREAM_OPTION, json_name, name_flag

F = TypeVar("F", bound=Callable[..., Any])

PATH = click.Path(path_type=Path)
_REQUESTED = {json_name(name) for name in OPTION}


class LedgerType(click.Path):
    """The path of a ledger, or the URL of one in PostgreSQL, which is shown without its password."""

    name = "ledger"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """A path, or a `PostgresURL`."""
        if isinstance(value, str) and value.lower().startswith(("postgres:", "postgresql:")):
            from matrixdp.ledger.location import parse_location  # imports NumPy, which is slow

            return parse_location(value)
        return super().convert(value, param, ctx)


class SchemaType(click.Path):
    """The path of a schema, which a command gets as a `Schema`."""

    name = "schema"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The schema at a path."""
        from matrixdp.domain.schema_file import read_schema  # imports NumPy, which is slow

        return read_schema(Path(os.fsdecode(super().convert(value, param, ctx))))


LEDGER, SCHEMA = LedgerType(path_type=Path), SchemaType(path_type=Path)


def combine_options(*options: Callable[[F], F]) -> Callable[[F], F]:
    """One decorator that adds several options to a command, listed in this order."""
    return lambda function: reduce(lambda made, option: option(made), reversed(options), function)


def split_request(values: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values that `Request.parse` takes, and the other values."""
    asked = {name: value for name, value in values.items() if name in _REQUESTED}
    return asked, {name: value for name, value in values.items() if name not in _REQUESTED}


def text_option(flag: str, **attributes: Any) -> Callable[[F], F]:
    """An option whose text a ledger can store, so that bytes that are not UTF-8 are refused, and that is not empty.

    `Request.parse` would read an empty text as an option that was left out.
    """

    def check(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
        if isinstance(value, str) and not (value and value.isprintable()):
            rule = "it must be printable text in UTF-8, and not empty"
            raise click.BadParameter(f"{rule}, got {value!r}.", context, parameter)
        return value

    return click.option(flag, callback=check, **attributes)


author_options = combine_options(
    text_option("--actor", help="Who does this; recorded in the ledger. [default: user@host]"),
    text_option("--purpose", help="What it is for; recorded in the ledger."),
)

charge_options = combine_options(
    author_options,
    click.option(
        "--anchor-to",
        type=PATH,
        help="File to which the number and hash of the charge are appended, so that a roll-back of the ledger shows.",
    ),
)


def ledger_options(use: str, pays: str) -> Callable[[F], F]:
    """The options that name a ledger, one of its data sets, and the allowance that `pays`; `use` explains --ledger."""
    return combine_options(
        click.option("--ledger", type=LEDGER, metavar="PATH|URL", help=use),
        text_option("--dataset", help="Name of the data set in the ledger."),
        text_option("--allowance", help=f"The allowance of the data set that {pays}. [default: what is not allotted]"),
    )


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
sql_option = click.option("--sql", metavar="QUERY", help="Query whose rows are the table; DATA is then a database.")

file_options = combine_options(
    click.option(
        "--workers",
        metavar="NUMBER|ADDRESS",
        help="Number of threads, or the scheduler of a Dask cluster (tcp://host:8786). [default: one thread per core]",
    ),
    sql_option,
)


def request_option(name: str) -> Callable[[F], F]:
    """The option of the command line that `matrixdp.release.options` declares for a field of a request or a stream."""
    option = OPTION.get(name) or STREAM_OPTION[name]
    kind = click.Choice(option.choices) if option.choices else click.Path() if name == "points" else None
    attributes: dict[str, Any] = {
        "type": kind or {"number": float, "integer": int}.get(option.kind),
        "required": option.required,
        "metavar": option.metavar or None,
        "help": option.help,
        "default": option.default,
    }
    return text_option(name_flag(name), **attributes)


epsilon_option, delta_option = request_option("epsilon"), request_option("delta")
method_options = combine_options(*map(request_option, ("method", "target", "on")))
schema_option = click.option("--schema", type=SCHEMA, required=True, help="TOML file: what is public about the data.")
_LATER = ("method", "target", "on", "missing", "id")  # are listed after those of a design, or not taken by all
design_options = combine_options(schema_option, *[request_option(name) for name in OPTION if name not in _LATER])


# Help pages and output


class Command(click.Command):
    """A command whose help ends with an example."""

    example_title = "Example"

    def __init__(self, *arguments: Any, example: str = "", **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.example = example

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the example, whose lines click would wrap, and the epilog."""
        if self.example:
            with formatter.section(self.example_title):
                for line in self.example.splitlines():
                    formatter.write(f"{'':>{formatter.current_indent}}{line}\n")
        super().format_epilog(ctx, formatter)


class Group(Command, click.Group):
    """Commands in the order in which they were added, with an example of how they are used together."""

    command_class = Command
    example_title = "Typical workflow"

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@contextmanager
def output_after_work() -> Iterator[None]:
    """Print what a command has done; a standard output that is full or closed is noted, but is not an error then."""
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        discard_buffer(sys.stdout)
        with suppress(OSError):
            reason = error.strerror or type(error).__name__
            click.echo(f"matrixdp: done, but standard output could not be written: {reason}.", err=True)


def echo_json(content: Any) -> None:
    """Print `content` as `write_json` does."""
    click.echo(write_json(content))


def write_json(content: Any) -> str:
    """Content as JSON, with null for NaN and infinities."""

    def replace(part: Any) -> Any:
        if isinstance(part, dict):
            return {name: replace(value) for name, value in part.items()}
        if isinstance(part, list):
            return [replace(value) for value in part]
        return None if isinstance(part, float) and not math.isfinite(part) else part

    return json.dumps(replace(content), indent=2, allow_nan=False)


def echo_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows of texts in aligned columns under a header."""
    from matrixdp.display import format_table

    click.echo(format_table(header, rows))


def echo_section(title: str, text: str) -> None:
    """Print a text under a title, after an empty line."""
    click.echo(f"\n{click.style(title, bold=True)}\n{text}")


def wrap_text(text: str) -> str:
    """A sentence in lines of at most 118 characters, indented by two."""
    return textwrap.fill(text, 118, initial_indent="  ", subsequent_indent="  ")


@contextmanager
def show_progress(records: int, label: str, *, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A function that adds to the number of records that were read, for a progress bar on standard error.

    The bar is shown on a terminal, unless `quiet`. It ends when all `records` were read, also if they are read again.
    """
    bar: Any = click.progressbar(length=records, label=label, file=sys.stderr)

    def advance(more: int) -> None:
        if bar.finished:
            return
        if not bar.entered:
            stack.enter_context(bar)
        bar.update(more)
        if bar.finished:
            stack.close()

    with ExitStack() as stack:
        yield (lambda _: None) if quiet or not sys.stderr.isatty() else advance
