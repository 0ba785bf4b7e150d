"""The folder of tables: names, columns and their types, never a value; and the schemas that curators wrote for them."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from matrixdp.domain.file_rules import FileRules
from matrixdp.domain.schema import Schema
from matrixdp.domain.schema_file import parse_schema
from matrixdp.domain.schema_template import make_template
from matrixdp.errors import DataError, ParameterError, show
from matrixdp.records.files import Files, open_files
from matrixdp.release.output_folder import write_file
from matrixdp.studio.refusals import NotFoundError

_TEXT = tuple(name + codec for codec in ("", ".gz", ".zst") for name in (".csv", ".tsv", ".txt"))
_ENDINGS = (*_TEXT, ".parquet", ".pq", ".feather", ".arrow", ".xlsx", ".xls")
_LARGEST = 1 << 19  # characters of a schema
_LONGEST_NAME = 255  # bytes of a file's name


@dataclass(frozen=True)
class TableColumn:
    """A column: its name and its Arrow type as text; None where files do not say it, as in CSV."""

    name: str
    type: str | None
    nullable: bool


class TableFolder:
    """The tables of a folder: its files, and folders of files with the same columns.

    A table is named by the file or folder. Names cannot leave the folder: they have no separators, hidden ones are not
    tables, and a link that leads out of the folder is not followed.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Path(os.path.realpath(folder))

    def list_all(self) -> list[str]:
        """The names of all tables, in alphabetical order."""
        try:
            names = sorted(entry.name for entry in self.folder.iterdir())
        except OSError as error:
            raise DataError(f"the folder of tables cannot be read: {error.strerror}.") from None
        return [name for name in names if self._find(name) is not None]

    def has(self, name: str) -> bool:
        """Whether there is a table of this name."""
        return self._find(name) is not None

    def path(self, name: str) -> Path:
        """The path of a table, or a `NotFoundError`."""
        found = self._find(name)
        if found is None:
            raise NotFoundError(f"there is no table {show(name)}.")
        return found

    def columns(self, name: str) -> list[TableColumn]:
        """The columns of a table, from the names and types that its files declare."""
        fields = self.open(name).fields()
        return [
            TableColumn(column, None if field is None else str(field.type), field is None or bool(field.nullable))
            for column, field in fields.items()
        ]

    def template(self, name: str) -> str:
        """The text of a new schema for a table, with empty bounds and levels, as ``matrixdp schema new`` writes it."""
        return make_template(self.open(name).fields(), name)

    def open(self, name: str, sheet: str | None = None) -> Files:
        """The files of a table, none of which is outside of the folder; of a workbook, a sheet or the first one."""
        files = open_files(self.path(name), rules=FileRules(sheet=sheet))
        for file in files.files:
            if not self._contains(Path(file.path)):
                raise NotFoundError(f"{name} has a link that leads out of the folder of tables.")
        return files

    def _find(self, name: str) -> Path | None:
        if not name or not name.isprintable() or name.startswith((".", "_")) or "/" in name or os.sep in name:
            return None
        path = self.folder / name
        if not self._contains(path):
            return None
        try:
            return path if path.is_dir() or (path.is_file() and name.lower().endswith(_ENDINGS)) else None
        except OSError:  # a name that is too long
            return None

    def _contains(self, path: Path) -> bool:
        return Path(os.path.realpath(path)).is_relative_to(self.folder)


class SchemaStore:
    """Reads and writes the schema of each table."""

    def __init__(self, folder: Path, tables: TableFolder) -> None:
        self._folder, self._tables = folder, tables

    def path(self, table: str) -> Path:
        """Where the schema of a table is kept, whether it was written or not."""
        name = f"{self._tables.path(table).name}.toml"
        if len(os.fsencode(name)) > _LONGEST_NAME:
            name = f"{hashlib.sha256(os.fsencode(name)).hexdigest()}.toml"
        return self._folder / name

    def read(self, table: str) -> str | None:
        """The text of a table's schema; None if there is none yet."""
        try:
            return self.path(table).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def require(self, table: str) -> str:
        """The text of a table's schema, or a `NotFoundError` if there is none yet."""
        text = self.read(table)
        if text is None:
            raise NotFoundError(f"{table} has no schema yet. A curator writes it first.")
        return text

    def parse(self, table: str) -> Schema:
        """The schema of a table, or a `NotFoundError` if there is none yet."""
        return parse_schema(self.require(table), self.path(table).name)

    def check(self, table: str, text: str) -> Schema:
        """The schema that `text` describes, or a `ParameterError` that names the first mistake."""
        if len(text) > _LARGEST:
            raise ParameterError(f"the schema must have at most {_LARGEST:,} characters, got {len(text):,} instead.")
        schema = parse_schema(text, self.path(table).name)
        schema.check()
        return schema

    def write(self, table: str, text: str) -> Schema:
        """Check the text of a schema and keep it, completely or not at all."""
        schema = self.check(table, text)
        self._tables.open(table, schema.rules.sheet).require(schema.required_names())
        write_file(self.path(table), text, option="state")
        return schema
