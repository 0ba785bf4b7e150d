"""Bad input through the real command: the message names the culprit and the remedy, and nothing is lost."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import matrixdp as matrixdp_package
from nightly import times
from unit.cli.conftest import OLD, SECRET, argv, make_table, read_charges

USAGE, DATA, BUDGET = 2, 3, 4


def text(content):
    return lambda: Path("bad.csv").write_text(content)


def schema(content):
    return lambda: Path("schema.toml").write_text(content)


def table(**columns):
    def write():
        pq.write_table(pa.table(columns), "bad.parquet")

    return write


def edit(name, row, column, value):
    def write():
        lines = Path("clinic.csv").read_text().replace('"', "").splitlines()
        cells = lines[row].split(",")
        cells[column] = value
        lines[row] = ",".join(cells)
        Path(name).write_text("\n".join(lines) + "\n")

    return write


def feather_with_text():
    feather.write_feather(pa.table({"age": ["77.7654321y"], "bmi": [20.0]}), "bad.feather")


def cut_short():
    content = Path("clinic.parquet").read_bytes()
    Path("bad.parquet").write_bytes(content[: len(content) // 2])


def cut_inside():
    content = bytearray(Path("clinic.parquet").read_bytes())
    content[200:1200] = bytes(1000)
    Path("bad.parquet").write_bytes(content)


NOTHING = lambda: None  # noqa: E731
CASES = {
    "missing file": (NOTHING, argv("nowhere.csv"), DATA, ["nowhere.csv", "Check the path"]),
    "a folder": (NOTHING, argv("."), DATA, ["clinic.db", "pattern"]),
    "a folder for the data": (NOTHING, (*argv(), "--out", "."), USAGE, ["out must be outside of the data"]),
    "unknown ending": (lambda: Path("bad.dat").write_text("x"), argv("bad.dat"), DATA, ["bad.dat", ".parquet"]),
    "empty file": (text(""), argv("bad.csv"), DATA, ["bad.csv", "empty"]),
    "empty parquet": (lambda: Path("bad.parquet").touch(), argv("bad.parquet"), DATA, ["bad.parquet", "empty"]),
    "header only": (text("age,bmi\n"), argv("bad.csv"), DATA, ["bad.csv", "no records"]),
    "no header": (text(f"{SECRET},20\n30,25\n"), argv("bad.csv"), DATA, ["bad.csv", "first row"]),
    "no header, wrong delimiter": (text(f"{SECRET};20\n30;25\n"), argv("bad.csv"), DATA, ["bad.csv", "first row"]),
    "wrong delimiter": (text(f"age:bmi\n{SECRET}:20\n"), argv("bad.csv"), DATA, ["None of its 1 columns", "delimiter"]),
    "delimiter too long": (
        NOTHING, ("schema", "new", "clinic.csv", "--delimiter", "ab"), USAGE, ["--delimiter", "single character"],
    ),
    "missing column": (text(f"age,weight\n{SECRET},20\n"), argv("bad.csv"), DATA, ["bad.csv", "'bmi'"]),
    "missing in parquet": (table(age=[SECRET]), argv("bad.parquet"), DATA, ["bad.parquet", "'bmi'"]),
    "doubled column": (text(f"age,age,bmi\n{SECRET},1,20\n"), argv("bad.csv"), DATA, ["two columns", "1 and 2"]),
    "text in a number column": (edit("bad.csv", 5, 1, "77.7654321kg"), argv("bad.csv"), DATA, ["'bmi'", "numbers"]),
    "text late in the file": (edit("bad.csv", 500, 0, "77.7654321y"), argv("bad.csv"), DATA, ["'age'", "numbers"]),
    "text in parquet": (table(age=["77.7654321y"], bmi=[20.0]), argv("bad.parquet"), DATA, ["'age'", "numbers"]),
    "text in feather": (feather_with_text, argv("bad.feather"), DATA, ["'age'", "numbers"]),
    "ragged line": (text(f"age,bmi\n{SECRET},20,7\n"), argv("bad.csv"), DATA, ["bad.csv", "more or fewer"]),
    "NaN": (edit("bad.csv", 7, 1, "NaN"), argv("bad.csv"), DATA, ["'bmi'", "--missing"]),
    "empty entry": (edit("bad.csv", 7, 0, ""), argv("bad.csv"), DATA, ["'age'", "--missing"]),
    "infinity": (edit("bad.csv", 7, 0, "inf"), argv("bad.csv"), DATA, ["'age'", "--missing"]),
    "NaN in parquet": (table(age=[30.0, np.nan], bmi=[SECRET, 20]), argv("bad.parquet"), DATA, ["'age'"]),
    "null in parquet": (table(age=[30, None], bmi=[SECRET, 20]), argv("bad.parquet"), DATA, ["'age'"]),
    "nothing but nulls": (table(age=[30.0, 1], bmi=[None, None]), argv("bad.parquet"), DATA, ["'bmi'"]),
    "cut short": (cut_short, argv("bad.parquet"), DATA, ["bad.parquet"]),
    "overwritten inside": (cut_inside, argv("bad.parquet"), DATA, ["bad.parquet"]),
    "not parquet at all": (lambda: Path("bad.parquet").write_text("hello" * 9), argv("bad.parquet"), DATA, ["bad"]),
    "not feather at all": (lambda: Path("bad.feather").write_text("hello" * 9), argv("bad.feather"), DATA, ["bad"]),
    "not UTF-8": (lambda: Path("bad.csv").write_bytes(b"\xff\xfe\x81age\n"), argv("bad.csv"), DATA, ["UTF-8"]),
    "inverted bounds": (
        schema("[columns.age]\nlower = 90\nupper = 18\n"), argv(), USAGE, ["schema.toml", "age", "below upper"],
    ),
    "bounds not filled in": (
        schema('[columns.age]\nlower = ""\nupper = 90\n'), argv(), USAGE, ["schema.toml", "'age'", "lower"],
    ),
    "bounds are text": (schema('[columns.age]\nlower = "a"\nupper = 9\n'), argv(), USAGE, ["'age'", "number"]),
    "bounds are infinite": (schema("[columns.age]\nlower = -inf\nupper = 9\n"), argv(), USAGE, ["finite"]),
    "no bounds": (schema(""), argv(), USAGE, ["schema.toml", "[columns.NAME]"]),
    "a typing error": (schema("[columns.age]\nlwer = 9\nupper = 10\n"), argv(), USAGE, ["'lwer'", "lower"]),
    "broken schema": (schema("[columns"), argv(), USAGE, ["schema.toml", "TOML"]),
    "missing schema": (lambda: Path("schema.toml").unlink(), argv(), USAGE, ["schema.toml", "matrixdp schema new"]),
    "unknown query": (NOTHING, argv("clinic.csv", "variance"), USAGE, ["--query", "variance", "moments"]),
    "epsilon 0": (NOTHING, (*argv(), "--epsilon", "0"), USAGE, ["epsilon", "greater than 0"]),
    "epsilon is text": (NOTHING, (*argv(), "--epsilon", "one"), USAGE, ["--epsilon"]),
    "delta 1": (NOTHING, (*argv(), "--delta", "1"), USAGE, ["delta", "between 0 and 1"]),
    "delta 0": (NOTHING, (*argv(), "--delta", "0"), USAGE, ["delta", "between 0 and 1"]),
    "wrong records": (NOTHING, (*argv(), "--records", "499"), USAGE, ["records", "499"]),
    "no records": (NOTHING, (*argv(), "--records", "0"), USAGE, ["records", "got 0"]),
    "negative records": (NOTHING, (*argv(), "--records", "-4"), USAGE, ["records", "-4"]),
    "records are private": (NOTHING, (*argv(), "--neighbours", "add-remove"), USAGE, ["--records"]),
    "unknown importance": (NOTHING, (*argv(), "--importance", "height=3"), USAGE, ["--importance", "height", "bmi"]),
    "importance 0": (NOTHING, (*argv(), "--importance", "age=0"), USAGE, ["--importance", "positive"]),
    "importance of a direction": (
        lambda: np.save("axes.npy", np.eye(2)), (*argv(), "--directions", "axes.npy", "--importance", "age=2"), USAGE,
        ["--importance", "0, 1"],
    ),
    "missing directions": (NOTHING, (*argv(), "--directions", "axes.npy"), USAGE, ["--directions", "axes.npy"]),
    "directions of text": (
        lambda: Path("axes.csv").write_text("a,b"), (*argv(), "--directions", "axes.csv"), USAGE, ["axes.csv"],
    ),
    "skew directions": (
        lambda: np.save("axes.npy", np.ones((2, 2))), (*argv(), "--directions", "axes.npy"), USAGE, ["orthonormal"],
    ),
    "counts without cells": (NOTHING, argv("clinic.csv", "counts"), USAGE, ["--cells"]),
    "counts of numbers": (
        NOTHING, (*argv("clinic.csv", "counts"), "--cells", "age,smoker"), USAGE, ["'age'", "levels"],
    ),
    "an unknown category": (
        edit("bad.csv", 5, 2, "77.7654321"), (*argv("bad.csv", "counts"), "--cells", "smoker,outcome"), DATA,
        ["'smoker'", "levels"],
    ),
    "a graph without nodes": (NOTHING, argv("clinic.csv", "adjacency"), USAGE, ["[graph]", "nodes"]),
    "a graph of a billion nodes": (
        schema("[graph]\nnodes = 1000000000\n"), argv("clinic.csv", "adjacency"), USAGE, ["[graph]", "at most 10,000"],
    ),
    "twenty thousand columns": (
        schema("\n".join(f"[columns.c{i}]\nlower = 0\nupper = 1" for i in range(20_000))), argv(), USAGE,
        ["--query moments", "at most 10,000", "20,001"],
    ),
    "missing points": (NOTHING, (*argv("clinic.csv", "gram"), "--points", "p.csv"), USAGE, ["--points", "p.csv"]),
    "no ledger": (NOTHING, tuple(w for w in argv() if w not in ("--ledger", "clinic.db")), USAGE, ["--no-ledger"]),
    "ledger and none": (NOTHING, (*argv(), "--no-ledger"), USAGE, ["--ledger", "--no-ledger"]),
    "ledger missing": (NOTHING, (*argv(), "--ledger", "other.db"), BUDGET, ["other.db", "matrixdp ledger new"]),
    "not a ledger": (NOTHING, (*argv(), "--ledger", "clinic.csv"), BUDGET, ["clinic.csv"]),
    "unknown data set": (NOTHING, (*argv(), "--dataset", "other"), BUDGET, ["other"]),
    "other neighbours": (
        NOTHING, (*argv(), "--neighbours", "add-remove", "--records", "500"), USAGE, ["neighbours", "replace"],
    ),
    "overdrawn": (NOTHING, (*argv(), "--epsilon", "4.1"), BUDGET, ["epsilon 4", "4.1", "ledger show"]),
    "out is a file": (NOTHING, (*argv(), "--out", "schema.toml"), USAGE, ["out", "schema.toml"]),
    "out is below a file": (NOTHING, (*argv(), "--out", "schema.toml/deep"), USAGE, ["out", "schema.toml"]),
    "out cannot be written": (NOTHING, (*argv(), "--out", "/proc/matrixdp/out"), USAGE, ["out", "/proc"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_refused_and_nothing_is_lost(clinic, matrixdp, name):
    prepare, words, code, expected = CASES[name]
    Path("out").mkdir()
    Path("out/audit.json").write_text(OLD)
    prepare()
    before = sorted(path.name for path in Path().iterdir())
    done = matrixdp(*words, "--force")
    assert done.code == code, done.err
    for part in expected:
        assert part in done.err, done.err
    assert len(done.err.strip().splitlines()) <= 2
    assert "Traceback" not in done.err
    assert "77.76" not in done.out + done.err
    assert read_charges() == []
    assert Path("out/audit.json").read_text() == OLD
    assert sorted(path.name for path in Path().iterdir()) == before


def test_missing_values_can_be_put_in_the_middle(clinic, matrixdp):
    edit("bad.csv", 7, 1, "NaN")()
    assert matrixdp(*argv("bad.csv"), "--missing", "midpoint").code == 0


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_other_delimiters_are_read_when_named(clinic, matrixdp, mark):
    content = Path("clinic.csv").read_text().replace(",", mark)
    Path("other.csv").write_text(content)
    schema = Path("schema.toml")
    schema.write_text(schema.read_text() + f"[files]\ndelimiter = {json.dumps(mark)}\n")
    done = matrixdp(*argv("other.csv"))
    assert done.code == 0, done.err


def test_a_locked_ledger_is_an_error_after_the_timeout(clinic, matrixdp):
    other = sqlite3.connect("clinic.db", isolation_level=None)
    other.execute("begin exclusive")
    try:
        done = matrixdp(*argv(), "--wait", "0.2")
    finally:
        other.execute("rollback")
        other.close()
    assert done.code == BUDGET
    assert "locked" in done.err
    assert read_charges() == []
    assert not Path("out").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_folder_without_permission_is_refused(clinic, matrixdp):
    Path("closed").mkdir(mode=0o500)
    done = matrixdp(*argv(), "--out", "closed/out")
    assert done.code == USAGE
    assert read_charges() == []


@pytest.mark.parametrize("option", ["columns", "by", "on", "target", "directions", "points", "importance"])
def test_an_empty_option_is_not_taken_as_left_out(clinic, matrixdp, option):
    done = matrixdp(*argv(), f"--{option}", "")
    assert done.code == USAGE
    assert f"--{option}" in done.err
    assert read_charges() == []


def test_an_internal_error_shows_no_value_without_debug(clinic, matrixdp, monkeypatch):
    def fault(*a, **k):
        raise RuntimeError(f"cannot handle {SECRET}")

    monkeypatch.setattr("matrixdp.records.files.open_files", fault)
    done = matrixdp(*argv())
    assert done.code == 5
    assert "RuntimeError" in done.err
    assert "77.76" not in done.err
    assert "Traceback" in matrixdp("--debug", *argv()).err


def start(*words):
    """Python in a process of its own, with the package that is tested."""
    environment = {**os.environ, "PYTHONPATH": str(Path(matrixdp_package.__file__).parents[1])}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, *words], text=True, env=environment, **pipes)


@pytest.mark.parametrize(
    ("words", "code"), [(argv("nowhere.csv"), 3), ((*argv(), "--epsilon", "9"), 4), (("release",), 2), (argv(), 0)]
)
def test_the_console_script_exits_with_these_codes(clinic, words, code):
    process = start("-m", "matrixdp", *words)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    assert (err == "") == (code == 0)


# Reads one block, says so, and waits for a signal. Short waits: a signal just before one of them is not missed.
STALLED = """
import threading
from matrixdp.records.files import FilePart
blocks = FilePart.blocks
def stall(self, *a, **k):
    for block in blocks(self, *a, **k):
        yield block
        print("reading", flush=True)
        while True:
            threading.Event().wait(0.01)
FilePart.blocks = stall
from matrixdp.cli import main
main()
"""


SIGNALS = [signal.SIGINT, signal.SIGTERM, *times([], [signal.SIGHUP, signal.SIGQUIT])]


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_before_the_charge_leaves_nothing_behind(clinic, interruptible, number):
    Path("out").mkdir()
    Path("out/audit.json").write_text(OLD)
    before = sorted(path.name for path in Path().iterdir())
    with start("-c", STALLED, *argv(), "--force", "--workers", "2") as process:
        try:
            assert process.stdout.readline() == "reading\n"
            process.send_signal(number)
            _, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130, err
    assert err.strip() == "matrixdp: interrupted; nothing was released."
    assert read_charges() == []
    assert Path("out/audit.json").read_text() == OLD
    assert sorted(path.name for path in Path().iterdir()) == before


def test_the_table_of_the_tests_holds_the_secret():
    assert SECRET in make_table()["age"].to_pylist()


def test_a_first_record_is_not_shown_as_names(matrixdp, tmp_path):
    (tmp_path / "people.csv").write_text("Alice,HIV+\nBob,HIV-\n")
    (tmp_path / "twice.csv").write_text("secret,secret\nno,yes\n")
    (tmp_path / "s.toml").write_text('[columns.a]\nlevels = ["x"]\n\n[columns.b]\nlevels = ["y"]\n')
    for name in ("people.csv", "twice.csv"):
        done = matrixdp("schema", "check", str(tmp_path / "s.toml"), "--data", str(tmp_path / name))
        assert done.code != 0
        assert not any(word in done.out + done.err for word in ("Alice", "HIV", "secret"))
