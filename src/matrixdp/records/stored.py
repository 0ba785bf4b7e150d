"""`StoredRecords`: a source, which says where the records are, and an engine, which says who processes them."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from matrixdp.records.parts import Part, PartResult, unwrap_results
from matrixdp.records.records import Records, Task

T = TypeVar("T")


class Source(ABC):
    """Where records are stored, and how they are divided into parts."""

    @property
    def once(self) -> bool:
        """Whether the records can be read only once."""
        return False

    @property
    def ordered(self) -> bool:
        """Whether the order of the records is public."""
        return True

    @property
    def read_options(self) -> Mapping[str, Any]:
        """How the values are read, as JSON content: the public options that are not the default, by name."""
        return {}

    @abstractmethod
    def parts(self, columns: Sequence[str] | None, texts: Sequence[str] = ()) -> Iterable[Part]:
        """Divide the records into parts, in their order.

        Parts of files contain only `columns`, in this order; None keeps all, in the order of the first file. The
        columns `texts` of CSV files are read as text. Sources in which columns have no names ignore both arguments.
        """

    def check_output(self, out: str | os.PathLike[str]) -> None:  # noqa: B027  (most sources are not folders)
        """Raise a `ParameterError` if the output folder `out` contains the records, or is inside of their folder."""


class Engine(Protocol):
    """Runs tasks on parts."""

    def run(self, task: Task[T], parts: Iterable[Part], *, whole: bool = False) -> Iterator[PartResult[T]]:
        """Yield the result of `run_part` for each part, in any order; `whole` as for `Records.map`."""


@dataclass(frozen=True, eq=False)
class StoredRecords(Records):
    """Records of one source, processed by one engine.

    Parameters
    ----------
    source : Source
    engine : Engine
    columns : sequence of str, optional
        The columns that are read; by default all.
    progress : callable, optional
        Called with the number of records of each part when the part is done.
    texts : sequence of str
        The columns that are read as text where a file does not say their type.
    """

    source: Source
    engine: Engine
    columns: Sequence[str] | None = None
    progress: Callable[[int], object] | None = None
    texts: Sequence[str] = ()

    @property
    def once(self) -> bool:  # type: ignore[override]
        """Whether the records can be read only once."""
        return self.source.once

    @property
    def ordered(self) -> bool:  # type: ignore[override]
        """Whether the order of the records is public."""
        return self.source.ordered

    @property
    def read_options(self) -> Mapping[str, Any]:  # type: ignore[override]
        """How the values are read, where it is not the default."""
        return self.source.read_options

    def select(self, names: Sequence[str] | None, *, texts: Sequence[str] = ()) -> StoredRecords:
        """Return the same records with only the named columns; None keeps all."""
        return replace(self, columns=None if names is None else tuple(names), texts=tuple(texts))

    def map(self, task: Task[T], *, whole: bool = False) -> Iterator[T]:
        """Yield the result of `task` on each part, in any order."""
        parts = self.source.parts(self.columns, self.texts) if self.texts else self.source.parts(self.columns)
        return unwrap_results(self.engine.run(task, parts, whole=whole), self.progress)

    def check_output(self, out: str | os.PathLike[str]) -> None:
        """Raise a `ParameterError` if the output folder `out` contains the records, or is inside of their folder."""
        self.source.check_output(out)
