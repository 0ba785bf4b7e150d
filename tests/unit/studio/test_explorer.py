"""The explorer of a release: what can be asked of which release, the answers, their texts, code and pictures."""

import datetime
import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.answers.estimate import CUT_NOTE
from matrixdp.display import write_csv
from matrixdp.domain.file_rules import DateRule
from matrixdp.errors import ParameterError
from matrixdp.release.plan import plan
from matrixdp.release.request import Request
from matrixdp.report.advice import list_notes, to_facts
from matrixdp.report.answers import answer_histogram, answer_quantiles, as_answerable
from matrixdp.report.charts import draw_answer
from matrixdp.report.content import find_query
from matrixdp.studio.result_page import (
    KINDS,
    Inquiry,
    answer_question,
    list_choices,
    read_question,
    render_answer,
    to_python,
)

PRIVACY = mdp.Privacy(4, 1e-6)
HOSTILE = '</script><b "x"'


def make_table(count=4000, by=("ward",)):
    rng = np.random.default_rng(0)
    age = rng.uniform(30, 70, count)
    smoker = rng.random(count) < 0.4
    data = {
        "age": np.where(rng.random(count) < 0.2, np.nan, age),
        "bmi": 26 + 0.2 * (age - 50) + 2 * smoker + rng.normal(0, 1, count),
        HOSTILE: rng.choice(["=a", "b\nb"], count),
        "ward": rng.choice(["north", "south"], count),
        "smoker": smoker,
    }
    columns = mdp.Columns(
        [
            mdp.Number("age", 0, 120, missing=True),
            mdp.Number("bmi", 10, 60),
            mdp.Category(HOSTILE, ["=a", "b\nb"]),
            mdp.Category("ward", ["north", "south"]),
            mdp.YesNo("smoker"),
        ]
    )
    import pandas as pd

    design = mdp.make_design(mdp.TableMoments(columns, count, by=by), PRIVACY)
    return design.release(pd.DataFrame(data), stream=mdp.Stream(seed=1), simulation=True)


@pytest.fixture(scope="module")
def table():
    return make_table()


def question(release, **sent):
    return read_question(list(sent.items()), list_choices(release))


def render(release, answer, dates=()):
    return render_answer(find_query(release), answer, dates)


def test_a_table_answers_every_kind_of_question(table):
    choices = list_choices(table)
    assert choices.kinds == tuple(kind for kind in KINDS if kind != "quantiles")
    assert choices.numbers == ("age", "bmi")
    assert choices.splits == ("ward", HOSTILE, "smoker")
    assert choices.groups == {"ward": ("north", "south")}
    for kind in choices.kinds:
        asked = question(table, kind=kind)
        answer = answer_question(table, asked)
        shown = render(table, answer)
        assert shown.count('<th scope="row">') == len(answer.estimate.rows)
        assert HOSTILE not in shown
        for word in ("<script", "nan", "style="):
            assert word not in shown
        for svg in re.findall("<svg.*?</svg>", shown):
            ElementTree.fromstring(svg)
        charted = {"means": "strip", "table": "count", "covariance": "positive", "correlation": "positive"}
        assert charted.get(kind, "positive" if kind == "components" else "p-mark") in shown
        assert any("costs no privacy" in note for note in list_notes(table, answer))
        assert json.loads(json.dumps(to_facts(table, answer), allow_nan=False))["title"] == answer.title
        assert write_csv(answer.estimate).startswith("row,column,value,std,low,high,note\n")


def test_means_of_dates_are_shown_as_dates(table):
    rule = DateRule("bmi", "years", datetime.date(1950, 1, 1))  # as if these were dates
    for kind in ("means", "means_by"):
        answer = answer_question(table, question(table, kind=kind))
        assert re.search(r">19[67]\d-\d\d-\d\d <span", render(table, answer, [rule]))
        assert not re.search(r"19[67]\d-\d\d", render(table, answer))
    assert any(re.search(r">19[67]\d-\d\d-\d\d</text>", chart.svg) for chart in draw_answer(answer, [rule]))


def test_answers_are_those_of_the_library(table):
    by = answer_question(table, question(table, kind="means_by", by="smoker", **{"group.0": "north"}))
    expected = table.means("smoker", {"ward": "north"})
    np.testing.assert_array_equal(by.estimate.value, expected.value)
    np.testing.assert_array_equal(by.estimate.std, expected.std)
    counts = answer_question(
        table, question(table, kind="table", rows="smoker", columns='"' + HOSTILE.replace('"', '\\"') + '"')
    )
    np.testing.assert_allclose(counts.estimate.value, 4000 * table.table("smoker", HOSTILE).value)
    fitted = answer_question(
        table,
        read_question(
            [("kind", "regression"), ("target", "bmi"), ("on", "age"), ("on", "smoker")], list_choices(table)
        ),
    )
    assert fitted.estimate.rows == ("intercept", "age", "smoker=yes")
    np.testing.assert_array_equal(fitted.estimate.value[:, 0], table.regression("bmi", ["age", "smoker"]).coefficients)
    split = answer_question(table, question(table, kind="means_by", by="ward", **{"group.0": "north"}))
    np.testing.assert_array_equal(split.estimate.value, table.means("ward").value)


def test_a_column_of_groups_can_be_rows_or_columns(table):
    asked = question(table, kind="table", rows="smoker", columns="ward", **{"group.0": "north"})
    assert not asked.group  # the answer has all wards
    counts = answer_question(table, asked)
    np.testing.assert_allclose(counts.estimate.value, 4000 * table.table("smoker", "ward").value)
    assert counts.estimate.columns == ("north", "south", "all")
    assert "release.table('smoker', 'ward')" in to_python(asked)
    release = make_table(count=100, by=("ward", "smoker"))
    both = question(release, kind="table", rows="ward", columns=HOSTILE, **{"group.1": "yes"})
    assert both.group == {"smoker": "yes"}


def test_the_first_columns_are_asked_about_by_default(table):
    asked = question(table, kind="table")
    assert asked.columns == {"rows": "ward", "columns": HOSTILE}
    assert question(table, kind="table", rows="smoker").columns["columns"] == "ward"
    assert question(table).kind == "means_by"  # the release is grouped
    assert question(table, kind="regression", on="age").columns == {"target": "age", "on": None}  # the target itself


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        ({"kind": "medians"}, "kind must be one of means"),
        ({"kind": "means_by", "by": "age"}, "must be a category"),
        ({"kind": "table", "rows": "smoker", "columns": "smoker"}, "two different categories"),
        ({"kind": "regression", "target": "smoker"}, "must hold numbers"),
        ({"kind": "regression", "on": "ward"}, "groups the release"),
        ({"kind": "regression", "on": "height"}, "a column must be one of age, bmi"),
        ({"kind": "regression", "chosen": "yes"}, "on must name at least one column"),
        ({"kind": "means", "group.0": "west"}, "group of 'ward' must be one of north, south"),
    ],
)
def test_questions_about_columns_that_there_are_not_are_refused(table, sent, message):
    with pytest.raises(ParameterError, match=message):
        answer_question(table, question(table, **sent))


def test_hidden_answers_have_intervals_and_no_colour():
    release = make_table(count=60)
    asked = question(release, kind="correlation")
    answer = answer_question(release, asked)
    hidden = int((~answer.estimate.reliable).sum())
    assert hidden
    shown = re.findall(r'<td class="weak">(\S+) <span class="bar">(\[[^<]*\])<', render(release, answer))
    assert shown == [("0", "[-1, 1]")] * hidden
    assert f"{CUT_NOTE}." in list_notes(release, answer)
    assert "no colour: hidden by noise" in render(release, answer)


def test_moments_answer_means_and_matrices():
    bounds = mdp.Bounds([0, 0], [1, 1], names=["a", "b"])
    data = np.random.default_rng(0).uniform(size=(500, 2))
    design = mdp.make_design(mdp.Moments(bounds, 500), PRIVACY)
    release = design.release(data, stream=mdp.Stream(seed=1), simulation=True)
    assert list_choices(release).kinds == ("means", "correlation", "covariance")
    for kind in list_choices(release).kinds:
        asked = question(release, kind=kind)
        answer = answer_question(release, asked)
        assert answer.estimate.rows == ("a", "b")
        assert ("strip" if kind == "means" else "legend colours") in render(release, answer)
    assert "release.means()" in to_python(question(release, kind="means"))


def test_an_adaptive_release_answers_questions_about_numbers():
    bounds = mdp.Bounds([0, 0, 0], [1, 1, 1], names=["a", "b", "c"])
    asked = {"epsilon": PRIVACY.epsilon, "delta": PRIVACY.delta, "records": 800, "method": "adaptive"}
    release = plan(Request(schema=bounds, question="regression", target="c", **asked)).sample()
    assert as_answerable(release) is release
    assert list_choices(release).kinds == ("means", "correlation", "covariance", "regression", "components")
    for kind in ("means", "correlation", "covariance"):
        asked = question(release, kind=kind)
        answer = answer_question(release, asked)
        assert answer.estimate.rows == ("a", "b", "c")
        assert "simulation" in answer.notes[0]
        assert ("strip" if kind == "means" else "legend colours") in render(release, answer)
    with pytest.raises(ParameterError, match="the moments of a table"):
        answer_question(release, Inquiry("table", {"rows": "a", "columns": "b"}))
    for columns in ({"target": "x"}, {"target": "a", "on": ["x"]}):
        with pytest.raises(ParameterError, match="'x'"):
            answer_question(release, Inquiry("regression", columns))


def test_other_releases_answer_nothing_further():
    table = mdp.ContingencyTable(["a", "b"], ["c", "d"], records=100)
    release = mdp.make_design(table, PRIVACY).release(([["a", "c"]] * 100), stream=mdp.Stream(seed=1), simulation=True)
    assert as_answerable(release) is None
    choices = list_choices(None)
    assert choices.kinds == ()
    assert "report shows the matrix" in choices.reason


def test_the_same_in_python_prints_the_same(table, tmp_path, monkeypatch, capsys):
    (tmp_path / "release.json").write_text(table.to_json())
    monkeypatch.chdir(tmp_path)
    for sent in (
        {"kind": "means", "group.0": "south"},
        {"kind": "means_by", "by": HOSTILE},
        {"kind": "table"},
        {"kind": "correlation"},
        {"kind": "regression", "on": "bmi"},
    ):
        asked = question(table, **sent)
        exec(to_python(asked), {})  # our own text
        first = capsys.readouterr().out.splitlines()
        assert len(first) > 2
    assert "group={'ward': 'south'}" in to_python(question(table, **{"kind": "means", "group.0": "south"}))


def test_quantiles_and_histograms_are_answered_and_drawn():
    born = mdp.Number("born", 0, 36500, missing=True)
    columns = mdp.Columns([mdp.Number(HOSTILE, 0, 1), born, mdp.Number("n", 0, 64, step=1)])
    query = mdp.TableMoments(columns, 1000, shapes=0.1)
    release = mdp.Release(np.zeros(query.shape), mdp.make_design(query, mdp.Privacy(1, 1e-6)), simulation=True)
    rule = DateRule("born", "days", datetime.date(1900, 1, 1))
    answer = answer_question(release, question(release, kind="quantiles"))
    assert render(release, answer).count('class="strip"') == 9
    assert render(release, answer_quantiles(release, ["born"])).count('class="strip"') == 3
    assert re.search(r"19\d\d-\d\d-\d\d", render(release, answer, [rule]))
    for name in (HOSTILE, "born", "n"):
        (chart,) = draw_answer(answer_histogram(release, name), [rule])
        assert "<script" not in chart.svg
        assert ("1900-01-01 to 1903-" in chart.svg) == (name == "born")
        ElementTree.fromstring(chart.svg)
    with pytest.raises(ParameterError, match="must be a number, one of"):
        answer_histogram(release, "nobody")
    with pytest.raises(ParameterError, match="of all records"):
        answer_histogram(release, "born", {"ward": "north"})


def test_pictures_that_nobody_could_read_are_left_out():
    levels = [f"l{i}" for i in range(67)]
    columns = mdp.Columns([mdp.Number("x", 0, 1), mdp.Category("a", levels), mdp.Category("b", ["c", "d"])])
    release = mdp.Release(
        np.zeros((71, 71)), mdp.make_design(mdp.TableMoments(columns, 1000), mdp.Privacy(1, 1e-6)), simulation=True
    )
    for kind in ("means_by", "table"):
        asked = question(release, kind=kind)
        assert draw_answer(answer_question(release, asked)) == ()
