"""Tables in files: a class for each format, which gives column names, the number of records, and Arrow record batches.

Parquet and Feather files tell the types of their columns. Delimited text, plain or compressed, and Excel workbooks have
only names; their values are read by the rules of the schema (`file_values`). The separator of a text file is the one
that is given, or a tab for ``.tsv``, or else the one that the line of column names shows. The records never decide it.
"""

from __future__ import annotations

import contextlib
import csv
import datetime as dt
import io
import os
import re
import zipfile
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from matrixdp.domain.file_rules import DEFAULT_RULES, FileRules
from matrixdp.errors import DataError, import_extra
from matrixdp.records.parts import wrong_encoding
from matrixdp.records.tables import is_text_type, pa

_BATCH_ROWS = 1 << 16
_SPLIT_ROWS = 1 << 18  # row groups are combined into splits of at least this many rows
_MAX_TEXT_BYTES = 256 << 20  # of one column in a batch
_SUSPECT_BYTES, _SUSPECT_RATIO = 1 << 30, 1000  # a larger column chunk that was compressed more than this is refused
_LARGEST_BYTES = 4 << 30  # of an unpacked workbook
_BLOCK_BYTES, _LARGE_BLOCK = 4 << 20, 8 << 20
BadLine: TypeAlias = Callable[[Any], str]  # of Arrow: takes a line that has more or fewer values, and returns "skip"
_CODECS = {".gz": "gzip", ".zst": "zstd"}
SEPARATORS = {",": "','", ";": "';'", "\t": "tab", "|": "'|'"}
_BROKEN = re.compile("[\udc80-\udcff]")
_QUOTED = re.compile(r'(?<![^,;\t|\r\n])"(?:[^"]+|"")*+"?')  # at the beginning of a field


@dataclass(frozen=True)
class TableFile(ABC):
    """A table in a file."""

    path: str  # absolute, so that workers find the file
    place: str  # the path as the caller gave it, for messages
    keys: tuple[tuple[str, str], ...] = ()  # columns from folders named key=value, constant within the file
    rules: FileRules = DEFAULT_RULES
    in_process: ClassVar[bool] = False  # whether only this process can read it
    typed: ClassVar[bool] = False  # whether the file says the types of its columns

    @property
    def ordered(self) -> bool:
        """Whether the order of the records is public: folders named ``key=value`` sort them by a value."""
        return not self.keys

    @property
    def read_options(self) -> dict[str, Any]:
        """The rules that are not the default."""
        return self.rules.to_options()

    def fields(self) -> list[Any] | None:
        """The Arrow fields of the columns (names, types, nullable), or None if types are unknown."""
        return None

    def stored_names(self) -> list[str]:
        """Names of the columns as the file has them."""
        return [field.name for field in self.fields() or ()]

    def count(self) -> int:
        """The number of records, by reading one column."""
        first = self.stored_names()[:1]
        return sum(batch.num_rows for batch in self.batches(first, first))

    def estimate(self) -> int:
        """About how many records there are; 0 if that would take long to find."""
        return 0

    def splits(self) -> list[TableFile]:
        """Parts of the file that can be read independently."""
        return [self]

    @abstractmethod
    def batches(self, columns: Sequence[str], texts: Sequence[str] = ()) -> Iterator[Any]:
        """Yield record batches with the given columns.

        Text files and workbooks have texts in all of them. From other files, those in `texts` may have dictionaries.
        """

    def as_written(
        self, columns: Sequence[str], texts: Sequence[str], broken: BadLine, *, count: bool = False
    ) -> Iterator[Any]:
        """Yield batches before any rule is applied; `broken` is called for bad lines, numbered only with `count`."""
        return self.batches(columns, texts)

    def column_names(self) -> tuple[str, ...]:
        """Names of the columns, each once, those from folders last."""
        names = self.stored_names()
        duplicated = min((name for name, count in Counter(names).items() if count > 1), default=None)
        if duplicated is not None:
            first, second, *_ = (i for i, name in enumerate(names, start=1) if name == duplicated)
            same = f"two columns with the same name, number {first} and {second}"
            raise DataError(f"{self.place} has {same}. {self._hint_head()}")
        for key, _ in self.keys:
            if key in names:
                raise DataError(f"{self.place} has a column {key!r}, and so does a folder's name. Rename one of them.")
        return (*names, *(key for key, _ in self.keys))

    def require_columns(self, columns: Sequence[str]) -> None:
        """Raise a `DataError` unless the file has the columns."""
        names = self.column_names()
        known = set(names)
        for name in columns:
            if name not in known:
                raise DataError(f"{self.place} has no column {name!r}. {self._hint_columns(names, columns)}")

    def _hint_columns(self, names: Sequence[str], columns: Sequence[str]) -> str:
        """The remedy where the file, which has columns `names`, lacks one of `columns`."""
        if not set(columns) & set(names):  # the row may be a record, which must not be shown
            separated = "If another character separates them, write it as delimiter under [files] in the schema. "
            return (
                f"None of its {len(names)} columns is in the schema. {separated * (not self.typed)}{self._hint_head()}"
            )
        return f"It has {', '.join(names[:20])}{', ...' if len(names) > 20 else ''}. Correct the names or the file."

    def _hint_head(self) -> str:
        row = self.rules.header_row or 1
        return (
            f"If row {row} does not have the names of the columns, say which has, as in header_row = {row + 1} under "
            "[files] in the schema."
        )

    def _check_head(self, names: list[Any], wrong: str) -> list[str]:
        """The names of the columns; raises a `DataError` if there are none, or if something `wrong` is among them."""
        where = "first row" if self.rules.header_row is None else f"row {self.rules.header_row} (header_row)"
        if not any(str(name).strip() for name in names):
            raise DataError(f"{self.place} has no column names in its {where}. Add them. {self._hint_head()}")
        if wrong:
            rule = f"must have the names of the columns in its {where}, but there is {wrong}"
            raise DataError(f"{self.place} {rule}. Add them. {self._hint_head()}")
        return list(names)

    def _checked_path(self) -> str:
        """The path, if the file is not empty; every reading begins with it."""
        if os.stat(self.path).st_size == 0:
            raise DataError(f"{self.place} is empty: it has neither columns nor records.")
        return self.path

    def _decode_text(self, batch: Any, *, keep: Sequence[str]) -> Any:
        """Replace dictionaries of text, but of columns `keep`; a `DataError` where values would fill the memory."""
        for i, (name, column) in enumerate(zip(batch.schema.names, batch.columns, strict=True)):
            if not pa.types.is_dictionary(column.type) or not _is_text(column.type.value_type):
                continue
            lengths = pa.compute.binary_length(column.dictionary)
            size = pa.compute.sum(lengths.take(column.indices)).as_py() or 0
            if size > _MAX_TEXT_BYTES:
                raise DataError(
                    f"{self.place}: column {name!r} must have at most {_MAX_TEXT_BYTES >> 20} MiB of text in "
                    f"{len(column):,} rows, got {size >> 20:,} MiB instead. Encode it as shorter texts or as numbers."
                )
            if name not in keep:
                batch = batch.set_column(i, name, column.dictionary_decode())
        return batch


def _is_text(kind: Any) -> bool:
    return is_text_type(kind) or bool(pa.types.is_binary(kind))


@dataclass(frozen=True)
class ParquetFile(TableFile):
    """A Parquet file, or some of its row groups."""

    row_groups: range | None = None
    typed: ClassVar[bool] = True

    def _open(self, dictionaries: Sequence[str] = ()) -> Any:
        # By default pyarrow buffers whole row groups ahead, which takes memory in proportion to their size.
        return pa.parquet.ParquetFile(
            self._checked_path(), pre_buffer=False, buffer_size=1 << 20, read_dictionary=list(dictionaries) or None
        )

    def fields(self) -> list[Any]:
        with self._open() as file:
            return list(file.schema_arrow)

    def count(self) -> int:
        with self._open() as file:
            return int(file.metadata.num_rows)

    estimate = count

    def splits(self) -> list[TableFile]:
        with self._open() as file:
            rows = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
        found: list[TableFile] = []
        start = combined = 0
        for i, count in enumerate(rows, start=1):
            combined += count
            if combined >= _SPLIT_ROWS or i == len(rows):
                found.append(replace(self, row_groups=range(start, i)))
                start, combined = i, 0
        return found or [self]

    def batches(self, columns: Sequence[str], texts: Sequence[str] = ()) -> Iterator[Any]:
        encoded = [field.name for field in self.fields() if field.name in columns and _is_text(field.type)]
        with self._open(dictionaries=encoded) as file:
            groups = list(range(file.metadata.num_row_groups) if self.row_groups is None else self.row_groups)
            self._check_sizes((file.metadata.row_group(i) for i in groups), set(columns))
            threads, chosen = self.row_groups is None, list(columns)
            for batch in file.iter_batches(_BATCH_ROWS, row_groups=groups, columns=chosen, use_threads=threads):
                yield self._decode_text(batch, keep=texts)

    def _check_sizes(self, groups: Iterable[Any], columns: set[str]) -> None:
        """Raise a `DataError` before a column is read that takes far more memory than the file suggests."""
        for chunk in (group.column(j) for group in groups for j in range(group.num_columns)):
            size = chunk.total_uncompressed_size
            wanted = chunk.path_in_schema in columns or chunk.path_in_schema.partition(".")[0] in columns
            if wanted and size > max(_SUSPECT_BYTES, _SUSPECT_RATIO * chunk.total_compressed_size):
                raise DataError(
                    f"{self.place} has a column that takes {size >> 20:,} MiB in one row group when it is "
                    f"decompressed, more than {_SUSPECT_RATIO:,} times its size in the file. Write it with smaller "
                    "row groups."
                )


class FeatherFile(TableFile):
    """A file of Feather version 2, the Arrow IPC file format."""

    typed = True

    def _open(self, columns: Sequence[str] | None = None) -> Any:
        ipc = pa.ipc
        # Not memory-mapped: the pages of a mapped file would count as memory of this process.
        reader = ipc.open_file(pa.OSFile(self._checked_path()))
        if columns is None:
            return reader
        fields = [reader.schema.get_field_index(name) for name in columns]
        return ipc.open_file(pa.OSFile(self.path), options=ipc.IpcReadOptions(included_fields=fields))

    def fields(self) -> list[Any]:
        return list(self._open().schema)

    def batches(self, columns: Sequence[str], texts: Sequence[str] = ()) -> Iterator[Any]:
        reader = self._open(columns)
        for i in range(reader.num_record_batches):
            yield self._decode_text(reader.get_batch(i), keep=texts)


class CsvFile(TableFile):
    """A delimited text file in which one line contains the names of the columns."""

    def read_head(self) -> tuple[str, list[str]]:
        """The separator of the columns, and the words of the line of names.

        Where no separator is given, it is the character among comma, semicolon, tab and '|' that is most frequent in
        this line, outside of quotes; a comma if there is none, or as many commas as of another.
        """
        text = ""
        with (
            self._open() as stream,  # its other bytes become `_BROKEN`: they may be in records, which are read, too
            io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="") as lines,
        ):
            for _ in range((self.rules.header_row or 1) - 1):
                lines.readline(_BLOCK_BYTES)
            while len(text) < _BLOCK_BYTES:
                more = lines.read(1 << 16)
                text += more
                first, *rest = re.split("[\r\n]", _QUOTED.sub("", text), maxsplit=1)
                if rest or not more:
                    separator = self.separator or max(SEPARATORS, key=first.count)  # the first in a tie
                    names = next(csv.reader(io.StringIO(text, newline=""), delimiter=separator), [])
                    if any(map(_BROKEN.search, names)):
                        raise wrong_encoding(self.place)
                    return separator, names
        long = f"a first line of more than {_BLOCK_BYTES >> 20} MiB"
        raise DataError(f"{self.place} has {long}. Check its line ends and quotes.")

    @property
    def separator(self) -> str | None:
        """The separator that the schema gives, or the name of the file; None if the line of names shows it."""
        return self.rules.delimiter or ("\t" if ".tsv" in Path(self.path.lower()).suffixes[-2:] else None)

    def estimate(self) -> int:
        with pa.OSFile(self._checked_path()) as stream:
            start = stream.read(1 << 16)
        size, packed = os.stat(self.path).st_size, Path(self.path).suffix.lower() in _CODECS
        return 0 if packed else size * start.count(b"\n") // len(start)

    def stored_names(self) -> list[str]:
        _, names = self.read_head()
        wrong = any(_is_number(part) for name in names for part in re.split(r"[,;\t|]", name))
        return self._check_head(names, "a number" if wrong else "")

    def as_written(
        self, columns: Sequence[str], texts: Sequence[str], broken: BadLine, *, count: bool = False
    ) -> Iterator[Any]:
        return self.batches(columns, texts, broken, count=count)

    def batches(
        self, columns: Sequence[str], texts: Sequence[str] = (), broken: BadLine | None = None, *, count: bool = False
    ) -> Iterator[Any]:
        """Yield batches of texts; Arrow counts lines in one thread alone."""
        separator, names = self.read_head()
        kinds, handle = dict.fromkeys(columns, pa.string()), broken
        if self.rules.skip_lines:
            kinds[names[0]] = pa.string()

            def handle(line: Any) -> str:
                return "skip" if self.rules.skips(line.text) else "error" if broken is None else broken(line)

        convert = pa.csv.ConvertOptions(include_columns=list(kinds), column_types=kinds, strings_can_be_null=False)
        # In a file of one column an empty line is a missing value.
        parse = pa.csv.ParseOptions(
            delimiter=separator,
            newlines_in_values=True,
            ignore_empty_lines=len(names) != 1,
            invalid_row_handler=handle,
        )
        read = pa.csv.ReadOptions(
            block_size=_LARGE_BLOCK,
            skip_rows=(self.rules.header_row or 1) - 1,
            skip_rows_after_names=self.rules.skip_rows,
            use_threads=not count,
        )
        options = {"read_options": read, "parse_options": parse, "convert_options": convert}
        try:
            with self._open() as stream, pa.csv.open_csv(stream, **options) as reader:
                for batch in reader:
                    yield self._drop_lines(batch, names[0]).select(list(columns)) if self.rules.skip_lines else batch
            return
        except pa.ArrowInvalid as error:
            found = self._without_values(str(error))
        raise found  # not inside of `except`, where the original error, which quotes the data, would be its context

    def _drop_lines(self, batch: Any, first: str) -> Any:
        """A batch without the rows that are no records; each row is judged on its own."""
        cells = pa.compute.utf8_ltrim(batch.column(first), ' \t"')  # as `FileRules.skips`
        dropped = (pa.compute.starts_with(cells, text) for text in self.rules.skip_lines)
        return batch.filter(pa.compute.invert(reduce(pa.compute.or_, dropped)))

    def open_bytes(self) -> Any:
        """The bytes of the file, decompressed as they are read."""
        stream = pa.OSFile(self._checked_path())
        codec = _CODECS.get(Path(self.path).suffix.lower())
        return stream if codec is None else pa.CompressedInputStream(stream, codec)

    def _open(self) -> Any:
        """The text of the file in UTF-8."""
        stream, encoding = self.open_bytes(), self.rules.encoding
        return stream if encoding is None else pa.transcoding_input_stream(stream, encoding, "utf-8")

    def _without_values(self, message: str) -> DataError:
        """The error for a message of Arrow, without the value that the message quotes."""
        if "Empty CSV" in message:
            return DataError(f"{self.place} is empty: it has neither columns nor records.")
        if "invalid UTF8" in message:
            return wrong_encoding(self.place)
        if "Expected" in message and "columns" in message:
            return DataError(
                f"{self.place} has a line with more or fewer values than there are column names. Check the quotes, "
                "and delimiter, header_row and skip_rows under [files] in the schema."
            )
        return DataError(
            f"{self.place} cannot be read as CSV. Check its quotes, and delimiter and encoding under [files] in the "
            "schema."
        )


def _is_number(word: str) -> bool:
    with contextlib.suppress(ValueError):
        float(word)
        return True
    return False


class ExcelFile(TableFile):
    """One sheet of a workbook, the one that the rules name or the first.

    A row without any value is not a record: a workbook does not store those at its end. Cells beside the columns with
    names are not read.
    """

    def stored_names(self) -> list[str]:
        _, _, names = _find_table(self, os.stat(self._checked_path()).st_mtime_ns)
        wrong = any(not isinstance(name, str) or _is_number(name) for name in names)
        return self._check_head(names, "another value" if wrong else "")

    def batches(self, columns: Sequence[str], texts: Sequence[str] = ()) -> Iterator[Any]:
        names = self.stored_names()
        top, left, _ = _find_table(self, os.stat(self.path).st_mtime_ns)
        below = self.read_rows()[top + 1 + self.rules.skip_rows :]
        rows = (
            row
            for row in below
            if any(cell != "" for cell in row[left : left + len(names)]) and not self.rules.skips(str(row[left]))
        )
        while block := list(islice(rows, _BATCH_ROWS)):
            arrays = []
            for name in columns:
                rule, date, place = self.rules.of(name), self.rules.date(name), left + names.index(name)
                written = date.formats[0] if date is not None and date.formats else None
                number = date is None and name not in texts
                cells = [_as_text(row[place], written, rule.decimal or ".", number=number) for row in block]
                arrays.append(pa.array(cells, pa.string()))
            yield pa.record_batch(arrays, names=list(columns))

    def read_rows(self) -> list[list[Any]]:
        """All cells of the sheet, from its first row and column on; empty ones are empty texts."""
        names = self.sheet_names()
        wanted = names[0] if self.rules.sheet is None and names else self.rules.sheet
        if wanted not in names:
            rule = f"it has {', '.join(names[:20])}. Correct sheet under [files]."
            raise DataError(f"{self.place} has no sheet {wanted!r}; {rule}")
        return self._ask_book(lambda book: list(book.get_sheet_by_name(wanted).to_python(skip_empty_area=False)))

    def sheet_names(self) -> list[str]:
        """The names of the sheets."""
        return self._ask_book(lambda book: book.sheet_names)

    def _ask_book(self, ask: Callable[[Any], list[Any]]) -> list[Any]:
        calamine = import_extra("python_calamine", "reading Excel files requires python-calamine", "excel")
        if zipfile.is_zipfile(self.path):
            with zipfile.ZipFile(self.path) as file:
                size = sum(entry.file_size for entry in file.infolist())
            if size > _LARGEST_BYTES:
                raise DataError(
                    f"{self.place} takes {size >> 20:,} MiB when it is unpacked, more than {_LARGEST_BYTES >> 20:,} "
                    "MiB. Save it as CSV."
                )
        try:
            return ask(calamine.CalamineWorkbook.from_path(self.path))
        except calamine.PasswordError:
            problem = "is protected by a password. Save it without one."
        except (calamine.CalamineError, OSError, ValueError):
            problem = "cannot be read: it is damaged, or not an Excel workbook."
        raise DataError(f"{self.place} {problem}")


@lru_cache(maxsize=64)
def _find_table(file: ExcelFile, changed: int) -> tuple[int, int, list[Any]]:  # noqa: ARG001
    """The row of the names, counted from 0, the first column with one, and the names; without header_row, the first
    row with a value. Kept because all of a workbook is read for it; `changed` is a key.
    """
    rows = file.read_rows()
    top = next((i for i, row in enumerate(rows) if any(cell != "" for cell in row)), 0)
    top = top if file.rules.header_row is None else file.rules.header_row - 1
    filled = [i for i, cell in enumerate(rows[top] if top < len(rows) else []) if cell != ""] or [0, -1]
    return top, filled[0], rows[top][filled[0] : filled[-1] + 1] if filled[-1] >= 0 else []


def _as_text(cell: Any, written: str | None, decimal: str, *, number: bool) -> str:
    """A cell as it would be in CSV, dates as they are `written`; yes and no are 1 and 0 in a column of numbers."""
    if isinstance(cell, bool):
        return str(int(cell)) if number else str(cell).upper()
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 1 << 53 else repr(cell).replace(".", decimal)
    if isinstance(cell, dt.date | dt.time):
        return cell.strftime(written) if written else cell.isoformat()
    return str(cell)
