"""The folder of tables with the schemas that curators wrote; and data sets of the ledger: budgets, gauges, tables.

Of a table, only names, columns and types are read here, never a value.
"""

import hashlib
import os
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from matrixdp.domain import Schema
from matrixdp.domain.file_rules import FileRules
from matrixdp.domain.schema_file import parse_schema
from matrixdp.errors import DataError, ParameterError, show
from matrixdp.ledger import Allowance, Charge, Event, Gaussian, Ledger, Summary
from matrixdp.ledger.ledger import find_charges
from matrixdp.ledger.location import Location
from matrixdp.privacy import Privacy, Unit
from matrixdp.records.files import FORMATS, Files, find_ending, open_files
from matrixdp.release.output_folder import write_file
from matrixdp.release.stream import PublishedStream
from matrixdp.studio.refusals import ConflictError, NotFoundError
from matrixdp.studio.roles import Viewer
from matrixdp.studio.state import State, insert, now

_LARGEST = 1 << 19  # characters of a schema
_LONGEST_NAME = 255  # bytes of a file's name
_MOST_NAMED = 20  # columns in a message
_TIMEOUT = 10.0  # seconds to wait for another process that writes the ledger


@dataclass(frozen=True)
class TableColumn:
    """A column: its name and its Arrow type as text; None where files do not say it, as in CSV."""

    name: str
    type: str | None


class TableFolder:
    """The tables of a folder by their names: its files, and folders of files with the same columns.

    Names cannot leave the folder: they have no separators, hidden ones are not tables, and a link that leads out of the
    folder is not followed.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Path(os.path.realpath(folder))

    def list_all(self) -> list[str]:
        """The names of all tables, in alphabetical order."""
        try:
            names = sorted(entry.name for entry in self.folder.iterdir())
        except OSError as error:
            raise DataError(f"the folder of tables cannot be read: {error.strerror}.") from None
        return [name for name in names if self.find(name) is not None]

    def path(self, name: str) -> Path:
        """The path of a table, or a `NotFoundError`."""
        found = self.find(name)
        if found is None:
            raise NotFoundError(f"there is no table {show(name)}.")
        return found

    def columns(self, name: str) -> list[TableColumn]:
        """The columns of a table, from the names and types that its files declare."""
        fields = self.open(name).fields()
        return [TableColumn(column, None if one is None else str(one.type)) for column, one in fields.items()]

    def open(self, name: str, rules: FileRules | None = None) -> Files:
        """The files of a table, none of which is outside of the folder, to be read by the rules."""
        files = open_files(self.path(name), rules=rules)
        for file in files.files:
            if not self._contains(Path(file.path)):
                raise NotFoundError(f"{name} has a link that leads out of the folder of tables.")
        return files

    def find(self, name: str) -> Path | None:
        """The path of a table; None if there is none of this name."""
        if not name or not name.isprintable() or name.startswith((".", "_")) or "/" in name or os.sep in name:
            return None
        path = self.folder / name
        if not self._contains(path):
            return None
        try:
            return path if path.is_dir() or (path.is_file() and find_ending(name) in FORMATS) else None
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

    def parse(self, table: str) -> Schema | None:
        """The schema of a table; None if there is none yet."""
        text = self.read(table)
        return None if text is None else parse_schema(text, table)

    def require(self, table: str) -> str:
        """The text of a table's schema, or a `NotFoundError` if there is none yet."""
        text = self.read(table)
        if text is None:
            raise NotFoundError(f"{table} has no schema yet. A curator writes it first.")
        return text

    def write(self, table: str, text: str) -> None:
        """Keep the text of a schema, completely or not at all; a `ParameterError` names the first mistake in it."""
        if len(text) > _LARGEST:
            raise ParameterError(f"the schema must have at most {_LARGEST:,} characters, got {len(text):,} instead.")
        schema = parse_schema(text, self.path(table).name)
        schema.check()
        self._tables.open(table, schema.rules).require(schema.required_names())
        write_file(self.path(table), text, option="state")


@dataclass(frozen=True)
class Dataset:
    """A data set of the ledger, and the tables that are released as it."""

    name: str
    summary: Summary
    tables: tuple[str, ...]


class DatasetBook:
    """Reads data sets from the ledger, and registers them."""

    def __init__(self, ledger: Location, state: State, tables: TableFolder, schemas: SchemaStore) -> None:
        self._location, self._state, self._tables, self._schemas = ledger, state, tables, schemas

    def open_ledger(self, viewer: Viewer | None = None) -> Ledger:
        """The ledger, in which `viewer` writes and pays."""
        who: Any = {} if viewer is None else {"actor": viewer.name, "groups": viewer.groups}
        return Ledger.open(self._location, timeout=_TIMEOUT, **who)

    def list_all(self) -> list[Dataset]:
        """All data sets, in the order in which they were registered."""
        with self.open_ledger() as ledger:
            summaries = ledger.summaries()
        tables, named = self._tables_by_dataset(), {found.registration.dataset: found for found in summaries}
        removed = {row["dataset"] for row in self._state.select("SELECT dataset FROM removed_datasets")}
        return [Dataset(name, found, tuple(tables[name])) for name, found in named.items() if name not in removed]

    def get(self, name: str) -> Dataset:
        """One data set, or a `NotFoundError`."""
        found = {dataset.name: dataset for dataset in self.list_all()}
        if name not in found:
            raise NotFoundError(f"there is no data set {show(name)} in the ledger.")
        return found[name]

    def history(self, name: str) -> list[Charge]:
        """The charges to a data set, in order: what was released, when, by whom and what for."""
        self.get(name)
        with self.open_ledger() as ledger:
            return ledger.history(name)

    def find_stream(self, folder: Path, dataset: str, name: str) -> tuple[Path, PublishedStream]:
        """The public file of a stream in a folder, and its content, which must be as the ledger of a data set says."""
        path = folder / f"{name}.json"
        self.get(dataset)
        with self.open_ledger() as ledger:
            known = find_charges(ledger, dataset, f"stream {name}")
            if not known or path.parent != folder or not path.is_file():
                raise NotFoundError(f"there is no public file of a stream {show(name)} of {show(dataset)}.")
            public = PublishedStream.open(path)
            public.verify(ledger, dataset, latest=False)
        return path, public

    def register(
        self,
        viewer: Viewer,
        name: str,
        table: str,
        *,
        epsilon: float,
        delta: float,
        neighbours: str = "replace",
        unit: str = "record",
    ) -> Dataset:
        """Register a data set with its total, which cannot be changed later, and say that `table` is released as it.

        Registering it again with the same values only adds the table. `unit` is as for `Ledger.register`.
        """
        self._tables.path(table)
        _check_part(name)
        privacy, protected = Privacy(epsilon, delta), Unit.parse(unit)
        self._check_person(table, protected)
        with self.open_ledger(viewer) as ledger:
            ledger.register(name, privacy, neighbours=neighbours, unit=protected)
        with self._state.writing() as connection:
            connection.execute("DELETE FROM removed_datasets WHERE dataset = ?", (name,))
            insert(connection, "dataset_tables", dataset=name, table_name=table)
        return self.get(name)

    def remove(self, viewer: Viewer, name: str) -> None:
        """Take a data set that nothing was charged to off the pages, for example one with a wrong column of persons.

        Its entry stays in the ledger, so the name can be registered again with the same values only.
        """
        found = self.get(name)
        with self._state.writing() as connection:
            waiting = connection.execute(
                "SELECT count(*) FROM requests WHERE dataset = ? AND status NOT IN ('refused', 'failed')", (name,)
            ).fetchone()[0]
            if found.summary.counts.charges:
                raise ConflictError(f"{show(name)} cannot be removed: releases were charged to it.")
            if waiting:
                raise ConflictError(f"{show(name)} cannot be removed: {waiting:,} requests are for it.")
            connection.execute("DELETE FROM dataset_tables WHERE dataset = ?", (name,))
            insert(connection, "removed_datasets", dataset=name, by=viewer.name, time=now())

    def _check_person(self, table: str, unit: Unit) -> None:
        """Raise unless the column of persons is one of the table, and the one that its schema names."""
        schema = self._schemas.parse(table)
        person = None if schema is None or schema.person is None else schema.person.column
        if unit.column is not None and person is None:
            names = list(self._tables.open(table, None if schema is None else schema.rules).fields())
            if unit.column not in names:
                raise ParameterError(
                    f"person must be a column of {table}, got {show(unit.column)} instead; it has "
                    f"{', '.join(names[:_MOST_NAMED])}{', ...' if len(names) > _MOST_NAMED else ''}.",
                    parameter="person",
                )
        if schema is not None and person != unit.column and (person is not None or schema.graph is None):
            has, wants = (
                "each row is one person's" if one is None else f"rows belong to people by the column {show(one)}"
                for one in (person, unit.column)
            )
            raise ParameterError(
                f"person must be as in the schema of {table}, in which {has}; here {wants}. Change one of them.",
                parameter="person",
            )

    def require_table(self, name: str, table: str) -> None:
        """Raise a `NotFoundError` unless the table is released as this data set."""
        if table not in self._tables_by_dataset()[name]:
            raise NotFoundError(f"{show(table)} is not a table of the data set {show(name)}.")

    def allow(self, viewer: Viewer, name: str, allowance: str, *, payers: Iterable[str] = (), **size: Any) -> Allowance:
        """Set a part of a data set's total apart, as `epsilon` or as a `share` such as ``"1/4"``, for some people."""
        self.get(name)
        _check_part(allowance)
        with self.open_ledger(viewer) as ledger:
            return ledger.allow(name, allowance, payers=payers, **size)

    def return_allowance(self, viewer: Viewer, name: str, allowance: str) -> Allowance:
        """End an allowance; what it has not spent is available to all again."""
        self.get(name)
        with self.open_ledger(viewer) as ledger:
            return ledger.return_allowance(name, allowance)

    def _tables_by_dataset(self) -> defaultdict[str, list[str]]:
        found = defaultdict(list)
        for row in self._state.select("SELECT * FROM dataset_tables ORDER BY dataset, table_name"):
            found[row["dataset"]].append(row["table_name"])
        return found


def _check_part(name: str) -> None:
    if not name.isprintable() or name != name.strip() or "/" in name or name in ("", ".", ".."):
        message = "must be a name of printable characters, without / and spaces at its ends"
        raise ParameterError(f"name {message}: it is a part of addresses.", parameter="name")


class Gauge(NamedTuple):
    """Shares of a total, from 0 to 1."""

    spent: float
    allotted: float  # and not spent
    next: float  # what a release would take
    left: float  # the rest


def measure_budget(payer: Summary | Allowance, event: Event | None = None) -> Gauge:
    """The gauge of a data set or of an allowance, with a release that would be charged to what is not allotted of it.

    Shares are of mu squared, in which releases add up.
    """
    total, unspent = (payer.total_mu, payer.unspent) if isinstance(payer, Summary) else (payer.mu, payer.left)
    wanted = event.mu if isinstance(event, Gaussian) else 0.0
    parts = [min(1.0, (mu / total) ** 2) if total > 0 else 0.0 for mu in (unspent.mu, payer.left.mu, wanted)]
    taken = (1 - parts[0], parts[0] - parts[1], min(parts[1], parts[2]))
    return Gauge(*taken, left=max(0.0, 1.0 - sum(taken)))
