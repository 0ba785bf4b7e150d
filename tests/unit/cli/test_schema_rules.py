"""Schemas that say how values are written: [files], dates and times; and their releases."""

import csv
import datetime
import re
from pathlib import Path

import openpyxl
import pytest

from matrixdp.domain.schema_file import read_schema

SCHEMA = """\
[files]
decimal = ","
thousands = "."
missing_words = ["NA", "."]

[columns.pay]
lower = 0
upper = 6000
missing = true

[columns.birth]
type = "date"
lower = 1900-01-01
upper = 2020-12-31
format = "%d.%m.%Y"

[columns.start]
type = "time"
lower = 06:00:00
upper = 18:30:00

[columns.ward]
levels = ["a", "b"]
missing = true
"""
ROWS = [["pay", "birth", "start", "ward"], ["1.234,5", "31.12.1950", "07:30", "a"], [".", "01.02.1960", "08:00", "NA"]]
RELEASE = ("--epsilon", 5, "--delta", "1e-6", "--no-ledger", "--out", "out")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("schema.toml").write_text(SCHEMA)
    with Path("data.csv").open("w", newline="") as file:
        csv.writer(file, delimiter=";").writerows([*ROWS, *ROWS[1:] * 400])
    return tmp_path


def test_dates_and_times_are_numbers_with_units(folder, matrixdp):
    schema = read_schema(Path("schema.toml"))
    assert schema.columns["birth"].lower == 0
    assert schema.columns["birth"].upper == (datetime.date(2020, 12, 31) - datetime.date(1900, 1, 1)).days
    assert (schema.columns["start"].lower, schema.columns["start"].upper) == (6, 18.5)
    done = matrixdp("schema", "check", "schema.toml", "--data", "data.csv")
    assert done.code == 0, done.err
    assert "0 to 44194 days since 1900-01-01" in done.out
    assert "6 to 18.5 hours since midnight" in done.out
    facts = matrixdp("schema", "check", "schema.toml", "--json").json()["columns"]
    assert facts["birth"]["meaning"] == "days since 1900-01-01"
    assert "meaning" not in facts["pay"]


def test_releases_say_what_their_numbers_count(folder, matrixdp):
    done = matrixdp("release", "data.csv", "--schema", "schema.toml", "--query", "everything", *RELEASE)
    assert done.code == 0, done.err
    sentence = "birth: a date, shown in days since 1900-01-01; its mean is 19"
    assert sentence in done.out
    assert "start: a time, shown in hours since midnight" in done.out
    assert sentence in Path("out/notes.txt").read_text()
    assert sentence in Path("out/report.html").read_text()
    assert re.search(r"\n  birth +19\d\d-\d\d-\d\d ± [\d,]+ days ", done.out)
    assert re.search(r">19\d\d-\d\d-\d\d <span class=.bar.>± [\d,]+ days<", Path("out/report.html").read_text())


def test_csv_files_have_numbers_and_dates(folder, matrixdp):
    matrixdp("release", "data.csv", "--schema", "schema.toml", "--query", "everything", *RELEASE)
    rules = {rule.name: rule for rule in read_schema(Path("schema.toml")).rules.dates}
    matrixdp("answer", "means", "out", "--by", "ward", "--csv", "answer.csv")
    for path, name in (("out/means.csv", "row"), ("out/means_by_level.csv", "column"), ("answer.csv", "column")):
        found = [one for one in csv.DictReader(Path(path).read_text().splitlines()) if one["row"] != "ward"]
        dates = [one for one in found if one[name] in rules and one["column"] in ("mean", *rules)]
        assert dates
        for one in dates:
            for part in ("value", "low", "high"):
                assert one[f"{part}_as_date"] == rules[one[name]].show(float(one[part])) != ""
        assert not any(one["value_as_date"] for one in found if one not in dates)
    assert "as_date" not in Path("out/correlation.csv").read_text()


def test_stored_releases_answer_with_dates(folder, matrixdp):
    done = matrixdp("release", "data.csv", "--schema", "schema.toml", "--query", "everything", *RELEASE)
    assert "dates.json" in {path.name for path in Path("out").iterdir()}, done.err
    shown = matrixdp("answer", "means", "out")
    assert shown.code == 0, shown.err
    assert re.search(r"\n  birth +19\d\d-\d\d-\d\d ± [\d,]+ days ", shown.out)
    assert re.search(r"\n  start +0[678]:\d\d:\d\d ± \S+ hours ", shown.out)
    assert "birth: a date, counted in days since 1900-01-01." in shown.out
    assert "start:" in matrixdp("answer", "regression", "out", "--target", "start", "--on", "ward").out
    assert "birth:" not in matrixdp("answer", "regression", "out", "--target", "start", "--on", "ward").out
    by_ward = matrixdp("answer", "means", "out/release.json", "--by", "ward")
    assert re.search(r"\n  a .* 19\d\d-\d\d-\d\d ± [\d,]+ days ", by_ward.out)
    Path("alone").mkdir()
    Path("out/release.json").rename("alone/release.json")
    assert " days " not in matrixdp("answer", "means", "alone").out.partition("±")[0]
    Path("alone/dates.json").write_text('{"format": "matrixdp dates 1", "columns": [{"name": "birth"}]}')
    wrong = matrixdp("answer", "means", "alone")
    assert wrong.code == 2
    assert "must be a file that matrixdp wrote" in wrong.err


@pytest.mark.parametrize("method", ["adaptive", "plain"])
def test_a_covariance_says_so_too(folder, matrixdp, method):
    columns = ("--query", "covariance", "--columns", "birth,start", "--method", method)
    done = matrixdp("release", "data.csv", "--schema", "schema.toml", *columns, *RELEASE)
    assert done.code == 0, done.err
    assert re.search(r"start: a time, shown in hours since midnight; its mean is 0[678]:", done.out)
    assert "birth: a date, shown in days since 1900-01-01; its mean is 19" in Path("out/report.html").read_text()


def test_columns_that_are_not_released_have_no_units(folder, matrixdp):
    columns = ("--columns", "pay,ward")
    done = matrixdp("release", "data.csv", "--schema", "schema.toml", "--query", "everything", *columns, *RELEASE)
    assert done.code == 0, done.err
    assert "since" not in done.out


def test_people_are_counted_by_the_same_rules(folder, matrixdp):
    with Path("data.csv").open("w", newline="") as file:
        rows = [[*row, i // 2] for i, row in enumerate(ROWS[1:] * 300)]
        csv.writer(file, delimiter=";").writerows([[*ROWS[0], "who"], *rows])
    query = ("--query", "everything", "--person", "who")
    done = matrixdp("release", "data.csv", "--schema", "schema.toml", *query, *RELEASE)
    assert done.code == 0, done.err


def test_a_new_schema_names_its_sheet(folder, matrixdp):
    book = openpyxl.Workbook()
    book.active.append(["unused"])
    sheet = book.create_sheet('The "data"')
    sheet.append(["secret", *ROWS[0]])
    sheet.append([77, 1, datetime.date(1950, 1, 1), None, "a"])
    book.save("data.xlsx")
    assert "\nunused = {" in matrixdp("schema", "new", "data.xlsx", "--sheet", "Sheet").out
    proposed = matrixdp("schema", "new", "data.xlsx").out  # the first sheet with a table
    assert 'sheet = "The \\"data\\""    # Is this the sheet with the table?' in proposed
    assert "\nbirth = {" in proposed
    done = matrixdp("schema", "new", "data.xlsx", "--sheet", 'The "data"', "-o", "new.toml")
    assert done.code == 0, done.err
    text = Path("new.toml").read_text()
    assert "\nbirth = {" in text
    assert "77" not in text
    assert "1950" not in text
    Path("new.toml").write_text(text.partition("\n[columns]")[0] + "\n[columns.pay]\nlower = 0\nupper = 1\n")
    done = matrixdp("schema", "check", "new.toml", "--data", "data.xlsx")
    assert done.code == 0, done.err
    assert read_schema(Path("new.toml")).rules.sheet == 'The "data"'


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("lower = 1900-01-01", 'lower = ""', "column 'birth' has no lower bound yet"),
        ("lower = 1900-01-01", 'lower = "1900-01-01"', "lower must be a date without quotes, as in"),
        ("lower = 1900-01-01", "lower = 2021-01-01", "column 'birth'"),
        ("lower = 1900-01-01", "lower = 1900-01-01T00:00:00Z", "must have no zone"),
        ("lower = 06:00:00", "lower = 6", "lower must be a time, as in 07:30:00, got 6 instead"),
        ("lower = 06:00:00", "lower = 06:00:00\norigin = 1900-01-01", "unknown entry 'origin'"),
        ("lower = 06:00:00", 'lower = 06:00:00\nunit = "weeks"', "must be one of seconds, hours, days, years"),
        ("lower = 06:00:00", "lower = 06:00:00\nunit = 1", "unit must be a text"),
        ('decimal = ","', "decimal = 1", "[files] decimal must be a text"),
        ('decimal = ","', 'decimal = "."', "[files] thousands must be"),
        ('decimal = ","', 'comma = "."', "unknown entry 'comma'"),
        ('["NA", "."]', '"NA"', "missing_words must be a list of texts"),
        ('["NA", "."]', '[" N"]\n[columns.smoker]\ntype = "yes/no"', "' N', which means yes or no in column 'smoker'"),
        ('["NA", "."]', '["a"]', "also a level of column 'ward'"),
        ('levels = ["a", "b"]', "levels = 3", "levels must be a list"),
        ("[columns.pay]", "[columns]\npay = 3\n[columns.more]", "must be { type"),
    ],
)
def test_wrong_entries_are_named(folder, matrixdp, old, new, words):
    assert old in SCHEMA
    Path("schema.toml").write_text(SCHEMA.replace(old, new))
    done = matrixdp("schema", "check", "schema.toml")
    assert done.code == 2
    assert words in done.err
    assert "schema.toml" in done.err


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (0, "1,234.5", "column 'pay' must hold numbers"),
        (1, "1950-12-31", "column 'birth' must hold dates, written as '%d.%m.%Y'"),
        (2, "24:30", "column 'start' must hold times"),
        (3, ".a", "column 'ward' has a value that is not among its levels"),
    ],
)
def test_values_that_do_not_fit_are_not_shown(folder, matrixdp, place, value, words):
    row = [*ROWS[1][:place], value, *ROWS[1][place + 1 :]]
    with Path("data.csv").open("a", newline="") as file:
        csv.writer(file, delimiter=";").writerow(row)
    done = matrixdp("release", "data.csv", "--schema", "schema.toml", "--query", "everything", *RELEASE)
    assert done.code != 0
    assert f"data.csv: {words}" in done.err
    assert value not in done.err
    assert not Path("out").exists()
