"""Ctrl-C and SIGTERM during a release."""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


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
