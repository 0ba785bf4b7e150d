"""Reader of one sheet of an Excel workbook, which is read like CSV: its first row has the names of the columns."""

from __future__ import annotations

import datetime as dt
import zipfile
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import Any

from matrixdp.errors import DataError, MissingExtraError, install_hint
from matrixdp.records.delimited import is_number
from matrixdp.records.file_rules import not_a_number
from matrixdp.records.formats import BATCH_ROWS, TableReader, pyarrow

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
        names = next(self._rows(), [])
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
        parsed = self.rules.parse_numbers(name, words).to_pylist()
        values = [word if isinstance(cell, str) else float(cell) for cell, word in zip(cells, parsed, strict=True)]
        return pa.array(values, pa.float64())

    def _records(self) -> Iterator[list[Any]]:
        """The rows below the first that have a value in a column with a name."""
        rows = self._rows()
        next(rows, None)
        return (row for row in rows if any(cell != "" for cell in row))

    def _rows(self) -> Iterator[list[Any]]:
        """All rows, without what is to the right of the last name."""
        rows = self._sheet.to_python(skip_empty_area=True)
        width = max((i for i, name in enumerate(rows[0], start=1) if name != ""), default=0) if rows else 0
        return (row[:width] for row in rows)

    @cached_property
    def _sheet(self) -> Any:
        calamine = _calamine()
        self._check_size()
        try:
            book = calamine.CalamineWorkbook.from_path(str(self.path))
            names = book.sheet_names
            sheet = names[0] if self.rules.sheet is None and names else self.rules.sheet
            if sheet in names:
                return book.get_sheet_by_name(sheet)
        except calamine.PasswordError:
            names, sheet = None, "password"
        except (calamine.CalamineError, OSError, ValueError):
            names, sheet = None, "damaged"
        if names is not None:
            known = ", ".join(names[:20])
            raise DataError(f"{self.place} has no sheet {sheet!r}; it has {known}. Correct sheet in the schema.")
        if sheet == "password":
            raise DataError(f"{self.place} is protected by a password. Save it without one.")
        raise DataError(f"{self.place} cannot be read: it is damaged, or not an Excel workbook.")

    def _check_size(self) -> None:
        """Raise a `DataError` for a workbook that fills the memory when it is unpacked."""
        if not zipfile.is_zipfile(self.path):
            return
        with zipfile.ZipFile(self.path) as file:
            size = sum(entry.file_size for entry in file.infolist())
        if size > _LARGEST_BYTES:
            raise DataError(
                f"{self.place} takes {size >> 20:,} MiB when it is unpacked, more than {_LARGEST_BYTES >> 20:,} MiB. "
                "Save it as CSV."
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
