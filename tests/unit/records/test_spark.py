"""Spark gives the integers of one machine."""

import pickle
import shutil
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.records import clusters as spark
from matrixdp.records import open_records
from matrixdp.release.dataset import release_dataset
from unit.records.conftest import BOUNDS, RECORDS, make_table, write_parts
from unit.records.test_dataset import DESIGNS, read, seeded

QUERY = mdp.Moments(BOUNDS, RECORDS)
OPTIONS = {"clip": True, "missing": "error"}


class Frame:
    """What the adapter uses of a Spark data frame."""

    def __init__(self, table, partitions):
        self.table, self.partitions = table, partitions
        self.columns = table.column_names

    def select(self, *names):
        return Frame(self.table.select([name.strip("`") for name in names]), self.partitions)

    def mapInArrow(self, function, schema):
        self.function = pickle.loads(pickle.dumps(function))
        return self

    def collect(self):
        size = -(-len(self.table) // self.partitions)
        found = []
        for number in range(self.partitions):
            spark._partition_number = lambda number=number: number
            (batch,) = self.function(iter(self.table.slice(number * size, size).to_batches(max_chunksize=61)))
            found.append((batch.column("result")[0].as_py(),))
        return found[::-1]


@pytest.fixture
def partition(monkeypatch):
    monkeypatch.setattr(spark, "_partition_number", lambda: 0)
    monkeypatch.setattr(spark.SparkRecords, "_collect", lambda self, task: self.data.mapInArrow(task, "").collect())


@pytest.mark.parametrize("partitions", [1, 3, 8])
def test_partitions_give_the_bits_of_the_array(data, partition, partitions):
    expected = QUERY.evaluate(data, clip=True, missing="error")
    records = spark.SparkRecords(Frame(make_table(data), partitions))
    assert np.array_equal(QUERY.evaluate(records, clip=True, missing="error"), expected)


@pytest.mark.parametrize("method", ["adaptive", "plain"])
def test_covariances_have_the_bits_of_the_array(data, partition, method):
    options = {"question": "covariance", "method": method, "stream": mdp.Stream(seed=1), "simulation": True}
    expected = mdp.release_table(data, BOUNDS, mdp.Privacy(1, 1e-6), **options)
    options["stream"] = mdp.Stream(seed=1)
    records = spark.SparkRecords(Frame(make_table(data), 3))
    assert mdp.release_table(records, BOUNDS, mdp.Privacy(1, 1e-6), **options).to_json() == expected.to_json()


def test_a_fault_arrives_as_it_is(data, partition):
    holes = data.copy()
    holes[2500, 1] = np.nan
    with pytest.raises(mdp.DataError, match=r"partition 2: .*'b' has an empty"):
        QUERY.evaluate(spark.SparkRecords(Frame(make_table(holes), 3)), clip=True, missing="error")
    with pytest.raises(mdp.DataError, match="column 'z'"):
        spark.SparkRecords(Frame(make_table(data), 1)).select(["z"])
    with pytest.raises(mdp.ParameterError, match="data frame of Spark"):
        spark.SparkRecords(object())


def test_frames_are_read_on_their_cluster_and_not_as_streams(data, monkeypatch):
    monkeypatch.setattr(Frame, "__module__", "pyspark.sql.dataframe")
    monkeypatch.setattr(Frame, "__arrow_c_stream__", None, raising=False)  # which Spark 4 has
    assert isinstance(open_records(Frame(make_table(data), 1)), spark.SparkRecords)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java")
def test_a_real_session_gives_the_same_bits(tmp_path, data, monkeypatch):
    sql = pytest.importorskip("pyspark.sql", reason="make others runs it")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    folder = write_parts(tmp_path / "set", data, parts=1)
    builder = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", "100").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    try:
        frame = session.read.parquet(str(folder))
        expected = QUERY.evaluate(data, clip=True, missing="error")
        for partitions in (1, 5):
            found = QUERY.evaluate(frame.repartition(partitions), clip=True, missing="error")
            assert np.array_equal(found, expected)
        people = make_table(data).set_column(0, "key", pa.array([f"person {i**2 % 211}" for i in range(RECORDS)]))
        once = mdp.Moments(BOUNDS, len(people.column("key").unique()), person="key")
        pq.write_table(people, tmp_path / "people.parquet", row_group_size=400)
        found = once.evaluate(session.read.parquet(str(tmp_path / "people.parquet")).repartition(4), **OPTIONS)
        assert np.array_equal(found, once.evaluate(people, **OPTIONS))
        with pytest.raises(mdp.DataError, match="must hold numbers"):
            mdp.Moments(mdp.Bounds([0], [1], names=["key"]), RECORDS).evaluate(frame, clip=True, missing="error")
        first = release_dataset(DESIGNS["axes"], folder / "000.parquet", tmp_path / "threads", **seeded())
        frame = session.read.parquet(str(folder / "000.parquet")).coalesce(1)
        made = release_dataset(DESIGNS["axes"], frame, tmp_path / "spark", **seeded())
        assert np.array_equal(read(made.path), read(first.path))
    finally:
        session.stop()
