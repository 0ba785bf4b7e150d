"""The three public data sets of the paper's experiments, checked by SHA-256, or simulated tables marked as such.

A data set is read from the folder ``MATRIXDP_DATA``, from the user's cache, or downloaded from the UCI archive.
Simulated tables are drawn by a Gaussian copula: the quantiles of each column at `LEVELS`, to six digits, and the
correlations of their normal scores, to three decimals, are in ``summaries.json``; records are independent draws, not
measurements.
"""

import hashlib
import io
import json
import os
import re
import sys
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr

from matrixdp.errors import MatrixDPError, MissingExtraError, ParameterError, import_extra
from matrixdp.types import Floats


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of numbers, with values of shape (records, columns), from 'file', 'cache', 'download' or 'simulated'."""

    name: str
    columns: tuple[str, ...]
    values: Floats
    origin: str

    @property
    def simulated(self) -> bool:
        """Whether it is simulated; results computed from it must be marked."""
        return self.origin == "simulated"

    def take(self, *columns: str) -> Floats:
        """The named columns, of shape (records, len(columns))."""
        unknown = [name for name in columns if name not in self.columns]
        if unknown:
            raise ParameterError(f"columns must be among {', '.join(self.columns)}, got {', '.join(unknown)} instead.")
        return self.values[:, [self.columns.index(name) for name in columns]]


def scale_to_unit(values: Floats) -> Floats:
    """Each column scaled to [0, 1] by its own minimum and maximum.

    As in the paper's experiments. A real release must not do this: the range of private data is private.
    """
    low, high = values.min(axis=0), values.max(axis=0)
    return np.asarray((values - low) / (high - low))


CTG_COLUMNS = (
    *("LB", "AC", "FM", "UC", "DL", "DS", "DP", "ASTV", "MSTV", "ALTV", "MLTV", "Width", "Min", "Max"),
    *("Nmax", "Nzeros", "Mode", "Mean", "Median", "Variance", "Tendency", "NSP"),
)
_RSS = re.compile(r"(?:^|/)MovementAAL_RSS_(\d+)\.csv$")
_LARGEST, _LARGEST_MEMBER = 1 << 25, 1 << 22
_SECONDS = 20.0


def parse_movement(raw: bytes) -> list[list[float]]:
    """Rows of all sequences in ``MovementAAL.zip``, in the order of their numbers, each with number, time and class."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:

        def read(name: str) -> Floats:
            return _parse_rows(archive.open(name).read(_LARGEST_MEMBER))

        members = {int(found[1]): name for name in archive.namelist() if (found := _RSS.search(name))}
        target = next(name for name in archive.namelist() if name.endswith("MovementAAL_target.csv"))
        classes = {int(n): label for n, label in read(target)}
        return [[n, t, *row, classes[n]] for n in sorted(members) for t, row in enumerate(read(members[n]))]


def parse_ctg(raw: bytes) -> list[list[float]]:
    """Rows of ``CTG.xls``, sheet "Data": 21 features and the class NSP, by the names of their columns.

    Counts stand left of ``LB`` under the same names as the rates that stand right of it; only the latter are taken.
    """
    cells = read_sheet(raw, "Data")
    header = next(i for i, row in enumerate(cells) if "LB" in row and "NSP" in row)
    names = [str(cell).strip() for cell in cells[header]]
    places = [names.index(name, names.index("LB")) for name in CTG_COLUMNS]
    rows = [[row[place] for place in places] for row in cells[header + 1 :] if len(row) > max(places)]
    return [[float(cell) for cell in row] for row in rows if all(isinstance(cell, float | int) for cell in row)]


def read_sheet(raw: bytes, sheet: str) -> list[list[Any]]:
    """Cells of one sheet of an .xls file."""
    purpose = (
        "CTG.xls is read with xlrd, which is not installed; or put ctg.csv into the folder that MATRIXDP_DATA names"
    )
    table = import_extra("xlrd", purpose, "paper").open_workbook(file_contents=raw).sheet_by_name(sheet)
    return [table.row_values(i) for i in range(table.nrows)]


def _parse_rows(raw: bytes, header: int = 0) -> Floats:  # comma-separated; lines that begin with # are comments
    return np.loadtxt(io.BytesIO(raw), delimiter=",", skiprows=header, ndmin=2, encoding="utf-8")


Rows = Sequence[Sequence[float]] | Floats
ARCHIVE = "https://archive.ics.uci.edu/ml/machine-learning-databases"


@dataclass(frozen=True)
class Source:
    """One data set: where its raw file is, and its canonical table, `name`.csv.

    The table is in UTF-8 with LF line ends, a header row and values as published, integers or shortest decimals.
    """

    name: str
    columns: tuple[str, ...]
    floats: frozenset[str]  # the columns with decimals
    sha256: str
    path: str  # of the raw file in the archive
    parse: Callable[[bytes], Rows]

    def canonical(self, rows: Rows) -> bytes:
        """The canonical table of these rows."""
        kinds = [float if name in self.floats else int for name in self.columns]
        lines = [[repr(kind(value)) for kind, value in zip(kinds, row, strict=False)] for row in rows]
        return "".join(",".join(line) + "\n" for line in (self.columns, *lines)).encode()


_ANCHORS = ("rss_anchor1", "rss_anchor2", "rss_anchor3", "rss_anchor4")

_SOURCES = (
    # Liver Disorders. BUPA Medical Research Ltd.; R. S. Forsyth, 1990. UCI Machine Learning Repository.
    Source(
        name="liver",
        columns=("mcv", "alkphos", "sgpt", "sgot", "gammagt", "drinks", "selector"),
        floats=frozenset({"drinks"}),
        sha256="ab7c9f801a6fc0568605bda3796a3962d0b940a19ced4060fb1e2ff98438b5cc",
        path="liver-disorders/bupa.data",
        parse=_parse_rows,
    ),
    # Indoor User Movement Prediction from RSS data. D. Bacciu, P. Barsocchi, S. Chessa, C. Gallicchio, A. Micheli.
    # Neural Computing and Applications 24 (6), 2014, doi:10.1007/s00521-013-1364-4.
    Source(
        name="movement",
        columns=("sequence_id", "t", *_ANCHORS, "target"),
        floats=frozenset(_ANCHORS),
        sha256="500a5bfcaa3e212a4ca87f0e7f4606d6b40c972495294200b1c53b944fe2da21",
        path="00348/MovementAAL.zip",
        parse=parse_movement,
    ),
    # Cardiotocography. J. P. Marques de Sa, J. Bernardes, D. Ayres de Campos (University of Porto),
    # doi:10.24432/C51S4N.
    Source(
        name="ctg",
        columns=CTG_COLUMNS,
        floats=frozenset({"AC", "FM", "UC", "DL", "DS", "DP", "MSTV", "MLTV"}),
        sha256="7081f3411cc7aaa11141c7961f707fb28822dcfdc59a1c0669919a0214574437",
        path="00193/CTG.xls",
        parse=parse_ctg,
    ),
)
CATALOGUE = {source.name: source for source in _SOURCES}


class DatasetError(MatrixDPError, OSError):
    """A data set cannot be obtained, or is not the one that was published."""


def download(source: Source, base: str) -> bytes:
    """The canonical table of a data set, from the archive at the address `base`."""
    if not base.startswith(("https://", "http://")):
        raise DatasetError(f"MATRIXDP_DATA_URL must be an http address to download from, got {base!r} instead.")
    url = f"{base.rstrip('/')}/{source.path}"
    try:
        with urllib.request.urlopen(url, timeout=_SECONDS) as answer:  # noqa: S310 - http only, see above
            raw = answer.read(_LARGEST + 1)
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()  # an answer of the server, which is open
        raise DatasetError(f"{url} cannot be downloaded: {error}.") from None
    if len(raw) > _LARGEST:
        raise DatasetError(f"{url} must be at most {_LARGEST} bytes.")
    try:
        table = source.canonical(source.parse(raw))
    except (ValueError, LookupError, StopIteration, zipfile.BadZipFile) as error:
        raise DatasetError(f"{url} is not the file that was published: {error}") from None
    return _check(source, table, url)


def _check(source: Source, table: bytes, where: str) -> bytes:
    """`table`, if its SHA-256 is the one in the catalogue."""
    found = hashlib.sha256(table).hexdigest()
    if found != source.sha256:
        raise DatasetError(
            f"{where} must have the SHA-256 {source.sha256} as {source.name}.csv, got {found} instead. "
            "Remove it, or get the original."
        )
    return table


LEVELS = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)


def simulate_table(name: str) -> Table:
    """A table with about the same marginal distributions and correlations as a data set, marked as simulated.

    For 'movement' it has the 2,021 records of the paper's experiment, as one sequence.
    """
    source = _find_source(name)
    summary = json.loads(resources.files("matrixdp").joinpath("summaries.json").read_text("utf-8"))[name]
    columns, records = summary["columns"], int(summary["records"])
    values, vectors = np.linalg.eigh(summary["correlations"])  # rounded correlations need not be positive definite
    factor = vectors * np.sqrt(np.maximum(values, 0.0))
    scores = np.random.default_rng(0).standard_normal((records, len(columns))) @ factor.T
    levels = ndtr(scores / np.sqrt(np.square(factor).sum(axis=1)))
    levels = (levels - levels.min(axis=0)) / np.ptp(levels, axis=0)  # the ends of the range occur, as in the data
    drawn = {"sequence_id": np.ones(records), "t": np.arange(records), "target": np.ones(records)}
    for column, level, quantiles in zip(columns, levels.T, summary["quantiles"], strict=True):
        found = np.interp(level, LEVELS, quantiles)
        drawn[column] = found if column in source.floats else np.rint(found)
    return Table(name, source.columns, np.column_stack([drawn[c] for c in source.columns]).astype(float), "simulated")


def load_table(name: str, *, simulate: bool = False) -> Table:
    """A data set by name: 'liver', 'movement' or 'ctg'.

    It is read from the folder ``MATRIXDP_DATA``, else from the user's cache, else from the UCI archive or the address
    ``MATRIXDP_DATA_URL`` (empty for no downloads). Its SHA-256 must be that of the published table. With `simulate`, a
    simulated table, marked as such, is returned if it cannot be obtained.
    """
    source = _find_source(name)
    for folder, place in ((os.environ.get("MATRIXDP_DATA"), "file"), (cache_folder(), "cache")):
        path = Path(folder) / f"{name}.csv" if folder else None
        if path is not None and path.is_file():
            content, origin = _check(source, path.read_bytes(), str(path)), place
            break
    else:
        origin, base = "download", os.environ.get("MATRIXDP_DATA_URL", ARCHIVE)
        try:
            if not base:
                raise DatasetError("downloads are switched off.")
            content = download(source, base)
        except (DatasetError, MissingExtraError) as error:
            if simulate:
                return simulate_table(name)
            raise DatasetError(
                f"{name}.csv is neither in MATRIXDP_DATA nor in the cache, and it was not downloaded: {error} "
                "Set MATRIXDP_DATA to a folder that has it, or use simulate=True."
            ) from None
        _store(source, content)
    return Table(name, source.columns, _parse_rows(content, header=1), origin)


def _find_source(name: str) -> Source:
    if name not in CATALOGUE:
        raise ParameterError(f"name must be one of {', '.join(CATALOGUE)}, got {name!r} instead.")
    return CATALOGUE[name]


def cache_folder() -> Path:
    """The user's cache of data sets."""
    home = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "matrixdp" / "datasets"


def _store(source: Source, content: bytes) -> None:
    """Store a table in the cache, if it is writable."""
    folder = cache_folder()
    part = folder / f"{source.name}.csv.{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part.write_bytes(content)
        part.replace(folder / f"{source.name}.csv")
    except OSError:
        part.unlink(missing_ok=True)
