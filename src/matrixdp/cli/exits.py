"""How a command ends: exit codes, and errors in one or two lines.

====  =================================================================================
0     done
2     usage: an option, a schema, an output folder or a parameter of the design is wrong
3     data: the data file is missing, broken, or does not fit the schema
4     budget: the ledger is missing, locked, damaged, or would be overdrawn
5     internal: a fault of matrixdp itself
6     cluster: its scheduler does not answer, or its workers were lost
130   interrupted
====  =================================================================================
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from enum import IntEnum

import click

from matrixdp.errors import DataError, EngineError, LedgerError, MatrixDPError


class Exit(IntEnum):
    """Exit codes."""

    DONE = 0
    USAGE = 2
    DATA = 3
    BUDGET = 4
    INTERNAL = 5
    CLUSTER = 6
    INTERRUPTED = 130


def code_of(error: BaseException) -> Exit:
    """The exit code for an error.

    Examples
    --------
    >>> code_of(DataError("no records")).name
    'DATA'
    """
    match error:
        case click.Abort() | KeyboardInterrupt():
            return Exit.INTERRUPTED
        case click.ClickException():
            return Exit.USAGE
        case DataError():
            return Exit.DATA
        case LedgerError():
            return Exit.BUDGET
        case EngineError():
            return Exit.CLUSTER
        case MatrixDPError() | OSError():
            return Exit.USAGE
    return Exit.INTERNAL


def guarded(command: Callable[[], object], *, debug: bool) -> int:
    """Run a command; whatever goes wrong is told on stderr, in one or two lines unless `debug`."""
    try:
        code = command()
    except BaseException as error:
        if isinstance(error, SystemExit):
            raise
        if debug and not isinstance(error, KeyboardInterrupt | click.Abort):
            traceback.print_exc()
        _tell(error)
        return code_of(error)
    return code if isinstance(code, int) else Exit.DONE


def _tell(error: BaseException) -> None:
    code = code_of(error)
    if code is Exit.INTERRUPTED:
        words = "interrupted; nothing was released."
    elif isinstance(error, click.ClickException):
        words = error.format_message()
        if isinstance(error, click.UsageError) and error.ctx is not None:
            words += f"\nSee: {error.ctx.command_path} --help"
    elif isinstance(error, OSError):
        words = f"{error.strerror or type(error).__name__}" + (f": {error.filename}" if error.filename else "")
    elif code is Exit.INTERNAL:
        # The message of an unforeseen error could hold private values.
        words = f"internal error ({type(error).__name__}); nothing was released. See where with: matrixdp --debug ..."
    else:
        words = str(error)
    sys.stderr.write(f"matrixdp: {words}\n")
