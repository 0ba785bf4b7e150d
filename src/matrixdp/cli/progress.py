"""A progress bar with rows a second and the time left, on a terminal, and nothing elsewhere."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

import click


class Progress:
    """Records done of a public number of records; on stderr, and only if that is a terminal."""

    def __init__(self, records: int, label: str, *, quiet: bool = False) -> None:
        self._shown = sys.stderr.isatty() and not quiet
        self._records, self._label = records, label
        self._bar: Any = None
        self._done = 0
        self._start = time.monotonic()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        if self._shown:
            bar: Any = click.progressbar(
                length=self._records, label=self._label, file=sys.stderr, item_show_func=lambda _: self._rate()
            )
            self._bar = self._stack.enter_context(bar)
        return self

    def advance(self, records: int) -> None:
        """Count more records as done."""
        if self._bar is not None:
            self._done += records
            self._bar.update(records)

    def _rate(self) -> str:
        return f"{self._done / max(time.monotonic() - self._start, 1e-3):,.0f} rows/s"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
