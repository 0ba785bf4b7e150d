"""Runs the code blocks of a document, in the current folder: Python, commands of matrixdp, and files in TOML.

A block of text that follows one of code is what it has to print. A block of TOML is a file, whose name is in its first
line.
"""

import contextlib
import io
import re
import shlex
from pathlib import Path

import matrixdp
from matrixdp.cli.main import run

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run_blocks(document, languages):
    """Run the blocks in these languages, in their order, and compare what they print."""
    blocks = BLOCK.findall(document.read_text(encoding="utf-8"))
    scope = {"__name__": document.stem}
    for i, (language, code) in enumerate(blocks):
        if language not in languages:
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            _RUN[language](code, f"{document.name}[{i}]", scope)
        if i + 1 < len(blocks) and blocks[i + 1][0] == "text":
            assert _strip(printed.getvalue()) == _strip(blocks[i + 1][1])
    for value in scope.values():
        if isinstance(value, matrixdp.Ledger):
            value.close()


def _strip(text):
    return [line.rstrip() for line in text.strip("\n").splitlines()]


def _run_python(code, name, scope):
    exec(compile(code, name, "exec"), scope)


def _run_commands(code, name, scope):
    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        assert words[0] == "matrixdp", f"{name} runs a command that is not matrixdp: {line}"
        assert run(words[1:]) == 0, f"{name}: {line}"


def _write_file(code, name, scope):
    Path(code.splitlines()[0].removeprefix("# ")).write_text(code)


_RUN = {"python": _run_python, "sh": _run_commands, "toml": _write_file}
