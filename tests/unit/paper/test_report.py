"""The whole command on stand-ins with two trials: its files, its page, and its tables against golden ones."""

import csv
import io
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from matrixdp.cli.main import run
from matrixdp.errors import ParameterError
from matrixdp.paper import reproduce
from matrixdp.paper.report import PARTS
from matrixdp.paper.tables import SIMULATED, ReportTable
from matrixdp.report.page import Block, Page, Section
from paper_data import forget_data

GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text("utf-8"))
BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
TABLES = {"exp1", "exp2", "exp3", "gains", "subspace", "runtime", "claims", "sweeps"}
FIGURES = {"directions", "noise", "design-space"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("reproduction")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MATRIXDP_DATA", raising=False)
        patch.setenv("XDG_CACHE_HOME", str(out / "none"))
        patch.setenv("MATRIXDP_DATA_URL", "")
        patch.setattr("matrixdp.paper.report._TIMES", 3)
        forget_data()
        reproduce(trials=2, out=out, processes=1, progress=io.StringIO())
    forget_data()
    return out


def figures_of(folder, part):
    rows = json.loads((folder / "tables" / f"{part}.json").read_text("utf-8"))["rows"]
    return {row["key"]: [row["mean"], row["spent"]] for row in rows}


def agrees(found, golden):
    assert found.keys() == golden.keys()
    for key, values in golden.items():
        assert found[key] == [None if one is None else pytest.approx(one, rel=2e-3, abs=1e-9) for one in values], key


@pytest.mark.parametrize("part", ["exp1", "exp2", "exp3", "subspace"])
def test_golden_tables_of_stand_ins(folder, part):
    agrees(figures_of(folder, part), GOLDEN["stand-ins"][part])


def test_every_table_is_there_twice_and_says_that_it_is_simulated(folder):
    for name in TABLES:
        content = json.loads((folder / "tables" / f"{name}.json").read_text("utf-8"))
        text = (folder / "tables" / f"{name}.csv").read_text("utf-8")
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        assert len(rows) == len(content["rows"]) > 0
        if name != "runtime":
            assert content["simulated_data"] is True
            assert {row["simulated_data"] for row in rows} == {"true"}


def test_every_figure_has_a_file_that_needs_no_page(folder):
    assert {path.name for path in (folder / "figures").iterdir()} == {f"{name}.svg" for name in FIGURES}
    for name in FIGURES:
        text = (folder / "figures" / f"{name}.svg").read_text("utf-8")
        assert text.startswith("<svg xmlns=")
        assert "<style>" in text
    assert not list(folder.rglob("*.csv.*"))  # nothing half-written


class Reader(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.ids = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attributes]
        self.ids += [value for name, value in attributes if name == "id"]


def test_the_page_needs_nothing_but_itself(folder):
    text = (folder / "report.html").read_text("utf-8")
    page = Reader(text)
    assert not {"script", "img", "iframe", "object", "embed", "base"} & set(page.tags)
    assert page.tags.count("svg") == len(FIGURES)
    for tag, name, value in page.attributes:
        if name in ("src", "srcset", "href", "xlink:href", "data"):
            assert value.startswith("#") or value == "data:,", (tag, name, value)
        assert not name.startswith("on")
    assert not re.search(r"@import|url\((?!#)", text)


def test_links_and_references_within_the_page_lead_somewhere(folder):
    text = (folder / "report.html").read_text("utf-8")
    page = Reader(text)
    assert len(page.ids) == len(set(page.ids))
    targets = {value[1:] for _, name, value in page.attributes if name in ("href", "xlink:href") and value[:1] == "#"}
    targets |= set(re.findall(r"url\(#([^)]+)\)", text))
    assert targets <= set(page.ids)


def test_the_page_marks_stand_ins_at_the_top_and_at_every_table(folder):
    text = (folder / "report.html").read_text("utf-8")
    assert text.count(SIMULATED) >= len(TABLES)  # the runtime table has none, the top has one


def test_every_colour_of_a_figure_follows_the_scheme_of_the_page(folder):
    text = (folder / "report.html").read_text("utf-8")
    drawings = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    classes = {
        name for drawing in drawings for names in re.findall(r'class="([^"]+)"', drawing) for name in names.split()
    }
    assert all(f".{name} " in text for name in classes)
    for drawing in drawings:
        assert not re.search(r'(?:fill|stroke)(?:=|:) ?"?#', drawing)
        assert re.search(
            r'<svg[^>]* role="img" aria-label="[^"]+"[^>]*><title>[^<]+</title><desc>[^<]+</desc>', drawing
        )


def test_the_section_on_gains_has_adaptive_fits_with_error_bars(folder):
    text = (folder / "report.html").read_text("utf-8")
    section = text[text.index('<section id="gains">') : text.index('<section id="directions">')]
    assert "Where directional noise pays" in section
    rows = json.loads((folder / "tables" / "gains.json").read_text("utf-8"))["rows"]
    assert {row["key"] for row in rows} >= {f"{task}/learned" for task in ("exp1", "exp2", "exp3")}
    assert all(row["half"] is not None for row in rows)


@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed: the page is not opened in a browser")
def test_the_page_opens_in_a_browser(folder, tmp_path):
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
    options += ["--disable-component-update", "--no-first-run", "--enable-logging=stderr", "--virtual-time-budget=5000"]
    options += [f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1200,2000", "--dump-dom"]
    options += ["--host-resolver-rules=MAP * ~NOTFOUND"]
    address = (folder / "report.html").resolve().as_uri()
    done = subprocess.run([BROWSER, *options, address], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert 'id="method"' in done.stdout  # it was read to its end
    assert "CONSOLE" not in done.stderr
    assert "parsererror" not in done.stdout


def test_a_named_part_brings_what_it_needs(folder, tmp_path, monkeypatch, capsys):
    assert run(["reproduce", "pictures", "--trials", "2", "--out", str(tmp_path / "some")]) == 0
    assert capsys.readouterr().out.strip() == f"Report: {(tmp_path / 'some' / 'report.html').resolve()}"
    assert {path.stem for path in (tmp_path / "some" / "figures").iterdir()} == {"noise", "design-space"}
    assert not (tmp_path / "some" / "cache").exists()


def test_wrong_arguments_are_named(tmp_path, capsys):
    with pytest.raises(ParameterError, match=", ".join(PARTS)):
        reproduce(["exp4"], out=tmp_path)
    with pytest.raises(ParameterError, match="trials must be an integer of at least 2, since an error bar needs two"):
        reproduce(trials=1, out=tmp_path)  # before anything is run
    assert run(["reproduce", "exp4", "--out", str(tmp_path)]) == 2
    assert "got exp4 instead" in capsys.readouterr().err


def test_an_interrupted_run_says_how_to_resume(monkeypatch, tmp_path, capsys):
    def stop(*_arguments, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("matrixdp.paper.report.reproduce", stop)
    assert run(["reproduce", "exp2", "--out", str(tmp_path)]) == 130
    assert "the same command resumes the run" in capsys.readouterr().err


def test_values_that_csv_and_json_do_not_have():
    table = ReportTable(
        "toy", "A <title>", {"a": "A"}, [{"a": float("nan"), "extra": None}, {"a": "<b>", "extra": 1.5}]
    )
    assert table.to_csv() == "a,extra,simulated_data\n,,false\n<b>,1.5,false\n"
    assert json.loads(table.to_json())["rows"][0] == {"a": None, "extra": None}
    assert table.to_markdown().splitlines()[2:4] == ["|  |", "| <b> |"]
    assert "<b>" not in Page(title="t", heading="t", sections=[Section("t", [Block("words", table)])]).render()
