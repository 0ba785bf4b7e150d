"""What is asked for, as JSON, Python and a command line: the Python asks for it, and the command line plans it."""

import json
import shlex
from typing import ClassVar

import numpy as np
import pytest
from click.testing import CliRunner

import matrixdp as mdp
from matrixdp.cli.main import cli
from matrixdp.studio.forecasts import open_forecaster
from matrixdp.studio.requests import ReleaseSpec
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


class Recorded:
    """In place of a client: notes what it is called with."""

    calls: ClassVar = {}

    def __init__(self, *arguments):
        self.calls["Studio"] = arguments

    def __getattr__(self, name):
        return lambda *arguments, **options: self.calls.update({name: (arguments, options)}) or {"id": "new"}


def run_command(text, spec):
    """The facts of ``matrixdp design`` with the options of the release that the page shows."""
    words = shlex.split(spec.write_command("schema.toml", "table.csv", "clinic").replace("\\\n", " "))
    assert words[:3] == ["matrixdp", "release", "table.csv"]
    pairs = dict(zip(words[3::2], words[4::2], strict=True))
    kept = [word for name in pairs if name not in ("--ledger", "--dataset", "--out") for word in (name, pairs[name])]
    done = CliRunner().invoke(cli, ["design", *kept, "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.mark.parametrize(("text", "spec"), PLAIN)
def test_python_and_command_line_ask_for_the_same_design(text, spec, folder, monkeypatch):
    (folder / "schema.toml").write_text(text, encoding="utf-8")
    design = open_forecaster(text, "schema.toml").predict(spec).design
    monkeypatch.setattr(mdp, "Studio", Recorded)
    exec(spec.write_python("https://studio.example.org", "clinic's", "a table.csv"), {"token": "t"})
    for name, more in (("forecast", {}), ("ask", {"purpose": "..."})):
        arguments, options = Recorded.calls[name]
        assert arguments == ("clinic's", "a table.csv")
        assert ReleaseSpec.from_mapping({key: options[key] for key in options.keys() - more.keys()}) == spec
    assert Recorded.calls["Studio"] == ("https://studio.example.org", "t")
    facts = run_command(text, spec)
    assert facts["mu"] == design.distance
    assert facts["relative_error"] == design.relative_error


@pytest.mark.parametrize("spec", [make_spec("correlation", records=300), make_spec("regression", target="age")])
def test_the_command_line_forecasts_the_same_fit(spec, folder):
    (folder / "schema.toml").write_text(GUESSED, encoding="utf-8")
    simulated = open_forecaster(GUESSED, "schema.toml").simulate(spec)["typical"]
    order = [simulated.rows.index(name) for name in sorted(simulated.rows, key=lambda name: name == spec.target)]
    expected = simulated.std[np.ix_(order, order)]
    off = ~np.eye(3, dtype=bool)
    shown = np.array(run_command(GUESSED, spec)["answers"][0]["std"]["typical"])[off]
    assert (shown >= expected[off]).all()  # at least what is predicted at larger epsilons
    assert (shown <= 1.2 * expected[off]).all()


def test_allowances_are_named_where_a_ledger_is_charged():
    spec = make_spec("moments", allowance="team a")
    assert "--allowance 'team a'" in spec.write_command("schema.toml", "table.csv", "clinic")
    assert "allowance='team a'" in spec.write_python("https://studio.example.org", "clinic", "table.csv")


def test_the_release_command_parses(folder):
    (folder / "schema.toml").write_text(GUESSED, encoding="utf-8")
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
