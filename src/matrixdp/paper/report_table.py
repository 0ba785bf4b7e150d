"""A table of the report: written as CSV, JSON and HTML."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from matrixdp.paper.files import write_atomically

SIMULATED = "SIMULATED DATA, drawn from summary statistics, not the published data sets"


class Cell(NamedTuple):
    """Words of a cell, small print below them, the class of a verdict, and whether it is a number."""

    words: str
    detail: str = ""
    mark: str = ""
    number: bool = False


@dataclass(frozen=True)
class ReportTable:
    """Rows under named columns.

    Attributes
    ----------
    name : str
        Name of its files.
    title : str
    columns : mapping
        From a column's key to its heading.
    rows : list of mappings
        Numbers are kept as numbers. A key ``group`` that is not a column divides the rows into groups.
    notes : tuple of str
    simulated : bool
        Whether any of it comes from simulated data.
    groups : mapping
        From a value of ``group`` to its heading.
    details : mapping
        From a column to the key whose text is shown in small print under it, in HTML only.
    """

    name: str
    title: str
    columns: Mapping[str, str]
    rows: list[dict[str, Any]]
    notes: tuple[str, ...] = ()
    simulated: bool = False
    groups: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, str] = field(default_factory=dict)

    @property
    def mark(self) -> str:
        """What stands above a table of simulated data."""
        return SIMULATED

    def to_csv(self) -> str:
        """Comma-separated values, a column for every key; the last one says whether the data are simulated."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        keys = [*self._keys(), "simulated_data"]
        writer.writerow(keys)
        for row in self.rows:
            writer.writerow([*(_plain(row.get(key)) for key in keys[:-1]), str(self.simulated).lower()])
        return out.getvalue()

    def to_json(self) -> str:
        """JSON, with null for NaN."""
        rows = [{key: _plain(row.get(key), empty=None) for key in self._keys()} for row in self.rows]
        content = {
            "name": self.name,
            "title": self.title,
            "simulated_data": self.simulated,
            "columns": dict(self.columns),
            "rows": rows,
            "notes": list(self.notes),
        }
        return json.dumps(content, indent=1, allow_nan=False) + "\n"

    def list_groups(self) -> list[tuple[str, list[list[Cell]]]]:
        """Title and rows of each group, for the page; one group without a title if there are none."""
        found: list[tuple[str, list[list[Cell]]]] = []
        last = object()
        for row in self.rows:
            group = row.get("group") if self.groups else None
            if group != last:
                last = group
                found.append((self.groups.get(str(group), str(group)) if self.groups else "", []))
            details = self.details
            found[-1][1].append([make_cell(row.get(key), row.get(details.get(key, ""))) for key in self.columns])
        return found

    def write(self, folder: Path) -> None:
        """Write the CSV and JSON files."""
        write_atomically(folder / f"{self.name}.csv", self.to_csv())
        write_atomically(folder / f"{self.name}.json", self.to_json())

    def _keys(self) -> list[str]:
        extra = [key for row in self.rows for key in row if key not in self.columns]
        return [*self.columns, *dict.fromkeys(extra)]


def number(value: float | None) -> str:
    """A number with about three significant digits.

    Examples
    --------
    >>> number(0.012345), number(0.39), number(3200.0), number(299123.0), number(None)
    ('0.0123', '0.390', '3,200', '2.99e+05', '')
    """
    if value is None or math.isnan(value):
        return ""
    if abs(value) < 1e-12:
        return "0"
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e5 else f"{value:#.3g}".rstrip(".")


def make_cell(value: Any, detail: Any = None) -> Cell:
    """A value as a cell of the page."""
    if isinstance(value, float):
        return Cell(number(value), number=True)
    mark = str(value).replace(" ", "-") if value in ("reproduced", "not reproduced", "cannot be") else ""
    return Cell("" if value is None else str(value), str(detail or ""), mark)


def _plain(value: Any, *, empty: Any = "") -> Any:
    return empty if value is None or (isinstance(value, float) and not math.isfinite(value)) else value
