"""Out-of-core records of every kind of source give the same bits as records in one array."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.records.files import open_files
from unit.records.conftest import BOUNDS, NAMES, RECORDS, UNNAMED, make_data, make_table, write_parts

BALL = mdp.Bounds([-1, -2, 0], [1, 3, 1], names=NAMES, radius=1.5)
QUERIES = {
    "moments": mdp.Moments(BOUNDS, RECORDS),
    "second moment": mdp.SecondMoment(BOUNDS, RECORDS),
    "centred": mdp.SecondMoment(BOUNDS, RECORDS, centre=[0.1, 0.2, 0.3]),
    "ball": mdp.Moments(BALL, RECORDS),
    "add-remove": mdp.Moments(BOUNDS, 2900, neighbours="add-remove"),
    "identity": mdp.Identity(BOUNDS, RECORDS),
}


def answer(query, data, **options):
    return query.evaluate(data, clip=True, missing="error", **options)


def parquet(folder, data, rows=None):
    pq.write_table(make_table(data), folder / "records.parquet", row_group_size=rows)
    return folder / "records.parquet"


def feather(folder, data):
    pa.feather.write_feather(make_table(data), folder / "records.feather", chunksize=250)
    return folder / "records.feather"


def csv(folder, data):
    pa.csv.write_csv(make_table(data.astype(float)).drop_columns("key"), folder / "records.csv")
    return folder / "records.csv"


def partitioned(folder, data):
    for i, piece in enumerate(np.array_split(data, 4)):
        write_parts(folder / f"year={2020 + i}", piece, parts=2)
    return folder


def mapped(folder, data):
    np.save(folder / "records.npy", data)
    return np.load(folder / "records.npy", mmap_mode="r")


FILES = {
    "parquet": parquet,
    "small row groups": lambda folder, data: parquet(folder, data, rows=10),
    "path as text": lambda folder, data: str(parquet(folder, data, rows=500)),
    "feather": feather,
    "csv": csv,
    "folder": lambda folder, data: write_parts(folder / "set", data, parts=7),
    "many files": lambda folder, data: write_parts(folder / "set", data, parts=70),
    "pattern": lambda folder, data: str(write_parts(folder / "set", data, parts=3) / "*.parquet"),
    "partitioned": lambda folder, data: partitioned(folder / "set", data),
}
ARRAYS = {
    "map": mapped,
    "map, columns first": lambda folder, data: mapped(folder, np.asfortranarray(data)),
    "piece of a map": lambda folder, data: mapped(folder, np.concatenate([data[:5], data]))[5:],
    "iterator": lambda folder, data: iter(np.array_split(data, 9)),
    "generator of tables": lambda folder, data: (make_table(piece) for piece in np.array_split(data, 4)),
    "blocks": lambda folder, data: mdp.records.Blocks(lambda: iter(np.array_split(data, 5))),
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
@pytest.mark.parametrize("make", FILES.values(), ids=FILES)
def test_files_give_the_bits_of_the_array(tmp_path, data, make, query):
    if make is FILES["partitioned"] and isinstance(query, mdp.Identity):
        with pytest.raises(mdp.DataError, match="sort them by the key"):
            answer(query, make(tmp_path, data))
        return
    assert np.array_equal(answer(query, make(tmp_path, data)), answer(query, data))


@pytest.mark.parametrize("make", ARRAYS.values(), ids=ARRAYS)
def test_arrays_and_batches_give_the_bits_of_the_array(tmp_path, data, make):
    for query in (mdp.Moments(UNNAMED, RECORDS), mdp.Identity(UNNAMED, RECORDS)):
        if make is not ARRAYS["generator of tables"]:
            assert np.array_equal(answer(query, make(tmp_path, data)), answer(query, data))
    assert np.array_equal(answer(QUERIES["moments"], make(tmp_path, data)), answer(QUERIES["moments"], data))


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_the_number_of_threads_cannot_change_a_bit(tmp_path, data, workers):
    records = mdp.open_records(write_parts(tmp_path / "set", data, parts=3), workers=workers)
    for query in QUERIES.values():
        assert np.array_equal(answer(query, records), answer(query, data))


def test_a_generator_may_use_its_memory_again(data):
    def batches():
        memory = np.empty((100, 3), np.float32)
        for start in range(0, RECORDS, 100):
            memory[:] = data[start : start + 100]
            yield memory

    query = mdp.Moments(UNNAMED, RECORDS)
    assert np.array_equal(answer(query, mdp.open_records(batches(), workers=4)), answer(query, data))


@given(cuts=st.lists(st.integers(0, 400), max_size=6), rows=st.integers(1, 200), seed=st.integers(0, 99))
@settings(max_examples=25, deadline=None)
def test_no_partition_or_order_changes_a_bit(tmp_path_factory, cuts, rows, seed):
    data = make_data(400)
    folder = tmp_path_factory.mktemp("set")
    order = np.random.default_rng(seed).permutation(400)
    for i, piece in enumerate(np.split(data[order], sorted(cuts))):
        pq.write_table(make_table(piece), folder / f"{i}.parquet", row_group_size=rows)
    query = mdp.Moments(BOUNDS, 400)
    assert np.array_equal(answer(query, folder), answer(query, data))


def test_only_the_columns_named_are_read(tmp_path, data, monkeypatch):
    wanted = []
    iter_batches = pq.ParquetFile.iter_batches
    monkeypatch.setattr(
        pq.ParquetFile, "iter_batches", lambda *a, **k: wanted.append(k["columns"]) or iter_batches(*a, **k)
    )
    answer(QUERIES["moments"], parquet(tmp_path, data))
    assert wanted == [list(NAMES)]


def test_a_folder_can_hold_a_column_in_its_names(tmp_path, data):
    partitioned(tmp_path / "set", data)
    bounds = mdp.Bounds([-1, 2000], [1, 2100], names=["a", "year"])
    years = np.repeat([2020, 2021, 2022, 2023], RECORDS // 4)
    expected = answer(mdp.Moments(mdp.Bounds([-1, 2000], [1, 2100]), RECORDS), np.column_stack([data[:, 0], years]))
    assert np.array_equal(answer(mdp.Moments(bounds, RECORDS), tmp_path / "set"), expected)


def test_missing_values_can_be_the_midpoint(tmp_path, data):
    holes = data.copy()
    holes[7, 0], holes[70, 1] = np.nan, np.inf
    filled = data.copy()
    filled[7, 0], filled[70, 1] = UNNAMED.midpoint[:2]
    table = make_table(holes)
    position = table.column_names.index("c")
    column = pa.array([None if i == 700 else value for i, value in enumerate(holes[:, 2])], pa.float32())
    pq.write_table(table.set_column(position, "c", column), tmp_path / "records.parquet")
    filled[700, 2] = UNNAMED.midpoint[2]
    query = QUERIES["moments"]
    found = query.evaluate(tmp_path / "records.parquet", clip=True, missing="midpoint")
    assert np.array_equal(found, answer(query, filled))


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint16(), pa.int64(), pa.float16(), pa.bool_(), pa.decimal128(9, 0)])
def test_every_kind_of_number_is_read(tmp_path, kind):
    values = [0, 1, 1, 0, 1]
    pq.write_table(pa.table({"a": pa.array(values, pa.int8()).cast(kind)}), tmp_path / "records.parquet")
    query = mdp.SecondMoment(mdp.Bounds([0], [2], names=["a"]), 5)
    expected = answer(query, np.array(values, float)[:, None])
    assert np.array_equal(answer(query, tmp_path / "records.parquet"), expected)


def test_progress_counts_every_record(tmp_path, data):
    seen = []
    records = mdp.open_records(write_parts(tmp_path / "set", data, parts=6), progress=seen.append)
    answer(QUERIES["moments"], records)
    assert sum(seen) == RECORDS
    assert len(seen) > 1


def test_counts_and_graphs_are_read_from_files(tmp_path):
    pairs = pa.table({"from": ["x", "y", "x", "x"], "to": ["p", "p", "q", "p"]})
    pq.write_table(pairs, tmp_path / "pairs.parquet", row_group_size=2)
    query = mdp.ContingencyTable(["x", "y"], ["p", "q"], 4)
    assert answer(query, tmp_path / "pairs.parquet").tolist() == [[2, 1], [1, 0]]
    pq.write_table(pa.table({"u": [0.0, 1.0], "v": [1.0, 0.0]}), tmp_path / "graph.parquet")
    graph = mdp.Adjacency(2, node_names=("u", "v"))
    assert np.array_equal(answer(graph, tmp_path / "graph.parquet"), answer(graph, np.array([[0, 1.0], [1, 0]])))


def test_a_design_releases_files_and_learns_directions_from_them(tmp_path, data):
    folder = write_parts(tmp_path / "set", data, parts=3)
    design = mdp.make_design(QUERIES["moments"], mdp.Privacy(1, 1e-6))
    streams = [{"stream": mdp.Stream(seed=3), "simulation": True} for _ in range(2)]
    assert np.array_equal(design.release(folder, **streams[0]).matrix, design.release(data, **streams[1]).matrix)
    learned = mdp.principal_directions(str(folder / "*.parquet"), BOUNDS, mdp.Privacy(1, 1e-6), records=RECORDS)
    assert learned.directions.shape == (3, 3)


def test_files_are_counted_without_their_data(tmp_path, data):
    assert open_files(write_parts(tmp_path / "set", data, parts=5)).count() == RECORDS
    assert open_files(csv(tmp_path, data)).count() == RECORDS
    assert open_files(feather(tmp_path, data)).count() == RECORDS


def test_another_order_of_columns_is_corrected_or_named(tmp_path, data):
    first, second = make_table(data[:1000]).drop_columns("key"), make_table(data[1000:]).drop_columns("key")
    turned = second.select(["c", "a", "b"])
    unnamed = mdp.Moments(UNNAMED, RECORDS)
    (tmp_path / "set").mkdir()
    for i, piece in enumerate((first, turned)):
        pq.write_table(piece, tmp_path / "set" / f"{i}.parquet")
    assert np.array_equal(answer(unnamed, tmp_path / "set"), answer(unnamed, data))
    for kind in (lambda table: table, lambda table: table.to_pandas()):
        for source in (
            iter([kind(first), kind(turned)]),
            mdp.records.Blocks(lambda kind=kind: [kind(first), kind(turned)]),
        ):
            with pytest.raises(mdp.DataError, match="same columns"):
                answer(unnamed, source)
    blocks = mdp.records.Blocks(lambda: [first, second])
    assert np.array_equal(answer(unnamed, blocks), answer(unnamed, data))


def test_a_folder_above_the_one_given_adds_no_column(tmp_path, data):
    folder = write_parts(tmp_path / "a=5" / "set", data, parts=2)
    assert np.array_equal(answer(QUERIES["moments"], folder), answer(QUERIES["moments"], data))
    with pytest.raises(mdp.DataError, match="has a column 'a', and so does a folder"):
        answer(QUERIES["moments"], tmp_path)


def test_links_are_followed_and_hidden_names_skipped(tmp_path, data):
    whole = write_parts(tmp_path / "elsewhere", data, parts=4)
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "linked").symlink_to(whole)
    (tmp_path / "set" / "linked" / "back").symlink_to(tmp_path / "set")
    for name in ("_old", ".cache"):
        write_parts(tmp_path / "set" / name, data, parts=1)
    query = QUERIES["moments"]
    for place in (tmp_path / "set", tmp_path / "set" / "*", tmp_path / "set" / "**" / "*.parquet"):
        assert np.array_equal(answer(query, place), answer(query, data))


def test_an_empty_line_is_a_missing_value_in_a_single_column(tmp_path):
    (tmp_path / "one.csv").write_text("a\n1\n\n2\n")
    query = mdp.SecondMoment(mdp.Bounds([0], [2], names=["a"]), 3)
    with pytest.raises(mdp.DataError, match="'a' has an empty"):
        answer(query, tmp_path / "one.csv")
    found = query.evaluate(tmp_path / "one.csv", clip=True, missing="midpoint")
    assert np.array_equal(found, answer(query, np.array([[1.0], [1.0], [2.0]])))


def test_masked_values_are_missing_ones():
    query = mdp.SecondMoment(mdp.Bounds([0], [2]), 2)
    with pytest.raises(mdp.DataError, match="feature 0 has an empty"):
        answer(query, np.ma.masked_array([[1], [2]], mask=[[False], [True]]))


def test_blas_has_its_threads_again_after_maps_that_overlap():
    from threadpoolctl import threadpool_info, threadpool_limits

    def threads():
        return {info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"}

    with threadpool_limits(2):
        before = threads()
        maps = [mdp.open_records(iter([make_data(50)] * 3)).map(lambda number, blocks: number) for _ in range(2)]
        for found in maps:
            next(found)
        assert threads() == {1}
        for found in maps:
            found.close()
        assert threads() == before


def test_errors_contain_nothing_of_the_data(tmp_path):
    (tmp_path / "bad.csv").write_text("a\n1\nsecret\n")
    with pytest.raises(mdp.DataError) as caught:
        answer(mdp.SecondMoment(mdp.Bounds([0], [2], names=["a"]), 2), tmp_path / "bad.csv")
    error = caught.value
    while error is not None:
        assert "secret" not in repr(error)
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize("second", ["a.csv", "./a.csv", "link.csv", "*.csv"])
def test_a_file_that_is_given_twice_is_refused(second, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("x\n1\n")
    if second == "link.csv":
        Path("link.csv").symlink_to("a.csv")
    with pytest.raises(mdp.DataError, match="same file"):
        mdp.open_records(["a.csv", second])


def test_blocks_need_a_function():
    with pytest.raises(mdp.ParameterError, match="read must be a function"):
        mdp.records.Blocks([[1.0]])
