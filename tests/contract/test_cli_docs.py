"""docs/cli.md is true: it names every command and no option that is not there, and what it shows can be run."""

import re
import shlex
from pathlib import Path

import click
import numpy as np
import pytest

from matrixdp.cli.exits import ExitCode
from matrixdp.cli.main import cli, run
from matrixdp.release.options import QUESTIONS

DOCS = Path(__file__).parents[2] / "docs" / "cli.md"
TEXT = DOCS.read_text(encoding="utf-8")


def commands(group=cli, path="matrixdp"):
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


COMMANDS = dict(commands())


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_and_option_has_help(path):
    """The reference of commands is what ``--help`` prints."""
    command = COMMANDS[path]
    assert (command.help or "").strip(), path
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            assert parameter.help, f"{path} {parameter.opts}"


def test_every_command_is_in_the_guide():
    rows = [line for line in TEXT.splitlines() if line.startswith("| `matrixdp")]
    for path in COMMANDS:
        assert any(all(word in row for word in path.split(" ")) for row in rows), path


def test_no_option_is_in_the_guide_that_is_not_there():
    known = {name for command in COMMANDS.values() for option in command.params for name in option.opts}
    known |= {name for command in COMMANDS.values() for option in command.params for name in option.secondary_opts}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", TEXT)) <= known | {"--debug", "--help"}


def test_queries_and_exit_codes_are_documented():
    for query in QUESTIONS:
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
