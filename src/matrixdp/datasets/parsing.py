"""Parse the archive's raw files."""

from __future__ import annotations

import importlib
import io
import re
import zipfile
from collections.abc import Sequence
from typing import Any

from matrixdp.errors import DataError, MissingExtraError, install_hint

_RATES = ("AC", "FM", "UC", "DL", "DS", "DP")
_VARIABILITY = ("ASTV", "MSTV", "ALTV", "MLTV")
_HISTOGRAM = ("Width", "Min", "Max", "Nmax", "Nzeros", "Mode", "Mean", "Median", "Variance", "Tendency")
CTG_COLUMNS = ("LB", *_RATES, *_VARIABILITY, *_HISTOGRAM, "NSP")
_RSS = re.compile(r"(?:^|/)MovementAAL_RSS_(\d+)\.csv$")
_LARGEST_MEMBER = 1 << 22


def parse_liver(raw: bytes) -> list[list[float]]:
    r"""Rows of ``bupa.data``.

    Examples
    --------
    >>> parse_liver(b"85,92,45,27,31,0.0,1\n")
    [[85.0, 92.0, 45.0, 27.0, 31.0, 0.0, 1.0]]
    """
    return _rows(raw)


def parse_movement(raw: bytes) -> list[list[float]]:
    """Rows of all sequences in ``MovementAAL.zip``, in the order of their numbers, each with number, time and class."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(raw))
    except zipfile.BadZipFile:
        raise DataError("MovementAAL.zip must be a zip archive; the download may be a web page instead.") from None
    with archive:
        members = {int(found[1]): name for name in archive.namelist() if (found := _RSS.search(name))}
        target = [name for name in archive.namelist() if name.endswith("MovementAAL_target.csv")]
        if not members or not target:
            raise DataError("MovementAAL.zip must hold MovementAAL_RSS_<n>.csv and MovementAAL_target.csv.")
        classes = {int(n): label for n, label in _rows(_read(archive, target[0]))}
        return [
            [n, t, *row, classes[n]] for n in sorted(members) for t, row in enumerate(_rows(_read(archive, members[n])))
        ]


def parse_ctg(raw: bytes) -> list[list[float]]:
    """Rows of ``CTG.xls``, sheet "Data": 21 features and the class NSP."""
    return select_ctg(read_sheet(raw, "Data"))


def select_ctg(cells: Sequence[Sequence[Any]]) -> list[list[float]]:
    """The columns of the canonical table, by their names, from the sheet's cells.

    Counts stand left of ``LB`` under the same names as the rates that stand right of it; only the latter are taken.
    """
    header = next((i for i, row in enumerate(cells) if "LB" in row and "NSP" in row), None)
    if header is None:
        raise DataError("CTG.xls must have a header row with LB and NSP in its sheet 'Data'.")
    names = [str(cell).strip() for cell in cells[header]]
    start = names.index("LB")
    places = [names.index(name, start) for name in CTG_COLUMNS]
    rows = [[row[place] for place in places] for row in cells[header + 1 :] if len(row) > max(places)]
    return [[float(cell) for cell in row] for row in rows if all(isinstance(cell, float | int) for cell in row)]


def read_sheet(raw: bytes, sheet: str) -> list[list[Any]]:
    """Cells of one sheet of an .xls file."""
    try:
        xlrd = importlib.import_module("xlrd")
    except ImportError:
        raise MissingExtraError(
            "CTG.xls is read with xlrd, which is not installed; or put ctg.csv into the folder that MATRIXDP_DATA "
            f"names. {install_hint('paper')}"
        ) from None
    table = xlrd.open_workbook(file_contents=raw).sheet_by_name(sheet)
    return [table.row_values(i) for i in range(table.nrows)]


def _read(archive: zipfile.ZipFile, name: str) -> bytes:
    if archive.getinfo(name).file_size > _LARGEST_MEMBER:
        raise DataError(f"{name} must be at most {_LARGEST_MEMBER} bytes.")
    return archive.read(name)


def _rows(raw: bytes) -> list[list[float]]:
    """Numbers of a file of comma-separated values; lines that begin with # are comments."""
    lines = raw.decode("utf-8", "strict").split("\n")
    return [[float(cell) for cell in line.split(",")] for line in lines if line.strip() and not line.startswith("#")]
