"""Readers of files whose columns have names and no types: delimited text, plain or compressed, and Excel workbooks.

The separator of a text file is the one that is given, or a tab for ``.tsv``, or else the one that the line of column
names shows. The records never decide it.
"""

from __future__ import annotations

import codecs
import csv
import datetime as dt
import io
import re
import zipfile
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from matrixdp.errors import DataError, MissingExtraError, install_hint
from matrixdp.records.file_values import not_a_number, number_words, parse_numbers
from matrixdp.records.formats import BATCH_ROWS, TableReader, pyarrow

_BLOCK_BYTES = 4 << 20
_CODECS = {".gz": "gzip", ".zst": "zstd"}
_SEPARATORS = {",": "','", ";": "';'", "\t": "tab", "|": "'|'"}
_FIELD = re.compile(r'("(?:[^"]+|"")*+"?)?[^,;\t|\r\n]*([,;\t|\r\n]|\Z)')  # and the character that ends it


class CsvReader(TableReader):
    """Reader of delimited text files whose first line contains the names of the columns."""

    @cached_property
    def separator(self) -> str:
        """The separator of the columns.

        Where none is given, it is the character among comma, semicolon, tab and '|' that is most frequent in the first
        line, outside of quotes; a comma if there is none, or as many commas as of another.
        """
        if self.delimiter is not None:
            return self.delimiter
        marks = _separators(self._head)
        return max(_SEPARATORS, key=marks.count)  # the first of those that are equally frequent

    def column_names(self) -> list[str]:
        """Return the names in the first line; raise a `DataError`, which does not quote it, if it has a number."""
        names = next(csv.reader(io.StringIO(self._head, newline=""), delimiter=self.separator), [])
        if not any(name.strip() for name in names):
            raise DataError(f"{self.place} has no column names in its first line. Add them.")
        for name in names:
            for part in re.split(r"[,;\t|]", name):
                if is_number(part):
                    raise DataError(
                        f"{self.place} must have the names of the columns in its first line, but there is a number. "
                        "Add them."
                    )
        return names

    def count(self) -> int:
        """Return the number of records, by reading one column of the whole file as text."""
        first = self.column_names()[:1]
        return sum(batch.num_rows for batch in self.batches(first, None, texts=first))

    def batches(self, columns: Sequence[str], row_groups: range | None, *, texts: Sequence[str] = ()) -> Iterator[Any]:
        """Yield batches of a few megabytes."""
        pa = pyarrow()
        from pyarrow import csv as arrow_csv

        parsed = [name for name in columns if name not in texts and self.rules.thousands]  # which Arrow cannot read
        kinds = {name: pa.string() if name in texts or name in parsed else pa.float64() for name in columns}
        convert = arrow_csv.ConvertOptions(
            include_columns=list(columns),
            column_types=kinds,
            strings_can_be_null=False,
            null_values=number_words(self.rules),
            decimal_point=self.rules.decimal,
        )
        single = len(self.column_names()) == 1  # an empty line is then a missing value
        parse = arrow_csv.ParseOptions(delimiter=self.separator, newlines_in_values=True, ignore_empty_lines=not single)
        read = arrow_csv.ReadOptions(block_size=_BLOCK_BYTES)
        options = {"read_options": read, "parse_options": parse, "convert_options": convert}
        try:
            with self._open() as stream, arrow_csv.open_csv(stream, **options) as reader:
                for batch in reader:
                    for name in parsed:
                        numbers = parse_numbers(self.rules, name, batch.column(name))
                        batch = batch.set_column(batch.schema.get_field_index(name), name, numbers)
                    yield batch
            return
        except pa.ArrowInvalid as error:
            found = self._without_values(str(error))
        raise found  # not inside of `except`, where the original error, which quotes the data, would be its context

    def _open(self) -> Any:
        """The bytes of the file, decompressed as they are read."""
        stream = pyarrow().OSFile(str(self.path))
        codec = _CODECS.get(self.path.suffix.lower())
        return stream if codec is None else pyarrow().CompressedInputStream(stream, codec)

    @cached_property
    def _head(self) -> str:
        """The beginning of the file up to the end of its first line, at least."""
        text, decoder = "", codecs.getincrementaldecoder("utf-8-sig")()
        with self._open() as stream:
            while len(text) < _BLOCK_BYTES:
                more = stream.read(1 << 16)
                text += decoder.decode(more, final=not more)
                if not more or (_separators(text) or " ")[-1] in "\r\n":
                    return text
        raise DataError(
            f"{self.place} has a first line of more than {_BLOCK_BYTES >> 20} MiB. Check its line ends and quotes."
        )

    def _without_values(self, message: str) -> DataError:
        """Return an error for a message of Arrow, without the value that the message quotes."""
        if "Empty CSV" in message:
            return DataError(f"{self.place} is empty: it has neither columns nor records.")
        column = re.match(r"In CSV column #(\d+):.*conversion error", message, re.DOTALL)
        if column:
            return DataError(f"{self.place}: {not_a_number(self.column_names()[int(column[1])])}")
        if "Expected" in message and "columns" in message:
            return DataError(
                f"{self.place} has a line with more or fewer values than there are column names. Check the delimiter "
                "and the quotes."
            )
        return DataError(f"{self.place} cannot be read as CSV. Check the delimiter, quotes and encoding (UTF-8).")

    def hint_missing_column(self, names: Sequence[str], columns: Sequence[str]) -> str:
        """Return the remedy; a wrong delimiter and a first line without names are the likely causes."""
        if len(names) == 1:
            for mark, word in _SEPARATORS.items():
                if mark in names[0]:
                    return f"Its columns seem to be separated by {word}: use --delimiter {word}."
            return "It has a single column. If another character separates the columns, use --delimiter."
        if not set(columns) & set(names):  # the first line may be a record, which must not be shown
            return (
                f"None of its {len(names)} columns is in the schema. "
                "Check that its first line contains the names of the columns."
            )
        return super().hint_missing_column(names, columns)


def _separators(text: str) -> str:
    """The characters that end the fields of the first line of `text`, in their order; the last may be a line end."""
    found = ""
    for field in _FIELD.finditer(text):
        found += field[2]
        if field[2] in ("", "\r", "\n"):
            break
    return found


def is_number(word: str) -> bool:
    """Return whether a text is a number.

    Examples
    --------
    >>> is_number("1e5"), is_number("age")
    (True, False)
    """
    try:
        float(word)
    except ValueError:
        return False
    return True


_LARGEST_BYTES = 4 << 30  # of an unpacked workbook


def _calamine() -> Any:
    try:
        import python_calamine
    except ImportError:
        raise MissingExtraError(f"reading Excel files requires python-calamine. {install_hint('excel')}") from None
    return python_calamine


class ExcelReader(TableReader):
    """Reader of one sheet, the one that the rules name or the first.

    A row without any value is not a record: a workbook does not store those at its end. Cells to the right of the last
    column name are not read.
    """

    def column_names(self) -> list[str]:
        """Return the texts in the first row; raise a `DataError`, which does not quote them, if it has a number."""
        names = _first_row(self.path, self.path.stat().st_mtime_ns, self.rules.sheet, self.place)
        if not any(str(name).strip() for name in names):
            raise DataError(f"{self.place} has no column names in its first row. Add them.")
        if any(not isinstance(name, str) or is_number(name) for name in names):
            raise DataError(
                f"{self.place} must have the names of the columns in its first row, but there is another value. "
                "Add them."
            )
        return list(names)

    def count(self) -> int:
        """Return the number of rows that have a value, without the first."""
        return sum(1 for _ in self._records())

    def batches(self, columns: Sequence[str], row_groups: range | None, *, texts: Sequence[str] = ()) -> Iterator[Any]:
        """Yield batches of rows."""
        pa = pyarrow()
        names = self.column_names()
        places = [names.index(name) for name in columns]
        rows = self._records()
        while block := list(islice(rows, BATCH_ROWS)):
            arrays = [
                self._convert(name, [row[i] for row in block], as_text=name in texts)
                for name, i in zip(columns, places, strict=True)
            ]
            yield pa.record_batch(arrays, names=list(columns))

    def _convert(self, name: str, cells: list[Any], *, as_text: bool) -> Any:
        """The cells of one column as an Arrow array of texts, dates among them, or of numbers."""
        pa = pyarrow()
        rule = self.rules.date(name)
        if rule is not None or as_text:
            written = None if rule is None else rule.format
            return pa.array([_as_text(cell, written) for cell in cells], pa.string())
        if any(not isinstance(cell, str | float | int) for cell in cells):  # dates
            raise not_a_number(name)
        words = pa.array([cell if isinstance(cell, str) else "" for cell in cells], pa.string())
        parsed = parse_numbers(self.rules, name, words).to_pylist()
        values = [word if isinstance(cell, str) else float(cell) for cell, word in zip(cells, parsed, strict=True)]
        return pa.array(values, pa.float64())

    def _records(self) -> Iterator[list[Any]]:
        """The rows below the first that have a value in a column with a name."""
        rows = iter(_read_rows(self.path, self.rules.sheet, self.place))
        width = len(_without_end(next(rows, [])))
        return (row[:width] for row in rows if any(cell != "" for cell in row[:width]))


@lru_cache(maxsize=64)
def _first_row(path: Path, changed: int, sheet: str | None, place: str) -> list[Any]:  # noqa: ARG001
    """The first row up to its last value, kept because all of a workbook is read for it; `changed` is a key."""
    return _without_end(next(iter(_read_rows(path, sheet, place)), []))


def _without_end(row: list[Any]) -> list[Any]:
    return row[: max((i for i, cell in enumerate(row, start=1) if cell != ""), default=0)]


def _read_rows(path: Path, sheet: str | None, place: str) -> list[list[Any]]:
    """All cells of the sheet, the first one by default; empty ones are empty texts."""
    calamine = _calamine()
    _check_size(path, place)
    try:
        book = calamine.CalamineWorkbook.from_path(str(path))
        names = book.sheet_names
        wanted = names[0] if sheet is None and names else sheet
        if wanted in names:
            return list(book.get_sheet_by_name(wanted).to_python(skip_empty_area=True))
        problem = f"has no sheet {wanted!r}; it has {', '.join(names[:20])}. Correct sheet in the schema."
    except calamine.PasswordError:
        problem = "is protected by a password. Save it without one."
    except (calamine.CalamineError, OSError, ValueError):
        problem = "cannot be read: it is damaged, or not an Excel workbook."
    raise DataError(f"{place} {problem}")


def _check_size(path: Path, place: str) -> None:
    """Raise a `DataError` for a workbook that fills the memory when it is unpacked."""
    if not zipfile.is_zipfile(path):
        return
    with zipfile.ZipFile(path) as file:
        size = sum(entry.file_size for entry in file.infolist())
    if size > _LARGEST_BYTES:
        raise DataError(
            f"{place} takes {size >> 20:,} MiB when it is unpacked, more than {_LARGEST_BYTES >> 20:,} MiB. Save it as "
            "CSV."
        )


def _as_text(cell: Any, written: str | None = None) -> str:
    """A cell as it would be in CSV, dates as they are `written`."""
    if isinstance(cell, bool):
        return "TRUE" if cell else "FALSE"
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1 << 53:
        return str(int(cell))
    if isinstance(cell, dt.date | dt.time):
        return cell.strftime(written) if written else cell.isoformat()
    return str(cell)
