"""Ctrl-C while a release is under way."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self


class Deferral:
    """Between the charge and the finished output an interrupt is put off: the budget is spent, so the work is done.

    Interrupts before `begin` end the command at once; nothing has been charged then.
    """

    def __init__(self) -> None:
        self.asked = False
        self._previous: Any = None
        self._begun = False

    def begin(self) -> None:
        """From now on an interrupt is noted only."""
        if not self._begun and threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._note)
            self._begun = True

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.asked = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._begun:
            signal.signal(signal.SIGINT, self._previous)
