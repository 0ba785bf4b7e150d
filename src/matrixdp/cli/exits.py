"""Exit codes, errors as one or two lines on standard error, and interrupts during a release."""

import re
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import ExitStack, suppress
from enum import IntEnum
from types import FrameType
from typing import Any, Self

import click

from matrixdp import errors
from matrixdp.release.options import name_flag

_PASSWORD = re.compile(r"(?<=://)[^\s/@]*:\S*(?=@)|(?<=password=)[^\s&]+")
_LONG = re.compile(r"(\S{150})\S{200,}(\S{50})|(?m:^(.{2000}).{1000,}(.{500})$)")  # than usual paths and messages
_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name)]


class ExitCode(IntEnum):
    """Exit codes of the command."""

    SUCCESS = 0
    EXCEEDED = 1  # an audit found a claim that does not hold
    USAGE = 2  # an option, a schema, an output folder or a parameter is wrong; a full disk or too little memory
    DATA = 3  # the data file is missing, broken, or does not match the schema
    BUDGET = 4  # the ledger is missing, locked, damaged or overdrawn, or a request id had other options before
    INTERNAL = 5  # an error in matrixdp itself
    CLUSTER = 6  # its scheduler does not answer, or its workers were lost
    PENDING = 7  # the request was charged before, and its release is not in the ledger yet
    LOW = 8  # a budget is below the threshold of ``ledger metrics --alert-below``
    LATE = 9  # a step of a stream is missing for longer than ``stream status --alert-after``
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

    Arguments that the message repeats may be URLs, whose passwords are not shown, or names of any length, which are
    cut.
    """
    text = _LONG.sub(r"\1\3…\2\4", _PASSWORD.sub("***", text))
    if not text.replace("\n", "").isprintable():
        from matrixdp.display import make_visible  # which needs NumPy

        text = make_visible(text, keep="\n")
    with suppress(OSError):
        sys.stderr.write(text)


def find_exit_code(error: BaseException) -> ExitCode:
    """The exit code for an error."""
    if isinstance(error, errors.ChargedError):
        return find_exit_code(error.error)
    return next((code for kinds, code in _CODES.items() if isinstance(error, kinds)), ExitCode.INTERNAL)


_CODES: dict[Any, ExitCode] = {  # the first that fits
    (click.Abort, KeyboardInterrupt): ExitCode.INTERRUPTED,
    click.ClickException: ExitCode.USAGE,
    errors.DataError: ExitCode.DATA,
    errors.RequestPendingError: ExitCode.PENDING,
    errors.LedgerError: ExitCode.BUDGET,
    errors.EngineError: ExitCode.CLUSTER,
    (errors.MatrixDPError, OSError, MemoryError, UnicodeEncodeError): ExitCode.USAGE,
}


def describe_error(error: BaseException) -> str:
    """The message for an error, without private values."""
    if isinstance(error, errors.ChargedError):
        return f"{describe_error(error.error).replace('; nothing was released.', '.')}\n{error.recovery}"
    code = find_exit_code(error)
    if code is ExitCode.INTERRUPTED:
        return "interrupted; nothing was released."
    if code is ExitCode.INTERNAL:  # the message of an unforeseen error could contain private values
        return f"internal error ({type(error).__name__}); nothing was released. For a traceback: matrixdp --debug ..."
    if code is ExitCode.PENDING:
        return (
            f"{error}\nTo wait for it, run the same command again, with --wait SECONDS if it needs longer. To release "
            "again, at its price: the same command with a new --request."
        )
    if isinstance(error, MemoryError):
        return "there is not enough memory. Use fewer columns or records, or a machine with more memory."
    if isinstance(error, UnicodeEncodeError):
        return "a path or name cannot be written in the encoding of this locale. Set LC_ALL=C.UTF-8, or rename it."
    if isinstance(error, click.ClickException):
        usage, text = error.ctx if isinstance(error, click.UsageError) else None, error.format_message()
        if comma := re.search(r"'([0-9]*),([0-9]+)' is not a valid float", text):
            text = f"{text} Write a decimal point: {comma[1] or 0}.{comma[2]}"
        return text + ("" if usage is None else f"\nSee: {usage.command_path} --help")
    if isinstance(error, OSError):
        return f"{error.strerror or type(error).__name__}" + (f": {error.filename}" if error.filename else "")
    return errors.word_options(error.template, name_flag) if isinstance(error, errors.ParameterError) else str(error)


class DeferredInterrupts(ExitStack):
    """A context in which interrupts can be deferred: after the charge, a release should be finished.

    Until `defer` is called, Ctrl-C, SIGTERM, SIGHUP and SIGQUIT raise `KeyboardInterrupt`: nothing was charged then.
    From then on, `pending` notes that there was one. What was ignored before, as by ``nohup``, stays ignored.
    """

    def __init__(self, words: str = "already charged; finishing first.") -> None:
        super().__init__()
        self.words, self.pending, self._deferring = words, False, False

    def defer(self) -> None:
        """From now on, only note that there was an interrupt."""
        self._deferring = True

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if not self._deferring:
            raise KeyboardInterrupt
        if not self.pending:
            self.pending = True
            with suppress(OSError):
                sys.stderr.write(f"matrixdp: {self.words}\n")

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self.callback(signal.signal, number, signal.signal(number, self._handle))
        return super().__enter__()
