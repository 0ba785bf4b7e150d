"""Exit codes, errors as one or two lines on standard error, and interrupts during a release.

====  =================================================================================
0     success
1     exceeded: an audit found a claim that does not hold
2     usage: an option, a schema, an output folder or a parameter of the design is wrong;
      a full disk or too little memory
3     data: the data file is missing, broken, or does not match the schema
4     budget: the ledger is missing, locked, damaged, or would be overdrawn, or a request id had other options before
5     internal: an error in matrixdp itself
6     cluster: its scheduler does not answer, or its workers were lost
7     pending: the request was charged before, and its release is not in the ledger yet
8     low: a budget is below the threshold of ``ledger metrics --alert-below``
130   interrupted
====  =================================================================================
"""

from __future__ import annotations

import re
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from enum import IntEnum
from types import FrameType, TracebackType
from typing import Any, Self

import click

from matrixdp.errors import (
    ChargedError,
    DataError,
    EngineError,
    LedgerError,
    MatrixDPError,
    ParameterError,
    RequestPendingError,
    word_options,
)
from matrixdp.release.options import OPTION

_PASSWORD = re.compile(r"(?<=://)[^\s/@]*:\S*(?=@)|(?<=password=)[^\s&]+")
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class ExitCode(IntEnum):
    """Exit codes of the command."""

    SUCCESS = 0
    EXCEEDED = 1
    USAGE = 2
    DATA = 3
    BUDGET = 4
    INTERNAL = 5
    CLUSTER = 6
    PENDING = 7
    LOW = 8
    INTERRUPTED = 130


def run_safely(command: Callable[[], object], *, debug: bool) -> int:
    """Run a command and return its exit code; an error is printed in one or two lines, with a traceback if `debug`."""
    try:
        code = command()
    except SystemExit:
        raise
    except BaseException as error:
        if debug and not isinstance(error, KeyboardInterrupt | click.Abort):
            _write_error(traceback.format_exc())
        if isinstance(error, click.exceptions.NoArgsIsHelpError):
            _write_error(f"{error.format_message()}\n")
        else:
            _write_error(f"matrixdp: {describe_error(error)}\n")
        return find_exit_code(error)
    return code if isinstance(code, int) else ExitCode.SUCCESS


def _write_error(text: str) -> None:
    """Write to standard error, which may be full or closed; names of files and columns cannot control the terminal.

    Arguments that the message repeats may be URLs. Their passwords are not shown.
    """
    text = _PASSWORD.sub("***", text)
    if not text.replace("\n", "").isprintable():
        from matrixdp.display import make_visible  # which needs NumPy

        text = make_visible(text, keep="\n")
    with suppress(OSError):
        sys.stderr.write(text)


def find_exit_code(error: BaseException) -> ExitCode:
    """The exit code for an error.

    Examples
    --------
    >>> find_exit_code(DataError("no records")).name
    'DATA'
    """
    match error:
        case ChargedError():
            return find_exit_code(error.error)
        case click.Abort() | KeyboardInterrupt():
            return ExitCode.INTERRUPTED
        case click.ClickException():
            return ExitCode.USAGE
        case DataError():
            return ExitCode.DATA
        case RequestPendingError():
            return ExitCode.PENDING
        case LedgerError():
            return ExitCode.BUDGET
        case EngineError():
            return ExitCode.CLUSTER
        case MatrixDPError() | OSError() | MemoryError():
            return ExitCode.USAGE
    return ExitCode.INTERNAL


def describe_error(error: BaseException) -> str:
    """The message for an error, without private values."""
    if isinstance(error, ChargedError):
        return f"{describe_error(error.error).replace('; nothing was released.', '.')}\n{error.recovery}"
    code = find_exit_code(error)
    if code is ExitCode.INTERRUPTED:
        return "interrupted; nothing was released."
    if code is ExitCode.PENDING:
        return (
            f"{error}\nTo wait for it, run the same command again, with --wait SECONDS if it needs longer. To release "
            "again, at its price: the same command with a new --request."
        )
    if isinstance(error, MemoryError):
        return "there is not enough memory. Use fewer columns or records, or a machine with more memory."
    if isinstance(error, click.ClickException):
        usage = error.ctx if isinstance(error, click.UsageError) else None
        return error.format_message() + ("" if usage is None else f"\nSee: {usage.command_path} --help")
    if isinstance(error, OSError):
        return f"{error.strerror or type(error).__name__}" + (f": {error.filename}" if error.filename else "")
    if code is ExitCode.INTERNAL:
        # The message of an unforeseen error could contain private values.
        return f"internal error ({type(error).__name__}); nothing was released. For a traceback: matrixdp --debug ..."
    return word_options(error.template, name_flag) if isinstance(error, ParameterError) else str(error)


def name_flag(option: str) -> str:
    """An option of a request as it is written on the command line."""
    name = OPTION[option].public_name if option in OPTION else option
    return f"--{name.replace('_', '-')}"


class DeferredInterrupts:
    """A context in which interrupts can be deferred: after the charge, a release should be finished.

    Before `defer` is called, Ctrl-C and SIGTERM raise `KeyboardInterrupt`: nothing has been charged then.

    Attributes
    ----------
    pending : bool
        Whether an interrupt was deferred.
    """

    def __init__(self) -> None:
        self.pending = False
        self._deferring = False
        self._previous: Any = None
        self._previous_terminate: Any = None

    def defer(self) -> None:
        """From now on, only note that there was an interrupt."""
        if not self._deferring and threading.current_thread() is threading.main_thread():
            self._previous = [signal.signal(number, self._note) for number in _SIGNALS]
            self._deferring = True

    def _note(self, number: int, frame: FrameType | None) -> None:
        if not self.pending:
            with suppress(OSError):
                sys.stderr.write("matrixdp: already charged; finishing first.\n")
        self.pending = True

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._previous_terminate = signal.signal(signal.SIGTERM, _raise_interrupt)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._deferring:
            for number, handler in zip(_SIGNALS, self._previous, strict=True):
                signal.signal(number, handler)
        if self._previous_terminate is not None:
            signal.signal(signal.SIGTERM, self._previous_terminate)


def _raise_interrupt(*_: Any) -> None:
    raise KeyboardInterrupt
