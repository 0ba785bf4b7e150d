"""A report names its question, privacy, purpose and people; every folder says where its numbers come from."""

import hashlib
import json
import re
from html import unescape
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.cli.main import run
from matrixdp.release.output_folder import find_foreign_file
from matrixdp.report.content import make_content
from matrixdp.report.provenance import cite, list_provenance, note_approval, split_approval
from matrixdp.report.release_page import render_release

SCHEMA = """\
records = 300
contact = "Data office, data@clinic.example"
[columns]
age = { type = "number", lower = 0, upper = 100 }
length_of_stay = { type = "number", lower = 0, upper = 60 }
ward = { type = "category", levels = ["surgery", "medicine"] }
"""


@pytest.fixture
def release(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [f"{age:.1f},{stay:.1f},{ward}" for age, stay, ward in zip(
        rng.uniform(20, 90, 300), rng.uniform(0, 30, 300), ["surgery", "medicine"] * 150, strict=True
    )]  # fmt: skip
    Path("clinic.csv").write_text("\n".join(["age,length_of_stay,ward", *rows]) + "\n")
    Path("clinic.toml").write_text(SCHEMA)
    assert run(["ledger", "new", "clinic.db", "--dataset", "clinic", "--epsilon", "9", "--delta", "1e-6"]) == 0

    def make(out, *more):
        always = ["--schema", "clinic.toml", "--epsilon", "1", "--delta", "1e-7", "--ledger", "clinic.db"]
        assert run(["release", "clinic.csv", *always, "--dataset", "clinic", "--out", out, *more]) == 0
        return Path(out)

    return make


def test_the_head_says_what_was_asked_by_whom_and_why(release):
    who = ("--actor", "ann", "--purpose", note_approval("Annual report (draft)", "carol"))
    out = release("out", "--query", "means", "--by", "ward", "--method", "plain", *who)
    head = (out / "report.html").read_text().partition("</header>")[0].partition("<header>")[2]
    assert "<h1>Means by ward</h1>" in head
    facts = dict(re.findall("<dt>([^<]*)</dt><dd>([^<]*)</dd>", head))
    assert facts["Protects"] == "one record"
    assert facts["Privacy"].startswith("ε = 1, δ = 1e-07: small privacy loss. It changes the odds")
    named = {name: facts[name] for name in ("Data set", "Purpose", "Asked by", "Approved by", "Contact")}
    assert list(named.values()) == [
        "clinic",
        "Annual report (draft)",
        "ann",
        "carol",
        "Data office, data@clinic.example",
    ]


def test_a_sidecar_and_parquet_say_where_the_numbers_come_from(release):
    out = release("out", "--query", "second-moment", "--columns", "age,length_of_stay", "--actor", "ann")
    facts = json.loads((out / "provenance.json").read_text())
    assert facts["sha256"] == hashlib.sha256((out / "release.json").read_bytes()).hexdigest()
    wanted = {"question": "Second moments", "dataset": "clinic", "epsilon": 1.0, "delta": 1e-7, "asked_by": "ann"}
    assert wanted.items() <= facts.items()
    assert json.loads(pq.read_schema(out / "matrix.parquet").metadata[b"matrixdp"]) == facts
    assert not any(line.startswith("#") for path in out.glob("*.csv") for line in path.read_text().splitlines())
    assert find_foreign_file(out) is None  # so that --force replaces it
    assert isinstance(mdp.load(out), mdp.Release)


def test_a_repeated_request_has_the_provenance_of_the_first(release):
    asked = ("--query", "means", "--request", "q1")
    first = release("first", *asked, "--actor", "ann", "--purpose", "Annual report")
    again = release("again", *asked, "--actor", "bob", "--purpose", "Other")
    facts = [json.loads((out / "provenance.json").read_text()) for out in (first, again)]
    assert (facts[1]["asked_by"], facts[1]["purpose"]) == ("ann", "Annual report")
    released = [one.pop("released") for one in facts]
    assert facts[0] == facts[1]
    assert released[0][:10] == released[1][:10]


def test_citations_have_the_hash_and_are_escaped_for_tex(release):
    page = unescape((release("out", "--query", "regression", "--target", "length_of_stay") / "report.html").read_text())
    digest = hashlib.sha256(Path("out/release.json").read_bytes()).hexdigest()
    assert re.search(rf"A regression of length_of_stay, from clinic\. [^<]* SHA-256: {digest}\.", page)
    assert f"@misc{{matrixdp-{digest[:12]}," in page
    assert r"title = {{A regression of length\_of\_stay, from clinic}}," in page


def test_a_simulation_is_not_to_be_cited():
    design = mdp.make_design(mdp.SecondMoment(mdp.Bounds([0], [1], names=["a"]), 10), mdp.Privacy(1, 1e-6))
    content = make_content(design.release(np.zeros((10, 1)), stream=mdp.Stream(0), simulation=True))
    assert "How to cite it" not in render_release(content)
    assert content.sha256 in cite(list_provenance(content))[0]


def test_only_the_last_approval_counts():
    assert split_approval(note_approval("x (approved by mallory)", "carol")) == ("x (approved by mallory)", "carol")
    assert split_approval(None) == ("", "")
