"""Ids: who is the same person, which ids are errors, and the same integers from every source and engine."""

import csv
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.records import clusters as spark
from matrixdp.records import people as people_module
from matrixdp.records.ids import IdHash
from matrixdp.records.people import IdCounts, People, count_people, number_of_people
from unit.records.conftest import BOUNDS, make_data
from unit.records.test_spark import Frame, partition  # noqa: F401

ROWS, PEOPLE = 3000, 400
TABLE = mdp.Columns([mdp.Number("a", -1, 1), mdp.Category("c", [0, 1], other=True)])


def make_people(kind=int):
    """Ids of people with one row to hundreds, all over the table."""
    rng = np.random.default_rng(5)
    ids = np.concatenate([np.arange(PEOPLE), np.minimum(rng.zipf(1.4, ROWS - PEOPLE) - 1, PEOPLE - 1)])
    rng.shuffle(ids)
    return np.array([kind(i) for i in ids])


def make_table(kind=int):
    data = make_data(ROWS).astype(np.float64)
    return pa.table({"id": make_people(kind), **{name: data[:, j] for j, name in enumerate("abc")}})


def answer(query, data):
    return query.evaluate(data, clip=True, missing="error")


QUERIES = {
    "moments": mdp.Moments(BOUNDS, PEOPLE, person="id"),
    "rows": mdp.SecondMoment(BOUNDS, ROWS, person=mdp.Person("id", rows=4)),
    "table": mdp.TableMoments(TABLE, PEOPLE, person="id"),
    "groups": mdp.TableMoments(TABLE, PEOPLE, ["c"], person="id"),
}


def sources(folder, table):
    """The same table in every kind of source; rows of one person lie in many files and partitions."""
    size = -(-len(table) // 4)
    for ending in ("parquet", "feather", "csv"):
        (folder / ending).mkdir()
        for i in range(4):
            piece, place = table.slice(i * size, size), folder / ending / f"{i}.{ending}"
            if ending == "parquet":
                pq.write_table(piece, place, row_group_size=253)
            elif ending == "feather":
                pa.feather.write_feather(piece, place, chunksize=261)
            else:
                pa.csv.write_csv(piece, place)
        yield ending, folder / ending
    yield "one thread", mdp.open_records(folder / "parquet", workers=1)
    yield "pandas", table.to_pandas()
    yield "polars", pl.from_arrow(table)
    yield "reversed", table.take(np.arange(len(table))[::-1])
    yield "batches", mdp.records.Blocks(lambda: table.to_batches(max_chunksize=137))
    yield "spark", spark.SparkRecords(Frame(table, 5))
    dd = pytest.importorskip("dask.dataframe")
    yield "dask", dd.from_pandas(table.to_pandas(), npartitions=6)


@pytest.mark.filterwarnings("ignore")  # of Dask itself
@pytest.mark.parametrize("kind", [int, str], ids=["integers", "texts"])
def test_all_sources_give_the_same_bits(tmp_path, partition, kind):  # noqa: F811
    table = make_table((lambda i: i) if kind is int else (lambda i: f"person {i}"))
    expected = {name: answer(query, table) for name, query in QUERIES.items()}
    for name, data in sources(tmp_path, table):
        for label, query in QUERIES.items():
            assert np.array_equal(answer(query, data), expected[label]), (name, label)


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_gives_the_same_bits(tmp_path, cluster):
    table = make_table()
    expected = {name: answer(query, table) for name, query in QUERIES.items()}
    pq.write_table(table, tmp_path / "all.parquet", row_group_size=53)
    (tmp_path / "more").mkdir()
    for i in range(3):
        pq.write_table(table.slice(i * 1000, 1000), tmp_path / "more" / f"{i}.parquet")
    for label, query in QUERIES.items():
        for place in ("all.parquet", "more"):
            assert np.array_equal(answer(query, mdp.open_records(tmp_path / place, workers=cluster)), expected[label])


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_people_in_folders_of_their_own(tmp_path, ending):
    table = make_table(lambda i: i % 7)
    for person in range(7):
        (tmp_path / f"id={person}").mkdir()
        rows = table.filter(pa.compute.equal(table.column("id"), person)).drop_columns(["id"])
        write = pq.write_table if ending == "parquet" else pa.csv.write_csv
        write(rows, tmp_path / f"id={person}" / f"0.{ending}")
    query = mdp.Moments(BOUNDS, 7, person="id")
    assert np.array_equal(answer(query, tmp_path), answer(query, table))


def test_arrays_with_ids_apart():
    table = make_table()
    data = np.column_stack([table.column(name).to_numpy() for name in "abc"])
    query = QUERIES["moments"]
    assert np.array_equal(
        answer(query, mdp.records.with_ids(data, table.column("id").to_numpy())), answer(query, table)
    )
    with pytest.raises(mdp.DataError, match="one for each row"):
        mdp.records.with_ids(data, [1, 2])
    with pytest.raises(mdp.DataError, match="with_ids"):
        answer(query, data)


def test_one_row_each_is_the_plain_query_to_the_last_bit():
    data = make_data(ROWS).astype(np.float64)
    table = pa.table({"id": np.arange(ROWS), **{name: data[:, j] for j, name in enumerate("abc")}})
    for neighbours in ("replace", "add-remove"):
        for person in ("id", mdp.Person("id", rows=7)):
            options = {"neighbours": neighbours, "person": person}
            plain = mdp.Moments(BOUNDS, ROWS, neighbours=neighbours)
            assert np.array_equal(answer(mdp.Moments(BOUNDS, ROWS, **options), table), answer(plain, table))
            plain = mdp.TableMoments(TABLE, ROWS, ["c"], neighbours=neighbours)
            assert np.array_equal(answer(mdp.TableMoments(TABLE, ROWS, ["c"], **options), table), answer(plain, table))


def test_all_rows_of_one_person():
    data = make_data(ROWS).astype(np.float64)
    table = pa.table({"id": ["me"] * ROWS, **{name: data[:, j] for j, name in enumerate("abc")}})
    once = answer(mdp.Moments(BOUNDS, 1, person="id"), table)
    assert once[0, 0] == 1.0
    assert once == pytest.approx(answer(mdp.Moments(BOUNDS, ROWS), table), rel=1e-3, abs=1e-5)


def test_people_in_shards_give_the_same_bits(monkeypatch, tmp_path):
    table = make_table(str)
    expected = {name: answer(query, table) for name, query in QUERIES.items()}
    monkeypatch.setattr(people_module, "_SHARD", 90)
    pq.write_table(table, tmp_path / "all.parquet", row_group_size=500)
    for label, query in QUERIES.items():
        assert np.array_equal(answer(query, tmp_path / "all.parquet"), expected[label])


def same_people(*groups):
    """Whether ids of one group have the same hashes, and those of different groups others."""
    hashing = IdHash("id")
    found = [{int(hashing(ids)[0][0]) for ids in group} for group in groups]
    return all(len(hashes) == 1 for hashes in found) and len(set.union(*found)) == len(groups)


def test_who_is_the_same_person():
    seven = [
        *([7], [7.0], ["7"], [" 7 "], ["7.0"], [decimal.Decimal(7)], [np.int8(7)], [np.float32(7)]),
        *(np.array([7], kind) for kind in ("i1", "u2", "u8", "f4", "f8", "U3", object)),
        *(pa.array([7], kind) for kind in (pa.int8(), pa.uint64(), pa.float32(), pa.decimal128(10, 2))),
        *(pa.array(["7"]), pa.array(["7"], pa.large_string()), pa.array(["7"]).dictionary_encode()),
        *(
            pd.Series([7]),
            pd.Series([7], dtype="Int64"),
            pd.Series([7.0]),
            pd.Series(["7"]),
            pd.Series([7], dtype=object),
        ),
        *(pd.Series(["7"], dtype="category"), pd.Series([7], dtype="category")),
        *(pl.Series([7]), pl.Series(["7"]), pl.Series([7.0]), pl.Series(["7"]).cast(pl.Categorical)),
    ]
    assert same_people(seven, [["07"]], [["x"], pa.array([" x"])], [[8]], [[-7], ["-7"]])
    huge = [[2**64 - 1], [str(2**64 - 1)], np.array([2**64 - 1], np.uint64), pa.array([2**64 - 1], pa.uint64())]
    assert same_people(huge, [[-1]], [[2**63 - 1]], [[-(2**63)]])
    mixed = pd.Series([7, "x", "7", 7.0], dtype=object)
    first = IdHash("id")(mixed)[0]
    assert first[0] == first[2] == first[3] != first[1]


PAIRS = 1000
CONTAINERS = {
    "list": lambda ids, _: ids,
    "numpy": lambda ids, _: np.array(ids),
    "numpy objects": lambda ids, _: np.array(ids, object),
    "Arrow": lambda ids, _: pa.array(ids),
    "Arrow chunks": lambda ids, _: pa.chunked_array([ids[:300], ids[300:]], pa.large_string()),
    "Arrow dictionary": lambda ids, _: pa.array(ids).dictionary_encode(),
    "pandas": lambda ids, _: pd.Series(ids, dtype=object),
    "pandas texts": lambda ids, _: pd.Series(ids, dtype="string[pyarrow]"),
    "pandas categories": lambda ids, _: pd.Series(ids, dtype="category"),
    "polars": lambda ids, _: pl.Series(ids),
    "polars categories": lambda ids, _: pl.Series(ids).cast(pl.Categorical),
    "csv": lambda ids, path: read_ids(path / "ids.csv", ids),
    "parquet": lambda ids, path: read_ids(path / "ids.parquet", ids),
    "feather": lambda ids, path: read_ids(path / "ids.feather", ids),
}


def read_ids(path, ids):
    if path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, quoting=csv.QUOTE_ALL).writerows([["id"], *([one] for one in ids)])
    else:
        write = pq.write_table if path.suffix == ".parquet" else pa.feather.write_feather
        write(pa.table({"id": ids}), path)
    blocks = mdp.open_records(path, workers=1).select(["id"], texts=["id"]).map(lambda _, blocks: list(blocks))
    return pa.chunked_array([block.column(0) for part in blocks for block in part])


def make_pairs(rng):
    """Pairs of ids as texts, and whether they are one person: by the rule in the guide, not by the code."""

    def choose(texts):
        return texts[rng.integers(len(texts))]  # an array of texts would drop zero bytes at their ends

    pairs = []
    for number in range(PAIRS):
        digits = str(rng.integers(1, 10)) + "".join(map(str, rng.integers(0, 10, rng.integers(0, 60))))
        whole = ["0", "-0", digits, "-" + digits][number % 4]
        word = choose(["ann", "007", "1e3", "+7", "x\0y", "7.5", "١", "a" * 5000]) + str(number)
        base, integer = (whole, True) if number % 3 else (word, False)
        spaces = ["", " ", "\t", "\0", " \0\0", "\r\n"]
        same = choose(spaces) + base + choose(["", ".", ".0", ".000"] if integer else [""]) + choose(spaces)
        other = ["0" + base.lstrip("-"), "+" + base, base + ".1", base + "\0.", base + " 0", base + "0", base + "e0"]
        one = number % 2 == 0
        pairs.append((base, same if one else choose(other), one))
    return pairs


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_thousand_pairs_are_one_person_or_two_wherever_they_are_stored(container, tmp_path):
    """Texts of 20 digits and more with ".0", "-0", zeros and spaces at the ends: the same rule everywhere."""
    hashing, pairs = IdHash("id"), make_pairs(np.random.default_rng(5))
    if container == "pandas categories" and pd.__version__ < "3":  # whose categories end at a zero byte
        pairs = [pair for pair in pairs if "\0" not in pair[0] + pair[1]]
    firsts, seconds, expected = map(list, zip(*pairs, strict=True))
    reference = hashing(firsts)[0]
    for ids in (firsts, [text if text != "-0" else "0" for text in firsts]):
        assert np.array_equal(hashing(CONTAINERS[container](ids, tmp_path))[0], reference)
    found = hashing(CONTAINERS[container](seconds, tmp_path))[0]
    wrong = np.flatnonzero((found == reference) != expected)
    assert not [pairs[i] for i in wrong]


def test_only_ids_of_rows_count():
    """A dictionary may have values that no row has; an empty one among them is no missing id."""
    hashing = IdHash("id")
    frame = pd.Series(["x", "", "7"], dtype="category").iloc[[0, 2]]
    numbers = pa.DictionaryArray.from_arrays(pa.array([0, 2]), pa.array([7, None, 8]))
    assert np.array_equal(hashing(frame)[0], hashing(["x", 7])[0])
    assert np.array_equal(hashing(numbers)[0], hashing([7, 8])[0])


@pytest.mark.parametrize("digits", [1, 15, 18, 19, 20, 21, 38, 100, 4100])
def test_an_integer_is_the_same_person_as_a_number_and_as_text(digits):
    for number in (10**digits - 1, -(10**digits - 1)):
        forms = [[f"{number}"], [f" {number}.0"], [f"{number}.00\0"]]
        forms += [pa.array(form) for form in forms]
        forms += [[number], [decimal.Decimal(number)]] if digits < 3000 else []
        forms += [np.array([number])] if digits < 19 else []
        forms += [[float(number)]] if digits <= 15 else []
        assert same_people(forms, [[f"0{abs(number)}"]], [[f"{number}.1"]], [["x"]])


@pytest.mark.parametrize(
    "ids",
    [
        [1, None],
        [1, float("nan")],
        [decimal.Decimal("sNaN")],
        ["a", ""],
        ["a", "  "],
        pa.array([1, None]),
        pa.array(["a", None]),
        pd.Series([1, None]),
        pd.Series(["a", None]),
        pd.Series([1, None], dtype="Int64"),
        pl.Series([1, None]),
        np.array([1.0, np.nan]),
        np.ma.masked_array([1, 2], [0, 1]),
    ],
)
def test_a_missing_id_is_an_error_that_names_the_column(ids):
    with pytest.raises(mdp.DataError, match="column 'patient' must say whose row it is"):
        IdHash("patient")(ids)


@pytest.mark.parametrize(
    "ids",
    [
        [1.5],
        [2.0**53],
        [True],
        [(1, 2)],
        [float("inf")],
        [decimal.Decimal("-Infinity")],
        [decimal.Decimal("1E+999999999")],
        [10**5000],
        np.array([1.5]),
        np.array([2.0**53]),
        np.array([2.0**25], np.float32),
        np.array([np.inf]),
        np.array([True]),
        np.array(["2020-01-01"], "M8[D]"),
        np.array(["2020-01-01"], "M8[ns]"),  # which NumPy would list as integers
        pa.array([1.5]),
        pa.array([[1]]),
        pa.array([True]),
        pd.Series([1.5]),
        pd.Series(pd.to_datetime(["2020-01-01"])),
        pd.Series([[1]]),
        pl.Series([1.5]),
        pl.Series([True]),
    ],
)
def test_an_id_that_is_neither_an_integer_nor_a_text_is_an_error_without_it(ids):
    with pytest.raises(mdp.DataError, match="must hold ids that are integers or texts") as caught:
        IdHash("patient")(ids)
    assert "1.5" not in str(caught.value)


def test_errors_come_before_the_charge(tmp_path, ledger):
    table = make_table()
    holes = table.set_column(0, "id", pa.array([None, *table.column("id").to_pylist()[1:]]))
    design = mdp.make_design(QUERIES["moments"], mdp.Privacy(0.1, 1e-8))
    pq.write_table(holes, tmp_path / "holes.parquet")
    wrong = mdp.make_design(mdp.Moments(BOUNDS, PEOPLE + 1, person="id"), mdp.Privacy(0.1, 1e-8))
    with mdp.Ledger.open(ledger) as opened:
        opened.register("people", mdp.Privacy(1, 1e-6), neighbours="replace", unit="person:id")
    for made, data, message in (
        (design, tmp_path / "holes.parquet", "an id is missing"),
        (design, table.drop_columns(["id"]), "one column 'id'"),
        (wrong, table, f"the number of people in column 'id', {PEOPLE}"),
        (design, iter(table.to_batches()), "more than once"),
    ):
        with pytest.raises(mdp.MatrixDPError, match=message):
            made.release(data, ledger=ledger, dataset="people")
    with mdp.Ledger.open(ledger) as opened:
        assert not list(opened.history("people"))


def test_too_many_people_are_an_error_that_does_not_show_their_number():
    query = mdp.Moments(BOUNDS, PEOPLE // 2 - 1, person="id", neighbours="add-remove")
    with pytest.raises(mdp.DataError, match=f"at most {2 * (PEOPLE // 2 - 1)} people") as caught:
        answer(query, make_table())
    assert str(PEOPLE) not in str(caught.value)


def test_records_that_change_between_the_passes_are_an_error():
    tables = [make_table(), make_table().slice(1), make_table(lambda i: i + 10**6)]
    for other in tables[1:]:
        readings = iter([tables[0], other])
        with pytest.raises(mdp.DataError, match="changed while they were read"):
            answer(QUERIES["moments"], mdp.records.Blocks(lambda readings=readings: (next(readings),)))


def test_two_people_who_share_a_hash_are_noticed(monkeypatch):
    counts = IdCounts()
    counts.add(np.array([[3, 3], [1, 2]], np.uint64))
    counts.count()
    assert counts.collided

    class Colliding(IdHash):
        def __call__(self, ids):
            return super().__call__(ids) * np.array([[0], [1]], np.uint64)

    monkeypatch.setattr(people_module, "IdHash", Colliding)
    with pytest.raises(mdp.DataError, match="two ids share a hash"):
        list(count_people(mdp.records.Blocks(lambda: (pa.table({"id": ["a", "b", "a"]}),)), mdp.Person("id"), 2))


def test_the_number_of_rows_of_people_in_many_parts():

    counts = IdCounts()
    for ids in ([1, 1, 2], [1, 2, 2, 2], [3]):
        part = IdCounts(1)
        part.add(np.array([ids, [0] * len(ids)], np.uint64))
        part.count()
        counts.merge(part)
    counts.count()
    assert (counts.hashes.tolist(), counts.rows.tolist()) == ([1, 2, 3], [3, 4, 1])


def test_the_number_of_people():
    assert (
        number_of_people(mdp.records.Blocks(lambda: make_table().to_batches(50)), mdp.Person("id"), rows=ROWS) == PEOPLE
    )


def test_a_hash_table_finds_what_is_in_it_and_nothing_else():
    rng = np.random.default_rng(2)
    hashes = np.unique(
        np.concatenate([rng.integers(0, 2**64, 5000, np.uint64), np.arange(2**64 - 40, 2**64, dtype=np.uint64)])
    )
    values = rng.integers(1, 99, len(hashes))
    table = People(IdHash("id"), 0, 1, hashes, values)
    order = rng.permutation(len(hashes))
    assert np.array_equal(table.find(hashes[order]), values[order])
    assert not table.find(hashes[:-1] + np.uint64(1))[hashes[:-1] + np.uint64(1) != hashes[1:]].any()
    assert People(IdHash("id"), 0, 1, hashes[:0], values[:0]).find(hashes).sum() == 0


def test_what_is_private_is_not_in_short_forms():
    """Clusters write the short form of a task that fails into their logs."""
    data = mdp.records.with_ids(np.full((7, 1), 0.125), ["ann"] * 7)
    (people,) = count_people(data, mdp.Person("id"), 1)
    (block,) = data
    for text in map(repr, (people, block)):
        assert not any(private in text for private in ("7", "ann", "0.125", str(people.hashes[0])))


def test_ids_are_neither_in_a_release_nor_in_its_design():
    table = make_table(lambda i: f"secret {i}")
    release = mdp.make_design(QUERIES["moments"], mdp.Privacy(1, 1e-6)).release(table)
    text = release.to_json()
    assert "secret" not in text
    assert '"column": "id"' in text
