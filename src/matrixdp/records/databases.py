"""Tables in databases, and objects that give Arrow streams, as tables that are read in record batches.

PostgreSQL and SQLite are read by their ADBC drivers, DuckDB by itself; each is imported only when it is used. One
connection, in one transaction, serves all passes over the records, so that they see the same rows.
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from matrixdp.domain.file_rules import DEFAULT_RULES, FileRules
from matrixdp.errors import DataError, ParameterError, import_extra
from matrixdp.records.file_values import not_a_number
from matrixdp.records.formats import BadLine, TableFile
from matrixdp.records.tables import library_of, pa

URLS = "postgresql://USER@HOST/DATABASE?table=NAME, duckdb:///FILE?table=NAME or sqlite:///FILE?table=NAME"
_NO_STREAMS = ("dask", "pandas", "polars", "pyarrow", "pyspark")  # libraries whose tables are read in ways of their own


def is_stream(data: Any) -> bool:
    """Whether `data` is to be read by Arrow streams."""
    return hasattr(data, "__arrow_c_stream__") and library_of(data) not in _NO_STREAMS


class Session:
    """A connection to a database, opened at its first use, that sees one state of it and cannot write."""

    driver: ClassVar[tuple[str, str, str]]  # its module, the name of the database, and the extra that has it
    options: ClassVar[dict[str, Any]] = {}  # with which it connects
    begin: ClassVar[str] = ""  # the statement that begins a transaction
    typed: ClassVar[bool] = True  # whether it knows the types of columns
    answers: ClassVar[bool] = True  # whether it answers queries without reading rows: which columns, and how many rows

    def __init__(self, target: Any) -> None:
        self._target = target

    def __del__(self) -> None:
        if "_connection" in vars(self):
            self._connection.close()

    @cached_property
    def _connection(self) -> Any:
        module, database, extra = self.driver
        driver = import_extra(module, f"reading tables of {database} requires {module.partition('.')[0]}", extra)
        connection = driver.connect(self._target, **self.options)
        if self.begin:
            with connection.cursor() as cursor:
                cursor.execute(self.begin)
        return connection

    @contextlib.contextmanager
    def read(self, query: str) -> Iterator[Any]:
        """The result of a query, as a reader of record batches."""
        with self._connection.cursor() as cursor:
            cursor.execute(query)
            with cursor.fetch_record_batch() as reader:
                yield reader

    def write_column(self, kind: Any, *, as_text: bool) -> str:
        """The column ``{0}``, of an Arrow type, as an expression of SQL."""
        return "{0}"

    def read_column(self, name: str, column: Any, *, as_text: bool) -> Any:
        """A column as it was read, with null for a missing value."""
        return column


class StreamSession(Session):
    """An object that gives Arrow streams; each of them runs the query behind it, whatever is asked for."""

    answers = False

    def read(self, query: str) -> Any:
        return pa.RecordBatchReader.from_stream(self._target)


class PostgresSession(Session):
    """A connection to PostgreSQL."""

    driver = ("adbc_driver_postgresql.dbapi", "PostgreSQL", "postgres")
    begin = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"

    def write_column(self, kind: Any, *, as_text: bool) -> str:
        """Numbers of any length as floats, and other types that Arrow does not have, such as uuid, as text."""
        if getattr(kind, "type_name", "") == "numeric" and not as_text:
            return "CAST({0} AS double precision)"
        return "CAST({0} AS text)" if isinstance(kind, pa.BaseExtensionType) else "{0}"


class DuckSession(Session):
    """A connection to a DuckDB file, to which nobody can write while it is open: no transaction is needed."""

    driver, options = ("duckdb", "DuckDB", "duckdb"), {"read_only": True}

    def read(self, query: str) -> Any:
        return pa.RecordBatchReader.from_stream(self._connection.sql(query))


class SqliteSession(Session):
    """A connection to an SQLite file.

    A column of SQLite may hold values of several types, and its driver takes the type from the first rows. So that no
    record changes how another is read, each value is written as text, or as a float with infinity for a missing one
    and minus infinity for a text.
    """

    driver = ("adbc_driver_sqlite.dbapi", "SQLite", "sqlite")
    begin = "SELECT count(*) FROM sqlite_master"  # from this reading on, one state
    typed = False

    def __init__(self, target: str) -> None:
        super().__init__(f"{Path(target).absolute().as_uri()}?mode=ro")

    def write_column(self, kind: Any, *, as_text: bool) -> str:
        if as_text:
            return "coalesce(CAST({0} AS text), '')"
        others = "WHEN 'text' THEN -9e999 WHEN 'blob' THEN -9e999 ELSE {0} + 0.0 END"
        return f"CASE typeof({{0}}) WHEN 'null' THEN 9e999 {others}"

    def read_column(self, name: str, column: Any, *, as_text: bool) -> Any:
        """The column with null for infinity; raises a `DataError` if there is text in a column of numbers."""
        if as_text:
            return column
        if pa.compute.min(column).as_py() == -math.inf:
            raise not_a_number(name)
        return pa.compute.if_else(pa.compute.is_inf(column), pa.scalar(None, column.type), column)


@dataclass(frozen=True)
class DatabaseTable(TableFile):
    """A table of a database, the rows of a query, or a stream; `path` is that of a file, empty for others."""

    session: Session = field(repr=False, compare=False, kw_only=True)
    sql: str | None = field(default=None, kw_only=True)  # the query, if one was given
    rows: str = field(default="", kw_only=True)  # what is read, as SQL
    ordered: ClassVar[bool] = False
    in_process: ClassVar[bool] = True
    typed = property(attrgetter("session.typed"))

    @property
    def read_options(self) -> dict[str, Any]:
        return {**({} if self.sql is None else {"sql": self.sql}), **super().read_options}

    @cached_property
    def _schema(self) -> Any:
        """The schema of the result without rows, which does not change within the transaction."""
        if not self.session.answers:
            with self._guard(self.session.read, "") as reader:
                return reader.schema
        try:
            with self.session.read(f"SELECT * FROM {self.rows} LIMIT 0") as reader:  # noqa: S608
                return reader.schema
        except (ImportError, DataError):
            raise
        except Exception as error:  # of the driver; no rows were read
            raise DataError(f"{self.place} cannot be read: {' '.join(str(error).split())}") from None

    def fields(self) -> list[Any]:
        return list(self._schema)

    def count(self) -> int:
        if not self.session.answers:
            return super().count()
        self.fields()  # whose errors can be shown
        (batch,) = self._read(f"SELECT count(*) AS n FROM {self.rows}")  # noqa: S608
        return int(batch.column(0)[0].as_py())

    def batches(self, columns: Sequence[str], texts: Sequence[str] = ()) -> Iterator[Any]:
        kinds = {one.name: one.type for one in self.fields()}
        written = []
        for name in columns:
            quoted, column = _quote(name), self.session.write_column(kinds[name], as_text=name in texts)
            written.append(f"{column.format(quoted)} AS {quoted}")
        for found in self._read(f"SELECT {', '.join(written)} FROM {self.rows}"):  # noqa: S608
            batch = found.select(list(columns))
            for i, name in enumerate(columns):
                column = self.session.read_column(name, batch.column(i), as_text=name in texts)
                batch = batch if column is batch.column(i) else batch.set_column(i, name, column)
            yield self._decode_text(batch, keep=texts)

    def as_written(
        self, columns: Sequence[str], texts: Sequence[str], broken: BadLine, *, count: bool = False
    ) -> Iterator[Any]:
        return self.batches(columns, texts if self.typed else columns)

    def _read(self, query: str) -> Iterator[Any]:
        """The record batches of a query. The database's errors may quote rows, and are not shown."""
        with contextlib.ExitStack() as opened:
            reader = self._guard(opened.enter_context, self.session.read(query))
            while (batch := self._guard(next, reader, None)) is not None:
                yield batch

    def _guard(self, function: Callable[..., Any], *arguments: Any) -> Any:
        with contextlib.suppress(Exception):
            return function(*arguments)
        raise DataError(
            f"{self.place} cannot be read: the database ended the query with an error, which is not shown since it may "
            "quote values. Run the query there."
        )


_SESSIONS: dict[str, type[Session]] = {"duckdb": DuckSession, "sqlite": SqliteSession}
_SESSIONS |= dict.fromkeys(("postgresql", "postgres"), PostgresSession)


def open_database(url: str, *, sql: str | None = None, rules: FileRules = DEFAULT_RULES) -> DatabaseTable:
    """The table that a URL names with its option ``table``, or the rows of the query `sql`. Nothing is read yet."""
    parts = urlsplit(url)
    if parts.scheme not in _SESSIONS:
        raise DataError(
            f"data must be a path, or the URL of a table: {URLS}. For another place, mount it as a folder, or give a "
            "Dask or Spark data frame."
        )
    options = dict(parse_qsl(parts.query))
    if parts.password is not None or {"password", "sslpassword"} & options.keys():
        raise ParameterError(
            "data must be a URL without a password: leave it out, and set the environment variable PGPASSWORD, or put "
            "it into the file .pgpass."
        )
    table, file = options.pop("table", None), unquote(parts.path.removeprefix("/"))
    if (table is None) == (sql is None):
        raise ParameterError(f"data must name either a table or a query («sql»), as in {URLS}.", parameter="sql")
    kind = _SESSIONS[parts.scheme]
    server = kind is PostgresSession
    target = parts._replace(query=urlencode(options)).geturl() if server else file
    if not server and not Path(file).is_file():
        raise DataError(f"there is no file {file}. Check the path; a path from the root has four slashes: sqlite:////.")
    rows = f"({(sql or '').strip().rstrip(';')}) AS selected"
    rows = rows if table is None else ".".join(map(_quote, table.split(".")))
    path = "" if server else str(Path(file).absolute())
    return DatabaseTable(path, url, rules=rules, session=kind(target), sql=sql, rows=rows)


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
