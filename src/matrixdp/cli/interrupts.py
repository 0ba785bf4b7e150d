"""Ctrl-C, or a request to end, while a release is under way."""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any, Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Deferral:
    """Between the charge and the finished output an interrupt is put off: the budget is spent, so the work is done.

    Interrupts before `begin` end the command at once; nothing has been charged then.
    """

    def __init__(self) -> None:
        self.asked = False
        self._previous: Any = None
        self._terminate: Any = None
        self._begun = False

    def begin(self) -> None:
        """From now on an interrupt is noted only."""
        if not self._begun and threading.current_thread() is threading.main_thread():
            self._previous = [signal.signal(number, self._note) for number in _SIGNALS]
            self._begun = True

    def _note(self, number: int, frame: FrameType | None) -> None:
        if not self.asked:
            sys.stderr.write("matrixdp: already charged; finishing first.\n")
        self.asked = True

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._terminate = signal.signal(signal.SIGTERM, _interrupt)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._begun:
            for number, handler in zip(_SIGNALS, self._previous, strict=True):
                signal.signal(number, handler)
        if self._terminate is not None:
            signal.signal(signal.SIGTERM, self._terminate)


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt
