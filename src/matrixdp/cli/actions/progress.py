"""A progress bar with rows per second and the time left, shown on terminals only."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
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
    report : callable, optional
        Called with the share of the records that were read.
    """

    def __init__(
        self, records: int, label: str, *, quiet: bool = False, report: Callable[[float], object] | None = None
    ) -> None:
        self._shown = sys.stderr.isatty() and not quiet
        self._records, self._label, self._report = records, label, report
        self._bar: Any = None
        self._done = 0
        self._start = time.monotonic()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        if self._shown:
            bar: Any = click.progressbar(
                length=self._records, label=self._label, file=sys.stderr, item_show_func=lambda _: self._format_rate()
            )
            self._bar = self._stack.enter_context(bar)
        return self

    def advance(self, records: int) -> None:
        """Add to the number of records that were read."""
        self._done += records
        if self._bar is not None:
            self._bar.update(records)
        if self._report is not None:
            self._report(min(1.0, self._done / max(self._records, 1)))

    def _format_rate(self) -> str:
        return f"{self._done / max(time.monotonic() - self._start, 1e-3):,.0f} rows/s"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
