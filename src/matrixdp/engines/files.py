"""Tables in files: one, a folder, a partitioned set or a pattern; CSV, Parquet and Feather."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matrixdp.engines.formats import CsvReader, FeatherReader, ParquetReader, TableReader, pyarrow
from matrixdp.engines.part import Part, discreet
from matrixdp.errors import DataError, ParameterError

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
        with discreet(self.place):
            names = self.reader.names()
        doubles = sorted({name for name in names if names.count(name) > 1})
        if doubles:
            first, second, *_ = (i for i, name in enumerate(names, start=1) if name == doubles[0])
            raise DataError(
                f"{self.place} has two columns with one name, {first} and {second}. Is its first line one of names?"
            )
        return (*names, *(key for key, _ in self.keys if key not in names))

    def choose(self, columns: Sequence[str] | None) -> Sequence[str]:
        """The columns, or all; an error unless the file has them."""
        names = self.names()
        for name in columns or ():
            if name not in names:
                raise DataError(f"{self.place} has no column {name!r}. {self._hint(names, columns or ())}")
        return names if columns is None else columns

    def _hint(self, names: Sequence[str], columns: Sequence[str]) -> str:
        if not isinstance(self.reader, CsvReader):
            return f"It has {_some(names)}. Mend the schema or the file."
        if len(names) == 1:
            for mark, word in ((";", "';'"), ("\t", "tab"), ("|", "'|'"), (",", "','")):
                if mark in names[0]:
                    return f"Its columns seem to be separated by {word}: say --delimiter {word}."
            return "It has a single column; if another character separates them, say --delimiter."
        if not set(columns) & set(names):  # the first line may be a record
            return f"None of its {len(names)} columns is in the schema; is its first line one of names?"
        return f"It has {_some(names)}. Mend the schema or the file."


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
            yield self._with_keys(batch, keys) if keys else batch

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
        As it was given: a path or a pattern.
    files : tuple of File
        In the order of their paths.
    """

    place: str
    files: tuple[File, ...]

    def names(self) -> tuple[str, ...]:
        """The columns' names, as the first file has them."""
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
            with discreet(file.place):
                found += (FilePart(file, piece) for piece in file.reader.pieces())
        return found

    def count(self) -> int:
        """Number of records."""
        total = 0
        for file in self.files:
            with discreet(file.place):
                total += file.reader.count()
        return total

    def columns(self, columns: Sequence[str], *, text: bool = False) -> list[list[Any]]:
        """Whole columns as Python values, for tables of categories and edges; as text from CSV if asked for."""
        values: list[list[Any]] = [[] for _ in columns]
        for file in self.files:
            with discreet(file.place):
                for batch in FilePart(file, text=text).blocks(columns):
                    for name, column in zip(columns, values, strict=True):
                        column += batch.column(name).to_pylist()
        return values


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")


def open_files(place: str | Path, *, delimiter: str | None = None) -> Files:
    """The tables at `place`: a file, a folder or a pattern such as ``records/*.parquet``. Nothing is read yet."""
    if delimiter is not None and len(delimiter) != 1:
        raise ParameterError("delimiter (--delimiter) must be a single character; a tab is 'tab' on the command line.")
    paths = _found(Path(place))
    for path in paths:
        if path.suffix.lower() not in _READERS:
            raise DataError(f"{path} must end in {', '.join(_READERS)}, which says how to read it.")
    kinds = sorted({path.suffix.lower() for path in paths})
    if len(kinds) > 1:
        raise DataError(
            f"{place} has files of several kinds ({', '.join(kinds)}). Give a pattern for some of the folder, such as "
            f"{Path(place) / '*'}{kinds[0]}."
        )
    mark = delimiter or ("\t" if kinds[0] == ".tsv" else ",")
    return Files(str(place), tuple(File(str(path.absolute()), str(path), mark, _keys(path)) for path in paths))


def _found(place: Path) -> list[Path]:
    if place.is_dir():
        paths = sorted(path for path in place.rglob("*") if path.suffix.lower() in _READERS and path.is_file())
        shown = [path for path in paths if not any(_hidden(part) for part in path.relative_to(place).parts)]
        if not shown:
            raise DataError(f"{place} holds no files that end in {', '.join(_READERS)}.")
        return shown
    if place.exists():
        return [place]
    paths = sorted(Path(path) for path in glob.glob(str(place), recursive=True) if Path(path).is_file())
    if not paths:
        raise DataError(f"there is no file {place}. Check the path.")
    return paths


def _hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def _keys(path: Path) -> tuple[tuple[str, str], ...]:
    pairs = (folder.partition("=") for folder in path.parent.parts)
    return tuple((key, value) for key, mark, value in pairs if mark and key)
