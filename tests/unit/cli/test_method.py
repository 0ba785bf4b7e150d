"""``release`` and ``design`` choose a method, say which and why, and word the guarantee by its strength."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.answers.estimate import CUT_NOTE
from matrixdp.cli.exits import ExitCode

SECRET = "77.7654321"
BUDGET = ("--epsilon", "1", "--delta", "1e-6")
CHARGE = ("--ledger", "clinic.db", "--dataset", "clinic", "--out", "out")


def release(query, *more, schema="schema.toml", budget=BUDGET):
    return ("release", "clinic.csv", "--schema", schema, "--query", query, *budget, *CHARGE, *more)


def design(query, *more, schema="schema.toml", budget=BUDGET):
    return ("design", "--schema", schema, "--query", query, "--records", 500, *budget, *more)


def charges():
    with mdp.Ledger.open("clinic.db") as ledger:
        return ledger.history("clinic")


def read_csv(name):
    return list(csv.DictReader(Path("out", name).read_text().splitlines()))


@pytest.mark.parametrize("query", ["covariance", "correlation", "components"])
def test_numbers_are_fitted_adaptively_and_the_output_says_so(clinic, matrixdp, query):
    done = matrixdp(*release(query))
    assert done.code == 0, done.err
    assert "Method: an adaptive fit. With 2 features" in done.out
    assert "small privacy loss" in done.out
    assert "a factor of 2.72, except with probability 1e-06" in done.out
    assert "hardly" not in done.out
    found = mdp.from_json(Path("out/release.json").read_text())
    assert (found.method, found.aim) == ("adaptive", query)
    page = Path("out/report.html").read_text()
    assert "adaptive fit" in page
    assert "Small privacy loss: someone who sees this release learns little" in page
    assert SECRET not in done.out + done.err + page + Path("out/release.json").read_text()
    (charge,) = charges()
    assert charge.event.mu == mdp.Privacy(1, 1e-6).mu >= found.mu


def test_a_regression_has_a_target_and_error_bars(clinic, matrixdp):
    enough = ("--epsilon", "3.5", "--delta", "1e-6")  # for an error bar of the slope
    done = matrixdp(*release("regression", "--target", "bmi", "--on", "age", "--json", budget=enough))
    assert done.code == 0, done.err
    facts = done.json()
    assert facts["method"] == "adaptive"
    terms, share = facts["answers"]
    assert terms["rows"] == ["intercept", "age"]
    assert 0 <= share["value"][0][0] <= 1
    lines = {line["row"]: line for line in read_csv("regression.csv") if line["column"] == "coefficient"}
    found = mdp.from_json(Path("out/release.json").read_text()).regression("bmi", ["age"])
    assert float(lines["age"]["value"]) == found.coefficients[1]
    assert float(lines["age"]["std"]) == found.noise_std[1] > 0
    assert read_csv("regression.csv")[-1]["std"] == ""


@pytest.mark.parametrize(
    ("query", "more", "words"),
    [
        ("correlation", ["--columns", "age,bmi", "--by", "smoker"], "Groups (by)"),
        ("components", [], "categories"),
        ("regression", ["--target", "bmi"], "categories"),
        ("means", [], "categories"),
        ("correlation", ["--columns", "age,bmi", "--importance", "bmi=2"], "importance shapes"),
        ("correlation", ["--columns", "age,bmi", "--missing", "midpoint"], "middle of their bounds"),
    ],
)
def test_what_only_a_plain_release_can_do_is_done_by_one(clinic, matrixdp, query, more, words):
    done = matrixdp(*release(query, *more, schema="table.toml"))
    assert done.code == 0, done.err
    assert "Method: a plain release." in done.out
    assert words in done.out
    assert words in Path("out/report.html").read_text()
    refused = matrixdp(*release(query, *more, "--method", "adaptive", "--force", schema="table.toml"))
    assert refused.code == ExitCode.USAGE
    assert words in refused.err
    assert len(charges()) == 1


def test_rows_of_a_person_are_protected_together(clinic, matrixdp):
    done = matrixdp(*design("correlation", "--person", "patient"))
    assert done.code == 0, done.err
    assert "Method: an adaptive fit." in done.out
    assert "500 people" in done.out
    assert "protects one person with all their rows" in done.out
    words = design("correlation", "--person", "patient", "--json", budget=("--epsilon", "4", "--delta", "1e-6"))
    rows, once = (matrixdp(*words, *more).json() for more in (("--rows-per-person", 3), ()))
    assert rows["unit"] == once["unit"] == "person:patient"
    rows, once = (np.array(one["answers"][0]["std"]["typical"]) for one in (rows, once))
    assert rows[0, 1] > 1.25 * once[0, 1]  # three times the noise


@pytest.mark.parametrize("query", ["covariance", "components", "regression"])
def test_a_plain_release_can_be_asked_for(clinic, matrixdp, query):
    target = ["--target", "bmi"] if query == "regression" else []
    done = matrixdp(*release(query, *target, "--method", "plain"))
    assert done.code == 0, done.err
    assert "Method: a plain release. It was requested." in done.out
    assert isinstance(mdp.from_json(Path("out/release.json").read_text()), mdp.Release)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (release("regression"), "--target must be given"),
        (release("regression", "--target", "weight"), "no column 'weight'"),
        (release("regression", "--target", "smoker", schema="table.toml"), "must be a column of numbers"),
        (release("regression", "--target", "bmi", "--on", "bmi"), "--on"),
        (release("regression", "--target", "bmi", "--on", "weight"), "no column 'weight'"),
        (release("regression", "--target", "bmi", "--on", "age", "--columns", "age"), "--columns must be left out"),
        (release("covariance", "--target", "bmi"), "--target must be left out"),
        (release("moments", "--method", "plain"), "--method must be left out"),
        (design("correlation", "--plot", "a.svg"), "--method plain"),
        (release("components", "--columns", "age"), "at least two columns"),
    ],
)
def test_a_mistake_is_named_before_anything_is_charged(clinic, matrixdp, words, message):
    done = matrixdp(*words)
    assert done.code == ExitCode.USAGE, done.err
    assert message in done.err
    assert not charges()
    assert not Path("out").exists()


def test_a_request_is_charged_once(clinic, matrixdp):
    first = matrixdp(*release("correlation", "--request", "week 7"))
    text = Path("out/release.json").read_text()
    again = matrixdp(*release("correlation", "--request", "week 7", "--force"))
    assert first.code == again.code == 0
    assert "not charged again" in again.err
    assert Path("out/release.json").read_text() == text
    assert len(charges()) == 1


def test_broken_data_cost_nothing(clinic, matrixdp):
    lines = Path("clinic.csv").read_text().splitlines()
    Path("clinic.csv").write_text("\n".join([*lines, "x,y,yes,well"]) + "\n")
    done = matrixdp(*release("correlation"))
    assert done.code == ExitCode.DATA
    assert not charges()
    assert not Path("out").exists()


@pytest.mark.parametrize("command", [release, design])
def test_a_delta_above_one_over_the_number_of_records_warns(clinic, matrixdp, command):
    done = matrixdp(*command("correlation", budget=("--epsilon", "1", "--delta", "0.01")))
    assert "warning: delta 0.01 is above 1/500" in done.err


def test_a_large_epsilon_is_called_what_it_is(clinic, matrixdp):
    with mdp.Ledger.open("clinic.db") as ledger:
        ledger.register("large", mdp.Privacy(30, 1e-6), neighbours="replace")
    done = matrixdp(*release("correlation", "--dataset", "large", budget=("--epsilon", "20", "--delta", "1e-6")))
    assert done.code == 0, done.err
    assert "large privacy loss, weak protection" in done.out
    page = Path("out/report.html").read_text()
    assert "may find out whether" in page
    assert "an even chance becomes nearly certain" in page
    assert "hardly" not in page


def test_a_correlation_that_noise_hides_may_be_anything_possible(clinic, matrixdp):
    words = release("correlation", "--method", "plain", budget=("--epsilon", "0.02", "--delta", "1e-9"))
    done = matrixdp(*words)
    assert done.code == 0, done.err
    assert done.out.count("0 [-1, 1]") == 2
    assert CUT_NOTE in done.out
    assert "are the ends of a 95% interval" in Path("out/report.html").read_text()
    value, std = (
        [row[1:] for row in csv.reader(Path(f"out/{name}.csv").read_text().splitlines())][1:]
        for name in ("matrix", "std")
    )
    assert value == [["1.0", "0.0"], ["0.0", "1.0"]]
    assert std == [["0.0", ""], ["", "0.0"]]
    assert "nan" not in Path("out/matrix.csv").read_text() + Path("out/std.csv").read_text()


def test_a_design_says_the_method_and_predicts_errors(clinic, matrixdp):
    done = matrixdp(*design("correlation", "--ledger", "clinic.db", "--dataset", "clinic"))
    assert done.code == 0, done.err
    for words in ("Method: an adaptive fit.", "hostile", "would be left after a release", "small privacy loss"):
        assert words in done.out
    facts = matrixdp(*design("correlation", "--json")).json()
    assert facts["method"] == "adaptive"
    friendly, typical, hostile = (
        np.array(facts["answers"][0]["std"][kind]) for kind in ("friendly", "typical", "hostile")
    )
    assert friendly.shape == (2, 2)
    assert 0 < typical[0, 1] <= hostile[0, 1]
    assert not charges()


def test_guesses_in_the_schema_change_the_forecast(clinic, matrixdp):
    usual = matrixdp(*design("covariance", "--json")).json()["answers"][0]["std"]["typical"]
    text = Path("schema.toml").read_text().replace("upper = 45", "upper = 45\nexpected_std = 0.5")
    Path("schema.toml").write_text("expected_correlation = 0.1\n" + text)
    narrow = matrixdp(*design("covariance", "--json")).json()["answers"][0]["std"]["typical"]
    assert narrow[1][1] < usual[1][1] / 2


@pytest.mark.parametrize(("query", "more"), [("components", []), ("regression", ["--target", "bmi"]), ("means", [])])
def test_a_design_predicts_every_query_by_either_method(clinic, matrixdp, query, more):
    for method in ("adaptive", "plain"):
        done = matrixdp(*design(query, *more, "--method", method))
        assert done.code == 0, done.err
        assert "It was requested." in done.out
        facts = json.loads(matrixdp(*design(query, *more, "--method", method, "--json")).out)
        assert facts["method"] == method
