"""docs/cli.md is true: it has every command and option, and what it shows can be run."""

import re
import shlex
from pathlib import Path

import click
import numpy as np
import pytest

from matrixdp.cli.exits import ExitCode
from matrixdp.cli.main import cli, run
from matrixdp.cli.options import QUERIES

DOCS = Path(__file__).parents[2] / "docs" / "cli.md"
TEXT = DOCS.read_text(encoding="utf-8")


def commands(group=cli, path="matrixdp"):
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


COMMANDS = dict(commands())


def section(path):
    found = re.search(rf"^### {re.escape(path)}\n(.*?)(?=^##|\Z)", TEXT, re.DOTALL | re.MULTILINE)
    assert found, f"docs/cli.md has no section '### {path}'"
    return found[1]


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_and_option_is_documented(path):
    text = section(path)
    if path in ("matrixdp release", "matrixdp audit"):  # say that they take these of design
        text += section("matrixdp design")
    for parameter in COMMANDS[path].params:
        for name in parameter.opts if isinstance(parameter, click.Option) else ():
            assert re.search(rf"`[^`]*(?<![\w-]){re.escape(name)}(?![\w-])", text), f"{path} {name} is not documented"


@pytest.mark.parametrize("path", COMMANDS)
def test_no_option_is_documented_that_is_not_there(path):
    parameters = COMMANDS[path].params
    known = {name for parameter in parameters for name in (*parameter.opts, *parameter.secondary_opts)}
    known |= {"--debug", "--help"}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", section(path)))
    assert named <= known, f"{path} has no {named - known}"


def test_no_command_is_documented_that_is_not_there():
    assert set(re.findall(r"^### (.*)$", TEXT, re.MULTILINE)) == set(COMMANDS)


def test_queries_and_exit_codes_are_documented():
    for query in QUERIES:
        assert f"`{query}`" in TEXT
    for code in ExitCode:
        assert f"| {int(code)} |" in TEXT


def test_what_is_shown_can_be_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [
        f"{rng.uniform(20, 80):.1f},{rng.normal(26, 4):.1f},{rng.normal(120, 15):.0f},"
        f"{rng.choice(['north', 'south', 'x'])},{rng.choice(['yes', 'no'])},{rng.choice(['ill', 'well'])}"
        for _ in range(2000)
    ]
    Path("clinic.csv").write_text("\n".join(["age,bmi,pressure,ward,smoker,outcome", *rows]) + "\n")
    visits = [f"{i % 700},{row}" for i, row in enumerate(rows)]
    Path("visits.csv").write_text("\n".join(["patient_id,age,bmi,pressure,ward,smoker,outcome", *visits]) + "\n")
    Path("edges.csv").write_text("source,target\nann,bob\nbob,cem\n")
    ran = 0
    for language, block in re.findall(r"^```(\w+)\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE):
        if language == "toml":
            Path(block.splitlines()[0].removeprefix("# ")).write_text(block)
            continue
        assert language == "sh"
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line)
            if words[0] == "mv":
                Path(words[1]).rename(words[2])
                continue
            assert words[0] == "matrixdp"
            assert run(words[1:]) == 0, f"{line}\n{capsys.readouterr().err}"
            ran += 1
    assert ran >= 10
    assert Path("out/report.html").is_file()
