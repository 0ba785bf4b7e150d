"""Arrays in files, mapped into memory, and batches that come one after the other."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from matrixdp.errors import DataError, ParameterError
from matrixdp.records.opening import OpenOptions, make_engine, register_source
from matrixdp.records.records import Blocks
from matrixdp.records.stored import StoredRecords
from matrixdp.records.tables import check_same_columns
from matrixdp.records.work import InMemoryPart, Part, sanitise_errors

_ENTRIES = 1 << 24  # of a part


@dataclass(frozen=True, eq=False)
class ArrayPart(Part):
    """Rows of an array in a file, which every process maps for itself."""

    path: str
    dtype: str
    shape: tuple[int, int]
    order: str
    offset: int
    rows: range

    @property
    def place(self) -> str:
        """The file's path."""
        return self.path

    def blocks(self, columns: Sequence[str] | None) -> Iterator[Any]:
        """All rows at once; they are read as they are used."""
        order: Any = self.order
        mapped: Any = np.memmap(self.path, self.dtype, "r", self.offset, self.shape, order)
        yield np.asarray(mapped[self.rows.start : self.rows.stop])


@dataclass(frozen=True, eq=False)
class MappedArray:
    """An array in a file, of shape (records, features)."""

    array: np.memmap[Any, Any]
    once = False
    ordered = True

    def all_columns(self) -> None:
        """An array has no names."""

    def check_output(self, out: str | os.PathLike[str]) -> None:
        """A single file cannot be mistaken for an output folder."""

    def parts(self) -> list[Part]:
        """Some rows each."""
        array: Any = self.array
        if array.ndim != 2 or array.dtype.kind not in "biuf":
            raise DataError("records must be a table of real numbers, got another array instead.")
        step = max(1, _ENTRIES // max(1, array.shape[1]))
        ranges = [range(start, min(start + step, len(array))) for start in range(0, len(array), step)]
        named = isinstance(array.filename, str | os.PathLike)
        if not named or not isinstance(array.base, mmap.mmap) or array.mode not in ("r", "r+"):
            # A piece of a map, one of a file without a name, or a private copy.
            return [
                InMemoryPart(str(array.filename or ""), (np.asarray(array[rows.start : rows.stop]),)) for rows in ranges
            ]
        order, path = "C" if array.flags.c_contiguous else "F", str(Path(str(array.filename)).absolute())
        return [ArrayPart(path, array.dtype.str, array.shape, order, array.offset, rows) for rows in ranges]


def open_array(path: Path) -> MappedArray:
    """The array in a NPY file."""
    try:
        return MappedArray(sanitise_errors(str(path), lambda: np.load(path, mmap_mode="r", allow_pickle=False)))
    except (EOFError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path} must be a NPY file of numbers; it is damaged or holds something else.") from None


class Batches:
    """Blocks from an iterator, which can be read once, or from an iterable that begins anew each time."""

    def __init__(self, batches: Iterable[Any]) -> None:
        self._batches = batches
        self.once = isinstance(batches, Iterator)
        self.ordered = True
        self._used = False

    def all_columns(self) -> None:
        """Blocks have the same columns in the same order, which `parts` checks."""

    def check_output(self, out: str | os.PathLike[str]) -> None:
        """Batches lie in no folder."""

    def parts(self) -> Iterator[Part]:
        """One a block, made as they are asked for."""
        if self._used and self.once:
            raise ParameterError("an iterator is used up after one pass. Give Blocks(function), or files.")
        self._used = True
        return (
            InMemoryPart(f"block {number}", (_kept(block),))
            for number, block in enumerate(check_same_columns(self._batches))
        )


def _kept(block: Any) -> Any:
    """A copy, since a block is done with when the next one is asked for; those of Arrow cannot be altered."""
    return block.copy() if hasattr(block, "copy") else block


def _is_npy_path(data: Any) -> bool:
    return isinstance(data, str | os.PathLike) and Path(data).suffix.lower() == ".npy"


@register_source(lambda data: isinstance(data, np.memmap | Iterator | Blocks) or _is_npy_path(data))
def _open(data: Any, options: OpenOptions) -> StoredRecords:
    source: MappedArray | Batches
    if _is_npy_path(data):
        source = open_array(Path(data))
    else:
        source = MappedArray(data) if isinstance(data, np.memmap) else Batches(data)
    return StoredRecords(source, make_engine(options.workers), progress=options.progress)
