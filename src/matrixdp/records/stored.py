"""Records in files, mapped arrays or batches: where they are stored, and who processes them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from matrixdp.records.records import Records, Task
from matrixdp.records.work import Part, PartResult

T = TypeVar("T")


class Source(Protocol):
    """Where records are stored.

    Attributes
    ----------
    once, ordered : bool
        As for `Records`.
    """

    @property
    def once(self) -> bool: ...  # noqa: D102

    @property
    def ordered(self) -> bool: ...  # noqa: D102

    def parts(self) -> Iterable[Part]:
        """The parts, in the order of the records."""

    def all_columns(self) -> Sequence[str] | None:
        """Names of all columns, which fix their order in every part; None where there are no names."""

    def check_output(self, out: str | os.PathLike[str]) -> None:
        """As for `Records`."""


class Engine(Protocol):
    """Who processes the parts."""

    def run(
        self, task: Task[T], parts: Iterable[Part], columns: Sequence[str] | None, *, whole: bool = False
    ) -> Iterator[PartResult[T]]:
        """Results of the task on every part, in any order."""


@dataclass(frozen=True, eq=False)
class StoredRecords(Records):
    """Records of one source, processed by one engine."""

    source: Source
    engine: Engine
    columns: Sequence[str] | None = None
    progress: Callable[[int], object] | None = None

    @property
    def once(self) -> bool:  # type: ignore[override]
        """Whether the source can be read only once."""
        return self.source.once

    @property
    def ordered(self) -> bool:  # type: ignore[override]
        """Whether the order of the records is public."""
        return self.source.ordered

    def select(self, names: Sequence[str] | None) -> StoredRecords:
        """Only these columns are read."""
        return replace(self, columns=None if names is None else tuple(names))

    def map(self, task: Task[T], *, whole: bool = False) -> Iterator[T]:
        """Results of the task on every part, in any order."""
        columns = self.source.all_columns() if self.columns is None else self.columns
        for done in self.engine.run(task, self.source.parts(), columns, whole=whole):
            if self.progress is not None:
                self.progress(done.rows)
            yield done.result

    def check_output(self, out: str | os.PathLike[str]) -> None:
        """Raise a `ParameterError` if the folder `out` holds the records, or lies among them."""
        self.source.check_output(out)
