"""Schemas, ledgers, the demo, help and completion."""

import subprocess
import sys
from pathlib import Path

import click
import pyarrow as pa
import pytest

import matrixdp as package
from matrixdp.cli.main import cli
from matrixdp.design.theorem2 import CALIBRATIONS
from matrixdp.domain.schema_file import make_template, read_schema
from matrixdp.release import options
from matrixdp.release.options import QUESTIONS


@pytest.mark.parametrize(("data", "missing"), [("clinic.csv", "type"), ("clinic.parquet", "lower")])
def test_a_new_schema_is_not_complete(clinic, matrixdp, data, missing):
    matrixdp("schema", "new", data, "-o", "new.toml")
    done = matrixdp("schema", "check", "new.toml")
    assert done.code == 2
    assert "'age'" in done.err
    assert missing in done.err


@pytest.mark.parametrize("words", [(), ("answer",), ("ledger",)])
def test_without_a_command_the_help_is_shown(matrixdp, words):
    done = matrixdp(*words)
    assert done.code == 2
    assert done.err == matrixdp(*words, "--help").out


def test_a_schema_is_not_overwritten_without_force(clinic, matrixdp):
    before = Path("schema.toml").read_text()
    assert matrixdp("schema", "new", "clinic.csv", "-o", "schema.toml").code == 2
    assert Path("schema.toml").read_text() == before
    assert matrixdp("schema", "new", "clinic.csv", "-o", "schema.toml", "--force").code == 0


def test_strange_names_survive(tmp_path):
    names = ["body mass", 'a"b', "ü.x", "1st", "x\ty"]
    path = tmp_path / "schema.toml"
    fields = {name: pa.field(name, pa.float64()) for name in names}
    path.write_text(
        make_template(fields, "x.csv").replace('lower = ""', "lower = 0").replace('upper = ""', "upper = 1")
    )
    assert read_schema(path).columns.names == tuple(names)


def test_a_checked_schema_is_shown(clinic, matrixdp):
    assert "is complete" in matrixdp("schema", "check", "table.toml", "--data", "clinic.csv").out
    facts = matrixdp("schema", "check", "table.toml", "--json").json()
    assert facts["columns"]["age"] == {"type": "number", "lower": 18.0, "upper": 90.0, "step": None, "missing": False}
    levels = {"type": "category", "levels": ["yes", "no"], "other": False, "missing": False}
    assert facts["columns"]["smoker"] == levels


def test_a_schema_is_compared_with_the_names_of_the_data(clinic, matrixdp):
    Path("other.csv").write_text("age,weight\n1,2\n")
    done = matrixdp("schema", "check", "schema.toml", "--data", "other.csv")
    assert done.code == 3
    assert "'bmi'" in done.err


def test_a_ledger_from_its_beginning(clinic, matrixdp):
    total = ("--epsilon", "1", "--delta", "1e-6")
    assert matrixdp("ledger", "new", "l.db", "--dataset", "a", *total).code == 0
    again = matrixdp("ledger", "new", "l.db", "--dataset", "a", *total)
    assert again.code == 4
    assert "exists" in again.err
    assert matrixdp("ledger", "add", "l.db", "--dataset", "b", *total, "--count", "private").code == 0
    shown = matrixdp("ledger", "show", "l.db", "--json").json()
    assert [entry["dataset"] for entry in shown["datasets"]] == ["a", "b"]
    assert shown["datasets"][1]["neighbours"] == "add-remove"
    assert "a" in matrixdp("ledger", "show", "l.db").out
    assert matrixdp("ledger", "history", "l.db").out == "Nothing has been charged.\n"
    left = matrixdp(
        "ledger", "whatif", "l.db", "--dataset", "a", "--epsilon", "0.5", "--delta", "1e-6", "--json"
    ).json()
    assert 0 < left["epsilon_left_after"] < left["epsilon_left_before"]
    verified = matrixdp("ledger", "verify", "l.db", "--json").json()
    anchor = f"{verified['entry']}:{verified['hash']}"
    assert matrixdp("ledger", "verify", "l.db", "--anchor", anchor).code == 0
    assert matrixdp("ledger", "verify", "l.db", "--anchor", f"{verified['entry']}:00").code == 4
    assert matrixdp("ledger", "verify", "l.db", "--anchor", "here").code == 2


@pytest.mark.parametrize("words", [("--epsilon", "0", "--delta", "1e-6"), ("--epsilon", "1", "--delta", "1")])
def test_a_ledger_with_an_impossible_total_is_not_made(clinic, matrixdp, words):
    assert matrixdp("ledger", "new", "l.db", "--dataset", "a", *words).code == 2
    assert not Path("l.db").exists()


def test_the_history_shows_what_was_released(clinic, matrixdp):
    from unit.cli.conftest import argv

    assert matrixdp(*argv()).code == 0
    (charge,) = matrixdp("ledger", "history", "clinic.db", "--json").json()
    assert charge["description"]["query"] == "Moments"
    assert charge["released"] is True
    assert "released" in matrixdp("ledger", "history", "clinic.db", "--dataset", "clinic").out


def test_the_demo_runs_the_whole_workflow(tmp_path, monkeypatch, matrixdp):
    monkeypatch.chdir(tmp_path)
    done = matrixdp("demo")
    assert done.code == 0, done.err
    assert matrixdp("demo").code == 2
    assert "epsilon left" in done.out
    for name in ("out/report.html", "out/matrix.svg", "out/std.csv", "clinic.db"):
        assert (tmp_path / "matrixdp-demo" / name).is_file()


def test_the_demo_leaves_other_folders_alone(tmp_path, monkeypatch, matrixdp):
    monkeypatch.chdir(tmp_path)
    Path("mine").mkdir()
    Path("mine/x").touch()
    assert matrixdp("demo", "--out", "mine").code == 2
    assert Path("mine/x").exists()


def commands(group=cli, path=()):
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


@pytest.mark.parametrize("path", [path for path, _ in commands()], ids=" ".join)
def test_every_command_has_help_with_an_example(matrixdp, path):
    done = matrixdp(*path, "--help")
    assert done.code == 0
    assert "Example:\n" in done.out
    assert f"matrixdp {' '.join(path)}" in done.out.split("Example:")[1]


@pytest.mark.parametrize("command", [command for _, command in commands()], ids=lambda command: command.name)
def test_every_option_says_what_it_is(command):
    for parameter in command.params:
        assert isinstance(parameter, click.Argument) or parameter.help


def test_names_of_options_are_those_of_the_library():
    assert options.CALIBRATIONS == CALIBRATIONS
    assert tuple(package.Neighbours) == options.NEIGHBOURS
    others = {"moments", "second-moment", "counts"}
    assert set(QUESTIONS) == {*options.ANSWERED, *options.PER_RECORD, *options.GRAPHS, *others}


def test_help_imports_nothing_slow():
    script = (
        "import sys\nfrom matrixdp.cli.main import run\nrun(['--help']); run(['release', '--help'])\n"
        "print(sorted({name.partition('.')[0] for name in sys.modules} & {'numpy', 'scipy', 'pyarrow', 'sklearn'}))"
    )
    environment = {"PYTHONPATH": str(Path(package.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed(monkeypatch, matrixdp, capsys, shell):
    monkeypatch.setenv("_MATRIXDP_COMPLETE", f"{shell}_source")
    with pytest.raises(SystemExit, match="0"):
        matrixdp()
    assert "_MATRIXDP_COMPLETE" in capsys.readouterr().out


def test_completion_answers():
    from click.shell_completion import ShellComplete

    complete = ShellComplete(cli, {}, "matrixdp", "_MATRIXDP_COMPLETE")
    assert {item.value for item in complete.get_completions(["ledger"], "")} >= {"new", "show", "history", "verify"}
    assert "covariance" in {item.value for item in complete.get_completions(["release", "--query"], "cov")}


def test_reproduce_is_forwarded(monkeypatch, matrixdp, tmp_path):
    from types import ModuleType

    seen = []
    module = ModuleType("matrixdp.paper.report")
    module.reproduce = lambda parts, **options: seen.append((parts, options)) or options["out"] / "report.html"
    monkeypatch.setitem(sys.modules, "matrixdp.paper", ModuleType("matrixdp.paper"))
    monkeypatch.setitem(sys.modules, "matrixdp.paper.report", module)
    asked = ("table1", "--trials", "3", "--seed", "7", "--out", tmp_path, "--plugin", "mine")
    monkeypatch.chdir(tmp_path)
    found = matrixdp("reproduce", *asked)
    assert found.code == 0
    assert found.out == f"Report: {tmp_path.resolve() / 'report.html'}\n"
    assert seen == [(["table1"], {"trials": 3, "seed": 7, "out": tmp_path, "plugins": ["mine"]})]


@pytest.mark.parametrize("trials", ["1", "0", "-3"])
def test_reproduce_refuses_less_than_two_trials_as_its_help_says(matrixdp, trials):
    found = matrixdp("reproduce", "--trials", trials)
    assert found.code == 2
    assert "--trials" in found.err
    assert f"{trials} is not in the range x>=2" in found.err
    assert "at least 2" in matrixdp("reproduce", "--help").out


def test_bench_runs_the_repository_s_table(monkeypatch, matrixdp, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "__init__.py").touch()
    (tmp_path / "benchmarks" / "__main__.py").write_text("import sys; sys.exit(0 if sys.argv[1:] == ['cli'] else 7)")
    assert matrixdp("bench", "cli").code == 0
    assert matrixdp("bench", "nothing").code == 7


def test_bench_says_where_the_benchmarks_are(monkeypatch, matrixdp, tmp_path):
    from matrixdp.cli import extras

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(extras, "_CLONE", [])
    done = matrixdp("bench")
    assert done.code == 2
    assert "repository" in done.err


def test_version(matrixdp):
    assert package.__version__ in matrixdp("--version").out


def test_a_decimal_comma_is_refused_with_the_number_to_write(clinic, matrixdp):
    done = matrixdp("design", "--schema", "schema.toml", "--query", "means", "--epsilon", "0,5")
    assert done.code == 2
    assert "Write a decimal point: 0.5" in done.err
