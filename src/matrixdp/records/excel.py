"""Reader of one sheet of an Excel workbook, which is read like CSV: its first row has the names of the columns."""

from __future__ import annotations

import datetime as dt
import zipfile
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from matrixdp.errors import DataError, MissingExtraError, install_hint
from matrixdp.records.delimited import is_number
from matrixdp.records.file_values import not_a_number, parse_numbers
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
