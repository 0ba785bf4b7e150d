"""The options of a release besides those of its design, and the records that they name."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from matrixdp.cli.actions.interrupts import DeferredInterrupts
from matrixdp.cli.actions.progress import Progress
from matrixdp.domain.file_rules import FileRules
from matrixdp.ledger.location import Location
from matrixdp.queries import MatrixQuery
from matrixdp.records import Records, open_records
from matrixdp.records.files import open_files

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class ReleaseOptions:
    """The options of a release besides those of its design, as they were given."""

    data: tuple[str, ...]
    out: Path
    ledger: Location | None
    ledger_timeout: float
    dataset: str | None
    request: str | None
    allowance: str | None
    wait: float
    actor: str | None
    purpose: str | None
    anchor_to: Path | None
    anchor_command: str | None
    missing: str
    delimiter: str | None
    workers: str | None
    force: bool
    as_json: bool
    report_progress: Callable[[float], object] | None = None
    """Called with the share of the records that were read, where their number is public."""


@dataclass(frozen=True, eq=False)
class MonitoredRecords(Records):
    """Records that show a progress bar while they are read; once all are read, interrupts are deferred."""

    options: ReleaseOptions
    query: MatrixQuery
    interrupts: DeferredInterrupts
    rules: FileRules
    names: Sequence[str] | None = None
    texts: Sequence[str] = ()

    @property
    def ordered(self) -> bool:  # type: ignore[override]
        """Whether the order of the records is independent of their values."""
        return self._open(None).ordered

    @property
    def read_options(self) -> Mapping[str, Any]:  # type: ignore[override]
        """How the values are read, where it is not the default."""
        options = self.options
        return open_files(options.data, delimiter=options.delimiter, rules=self.rules).read_options

    def select(self, names: Sequence[str] | None, *, texts: Sequence[str] = ()) -> Records:
        """The same records with these columns only."""
        return replace(self, names=names, texts=tuple(texts))

    def map(self, task: Callable[[int, Iterable[Any]], T], *, whole: bool = False) -> Iterator[T]:
        """Results of `task` on each part."""
        total: int = self.query.records  # type: ignore[attr-defined]
        # A bar would show the number of records; that of a person's rows is private even where that of people is not.
        private = not self.query.public_number or self.query.count_word == "people"
        label = f"reading {Path(self.options.data[0]).name}"
        report = None if private else self.options.report_progress
        with Progress(total, label, quiet=self.options.as_json or private, report=report) as progress:
            yield from self._open(progress.advance).select(self.names, texts=self.texts).map(task, whole=whole)
        self.interrupts.defer()

    def _open(self, progress: Callable[[int], object] | None) -> Records:
        options = self.options
        workers: Any = options.workers
        if workers is not None and workers.isdecimal() and len(workers) < 10:
            workers = int(workers)
        logging.getLogger("distributed").setLevel(logging.CRITICAL)  # an EngineError reports what went wrong
        return open_records(
            list(options.data), workers=workers, delimiter=options.delimiter, rules=self.rules, progress=progress
        )
