"""Files as people have them: separators, compression, workbooks, dates, decimal commas and words for missing values."""

import datetime as dt
import gzip

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.domain.file_rules import ColumnRule
from matrixdp.records import DateRule, FileRules, open_records
from matrixdp.records.file_values import apply_rules, parse_moment, read_values
from matrixdp.records.files import open_files
from matrixdp.records.formats import CsvFile
from unit.records.conftest import read_columns

RECORDS = 200
NAMES = ["pay", "birth", "start", "ward", "smoker", "score"]
BIRTH = DateRule("birth", "years", dt.date(1900, 1, 1))
START = DateRule("start", "hours")
COLUMNS = mdp.Columns(
    [
        mdp.Number("pay", 0, 6000),
        mdp.Number("birth", BIRTH.number(dt.date(1910, 1, 1)), BIRTH.number(dt.date(2020, 12, 31))),
        mdp.Number("start", 0, 24),
        mdp.Category("ward", ["a", "b"]),
        mdp.YesNo("smoker"),
        mdp.Number("score", 0, 100, missing=True),
    ]
)
PLAIN = FileRules(dates=(BIRTH, START), missing_words=["NA"], sheet="Data")
GERMAN = FileRules(
    decimal=",",
    thousands=".",
    missing_words=["."],
    dates=(DateRule("birth", "years", dt.date(1900, 1, 1), "%d.%m.%Y"), DateRule("start", "hours", None, "%H Uhr %M")),
)
SECRET = "77.7654321"


def make_rows():
    rng = np.random.default_rng(3)
    day, minute = dt.timedelta(days=1), dt.timedelta(minutes=1)
    for _ in range(RECORDS):
        yield (
            round(float(rng.uniform(0, 5000)), 2),
            dt.date(1900, 3, 1) + int(rng.integers(50_000)) * day,
            (dt.datetime(2000, 1, 1) + int(rng.integers(24 * 60)) * minute).time(),
            str(rng.choice(["a", "b"])),
            bool(rng.integers(2)),
            None if rng.random() < 0.2 else float(rng.integers(100)),
        )


def as_text(rows, separator=",", *, number=repr, date="%Y-%m-%d", time="%H:%M:%S", words=("TRUE", "FALSE"), missing=""):
    lines = [separator.join(NAMES)]
    for pay, birth, start, ward, smoker, score in rows:
        values = [number(pay), birth.strftime(date), start.strftime(time), ward, words[not smoker]]
        lines.append(separator.join([*values, missing if score is None else number(score)]))
    return "\n".join(lines) + "\n"


def german(value):
    return f"{value:,.2f}".translate(str.maketrans(",.", ".,"))


@pytest.fixture
def folder(tmp_path):
    """The same table in every format."""
    rows = list(make_rows())
    columns = dict(zip(NAMES, map(list, zip(*rows, strict=True)), strict=True))
    pq.write_table(pa.table(columns), tmp_path / "t.parquet", row_group_size=70)
    stamps = pa.array(columns["birth"]).cast(pa.timestamp("ns"))
    odd = pa.table(columns | {"birth": stamps, "ward": pa.array(columns["ward"]).dictionary_encode()})
    pq.write_table(odd, tmp_path / "odd.parquet")
    text = as_text(rows)
    (tmp_path / "t.csv").write_text(text)
    (tmp_path / "t.tsv").write_text(as_text(rows, "\t", words=("yes", "no"), missing="NA"))
    (tmp_path / "tab.csv").write_text(as_text(rows, "\t", words=("T", "F"), missing="NA"))
    (tmp_path / "bar.txt").write_text(as_text(rows, "|", words=("1", "0")))
    (tmp_path / "german.csv").write_text(
        as_text(rows, ";", number=german, date="%d.%m.%Y", time="%H Uhr %M", missing=".")
    )
    with gzip.open(tmp_path / "t.csv.gz", "wt") as file:
        file.write(text)
    with pa.CompressedOutputStream(str(tmp_path / "t.tsv.zst"), "zstd") as file:
        file.write(text.replace(",", "\t").encode())
    book = openpyxl.Workbook()
    book.active.append(["unused"])
    sheet = book.create_sheet("Data")
    sheet.append([*NAMES, None, None])
    for i, row in enumerate(rows):
        sheet.append([*row, "a remark beside the table"] if i == 3 else row)
        if i == 5:
            sheet.append([])
    sheet.append([None] * 6)
    book.save(tmp_path / "t.xlsx")
    return tmp_path


def integers(path, rules):
    query = mdp.TableMoments(COLUMNS, RECORDS)
    return query.evaluate(open_records(path, rules=rules, workers=2), clip=True, missing="error")


@pytest.mark.parametrize(
    "name", ["t.csv", "t.tsv", "tab.csv", "bar.txt", "german.csv", "t.csv.gz", "t.tsv.zst", "t.xlsx", "odd.parquet"]
)
def test_all_formats_give_the_same_integers(folder, name):
    found = integers(folder / name, GERMAN if name == "german.csv" else PLAIN)
    assert np.array_equal(found, integers(folder / "t.parquet", PLAIN))
    assert open_files(folder / name, rules=PLAIN).count() == RECORDS


@pytest.mark.parametrize("name", ["t.csv.gz", "t.tsv.zst", "t.xlsx"])
def test_damaged_files_are_refused(folder, name):
    path = folder / name
    path.write_bytes(path.read_bytes()[:-700])
    with pytest.raises(mdp.DataError, match=rf"{name} (cannot be read|has no)"):
        integers(path, PLAIN)


@pytest.mark.parametrize(
    ("line", "separator"),
    [
        ("a,b", ","),
        ("a;b", ";"),
        ("a\tb", "\t"),
        ("a|b", "|"),
        ("a", ","),
        ("weight, kg;height, cm;age", ","),  # as many commas as semicolons
        ('"weight, kg";"height, cm"', ";"),
        ('"a\n,,,,""b";c', ";"),
        ('a 5" pipe;b', ";"),
    ],
)
def test_only_the_first_line_decides_the_separator(tmp_path, line, separator):
    path = tmp_path / "a.csv"
    for records in ("", "\n1,2,3,4,5,6\n", "\r\n1;2;3;4;5\n", "\n\t\t\t\t\n"):
        path.write_text(line + records, newline="")
        assert CsvFile(str(path), "a.csv").read_head()[0] == separator


def test_a_first_line_without_end_is_refused(tmp_path):
    with gzip.open(tmp_path / "a.csv.gz", "wb") as file:
        file.write(b"a" * (5 << 20))
    with pytest.raises(mdp.DataError, match="first line of more than 4 MiB"):
        open_files(tmp_path / "a.csv.gz").column_names()


def read_numbers(tmp_path, text, **rules):
    (tmp_path / "a.csv").write_text(f"a;b\n{text};1\n")
    (column, _) = read_columns(open_files(tmp_path / "a.csv", rules=FileRules(**rules)), ["a", "b"])
    return column[0]


@pytest.mark.parametrize(
    ("text", "rules", "value"),
    [
        ("1,5", {"decimal": ","}, 1.5),
        ("1.234,5", {"decimal": ",", "thousands": "."}, 1234.5),
        ("-1.234.567", {"decimal": ",", "thousands": "."}, -1234567.0),
        ("1234,5", {"decimal": ",", "thousands": "."}, 1234.5),
        ("1 234.5", {"thousands": " "}, 1234.5),
        ("1'234", {"thousands": "'"}, 1234.0),
        ("NA", {}, None),
        (".", {"missing_words": ["."]}, None),
        (".", {"missing_words": ["."], "thousands": ","}, None),
        ("", {"missing_words": []}, None),
    ],
)
def test_numbers_are_read_by_the_rules(tmp_path, text, rules, value):
    assert read_numbers(tmp_path, text, **rules) == value


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        (SECRET.replace(".", ","), {}),
        (SECRET, {"decimal": ","}),
        ("1.5", {"decimal": ",", "thousands": "'"}),
        ("12.34", {"decimal": ",", "thousands": "."}),  # not a group of three digits
        ("1.2345", {"decimal": ",", "thousands": "."}),
        ("1.234.5", {"decimal": ",", "thousands": "."}),
        ("NA", {"missing_words": ["."]}),
        ("TRUE", {}),
    ],
)
def test_other_texts_are_errors_that_do_not_show_them(tmp_path, text, rules):
    with pytest.raises(mdp.DataError, match=r"a\.csv: column 'a' must hold numbers") as error:
        read_numbers(tmp_path, text, **rules)
    assert error.value.__context__ is None
    with pytest.raises(mdp.DataError) as other:
        read_numbers(tmp_path, "other", **rules)
    assert str(error.value) == str(other.value)  # it depends on the name of the column alone


@pytest.mark.parametrize(
    "text", ["31.02.2020", "2020-02-31", "2020-12-31T00:00:00Z", "tomorrow", "43890", "2020-12-31 24:01"]
)
@pytest.mark.parametrize("layout", [None, "%d.%m.%Y"])
def test_what_is_no_date_is_an_error_that_does_not_show_it(tmp_path, text, layout):
    with pytest.raises(mdp.DataError, match=r"a\.csv: column 'a' must hold dates") as error:
        read_numbers(tmp_path, text, dates=[DateRule("a", "days", dt.date(2020, 1, 1), layout)])
    assert text not in str(error.value)
    assert error.value.__context__ is None


def count_dates(rule, column):
    return apply_rules(FileRules(dates=[rule]), pa.record_batch([column], names=[rule.name])).column(0)


@pytest.mark.parametrize(
    ("values", "number"),
    [
        (pa.array([dt.date(2020, 1, 3)]), 2.0),
        (pa.array([dt.datetime(2020, 1, 1, 12)]), 0.5),
        (pa.array([dt.datetime(2020, 1, 1, 12)]).cast(pa.timestamp("s")), 0.5),
        (pa.array([dt.datetime(2020, 1, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=6)))]), 0.25),
        (pa.array(["2019-12-31 "]), -1.0),
        (pa.array(["2020-01-03"]).dictionary_encode(), 2.0),
        (pa.array([""]), None),
        (pa.array([None]), None),
        (pa.array([None], pa.date32()), None),
    ],
)
def test_dates_are_numbers_since_their_origin(values, number):
    assert count_dates(DateRule("a", "days", dt.date(2020, 1, 1)), values).to_pylist() == [number]


def test_a_folder_may_be_named_by_a_date(tmp_path):
    (tmp_path / "day=2020-01-03").mkdir()
    (tmp_path / "day=2020-01-03" / "a.csv").write_text("x\n5\n")
    source = open_files(tmp_path, rules=FileRules(dates=[DateRule("day", "days", dt.date(2020, 1, 1))]))
    assert read_columns(source, ["day", "x"]) == [[2.0], [5.0]]


@pytest.mark.parametrize(
    ("rule", "number", "shown"),
    [
        (DateRule("a", "days", dt.date(2020, 1, 1)), 30.9, "2020-01-31"),
        (DateRule("a", "hours", dt.datetime(2020, 1, 1, 6)), 7.5, "2020-01-01 13:30:00"),
        (DateRule("a", "days", dt.date(2020, 1, 1)), 1e9, ""),
        (DateRule("a", "days", dt.date(2020, 1, 1)), float("nan"), ""),
        (DateRule("a", "hours"), 7.5, "07:30:00"),
        (DateRule("a", "hours"), -0.5, ""),
    ],
)
def test_means_are_shown_as_dates_where_the_calendar_has_them(rule, number, shown):
    assert rule.show(number) == shown


@pytest.mark.parametrize("extreme", [-(2**63), 2**63 - 1])
def test_extreme_timestamps_do_not_wrap_around(extreme):
    column = pa.array([extreme]).cast(pa.timestamp("us"))
    (found,) = count_dates(DateRule("a", "days", dt.date(2020, 1, 1)), column).to_pylist()
    assert np.sign(found) == np.sign(extreme)
    assert abs(found) > 1e7


@pytest.mark.parametrize("values", [pa.array([1.5]), pa.array([True]), pa.array([[1]])])
def test_columns_of_other_types_are_no_dates(values):
    with pytest.raises(mdp.DataError, match="must hold dates"):
        count_dates(DateRule("a", "days", dt.date(2020, 1, 1)), values)


def test_words_for_missing_values_hold_for_texts_of_all_files(tmp_path):
    texts = pa.array(["x", "NA", "NA.", None, ""])
    for number, column in enumerate([texts, texts.dictionary_encode(), texts.cast(pa.large_string())]):
        pq.write_table(pa.table({"a": column}), tmp_path / f"{number}.parquet")
        source = open_files(tmp_path / f"{number}.parquet", rules=FileRules(missing_words=["NA"]))
        assert read_columns(source, ["a"], as_text=True) == [["x", None, "NA.", None, ""]]
        plain = open_files(tmp_path / f"{number}.parquet")
        assert read_columns(plain, ["a"], as_text=True) == [["x", "NA", "NA.", None, ""]]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: FileRules(decimal=";"), "decimal must be"),
        (lambda: FileRules(thousands="x"), "thousands must be"),
        (lambda: FileRules(decimal=",", thousands=","), "not the same as decimal"),
        (lambda: DateRule("a", "weeks", dt.date(2020, 1, 1)), "unit of column 'a' must be one of"),
        (lambda: DateRule("a", "days", dt.datetime(2020, 1, 1, tzinfo=dt.UTC)), "must have no zone"),
    ],
)
def test_rules_are_checked(make, words):
    with pytest.raises(mdp.ParameterError, match=words):
        make()


def write_book(path, rows):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)


def test_cells_are_read_like_csv(tmp_path):
    path = tmp_path / "a.xlsx"
    write_book(path, [["id", "x"], [7, "NA"], ["007", True], [7.5, " 2 "]])
    source = open_files(path)
    assert source.fields() == {"id": None, "x": None}
    assert read_columns(source, ["id", "x"], as_text=True) == [["7", "007", "7.5"], ["NA", "TRUE", " 2 "]]
    assert read_columns(source, ["x"]) == [[None, 1.0, 2.0]]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([["x"], [SECRET + "?"]], "a.xlsx: column 'x' must hold numbers"),
        ([["x"], [dt.datetime(2020, 1, 1)]], "a.xlsx: column 'x' must hold numbers"),
        ([[float(SECRET)], [1]], "a.xlsx must have the names of the columns in its first row"),
        ([["x", SECRET], [1, 2]], "a.xlsx must have the names of the columns in its first row"),
        ([], "a.xlsx has no column names"),
    ],
)
def test_errors_of_workbooks_show_no_cell(tmp_path, monkeypatch, rows, words):
    monkeypatch.chdir(tmp_path)
    write_book("a.xlsx", rows)
    source = open_files("a.xlsx")
    with pytest.raises(mdp.DataError, match=words) as error:
        read_columns(source, ["x"])
    assert SECRET not in str(error.value)


def test_a_workbook_needs_its_sheet_and_its_extra(folder, monkeypatch):
    with pytest.raises(mdp.DataError, match="has no sheet 'None such'; it has Sheet, Data"):
        integers(folder / "t.xlsx", FileRules(sheet="None such"))
    monkeypatch.setattr("matrixdp.records.formats._LARGEST_BYTES", 1000)
    with pytest.raises(mdp.DataError, match="Save it as CSV"):
        integers(folder / "t.xlsx", PLAIN)
    monkeypatch.setitem(__import__("sys").modules, "python_calamine", None)
    with pytest.raises(mdp.MissingExtraError, match=r"python-calamine.* -m pip install -e '.*\[excel\]'"):
        integers(folder / "t.xlsx", PLAIN)


def test_texts_as_polars_writes_them_are_read_by_the_rules():
    texts = [pa.array(["NA", "b"], pa.string_view()), pa.array(["2020-01-03", "NA"], pa.string_view())]
    rules = FileRules(missing_words=["NA"], dates=[DateRule("day", "days", dt.date(2020, 1, 1))])
    found = apply_rules(rules, pa.record_batch(texts, names=["ward", "day"]), ["ward"]).to_pydict()
    assert found == {"ward": [None, "b"], "day": [2.0, None]}


ODD = [
    "",
    " ",
    "1",
    " 1",
    "1 ",
    "-1.5",
    "+1",
    "1e3",
    "nan",
    "-inf",
    "NA",
    "999",
    "-",
    ".",
    "1.2.3",
    "x",
    "ä",
    "1,5",
    "1.234,5",
]
ODD += [
    "2020-01-31",
    " 2020-01-31 ",
    "2020-02-30",
    "2020-01-31 10:00",
    "2020-01-31T10:00:00.5",
    "31.01.2020",
    "10:00",
    None,
]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
@pytest.mark.parametrize(
    ("rule", "date"),
    [
        ({}, None),
        ({"missing_words": ["999", "x"]}, None),
        ({"decimal": ",", "thousands": ".", "strip": True}, None),
        ({}, DateRule("a", "days", dt.date(2020, 1, 1))),
        ({"missing_words": ["x"]}, DateRule("a", "days", dt.date(2020, 1, 1), ["%d.%m.%Y", "%Y-%m-%d"])),
        ({}, DateRule("a", "hours")),
    ],
)
def test_each_value_is_read_on_its_own(kind, rule, date):
    """Whatever is beside it, in whatever part of an array."""
    rules = FileRules(columns=[ColumnRule("a", **rule)], dates=[] if date is None else [date])

    def read(texts):
        values, wrong = read_values(rules, "a", texts, as_text=False)
        return [repr(one) for one in values.to_pylist()], (
            np.zeros(len(texts), bool) if wrong is None else wrong
        ).tolist()

    alone = [read(pa.array([text], kind)) for text in ODD]
    expected = [values[0] for values, _ in alone], [wrong[0] for _, wrong in alone]
    assert 2 < sum(expected[1]) < len(ODD) - 2
    assert read(pa.array(ODD, kind)) == expected
    among = [read(pa.array(["1", text, "2"], kind)) for text in ODD]
    assert ([values[1] for values, _ in among], [wrong[1] for _, wrong in among]) == expected
    assert read(pa.array([*"ab", *ODD, "c"], kind)[2:-1]) == expected
    right = [i for i, wrong in enumerate(expected[1]) if not wrong]
    assert read(pa.array([ODD[i] for i in right], kind))[0] == [expected[0][i] for i in right]


@pytest.mark.parametrize("beside", ["1", "x"])
def test_a_number_may_mean_that_a_value_is_missing(beside):
    values, wrong = read_values(FileRules(missing_words=["999"]), "a", pa.array(["999", beside]), as_text=False)
    assert values.to_pylist() == [None, 1.0 if beside == "1" else None]
    assert wrong is None or wrong.tolist() == [False, True]


@pytest.mark.parametrize("formats", [("%d.%m.%Y",), ("%m.%d.%Y", "%d.%m.%Y"), ("%d.%m.%y", "%Y-%m-%d"), ("%Y-%d-%m",)])
def test_dates_are_read_as_by_strptime_in_the_order_of_their_formats(formats):
    parts = ["01", "1", "12", "13", "29", "31", "02", "2020", "1900", "0102", "0000", "00", " 3", "x"]
    texts = [mark.join((a, b, c)) for mark in ".-" for a in parts for b in parts for c in parts]
    rule = DateRule("day", "seconds", dt.date(1970, 1, 1), formats)
    values, wrong = read_values(FileRules(dates=[rule]), "day", pa.array(texts), as_text=False)
    expected = [parse_moment(text.strip(), formats, False) for text in texts]
    assert [None if one is None else round(one * 1e6) for one in values.to_pylist()] == expected
    assert wrong.tolist() == [one is None for one in expected]
