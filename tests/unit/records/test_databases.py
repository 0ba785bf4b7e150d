"""Tables in databases and Arrow streams give the same integers as a file of the same rows, and no values in errors."""

import contextlib
import datetime as dt
import sqlite3
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.cli.main import run
from matrixdp.domain import FileRules
from matrixdp.domain.file_rules import DateRule
from matrixdp.errors import DataError, ParameterError
from matrixdp.records import open_records
from matrixdp.records.files import open_files
from matrixdp.records.people import number_of_people
from unit.records.conftest import read_columns

ROWS = 3000  # more than the 1024 from which the driver of SQLite would take a column's type
COLUMNS = {
    "age": (0, 120),
    "weight": mdp.Number("weight", 0, 300, missing=True),
    "ward": ["surgery", "medicine"],
    "smoker": bool,
}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    weight = rng.uniform(40, 120, ROWS)
    missing = rng.random(ROWS) < 0.2
    missing[:1500] = True  # no value among the first rows
    return pa.table(
        {
            "age": pa.array(rng.integers(0, 100, ROWS)),
            "weight": pa.array(weight, mask=missing),
            "ward": pa.array(rng.choice(["surgery", "medicine"], ROWS).tolist()),
            "smoker": pa.array(rng.random(ROWS) < 0.3),
            "person": pa.array([f"p{i}" for i in rng.integers(0, 700, ROWS)]),
            "came": pa.array(rng.integers(0, 20_000, ROWS), pa.int32()).cast(pa.date32()),
        }
    )


@pytest.fixture(scope="module")
def places(table, tmp_path_factory, postgres_server):
    """The same rows as a Parquet file, and in three databases, by their URLs."""
    folder = tmp_path_factory.mktemp("places")
    pq.write_table(table, folder / "visits.parquet")
    with duckdb.connect(str(folder / "a.duckdb")) as connection:
        connection.execute(f"CREATE TABLE visits AS SELECT * FROM '{folder}/visits.parquet'")
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    texts = [(*row[:5], row[5].isoformat()) for row in rows]
    with sqlite3.connect(folder / "a.db") as connection:
        connection.execute("CREATE TABLE visits (age, weight, ward, smoker, person, came)")
        connection.executemany("INSERT INTO visits VALUES (?, ?, ?, ?, ?, ?)", texts)
    connection.close()
    with postgres_server.connect() as connection:
        connection.execute("DROP TABLE IF EXISTS visits")
        connection.execute(
            "CREATE TABLE visits (age int, weight numeric, ward text, smoker bool, person text, came date)"
        )
        connection.cursor().executemany("INSERT INTO visits VALUES (%s, %s, %s, %s, %s, %s)", rows)
    return {
        "parquet": str(folder / "visits.parquet"),
        "duckdb": f"duckdb:///{folder}/a.duckdb?table=visits",
        "sqlite": f"sqlite:///{folder}/a.db?table=visits",
        "postgresql": f"{postgres_server.url()}&table=visits",
    }


def evaluate(query, data):
    return query.evaluate(data, clip=True, missing="error")


@pytest.mark.parametrize("kind", ["duckdb", "sqlite", "postgresql"])
def test_a_database_gives_the_same_sums_as_a_file(kind, places):
    query = mdp.TableMoments(mdp.Columns.from_dict(COLUMNS), ROWS)
    expected, found = (evaluate(query, open_records(places[one])) for one in ("parquet", kind))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", ["duckdb", "sqlite", "postgresql"])
def test_people_and_dates_are_read_as_from_a_file(kind, places):
    rules = FileRules(dates=(DateRule("came", "days", dt.date(1970, 1, 1)),))
    bounds, person = mdp.Bounds([0], [25_000], names=["came"]), mdp.Person("person")
    records = [open_records(places[one], rules=rules) for one in ("parquet", kind)]
    people = [number_of_people(one, person, rows=ROWS) for one in records]
    assert people[0] == people[1]
    expected, found = (evaluate(mdp.Moments(bounds, people[0], person=person), one) for one in records)
    np.testing.assert_array_equal(found, expected)


def test_a_relation_is_read_in_batches_each_time_anew(table):
    relation = duckdb.from_arrow(table).select("age, weight")
    query = mdp.Moments(mdp.Bounds([0], [120], names=["age"]), ROWS)
    expected = evaluate(query, table.select(["age"]))
    for _ in range(2):
        np.testing.assert_array_equal(evaluate(query, relation), expected)
    assert mdp.release_table(relation, {"age": (0, 120)}, epsilon=1, delta=1e-6).records == ROWS


def test_all_readings_of_a_server_see_one_state(places, postgres_server):
    source = open_files(places["postgresql"])
    assert source.count() == ROWS
    with postgres_server.connect() as connection:
        connection.execute("INSERT INTO visits (age) VALUES (50)")
        assert source.count() == len(read_columns(source, ["age"])[0]) == ROWS
        assert open_files(places["postgresql"]).count() == ROWS + 1
        connection.execute("DELETE FROM visits WHERE ward IS NULL")


def test_all_readings_of_a_file_see_one_state(tmp_path):
    with contextlib.closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("CREATE TABLE visits AS SELECT 1 AS age")
        source = open_files(f"sqlite:///{tmp_path}/a.db?table=visits")
        assert source.count() == 1
        connection.execute("INSERT INTO visits VALUES (2)")
        assert source.count() == len(read_columns(source, ["age"])[0]) == 1
    with duckdb.connect(str(tmp_path / "a.duckdb")) as writer:
        writer.execute("CREATE TABLE visits AS SELECT 1 AS age")
    reading = open_files(f"duckdb:///{tmp_path}/a.duckdb?table=visits")
    assert reading.count() == 1
    with pytest.raises(duckdb.Error):
        duckdb.connect(str(tmp_path / "a.duckdb"))


@pytest.mark.parametrize("kind", ["duckdb", "sqlite", "postgresql"])
def test_a_query_chooses_the_rows_and_cannot_write(kind, places):
    url = places[kind].replace("?table=visits", "").replace("&table=visits", "")
    source = open_files(url, sql="SELECT age FROM visits WHERE age >= 50;")
    assert 0 < source.count() < ROWS
    assert source.read_options == {"sql": "SELECT age FROM visits WHERE age >= 50;"}
    with pytest.raises(DataError, match="cannot be read"):
        open_files(url, sql="DELETE FROM visits").count()
    with contextlib.suppress(DataError):  # SQLite runs the first statement alone
        open_files(url, sql="SELECT 1) AS a; DELETE FROM visits; SELECT * FROM (SELECT 1").count()
    assert open_files(places[kind]).count() == ROWS


def test_a_text_among_numbers_of_sqlite_is_an_error_that_does_not_show_it(tmp_path):
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("CREATE TABLE visits (age)")
        connection.executemany("INSERT INTO visits VALUES (?)", [(1,)] * 2000 + [("secret",)])
    connection.close()
    records = open_records(f"sqlite:///{tmp_path}/a.db?table=visits")
    with pytest.raises(DataError, match="must hold numbers, but it contains text") as caught:
        evaluate(mdp.Moments(mdp.Bounds([0], [9], names=["age"]), 2001), records)
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None


def test_an_error_of_a_row_is_not_shown(places):
    url = places["postgresql"].replace("&table=visits", "")
    source = open_files(url, sql="SELECT CAST(ward AS int) AS ward FROM visits")
    with pytest.raises(DataError, match="is not shown") as caught:
        read_columns(source, ["ward"])
    assert "surgery" not in str(caught.value)
    assert "medicine" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "sql", "words"),
    [
        ("postgresql://ann:secret@localhost/clinic?table=visits", None, "without a password"),
        ("postgresql://ann@localhost/clinic?table=visits&password=secret", None, "without a password"),
        ("postgresql://ann@localhost/clinic", None, "either a table or a query"),
        ("sqlite:///missing.db?table=visits", None, "no file missing.db"),
        ("mysql://ann:secret@localhost/clinic?table=visits", None, "must be a path, or the URL of a table"),
        ("visits.csv", "SELECT 1", "for the URL of one database"),
    ],
)
def test_a_wrong_url_is_refused_without_showing_a_password(url, sql, words):
    with pytest.raises((DataError, ParameterError), match=words) as caught:
        open_files(url, sql=sql)
    assert "secret" not in str(caught.value)


def test_rows_of_a_database_have_no_public_order(places):
    with pytest.raises(DataError, match="a database has no order"):
        evaluate(mdp.Identity(mdp.Bounds([0], [120], names=["age"]), ROWS), open_records(places["duckdb"]))


def test_the_command_line_releases_a_query(places, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("schema.toml").write_text("[columns.age]\nlower = 0\nupper = 120\n[columns.weight]\nlower = 0\nupper = 300\n")
    url = places["duckdb"].replace("?table=visits", "")
    words = ["release", url, "--sql", "SELECT * FROM visits WHERE weight IS NOT NULL", "--schema", "schema.toml"]
    words += ["--query", "means", "--epsilon", "1", "--delta", "1e-6", "--no-ledger", "--out", "out"]
    assert run(words) == 0
    assert Path("out/report.html").exists()
