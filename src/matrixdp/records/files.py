"""Source of tables in files: one file, a folder, a partitioned data set or a pattern; graphs in them."""

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from matrixdp.domain.file_rules import DEFAULT_RULES, FileRules
from matrixdp.errors import DataError, ParameterError
from matrixdp.records.databases import URLS, DatabaseTable, StreamSession, is_stream, open_database
from matrixdp.records.file_values import apply_rules
from matrixdp.records.formats import CsvFile, ExcelFile, FeatherFile, ParquetFile, TableFile
from matrixdp.records.parts import Part, sanitise_errors
from matrixdp.records.records import Source
from matrixdp.records.tables import column_numbers, pa
from matrixdp.types import Floats

_RELEASES = ("_release.json", "release.json")  # written into the output folder of a release
FORMATS: dict[str, type[TableFile]] = {
    **{name + codec: CsvFile for codec in ("", ".gz", ".zst") for name in (".csv", ".tsv", ".txt")},
    ".parquet": ParquetFile,
    ".pq": ParquetFile,
    ".feather": FeatherFile,
    ".arrow": FeatherFile,
    ".xlsx": ExcelFile,
    ".xls": ExcelFile,
}
_ENDINGS = ", ".join(FORMATS)
_MANY_FILES = 64  # from this number on, each file is one part, so that none has to be opened beforehand


def _find_files(place: Path) -> tuple[Path, list[Path]]:
    """The folder that was searched, and the files found, sorted by path.

    Names that begin with a dot or an underscore are skipped, as other readers of data sets do. Links are followed. If
    a pattern matches a folder, all files in it are found. A file with another ending is an error, because it might
    belong to the records; so is the output folder of a release, because it does not.
    """
    if place.is_file():
        _check_ending(place, alone=True)
        return place.parent, [place]
    root = place
    if not place.is_dir():  # the folder of a pattern before its first wildcard
        wild = next((i for i, part in enumerate(place.parts) if glob.has_magic(part)), len(place.parts) - 1)
        root = Path(*place.parts[:wild])
    matched = [place] if place.is_dir() else [Path(path) for path in glob.glob(str(place), recursive=True)]
    if not matched:
        alone = f"there is no file or folder {place}. Check the path."
        raise DataError(f"no file matches {place}." if glob.has_magic(str(place)) else alone)
    paths = [file for path in matched for file in (_walk(path) if path.is_dir() else [path])]
    for path in paths:
        if path.name in _RELEASES:
            raise DataError(f"{path.parent} is the output folder of a release, not records. Move it elsewhere.")
    found = sorted({path for path in paths if not _is_skipped(path.relative_to(root), root)})
    if not found:
        raise DataError(f"{place} contains no files that end in {_ENDINGS}.")
    for path in found:
        _check_ending(path, alone=False)
    return root, found


def find_ending(path: str | Path) -> str:
    """The ending of a file name in lower case; of a compressed file ``a.b.csv.gz`` it is ``.csv.gz``."""
    path = Path(path)
    return "".join(path.suffixes[-2 if path.suffix.lower() in (".gz", ".zst") else -1 :]).lower()


def _check_ending(path: Path, *, alone: bool) -> None:
    ending = find_ending(path)
    if ending in FORMATS:
        return
    remedy = "" if alone else " Remove it, or give a pattern that matches only the others."
    if path.suffix.lower() in (".gz", ".zip", ".bz2", ".zst", ".xz"):
        remedy = " Decompress it first."
    elif ending == ".npy":
        remedy = " Give an array of Python: numpy.load(path, mmap_mode='r')."
    raise DataError(f"{path} must end in {_ENDINGS}, which determines the format.{remedy}")


def _walk(folder: Path) -> Iterator[Path]:
    seen = set()
    for place, folders, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(place)
        if real in seen:  # a link to a folder that contains it
            folders.clear()
            continue
        seen.add(real)
        yield from (Path(place, name) for name in names)


def _is_skipped(path: Path, root: Path) -> bool:  # a hidden name, or a link to a folder that contains the link
    folders = [os.path.realpath(root / folder) for folder in path.parents]
    return len(set(folders)) < len(folders) or any(part.startswith((".", "_")) for part in path.parts)


@dataclass(frozen=True, eq=False)
class FilePart(Part):
    """Some columns of a file; texts in those that are not among `texts` are read as numbers."""

    file: TableFile
    columns: tuple[str, ...]
    texts: tuple[str, ...] = ()
    place = property(attrgetter("file.place"))
    in_process = property(attrgetter("file.in_process"))

    def blocks(self) -> Iterator[Any]:
        self.file.require_columns(self.columns)
        rules = self.file.rules
        texts = {*self.texts, *(rule.name for rule in rules.dates)}  # dates are read from texts
        keys = {key: value for key, value in self.file.keys if key in self.columns}
        stored = [name for name in self.columns if name not in keys]
        if not stored:  # any column tells the number of records
            stored = self.file.stored_names()[:1]
            texts.update(stored)
        for batch in self.file.batches(stored, tuple(texts)):
            for key, value in keys.items():
                batch = batch.append_column(key, pa.repeat(value, batch.num_rows).dictionary_encode())
            batch = apply_rules(rules, batch, texts)
            yield batch if batch.schema.names == list(self.columns) else batch.select(list(self.columns))


@dataclass(frozen=True, eq=False)
class Files(Source):
    """Tables in files that have the same columns, in the order of their paths."""

    place: str  # the paths as the caller gave them, for messages
    roots: tuple[Path, ...]  # the folders that were searched
    files: tuple[TableFile, ...]

    @property
    def ordered(self) -> bool:  # type: ignore[override]
        return all(file.ordered for file in self.files)

    @property
    def read_options(self) -> dict[str, Any]:  # type: ignore[override]
        return self.files[0].read_options

    def column_names(self) -> tuple[str, ...]:
        """The names of the columns of the first file."""
        return sanitise_errors(self.files[0].place, self.files[0].column_names)

    def fields(self) -> dict[str, Any]:
        """The Arrow fields of the first file's columns by their names, None where the type is unknown."""
        known = sanitise_errors(self.files[0].place, self.files[0].fields) or []
        return dict.fromkeys(self.column_names()) | {field.name: field for field in known}

    def require(self, columns: Sequence[str]) -> None:
        """Raise a `DataError` unless the first file has the columns."""
        sanitise_errors(self.files[0].place, self.files[0].require_columns, columns)

    def count(self) -> int:
        """The number of records."""
        return sum(sanitise_errors(file.place, file.count) for file in self.files)

    def estimate(self) -> int:
        """About how many records there are, for a progress bar; 0 if that would take long to find."""
        return sum(sanitise_errors(file.place, file.estimate) for file in self.files[:_MANY_FILES])

    def parts(self, columns: Sequence[str] | None, texts: Sequence[str] = ()) -> list[Part]:
        """Divide each file into ranges of row groups; if there are many files, each is one part."""
        names = self.column_names() if columns is None else tuple(columns)
        many = len(self.files) >= _MANY_FILES
        return [
            FilePart(split, names, names if columns is None and file.typed else tuple(texts))
            for file in self.files
            for split in ([file] if many else sanitise_errors(file.place, file.splits))
        ]

    def read_batches(self, columns: Sequence[str], texts: Sequence[str] = ()) -> list[Any]:
        """All record batches of some columns, in their order; those in `texts` are read as text."""
        parts = (FilePart(file, tuple(columns), tuple(texts)) for file in self.files)
        return [batch for part in parts for batch in sanitise_errors(part.place, list, part.blocks())]

    def check_output(self, out: str | os.PathLike[str]) -> None:
        place = Path(os.path.realpath(out))  # where `resolve` would raise for a loop of links
        for root in self.roots:
            if place.is_relative_to(os.path.realpath(root)):
                raise ParameterError(
                    f"out must be outside of the data, but {out} is inside of {root}, where it would be read as "
                    "records next time. Choose a folder outside of it."
                )
        if any(file.path and Path(os.path.realpath(file.path)).is_relative_to(place) for file in self.files):
            raise ParameterError(f"out must be outside of the data, but {out} contains them. Choose another folder.")


def open_files(places: Any, *, rules: FileRules | None = None, sql: str | None = None) -> Files:
    """The tables at one or several places: files, folders or patterns such as ``records/*.parquet``, or a database.

    The files are only listed, not opened; `sql` is the query of a database. An object that gives Arrow streams is a
    table, too.
    """
    rules = rules or DEFAULT_RULES
    if is_stream(places):
        place = f"the {type(places).__name__}"
        return Files(place, (), (DatabaseTable("", place, rules=rules, session=StreamSession(places)),))
    listed: list[Any] = [places] if isinstance(places, str | os.PathLike) else list(places)
    if len(listed) == 1 and "://" in str(listed[0]):
        table = open_database(str(listed[0]), sql=sql, rules=rules)
        return Files(table.place, (), (table,))
    if sql is not None:
        raise ParameterError(f"«sql» is for the URL of one database: {URLS}.", parameter="sql")
    given = str(listed[0]) + (f" and {len(listed) - 1} more" if len(listed) > 1 else "")
    roots: list[Path] = []
    files: dict[str, TableFile] = {}  # by where links lead
    for place in listed:
        if "://" in str(place):
            raise DataError("a database must be given alone, not together with other places.")
        root, paths = _find_files(Path(place))
        if Path(place).is_dir():
            roots.append(root)
        for path in paths:
            real = os.path.realpath(path)
            if real in files:  # each of its records would count twice, and be protected once
                same = f"{path} and {files[real].place} are the same file"
                raise DataError(f"{same}, whose records would count twice. Give it once.")
            pairs = (folder.partition("=") for folder in path.relative_to(root).parent.parts)
            keys = tuple((key, value) for key, equals, value in pairs if equals and key)
            files[real] = FORMATS[find_ending(path)](str(path.absolute()), str(path), keys, rules)
    endings = sorted({find_ending(file.path) for file in files.values()})
    if len(endings) > 1:
        raise DataError(
            f"{given} contains files of several formats ({', '.join(endings)}). Give a pattern for one of them, such "
            f"as {Path(listed[0]) / '*'}{endings[0]}."
        )
    return Files(given, tuple(roots), tuple(files.values()))


def are_tables(data: Any) -> bool:
    """Whether `open_files` opens the data: one or several paths or URLs, or an object that gives Arrow streams."""
    listed = data if isinstance(data, list | tuple) else [data]
    return is_stream(data) or (bool(listed) and all(isinstance(item, str | os.PathLike) for item in listed))


def read_edges(source: Files, nodes: Sequence[str]) -> Floats:
    """Adjacency matrix of shape (nodes, nodes) from a list of edges.

    Its columns are `source`, `target` and optionally `weight`. An edge may be listed in either direction, or in both
    with the same weight.
    """
    weighted = "weight" in source.column_names()
    places, ends = {name: i for i, name in enumerate(nodes)}, ("source", "target")
    matrix, seen = np.zeros((len(nodes), len(nodes))), np.zeros((len(nodes), len(nodes)), bool)
    for batch in source.read_batches([*ends, *["weight"] * weighted], texts=ends):
        weights = column_numbers("weight", batch.column("weight")) if weighted else np.ones(batch.num_rows)
        for *edge, weight in zip(*(batch.column(name).to_pylist() for name in ends), weights, strict=True):
            i, j = (places.get(str(node)) for node in edge)
            if i is None or j is None:
                raise DataError(f"{source.place} has an edge at a node that is not in the schema. Correct one of them.")
            if i == j:
                raise DataError(f"{source.place} has an edge from a node to itself. Remove such edges.")
            if seen[i, j] and matrix[i, j] != weight:
                raise DataError(f"{source.place} lists an edge twice with different weights. Add them up first.")
            matrix[i, j] = matrix[j, i] = weight
            seen[i, j] = seen[j, i] = True
    return matrix
