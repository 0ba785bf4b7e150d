"""Readers of file formats: column names, number of records, and Arrow record batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from matrixdp.domain.file_rules import DEFAULT_RULES, FileRules
from matrixdp.errors import DataError, MissingExtraError, install_hint
from matrixdp.records.tables import is_text_type

BATCH_ROWS = 1 << 16
_SPLIT_ROWS = 1 << 18  # row groups are combined into splits of at least this many rows
_MAX_TEXT_BYTES = 256 << 20  # of one column in a batch
_SUSPECT_BYTES, _SUSPECT_RATIO = 1 << 30, 1000  # a larger column chunk that was compressed more than this is refused
_SPLIT_BATCHES = 4  # of a Feather file; most writers make batches of 65,536 rows


def pyarrow() -> Any:
    """Import pyarrow; raise a `MissingExtraError` that says how to install it."""
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingExtraError(f"reading files requires pyarrow. {install_hint('files')}") from None
    return pa


class TableReader(ABC):
    """Reader of one file.

    Parameters
    ----------
    path : Path
    place : str
        Path as the caller gave it, for error messages.
    delimiter : str, optional
        Column separator of a text file; by default the one that its first line shows.
    rules : FileRules, optional
    """

    def __init__(self, path: Path, place: str, delimiter: str | None = None, rules: FileRules = DEFAULT_RULES) -> None:
        self.path = path
        self.place = place
        self.delimiter = delimiter
        self.rules = rules

    @abstractmethod
    def column_names(self) -> list[str]:
        """Return the names of the columns."""

    def fields(self) -> list[Any] | None:
        """Return the Arrow fields of the columns (names, types, nullable), or None if types are unknown."""
        return None

    @abstractmethod
    def count(self) -> int:
        """Return the number of records."""

    def splits(self) -> list[range | None]:
        """Return ranges of row groups that can be read independently; None is the whole file."""
        return [None]

    @abstractmethod
    def batches(self, columns: Sequence[str], row_groups: range | None, *, texts: Sequence[str] = ()) -> Iterator[Any]:
        """Yield record batches with the given columns.

        Those in `texts` are read from CSV as text, not as numbers; from other files they may have dictionaries.
        """

    def _decode_text(self, batch: Any, *, keep: Sequence[str] = ()) -> Any:
        """Replace dictionaries of text by their values, but for the columns `keep`.

        Raises a `DataError` where the values would fill the memory.
        """
        types = pyarrow().types
        from pyarrow import compute

        for i, (name, column) in enumerate(zip(batch.schema.names, batch.columns, strict=True)):
            if not types.is_dictionary(column.type) or not _is_text(column.type.value_type):
                continue
            lengths = compute.binary_length(column.dictionary)
            size = (compute.max(lengths).as_py() or 0) * len(column)
            if size > _MAX_TEXT_BYTES:  # all might be as long as the longest: count
                size = compute.sum(lengths.take(column.indices)).as_py() or 0
            if size > _MAX_TEXT_BYTES:
                raise DataError(
                    f"{self.place}: column {name!r} must have at most {_MAX_TEXT_BYTES >> 20} MiB of text in "
                    f"{len(column):,} rows, got {size >> 20:,} MiB instead. Encode it as shorter texts or as numbers."
                )
            if name not in keep:
                batch = batch.set_column(i, name, column.dictionary_decode())
        return batch

    def hint_missing_column(self, names: Sequence[str], columns: Sequence[str]) -> str:
        """Return the remedy to show when the file, which has columns `names`, lacks one of `columns`."""
        return f"It has {', '.join(names[:20])}{', ...' if len(names) > 20 else ''}. Correct the names or the file."


class ParquetReader(TableReader):
    """Reader of Parquet files."""

    def _file(self, dictionaries: Sequence[str] = ()) -> Any:
        from pyarrow import parquet

        # By default pyarrow buffers whole row groups ahead, which takes memory in proportion to their size.
        return parquet.ParquetFile(
            self.path, pre_buffer=False, buffer_size=1 << 20, read_dictionary=list(dictionaries) or None
        )

    def column_names(self) -> list[str]:
        """Return the names in the schema."""
        return [field.name for field in self.fields()]

    def fields(self) -> list[Any]:
        """Return the fields of the schema."""
        with self._file() as file:
            return list(file.schema_arrow)

    def count(self) -> int:
        """Return the number of rows in the footer."""
        with self._file() as file:
            return int(file.metadata.num_rows)

    def splits(self) -> list[range | None]:
        """Return ranges of row groups, with small row groups combined."""
        with self._file() as file:
            rows = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
        found: list[range | None] = []
        start = combined = 0
        for i, count in enumerate(rows, start=1):
            combined += count
            if combined >= _SPLIT_ROWS or i == len(rows):
                found.append(range(start, i))
                start, combined = i, 0
        return found or [None]

    def batches(self, columns: Sequence[str], row_groups: range | None, *, texts: Sequence[str] = ()) -> Iterator[Any]:
        """Yield batches of the row groups page by page, so that a row group need not fit into memory."""
        with self._file() as file:
            groups = list(range(file.metadata.num_row_groups) if row_groups is None else row_groups)
            self._check_sizes((file.metadata.row_group(i) for i in groups), set(columns))
            encoded = [name for name in columns if _is_text(file.schema_arrow.field(name).type)]
        with self._file(dictionaries=encoded) as file:
            for batch in file.iter_batches(
                batch_size=BATCH_ROWS, row_groups=groups, columns=list(columns), use_threads=row_groups is None
            ):
                yield self._decode_text(batch, keep=texts)

    def _check_sizes(self, groups: Iterable[Any], columns: set[str]) -> None:
        """Raise a `DataError` before a column is read that takes far more memory than the file suggests."""
        for group in groups:
            for j in range(group.num_columns):
                chunk = group.column(j)
                size = chunk.total_uncompressed_size
                wanted = chunk.path_in_schema in columns or chunk.path_in_schema.partition(".")[0] in columns
                if wanted and size > max(_SUSPECT_BYTES, _SUSPECT_RATIO * chunk.total_compressed_size):
                    raise DataError(
                        f"{self.place} has a column that takes {size >> 20:,} MiB in one row group when it is "
                        f"decompressed, more than {_SUSPECT_RATIO:,} times its size in the file. Write it with smaller "
                        "row groups."
                    )


class FeatherReader(TableReader):
    """Reader of Feather version 2, the Arrow IPC file format."""

    def _open(self, columns: Sequence[str] | None = None) -> Any:
        pa = pyarrow()
        # Not memory-mapped: the pages of a mapped file would count as memory of this process.
        reader = pa.ipc.open_file(pa.OSFile(str(self.path)))
        if columns is None:
            return reader
        fields = [reader.schema.get_field_index(name) for name in columns]
        options = pa.ipc.IpcReadOptions(included_fields=fields)
        return pa.ipc.open_file(pa.OSFile(str(self.path)), options=options)

    def column_names(self) -> list[str]:
        """Return the names in the schema."""
        return [field.name for field in self.fields()]

    def fields(self) -> list[Any]:
        """Return the fields of the schema."""
        return list(self._open().schema)

    def count(self) -> int:
        """Return the number of records of all batches, of which one column is read."""
        reader = self._open(self.column_names()[:1])
        return sum(reader.get_batch(i).num_rows for i in range(reader.num_record_batches))

    def splits(self) -> list[range | None]:
        """Return ranges of record batches."""
        count = self._open().num_record_batches
        starts = range(0, count, _SPLIT_BATCHES)
        return [range(start, min(start + _SPLIT_BATCHES, count)) for start in starts] or [None]

    def batches(self, columns: Sequence[str], row_groups: range | None, *, texts: Sequence[str] = ()) -> Iterator[Any]:
        """Yield the record batches of the file."""
        reader = self._open(columns)
        for i in range(reader.num_record_batches) if row_groups is None else row_groups:
            yield self._decode_text(reader.get_batch(i), keep=texts)


def _is_text(kind: Any) -> bool:
    return is_text_type(kind) or bool(pyarrow().types.is_binary(kind))
