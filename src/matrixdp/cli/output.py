"""Help pages, and what commands print: JSON, tables, sections and a progress bar."""

from __future__ import annotations

import json
import math
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import click

from matrixdp.cli import discard_buffer

if TYPE_CHECKING:
    from matrixdp.privacy import Privacy


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
        """Names of the commands in the order in which they were added."""
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


def warn_about_delta(privacy: Privacy, records: int | None) -> None:
    """Warn on standard error, before anything is charged, if delta is above one over the number of records."""
    from matrixdp.privacy import describe_large_delta

    message = "" if records is None else describe_large_delta(privacy, records)
    if message:
        click.echo(f"matrixdp: {click.style('warning:', bold=True)} {message}", err=True)


def wrap_text(text: str) -> str:
    """A sentence in lines of at most 118 characters, indented by two."""
    return textwrap.fill(text, 118, initial_indent="  ", subsequent_indent="  ")


def echo_json(content: Any) -> None:
    """Print `content` as JSON, with null for NaN and infinities."""
    click.echo(json.dumps(replace_nonfinite(content), indent=2, allow_nan=False))


def echo_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows of texts in aligned columns under a header."""
    from matrixdp.display import format_table

    click.echo(format_table(header, rows))


def echo_section(title: str, text: str) -> None:
    """Print a text under a title, after an empty line."""
    click.echo(f"\n{click.style(title, bold=True)}\n{text}")


def replace_nonfinite(content: Any) -> Any:
    """JSON content with None for NaN and infinities."""
    if isinstance(content, dict):
        return {name: replace_nonfinite(value) for name, value in content.items()}
    if isinstance(content, list):
        return [replace_nonfinite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


@contextmanager
def show_progress(records: int, label: str, *, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A function that adds to the number of records that were read, for a progress bar on standard error.

    The bar is shown on a terminal, unless `quiet`. It ends when all `records` were read, also if they are read again.
    """
    done, start = 0, time.monotonic()
    bar: Any = None

    def advance(more: int) -> None:
        nonlocal done, bar
        if bar is not None and done >= records:
            return
        if bar is None:
            made: Any = click.progressbar(length=records, label=label, file=sys.stderr, item_show_func=format_rate)
            bar = stack.enter_context(made)
        done += more
        bar.update(more)
        if done >= records:
            stack.close()

    def format_rate(_: object) -> str:
        return f"{done / max(time.monotonic() - start, 1e-3):,.0f} rows/s"

    with ExitStack() as stack:
        yield (lambda _: None) if quiet or not sys.stderr.isatty() else advance
