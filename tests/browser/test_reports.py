"""Reports in a real browser: accessible, within the screen, and the same look in both colour schemes and on paper."""

import datetime
from dataclasses import replace

import numpy as np
import pytest

import matrixdp as mdp
from browser.checks import AXE
from matrixdp.audit import attack, measure
from matrixdp.audit.page import describe_attack, describe_measurement, render_audit
from matrixdp.domain.file_rules import DateRule
from matrixdp.paper.report import draw_noise, make_page
from matrixdp.paper.tables import ReportTable
from matrixdp.report.content import LedgerSummary, make_content
from matrixdp.report.page import Block, Section, fold
from matrixdp.report.release_page import render_release
from matrixdp.report.stream_page import render_stream
from matrixdp.report.svg import DARK, LIGHT

LEDGER = LedgerSummary("clinic", 4.0, 1e-6, 3.5, 2.25, 7, "ab" * 32)
ORIGIN = {"table": "clinic", "released": datetime.datetime(2026, 11, 16, 6, 30)}
RNG = np.random.default_rng(0)
RECORDS = 3000


def simulate():
    return {"stream": mdp.Stream(0), "simulation": True}


def render(release, kind="matrix", target=None, **more):
    content = make_content(release, kind, ledger=LEDGER, target=target)
    return render_release(replace(content, **ORIGIN, **more), files=["release.json"])


def adaptive_pages():
    names = ["age", "bmi", "blood_pressure", "progression"]
    data = RNG.normal(size=(442, 4)) @ np.array([[1, 0.3, 0.3, 0.2], [0, 1, 0.3, 0.6], [0, 0, 1, 0.3], [0, 0, 0, 1]])
    bounds = mdp.Bounds([-4] * 4, [4] * 4, names=names)
    release = mdp.release_table(data, bounds, mdp.Privacy(2, 1e-5), question="correlation", **simulate())
    yield "correlation", render(release, "correlation")
    yield "components", render(release, "components")
    yield "regression", render(release, "regression", target="progression")


def table_pages():
    columns = mdp.Columns(
        [
            mdp.Number("age", 0, 100, missing=True),
            mdp.Number("bmi", 10, 50),
            mdp.Number("admitted", 0, 36500),
            mdp.Category("ward", ("north", "south", "east")),
            mdp.YesNo("smoker"),
            mdp.Category("outcome", ("well", "ill"), missing=True),
        ]
    )
    ward = np.array(["east", *RNG.choice(["north", "south"], RECORDS - 1)])
    data = {
        "age": np.where(RNG.random(RECORDS) < 0.2, np.nan, RNG.uniform(20, 80, RECORDS)),
        "bmi": RNG.normal(25, 3, RECORDS) + 3 * (ward == "north"),
        "admitted": RNG.uniform(20000, 30000, RECORDS),
        "ward": list(ward),
        "smoker": RNG.random(RECORDS) < 0.25,
        "outcome": [None if chance < 0.1 else "ill" if chance < 0.3 else "well" for chance in RNG.random(RECORDS)],
    }
    design = mdp.make_design(mdp.TableMoments(columns, RECORDS, by=("ward",)), mdp.Privacy(2, 1e-6))
    dates = (DateRule("admitted", "days", datetime.date(1930, 1, 1)),)
    yield "everything", render(design.release(data, missing="midpoint", **simulate()), "everything", dates=dates)


def matrix_pages():
    privacy = mdp.Privacy(1, 1e-6)
    pairs = [("north" if a < 0.5 else "south", "well" if b < 0.8 else "ill") for a, b in RNG.random((RECORDS, 2))]
    counts = mdp.make_design(mdp.ContingencyTable(["north", "south", "east"], ["well", "ill"], RECORDS), privacy)
    yield "counts", render(counts.release(pairs, **simulate()), variables=("ward", "outcome"))
    graph = np.triu(RNG.random((16, 16)) < 0.2, 1).astype(float)
    released = mdp.make_design(mdp.Adjacency(16), mdp.Privacy(9, 1e-6)).release(graph + graph.T, **simulate())
    yield "graph", render(released)
    bounds = mdp.Bounds([18, 15, 60], [90, 45, 140], names=["age", "bmi", "pressure"])
    data = RNG.normal([50, 26, 95], [10, 4, 10], (500, 3))
    yield "identity", render(mdp.make_design(mdp.Identity(bounds, 500), privacy).release(data, **simulate()))
    yield "moments", render(mdp.make_design(mdp.Moments(bounds, 500), privacy).release(data, **simulate()))
    points = [[50, 26, 95], [30, 20, 80]]
    yield "gram", render(mdp.make_design(mdp.GramMatrix(bounds, 500, points), privacy).release(data, **simulate()))


def dataset_page(folder):
    bounds = mdp.Bounds([18, 15], [90, 45], names=["age", "bmi"])
    design = mdp.make_design(mdp.Identity(bounds, 500), mdp.Privacy(1, 1e-6))
    blocks = mdp.records.Blocks(lambda: iter([np.zeros((500, 2))]))
    release = mdp.release_dataset(design, blocks, folder / "noisy", **simulate())
    return render(release)


def stream_page(folder):
    columns = mdp.Columns([mdp.Number("age", 0, 110), mdp.Category("ward", ["a", "b"])])
    plan = mdp.make_stream(mdp.TableMoments(columns, 300, neighbours="add-remove"), mdp.Privacy(1, 1e-6), last=9)
    made = plan.open(folder / "ward", **simulate())
    for week in range(1, 6):
        ages, wards = RNG.uniform(20, 80, 300), RNG.choice(["a", "b"], 300, p=[0.98, 0.02])
        made.publish({"age": ages, "ward": wards}, step=f"2031-w0{week}")
    return render_stream(made.public, by="ward")


def other_pages(folder):
    yield "dataset", dataset_page(folder)
    yield "stream", stream_page(folder)
    design = mdp.make_design(mdp.Moments(mdp.Bounds([0, 0], [1, 1], names=["age", "bmi"]), 8), mdp.Privacy(1, 1e-6))
    runs = measure(lambda x: x.sum() + RNG.normal(), np.zeros(2), np.ones(2), claim=mdp.Privacy(1, 1e-5), trials=2000)
    found = attack(design, starts=1, seconds=1)
    yield "audit", render_audit([describe_attack("moments", found), describe_measurement("study:noisy", runs)])
    columns = {"method": "Method", "error": "Measured", "verdict": "Verdict"}
    rows = [{"group": "a", "method": "MVG-1", "error": 0.23, "verdict": "reproduced"}]
    table = ReportTable("exp1", "Exp. I: regression", columns, rows, ("A note.",), groups={"a": "As in the paper"})
    parts = [Block("words", table), Block("picture", draw_noise(0))]
    more = fold("Show", Block("words", replace(table, name="more")))
    sections = [Section("Exp. I", parts, anchor="exp1"), Section("Sweeps", [more], anchor="more")]
    yield "paper", make_page(["Trials: 2"], ["One result."], sections, simulated=True).render()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The path of each page by its name."""
    folder = tmp_path_factory.mktemp("pages")
    found = {}
    for name, text in (*adaptive_pages(), *table_pages(), *matrix_pages(), *other_pages(folder)):
        found[name] = folder / f"{name}.html"
        found[name].write_text(text, encoding="utf-8")
    return found


def open_tab(chromium, scheme, width):
    context = chromium.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    return context.new_page()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_report_is_accessible(chromium, pages, scheme):
    tab = open_tab(chromium, scheme, 1280)
    for name, path in pages.items():
        tab.goto(path.as_uri())
        tab.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        tab.add_style_tag(content=".scroll { background: none !important; }")  # axe does not see through gradients
        found = AXE.run(tab)
        problems = [(one["id"], one["nodes"][0]["html"][:200]) for one in found.response["violations"]]
        assert problems == [], (name, scheme)
        unsure = [one for one in found.response["incomplete"] if one["id"] == "color-contrast"]
        reasons = {node["any"][0]["data"]["messageKey"] for one in unsure for node in one["nodes"]}
        assert reasons <= {"imgNode", "elmPartiallyObscured"}, (name, scheme)  # colours of pictures: test_stylesheet.py
    tab.context.close()


@pytest.mark.parametrize("width", [400, 1280])
def test_every_report_fits_the_screen_and_asks_for_nothing(chromium, pages, width):
    tab = open_tab(chromium, "dark", width)
    asked, said = [], []
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("console", lambda message: said.append(message.text))
    for name, path in pages.items():
        asked.clear()
        tab.goto(path.as_uri())
        assert tab.evaluate("document.documentElement.scrollWidth") <= width, name
        assert asked == [path.as_uri()], name
        assert said == [], name
    tab.context.close()


def test_colours_follow_the_scheme_and_paper_is_light(chromium, pages):
    tab = open_tab(chromium, "dark", 1280)
    tab.goto(pages["correlation"].as_uri())
    colour = "getComputedStyle(document.querySelector('section')).getPropertyValue('--card').trim()"
    assert tab.evaluate(colour) == DARK["card"]
    tab.emulate_media(media="print")
    assert tab.evaluate(colour) == LIGHT["card"]
    heights = tab.evaluate(
        "[...document.querySelectorAll('details > p')].map(one => one.getBoundingClientRect().height)"
    )
    assert heights  # the formulas and how the noise was generated
    assert min(heights) > 0
    tab.context.close()
    tab = open_tab(chromium, "light", 400)
    tab.goto(pages["correlation"].as_uri())
    assert tab.evaluate(colour) == LIGHT["card"]
    tab.context.close()


def test_pictures_have_a_name_and_a_description_for_screen_readers(chromium, pages):
    tab = open_tab(chromium, "light", 1280)
    for name in ("graph", "audit", "paper"):
        tab.goto(pages[name].as_uri())
        images = tab.evaluate(
            "[...document.querySelectorAll('svg[role=img]')].map(one => ['title', 'desc'].map("
            "tag => one.querySelector(`:scope > ${tag}`).textContent))"
        )
        assert images, name
        assert all(title and description for title, description in images), name
    tab.context.close()
