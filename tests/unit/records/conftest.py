"""Records in files of every kind, and a cluster of two worker processes."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp

NAMES = ("a", "b", "c")
RECORDS = 3000
BOUNDS = mdp.Bounds([-1, -2, 0], [1, 3, 1], names=NAMES)
UNNAMED = mdp.Bounds([-1, -2, 0], [1, 3, 1])
PRIVACY = mdp.Privacy(1, 1e-6)


def make_data(records=RECORDS):
    """Values within and beyond the bounds, whole numbers in the last column."""
    rng = np.random.default_rng(11)
    data = rng.normal(scale=1.3, size=(records, 3)).astype(np.float32)
    data[:, 2] = rng.integers(0, 2, records)
    return data


def make_table(data):
    columns = {name: data[:, j] for j, name in enumerate(NAMES)}
    return pa.table({"key": pa.array([f"r{i}" for i in range(len(data))]), **columns})


def write_parts(folder, data, *, parts, rows=97):
    """`parts` Parquet files with small row groups."""
    folder.mkdir(parents=True, exist_ok=True)
    for i, piece in enumerate(np.array_split(data, parts)):
        pq.write_table(make_table(piece), folder / f"{i:03d}.parquet", row_group_size=rows)
    return folder


def read_columns(source, columns, *, as_text=False):
    """Whole columns of files as Python values."""
    batches = source.read_batches(columns, texts=columns if as_text else ())
    return [[value for batch in batches for value in batch.column(name).to_pylist()] for name in columns]


@pytest.fixture(scope="session")
def data():
    found = make_data()
    found.flags.writeable = False
    return found


@pytest.fixture
def table(data):
    return make_table(data)


@pytest.fixture
def ledger(tmp_path):
    """A ledger with one data set."""
    with mdp.Ledger.create(tmp_path / "ledger.db") as found:
        found.register("clinic", PRIVACY, neighbours="replace")
    return tmp_path / "ledger.db"


@pytest.fixture(scope="session")
def shared_cluster():
    """A client of two worker processes, each with a nanny that restarts it."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as made,
        distributed.Client(made, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def cluster(shared_cluster):
    """The cluster of all tests, with both of its workers, which a test before may have killed."""
    shared_cluster.wait_for_workers(2, timeout=60)
    return shared_cluster
