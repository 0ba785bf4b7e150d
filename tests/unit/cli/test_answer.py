"""Answers read off a stored release through the real command: they cost nothing and agree with the library."""

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from unit.cli.conftest import BUDGET, read_charges
from unit.cli.test_table_release import SCHEMA

USAGE = 2


@pytest.fixture
def released(clinic, matrixdp):
    """A release of everything by ward in out/; beside it one of moments without a table."""
    rng = np.random.default_rng(0)
    count = 4000
    age = rng.uniform(30, 70, count)
    smoker = rng.random(count) < 0.4
    table = {
        "age": pa.array(age, mask=rng.random(count) < 0.2),
        "bmi": 26 + 0.2 * (age - 50) + 2 * smoker + rng.normal(0, 1, count),
        "ward": rng.choice(["north", "south"], count),
        "smoker": smoker,
        "outcome": np.where(rng.random(count) < 0.2 + 0.5 * smoker, "ill", "well"),
    }
    pq.write_table(pa.table(table), "hospital.parquet")
    Path("hospital.toml").write_text(SCHEMA)
    options = ("--epsilon", "4", "--delta", "1e-6", "--ledger", "clinic.db", "--dataset", "clinic", "--out", "out")
    done = matrixdp(
        "release",
        "hospital.parquet",
        "--schema",
        "hospital.toml",
        "--query",
        "everything",
        "--by",
        "ward",
        *options,
        "--shapes",
        "0.1",
    )
    assert done.code == 0, done.err
    return mdp.Release.from_json(Path("out/release.json").read_text())


CASES = {
    "means": (("means",), lambda r: r.means()),
    "means by level": (("means", "--by", "smoker"), lambda r: r.means(by="smoker")),
    "means by group": (("means", "--by", "ward"), lambda r: r.means(by="ward")),
    "means by level, shrunk": (("means", "--by", "smoker", "--shrunk"), lambda r: r.means(by="smoker", shrunk=True)),
    "correlation, shrunk": (("correlation", "--shrunk"), lambda r: r.correlation(shrunk=True)),
    "means of a group": (("means", "--group", "ward=north"), lambda r: r.means(group="north")),
    "correlation": (("correlation", "--group", "ward=south"), lambda r: r.correlation("south")),
    "covariance": (("covariance",), lambda r: r.covariance()),
    "components": (("components", "-k", "1"), lambda r: r.components(1)),
    "quantiles": (("quantiles", "--columns", "bmi", "-q", "0.1,0.5"), lambda r: r.quantiles("bmi", [0.1, 0.5])),
    "histogram": (("histogram", "age"), lambda r: r.histograms()["age"].to_estimate()),
}


@pytest.mark.parametrize("case", CASES)
def test_answers_are_those_of_the_library_and_cost_nothing(released, matrixdp, case):
    words, expect = CASES[case]
    charges = read_charges()
    done = matrixdp("answer", words[0], "out", *words[1:], "--json", "--csv", "answer.csv")
    assert done.code == 0, done.err
    found, expected = json.loads(done.out), expect(released)
    assert found["rows"] == list(expected.rows)
    np.testing.assert_array_equal(np.array(found["value"], float), expected.value)
    np.testing.assert_array_equal(np.array(found["std"], float), expected.std)
    assert any("costs no privacy" in note for note in found["notes"])
    with open("answer.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == expected.value.size
    assert all((line["value"] == "") == bool(line["note"]) for line in lines)
    assert read_charges() == charges


def test_privacy_and_sampling_are_told_apart(released, matrixdp):
    done = matrixdp("answer", "sampling", "out", "--of", "means", "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["columns"] == ["value", "privacy std", "sampling std", "both"]
    _, privacy, sampling, both = np.array(found["value"], float).T
    np.testing.assert_array_equal(privacy, released.means().std[:, 0])
    np.testing.assert_allclose(both, np.hypot(privacy, sampling))
    assert matrixdp("answer", "sampling", "out", "--of", "correlation").code == 0


def test_a_table_of_counts(released, matrixdp):
    done = matrixdp("answer", "table", "out/release.json", "smoker", "outcome", "--json")
    found, expected = json.loads(done.out), released.table("smoker", "outcome")
    np.testing.assert_allclose(np.array(found["value"], float), expected.value * 4000)
    assert found["value"][-1][-1] == pytest.approx(4000)
    grouped = json.loads(matrixdp("answer", "table", "out", "ward", "outcome", "--json").out)
    assert grouped["rows"] == ["north", "south", "east", "all"]
    np.testing.assert_allclose(grouped["value"][-1], found["value"][-1])


def test_a_regression_for_people(released, matrixdp):
    done = matrixdp("answer", "regression", "out", "--target", "bmi", "--on", "age,smoker")
    assert done.code == 0, done.err
    assert "Coefficients of smoker are differences from its level no." in done.out
    for text in ("Regression of bmi", "intercept", "age", "smoker=yes", "95% low", "R^2", "costs no privacy"):
        assert text in done.out
    found = json.loads(matrixdp("answer", "regression", "out", "--target", "bmi", "--on", "age", "--json").out)
    assert found["target"] == "bmi"
    assert found["value"][1][0] == released.regression("bmi", ["age"]).coefficients[1]


def test_a_discriminant_analysis_for_people(released, matrixdp):
    done = matrixdp("answer", "discriminant", "out", "--target", "outcome", "--on", "smoker")
    assert done.code == 0, done.err
    assert "largest score" in done.out
    found = json.loads(matrixdp("answer", "discriminant", "out", "--target", "outcome", "--json").out)
    expected = released.discriminant("outcome")
    scores = np.array(found["value"], float)
    np.testing.assert_allclose(np.diff(scores[1:], axis=1), np.diff(expected.terms.value[1:], axis=1))
    np.testing.assert_allclose(scores.sum(axis=1), 0.0, atol=1e-9)
    assert (np.array(found["std"], float) > 0).all()


@pytest.mark.parametrize("query", ["moments", "correlation"])
def test_releases_of_numbers_answer_what_follows_from_them(clinic, matrixdp, query):
    words = ("release", "clinic.csv", "--schema", "schema.toml", "--query", query, "--out", query)
    assert matrixdp(*words, *BUDGET, "--no-ledger").code == 0
    release = mdp.from_json(Path(query, "release.json").read_text())
    found = json.loads(matrixdp("answer", "correlation", query, "--json").out)
    expected = release.correlation()
    np.testing.assert_array_equal(np.array(found["value"], float), expected.value)
    assert matrixdp("answer", "means", query).code == 0
    shrunk = matrixdp("answer", "correlation", query, "--shrunk")
    assert shrunk.code == (0 if query == "moments" else USAGE), shrunk.err
    regression = matrixdp("answer", "regression", query, "--target", "bmi")
    assert regression.code == (0 if query == "correlation" else USAGE)
    for words in (("correlation", query, "--group", "ward=north"), ("table", query, "a", "b")):
        refused = matrixdp("answer", *words)
        assert refused.code == USAGE
        assert "group (--group) must be left out" in refused.err or "moments of a table" in refused.err


def test_components_that_noise_mixes_are_named(released, matrixdp):
    done = matrixdp("answer", "components", "out")
    assert done.code == 0, done.err
    assert "sign of a component is arbitrary" in done.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("means", "nothing"), "must be a release.json"),
        (("means", "hospital.parquet"), "is not text"),
        (("means", "hospital.toml"), "hospital.toml: a release must be JSON"),
        (("means", "out", "--by", "bmi"), "'bmi' must be a category"),
        (("means", "out", "--group", "ward"), "--group must be NAME=LEVEL"),
        (("means", "out", "--group", "ward=west"), "north, south, east"),
        (("table", "out", "smoker", "bmi"), "'bmi' must be a category"),
        (("regression", "out", "--target", "ward"), "'ward' groups the release"),
        (("means", "out", "--by", "ward", "--group", "ward=north"), "all levels of 'ward'"),
        (("regression", "out", "--target", "bmi", "--on", "nothing"), "a column must be one of"),
        (("components", "out", "-k", "9"), "count must be"),
        (("means", "out", "--csv", "out"), "--csv"),
        (("means", "noisy"), "no further answers follow from this release"),
    ],
)
def test_mistakes_are_named(released, matrixdp, words, message):
    if "noisy" in words:
        noisy = ("release", "hospital.parquet", "--schema", "hospital.toml", "--query", "identity", "--out", "noisy")
        assert matrixdp(*noisy, "--columns", "bmi", *BUDGET, "--no-ledger").code == 0
    done = matrixdp("answer", *words)
    assert done.code == USAGE
    assert message in done.err.replace("\n", " ")
    assert "Traceback" not in done.err
