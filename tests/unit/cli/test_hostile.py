"""Hostile input and output: mistakes never end as internal errors, and a finished release never as a failure."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matrixdp as matrixdp_package
from matrixdp.cli.main import run
from matrixdp.domain.schema_file import make_template, read_schema
from matrixdp.release import plan as planning
from matrixdp.report import release_folder
from nightly import times
from unit.cli.conftest import BUDGET, SCHEMA, TABLE, argv, make_table, read_charges

USAGE, DATA = 2, 3
BOUND = "[columns.age]\nlower = {}\nupper = 90\n"


def schema(content):
    return lambda: Path("schema.toml").write_text(content)


def huge_header():
    Path("axes.npy").write_bytes(b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + b" " * 100)


def loop():
    Path("loop").symlink_to("loop")


NOTHING = lambda: None  # noqa: E731
GRAM, COUNTS = argv("clinic.csv", "gram"), argv("clinic.csv", "counts")
NEW = ("schema", "new", "clinic.csv")
CASES = {
    "delimiter beyond ASCII": (NOTHING, (*NEW, "--delimiter", "é"), USAGE, "--delimiter"),
    "a quote as delimiter": (NOTHING, (*NEW, "--delimiter", '"'), USAGE, "--delimiter"),
    "a line end as delimiter": (NOTHING, (*NEW, "--delimiter", "\n"), USAGE, "--delimiter"),
    "a loop of links as output": (loop, (*argv(), "--out", "loop"), USAGE, "must be a folder"),
    "output below a loop of links": (loop, (*argv(), "--out", "loop/out"), USAGE, "cannot be written"),
    "a loop of links as data": (loop, argv("loop"), DATA, "loop"),
    "a loop of links as directions": (loop, (*argv(), "--directions", "loop"), USAGE, "--directions"),
    "the root as output": (NOTHING, (*argv(), "--out", "/"), USAGE, "out"),
    "one column twice": (NOTHING, (*COUNTS, "--cells", "smoker,smoker"), USAGE, "two different columns"),
    "a bound of 400 digits": (schema(BOUND.format("-1" + "0" * 400)), argv(), USAGE, "1e60"),
    "a bound of 5000 digits": (schema(BOUND.format("-1" + "0" * 5000)), argv(), USAGE, "schema.toml"),
    "records of 400 digits": (schema("records = -1" + "0" * 400), argv(), USAGE, "records"),
    "a nested schema": (schema("a = " + "[" * 9000 + "]" * 9000), argv(), USAGE, "nested too deeply"),
    "a schema of nested tables": (schema("a = " + "{a = " * 9000), argv(), USAGE, "schema.toml"),
    "a date as bound": (schema(BOUND.format("1979-05-27")), argv(), USAGE, "number"),
    "a huge bandwidth": (NOTHING, (*GRAM, "--bandwidth", "1e300"), USAGE, "bandwidth"),
    "a tiny bandwidth": (NOTHING, (*GRAM, "--bandwidth", "1e-300"), USAGE, "bandwidth"),
    "a tiny importance": (NOTHING, (*argv(), "--importance", "age=1e-308"), USAGE, "--importance"),
    "a request that is not UTF-8": (NOTHING, (*argv(), "--request", "\udcff"), USAGE, "--request"),
    "an empty request": (NOTHING, (*argv(), "--request", ""), USAGE, "--request"),
    "a data set that is not UTF-8": (NOTHING, (*argv(), "--dataset", "\udcff\x1b[31m"), USAGE, "--dataset"),
    "a huge NPY header": (huge_header, (*argv(), "--directions", "axes.npy"), USAGE, "axes.npy"),
    "no records": (NOTHING, (*argv(), "--records", "0"), USAGE, "--records"),
    "no records of a graph": (
        schema("[graph]\nnodes = 3\n"), (*argv("clinic.csv", "adjacency"), "--records", "0"), USAGE, "--records",
    ),
    "records beyond all numbers": (NOTHING, (*argv(), "--records", "9" * 400), USAGE, "records"),
    "escapes in an option": (NOTHING, (*argv(), "--importance", "\x1b[31m=3"), USAGE, "\\x1b[31m"),
    "escapes in an unknown option": (NOTHING, (*argv(), "--\x1b[31m"), USAGE, "\\x1b[31m"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_mistakes_are_no_internal_errors(clinic, matrixdp, name):
    prepare, words, code, expected = CASES[name]
    prepare()
    done = matrixdp(*words)
    assert done.code == code, done.err
    assert expected in done.err
    assert "\x1b" not in done.err
    assert read_charges() == []
    assert not Path("out").exists()


def test_escapes_in_column_names_do_not_reach_the_terminal(clinic, matrixdp):
    names = ["a\x1b[31m", "b\x9b2J", "=c"]
    Path("data.csv").write_text(",".join(names) + "\n" + "0.5,0.5,0.5\n" * 20)
    fields = {name: pa.field(name, pa.float64()) for name in names}
    template = make_template(fields, "da\nta.csv").replace('lower = ""', "lower = 0").replace('upper = ""', "upper = 1")
    Path("schema.toml").write_text(template)
    assert read_schema(Path("schema.toml")).columns.names == tuple(names)
    shown = [
        matrixdp("schema", "new", "data.csv"),
        matrixdp("schema", "check", "schema.toml", "--data", "data.csv"),
        matrixdp("design", "--schema", "schema.toml", "--query", "covariance", "--records", "20", *BUDGET),
        matrixdp(*argv("data.csv", "covariance")),
        matrixdp(*argv("clinic.csv", "covariance", "--force")),  # an error that names a column
    ]
    assert [done.code for done in shown] == [0, 0, 0, 0, DATA]
    for done in shown:
        assert all(char.isprintable() or char == "\n" for char in done.out + done.err)


@pytest.mark.parametrize(
    "name", ['quote"', "back\\slash", "\U0001f600", "\x7f", "é", "new\nline", "a.b", "", "x\u2028y"]
)
def test_a_template_can_be_read_for_any_name(tmp_path, name):
    template = make_template({name: pa.field(name, pa.float64())}, "data.csv")
    (tmp_path / "s.toml").write_text(template.replace('lower = ""', "lower = 0").replace('upper = ""', "upper = 1"))
    columns = read_schema(tmp_path / "s.toml").columns
    assert columns is None if not name else columns.names == (name,)


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(matrixdp_package.__file__).parents[1])}
ENVIRONMENT.pop("PYTHONUNBUFFERED", None)  # hides what fails when buffers are written at exit


REDIRECTIONS = [
    "> /dev/full",
    "<&- >&- 2>&-",
    *times([], ["| head -0", "2>&-", ">&-", "2> /dev/full", "> /dev/full 2>&1"]),
]


@pytest.mark.parametrize("redirection", REDIRECTIONS)
def test_a_full_or_closed_output_does_not_fail_a_finished_release(clinic, redirection):
    command = " ".join([sys.executable, "-m", "matrixdp", *argv(), redirection])
    script = f"set -o pipefail; {command}"
    done = subprocess.run(["bash", "-c", script], env=ENVIRONMENT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    if redirection == "> /dev/full":
        assert "standard output could not be written: No space left on device" in done.stderr
    assert Path("out/report.html").exists()
    assert [charge.released for charge in read_charges()] == [True]


@pytest.mark.parametrize("words", ["ledger show clinic.db", "--help"])
def test_a_reader_that_leaves_does_not_change_the_exit_code(clinic, words):
    script = f"{sys.executable} -m matrixdp {words} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], env=ENVIRONMENT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_closed_streams_leave_their_numbers_to_nobody(clinic):
    """Otherwise the ledger could be opened as number 2, and what is written to standard error would go there."""
    script = (
        "import os, sys\nfrom matrixdp.cli import _prepare_streams\n_prepare_streams()\n"
        "print('lost', file=sys.stderr, flush=True)\n"
        "os._exit(0 if os.open('clinic.db', os.O_RDONLY) > 2 else 1)"
    )
    command = '"$0" -c "$1" 2>&-; code=$?; "$0" -c "$1" <&- >&- 2>&- && exit $code'
    done = subprocess.run(["bash", "-c", command, sys.executable, script], env=ENVIRONMENT, timeout=60)
    assert done.returncode == 0


@pytest.mark.parametrize("query", times(["everything"], ["moments", "everything"]))
def test_a_path_in_another_encoding_than_the_locale_s_is_written(clinic, query):
    environment = {**ENVIRONMENT, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-m", "matrixdp", *argv("clinic.csv", query), "--out", "é"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", timeout=60)
    assert done.returncode == 0, done.stderr
    assert Path("é/report.html").exists()


def test_a_path_that_cannot_be_encoded_is_not_a_number_out_of_range(clinic):
    environment = {**ENVIRONMENT, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    Path("clinic.csv").rename("é.csv")
    command = [sys.executable, "-m", "matrixdp", *argv("é.csv")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", timeout=60)
    assert done.returncode == 2 or Path("out/report.html").exists()
    assert "too large or too small" not in done.stderr
    assert "LC_ALL" in done.stderr or done.returncode == 0


@pytest.mark.parametrize("word", ["xxx", "xxx "])
def test_a_long_name_is_not_repeated_whole(matrixdp, clinic, word):
    Path("long.toml").write_text(f'[columns."{word * 30_000}"]\nlower = 0\nupper = 1\n')
    done = matrixdp("schema", "check", "long.toml", "--data", "clinic.csv")
    assert done.code == 3
    assert "has no column 'xxx" in done.err
    assert len(done.err) < 5000


@pytest.mark.parametrize("step", ["_write_csv", "_write_matrix"])
def test_a_full_disk_is_reported_with_the_path(clinic, matrixdp, monkeypatch, step):
    monkeypatch.setattr(release_folder, step, fail(OSError(errno.ENOSPC, "No space left on device")))
    done = matrixdp(*argv())
    assert done.code == 2
    assert f"out: {Path('out').absolute()} cannot be written: No space left on device." in done.err
    assert read_charges() == []


def test_an_encoding_without_signs_does_not_fail_a_release(clinic):
    environment = {**ENVIRONMENT, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "matrixdp", *argv()]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def fail(error):
    def raise_it(*a, **k):
        raise error

    return raise_it


@pytest.mark.parametrize(
    ("error", "code"), [(OSError(28, "No space left on device"), USAGE), (RuntimeError("77.7654321"), 5)]
)
def test_an_error_after_the_charge_says_what_was_spent(clinic, matrixdp, monkeypatch, error, code):
    with monkeypatch.context() as patch:
        patch.setattr(release_folder.OutputFolder, "finish", fail(error))
        failed = matrixdp(*argv())
    assert failed.code == code
    assert "The budget is spent, and the ledger has the release" in failed.err
    assert "nothing was released" not in failed.err
    assert "77.76" not in failed.err
    request = failed.err.split("--request ")[1].split(",")[0]
    again = matrixdp(*argv("clinic.csv", "moments", "--request", request))
    assert again.code == 0, again.err
    assert len(read_charges()) == 1


def test_a_release_that_is_lost_is_called_lost(clinic, matrixdp, monkeypatch):
    monkeypatch.setattr(matrixdp_package.Ledger, "complete", fail(RuntimeError()))
    failed = matrixdp(*argv())
    assert "The budget is spent, and the release is lost" in failed.err
    assert [charge.released for charge in read_charges()] == [False]


def test_a_large_data_set_that_is_lost_is_called_lost(clinic, matrixdp, monkeypatch):
    from matrixdp.release import dataset

    monkeypatch.setattr(planning, "_MAX_IN_MEMORY", 100)
    monkeypatch.setattr(dataset.OutputFolder, "finish", fail(OSError(28, "No space left on device")))
    failed = matrixdp(*argv("clinic.parquet", "identity"))
    assert failed.code == USAGE  # not the cluster's fault
    assert "No space left on device" in failed.err
    assert "The budget is spent, and the release is lost" in failed.err
    assert [charge.released for charge in read_charges()] == [False]


def test_an_earlier_charge_is_not_called_spent_again(clinic, matrixdp):
    assert matrixdp(*argv("clinic.csv", "moments", "--request", "a")).code == 0
    other = matrixdp(*argv("clinic.csv", "second-moment", "--request", "a", "--force"))
    assert other.code == 4
    assert "use another request id" in " ".join(other.err.split())
    assert "spent" not in other.err


@pytest.mark.parametrize(
    "words",
    [
        ("verify", "clinic.db", "--anchor", "²:00"),
        ("verify", "clinic.db", "--anchor", "9" * 5000 + ":00"),
        ("verify", "clinic.db", "--anchor", "1:\udcff"),
        ("history", "clinic.db", "--dataset", "\udcff"),
        ("whatif", "clinic.db", "--dataset", "clinic", "--epsilon", "1e300", "--delta", "0.5"),
        ("whatif", "clinic.db", "--dataset", "clinic", "--epsilon", "5e-324", "--delta", "5e-324"),
        ("new", "new.db", "--dataset", "\x1b", "--epsilon", "1", "--delta", "1e-6"),
        ("new", "loop", "--dataset", "a", "--epsilon", "1", "--delta", "1e-6"),
        ("show", "loop"),
        ("show", "."),
        ("add", "clinic.db", "--dataset", "b", "--epsilon", "nan", "--delta", "1e-6"),
    ],
)
def test_ledger_commands_have_no_internal_errors(clinic, matrixdp, words):
    loop()
    done = matrixdp("ledger", *words)
    assert done.code in (0, USAGE, 4), done.err
    assert "Traceback" not in done.err
    assert "\x1b" not in done.err


@pytest.mark.parametrize("seconds", ["nan", "inf", "1e300", "-1", "1e10"])
def test_any_timeout_is_accepted_or_refused(clinic, matrixdp, seconds):
    done = matrixdp(*argv(), "--wait", seconds)
    assert done.code in (0, USAGE), done.err


def test_an_error_before_the_charge_says_nothing_of_it(clinic, matrixdp, monkeypatch):
    monkeypatch.setattr(matrixdp_package.Ledger, "charge", fail(RuntimeError()))
    failed = matrixdp(*argv())
    assert "nothing was released" in failed.err
    assert "spent" not in failed.err


def test_too_little_memory_is_no_internal_error(clinic, matrixdp, monkeypatch):
    monkeypatch.setattr(planning, "make_request_design", fail(MemoryError()))
    done = matrixdp(*argv())
    assert done.code == USAGE
    assert "not enough memory" in done.err


NUMBERS = ["0", "-1", "1", "1e-308", "5e-324", "1e308", "1e400", "-1e300", "nan", "inf", "0x10", "", "9" * 400, "１"]
# fmt: off
NAMES = ["age", "bmi", "age,bmi", "x,x", "smoker,outcome", ",", "=", "age=1", "age=1e-300", "bmi=1e300", "age=nan",
         "0=3", "\udcff", "\x1b[2J", "a" * 5000, "../..", "loop", "axes.npy", "clinic.csv", "/dev/null",
         "."]
# fmt: on
POOLS = {
    "--query": [
        "moments",
        "covariance",
        "correlation",
        "second-moment",
        "identity",
        "means",
        "table",
        "everything",
        "gram",
        "counts",
        "adjacency",
        "laplacian",
        "x",
    ],
    "--epsilon": [*NUMBERS, "1", "1e-5", "50"],
    "--delta": [*NUMBERS, "1e-6", "0.5", "1e-300"],
    "--records": [*NUMBERS, "500", "1125899906842624"],
    "--neighbours": ["replace", "add-remove", "x"],
    "--importance": NAMES,
    "--directions": ["standard", *NAMES],
    "--calibration": ["exact", "theorem2", "theorem2-corrected", "theorem2-psd"],
    "--cells": NAMES,
    "--columns": NAMES,
    "--by": ["smoker", "smoker,outcome", *NAMES],
    "--points": NAMES,
    "--kernel": ["gaussian", "laplacian"],
    "--bandwidth": NUMBERS,
}
SCHEMAS = {
    "plain": SCHEMA,
    "table": TABLE,
    "missing": TABLE.replace("upper = 45", "upper = 45\nmissing = true"),
    "tiny": BOUND.format("89.99999999999999"),
    "wide": "[columns.age]\nlower = -1e59\nupper = 1e59\n[columns.bmi]\nlower = 0\nupper = 1e-59\n",
    "ball": "radius = 1e-50\n" + SCHEMA,
    "graph": "[graph]\nnodes = 3\nweight = 1e300\n",
}
RELEASE_ONLY = {
    "--request": NAMES,
    "--dataset": ["clinic", *NAMES],
    "--missing": ["error", "midpoint"],
    "--workers": ["1", "0", "-1", "x", "tcp://", "１", "²", "9" * 5000],
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a tiny table, schemas and a ledger."""
    folder = tmp_path_factory.mktemp("fuzz")
    import pyarrow.csv as pacsv

    pacsv.write_csv(make_table(20), folder / "clinic.csv")
    for name, content in SCHEMAS.items():
        (folder / f"{name}.toml").write_text(content)
    np.save(folder / "axes.npy", np.eye(2))
    (folder / "loop").symlink_to("loop")
    with matrixdp_package.Ledger.create(folder / "clinic.db") as ledger:
        ledger.register("clinic", matrixdp_package.Privacy(1e6, 1e-3), neighbours="replace")
    return folder


def choose(pools):
    """A few options with values from their pools."""
    return st.lists(st.sampled_from(sorted(pools)), unique=True, max_size=4).flatmap(
        lambda flags: st.fixed_dictionaries({flag: st.sampled_from(pools[flag]) for flag in flags})
    )


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(
    command=st.sampled_from(["design", "release"]),
    schema=st.sampled_from(sorted(SCHEMAS)),
    query=st.sampled_from(POOLS["--query"]),
    chosen=choose(POOLS),
    more=choose(RELEASE_ONLY),
)
def test_no_option_ends_as_an_internal_error(place, command, schema, query, chosen, more):
    options = {"--query": query, "--epsilon": "1", "--delta": "1e-6", "--records": "20", **chosen}
    words = [command, *(["clinic.csv"] if command == "release" else []), "--schema", f"{schema}.toml"]
    if command == "release":
        options = {"--dataset": "clinic", **options, **more, "--ledger": "clinic.db", "--out": "out"}
        words.append("--force")
    words += [word for pair in options.items() for word in pair]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        code, err = run_quietly(words)
    assert code != 5, (words, err)
    assert "Traceback" not in err
    assert "\x1b" not in err
    assert not [path for path in place.iterdir() if path.name.startswith(".")]


def run_quietly(words):
    """Exit code and standard error of a command."""
    import contextlib
    import io

    err = io.StringIO()
    with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
        code = run(["--debug", *words] if os.environ.get("FUZZ_DEBUG") else words)
    return int(code), err.getvalue()
