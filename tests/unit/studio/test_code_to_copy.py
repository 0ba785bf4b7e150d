"""Code to copy: the Python runs, the command line parses, and both make the design that the page predicts."""

import json
import shlex
from contextlib import redirect_stdout
from io import StringIO

import numpy as np
import pytest
from click.testing import CliRunner

from matrixdp.cli.main import cli
from matrixdp.studio.code_to_copy import write_command, write_python, write_release_command
from matrixdp.studio.forecasts import Simulator, open_forecaster
from unit.studio.test_forecasts import GRAPH, MIXED, NUMBERS, make_spec

PEOPLE = MIXED.replace("records = 5000", "records = 500") + '[person]\ncolumn = "patient"\n'
MISSING = NUMBERS + '[columns."it\'s \\"odd\\" $(x)"]\nlower = -1.5\nupper = 2\nmissing = true\n'
GUESSED = NUMBERS.replace("upper = 60", "upper = 60\nexpected_mean = 27\nexpected_std = 5")
PLAIN = [
    (NUMBERS, make_spec("moments", importance="age=4,bmi=0.5")),
    (NUMBERS, make_spec("second-moment", neighbours="add-remove", records=700)),
    (NUMBERS, make_spec("correlation", method="plain", columns="age,alt")),
    (MIXED, make_spec("everything", by="ward")),
    (MIXED, make_spec("means", importance="age=3")),
    (MIXED, make_spec("table", cells="ward,smoker")),
    (MIXED, make_spec("regression", target="bmi", on="age,ward")),
    (PEOPLE, make_spec("everything")),
    (MISSING, make_spec("covariance")),
    (GRAPH, make_spec("adjacency", epsilon=0.736)),
]


def run_python(text, spec):
    forecaster = open_forecaster(text, "schema.toml")
    plan = forecaster.predict(spec).plan
    code = write_python(spec, forecaster.schema, plan, table="a table.csv", dataset="clinic's")
    names = {}
    with redirect_stdout(StringIO()):
        exec(code, names)
    return names


def run_command(text, spec, folder):
    (folder / "schema.toml").write_text(text, encoding="utf-8")
    command = write_command(spec, open_forecaster(text, "schema.toml").schema)
    words = shlex.split(command.replace("\\\n", " "))
    assert words[0] == "matrixdp"
    done = CliRunner().invoke(cli, [*words[1:], "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.mark.parametrize(("text", "spec"), PLAIN)
def test_python_and_command_line_make_the_same_design(text, spec, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    design = open_forecaster(text, "schema.toml").predict(spec).design
    copied = run_python(text, spec)["design"]
    assert copied.distance == design.distance
    assert np.array_equal(copied.std, design.std)
    facts = run_command(text, spec, tmp_path)
    assert facts["mu"] == design.distance
    assert facts["relative_error"] == design.relative_error


@pytest.mark.parametrize("spec", [make_spec("correlation", records=300), make_spec("regression", target="age")])
def test_python_and_command_line_forecast_the_same_fit(spec, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    simulated = Simulator(open_forecaster(GUESSED, "schema.toml")).simulate(spec).typical
    order = [simulated.rows.index(name) for name in sorted(simulated.rows, key=lambda name: name == spec.target)]
    expected = simulated.std[np.ix_(order, order)]
    found = run_python(GUESSED, spec)["found"].typical.correlation_std
    off = ~np.eye(3, dtype=bool)
    assert np.array_equal(found[off], expected[off])
    facts = run_command(GUESSED, spec, tmp_path)
    assert np.array_equal(np.array(facts["std"]["typical"])[off], expected[off])


def test_allowances_are_named_where_a_ledger_is_charged():
    schema = open_forecaster(NUMBERS, "schema.toml").schema
    spec = make_spec("moments", allowance="team a")
    assert "--allowance" not in write_command(spec, schema)
    assert "--allowance 'team a'" in write_release_command(spec, schema, "table.csv", "clinic", "x.db")


def test_the_release_command_parses(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    schema = open_forecaster(NUMBERS, "schema.toml").schema
    command = write_release_command(make_spec("moments", missing="midpoint"), schema, "-t able.csv", "clinic", "l.db")
    words = shlex.split(command.replace("\\\n", " "))
    with cli.commands["release"].make_context("release", words[2:]) as context:
        assert context.params["data"] == ("./-t able.csv",)
        assert (context.params["missing"], str(context.params["ledger"])) == ("midpoint", "l.db")


def test_queries_without_a_short_form_have_no_python():
    forecaster = open_forecaster(NUMBERS, "schema.toml")
    for spec in (make_spec("identity", records=20), make_spec("moments", directions="learned")):
        plan = forecaster.predict(spec).plan
        assert write_python(spec, forecaster.schema, plan, table="t", dataset="d") is None
