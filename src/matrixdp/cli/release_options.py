"""What a release on the command line needs besides its design, and how its data are read."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from matrixdp.cli.interrupts import Deferral
from matrixdp.cli.progress import Progress
from matrixdp.privacy import Neighbours
from matrixdp.queries import MatrixQuery
from matrixdp.records import Records, open_records

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Job:
    """What a release needs besides its design."""

    data: tuple[str, ...]
    out: Path
    ledger: Path | None
    ledger_timeout: float
    dataset: str | None
    request: str | None
    missing: str
    delimiter: str | None
    workers: str | None
    force: bool
    as_json: bool


@dataclass(frozen=True, eq=False)
class Watched(Records):
    """Records with a bar that shows how far they are read; once they are, interrupts are put off."""

    job: Job
    query: MatrixQuery
    deferral: Deferral
    names: Sequence[str] | None = None

    @property
    def ordered(self) -> bool:  # type: ignore[override]
        """Whether no folder's name says what the records in it are like."""
        return self._open(None).ordered

    def select(self, names: Sequence[str] | None) -> Records:
        """Only these columns are read."""
        return replace(self, names=names)

    def map(self, task: Callable[[int, Iterable[Any]], T], *, whole: bool = False) -> Iterator[T]:
        """What the task makes of each part."""
        total: int = self.query.records  # type: ignore[attr-defined]
        quiet = self.job.as_json or self.query.neighbours is not Neighbours.REPLACE  # where their number is private
        with Progress(total, f"reading {Path(self.job.data[0]).name}", quiet=quiet) as progress:
            yield from self._open(progress.advance).select(self.names).map(task, whole=whole)
        self.deferral.begin()

    def _open(self, progress: Callable[[int], object] | None) -> Records:
        workers: Any = self.job.workers
        if workers is not None and workers.isdigit():
            workers = int(workers)
        logging.getLogger("distributed").setLevel(logging.CRITICAL)  # our own message says what there is to say
        return open_records(list(self.job.data), workers=workers, delimiter=self.job.delimiter, progress=progress)
