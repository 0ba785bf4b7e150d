"""The README's blocks run, their output is as shown, and links lead somewhere."""

import contextlib
import io
import re
from pathlib import Path

import pytest

import matrixdp

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if "```python" in d.read_text()], ids=lambda d: d.name)
def test_python_blocks_run_and_print_what_is_shown(document, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall(document.read_text())
    scope = {}
    for i, (language, code) in enumerate(blocks):
        if language != "python":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, f"{document.name}[{i}]", "exec"), scope)
        if i + 1 < len(blocks) and blocks[i + 1][0] == "text":
            assert printed.getvalue().strip() == blocks[i + 1][1].strip()
    for value in scope.values():
        if isinstance(value, matrixdp.Ledger):
            value.close()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: d.name)
def test_links_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", document.read_text()):
        if not target.startswith("http"):
            assert (document.parent / target).exists(), target


def test_commands_of_the_readme_are_targets_of_the_makefile():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"make (\w+)", (ROOT / "README.md").read_text()):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_ci_runs_the_readme_s_test_command():
    assert "make test" in (ROOT / ".ci" / "run").read_text()


def test_versions_agree():
    assert f"version: {matrixdp.__version__}" in (ROOT / "CITATION.cff").read_text()
    assert f"[{matrixdp.__version__}]" in (ROOT / "CHANGELOG.md").read_text()
