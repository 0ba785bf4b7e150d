"""Tables in files: CSV, Parquet and Feather, read block by block.

Errors name the file and the column, and never a value: messages of the readers themselves may quote the data, so they
are not passed on.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from matrixdp.cli.ahead import read_ahead
from matrixdp.cli.formats import CsvReader, FeatherReader, ParquetReader, TableReader, pyarrow
from matrixdp.errors import DataError

_ENTRIES = 1 << 20  # of a block: 8 MiB
_READERS: dict[str, type[TableReader]] = {
    ".csv": CsvReader,
    ".tsv": CsvReader,
    ".txt": CsvReader,
    ".parquet": ParquetReader,
    ".pq": ParquetReader,
    ".feather": FeatherReader,
    ".arrow": FeatherReader,
}


def open_source(path: Path, *, delimiter: str | None = None) -> Source:
    """The table at `path`, by the ending of its name; only its columns' names are read."""
    if not path.exists():
        raise DataError(f"there is no file {path}. Check the path.")
    if path.is_dir():
        raise DataError(f"{path} is a folder; give one file.")
    suffix = path.suffix.lower()
    if suffix not in _READERS:
        raise DataError(f"{path} must end in {', '.join(_READERS)}, which says how to read it.")
    if path.stat().st_size == 0:
        raise DataError(f"{path} is empty: it has neither columns nor records.")
    with _discreet(path):
        reader = _READERS[suffix](path, delimiter or ("\t" if suffix == ".tsv" else ","))
        names = reader.names()
    doubles = sorted({name for name in names if names.count(name) > 1})
    if doubles:
        first, second, *_ = (i for i, name in enumerate(names, start=1) if name == doubles[0])
        raise DataError(f"{path} has two columns with one name, {first} and {second}. Is its first line one of names?")
    return Source(path, reader, tuple(names))


@dataclass(frozen=True, eq=False)
class Source:
    """A table in a file."""

    path: Path
    reader: TableReader
    names: tuple[str, ...]

    def require(self, columns: Sequence[str]) -> None:
        """An error unless the table has the columns."""
        for name in columns:
            if name not in self.names:
                raise DataError(f"{self.path} has no column {name!r}. {self._hint(columns)}")

    def _hint(self, columns: Sequence[str]) -> str:
        if len(self.names) == 1 and isinstance(self.reader, CsvReader):
            for mark, word in ((";", "';'"), ("\t", "tab"), ("|", "'|'"), (",", "','")):
                if mark in self.names[0]:
                    return f"Its columns seem to be separated by {word}: say --delimiter {word}."
            return "It has a single column; if another character separates them, say --delimiter."
        if isinstance(self.reader, CsvReader) and not set(columns) & set(self.names):  # it may be a record
            return f"None of its {len(self.names)} columns is in the schema; is its first line one of names?"
        shown = ", ".join(self.names[:20]) + (", ..." if len(self.names) > 20 else "")
        return f"It has {shown}. Mend the schema or the file."

    def count(self) -> int:
        """Number of records."""
        with _discreet(self.path):
            return self.reader.count()

    def blocks(
        self, columns: Sequence[str], *, missing: str = "error", advance: Callable[[int], object] | None = None
    ) -> Iterator[np.ndarray[Any, Any]]:
        """Numbers of shape (some records, columns), in order, while the next block is read in the background.

        Parameters
        ----------
        columns : names
        missing : 'error' or 'midpoint'
            With 'error', an empty, infinite or not-a-number entry is an error that names its column.
        advance : callable, optional
            Told how many records each block had.
        """
        self.require(columns)
        with _discreet(self.path):
            for block in read_ahead(self._arrays(columns)):
                if missing == "error":
                    _require_finite(self.path, columns, block)
                yield block
                if advance is not None:
                    advance(len(block))

    def _arrays(self, columns: Sequence[str]) -> Iterator[np.ndarray[Any, Any]]:
        step = max(256, _ENTRIES // len(columns) // 256 * 256)
        for batch in self.reader.batches(columns, step):
            values = [_numbers(self.path, name, batch.column(name)) for name in columns]
            for start in range(0, batch.num_rows, step):
                block = np.empty((min(step, batch.num_rows - start), len(columns)))
                for j, column in enumerate(values):
                    block[:, j] = column[start : start + step]
                yield block

    def columns(self, columns: Sequence[str], *, text: bool = False) -> list[list[Any]]:
        """Whole columns as Python values, for tables of categories and edges; as text from CSV if asked for."""
        self.require(columns)
        with _discreet(self.path):
            batches = list(self.reader.batches(columns, 1 << 16, text=text))
            return [[value for batch in batches for value in batch.column(name).to_pylist()] for name in columns]


def _numbers(path: Path, name: str, column: Any) -> np.ndarray[Any, Any]:
    """A column's values as numbers, NaN where they are missing."""
    pa = pyarrow()
    kind = column.type
    if pa.types.is_boolean(kind) or pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
    elif not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind)):
        raise DataError(
            f"{path}: column {name!r} must hold numbers, but holds {kind}. Encode it as numbers, or take it out of "
            "the schema."
        )
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _require_finite(path: Path, columns: Sequence[str], block: np.ndarray[Any, Any]) -> None:
    flat = block.reshape(-1)
    with np.errstate(all="ignore"):
        if np.isfinite(flat @ flat):
            return
    bad = np.flatnonzero(~np.isfinite(block).all(axis=0))
    if bad.size:
        raise DataError(
            f"{path}: column {columns[int(bad[0])]!r} has an empty, NaN or infinite entry. Drop such records, or say "
            "--missing midpoint to put them in the middle of their bounds."
        )


@contextmanager
def _discreet(path: Path) -> Iterator[None]:
    """Errors of the reader, without what they quote from the data."""
    pa = pyarrow()
    try:
        yield
    except pa.ArrowCancelled:
        raise KeyboardInterrupt from None
    except UnicodeDecodeError:
        raise DataError(f"{path} is not encoded as UTF-8. Save it as UTF-8.") from None
    except csv.Error:
        raise DataError(f"{path} cannot be read as CSV. Check its quotes and line ends.") from None
    except OSError as error:
        reason = error.strerror if error.errno else "it is damaged or cut short"
        raise DataError(f"{path} cannot be read: {reason}.") from None
    except pa.ArrowException:
        raise DataError(f"{path} cannot be read: it is damaged, cut short, or not what its name says.") from None
