"""JSON and text files that commands write."""

from __future__ import annotations

import json
import math
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import click

from matrixdp.cli import discard_buffer
from matrixdp.privacy import Privacy, describe_large_delta


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
    message = "" if records is None else describe_large_delta(privacy, records)
    if message:
        click.echo(f"matrixdp: {click.style('warning:', bold=True)} {message}", err=True)


def wrap_text(text: str) -> str:
    """A sentence in lines of at most 118 characters, indented by two."""
    return textwrap.fill(text, 118, initial_indent="  ", subsequent_indent="  ")


def echo_json(content: Any) -> None:
    """Print `content` as JSON, with null for NaN and infinities."""
    click.echo(json.dumps(replace_nonfinite(content), indent=2, allow_nan=False))


def replace_nonfinite(content: Any) -> Any:
    """JSON content with None for NaN and infinities."""
    if isinstance(content, dict):
        return {name: replace_nonfinite(value) for name, value in content.items()}
    if isinstance(content, list):
        return [replace_nonfinite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content
