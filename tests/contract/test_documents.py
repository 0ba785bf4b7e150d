"""Code blocks of the documents run, their output is as shown, and links lead somewhere."""

import importlib
import math
import re
import shlex
from pathlib import Path

import pytest

import matrixdp.baselines  # its mechanisms are registered before a document's own
from document_blocks import BLOCK, run_blocks
from matrixdp.cli.main import run
from matrixdp.release import registered

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted(ROOT.glob("docs/**/*.md")),
]
LESSONS = [ROOT / "docs" / "index.md", *sorted(ROOT.glob("docs/tutorials/*.md")), *sorted(ROOT.glob("docs/howto/*.md"))]


def name(document):
    return document.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if "```python" in d.read_text()], ids=name)
def test_python_blocks_run_and_print_what_is_shown(document, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # what a document registers ends with it
    monkeypatch.setattr(registered, "_MECHANISMS", dict(registered._MECHANISMS))
    run_blocks(document, {"python", "sh", "toml"} if document in LESSONS else {"python"})


@pytest.mark.parametrize("document", [d for d in LESSONS if "```python" not in d.read_text()], ids=name)
def test_commands_of_lessons_run(document, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_blocks(document, {"sh", "toml"})


def anchors(document):
    """What headings of a document are called in links: as on GitHub, and on the documentation site."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", document.read_text(), flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def test_commands_of_the_readme_run_in_the_folder_of_the_demo(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(["demo"]) == 0
    blocks = [code for language, code in BLOCK.findall((ROOT / "README.md").read_text()) if language == "sh"]
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    assert len(lines) >= 4
    for line in lines:
        command, *words = shlex.split(line, comments=True)
        if command == "cd":
            monkeypatch.chdir(*words)
            continue
        assert command == "matrixdp"
        assert run(words) == 0, f"{line}\n{capsys.readouterr().err}"
    assert Path("study/report.html").is_file()
    design = ["design", "--schema", "schema.toml", "--query", "correlation", "--epsilon", "1", "--delta", "1e-6"]
    capsys.readouterr()
    assert run([*design, "--records", "5000"]) == 0
    table = capsys.readouterr().out.partition("at other epsilons")[2]
    errors = re.search(r"^ +Correlation +(.*)$", table, re.MULTILINE)[1].split()
    found = dict(zip(re.findall(r"epsilon ([\d.]+)", table), errors, strict=True))
    shown = re.search(r"^\| 5,000 \|(.*)\|$", (ROOT / "README.md").read_text(), re.MULTILINE)[1].split("|")
    predicted = [float(found[epsilon]) for epsilon in ("0.5", "1", "2")]
    assert predicted == pytest.approx(list(map(float, shown)), rel=0.3)


def test_the_picture_of_the_readme_is_what_its_command_makes(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    picture = importlib.import_module("benchmarks.picture")
    shown, made = (re.split(r"(-?\d+\.\d)", text) for text in (picture.PLACE.read_text(), picture.make_picture()))
    assert shown[::2] == made[::2]
    places = (list(map(float, parts[1::2])) for parts in (shown, made))
    assert all(abs(a - b) < 10 for a, b in zip(*places, strict=True))  # in units of which an interval is about 100 long
    readme = (ROOT / "README.md").read_text()
    assert str(picture.PLACE.relative_to(ROOT)) in readme
    lower, upper = map(list, zip(*picture.BOUNDS.values(), strict=True))
    assert f"lower={lower}, upper={upper}" in readme  # so the picture and the lines of Python show the same release
    assert all(words in readme for words in ("epsilon=2, delta=1e-5", "Stream(seed=1)", *picture.BOUNDS))


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_links_lead_somewhere(document):
    text = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.M | re.S)
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", text):
        if "generated/" in target or target.startswith("http"):  # pictures are made when the site is built
            continue
        found = document.parent / target if target else document
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), f"{target}#{anchor}"


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if d.is_relative_to(ROOT / "docs")], ids=name)
def test_pages_have_at_most_3000_words(document):
    """A longer page is split, or what repeats another page is cut."""
    assert len(document.read_text(encoding="utf-8").split()) <= 3000


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_commands_of_the_documents_are_targets_of_the_makefile(document):
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"(?:^    |`)make ([\w-]+)", (ROOT / document).read_text(), re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_ci_runs_the_readme_s_test_command():
    assert "make test" in (ROOT / ".ci" / "run").read_text()


def test_versions_agree():
    assert f"version: {matrixdp.__version__}" in (ROOT / "CITATION.cff").read_text()
    assert f"[{matrixdp.__version__}]" in (ROOT / "CHANGELOG.md").read_text()


def list_methods(owner, source):
    """Methods of a class and of its base classes, from the source of all modules."""
    found = set()
    for bases, body in re.findall(rf"^class {owner}\b(?:\((.*?)\))?:(.*?)^(?=\S)", source, re.MULTILINE | re.DOTALL):
        found |= set(re.findall(r"^    def (\w+)", body, re.MULTILINE))
        found |= {name for base in re.findall(r"\w+", bases) for name in list_methods(base, source)}
    return found


def test_the_architecture_names_packages_and_functions_that_exist():
    text = (ROOT / "docs" / "architecture.md").read_text()
    source = "\n".join(path.read_text() for path in Path(matrixdp.__file__).parent.rglob("*.py"))
    sequences = text[text.index("## Four call sequences") : text.index("## Where to begin")]
    for name in re.findall(r"`([A-Za-z_.]+)`", sequences):
        assert re.search(rf"(def|class) {name.split('.')[-1]}\b", source), name
    for owner, member in re.findall(r"`([A-Z]\w+)\.(\w+)`", sequences):
        assert member in list_methods(owner, source), f"{owner}.{member}"
    packages = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", text[: text.index("## Four call sequences")], re.MULTILINE)
    listed = {name for row in packages for name in re.findall(r"`(\w+)`", row)}
    found = {path.stem for path in Path(matrixdp.__file__).parent.glob("*.py")} - {"__init__", "__main__"}
    found |= {path.parent.name for path in Path(matrixdp.__file__).parent.glob("*/__init__.py")}
    assert listed == found


def read_coverage(text, title, column):
    """The numbers of a column of the first table after a title."""
    rows = re.search(r"(?:^\|.*\n)+", text[text.index(title) :], re.MULTILINE)[0].splitlines()
    return [float(row.split(" | ")[column].strip(" |")) for row in rows[2:]]


def test_sentences_on_intervals_state_the_measured_coverage():
    figures = (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8")
    measured = [*read_coverage(figures, "## Plain releases", 2), *read_coverage(figures, "## Adaptive fits", 3)]
    stated = f"{math.floor(100 * min(measured))}% to {math.ceil(100 * max(measured))}% of the 95% intervals"
    for document in ("README.md", "docs/howto/report.md"):
        assert stated in " ".join((ROOT / document).read_text(encoding="utf-8").split()), document
