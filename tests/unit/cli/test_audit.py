"""``matrixdp audit`` on designs, schemas and Python objects."""

import json
from pathlib import Path

import numpy as np

MODULE = """\
import numpy as np
import matrixdp as mdp
from matrixdp.estimators import PrivateRidge

rng = np.random.default_rng(0)
design = mdp.make_design(mdp.Adjacency(3), mdp.Privacy(1, 1e-6))
mean = mdp.Query((1, 1), mdp.sensitivity.FrobeniusBall(0.25), 5.0, lambda x: np.clip(x, 0, 1).mean().reshape(1, 1))
wrong = mdp.Query((1, 1), mdp.sensitivity.FrobeniusBall(0.1), 5.0, lambda x: np.clip(x, 0, 1).mean().reshape(1, 1))
ridge = PrivateRidge(bounds=mdp.Bounds([0, 0], [1, 9]), target_bounds=(0, 1), neighbours="add-remove", records=30)
text = "text"


def record(rng):
    return rng.integers(0, 2, 1)


def noisy(x):
    return x.sum() + rng.normal()
"""
BUDGET = ("--epsilon", 1, "--delta", "1e-6")


def study():
    Path("study.py").write_text(MODULE)


def test_a_design(clinic, matrixdp):
    done = matrixdp("audit", "--schema", "schema.toml", "--query", "covariance", *BUDGET, "--starts", 2, "--out", "a")
    assert done.code == 0, done.err
    assert "holds  covariance" in done.out
    assert "Report: a/report.html" in done.out
    results = json.loads(Path("a/audit.json").read_text())["results"]
    assert 0.5 < results[0]["ratio"] <= 1 + 1e-12
    page = Path("a/report.html").read_text()
    assert "Content-Security-Policy" in page
    assert "no proof" in page


def test_all_designs_of_a_schema(clinic, matrixdp):
    done = matrixdp("audit", "--schema", "table.toml", *BUDGET, "--starts", 1, "--json")
    assert done.code == 0, done.err
    subjects = [result["subject"].split()[0] for result in done.json()["results"]]
    assert subjects == ["everything", "moments", "second-moment", "identity", "gram", "counts"]
    Path("graph.toml").write_text("[graph]\nnodes = 4\n")
    done = matrixdp("audit", "--schema", "graph.toml", *BUDGET, "--starts", 1, "--json")
    assert [result["subject"] for result in done.json()["results"]] == [
        "adjacency (graph.toml)",
        "laplacian (graph.toml)",
    ]


def test_designs_and_queries_of_ones_own(tmp_path, monkeypatch, matrixdp):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    study()
    assert matrixdp("audit", "study:design").code == 0
    assert matrixdp("audit", "study:mean", *BUDGET, "--generate", "study:record").code == 0
    done = matrixdp("audit", "study:wrong", *BUDGET, "--generate", "study:record", "--out", "out")
    assert done.code == 1
    assert "BROKEN" in done.out
    assert 'class="broken"' in Path("out/report.html").read_text()
    assert matrixdp("audit", "study:mean", *BUDGET, "--generate", "study:record", "--records", 2).code == 1
    done = matrixdp("audit", "study:design", "--out", "out")
    assert done.code == 2
    assert "--force" in done.err
    Path("schema.toml").write_text("[columns.x]\nlower = 0\nupper = 1\n")
    assert matrixdp("audit", "study:wrong", *BUDGET, "--schema", "schema.toml").code == 1


def test_estimators_and_functions(tmp_path, monkeypatch, matrixdp):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    study()
    assert "3 fits replayed" in matrixdp("audit", "study:ridge", "--replays", 3).out
    assert matrixdp("audit", "matrixdp.estimators:PrivateScaler", *BUDGET, "--replays", 2).code == 0
    for name, value in (("a.npy", 0.0), ("b.npy", 9.0)):
        np.save(name, np.full((1, 1), value))
    files = ("--first", "a.npy", "--second", "b.npy", "--trials", 200)
    done = matrixdp("audit", "study:noisy", *BUDGET, *files, "--out", "measured")
    assert done.code == 1
    assert Path("measured/tradeoff.svg").read_text().startswith("<svg")
    assert matrixdp("audit", "study:noisy", "--epsilon", 80, "--delta", "1e-6", *files).code == 0


def test_mistakes_are_explained(clinic, monkeypatch, matrixdp):
    monkeypatch.syspath_prepend(clinic.path)
    study()
    for words, message in [
        ((), "--schema must be given"),
        (("--schema", "schema.toml"), "--epsilon and --delta must be given"),
        (("study",), "must be module:name"),
        (("study:nothing",), "cannot be imported"),
        (("nowhere:nothing",), "cannot be imported"),
        (("study:text",), "must be a design, a query, an estimator or a function"),
        (("study:noisy", *BUDGET), "--first and --second"),
        (("study:mean", *BUDGET), "bounds or generate must be given"),
    ]:
        done = matrixdp("audit", *words)
        assert done.code == 2
        assert message in done.err
