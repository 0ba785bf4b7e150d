"""Readers of the file formats: which pieces a file has, and batches of Arrow from some of them."""

from __future__ import annotations

import csv
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from matrixdp.errors import DataError, MissingExtraError

_CSV_BLOCK = 4 << 20
_ROWS = 1 << 16  # of a batch
_PIECE = 1 << 18  # rows that are worth a task of their own
_FEATHER_BATCHES = 4  # of 65,536 rows, as most writers make them


def pyarrow() -> Any:
    """The library, or an error with the remedy."""
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingExtraError("reading files needs pyarrow. Install it: pip install 'matrixdp[files]'") from None
    return pa


class TableReader(ABC):
    """Names, number of records, pieces and batches of one file."""

    def __init__(self, path: Path, place: str, delimiter: str) -> None:
        self.path = path
        self.place = place
        self.delimiter = delimiter

    @abstractmethod
    def names(self) -> list[str]:
        """The columns' names."""

    @abstractmethod
    def count(self) -> int:
        """The number of records."""

    def pieces(self) -> list[range | None]:
        """Ranges of row groups that can be read apart from each other; None is the whole file."""
        return [None]

    @abstractmethod
    def batches(self, columns: Sequence[str], piece: range | None = None, *, text: bool = False) -> Iterator[Any]:
        """Record batches with the given columns; `text` asks a CSV file for text."""


class ParquetReader(TableReader):
    """Parquet."""

    def _file(self) -> Any:
        from pyarrow import parquet

        # Reading ahead by whole row groups would take memory that grows with them.
        return parquet.ParquetFile(self.path, pre_buffer=False, buffer_size=1 << 20)

    def names(self) -> list[str]:
        """From the schema."""
        with self._file() as file:
            return list(file.schema_arrow.names)

    def count(self) -> int:
        """From the footer."""
        with self._file() as file:
            return int(file.metadata.num_rows)

    def pieces(self) -> list[range | None]:
        """Row groups, small ones together."""
        with self._file() as file:
            rows = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
        found: list[range | None] = []
        start = gathered = 0
        for i, count in enumerate(rows, start=1):
            gathered += count
            if gathered >= _PIECE or i == len(rows):
                found.append(range(start, i))
                start, gathered = i, 0
        return found or [None]

    def batches(self, columns: Sequence[str], piece: range | None = None, *, text: bool = False) -> Iterator[Any]:
        """Page by page: neither a row group nor what lies ahead need fit into memory."""
        with self._file() as file:
            groups = None if piece is None else list(piece)
            yield from file.iter_batches(
                batch_size=_ROWS, row_groups=groups, columns=list(columns), use_threads=piece is None
            )


class FeatherReader(TableReader):
    """Feather version 2, which is Arrow's own file format."""

    def _open(self, columns: Sequence[str] | None = None) -> Any:
        pa = pyarrow()
        # Read, not mapped: the pages of a mapped file would count as memory of this process.
        reader = pa.ipc.open_file(pa.OSFile(str(self.path)))
        if columns is None:
            return reader
        fields = [reader.schema.get_field_index(name) for name in columns]
        options = pa.ipc.IpcReadOptions(included_fields=fields)
        return pa.ipc.open_file(pa.OSFile(str(self.path)), options=options)

    def names(self) -> list[str]:
        """From the schema."""
        return list(self._open().schema.names)

    def count(self) -> int:
        """Of all batches, with one column read."""
        reader = self._open(self.names()[:1])
        return sum(reader.get_batch(i).num_rows for i in range(reader.num_record_batches))

    def pieces(self) -> list[range | None]:
        """A few batches each."""
        count = self._open().num_record_batches
        starts = range(0, count, _FEATHER_BATCHES)
        return [range(start, min(start + _FEATHER_BATCHES, count)) for start in starts] or [None]

    def batches(self, columns: Sequence[str], piece: range | None = None, *, text: bool = False) -> Iterator[Any]:
        """As they are in the file."""
        reader = self._open(columns)
        for i in range(reader.num_record_batches) if piece is None else piece:
            yield reader.get_batch(i)


class CsvReader(TableReader):
    """Comma-separated values with one line of names at the top."""

    def names(self) -> list[str]:
        """From the first line; one that looks like a record is refused, and not shown."""
        with self.path.open(newline="", encoding="utf-8-sig") as file:
            names = next(csv.reader(file, delimiter=self.delimiter), [])
        if not any(name.strip() for name in names):
            raise DataError(f"{self.place} has no names of columns in its first line. Add them.")
        for name in names:
            for part in re.split(r"[,;\t|]", name):
                if _is_number(part):
                    raise DataError(
                        f"{self.place} must have the columns' names in its first line, but there is a number. Add them."
                    )
        return names

    def count(self) -> int:
        """By reading one column of the whole file as text."""
        return sum(batch.num_rows for batch in self.batches(self.names()[:1], text=True))

    def batches(self, columns: Sequence[str], piece: range | None = None, *, text: bool = False) -> Iterator[Any]:
        """Line by line, in blocks of a few megabytes."""
        pa = pyarrow()
        from pyarrow import csv as arrow_csv

        kind = pa.string() if text else pa.float64()
        convert = arrow_csv.ConvertOptions(
            include_columns=list(columns), column_types=dict.fromkeys(columns, kind), strings_can_be_null=not text
        )
        single = len(self.names()) == 1  # an empty line is then an empty entry
        parse = arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True, ignore_empty_lines=not single)
        read = arrow_csv.ReadOptions(block_size=_CSV_BLOCK)
        options = {"read_options": read, "parse_options": parse, "convert_options": convert}
        try:
            with arrow_csv.open_csv(str(self.path), **options) as reader:
                yield from reader
            return
        except pa.ArrowInvalid as error:
            found = self._named(str(error))
        raise found  # out here: otherwise it would carry the error that it replaces, which quotes the data

    def _named(self, message: str) -> DataError:
        """What is wrong, without the value that Arrow's message quotes."""
        if "Empty CSV" in message:
            return DataError(f"{self.place} is empty: it has neither columns nor records.")
        column = re.match(r"In CSV column #(\d+):.*conversion error", message, re.DOTALL)
        if column:
            name = self.names()[int(column[1])]
            return DataError(
                f"{self.place}: column {name!r} must hold numbers, but there is text in it. Encode it as numbers, "
                "mend the file, or take the column out of the schema."
            )
        if "Expected" in message and "columns" in message:
            return DataError(
                f"{self.place} has a line with more or fewer entries than its first line has names. Check the "
                "delimiter and the quotes."
            )
        return DataError(f"{self.place} cannot be read as CSV. Check the delimiter, quotes and encoding (UTF-8).")


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
