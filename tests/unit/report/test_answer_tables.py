"""Reports on the moments of a table: their words, their numbers, and what noise hides."""

import csv
import json
import re
from html import unescape
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.answers.table_forecast import TableForecast
from matrixdp.domain.schema import TableDescription
from matrixdp.errors import ParameterError
from matrixdp.report.answers import make_answers
from matrixdp.report.content import make_content
from matrixdp.report.page import write_words
from matrixdp.report.release_folder import write_folder
from matrixdp.report.release_page import render_release

COLUMNS = mdp.Columns(
    [
        mdp.Number("age", 0, 100, missing=True),
        mdp.Number("bmi", 10, 50),
        mdp.Category("ward", ("north", "south", "=east")),
        mdp.YesNo("smoker"),
        mdp.Category("outcome", ("well", "ill"), missing=True),
    ]
)
RECORDS = 3000


def make_data():
    rng = np.random.default_rng(0)
    age = rng.uniform(20, 80, RECORDS)
    age[rng.random(RECORDS) < 0.2] = np.nan
    return {
        "age": age,
        "bmi": rng.uniform(20, 30, RECORDS),
        "ward": ["=east", *rng.choice(["north", "south"], RECORDS - 1)],
        "smoker": rng.random(RECORDS) < 0.25,
        "outcome": [None if chance < 0.1 else "ill" for chance in rng.random(RECORDS)],
    }


def make_release(by=(), neighbours="replace", epsilon=2, **options):
    query = mdp.TableMoments(COLUMNS, RECORDS, by=by, neighbours=neighbours)
    design = mdp.make_design(query, mdp.Privacy(epsilon, 1e-6))
    return design.release(make_data(), stream=mdp.Stream(0), simulation=True, **options)


# What the data of seed 0 and the stream of seed 0 give.
GOLDEN_MEANS = [
    "column | mean | standard deviation | share observed",
    "age | 49.94 ± 0.30 | 17.57 ± 0.51 | 0.7985 ± 0.0085",
    "bmi | 24.97 ± 0.10 | 2.87 [1.73, 3.67] | 1",
    "Line under a mean: from the lower to the upper bound of its column; bar: its 95% interval.",
    "Values outside the bounds (age 0 to 100, bmi 10 to 50) were moved to the bounds before anything was "
    "computed. How many there were is private and is not recorded.",
    "Missing values: each number is computed from the records with a value in all of its columns, and nothing is "
    "filled in. That describes all records only if values are missing at random.",
]
GOLDEN_FINDINGS = [
    "No mean differs between groups by more than noise can explain.",
    "The error bars of the 2 means are 0.25% to 0.3% of the ranges between their bounds.",
    "The largest released share of smoker is that of no: 0.7531 ± 0.0035.",
]
GOLDEN_GROUPS = [
    "ward | share of records | age | bmi",
    "north | 0.5178 ± 0.0024 | 50.17 ± 0.34 | 25.13 ± 0.11",
    "south | 0.4838 ± 0.0024 | 49.99 ± 0.36 | 24.86 ± 0.12",
    "=east | 0 [0, 0.0038] | 51 [0, 100] | 31 [10, 50]",
    "Bars: 95% intervals.",
]


class Text(HTMLParser):
    """The lines of text of a page, one for each row of a table, heading, paragraph or item."""

    def __init__(self, page):
        super().__init__()
        self.lines, self.skipped = [""], 0
        self.feed(re.sub(r"<(style|svg)\b.*?</\1>", "", page, flags=re.DOTALL))

    def handle_starttag(self, tag, attributes):
        if tag in ("h1", "h2", "h3", "p", "tr", "li", "title", "footer"):
            self.lines.append("")
        if tag in ("td", "th") and self.lines[-1]:
            self.lines[-1] += " | "

    def handle_data(self, data):
        self.lines[-1] += unescape(data)


def read_section(page, title):
    """The lines of text of one section of a page, or of one fold."""
    section = re.search(rf"<section[^>]*><h2>{re.escape(title)}</h2>(.*?)</section>", page, re.DOTALL)
    section = section or re.search(rf"<summary>{re.escape(title)}</summary>(.*?)</details>", page, re.DOTALL)
    assert section, f"there is no section {title!r}"
    return [line for line in Text(section[1]).lines if line]


def test_the_report_of_a_simulation_is_this_text():
    page = render_release(make_content(make_release(by=["ward"]), "means"), files=["means.csv"])
    assert [line.replace("\xa0", " ") for line in read_section(page, "Findings")] == GOLDEN_FINDINGS
    assert read_section(page, "Means") == GOLDEN_MEANS
    assert read_section(page, "Groups by ward") == GOLDEN_GROUPS
    assert read_section(page, "ward: =east")[1:4] == [
        "column | mean | standard deviation | share observed",
        "age | 51 [0, 100] | 25 [0, 50] | 0.5 [0, 1]",
        "bmi | 31 [10, 50] | 10 [0, 20] | 1",
    ]
    shares = [line.split(" | ") for line in read_section(page, "ward: =east")[-3:]]
    assert [level for level, _ in shares] == ["well", "ill", "missing"]
    assert all(shown.endswith(" [0, 1]") for _, shown in shares)
    explained = read_section(page, "How to read it")
    assert explained[-1:] == write_words("findings")
    assert [line for line in explained if "are the ends of a 95% interval" in line]
    assert not [line for line in explained if "A number after ~" in line]


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("by", [(), ("ward",), ("ward", "smoker")])
@pytest.mark.parametrize("kind", ["means", "everything", "covariance", "correlation"])
def test_no_noise_makes_a_report_fail(tmp_path, kind, by, neighbours):
    release = make_release(by, neighbours)
    shape, finish = release.matrix.shape, release.design.query.finish
    extremes = (np.zeros(shape), -np.ones(shape), np.random.default_rng(0).normal(0, 1e6, shape))
    for matrix in (release.matrix, *map(finish, extremes)):
        content = make_content(mdp.Release(matrix, release.design), kind)
        page = render_release(content)
        assert "nan" not in page.lower().replace("finance", "")
        assert "inf " not in page
        for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
            ElementTree.fromstring(svg)
    write_folder(content, tmp_path)


def test_answers_of_all_groups_are_in_the_files(tmp_path):
    files = write_folder(make_content(make_release(by=["ward"]), "everything"), tmp_path)
    assert {"means.csv", "groups.csv", "table.csv", "correlation.svg", "release.json", "report.html"} <= set(files)
    with (tmp_path / "means.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert {line["ward"] for line in lines} == {"", "north", "south", "'=east"}  # a spreadsheet runs no formula
    hidden = [line for line in lines if line["ward"] == "'=east" and line["column"] == "mean"]
    assert len(hidden) == 2
    for line in hidden:
        assert line["std"] == line["note"] == ""
        assert float(line["low"]) < float(line["value"]) < float(line["high"])


def test_groups_are_counted_by_categories_in_the_report():
    content = make_content(make_release(by=["ward"]), "everything")
    titles = [answer.title for answer in content.answers if answer.name == "table" and not answer.group]
    assert titles == ["Records by smoker and outcome", "Records by ward and smoker", "Records by ward and outcome"]
    groups = [answer for answer in content.answers if answer.name == "table" and answer.group]
    assert {answer.title for answer in groups} == {"Records by smoker and outcome"}
    one = content.answers[[answer.title for answer in content.answers].index("Records by ward and smoker")]
    assert one.estimate["all", "all"] == pytest.approx(RECORDS)
    assert "Records by ward and smoker" in render_release(content)


def test_replaced_values_are_named_beside_the_numbers():
    release = make_release(missing="midpoint")
    assert "REPLACED" in str(release)
    again = mdp.Release.from_json(release.to_json())
    assert again.missing == "midpoint"
    page = render_release(make_content(again, "means"))
    assert any("biases" in line for line in read_section(page, "Means"))
    assert "midpoint" not in render_release(make_content(make_release(), "means"))
    assert "missing" not in json.loads(make_release().to_json())


def test_a_forecast_has_the_tables_of_a_release():
    release = make_release(by=["ward"])
    forecast = TableForecast(release.design, TableDescription(shares={"smoker": {"yes": 0.25}}))
    predicted, found = (make_answers(source, "everything") for source in (forecast, release))
    assert [(one.name, one.title, one.group) for one in predicted] == [
        (one.name, one.title, one.group) for one in found
    ]
    for one, other in zip(predicted, found, strict=True):
        assert (one.estimate.rows, one.estimate.columns) == (other.estimate.rows, other.estimate.columns)
        assert one.estimate.std.shape == other.estimate.std.shape
    shares, released = (next(one for one in some if one.title == "Levels of smoker") for some in (predicted, found))
    assert shares.estimate.value[:, 0] == pytest.approx([0.75, 0.25], rel=1e-4)
    assert shares.estimate.std == pytest.approx(released.estimate.std)


def test_kinds_of_tables_need_a_table():
    bounds = mdp.Bounds([0], [1], names=["x"])
    release = mdp.make_design(mdp.Moments(bounds, 100), mdp.Privacy(1, 1e-6)).release(np.zeros((100, 1)))
    with pytest.raises(ParameterError, match="moments of a table"):
        make_content(release, "everything")
