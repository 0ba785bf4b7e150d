"""A progress bar with rows per second and the time left, shown on terminals only."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

import click


class Progress:
    """A progress bar on standard error, if that is a terminal.

    Parameters
    ----------
    records : int
        Public number of records.
    label : str
        Text before the bar.
    quiet : bool
        Show nothing.
    """

    def __init__(self, records: int, label: str, *, quiet: bool = False) -> None:
        self._shown = sys.stderr.isatty() and not quiet
        self._records, self._label = records, label
        self._bar: Any = None
        self._done = 0
        self._start = time.monotonic()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def _open(self) -> None:
        if self._bar is None:
            bar: Any = click.progressbar(
                length=self._records, label=self._label, file=sys.stderr, item_show_func=lambda _: self._format_rate()
            )
            self._bar = self._stack.enter_context(bar)

    def advance(self, records: int) -> None:
        """Add to the number of records that were read; the bar ends when all were, also if they are read again."""
        if not self._shown:
            return
        self._open()
        self._done += records
        self._bar.update(records)
        if self._done >= self._records:
            self._stack.close()
            self._shown = False

    def _format_rate(self) -> str:
        return f"{self._done / max(time.monotonic() - self._start, 1e-3):,.0f} rows/s"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
