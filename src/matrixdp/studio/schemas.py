"""The schemas of tables: TOML files in the studio's own folder, named after their tables."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from matrixdp.cli.actions.output import write_file
from matrixdp.domain.schema import Schema
from matrixdp.domain.schema_file import parse_schema
from matrixdp.errors import ParameterError
from matrixdp.studio.refusals import NotFoundError
from matrixdp.studio.tables import TableFolder

_LARGEST = 1 << 19  # characters
_LONGEST_NAME = 255  # bytes of a file's name


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

    def parse(self, table: str) -> Schema:
        """The schema of a table, or a `NotFoundError` if there is none yet."""
        text = self.read(table)
        if text is None:
            raise NotFoundError(f"{table} has no schema yet. A curator writes it first.")
        return parse_schema(text, self.path(table).name)

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
