"""Wide tables, and small files that claim to be huge: linear time, and an error before the memory is used."""

import resource

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.records import choose_columns, formats
from matrixdp.records.files import open_files
from matrixdp.records.opening import load_npy
from matrixdp.records.parts import sanitise_errors
from unit.records.conftest import read_columns

COLUMNS = 100_000  # quadratic time would take minutes
LIMIT = 8 << 30


@pytest.fixture
def limited_memory():
    """No more memory for this process than it has a right to need."""
    previous = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, previous[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, previous)


def test_wide_tables_are_read_in_linear_time(tmp_path):
    names = [f"c{i}" for i in range(COLUMNS)]
    (tmp_path / "wide.csv").write_text(",".join(names) + "\n" + ",".join(["0.5"] * COLUMNS) + "\n")
    files = open_files(tmp_path / "wide.csv")
    assert files.column_names() == tuple(names)
    files.require(names[::-1])
    assert choose_columns(names, COLUMNS, names[::-1]) == names[::-1]


def test_a_double_name_among_many_is_found(tmp_path):
    (tmp_path / "wide.csv").write_text(",".join(f"c{i % (COLUMNS - 1)}" for i in range(COLUMNS)) + "\n")
    with pytest.raises(mdp.DataError, match=f"number 1 and {COLUMNS}"):
        open_files(tmp_path / "wide.csv").column_names()


def write_dictionary_bomb(path, kind, rows=30_000):
    """A file of a megabyte with columns of 30 GB."""
    column = pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), pa.array(["x" * (1 << 20)]))
    table = pa.table({"a": column, "b": column})
    if kind == "feather":
        feather.write_feather(table, path)
    else:
        pq.write_table(table, path, store_schema=kind == "categories")


@pytest.mark.parametrize("as_text", [False, True])
@pytest.mark.parametrize("kind", ["plain", "categories", "feather"])
def test_a_dictionary_bomb_is_not_expanded(tmp_path, limited_memory, kind, as_text):
    path = tmp_path / ("bomb.feather" if kind == "feather" else "bomb.parquet")
    write_dictionary_bomb(path, kind)
    assert path.stat().st_size < 1_000_000
    with pytest.raises(mdp.DataError, match=r"bomb\.\w*: column 'a' must have at most 256 MiB of text in 30,000 rows"):
        read_columns(open_files(path), ["a", "b"], as_text=as_text)


def test_text_is_read_as_it_was_written(tmp_path):
    values = ["x", None, "y", "x", ""] * 50_000
    pq.write_table(pa.table({"a": values, "n": range(250_000)}), tmp_path / "t.parquet", row_group_size=70_000)
    assert read_columns(open_files(tmp_path / "t.parquet"), ["n", "a"], as_text=True) == [list(range(250_000)), values]


def test_a_column_that_decompresses_a_thousandfold_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "_SUSPECT_BYTES", 1 << 20)
    table = pa.table({"a": np.zeros(1 << 20)})
    options = {"compression": "zstd", "use_dictionary": False}
    pq.write_table(table, tmp_path / "bomb.parquet", row_group_size=1 << 20, **options)
    query = mdp.Moments(mdp.Bounds(-1, 1, names=["a"]), 1 << 20)
    with pytest.raises(mdp.DataError, match=r"bomb\.parquet has a column that takes 8 MiB.*smaller row groups"):
        query.evaluate(tmp_path / "bomb.parquet", clip=True, missing="error")
    pq.write_table(table, tmp_path / "small.parquet", row_group_size=1 << 14, **options)
    query.evaluate(tmp_path / "small.parquet", clip=True, missing="error")


def test_a_feather_file_of_absurd_size_is_an_error(tmp_path, limited_memory):
    path = tmp_path / "absurd.feather"
    feather.write_feather(pa.table({"a": np.zeros(1000)}), path, compression="lz4")
    content = path.read_bytes()
    length = (8000).to_bytes(8, "little")
    spoiled = content.replace(length, (1 << 44).to_bytes(8, "little"))
    assert spoiled != content
    path.write_bytes(spoiled)
    with pytest.raises(mdp.DataError, match=r"absurd\.feather (cannot be read|needs more memory)"):
        mdp.Moments(mdp.Bounds(-1, 1, names=["a"]), 1000).evaluate(path, clip=True, missing="error")


def npy(header, version=1):
    size = 2 if version == 1 else 4
    return b"\x93NUMPY" + bytes([version, 0]) + len(header).to_bytes(size, "little") + header


NPY = {
    "long": npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1)}" + b" " * 20_000),
    "rows": npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (1" + b"0" * 400 + b", 1)}"),
    "rows beyond the file": npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 3)}"),
    "negative": npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 3)}"),
    "nested": npy(b"(" * 9000),
    "signs": npy(b"-" * 9000 + b"1"),
    "text": npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': 'x'}"),
    "cut": npy(b"{'descr': '<f8'")[:9],
    "type": npy(b"{'descr': 'f9999999999', 'fortran_order': False, 'shape': (1, 1)}"),
}


@pytest.mark.parametrize("content", NPY.values(), ids=NPY)
def test_a_bad_npy_file_is_an_error(tmp_path, content):
    (tmp_path / "bad.npy").write_bytes(content + bytes(8))
    with pytest.raises(mdp.DataError, match=r"bad\.npy must be a NPY file"):
        load_npy(tmp_path / "bad.npy")


def test_a_header_of_gigabytes_is_not_read(tmp_path, limited_memory):
    with (tmp_path / "bad.npy").open("wb") as file:
        file.write(npy(b"", version=2)[:8] + b"\xff\xff\xff\xff")
        file.truncate(5 << 30)  # a sparse file
    with pytest.raises(mdp.DataError, match="NPY file"):
        load_npy(tmp_path / "bad.npy")


def test_too_little_memory_is_not_called_damage():
    def task():
        raise MemoryError

    with pytest.raises(mdp.DataError, match=r"records\.csv needs more memory than there is") as caught:
        sanitise_errors("records.csv", task)
    assert "damaged" not in str(caught.value)
