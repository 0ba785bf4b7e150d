"""A clinic's table in three formats, its schema and its ledger, and the real command in this process."""

import json
import signal
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from matrixdp import Ledger, Privacy
from matrixdp.cli.main import run
from matrixdp.report import release_folder

_IMPORTED = release_folder  # by commands when they run: at the latest now, before a test replaces a function it imports

SECRET = 77.7654321  # a value that no output may show
SCHEMA = """\
[columns.age]
lower = 18
upper = 90
[columns.bmi]
lower = 15
upper = 45
"""
TABLE = f"""\
{SCHEMA}
[columns.smoker]
levels = ["yes", "no"]
[columns.outcome]
type = "category"
levels = ["well", "ill"]
"""


def make_table(records=500):
    rng = np.random.default_rng(0)
    age = rng.uniform(20, 80, records).round(2)
    age[3] = SECRET
    return pa.table(
        {
            "age": age,
            "bmi": (25 + 0.1 * (age - 50) + rng.normal(0, 3, records)).round(2),
            "smoker": rng.choice(["yes", "no"], records),
            "outcome": rng.choice(["well", "ill"], records),
        }
    )


@pytest.fixture
def clinic(tmp_path, monkeypatch):
    """Files in an empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    table = make_table()
    pacsv.write_csv(table, "clinic.csv")
    pq.write_table(table, "clinic.parquet", row_group_size=130)
    feather.write_feather(table, "clinic.feather", chunksize=170)
    Path("schema.toml").write_text(SCHEMA)
    Path("table.toml").write_text(TABLE)
    with Ledger.create("clinic.db") as ledger:
        ledger.register("clinic", Privacy(4, 1e-6), neighbours="replace")
    return SimpleNamespace(path=tmp_path, table=table)


@pytest.fixture
def matrixdp(capsys):
    """Run a command line; gives its exit code, its output and its errors."""

    def call(*words):
        capsys.readouterr()
        code = run([str(word) for word in words])
        out, err = capsys.readouterr()
        return SimpleNamespace(code=int(code), out=out, err=err, json=lambda: json.loads(out))

    return call


@pytest.fixture
def interruptible():
    """Signals stop this process and its children, even if the tests were started with some of them ignored."""
    previous = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGHUP, signal.SIGQUIT)}
    previous[signal.SIGINT] = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in previous.items():
        signal.signal(number, handler)


BUDGET = ("--epsilon", "1", "--delta", "1e-6")
OLD = '{"format": "matrixdp release 1"}'  # the release.json of an old release


def argv(data="clinic.csv", query="moments", *more):
    """Arguments of a release that is charged to the ledger."""
    ledger = ("--ledger", "clinic.db", "--dataset", "clinic")
    schema = "table.toml" if query in ("counts", "table", "means", "everything") else "schema.toml"
    return ("release", data, "--schema", schema, "--query", query, *BUDGET, *ledger, "--out", "out", *more)


def read_charges():
    """All charges to the data set."""
    with Ledger.open("clinic.db") as ledger:
        return ledger.history("clinic")
