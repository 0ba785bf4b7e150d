"""Reports: complete, self-contained, and true to the release."""

import datetime
import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.answers.estimate import Estimate
from matrixdp.design.explain import pair_covariance
from matrixdp.domain.file_rules import DateRule
from matrixdp.errors import ParameterError
from matrixdp.release.output_folder import OutputFolder
from matrixdp.release.registered import MechanismRelease
from matrixdp.report.answers import Answer
from matrixdp.report.charts import draw_answer
from matrixdp.report.content import LedgerSummary, make_content
from matrixdp.report.page import write_words
from matrixdp.report.pictures import draw_design, draw_matrix
from matrixdp.report.release_folder import write_folder
from matrixdp.report.release_page import render_release

SVG = "{http://www.w3.org/2000/svg}"
RNG = np.random.default_rng(1)


def moments(features=3, records=400, neighbours="replace", simulation=False):
    names = [f"feature <{i}> & co" for i in range(features)]
    bounds = mdp.Bounds([-1] * features, [1] * features, names=names)
    design = mdp.make_design(mdp.Moments(bounds, records, neighbours=neighbours), mdp.Privacy(2, 1e-6))
    options = {"stream": mdp.Stream(0), "simulation": True} if simulation else {}
    return design.release(RNG.uniform(-1, 1, (records, features)), **options)


class Checker(HTMLParser):
    """Notes what a page opens and closes, and what it asks for from elsewhere."""

    void = frozenset({"meta", "br", "wbr", "line", "polygon"})

    def __init__(self):
        super().__init__()
        self.open, self.scripts, self.links = [], 0, []

    def handle_starttag(self, tag, attributes):
        if tag not in self.void:
            self.open.append(tag)
        self.scripts += tag == "script"
        self.links += [value for name, value in attributes if name in ("href", "src")]

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def check_page(page):
    checker = Checker()
    checker.feed(page)
    assert checker.open == []
    assert checker.scripts == 0
    assert not any("//" in link for link in checker.links)
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page
    assert "@import" not in page
    return page


@pytest.mark.parametrize("kind", ["matrix", "covariance", "correlation"])
def test_the_page_is_complete_and_self_contained(kind):
    page = check_page(render_release(make_content(moments(), kind), files=["matrix.csv"]))
    for words in (
        "(2, 1e-06)-differential privacy",
        "replace-one",
        "one record",
        "No ledger was used",
        mdp.__version__,
    ):
        assert words in page
    assert "Simulation" not in page
    assert "feature &lt;0&gt; &amp; co" in page


def test_a_simulation_is_marked():
    assert "Simulation" in render_release(make_content(moments(simulation=True)))


def test_private_numbers_of_records_are_called_private():
    page = render_release(make_content(moments(neighbours="add-remove")))
    assert "number of records is private" in page
    assert "about 400 records" in page


def test_the_state_of_the_ledger_is_shown():
    state = LedgerSummary("clinic", 4.0, 1e-6, 3.5, 2.25, 7, "ab" * 32)
    page = render_release(make_content(moments(), ledger=state))
    assert "No ledger was used" not in page
    assert "ε = 3.5 was left" in page
    assert "ε = 2.25 is left" in page
    assert "does not show" not in page
    blind = replace(state, unnoticed=("that an old copy was written over the file",))
    page = render_release(make_content(moments(), ledger=blind))
    assert "file system does not show that an old copy was written over the file. An anchor would" in page


@pytest.mark.parametrize("features", [1, 2, 12, 30, 70])
def test_pictures_are_well_formed_and_named(features):
    result = make_content(moments(features), "covariance").main
    root = ElementTree.fromstring(draw_matrix(result))
    cells = [cell for cell in root.iter(f"{SVG}rect") if cell.find(f"{SVG}title") is not None]
    assert len(cells) == min(features, 60) ** 2
    assert root.get("role") == "img"
    width, height = (float(value) for value in root.get("viewBox").split()[2:])
    assert 0 < width < 1600
    assert 0 < height < 1600


def test_cells_say_their_value_and_error_bar():
    result = make_content(moments(2), "covariance").main
    titles = [node.text for node in ElementTree.fromstring(draw_matrix(result)).iter(f"{SVG}title")]
    assert any(re.fullmatch(r"feature <0> & co × feature <1> & co: \S+ ± \S+", title) for title in titles)


def test_undefined_entries_are_shown():
    release = moments()
    matrix = release.matrix.copy()
    matrix[1, 1] = -5.0
    result = make_content(mdp.Release(matrix, release.design), "correlation")
    main = result.main.estimate
    assert np.isnan(main.std[0, 1:]).all()
    page = check_page(render_release(result))
    assert page.count("[-1, 1]</span>") == 2 * (len(main.rows) - 1)
    assert "are the ends of a 95% interval" in page
    assert "A number after ~" not in page
    drawing = draw_matrix(result.main)
    ElementTree.fromstring(drawing)
    assert drawing.count('class="p-hidden"') >= 2 * (len(main.rows) - 1)


def test_a_data_set_shows_its_first_rows():
    bounds = mdp.Bounds([0, 0], [1, 1])
    release = mdp.make_design(mdp.Identity(bounds, 5000), mdp.Privacy(1, 1e-6)).release(RNG.uniform(0, 1, (5000, 2)))
    page = check_page(render_release(make_content(release)))
    assert "the first 24 of 5,000 rows" in page
    assert "Averages over all 5,000 rows" in page
    assert len(page) < 200_000


@pytest.mark.parametrize(
    "query",
    [
        mdp.Identity(mdp.Bounds([-1, -2, -3], [1, 2, 3]), 50),
        mdp.Moments(mdp.Bounds([-1, -2, -3], [1, 2, 3]), 50),
        mdp.SecondMoment(mdp.Bounds([-1, -2, -3], [1, 2, 3]), 50),
    ],
    ids=["identity", "moments", "second-moment"],
)
def test_the_ellipse_has_the_covariance_of_the_noise(query):
    axes = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    design = mdp.make_design(
        query, mdp.Privacy(1, 1e-6), directions=axes, allocation=mdp.allocations.shares([0.6, 0.3, 0.1])
    )
    pair = pair_covariance(design, 0, 2)
    entries = {"Identity": (0, [0, 2]), "Moments": (0, [1, 3]), "SecondMoment": ([0, 2], [0, 2])}
    std = design.std[entries[type(query).__name__]]
    assert np.allclose(np.sqrt(np.diagonal(pair)), std, rtol=1e-9)
    assert pair[0, 1] != 0
    ElementTree.fromstring(draw_design(design, (0, 2)))


def test_a_covariance_needs_moments():
    bounds = mdp.Bounds([0, 0], [1, 1])
    release = mdp.make_design(mdp.SecondMoment(bounds, 5), mdp.Privacy(1, 1e-6)).release(np.zeros((5, 2)))
    with pytest.raises(ParameterError, match="Moments"):
        make_content(release, "covariance")
    with pytest.raises(ParameterError, match="kind must be"):
        make_content(release, "variance")


def test_a_mechanism_without_a_design_has_no_report():
    release = MechanismRelease(
        query=mdp.Moments(mdp.Bounds([0, 0], [1, 1]), 50),
        matrix=np.eye(3),
        mechanism="mine",
        privacy=mdp.Privacy(1, 1e-6),
        epsilon=1.0,
        delta=0.0,
        comparison_only=False,
    )
    with pytest.raises(ParameterError, match="print shows other releases"):
        make_content(release)


def test_a_matrix_of_zeros_can_be_drawn():
    zeros = Estimate(np.zeros((2, 2)), np.ones((2, 2)), ("a", "b"), ("a", "b"))
    ElementTree.fromstring(draw_matrix(Answer("Zeros", "", zeros)))


def test_a_folder_appears_when_it_is_complete(tmp_path):
    result = make_content(moments(), "covariance")
    with OutputFolder(tmp_path / "out") as folder:
        files = write_folder(result, folder.path)
        assert not (tmp_path / "out").exists()
        folder.finish()
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(files)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_error_leaves_the_old_folder_as_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr("matrixdp.release.output_folder.find_foreign_file", lambda _: None)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old").write_text("old")

    def broken():
        with OutputFolder(tmp_path / "out", force=True) as folder:
            (folder.path / "new").touch()
            raise RuntimeError("half-way")

    with pytest.raises(RuntimeError):
        broken()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out" / "old").read_text() == "old"


def test_parquet_is_left_out_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    assert "matrix.parquet" not in write_folder(make_content(moments()), tmp_path)


HOSTILE = [
    "\x1b[31mred\x1b]0;title\x07",
    "a\x00b",
    "\x9bcontrol",
    "\u202eright to left",
    "</text><script>alert(1)</script>",
    "']]>\"><img src=x onerror=alert(1)>",
    '=HYPERLINK("http://x")',
    "+1+1",
    "-2+3",
    "@SUM(1)",
    "\t=1",
    "\r=1",
    "line\nbreak",
]


def hostile_content(names=HOSTILE):
    bounds = mdp.Bounds([-1] * len(names), [1] * len(names), names=names)
    design = mdp.make_design(mdp.Moments(bounds, 50), mdp.Privacy(2, 1e-6))
    return make_content(design.release(RNG.uniform(-1, 1, (50, len(names)))), "covariance")


def test_hostile_names_break_neither_pictures_nor_the_page():
    content = hostile_content()
    images = [draw_matrix(content.main), draw_design(content.release.design, (0, 1))]
    for image in images:
        root = ElementTree.fromstring(image)
        assert not [item for item in root.iter() if item.tag in (f"{SVG}script", f"{SVG}img", f"{SVG}image")]
    for written in (*images, render_release(content)):
        assert all(char.isprintable() or char == "\n" for char in written)
        assert "<script" not in written
        assert "<img" not in written
    assert "\\x1b[31mred" in images[0]


@pytest.mark.parametrize("kind", ["covariance", "counts", "table", "adaptive"])
def test_hostile_names_in_tables_findings_and_origins_are_escaped(kind):
    names = HOSTILE[:6]
    if kind == "covariance":
        content = hostile_content(names)
    elif kind == "counts":
        design = mdp.make_design(mdp.ContingencyTable(names, names, 5000), mdp.Privacy(2, 1e-6))
        content = make_content(design.release([(names[4], names[5])] * 5000))
    elif kind == "table":
        columns = mdp.Columns([mdp.Number(names[4], 0, 1), mdp.Category(names[5], names), mdp.YesNo(names[0])])
        query = mdp.TableMoments(columns, 500, by=(names[0],))
        data = {names[4]: np.full(500, 0.5), names[5]: names[:5] * 100, names[0]: [True, False] * 250}
        content = make_content(mdp.make_design(query, mdp.Privacy(9, 1e-6)).release(data), "everything")
    else:
        content = make_content(adaptive(), "correlation")
    page = render_release(
        replace(content, table=names[4], question=names[5], contact=names[3], variables=(names[4], names[5]))
    )
    assert all(char.isprintable() or char == "\n" for char in page)
    assert not re.search(r"<(script|img|b>)", page)
    check_page(page)


def test_a_regression_names_its_reference_levels_and_draws_its_coefficients():
    rng = np.random.default_rng(0)
    data = {"stay": rng.uniform(0, 9, 4000), "age": rng.uniform(0, 90, 4000), "ward": ["north", "south"] * 2000}
    columns = mdp.Columns.from_dict({"stay": (0, 9), "age": (0, 90), "ward": ["north", "south"]})
    release = mdp.make_design(mdp.TableMoments(columns, 4000), mdp.Privacy(9, 1e-6)).release(data)
    page = check_page(render_release(make_content(release, "regression", target="stay")))
    assert "Coefficients of ward are differences from its level north." in page
    (chart,) = re.findall(r'<figure><svg[^>]* aria-label="Regression of stay with error bars.*?</svg>', page)
    assert chart.count("<circle") == 2  # the intercept is not compared with zero
    assert all(f">{name}<" in chart for name in ("age", "ward=south"))


def test_means_by_group_are_drawn_with_dates_on_the_axis_of_dates():
    rule = DateRule("seen", "days", datetime.date(2000, 1, 1))
    columns = mdp.Columns.from_dict({"seen": (0, 9000), "ward": ["north", "south"]})
    query = mdp.TableMoments(columns, 4000, by=("ward",))
    data = {"seen": np.full(4000, 4000.0), "ward": ["north", "south"] * 2000}
    content = make_content(mdp.make_design(query, mdp.Privacy(9, 1e-6)).release(data), "means")
    page = check_page(render_release(replace(content, dates=(rule,))))
    charts = re.findall(r'<figure><svg[^>]* aria-label="(\S+)[^"]* with error bars.*?</svg>', page)
    assert charts == ["share", "seen"]
    (seen,) = re.findall(r'<figure><svg[^>]* aria-label="seen with error bars.*?</svg>', page)
    assert re.search(r">20\d\d-\d\d-\d\d</text>", seen)
    assert "<title>north: 20" in seen


@pytest.mark.parametrize("lower", [0.0, 1e17, -1e55])
@pytest.mark.parametrize("width", [1e-300, 64.0, 1e55])
def test_a_chart_of_extreme_numbers_never_fails(lower, width):
    """A report is written after the charge."""
    means = np.array([[lower], [lower + width]])
    for std in (0.0, width / 9, np.inf):
        found = Estimate(means, np.full((2, 1), std), ("a", "b"), ("x",))
        for chart in draw_answer(Answer("Groups", "ward", found, name="groups")):
            ElementTree.fromstring(chart.svg)


def test_a_page_forbids_scripts_and_the_network():
    page = render_release(make_content(moments()))
    head = page.partition("<body>")[0]
    (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', head)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["style-src"] == "'unsafe-inline'"
    assert "script-src" not in rules
    assert head.index("Content-Security-Policy") < head.index("<style>")
    assert not re.search(r"<script|<link|<iframe|javascript:|\son\w+=|url\(|src=", page)


def test_a_spreadsheet_runs_no_name(tmp_path):
    import csv

    write_folder(hostile_content(), tmp_path)
    for name in ("matrix.csv", "std.csv"):
        with (tmp_path / name).open(newline="") as file:
            header, *rows = csv.reader(file)
        texts = [*header, *(row[0] for row in rows)]
        assert not [text for text in texts if text.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))]
        assert '\'=HYPERLINK("http://x")' in texts
        assert all(np.isfinite(float(cell)) for row in rows for cell in row[1:])
    import pyarrow.parquet as pq

    assert pq.read_table(tmp_path / "matrix.parquet").column_names == ["row", *HOSTILE]


def test_tables_send_no_escapes_to_a_terminal():
    from matrixdp.display import Numbers, format_numbers, format_table

    text = format_numbers(Numbers(np.eye(2), None, HOSTILE[:2], HOSTILE[2:4])) + format_table(HOSTILE, [HOSTILE])
    assert all(char.isprintable() or char == "\n" for char in text)


def test_the_page_says_how_far_the_noise_is_from_the_least_possible():
    release = moments()
    words = "The total squared error of this noise, in these units, is"
    least = f"at most {release.design.excess:.3g} times the least total squared error of Gaussian noise"
    assert f"{words} {least}" in "".join(write_words("noise", make_content(release)))
    assert words in render_release(make_content(release))


def adaptive(question="correlation", epsilon=1.0, delta=1e-6):
    names = ["<b>age</b>", "bmi & co", "pressure"]
    bounds = mdp.Bounds([-4] * 3, [4] * 3, names=names)
    data = np.random.default_rng(0).normal(size=(2000, 3)) @ [[1, 0.5, 0], [0, 1, 0], [0, 0, 1]]
    options = {"question": question, "stream": mdp.Stream(seed=0), "simulation": True}
    return mdp.release_table(data, bounds, mdp.Privacy(epsilon, delta), **options)


@pytest.mark.parametrize("kind", ["means", "covariance", "correlation", "components", "regression"])
def test_an_adaptive_release_has_a_complete_page_and_folder(kind, tmp_path):
    release = adaptive(kind if kind != "means" else "covariance")
    target = "pressure" if kind == "regression" else None
    content = make_content(release, kind, target=target)
    page = check_page(render_release(content, files=["release.json"]))
    for words in ("adaptive fit", "With 3 features and 2000 records", "rough moment", "Simulation", "2,000 records"):
        assert words in page
    assert "<b>age" not in page
    assert "hardly" not in page
    files = write_folder(content, tmp_path)
    assert {"report.html", "release.json"} <= set(files)
    name = f"{kind}.csv" if kind in ("means", "components", "regression") else "matrix.csv"
    assert name in files
    assert mdp.from_json((tmp_path / "release.json").read_text()).to_json() == release.to_json()


def test_an_adaptive_release_shows_what_it_can():
    with pytest.raises(ParameterError, match="kind must be means, covariance"):
        make_content(adaptive(), "table")
    with pytest.raises(ParameterError, match="target must be given"):
        make_content(adaptive(), "regression")


@pytest.mark.parametrize(
    ("epsilon", "words"),
    [
        (0.5, "Small privacy loss: someone who sees this release learns little about whether"),
        (2.0, "Moderate privacy loss: someone who sees this release can learn something about whether"),
        (20.0, "Large privacy loss, weak protection: someone who sees this release may find out whether"),
    ],
)
def test_the_guarantee_is_worded_by_its_strength(epsilon, words):
    assert words in render_release(make_content(adaptive(epsilon=epsilon), "correlation"))
    design = mdp.make_design(mdp.Moments(mdp.Bounds([0], [1]), 10), mdp.Privacy(epsilon, 1e-6))
    assert words in render_release(make_content(design.release(np.zeros((10, 1)))))


def test_a_large_delta_is_pointed_out():
    page = render_release(make_content(adaptive(delta=0.01), "correlation"))
    assert "Delta 0.01 is above 1/2000" in page


@pytest.mark.parametrize("kind", ["matrix", "covariance"])
def test_means_of_columns_without_names_are_shown_between_their_bounds(kind):
    design = mdp.make_design(mdp.Moments(mdp.Bounds([0, 0], [1, 1]), 50), mdp.Privacy(1, 1e-6))
    released = design.release(np.full((50, 2), 0.5), stream=mdp.Stream(0), simulation=True)
    assert render_release(make_content(released, kind)).count('class="strip"') == 2
