"""Tables in every container: the same records give the same bits, and no message shows a value."""

import datetime
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.records import clusters as spark
from matrixdp.records.tables import TableBlock
from unit.records.test_spark import Frame, partition  # noqa: F401  (a fixture)

N = 240
TABLE = mdp.Columns(
    [
        mdp.Number("x", -1, 1, missing=True),
        mdp.Category("ward", ["a", "b", "c"], other=True, missing=True),
        mdp.Category("year", [2020, 2021, 2022]),
        mdp.YesNo("smoker", missing=True),
        mdp.Number("n", 0, 9),
    ]
)
QUERY = mdp.TableMoments(TABLE, N, by=["year"])


def make_rows():
    rng = np.random.default_rng(5)
    return [
        (
            None if rng.random() < 0.2 else float(rng.uniform(-1.2, 1.2)),
            [None, "a", "b", "c", "d"][rng.integers(5)],
            int(rng.integers(2020, 2023)),
            [None, True, False][rng.integers(3)],
            int(rng.integers(0, 10)),
        )
        for _ in range(N)
    ]


ROWS = make_rows()
COLUMNS = dict(zip(TABLE.names, map(list, zip(*ROWS, strict=True)), strict=True))
ARROW = pa.table(COLUMNS)
PANDAS = ARROW.to_pandas()


def evaluate(data, query=QUERY):
    return query.evaluate(data, clip=True, missing="error")


EXPECTED = evaluate(ROWS)
KINDS = {"x": "Float64", "ward": "string", "year": "Int64", "smoker": "boolean", "n": "Int8"}
CONTAINERS = {
    "tuple of lists": lambda: tuple(map(list, ROWS)),
    "list of mappings": lambda: [dict(zip(TABLE.names, row, strict=True)) for row in ROWS],
    "mappings without missing keys": lambda: [
        {name: value for name, value in zip(TABLE.names, row, strict=True) if value is not None} for row in ROWS
    ],
    "object array": lambda: np.array(ROWS, object),
    "mapping of lists": lambda: COLUMNS,
    "mapping of arrays": lambda: {
        "n": np.array(COLUMNS["n"]),
        "year": np.array(COLUMNS["year"], np.float32),
        "x": np.ma.masked_invalid(np.array(COLUMNS["x"], float)),
        "ward": np.array(COLUMNS["ward"], object),
        "smoker": np.ma.masked_array(
            [bool(value) for value in COLUMNS["smoker"]], [value is None for value in COLUMNS["smoker"]]
        ),
    },
    "mapping of anything": lambda: {
        "n": pl.Series(COLUMNS["n"]),
        "year": pd.Series(COLUMNS["year"]),
        "x": pa.array(COLUMNS["x"]),
        "ward": pa.chunked_array([COLUMNS["ward"][:100], COLUMNS["ward"][100:]]),
        "smoker": COLUMNS["smoker"],
        "unused": None,
    },
    "pandas": lambda: PANDAS,
    "pandas, objects": lambda: PANDAS.astype(object),
    "pandas, other order and columns": lambda: PANDAS.assign(unused="u")[["unused", *reversed(TABLE.names)]],
    "pandas, nullable": lambda: PANDAS.astype(KINDS),
    "pandas, categories": lambda: PANDAS.astype(dict.fromkeys(["ward", "year", "smoker"], "category")),
    "pandas, Arrow": lambda: PANDAS.convert_dtypes(dtype_backend="pyarrow"),
    "polars": lambda: pl.DataFrame(COLUMNS),
    "polars, categories": lambda: pl.DataFrame(COLUMNS).with_columns(pl.col("ward").cast(pl.Categorical)),
    "polars, Enum": lambda: pl.DataFrame(COLUMNS).with_columns(pl.col("ward").cast(pl.Enum(list("dcba")))),
    "polars, floats": lambda: pl.DataFrame(COLUMNS).with_columns(pl.col("year").cast(pl.Float32)),
    "polars, words": lambda: pl.DataFrame(COLUMNS).with_columns(pl.col("smoker", "year").cast(pl.String)),
    "Arrow": lambda: ARROW,
    "Arrow batch": lambda: ARROW.to_batches()[0],
    "Arrow, chunks": lambda: pa.concat_tables([ARROW[:7], ARROW[7:7], ARROW[7:]]),
    "Arrow, dictionaries": lambda: pa.table(
        {name: ARROW[name].dictionary_encode() if name != "x" else ARROW[name] for name in TABLE.names}
    ),
    "Arrow, other types": lambda: ARROW.cast(
        pa.schema(
            [
                ("x", pa.float64()),
                ("ward", pa.large_string()),
                ("year", pa.uint16()),
                ("smoker", pa.int8()),
                ("n", pa.float32()),
            ]
        )
    ),
    "iterator": lambda: (PANDAS[i : i + 50] for i in range(0, N, 50)),
    "iterator of mappings": lambda: ({k: np.array(v[i : i + 80]) for k, v in COLUMNS.items()} for i in (0, 80, 160)),
    "iterator of lists": lambda: (ROWS[i : i + 80] for i in (0, 80, 160)),
    "blocks": lambda: mdp.records.Blocks(lambda: [ARROW[:100], ARROW[100:]]),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_the_same_records_give_the_same_bits(name):
    np.testing.assert_array_equal(evaluate(CONTAINERS[name]()), EXPECTED)


@pytest.mark.parametrize("kind", ["csv", "csv of pandas", "parquet", "parquet, dictionaries", "feather", "folders"])
def test_files_give_the_same_bits(tmp_path, kind):
    path = tmp_path / ("t." + kind.split()[0].strip(","))
    table = CONTAINERS["Arrow, dictionaries"]() if "dictionaries" in kind else ARROW
    if kind == "csv":
        pl.DataFrame(COLUMNS).write_csv(path)
    elif kind == "csv of pandas":  # integers with a decimal point, True and False
        PANDAS.astype({"year": float, "n": float}).to_csv(path)
    elif kind.startswith("parquet"):
        pq.write_table(table, path, row_group_size=50)
    elif kind == "feather":
        pa.feather.write_feather(CONTAINERS["Arrow, dictionaries"](), path, chunksize=50)
    else:
        path = tmp_path / "set"
        for year in (2020, 2021, 2022):
            (path / f"year={year}").mkdir(parents=True)
            part = PANDAS[PANDAS["year"] == year].drop(columns="year")
            pq.write_table(pa.Table.from_pandas(part, preserve_index=False), path / f"year={year}" / "0.parquet")
    for workers in (1, 3):
        np.testing.assert_array_equal(evaluate(mdp.open_records(path, workers=workers)), EXPECTED)


def test_dask_and_spark_give_the_same_bits(partition):  # noqa: F811
    frame = pytest.importorskip("dask.dataframe").from_pandas(PANDAS, npartitions=4)
    np.testing.assert_array_equal(evaluate(mdp.open_records(frame, workers=2)), EXPECTED)
    for partitions in (1, 5):
        np.testing.assert_array_equal(evaluate(spark.SparkRecords(Frame(ARROW, partitions))), EXPECTED)


def test_an_array_of_numbers_and_a_sparse_matrix():
    sparse = pytest.importorskip("scipy.sparse")
    columns = mdp.Columns([mdp.Number("x", 0, 1), mdp.Category("c", [0, 1]), mdp.YesNo("d")])
    array = np.random.default_rng(0).integers(0, 2, (30, 3))
    query = mdp.TableMoments(columns, 30)
    expected = evaluate([tuple(map(int, row)) for row in array], query)
    for data in (array, array.astype(float), array.astype(bool), sparse.csr_matrix(array), np.asfortranarray(array)):
        np.testing.assert_array_equal(evaluate(data, query), expected)


def code(values, column):
    return TableBlock({column.name: values}, mdp.Columns([column])).codes(column).tolist()


def test_what_values_mean():
    number = mdp.Category("c", [0, 1, 10**20], other=True, missing=True)
    same = [1, 1.0, True, "1", "1.0", " +1 ", np.int8(1), np.float32(1), np.True_, decimal.Decimal(1)]
    assert set(code(same, number)) == {1}
    assert code([10**20, "1" + "0" * 20, 0.5, "1e0", "one", 2**70, float("inf")], number) == [2, 2, 3, 3, 3, 3, 3]
    gone = [None, float("nan"), np.float32("nan"), pd.NA, pd.NaT, "", " ", np.ma.masked, np.datetime64("NaT", "s")]
    gone.append(decimal.Decimal("sNaN"))
    assert set(code(gone, number)) == {4}
    text = mdp.Category("c", ["a", " a", "A", "1"], other=True, missing=True)
    assert code(["a", " a", "A", "1", "a ", "1.0", " ", "", None], text) == [0, 1, 2, 3, 4, 4, 4, 5, 5]
    assert code(["Yes", " TRUE", "t", 1.0, "0", "No", False], mdp.YesNo("c")) == [1, 1, 1, 1, 0, 0, 0]
    values = TableBlock([(10**400,), (np.longdouble("0.5"),), (None,), (True,), (np.True_,)], mdp.Columns([TABLE["x"]]))
    np.testing.assert_array_equal(values.numbers("x"), [1e308, 0.5, np.nan, 1.0, 1.0])


DAY = datetime.datetime(2020, 1, 1)
SECRET = "secret 4711"
TEXTS = mdp.Category("ward", ["a", "b"], other=True)
INTEGERS = mdp.Category("ward", [1, 2], other=True)


@pytest.mark.parametrize(
    ("column", "data", "message"),
    [
        (mdp.Category("ward", ["a"]), {"ward": [SECRET]}, "capital letters count. Add its level"),
        (mdp.YesNo("ward"), {"ward": [SECRET]}, "not among its levels. It must be yes, no"),
        (mdp.Category("ward", ["a"]), {"ward": [None]}, "has a missing value"),
        (TEXTS, {"ward": [4711]}, "must hold texts"),
        (TEXTS, pd.DataFrame({"ward": [4711]}), "must hold texts"),
        (TEXTS, pl.DataFrame({"ward": [True]}), "must hold texts"),
        (TEXTS, pa.table({"ward": [4711.5]}), "must hold texts"),
        (TEXTS, np.array([[4711]]), "must hold texts"),
        (INTEGERS, {"ward": [DAY]}, "integers or texts"),
        (INTEGERS, {"ward": [[4711]]}, "integers or texts"),
        (INTEGERS, {"ward": [b"4711"]}, "integers or texts"),
        (INTEGERS, pd.DataFrame({"ward": [DAY]}), "integers or texts"),
        (INTEGERS, pd.DataFrame({"ward": [[4711]]}), "integers or texts"),
        (INTEGERS, pl.DataFrame({"ward": [DAY]}), "integers or texts"),
        (INTEGERS, pl.DataFrame({"ward": [[4711]]}), "integers or texts"),
        (INTEGERS, pa.table({"ward": [DAY]}), "integers or texts"),
        (INTEGERS, pa.table({"ward": [[4711]]}), "integers or texts"),
        (mdp.Category("ward", [2**53]), {"ward": np.array([1.0])}, "are rounded"),
        (mdp.Category("ward", [2**53]), {"ward": [1, 2.0**53]}, "are rounded"),
        (mdp.Category("ward", [2**53]), pd.DataFrame({"ward": [1.0]}), "are rounded"),
        (mdp.Category("ward", [2**53]), pd.DataFrame({"ward": [1.0]}).astype("category"), "are rounded"),
        (mdp.Category("ward", [2**53]), pl.DataFrame({"ward": [1.0]}), "are rounded"),
        (mdp.Category("ward", [2**24]), pa.table({"ward": pa.array([1.0], pa.float32())}), "are rounded"),
        (mdp.Number("ward", 0, 1), {"ward": [SECRET]}, "must hold numbers"),
        (mdp.Number("ward", 0, 1), {"ward": [DAY]}, "must hold numbers"),
        (mdp.Number("ward", 0, 1), pd.DataFrame({"ward": [SECRET]}), "must hold numbers"),
        (mdp.Number("ward", 0, 1), pd.DataFrame({"ward": [DAY]}), "must hold numbers"),
        (mdp.Number("ward", 0, 1), pl.DataFrame({"ward": [SECRET]}), "must hold numbers"),
        (mdp.Number("ward", 0, 1), pa.table({"ward": [SECRET]}), "must hold numbers"),
        (mdp.Number("ward", 0, 1), np.array([[SECRET]]), "must hold numbers"),
        (mdp.YesNo("ward"), {"other": [1]}, "must have a column 'ward'"),
        (mdp.YesNo("ward"), {"ward": SECRET}, "must be lists or arrays"),
        (mdp.YesNo("ward"), {"ward": np.zeros((4711, 1))}, "one dimension"),
        (mdp.YesNo("ward"), [(1,), SECRET], "each record must be a sequence"),
        (mdp.YesNo("ward"), [4711], "each record must be a sequence"),
        (mdp.YesNo("ward"), [(4711, 0)], "must have 1 columns"),
        (mdp.YesNo("ward"), np.zeros(3), "two dimensions"),
        (mdp.YesNo("ward"), np.zeros((3, 2)), "must have 1 columns"),
        (mdp.YesNo("ward"), 4711, "must be a table"),
    ],
)
def test_mistakes_name_the_column_and_show_no_value(column, data, message):
    with pytest.raises(mdp.DataError, match=message) as found:
        evaluate(data, mdp.TableMoments(mdp.Columns([column]), 1))
    error = found.value
    while error is not None:
        assert "secret" not in str(error)
        assert "4711" not in str(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def test_columns_of_a_mapping_have_one_length():
    with pytest.raises(mdp.DataError, match="the same number of values"):
        evaluate({**COLUMNS, "n": [1]})
    numbers = mdp.Moments(mdp.Bounds([0, 0], [1, 1], names=["a", "b"]), 2)
    for columns in ({"a": [0.5, 0.5], "b": [0.5]}, {"a": np.zeros(2), "b": np.zeros(3)}):
        with pytest.raises(mdp.DataError, match="the same number of values"):
            numbers.evaluate(columns, clip=True, missing="error")
    with pytest.raises(mdp.DataError, match="must be lists or arrays"):
        numbers.evaluate({"a": 0.5, "b": 0.5}, clip=True, missing="error")
