"""The catalogue of data sets: columns, checksum of the canonical table, path in the archive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matrixdp.datasets.parsing import CTG_COLUMNS, parse_ctg, parse_liver, parse_movement

ARCHIVE = "https://archive.ics.uci.edu/ml/machine-learning-databases"


@dataclass(frozen=True)
class Source:
    """One data set.

    Attributes
    ----------
    name : str
        Of the canonical table, `name`.csv: UTF-8, LF line ends, a header row, values as published.
    columns : tuple of str
    floats : set of str
        Columns that are written as the shortest decimal that gives the float back; the others are integers.
    records : int
    sha256 : str
        Of the canonical table.
    path : str
        Of the raw file in the archive.
    parse : callable
        From the raw file's bytes to rows of numbers.
    citation : str
    """

    name: str
    columns: tuple[str, ...]
    floats: frozenset[str]
    records: int
    sha256: str
    path: str
    parse: Callable[[bytes], Sequence[Sequence[float]]]
    citation: str

    def canonical(self, rows: Sequence[Sequence[float]]) -> bytes:
        """The canonical table of these rows."""
        lines = [",".join(self.columns), *map(self._line, rows)]
        return ("\n".join(lines) + "\n").encode()

    def _line(self, row: Sequence[float]) -> str:
        pairs = zip(self.columns, row, strict=True)
        return ",".join(repr(float(value)) if name in self.floats else str(int(value)) for name, value in pairs)


_ANCHORS = ("rss_anchor1", "rss_anchor2", "rss_anchor3", "rss_anchor4")

CATALOGUE = {
    "liver": Source(
        name="liver",
        columns=("mcv", "alkphos", "sgpt", "sgot", "gammagt", "drinks", "selector"),
        floats=frozenset({"drinks"}),
        records=345,
        sha256="ab7c9f801a6fc0568605bda3796a3962d0b940a19ced4060fb1e2ff98438b5cc",
        path="liver-disorders/bupa.data",
        parse=parse_liver,
        citation="Liver Disorders. BUPA Medical Research Ltd.; R. S. Forsyth, 1990. UCI Machine Learning Repository.",
    ),
    "movement": Source(
        name="movement",
        columns=("sequence_id", "t", *_ANCHORS, "target"),
        floats=frozenset(_ANCHORS),
        records=13197,
        sha256="500a5bfcaa3e212a4ca87f0e7f4606d6b40c972495294200b1c53b944fe2da21",
        path="00348/MovementAAL.zip",
        parse=parse_movement,
        citation=(
            "Indoor User Movement Prediction from RSS data. D. Bacciu, P. Barsocchi, S. Chessa, C. Gallicchio, "
            "A. Micheli. Neural Computing and Applications 24 (6), 2014, doi:10.1007/s00521-013-1364-4."
        ),
    ),
    "ctg": Source(
        name="ctg",
        columns=CTG_COLUMNS,
        floats=frozenset({"AC", "FM", "UC", "DL", "DS", "DP", "MSTV", "MLTV"}),
        records=2126,
        sha256="7081f3411cc7aaa11141c7961f707fb28822dcfdc59a1c0669919a0214574437",
        path="00193/CTG.xls",
        parse=parse_ctg,
        citation=(
            "Cardiotocography. J. P. Marques de Sa, J. Bernardes, D. Ayres de Campos (University of Porto), "
            "doi:10.24432/C51S4N."
        ),
    ),
}
