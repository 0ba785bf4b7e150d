"""What is asked for, as JSON, Python and a command line: the Python runs, the command line parses, and both plan it."""

import json
import shlex
from contextlib import redirect_stdout
from io import StringIO

import numpy as np
import pytest
from click.testing import CliRunner

import matrixdp as mdp
from matrixdp.cli.main import cli
from matrixdp.studio.forecasts import open_forecaster
from unit.studio.test_forecasts import GRAPH, MIXED, NUMBERS, make_spec

PEOPLE = MIXED.replace("records = 5000", "records = 500") + '[person]\ncolumn = "patient"\n'
MISSING = NUMBERS + '[columns."it\'s \\"odd\\" $(x)"]\nlower = -1.5\nupper = 2\nmissing = true\n'
GUESSED = NUMBERS.replace("upper = 60", "upper = 60\nexpected_mean = 27\nexpected_std = 5")
PLAIN = [
    (NUMBERS, make_spec("moments", importance="age=4,bmi=0.5")),
    (NUMBERS, make_spec("second-moment", neighbours="add-remove", records=700)),
    (NUMBERS, make_spec("correlation", method="plain", columns="age,alt")),
    (NUMBERS, make_spec("identity", records=20)),
    (MIXED, make_spec("everything", by="ward")),
    (MIXED, make_spec("means", importance="age=3")),
    (MIXED, make_spec("table", cells="ward,smoker")),
    (MIXED, make_spec("regression", target="bmi", on="age,ward")),
    (PEOPLE, make_spec("everything")),
    (MISSING, make_spec("covariance")),
    (GRAPH, make_spec("adjacency", epsilon=0.736)),
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The folder that code and commands run in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_python(text, spec, *, released=False):
    """The names that the code to copy defines; with `released`, also those of the lines that are commented out."""
    plan = open_forecaster(text, "schema.toml").plan(spec)
    code = spec.write_python("schema.toml", "a table.csv", "clinic's", adaptive=plan.adaptive)
    names = {}
    with redirect_stdout(StringIO()):
        exec(code.replace("\n# ", "\n").replace("\n#", "\n") if released else code, names)
    return names


def run_command(text, spec):
    words = shlex.split(spec.write_command("schema.toml").replace("\\\n", " "))
    assert words[0] == "matrixdp"
    done = CliRunner().invoke(cli, [*words[1:], "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.mark.parametrize(("text", "spec"), PLAIN)
def test_python_and_command_line_make_the_same_design(text, spec, folder):
    (folder / "schema.toml").write_text(text, encoding="utf-8")
    design = open_forecaster(text, "schema.toml").predict(spec).design
    copied = run_python(text, spec)["planned"].design
    assert copied.distance == design.distance
    assert np.array_equal(copied.std, design.std)
    facts = run_command(text, spec)
    assert facts["mu"] == design.distance
    assert facts["relative_error"] == design.relative_error


@pytest.mark.parametrize("spec", [make_spec("correlation", records=300), make_spec("regression", target="age")])
def test_python_and_command_line_forecast_the_same_fit(spec, folder):
    (folder / "schema.toml").write_text(GUESSED, encoding="utf-8")
    simulated = open_forecaster(GUESSED, "schema.toml").simulate(spec)["typical"]
    order = [simulated.rows.index(name) for name in sorted(simulated.rows, key=lambda name: name == spec.target)]
    expected = simulated.std[np.ix_(order, order)]
    names = run_python(GUESSED, spec)
    found = names["forecast_fit"](names["planned"])["typical"]
    off = ~np.eye(3, dtype=bool)
    assert np.array_equal(found[off], expected[off])
    shown = np.array(run_command(GUESSED, spec)["std"]["typical"])[off]  # at least what is predicted at larger epsilons
    assert (shown >= expected[off]).all()
    assert (shown <= 1.2 * expected[off]).all()


def test_the_python_that_is_commented_out_makes_the_release(folder):
    (folder / "schema.toml").write_text(NUMBERS, encoding="utf-8")
    (folder / "a table.csv").write_text("age,bmi,alt\n" + "50,25,30\n" * 5000, encoding="utf-8")
    with mdp.Ledger.create(folder / "ledger.db") as ledger:
        ledger.register("clinic's", mdp.Privacy(2, 1e-6), neighbours="replace")
    outcome = run_python(NUMBERS, make_spec("moments"), released=True)["outcome"]
    assert outcome.charged
    with mdp.Ledger.open(folder / "ledger.db") as ledger:
        assert len(ledger.history("clinic's")) == 1


def test_allowances_are_named_where_a_ledger_is_charged():
    spec = make_spec("moments", allowance="team a")
    assert "--allowance" not in spec.write_command("schema.toml")
    assert "--allowance 'team a'" in spec.write_command("schema.toml", "table.csv", "clinic")
    assert "allowance='team a'" in spec.write_python("schema.toml", "table.csv", "clinic", adaptive=False)


def test_the_release_command_parses():
    spec = make_spec("moments", missing="midpoint")
    words = shlex.split(spec.write_command("schema.toml", "-t able.csv", "clinic").replace("\\\n", " "))
    with cli.commands["release"].make_context("release", words[2:]) as context:
        assert context.params["data"] == ("./-t able.csv",)
        assert (context.params["missing"], str(context.params["ledger"])) == ("midpoint", "ledger.db")


@pytest.mark.parametrize(
    ("options", "title"),
    [
        ({"query": "means", "by": "ward"}, "Means by ward"),
        ({"query": "table", "cells": "ward,smoker"}, "A table of counts of ward and smoker"),
        ({"query": "regression", "target": "bmi"}, "A regression of bmi"),
    ],
)
def test_a_title_says_what_is_asked(options, title):
    assert make_spec(options.pop("query"), **options).title == title
