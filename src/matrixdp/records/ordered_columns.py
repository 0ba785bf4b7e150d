"""Records whose columns are put into another order where they are known by their positions alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from matrixdp.device import is_device_block
from matrixdp.records.ids import IdentifiedBlock
from matrixdp.records.records import Records
from matrixdp.records.tables import column_names, to_array

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class OrderedColumns(Records):
    """The same records; blocks whose columns have names stay as they are, since columns are selected by name.

    Parameters
    ----------
    parts : Records
    order : tuple of int
        Where each column was before.

    Examples
    --------
    >>> from matrixdp.records.records import Blocks
    >>> moved = OrderedColumns(Blocks(lambda: [[[1, 2, 3]]]), (1, 2, 0))
    >>> [array.tolist() for part in moved.map(lambda number, blocks: list(blocks)) for array in part]
    [[[2, 3, 1]]]
    """

    parts: Records
    order: tuple[int, ...]

    @property
    def once(self) -> bool:  # type: ignore[override]
        """Whether the records can be read only once."""
        return self.parts.once

    @property
    def ordered(self) -> bool:  # type: ignore[override]
        """Whether the order of the records is public."""
        return self.parts.ordered

    @property
    def read_options(self) -> Mapping[str, Any]:  # type: ignore[override]
        """How the records are read."""
        return self.parts.read_options

    def select(self, names: Sequence[str] | None, *, texts: Sequence[str] = ()) -> Records:
        """The same records with only the named columns."""
        return replace(self, parts=self.parts.select(names, texts=texts))

    def map(self, task: Callable[[int, Iterable[Any]], T], *, whole: bool = False) -> Iterator[T]:
        """Results of the task on the records with their columns in order."""
        return self.parts.map(_OrderedTask(task, self.order), whole=whole)

    def check_output(self, out: str | os.PathLike[str]) -> None:
        """Raise a `ParameterError` if the output folder contains the records, or is inside of theirs."""
        self.parts.check_output(out)


@dataclass(frozen=True, eq=False)
class _OrderedTask:
    task: Callable[[int, Iterable[Any]], Any]
    order: tuple[int, ...]

    def __call__(self, number: int, blocks: Iterable[Any]) -> Any:
        return self.task(number, map(self._move, blocks))

    def _move(self, block: Any) -> Any:
        if isinstance(block, IdentifiedBlock):
            return IdentifiedBlock(self._move(block.data), block.ids)
        if isinstance(block, Mapping) or column_names(block) is not None:
            return block
        if is_device_block(block):
            return block[:, list(self.order)]
        return to_array(block, len(self.order))[:, list(self.order)]
