"""Tables in files: one, a folder, a partitioned set or a pattern; CSV, Parquet and Feather."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matrixdp.errors import DataError, ParameterError
from matrixdp.records.discovery import find_files
from matrixdp.records.formats import CsvReader, FeatherReader, ParquetReader, TableReader, pyarrow
from matrixdp.records.opening import OpenOptions, make_engine, register_source
from matrixdp.records.stored import StoredRecords
from matrixdp.records.work import Part, sanitise_errors

_READERS: dict[str, type[TableReader]] = {
    ".csv": CsvReader,
    ".tsv": CsvReader,
    ".txt": CsvReader,
    ".parquet": ParquetReader,
    ".pq": ParquetReader,
    ".feather": FeatherReader,
    ".arrow": FeatherReader,
}
_MANY = 64  # files of a set from which each is one part, so that nobody need look into all of them first


@dataclass(frozen=True)
class File:
    """A table in a file.

    Attributes
    ----------
    path : str
        Absolute, so that workers elsewhere find it.
    place : str
        As it was given, for messages.
    delimiter : str
        Of CSV.
    keys : pairs of names and values
        From folders named ``key=value``, which hold for every record of the file.
    """

    path: str
    place: str
    delimiter: str = ","
    keys: tuple[tuple[str, str], ...] = ()

    @property
    def reader(self) -> TableReader:
        """By the ending of the name."""
        path = Path(self.path)
        if path.stat().st_size == 0:
            raise DataError(f"{self.place} is empty: it has neither columns nor records.")
        return _READERS[path.suffix.lower()](path, self.place, self.delimiter)

    def names(self) -> tuple[str, ...]:
        """The columns' names, those of the folders last."""
        names = sanitise_errors(self.place, lambda: self.reader.names())
        doubles = sorted({name for name in names if names.count(name) > 1})
        if doubles:
            first, second, *_ = (i for i, name in enumerate(names, start=1) if name == doubles[0])
            raise DataError(
                f"{self.place} has two columns with one name, {first} and {second}. Is its first line one of names?"
            )
        for key, _ in self.keys:
            if key in names:
                raise DataError(f"{self.place} has a column {key!r}, and so does a folder's name. Which one is meant?")
        return (*names, *(key for key, _ in self.keys))

    def pieces(self) -> list[range | None]:
        """Ranges of row groups that can be read apart from each other."""
        return sanitise_errors(self.place, lambda: self.reader.pieces())

    def count(self) -> int:
        """Number of records."""
        return sanitise_errors(self.place, lambda: self.reader.count())

    def choose(self, columns: Sequence[str] | None) -> Sequence[str]:
        """The columns, or all; an error unless the file has them."""
        names = self.names()
        for name in columns or ():
            if name not in names:
                raise DataError(f"{self.place} has no column {name!r}. {self._hint(names, columns or ())}")
        return names if columns is None else columns

    def _hint(self, names: Sequence[str], columns: Sequence[str]) -> str:
        if not isinstance(self.reader, CsvReader):
            return f"It has {_some(names)}. Mend the names or the file."
        if len(names) == 1:
            for mark, word in ((";", "';'"), ("\t", "tab"), ("|", "'|'"), (",", "','")):
                if mark in names[0]:
                    return f"Its columns seem to be separated by {word}: say --delimiter {word}."
            return "It has a single column; if another character separates them, say --delimiter."
        if not set(columns) & set(names):  # the first line may be a record
            return f"None of its {len(names)} columns is in the schema; is its first line one of names?"
        return f"It has {_some(names)}. Mend the names or the file."


@dataclass(frozen=True, eq=False)
class FilePart(Part):
    """A file, or some of its row groups."""

    file: File
    piece: range | None = None
    text: bool = False

    @property
    def place(self) -> str:
        """The file's path."""
        return self.file.place

    def blocks(self, columns: Sequence[str] | None) -> Iterator[Any]:
        """Record batches with these columns, in this order."""
        columns = self.file.choose(columns)
        keys = {key: value for key, value in self.file.keys if key in columns}
        stored = [name for name in columns if name not in keys]
        if not stored:
            raise DataError(f"{self.place}: at least one column must lie in the file itself, not in a folder's name.")
        for batch in self.file.reader.batches(stored, self.piece, text=self.text):
            whole = self._with_keys(batch, keys) if keys else batch
            yield whole if whole.schema.names == list(columns) else whole.select(list(columns))

    def table(self, columns: Sequence[str]) -> list[Any]:
        """All batches."""
        return sanitise_errors(self.place, lambda: list(self.blocks(columns)))

    def _with_keys(self, batch: Any, keys: dict[str, str]) -> Any:
        for key, value in keys.items():
            constant: Any = value
            if not self.text:
                try:
                    constant = float(value)
                except ValueError:
                    raise DataError(
                        f"{self.place}: {key!r} must be a number in the folder's name; leave the column out."
                    ) from None
            batch = batch.append_column(key, pyarrow().repeat(constant, batch.num_rows))
        return batch


@dataclass(frozen=True, eq=False)
class Files:
    """Tables in files that have the same columns.

    Attributes
    ----------
    place : str
        As it was given, for messages.
    roots : tuple of Path
        The folders that were searched.
    files : tuple of File
        In the order of their paths.
    """

    place: str
    roots: tuple[Path, ...]
    files: tuple[File, ...]

    once = False

    @property
    def ordered(self) -> bool:
        """Whether no folder is named ``key=value``, which would order the records by a value."""
        return not any(file.keys for file in self.files)

    def check_output(self, out: str | os.PathLike[str]) -> None:
        """An error for a folder to write to that the files lie in, or that lies where they were looked for."""
        place = Path(out).resolve()
        for root in self.roots:
            if place.is_relative_to(root.resolve()):
                raise ParameterError(
                    f"out must lie apart from the data, but {out} is inside of {root}, where it would be read as "
                    "records next time. Choose a folder outside of it."
                )
        if any(Path(file.path).resolve().is_relative_to(place) for file in self.files):
            raise ParameterError(f"out must lie apart from the data, but they are inside of {out}. Choose another.")

    def all_columns(self) -> tuple[str, ...]:
        """Names of the columns, as the first file has them."""
        return self.files[0].names()

    def require(self, columns: Sequence[str]) -> None:
        """An error unless the first file has the columns."""
        self.files[0].choose(columns)

    def parts(self) -> list[Part]:
        """Pieces of each file; whole files where there are many."""
        if len(self.files) >= _MANY:
            return [FilePart(file) for file in self.files]
        found: list[Part] = []
        for file in self.files:
            found += (FilePart(file, piece) for piece in file.pieces())
        return found

    def count(self) -> int:
        """Number of records."""
        return sum(file.count() for file in self.files)

    def columns(self, columns: Sequence[str], *, text: bool = False) -> list[list[Any]]:
        """Whole columns as Python values, for tables of categories and edges; as text from CSV if asked for."""
        values: list[list[Any]] = [[] for _ in columns]
        for file in self.files:
            for batch in FilePart(file, text=text).table(columns):
                for name, column in zip(columns, values, strict=True):
                    column += batch.column(name).to_pylist()
        return values


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")


def open_files(places: str | Path | Sequence[str | Path], *, delimiter: str | None = None) -> Files:
    """The tables at one place or several: files, folders or patterns such as ``records/*.parquet``. Reads nothing."""
    if delimiter is not None and len(delimiter) != 1:
        raise ParameterError("delimiter (--delimiter) must be a single character; a tab is 'tab' on the command line.")
    listed = [places] if isinstance(places, str | os.PathLike) else list(places)
    shown = str(listed[0]) + (f" and {len(listed) - 1} more" if len(listed) > 1 else "")
    searched: list[Path] = []
    files: list[File] = []
    for place in listed:
        if "://" in str(place):
            raise DataError(f"{place} cannot be read: mount it as a folder, or give a Dask or Spark frame.")
        root, paths = find_files(Path(place), tuple(_READERS))
        if Path(place).is_dir():
            searched.append(root)
        mark = delimiter or ("\t" if paths[0].suffix.lower() == ".tsv" else ",")
        files += (File(str(path.absolute()), str(path), mark, _keys(path.relative_to(root))) for path in paths)
    kinds = sorted({Path(file.path).suffix.lower() for file in files})
    if len(kinds) > 1:
        raise DataError(
            f"{shown} has files of several kinds ({', '.join(kinds)}). Give a pattern for those of one kind, such as "
            f"{Path(listed[0]) / '*'}{kinds[0]}."
        )
    return Files(shown, tuple(searched), tuple(files))


def _keys(path: Path) -> tuple[tuple[str, str], ...]:
    """What the names of folders below the one that was given say."""
    pairs = (folder.partition("=") for folder in path.parent.parts)
    return tuple((key, value) for key, mark, value in pairs if mark and key)


def _are_paths(data: Any) -> bool:
    if isinstance(data, list | tuple):
        return bool(data) and all(isinstance(item, str | os.PathLike) for item in data)
    return isinstance(data, str | os.PathLike)


@register_source(_are_paths)
def _open(data: Any, options: OpenOptions) -> StoredRecords:
    source = open_files(data, delimiter=options.delimiter)
    return StoredRecords(source, make_engine(options.workers), progress=options.progress)
