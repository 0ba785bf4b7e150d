"""Records that are read more than once are the same each time, or nothing is released."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.adaptive import private_moment, private_scales
from matrixdp.audit import distance_between
from matrixdp.records import Blocks, with_ids
from matrixdp.records import people as people_module
from matrixdp.records.people import SameRecords, count_people, hash_rows

release = mdp.Design.release

PRIVACY = mdp.Privacy(1, 1e-6)
PEOPLE = 40
BOUNDS = mdp.Bounds([-1, -1], [1, 1], names=["x", "y"])
COLUMNS = mdp.Columns([mdp.Number("x", -1, 1), mdp.Category("c", ["a", "b"])])
KEY = bytes(32)


def make_table(ids=None, seed=0):
    """One row for each of 38 people, one for person 0, and nine for person 1."""
    ids = np.repeat(np.arange(PEOPLE), [1, 9, *[1] * 38]) if ids is None else np.asarray(ids)
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(-1, 1, (2, len(ids)))
    return pa.table({"id": ids, "x": x, "y": y, "c": rng.choice(["a", "b"], len(ids))})


def exchanged(table):
    """The same people, and as many rows of some people, but of others."""
    return table.set_column(0, "id", pa.array(np.repeat(np.arange(PEOPLE), [9, 1, *[1] * 38])))


def another_value(table):
    x = table["x"].to_numpy().copy()
    x[-1] = -x[-1]
    return table.set_column(1, "x", pa.array(x))


def read_as(*tables):
    """Blocks whose readings are the tables, one after the other, and the last from then on."""
    left = list(tables)
    return Blocks(lambda: left.pop(0).to_batches(7) if len(left) > 1 else left[0].to_batches(7))


QUERIES = {
    "moments": mdp.Moments(BOUNDS, PEOPLE, person="id"),
    "second moments": mdp.SecondMoment(BOUNDS, PEOPLE, person="id"),
    "rows that count": mdp.Moments(BOUNDS, PEOPLE, person=mdp.Person("id", rows=5)),
    "table": mdp.TableMoments(COLUMNS, PEOPLE, person="id"),
    "groups": mdp.TableMoments(COLUMNS, PEOPLE, by=["c"], person="id"),
    "counts": mdp.ContingencyTable(["a", "b"], ["p", "q"], PEOPLE, person="id"),
}


def table_for(query, table):
    if isinstance(query, mdp.ContingencyTable):
        return pa.table({"id": table["id"], "c": table["c"], "d": ["p"] * len(table)})
    return table


@pytest.mark.parametrize("name", QUERIES)
def test_rows_that_pass_to_another_person_are_noticed_before_the_charge(name, tmp_path):
    """The number of rows and all ids stay the same: person 0 would weigh nine times what one person may."""
    query, table = QUERIES[name], make_table()
    design = mdp.make_design(query, PRIVACY)
    before, after = (table_for(query, one) for one in (table, exchanged(table)))
    with mdp.Ledger.create(tmp_path / "a.db") as ledger:
        ledger.register("clinic", mdp.Privacy(4, 1e-6), neighbours="replace", unit="person:id")
        with pytest.raises(mdp.DataError, match="changed while they were read"):
            release(design, read_as(before, after), ledger=ledger, dataset="clinic")
        assert list(ledger.history("clinic")) == []
        release(design, read_as(before, before), ledger=ledger, dataset="clinic")


@pytest.mark.parametrize("name", ["moments", "table"])
def test_rows_that_change_between_the_readings_of_shards_are_noticed(name, monkeypatch):
    """Each shard of people takes a reading of all rows; values must not change in between, nor whose they are."""
    query, table = QUERIES[name], make_table()
    monkeypatch.setattr(people_module, "_SHARD", PEOPLE // 3)
    expected = query.evaluate(table, clip=True, missing="error")
    assert np.array_equal(query.evaluate(read_as(table), clip=True, missing="error"), expected)
    for change in (another_value, exchanged):
        for first in range(2, 8):  # four shards, each counted and then read
            with pytest.raises(mdp.DataError, match="changed while they were read"):
                query.evaluate(read_as(*[table] * first, change(table)), clip=True, missing="error")


FITS = {
    "moment": lambda data, **options: private_moment(data, BOUNDS, PRIVACY, simulation=True, **options),
    "scales": lambda data, **options: private_scales(data, BOUNDS, PRIVACY, simulation=True, **options),
}


LIMITED = mdp.Person("id", rows=3)


@pytest.mark.parametrize(
    ("person", "readings"),
    [(None, 1), (None, 2), (None, 5), ("id", 1), ("id", 2), ("id", 6), (LIMITED, 1), (LIMITED, 2)],
)
def test_a_fit_reads_the_same_rows_each_time(person, readings):
    table, chosen = make_table(), {} if person is None else {"person": person, "records": PEOPLE + 2 * (person != "id")}
    FITS["moment"](read_as(table), **chosen)
    changes = [lambda table: table.slice(1)]
    if person is not None:
        changes.append(exchanged)
    if person is None or readings > 1:  # the first reading of people is of their ids alone
        changes.append(another_value)
    for change in changes:
        with pytest.raises(mdp.DataError, match="changed while they were read"):
            FITS["moment"](read_as(*[table] * readings, change(table)), **chosen)


def test_scales_of_people_are_of_the_rows_that_were_counted():
    table = make_table()
    FITS["scales"](read_as(table), person="id")
    with pytest.raises(mdp.DataError, match="changed while they were read"):
        FITS["scales"](read_as(table, exchanged(table)), person="id")


@pytest.mark.parametrize("query", [mdp.Identity, mdp.GramMatrix])
def test_released_rows_belong_to_whom_they_belonged_when_they_were_counted(query, tmp_path):
    """A person with more rows than the largest number would change more of the answer than the noise covers."""
    table = make_table()
    asked = query(BOUNDS, len(table), person=mdp.Person("id", rows=9))
    design = mdp.make_design(asked, PRIVACY)
    more = make_table(np.repeat(np.arange(PEOPLE), [1, 1, *[1] * 37, 9]))
    assert release(design, read_as(table), simulation=True).matrix.shape[0] == len(table)
    with pytest.raises(mdp.DataError, match="changed while they were read"):
        release(design, read_as(table, more), simulation=True)
    if query is mdp.Identity:
        for readings in (1, 2):
            with pytest.raises(mdp.DataError, match=r"changed while they were read|altered while they were read"):
                mdp.release_dataset(design, read_as(*[table] * readings, more), tmp_path / f"noisy{readings}")
            assert not (tmp_path / f"noisy{readings}").exists()


def test_a_change_would_move_the_answer_many_times_the_claim(monkeypatch):
    """Without the comparison, one person moves the answer nine times as far as the design says."""
    monkeypatch.setattr(SameRecords, "check", lambda *_: None)
    design = mdp.make_design(mdp.SecondMoment(BOUNDS, PEOPLE, person="id"), PRIVACY)
    rows = exchanged(make_table())["id"].to_numpy() == 0

    def history(value):
        values = np.where(rows[:, None], value, 0.0) * np.ones((1, 2))
        tables = [with_ids(values, one["id"].to_numpy()) for one in (make_table(), exchanged(make_table()))]
        return Blocks(lambda: tables.pop(0))

    assert distance_between(design, history(1.0), history(0.0)) > 8 * design.distance


def blocks_of(table, kind):
    frame = table.to_pandas()
    return {
        "arrow": table.to_batches(11),
        "pandas": [frame.iloc[:9], frame.iloc[9:]],
        "polars": [pl.from_arrow(table)],
        "dict": [{name: table[name].to_pylist() for name in table.column_names}],
        "dictionaries": [table.set_column(3, "c", table["c"].dictionary_encode())],
    }[kind]


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars", "dict", "dictionaries"])
def test_only_the_rows_decide_whether_readings_are_the_same(kind):
    """Neither their order, nor the blocks, nor the library; but every value and whose it is."""
    table = make_table()
    (people,) = count_people(Blocks(lambda: (table,)), mdp.Person("id"), PEOPLE)
    order = np.random.default_rng(1).permutation(len(table))
    readings = [table.to_batches(), blocks_of(table.take(order), kind)]
    same = SameRecords(Blocks(lambda: readings.pop(0))).of(people)
    assert sum(same.map(lambda number, blocks: sum(map(len, blocks)))) == len(table)
    assert sum(same.map(lambda number, blocks: sum(map(len, blocks)))) == len(table)
    wrong = SameRecords(Blocks(lambda: (another_value(table),))).of(people)
    wrong.first.append(same.first[0])
    with pytest.raises(mdp.DataError, match="changed while they were read"):
        list(wrong.map(lambda number, blocks: sum(map(len, blocks))))


def test_a_row_is_told_from_every_other():
    """Numbers that differ in their last bit, exchanged columns, texts, and missing values."""
    rows = {"x": [0.5, np.nextafter(0.5, 1), 1.0, 2.0, 0.0, -0.5, np.nan], "y": [1.0, 1.0, 2.0, 1.0, 0.0, 1.0, 1.0]}
    found = hash_rows(pa.table(rows), KEY)
    assert len(set(found.tolist())) == 7
    assert np.array_equal(hash_rows(pd.DataFrame(rows).to_numpy(), KEY), found)
    assert np.array_equal(hash_rows(np.asfortranarray(pd.DataFrame(rows).to_numpy()), KEY), found)
    texts = hash_rows({"c": ["a", "b", None, "", "a "]}, KEY)
    assert len(set(texts.tolist())) == 5
    integers = hash_rows(np.arange(20_000).reshape(-1, 2), KEY)
    assert len(set(integers.tolist())) == 10_000
    assert not np.array_equal(hash_rows(pa.table(rows), bytes(31) + b"1"), found)


def test_a_file_that_is_replaced_between_readings(tmp_path):
    """The count of people is of the first file; the moments would be of the second."""
    table = make_table()
    path = tmp_path / "visits.parquet"
    pq.write_table(table, path)

    class Replacing(mdp.records.Records):
        once, ordered, read_options = False, True, {}

        def select(self, names, *, texts=()):
            return self

        def map(self, task, *, whole=False):
            yield from mdp.open_records(path).map(task)
            pq.write_table(exchanged(table), path)

    with pytest.raises(mdp.DataError, match="changed while they were read"):
        QUERIES["moments"].evaluate(Replacing(), clip=True, missing="error")
