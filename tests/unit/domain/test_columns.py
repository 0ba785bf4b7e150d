"""The description of a table, and its errors."""

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.serialise import from_json_content, to_json_content

TABLE = mdp.Columns(
    [
        mdp.Number("age", 0, 120, missing=True),
        mdp.Category("ward", ["a", "b"], other=True, missing=True),
        mdp.YesNo("smoker", missing=True),
        mdp.Category("year", np.array([2020, 2021])),
    ]
)
SEASONS = [mdp.Category("season", ["winter", "summer"]), mdp.Category("month", [1, 7, 8])]


def test_columns_are_found_by_name_and_kind():
    assert TABLE.names == ("age", "ward", "smoker", "year")
    assert [one.name for one in TABLE] == list(TABLE.names)
    assert [one.name for one in TABLE.numbers] == ["age"]
    assert [one.name for one in TABLE.categories] == ["ward", "smoker", "year"]
    assert TABLE["age"] is TABLE.number("age")
    assert TABLE.category("ward").level_names == ("a", "b", "other", "missing")
    assert TABLE.category("smoker").level_names == ("no", "yes", "missing")
    assert TABLE.category("year").levels == (2020, 2021)
    assert TABLE.without(["age", "year"]).names == ("ward", "smoker")
    assert TABLE.bounds.upper.tolist() == [120]
    assert TABLE.without(["age"]).bounds is None


def test_a_short_form():
    number = mdp.Number("h", 0, 1, missing=True)
    found = mdp.Columns.from_dict({"age": (0, 120), "ward": ["a", "b"], "smoker": bool, "h": number})
    assert found.columns == (
        mdp.Number("age", 0, 120),
        mdp.Category("ward", ["a", "b"]),
        mdp.YesNo("smoker"),
        number,
    )
    with pytest.raises(mdp.ParameterError, match="column 'age' must be a tuple"):
        mdp.Columns.from_dict({"age": 3})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mdp.Number("", 0, 1), "name of a column"),
        (lambda: mdp.Number(3, 0, 1), "name of a column"),
        (lambda: mdp.Number("x", "0", 1), "lower of column 'x' must be a number"),
        (lambda: mdp.Number("x", 0, True), "upper of column 'x' must be a number"),
        (lambda: mdp.Number("x", 1, 0), "column 'x': lower must be below upper"),
        (lambda: mdp.Number("x", 0, np.inf), "column 'x': upper must be finite"),
        (lambda: mdp.Number("x", 0, 1e61), "change the units"),
        (lambda: mdp.Number("x", 0, 1, missing=1), "missing of column 'x' must be True or False"),
        (lambda: mdp.Number("x", 0, 10, step=3), "step of column 'x' must divide the distance of its bounds, 10, into"),
        (lambda: mdp.Number("x", 0, 10, step=20), "step of column 'x' must divide"),
        (lambda: mdp.Number("x", 0, 10, step=0), "step must be finite and greater than 0"),
        (
            lambda: mdp.Columns(SEASONS, impossible=[{"season": "winter"}]),
            "impossible must be a list of two categories",
        ),
        (lambda: mdp.Columns(SEASONS, impossible={"season": "winter", "month": 7}), "impossible must be a list of two"),
        (lambda: mdp.Columns(SEASONS, impossible=[{"season": "spring", "month": 7}]), "must be among winter, summer"),
        (lambda: mdp.Columns(SEASONS, impossible=[{"season": "winter", "month": []}]), "must be among 1, 7, 8"),
        (lambda: mdp.Columns(SEASONS, impossible=[{"season": "winter", "x": 1}]), "impossible: there is no column 'x'"),
        (lambda: mdp.Category("c", "ab"), "must be a list of texts or integers"),
        (lambda: mdp.Category("c", 3), "must be a list of texts or integers"),
        (lambda: mdp.Category("c", []), "at least one text or integer"),
        (lambda: mdp.Category("c", ["a", 1]), "all texts or all integers"),
        (lambda: mdp.Category("c", [True, False]), "all texts or all integers"),
        (lambda: mdp.Category("c", [1.5]), "all texts or all integers"),
        (lambda: mdp.Category("c", ["a", ""]), "must not be empty"),
        (lambda: mdp.Category("c", ["a", "a"]), "'a' twice"),
        (lambda: mdp.Category("c", ["a", "other"], other=True), "'other' twice"),
        (lambda: mdp.Category("c", ["a", "missing"], missing=True), "'missing' twice"),
        (lambda: mdp.Category("c", ["a"], other="yes"), "other of column 'c' must be True or False"),
        (lambda: mdp.Category("c", range(10_001)), "at most 10,000 levels"),
        (lambda: mdp.YesNo("c", missing=None), "missing of column 'c'"),
        (lambda: mdp.Columns([]), "at least one"),
        (lambda: mdp.Columns({"a": bool}), "use from_dict"),
        (lambda: mdp.Columns([("a", 0, 1)]), "must be Number, Category or YesNo"),
        (lambda: mdp.Columns([mdp.YesNo("a"), mdp.Number("a", 0, 1)]), "column 'a' is described twice"),
        (lambda: TABLE["nobody"], "no column 'nobody'; the columns are age, ward"),
        (lambda: TABLE.category("age"), "must be a category"),
        (lambda: TABLE.number("ward"), "must hold numbers"),
    ],
)
def test_mistakes_are_answered(make, message):
    with pytest.raises(mdp.ParameterError, match=message):
        make()


def test_impossible_pairs_are_kept_with_both_columns_and_in_json():
    table = mdp.Columns(SEASONS, impossible=[{"season": "winter", "month": [7, 8]}])
    assert table.impossible == ((("season", ("winter",)), ("month", ("7", "8"))),)
    assert from_json_content(to_json_content(table)) == table
    assert table.pick(["month", "season"]).impossible == table.impossible
    assert table.without(["month"]).impossible == ()
    assert "impossible" not in to_json_content(table.without(["month"]))  # as releases have it that do not know of them


def test_a_step_is_whole_up_to_rounding_and_shown():
    assert mdp.Number("x", 0, 0.7, step=0.1).step == 0.1
    assert "in steps of 1" in mdp.Columns([mdp.Number("x", 0, 9, step=1)])._repr_html_()
    assert "step" not in to_json_content(mdp.Number("x", 0, 9))
