"""The command line: from a table to a private matrix, without writing code.

Each command is in the module of its name, or of a related one, or in `extras`. So that ``matrixdp --help`` is quick,
functions import what is slow to import, such as NumPy; `release_text` prints what two of the commands found.
"""

import io
import os
import sys
from contextlib import suppress
from typing import Any, TextIO


def main() -> None:
    """Run the console script; without click, name the extra to install and exit with code 2."""
    try:
        import click  # noqa: F401
    except ImportError:
        from matrixdp.errors import install_hint

        sys.stderr.write(f"matrixdp: the command line needs click. {install_hint('cli')}\n")
        raise SystemExit(2) from None
    from matrixdp.cli.main import run

    _prepare_streams()
    code = run()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            discard_buffer(stream)  # otherwise Python tries again when it ends, and exits with code 120
    sys.exit(code)


class _Output(io.FileIO):
    """Standard output, whose reader may leave: the rest is dropped, and the command ends with its own exit code."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            return len(data)
        except OSError as error:
            raise OSError(error.errno, error.strerror, "standard output") from None


def _prepare_streams() -> None:
    """Make the standard streams writable: an encoding without ±, a closed stream or pipe must not stop a command.

    A closed stream is opened on the null device. Otherwise the next file that is opened, such as the ledger, would have
    its number, and what is written to standard error would go there.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest number that is free
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8", closefd=False))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        settings: dict[str, Any] = {"encoding": sys.stdout.encoding, "line_buffering": sys.stdout.line_buffering}
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(_Output(1, "wb", closefd=False)), **settings)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def discard_buffer(stream: TextIO) -> None:
    """Redirect a stream that cannot be written to the null device, so that its buffer does not fail at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
