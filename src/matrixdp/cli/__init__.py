"""The command line: from a table to a private matrix, without writing code.

Each command is in the module of its name, or in `extras`. So that ``matrixdp --help`` is quick, functions import what
is slow to import, such as NumPy; `design_text` and `release_text` print what two of the commands found.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import TextIO


def main() -> None:
    """Run the console script; without click, name the extra to install and exit with code 2."""
    try:
        import click  # noqa: F401
    except ImportError:
        from matrixdp.errors import install_hint

        sys.stderr.write(f"matrixdp: the command line needs click. {install_hint('cli')}\n")
        raise SystemExit(2) from None
    from matrixdp.cli.main import run

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # None if it is closed
            stream.reconfigure(errors="backslashreplace")  # an encoding without ± must not stop a command
    code = run()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            discard_buffer(stream)  # otherwise Python tries again when it ends, and exits with code 120
    sys.exit(code)


def discard_buffer(stream: TextIO) -> None:
    """Redirect a stream that cannot be written to the null device, so that its buffer does not fail at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
