"""Damaged files: the error names the file and shows no value, and nothing is charged or released."""

import itertools
from threading import Event

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.records import InMemoryPart
from matrixdp.records.parts import Threads
from unit.records.conftest import BOUNDS, NAMES, PRIVACY, RECORDS, UNNAMED, make_table, write_parts

SECRET = 77.765432
DESIGN = mdp.make_design(mdp.Moments(BOUNDS, RECORDS), PRIVACY)


def damage(path):
    content = bytearray(path.read_bytes())
    content[200:2000] = b"\xff" * 1800
    path.write_bytes(content)


def cut(path):
    path.write_bytes(path.read_bytes()[:-100])


def swap(change):
    return lambda path: pq.write_table(change(pq.read_table(path)), path)


def hole(value):
    def change(table):
        values = [SECRET, *table.column("b").to_pylist()[1:-1], value]
        return table.set_column(2, "b", pa.array(values, pa.float32()))

    return swap(change)


FAULTS = {
    "damaged": (damage, "cannot be read"),
    "cut short": (cut, "cannot be read"),
    "empty": (lambda path: path.write_bytes(b""), "is empty"),
    "no Parquet": (lambda path: path.write_text(f"a,b,c\n{SECRET},1,2\n"), "cannot be read"),
    "other columns": (swap(lambda table: table.rename_columns(["key", "a", "b", "d"])), "no column 'c'"),
    "text": (
        swap(lambda table: table.drop_columns("b").append_column("b", table.column("key"))),
        "'b' must hold numbers",
    ),
    "null": (hole(None), "'b' has an empty"),
    "NaN": (hole(np.nan), "'b' has an empty"),
    "infinity": (hole(-np.inf), "'b' has an empty"),
}


@pytest.mark.parametrize(("spoil", "words"), FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("workers", [1, 3])
def test_a_fault_names_its_file_and_costs_nothing(tmp_path, data, ledger, spoil, words, workers):
    folder = write_parts(tmp_path / "set", data, parts=6)
    spoil(folder / "004.parquet")
    with pytest.raises(mdp.DataError, match=words) as caught:
        DESIGN.release(mdp.open_records(folder, workers=workers), ledger=ledger, dataset="clinic")
    assert "004.parquet" in str(caught.value)
    assert "77.7" not in str(caught.value)
    with mdp.Ledger.open(ledger) as opened:
        assert opened.history("clinic") == []


def test_a_file_that_vanishes_in_mid_job_is_named(tmp_path, data, ledger):
    folder = write_parts(tmp_path / "set", data, parts=70)
    vanish = lambda rows: (folder / "069.parquet").unlink(missing_ok=True)  # noqa: E731
    with pytest.raises(mdp.DataError, match=r"069\.parquet does not exist"):
        DESIGN.release(mdp.open_records(folder, workers=1, progress=vanish), ledger=ledger, dataset="clinic")
    with mdp.Ledger.open(ledger) as opened:
        assert opened.history("clinic") == []


def test_empty_row_groups_and_files_are_no_fault(tmp_path, data):
    folder = write_parts(tmp_path / "set", data, parts=2)
    table = make_table(data)
    with pq.ParquetWriter(folder / "001a.parquet", table.schema) as writer:
        writer.write_table(table.slice(0, 0))
        writer.write_table(table.slice(0, 0))
    expected = DESIGN.query.evaluate(data, clip=True, missing="error")
    assert np.array_equal(DESIGN.query.evaluate(folder, clip=True, missing="error"), expected)


@pytest.mark.parametrize("records", [RECORDS - 1, RECORDS + 1])
def test_the_number_of_records_is_checked(tmp_path, data, records):
    folder = write_parts(tmp_path / "set", data, parts=2)
    with pytest.raises(mdp.ParameterError, match="records must be the number of rows of the data, 3000"):
        mdp.Moments(BOUNDS, records).evaluate(folder, clip=True, missing="error")


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("nowhere", "there is no file"),
        ("nowhere/*.parquet", "no file matches"),
        ("empty", "contains no files"),
        ("mixed", "several formats"),
        ("other.dat", "must end in"),
        ("strange", "must end in"),
        ("records.npy", "must end in"),
    ],
)
def test_what_is_not_there_is_named(tmp_path, place, words):
    (tmp_path / "empty").mkdir()
    (tmp_path / "mixed").mkdir()
    (tmp_path / "strange").mkdir()
    for name in ("strange/a.parquet", "strange/b.csv.xz", "mixed/a.csv", "mixed/b.parquet", "other.dat", "records.npy"):
        (tmp_path / name).write_text("a,b,c\n")
    with pytest.raises(mdp.DataError, match=words):
        mdp.open_records(tmp_path / place)


@pytest.mark.parametrize("workers", [0, -1, "four", True, 2.5])
def test_workers_must_be_threads_or_a_cluster(tmp_path, data, workers):
    with pytest.raises(mdp.ParameterError, match="workers must be"):
        mdp.open_records(write_parts(tmp_path / "set", data, parts=1), workers=workers)


def test_what_is_in_memory_needs_no_opening():
    with pytest.raises(mdp.ParameterError, match="data must be a path"):
        mdp.open_records(np.zeros((3, 3)))


def test_an_iterator_is_read_once(data):
    records = mdp.open_records(iter([data]))
    query = mdp.Moments(UNNAMED, RECORDS)
    query.evaluate(records, clip=True, missing="error")
    with pytest.raises(mdp.ParameterError, match="Blocks"):
        query.evaluate(records, clip=True, missing="error")


def test_a_task_that_fails_stops_the_others():
    """The second task ends only because the first one fails, once both are running."""
    started = Event()

    def task(number, blocks):
        if number == 0:
            assert started.wait(60)
            raise mdp.DataError("the first part is damaged")
        for _ in blocks:
            started.set()

    parts = [InMemoryPart("first"), InMemoryPart("second", itertools.repeat([]))]
    with pytest.raises(mdp.DataError, match="first: the first part is damaged"):
        list(Threads(2).run(task, parts, whole=True))


def test_a_column_in_a_folders_name_must_be_a_number(tmp_path, data):
    folder = write_parts(tmp_path / "set" / "town=Basel", data, parts=1).parent
    bounds = mdp.Bounds([0, 0], [1, 1], names=["a", "town"])
    with pytest.raises(mdp.DataError, match="'town' must hold numbers"):
        mdp.Moments(bounds, RECORDS).evaluate(folder, clip=True, missing="error")
    with pytest.raises(mdp.DataError, match="no column 'z'"):
        mdp.Moments(mdp.Bounds([0], [1], names=["z"]), RECORDS).evaluate(folder, clip=True, missing="error")


def test_a_table_without_names_must_have_as_many_columns(tmp_path, data):
    folder = write_parts(tmp_path / "set", data, parts=1)
    with pytest.raises(mdp.DataError, match="must have 3 columns, like the bounds, got 4"):
        mdp.Moments(UNNAMED, RECORDS).evaluate(folder, clip=True, missing="error")
    assert BOUNDS.names == NAMES


def test_a_folder_that_was_released_holds_no_records(tmp_path, data):
    folder = write_parts(tmp_path / "set", data, parts=2)
    design = mdp.make_design(mdp.Identity(BOUNDS, RECORDS), PRIVACY)
    mdp.release_dataset(design, str(folder / "*.parquet"), folder / "noisy")
    with pytest.raises(mdp.DataError, match="output folder of a release"):
        mdp.open_records(folder)
    query = mdp.Moments(BOUNDS, RECORDS)
    expected = query.evaluate(data, clip=True, missing="error")
    assert np.array_equal(query.evaluate(str(folder / "*.parquet"), clip=True, missing="error"), expected)


def test_lists_of_paths_are_read_in_their_order(tmp_path, data):
    folder = write_parts(tmp_path / "set", data, parts=3)
    paths = sorted(folder.iterdir())
    query = mdp.Identity(BOUNDS, RECORDS)
    assert np.array_equal(
        query.evaluate(paths, clip=True, missing="error"), query.evaluate(data, clip=True, missing="error")
    )
    turned = query.evaluate([paths[2], paths[0], paths[1]], clip=True, missing="error")
    assert np.array_equal(turned, query.evaluate(np.roll(data, RECORDS // 3, axis=0), clip=True, missing="error"))


@pytest.mark.parametrize(
    ("place", "words"), [("s3://bucket/set", "mount it"), ("a.csv.xz", "Decompress it"), ("*.csv", "no file matches")]
)
def test_what_cannot_be_read_has_a_remedy(tmp_path, monkeypatch, place, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv.xz").write_bytes(b"x")
    with pytest.raises(mdp.DataError, match=words):
        mdp.open_records(place)


def test_addresses_and_progress_are_checked_at_once(tmp_path, data):
    folder = write_parts(tmp_path / "set", data, parts=1)
    with pytest.raises(mdp.ParameterError, match=r"did you mean tcp://host:8786\?"):
        mdp.open_records(folder, workers="host:8786")
    with pytest.raises(mdp.ParameterError, match="workers must be"):
        mdp.open_records(folder, workers="http://host:8786")
    with pytest.raises(mdp.ParameterError, match="progress must be a function"):
        mdp.open_records(folder, progress=True)


def test_a_gram_matrix_that_memory_cannot_hold_is_named():
    with pytest.raises(mdp.ParameterError, match=r"300,000 x 300,000; give fewer records, or public points"):
        mdp.GramMatrix(UNNAMED, 300_000).evaluate(np.zeros((300_000, 3)), clip=True, missing="error")
