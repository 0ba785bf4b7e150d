"""Sources of arrays: a memory-mapped file, or blocks from an iterator."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from matrixdp.errors import DataError, ParameterError
from matrixdp.records.files import is_npy_path
from matrixdp.records.opening import OpenOptions, make_engine, register_source
from matrixdp.records.parts import InMemoryPart, Part, sanitise_errors
from matrixdp.records.records import Blocks, Source, StoredRecords
from matrixdp.records.tables import check_same_columns

_PART_ENTRIES = 1 << 24
_MAX_HEADER_BYTES = 10_000  # of a NPY file; NumPy parses no longer one, but reads it first


@dataclass(frozen=True, eq=False)
class ArrayPart(Part):
    """Some rows of an array in a file, which each process maps into its own memory."""

    path: str
    dtype: str
    shape: tuple[int, int]
    order: str
    offset: int
    rows: range

    @property
    def place(self) -> str:
        """Path of the file."""
        return self.path

    def blocks(self) -> Iterator[Any]:
        """Yield the rows as one memory-mapped array."""
        order: Any = self.order
        mapped: Any = np.memmap(self.path, self.dtype, "r", self.offset, self.shape, order)
        yield np.asarray(mapped[self.rows.start : self.rows.stop])


@dataclass(frozen=True, eq=False)
class MappedArray(Source):
    """A memory-mapped array of shape (records, features)."""

    array: np.memmap[Any, Any]

    def parts(self, columns: Sequence[str] | None, texts: Sequence[str] = ()) -> list[Part]:
        """Divide the rows evenly; an array has no column names."""
        array: Any = self.array
        if array.ndim != 2 or array.dtype.kind not in "biuf":
            raise DataError(
                "records must be a two-dimensional array of real numbers, got an array of "
                f"{array.ndim} dimensions and type {array.dtype} instead."
            )
        step = max(1, _PART_ENTRIES // max(1, array.shape[1]))
        ranges = [range(start, min(start + step, len(array))) for start in range(0, len(array), step)]
        named = isinstance(array.filename, str | os.PathLike)
        if not named or not isinstance(array.base, mmap.mmap) or array.mode not in ("r", "r+"):
            # A slice of a map, a copy-on-write map or a file without a name cannot be mapped again by its path.
            place = str(array.filename or "")
            return [InMemoryPart(place, (np.asarray(array[rows.start : rows.stop]),)) for rows in ranges]
        order, path = "C" if array.flags.c_contiguous else "F", str(Path(str(array.filename)).absolute())
        return [ArrayPart(path, array.dtype.str, array.shape, order, array.offset, rows) for rows in ranges]


def load_npy(path: Path) -> np.memmap[Any, Any]:
    """Map a NPY file into memory; raise a `DataError` if it is damaged, before anything of its claimed size is read."""
    try:
        with path.open("rb") as file:
            start = file.read(12)
        wide = start[6:7] != b"\x01"  # the version determines the size of the header's length
        if int.from_bytes(start[8 : 12 if wide else 10], "little") > _MAX_HEADER_BYTES:
            raise ValueError
        mapped: np.memmap[Any, Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError:
        raise
    except Exception:  # NumPy parses the header as Python, which can fail in many ways
        raise DataError(
            f"{path} must be a NPY file of numbers, but it is damaged or contains something else."
        ) from None
    return mapped


class BlockSource(Source):
    """Blocks from an iterator, which can be read once, or from an iterable, which can be read again."""

    def __init__(self, blocks: Iterable[Any]) -> None:
        self._blocks = blocks
        self._exhausted = False

    @property
    def once(self) -> bool:  # type: ignore[override]
        """Whether the blocks come from an iterator."""
        return isinstance(self._blocks, Iterator)

    @property
    def read_options(self) -> Mapping[str, Any]:  # type: ignore[override]
        """Those of `Blocks`."""
        return self._blocks.read_options if isinstance(self._blocks, Blocks) else {}

    def parts(self, columns: Sequence[str] | None, texts: Sequence[str] = ()) -> Iterator[Part]:
        """Yield each block as a part; tasks choose the columns."""
        if self._exhausted:
            raise ParameterError("an iterator can be read only once. Use Blocks(function), or files.")
        self._exhausted = self.once
        return (
            InMemoryPart(f"block {number}", (_copy(block),))
            for number, block in enumerate(check_same_columns(self._blocks))
        )


def _copy(block: Any) -> Any:
    """Copy a block, since its memory may be reused for the next one; Arrow tables are immutable."""
    if isinstance(block, Mapping):
        return {name: _copy(column) for name, column in block.items()}
    return block.copy() if hasattr(block, "copy") else block


@register_source(lambda data: isinstance(data, np.memmap) or is_npy_path(data))
def _open_array(data: Any, options: OpenOptions) -> StoredRecords:
    array = sanitise_errors(str(data), load_npy, Path(data)) if is_npy_path(data) else data
    return StoredRecords(MappedArray(array), make_engine(options.workers), progress=options.progress)


@register_source(lambda data: isinstance(data, Iterator | Blocks))
def _open_blocks(data: Any, options: OpenOptions) -> StoredRecords:
    return StoredRecords(BlockSource(data), make_engine(options.workers), progress=options.progress)
