"""How numbers, names, dates and representations are written."""

import datetime

import numpy as np
import pytest

from matrixdp import Category
from matrixdp.display import (
    Numbers,
    choose_decimals,
    escape_text,
    find_firm,
    format_estimate,
    format_number,
    format_numbers,
    format_range,
    format_table,
    join_words,
    make_visible,
    quote_formula,
)
from matrixdp.domain.file_rules import DateRule
from matrixdp.intervals import interval
from matrixdp.plots import clean_label
from matrixdp.report.dates import show_date
from matrixdp.report.guarantee import describe_odds
from matrixdp.report.pictures import shade_entries
from matrixdp.report.provenance import note_approval, split_approval
from matrixdp.report.svg import Scale, element

BIRTH = DateRule("birth", "days", datetime.date(1900, 1, 1))


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ([format_number(value) for value in (1234567.0, 0.04999, -12.0, 0.0)], ["1.23e6", "0.05", "-12", "0"]),
        (format_estimate(12.3456, 0.0312), ("12.346", "0.031")),
        (format_estimate(158.2, 34.0), ("158", "34")),
        (format_estimate(1.0, 0.0), ("1", "")),
        (format_estimate(-0.001, 0.12), ("0.00", "0.12")),  # no negative zero
        (format_estimate(0.7071, 5e-15), ("0.7071", "")),  # an error of rounding
        (format_estimate(12345.678, 0.25, 1), ("12,345.7", "0.2")),
        (format_range(0.3123, -0.2154, 1.0, plausible=True), ("~0.31", "[-0.22, 1]")),
        (format_range(0.0, 0.0, 18.62, plausible=False), ("0", "[0, 18.6]")),
        (format_range(7.9, 0.0, 1923.9, 0, plausible=False, commas=True), ("8", "[0, 1,924]")),
        (choose_decimals(np.array([48.0, 23.0]), np.array([0.080, 0.053])), 3),
        (choose_decimals(np.array([48.0, 23.0]), np.array([20.0, 3.0])), 0),
        ([quote_formula(name) for name in ("age", "=1+1", "-1")], ["age", "'=1+1", "-1"]),
        (join_words(["age", "bmi", "sex"]), "age, bmi and sex"),
        (make_visible("age\x1b[31m\n"), "age\\x1b[31m\\n"),
        (escape_text("a<b\x07"), "a&lt;b\\x07"),
        (clean_label("cost in $\a"), "cost in \\$\\x07"),
        (element("rect", x=1, stroke_width=0.5), '<rect x="1" stroke-width="0.5"/>'),
        (show_date(BIRTH, 21275.4, 12.34), "1958-04-02 ± 12 days"),
        (show_date(BIRTH, 21275.4, float("nan"), 0.0, 36524.0), "1958-04-02 [1900-01-01, 2000-01-01]"),
        (split_approval(note_approval("annual report (draft)", "carol")), ("annual report (draft)", "carol")),
        (split_approval("annual report"), ("annual report", "")),
        (
            describe_odds(1.0, 1e-6),
            "It changes the odds of any conclusion about one record by at most a factor of 2.72, except with "
            "probability 1e-06: an even chance becomes at most 73.2%.",
        ),
        (
            repr(Category("ward", [f"w{number}" for number in range(100)])),
            "Category(name='ward', levels=('w0', 'w1', 'w2', 'w3', 'w4', ... 95 more))",
        ),
        (
            format_table(["feature", "std"], [["age", "0.5"], ["weight", "12"]]).splitlines(),
            ["  feature  std", "  ───────  ───", "  age      0.5", "  weight    12"],
        ),
        (
            format_numbers(Numbers(np.array([[1.0, 0.25]]), np.array([[0.0, 0.1]]), ["a"], ["x", "y"])).splitlines(),
            ["     x            y", "  ─  ─  ───────────", "  a  1  0.25 ± 0.10"],
        ),
    ],
)
def test_it_is_written_as_expected(written, expected):
    assert written == expected


def test_numbers_of_scales_shades_and_intervals():
    assert Scale(-1.1, 1.1).ticks() == [-1.0, -0.5, 0.0, 0.5, 1.0]
    assert Scale(0.02, 30.0, log=True).ticks() == [0.1, 1.0, 10.0]
    firm = [find_firm(np.array([2.1, 3.5]), np.ones(2), among).tolist() for among in (1, 100)]
    assert firm == [[True, True], [False, True]]
    shading = shade_entries(np.array([[1.0, -0.5, 0.1]]), np.array([[0.0, 0.1, 0.1]]))
    assert shading.hue.tolist() == [["fixed", "negative", "positive"]]
    assert shading.weak.tolist() == [[False, False, True]]
    assert shading.limit == 0.5
    low, high = interval(np.array([0.5, -1.0]), np.array([0.1, 1.0]), possible=(np.zeros(2), np.ones(2)))
    assert (low.round(3).tolist(), high.round(3).tolist()) == ([0.304, 0.0], [0.696, 0.96])
