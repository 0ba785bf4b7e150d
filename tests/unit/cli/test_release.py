"""The release command: what it writes, what it charges, and in which order."""

import csv
import json
import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.records import read_array
from matrixdp.records.files import FilePart, open_files
from matrixdp.release import plan as planning
from matrixdp.release.output_folder import OutputFolder
from matrixdp.report.release_page import DATASET_PAGE
from unit.cli.conftest import BUDGET, OLD, SECRET, argv, read_charges

FILES = {
    "matrix.csv",
    "matrix.npy",
    "matrix.parquet",
    "matrix.svg",
    "means.csv",
    "provenance.json",
    "release.json",
    "report.html",
    "std.csv",
}


@pytest.mark.parametrize("data", ["clinic.csv", "clinic.parquet", "clinic.feather"])
@pytest.mark.parametrize("method", ["adaptive", "plain"])
def test_a_release_is_charged_and_written_in_all_forms(clinic, matrixdp, data, method):
    done = matrixdp(*argv(data, "covariance", "--json", "--method", method))
    assert done.code == 0, done.err
    assert {path.name for path in Path("out").iterdir()} == FILES == set(done.json()["files"])
    matrix = np.load("out/matrix.npy")
    rows = list(csv.reader(Path("out/matrix.csv").read_text().splitlines()))
    assert rows[0] == ["", "age", "bmi"]
    assert np.array_equal(np.array([row[1:] for row in rows[1:]], float), matrix)
    table = pq.read_table("out/matrix.parquet")
    assert np.array_equal(table.select(["age", "bmi"]).to_pandas().to_numpy(), matrix)
    release = mdp.from_json(Path("out/release.json").read_text())
    assert np.array_equal(release.covariance().value, matrix)
    (charge,) = read_charges()
    assert charge.released
    assert charge.event.mu == (release.privacy.mu if method == "adaptive" else release.mu)
    assert done.json()["method"] == method
    assert "The budget of “clinic” paid for this release" in Path("out/report.html").read_text()


@pytest.mark.parametrize("data", ["clinic.csv", "clinic.parquet", "clinic.feather"])
def test_a_stream_gives_the_same_answer_as_the_table_in_memory(clinic, data):
    query = mdp.Moments(mdp.Bounds([18, 15], [90, 45], names=["age", "bmi"]), 500)
    whole = query.evaluate(clinic.table, clip=True, missing="error")
    streamed = query.evaluate(data, clip=True, missing="error")
    assert np.array_equal(whole, streamed)
    assert open_files(data).count() == 500


@pytest.mark.parametrize(
    ("query", "options", "shape"),
    [
        ("moments", [], (3, 3)),
        ("second-moment", [], (2, 2)),
        ("correlation", [], (2, 2)),
        ("identity", [], (500, 2)),
        ("gram", ["--points", "points.csv", "--kernel", "laplacian", "--bandwidth", "2"], (500, 3)),
        ("counts", ["--cells", "smoker,outcome"], (2, 2)),
        ("moments", ["--importance", "bmi=4"], (3, 3)),
        ("moments", ["--directions", "axes.npy", "--importance", "0=3"], (3, 3)),
        ("moments", ["--directions", "axes.csv"], (3, 3)),
        ("moments", ["--calibration", "theorem2-psd"], (3, 3)),
        ("moments", ["--neighbours", "add-remove", "--records", "480"], (3, 3)),
    ],
)
def test_every_query_is_released(clinic, matrixdp, query, options, shape):
    Path("points.csv").write_text("age,bmi\n30,20\n40,30\n50,25\n")
    axes = np.linalg.qr(np.random.default_rng(0).normal(size=(2, 2)))[0]
    np.save("axes.npy", axes)
    np.savetxt("axes.csv", axes, delimiter=",")
    place = ["--schema", "table.toml", "--out", "out", "--no-ledger", "--json"]
    columns = [] if query == "counts" else ["--columns", "age,bmi"]
    done = matrixdp("release", "clinic.csv", "--query", query, *BUDGET, *place, *columns, *options)
    assert done.code == 0, done.err
    assert tuple(done.json()["shape"]) == np.load("out/matrix.npy").shape == shape
    assert "No ledger was used" in Path("out/report.html").read_text()


@pytest.mark.parametrize("query", ["adjacency", "laplacian"])
@pytest.mark.parametrize(
    "text", ["source,target\na,b\nc,b\nb,a\n", "a,b,c\n0,1,0\n1,0,1\n0,1,0\n", "source,target,weight\na,b,1\nb,c,1.0\n"]
)
def test_graphs_are_read_as_edges_or_as_matrices(clinic, matrixdp, monkeypatch, query, text):
    Path("graph.csv").write_text(text)
    Path("schema.toml").write_text('[graph]\nnodes = ["a", "b", "c"]\n')
    seen = []
    kind = mdp.Adjacency if query == "adjacency" else mdp.Laplacian
    evaluate = kind.evaluate
    monkeypatch.setattr(kind, "evaluate", lambda self, data, **o: seen.append(data) or evaluate(self, data, **o))
    done = matrixdp("release", "graph.csv", "--schema", "schema.toml", "--query", query, *BUDGET, "--out", "out",
                    "--no-ledger")  # fmt: skip
    assert done.code == 0, done.err
    assert read_array(seen[0], 3, ["a", "b", "c"]).tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    assert "one edge" in Path("out/report.html").read_text()


def test_values_outside_the_bounds_are_moved_and_counted_nowhere(clinic, matrixdp):
    Path("schema.toml").write_text("[columns.age]\nlower = 40\nupper = 41\n")
    done = matrixdp(*argv())
    assert done.code == 0
    everything = done.out + done.err + Path("out/report.html").read_text() + Path("out/release.json").read_text()
    assert "clip" not in everything.lower().replace("clipped records", "")
    assert str(SECRET)[:6] not in everything


def test_the_budget_is_checked_before_the_data_are_read(clinic, matrixdp, monkeypatch):
    monkeypatch.setattr(FilePart, "blocks", lambda *a, **k: pytest.fail("the data were read"))
    done = matrixdp(*argv("clinic.parquet"), "--epsilon", "9")
    assert done.code == 4
    assert "epsilon 4" in done.err
    assert not Path("out").exists()
    other = matrixdp(*argv("clinic.parquet"), "--neighbours", "add-remove", "--records", "300")
    assert other.code == 2
    assert "neighbours must be 'replace'" in other.err


def test_a_repeated_request_returns_the_same_release_at_no_cost(clinic, matrixdp):
    request = ("--request", "week-7", "--epsilon", "3", "--json")
    assert matrixdp(*argv("clinic.csv", "moments", *request)).json()["ledger"]["charged"] is True
    first = Path("out/release.json").read_text()
    for more in ((), ("--force",)):
        again = matrixdp(*argv("clinic.csv", "moments", *request, *more))
        assert again.code == 0, again.err
        assert again.json()["ledger"]["charged"] is False
        assert Path("out/release.json").read_text() == first
        assert "was released before; it was not charged again" in again.err
    assert len(read_charges()) == 1
    other = matrixdp(*argv("clinic.csv", "moments", "--request", "week-8", "--epsilon", "0.1"))
    assert other.code == 2  # the folder holds another request's release
    assert "must be a new or empty folder" in other.err
    Path("out/release.json").write_text(first.replace("0", "1"))
    assert matrixdp(*argv("clinic.csv", "moments", *request)).code == 2
    assert len(read_charges()) == 1


def test_a_disk_that_fails_after_the_charge_costs_nothing(clinic, matrixdp, monkeypatch):
    def full(folder):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(OutputFolder, "finish", full)
        failed = matrixdp(*argv())
    assert failed.code == 2
    assert not Path("out").exists()
    request = failed.err.split("--request ")[1].split(",")[0]
    assert matrixdp(*argv("clinic.csv", "moments", "--request", request)).code == 0
    assert len(read_charges()) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_an_interrupt_after_the_charge_lets_the_release_finish(clinic, interruptible, matrixdp, monkeypatch, number):
    finish, before = OutputFolder.finish, signal.getsignal(number)

    def interrupted(folder):
        os.kill(os.getpid(), number)
        return finish(folder)

    monkeypatch.setattr(OutputFolder, "finish", interrupted)
    done = matrixdp(*argv())
    assert done.code == 0
    assert "was finished" in done.err
    assert "finishing first" in done.err
    assert Path("out/report.html").exists()
    assert read_charges()[0].released
    assert signal.getsignal(number) is before


def test_the_charge_comes_after_the_last_record_and_before_the_noise(clinic, matrixdp, monkeypatch):
    import matrixdp.mechanisms.mechanism as module

    order = []
    blocks, draw, charge = FilePart.blocks, module.draw_gaussian, mdp.Ledger.charge

    def read(self, *a, **k):
        yield from blocks(self, *a, **k)
        order.append("read")

    monkeypatch.setattr(FilePart, "blocks", read)
    monkeypatch.setattr(module, "draw_gaussian", lambda *a, **k: order.append("noise") or draw(*a, **k))
    monkeypatch.setattr(mdp.Ledger, "charge", lambda *a, **k: order.append("charge") or charge(*a, **k))
    assert matrixdp(*argv()).code == 0
    assert order == ["read", "charge", "noise"]


def test_a_signal_that_was_ignored_stays_ignored(clinic, matrixdp, monkeypatch):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as by nohup
    blocks = FilePart.blocks

    def hang_up(self, *a, **k):
        os.kill(os.getpid(), signal.SIGHUP)
        yield from blocks(self, *a, **k)

    monkeypatch.setattr(FilePart, "blocks", hang_up)
    try:
        assert matrixdp(*argv()).code == 0
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(
    "other", ["mine.txt", "clinic.db", "part-0.parquet", "table.csv", "folder", "link", "release.json"]
)
def test_force_replaces_a_folder_with_a_release_and_nothing_else(clinic, matrixdp, other):
    assert matrixdp(*argv("clinic.csv", "moments", "--request", "1")).code == 0
    if other == "folder":
        Path("out/folder").mkdir()
    elif other == "link":
        Path("out/notes.txt").symlink_to("../schema.toml")
    else:
        Path("out", other).write_text("mine")
    before = sorted(path.name for path in Path("out").iterdir())
    done = matrixdp(*argv("clinic.csv", "moments", "--request", "2", "--force"))
    assert done.code == 2
    assert str(Path("out", {"link": "notes.txt"}.get(other, other))) in done.err
    assert sorted(path.name for path in Path("out").iterdir()) == before
    assert [charge.request for charge in read_charges()] == ["1"]


def test_a_file_that_is_put_beside_the_old_release_meanwhile_is_not_lost(clinic, matrixdp, monkeypatch):
    assert matrixdp(*argv()).code == 0
    finish = OutputFolder.finish

    def put(folder):
        Path("out/mine.txt").write_text("mine")
        return finish(folder)

    with monkeypatch.context() as patch:
        patch.setattr(OutputFolder, "finish", put)
        done = matrixdp(*argv("clinic.csv", "moments", "--request", "2", "--force"))
    assert done.code == 2
    assert "out/mine.txt is in the way" in done.err
    assert "run again with --request 2, at no cost" in done.err
    assert Path("out/mine.txt").read_text() == "mine"


@pytest.mark.parametrize("option", ["--schema", "--ledger", "--anchor-to"])
def test_what_a_release_needs_is_not_in_its_folder(clinic, matrixdp, option):
    Path("out").mkdir()
    shutil.copy("schema.toml", "out/schema.toml")
    path = {"--schema": "out/schema.toml", "--ledger": "out/clinic.db", "--anchor-to": "out/anchors.txt"}[option]
    for more in ((), ("--force",)):
        done = matrixdp(*argv("clinic.csv", "moments", option, path, *more))
        assert done.code == 2
        assert f"{path} is inside of out" in done.err
    assert read_charges() == []
    assert Path("out/schema.toml").exists()


@pytest.mark.parametrize("options", [("covariance",), ("everything",), ("regression",)])
def test_every_file_of_a_release_is_known(clinic, matrixdp, options):
    options = (*options, "--target", "age") if "regression" in options else options
    for number in "12":
        done = matrixdp(*argv("clinic.csv", *options, "--request", number, "--force"))
        assert done.code == 0, done.err


def test_old_output_is_replaced_only_with_force(clinic, matrixdp):
    Path("out").mkdir()
    Path("out/mine.txt").write_text("mine")
    refused = matrixdp(*argv())
    assert refused.code == 2
    assert "--force" in refused.err
    assert Path("out/mine.txt").read_text() == "mine"
    assert read_charges() == []
    Path("out/mine.txt").unlink()
    Path("out/release.json").write_text(OLD)
    assert "--force" in matrixdp(*argv()).err
    assert matrixdp(*argv("clinic.csv", "moments", "--force")).code == 0
    assert {path.name for path in Path("out").iterdir()} == FILES
    assert sorted(path.name for path in Path().iterdir() if path.name.startswith(".")) == []


COUNTS = ["counts", "--cells", "smoker,outcome"]
REGRESSION = ["regression", "--method", "plain", "--target"]


@pytest.mark.parametrize(
    ("first", "others"),
    [
        (
            ["moments"],
            [
                (["second-moment"], "query was 'Moments' and is 'SecondMoment' now"),
                (["moments", "--missing", "midpoint"], "missing was 'error' and is 'midpoint' now"),
                (["moments", "--epsilon", "2"], "epsilon was 1.0 and is 2.0 now"),
                (["moments", "--columns", "age"], "query.bounds.lower was [18.0,15.0] and is [18.0] now"),
                (["moments", "--importance", "bmi=4"], "allocation.rule was 'uniform' and is 'optimal' now"),
                (["moments", "--schema", "files.toml"], 'reading.missing_words was not given and is ["-9"] now'),
            ],
        ),
        (
            ["covariance"],
            [
                (["correlation"], "aim was 'covariance' and is 'correlation' now"),
                (["covariance", "--method", "plain"], "method was 'adaptive' and is 'plain' now"),
                (["covariance", "--missing", "midpoint"], "missing was 'error' and is 'midpoint' now"),
                (["covariance", "--schema", "files.toml"], 'reading.missing_words was not given and is ["-9"] now'),
            ],
        ),
        (COUNTS, [([*COUNTS, "--schema", "marked.toml"], "reading.delimiter was not given and is ',' now")]),
        ([*REGRESSION, "bmi"], [([*REGRESSION, "age"], "target was 'bmi' and is 'age' now")]),
    ],
)
def test_a_request_for_something_else_is_refused_by_name(clinic, matrixdp, first, others):
    Path("files.toml").write_text(Path("schema.toml").read_text() + '[files]\nmissing_words = ["-9"]\n')
    Path("marked.toml").write_text(Path("table.toml").read_text() + '[files]\ndelimiter = ","\n')
    assert matrixdp(*argv("clinic.csv", *first, "--request", "a")).code == 0
    before, charges = Path("out/release.json").read_bytes(), read_charges()
    for second, words in others:
        other = matrixdp(*argv("clinic.csv", *second, "--request", "a", "--force"))
        assert other.code == 4, other.err
        assert words in " ".join(other.err.split())
        assert "or use another request id" in " ".join(other.err.split())
        assert Path("out/release.json").read_bytes() == before
        assert read_charges() == charges


@pytest.mark.parametrize("data", ["set", "set/*/*.parquet", "set/**/*.parquet"])
def test_folders_and_patterns_are_released(clinic, matrixdp, data):
    for i, piece in enumerate(np.array_split(np.arange(500), 2)):
        Path(f"set/year={i}").mkdir(parents=True)
        pq.write_table(clinic.table.take(piece), f"set/year={i}/part.parquet")
    done = matrixdp(*argv(data), "--workers", "2")
    assert done.code == 0, done.err
    assert json.loads(Path("out/release.json").read_text())["design"]
    assert read_charges()[0].released


def test_a_large_noisy_data_set_is_written_as_files(clinic, matrixdp, monkeypatch):
    monkeypatch.setattr(planning, "_MAX_IN_MEMORY", 100)
    done = matrixdp(*argv("clinic.parquet", "identity", "--json"))
    assert done.code == 0, done.err
    facts = json.loads(done.out)
    assert facts["shape"] == [500, 2]
    assert facts["files"][-2:] == ["_report.html", "_release.json"]
    page = Path("out/_report.html").read_text()
    for words in (
        "A single row says little",
        "average of rows",
        "The budget of “clinic” paid",
        "Small privacy loss",
        "age",
    ):
        assert words in page
    assert facts["ledger"]["left_after"] < facts["ledger"]["left_before"]
    assert pq.read_table("out", columns=["age"]).num_rows == 500
    assert [charge.released for charge in read_charges()] == [True]
    shown = matrixdp(*argv("clinic.parquet", "identity", "--force", "--epsilon", "0.5"))
    assert "Wrote 500 noisy records of 2 columns to out" in shown.out
    assert "Standard deviation" in shown.out
    assert "Guarantee" in shown.out
    assert "Report: out/_report.html" in shown.out


def test_a_large_data_set_of_a_repeated_request_is_not_charged_again(clinic, matrixdp, monkeypatch):
    monkeypatch.setattr(planning, "_MAX_IN_MEMORY", 100)
    command = argv("clinic.parquet", "identity", "--request", "week-7")
    assert matrixdp(*command).code == 0
    first = pq.read_table("out")
    again = matrixdp(*command)
    assert again.code == 0, again.err
    assert "week-7 was released before; it was not charged again" in again.err
    assert pq.read_table("out").equals(first)
    Path("out").rename("moved")
    lost = matrixdp(*command)
    assert lost.code == 2
    assert "the request 'week-7' was released before, and is not in out" in lost.err
    assert [charge.request for charge in read_charges()] == ["week-7"]


def test_a_large_data_set_that_is_complete_is_found_after_a_fault(clinic, matrixdp, monkeypatch):
    """The ledger could not be written when the folder was in place."""
    monkeypatch.setattr(planning, "_MAX_IN_MEMORY", 100)
    command = argv("clinic.parquet", "identity", "--request", "week-7")

    def fail(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(mdp.Ledger, "complete", fail)
        failed = matrixdp(*command)
    assert "the data set in out is complete: run again with the same --request" in " ".join(failed.err.split())
    assert [charge.released for charge in read_charges()] == [False]
    first = pq.read_table("out")
    again = matrixdp(*command, "--epsilon", "1")
    assert again.code == 0, again.err
    assert "week-7 was released before; it was not charged again" in again.err
    assert pq.read_table("out").equals(first)
    assert Path("out", DATASET_PAGE).is_file()
    assert [charge.released for charge in read_charges()] == [True]


@pytest.mark.parametrize("workers", ["0", "many", "-2"])
def test_invalid_workers_are_refused(clinic, matrixdp, workers):
    done = matrixdp(*argv("clinic.parquet"), "--workers", workers)
    assert done.code == 2
    assert "workers must be" in done.err
    assert read_charges() == []
    assert not Path("out").exists()


@pytest.mark.parametrize("limit", [100, 10**6])
def test_rows_ordered_by_the_name_of_a_folder_are_refused(clinic, matrixdp, monkeypatch, limit):
    monkeypatch.setattr(planning, "_MAX_IN_MEMORY", limit)
    for i, piece in enumerate(np.array_split(np.arange(500), 2)):
        Path(f"set/ill={i}").mkdir(parents=True)
        pq.write_table(clinic.table.take(piece), f"set/ill={i}/part.parquet")
    done = matrixdp(*argv("set", "identity"))
    assert done.code == 3
    assert "sort them by the key" in done.err
    assert read_charges() == []
    assert not Path("out").exists()


def test_several_files_are_one_table(clinic, matrixdp):
    for i, piece in enumerate(np.array_split(np.arange(500), 3)):
        pq.write_table(clinic.table.take(piece), f"part{i}.parquet")
    words = argv("part0.parquet")
    done = matrixdp(words[0], "part2.parquet", "part1.parquet", *words[1:])
    assert done.code == 0, done.err
    assert json.loads(Path("out/release.json").read_text())["design"]["query"]["records"] == 500
