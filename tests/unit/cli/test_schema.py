"""Schemas of tables: what is read, what is refused with which remedy, and the templates."""

import datetime
import re

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from matrixdp import Category, Columns, Number, YesNo
from matrixdp.adaptive import Description
from matrixdp.domain.schema_file import read_schema
from matrixdp.errors import ParameterError
from matrixdp.report.forecast import describe_data


def read(folder, text):
    path = folder / "schema.toml"
    path.write_text(text)
    return read_schema(path)


def test_all_types_are_read(tmp_path):
    schema = read(
        tmp_path,
        """
        [columns.age]
        type = "number"
        lower = 0
        upper = 120
        missing = true
        [columns.bmi]
        lower = 15
        upper = 45
        [columns.ward]
        type = "category"
        levels = ["a", "b"]
        other = true
        [columns.code]
        levels = [1, 2]
        missing = true
        [columns.smoker]
        type = "yes/no"
        """,
    )
    assert schema.columns == Columns(
        [
            Number("age", 0, 120, missing=True),
            Number("bmi", 15, 45),
            Category("ward", ("a", "b"), other=True),
            Category("code", (1, 2), missing=True),
            YesNo("smoker"),
        ]
    )
    schema.check()


MISTAKES = {
    "a level twice": ('levels = ["a", "b", "a"]', ["'a' twice"]),
    "a level named other": ('levels = ["a", "other"]\nother = true', ["'other' twice"]),
    "mixed levels": ('levels = ["a", 1]', ["list of texts", "list of integers"]),
    "levels of booleans": ("levels = [true, false]", ["list of texts"]),
    "levels of floats": ("levels = [0.5]", ["list of texts"]),
    "levels that are no list": ('levels = "a"', ["list of texts"]),
    "an empty level": ('levels = ["a", ""]', ["missing = true"]),
    "no levels": ("levels = []", ["no levels yet", "public knowledge"]),
    "a category without levels": ('type = "category"', ["no levels yet"]),
    "a number with levels": ('type = "number"\nlower = 0\nupper = 1\nlevels = ["a"]', ["'number'", "'levels'"]),
    "bounds and levels": ('lower = 0\nupper = 1\nlevels = ["a"]', ["remove one of them"]),
    "a category with bounds": ('type = "category"\nlevels = ["a"]\nlower = 0', ["'category'", "'lower'"]),
    "yes/no with levels": ('type = "yes/no"\nlevels = ["a"]', ["'yes/no'", "'levels'"]),
    "an unknown type": ('type = "text"', ['"number", "category", "yes/no"', "'text'"]),
    "a type that is no text": ("type = 1", ['"number"']),
    "no type": ("", ["no type yet", '"yes/no"']),
    "a flag that is no flag": ('lower = 0\nupper = 1\nmissing = "yes"', ["missing must be true or false"]),
    "a number with other": ("lower = 0\nupper = 1\nother = true", ["bounds and levels"]),
    "no upper bound": ('type = "number"\nlower = 0', ["no upper bound yet", "not from the data"]),
    "inverted bounds": ('type = "number"\nlower = 1\nupper = 0', ["below upper"]),
    "an unknown entry": ("lower = 0\nupper = 1\nlevel = 1", ["unknown entry 'level'"]),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_name_the_file_the_column_and_the_remedy(tmp_path, name):
    text, expected = MISTAKES[name]
    with pytest.raises(ParameterError) as caught:
        read(tmp_path, f"[columns.ward]\n{text}\n")
    message = str(caught.value)
    for words in (str(tmp_path / "schema.toml"), "'ward'", *expected):
        assert words in message
    assert message.count(str(tmp_path)) == 1


def test_check_refuses_a_level_twice(clinic, matrixdp):
    (clinic.path / "twice.toml").write_text('[columns.smoker]\nlevels = ["yes", "yes"]\n')
    done = matrixdp("schema", "check", "twice.toml")
    assert done.code == 2
    assert "'smoker' has the level 'yes' twice" in done.err


TEMPLATE = """\
#
age = { type = "number", lower = "", upper = "" }
"body mass" = { type = "number", lower = "", upper = "" }
ward = { type = "category", levels = [] }
city = { type = "category", levels = [] }
smoker = { type = "yes/no" }
seen = { type = "date", lower = "", upper = "" }
at = { type = "date", lower = "", upper = "" }
start = { type = "time", lower = "", upper = "" }
# stay holds lengths of time, which cannot be used as they are. Make them numbers or a category first.
# visits holds values of another type, which cannot be used as they are. Make them numbers or a category first.
"""


def typed_table():
    day = datetime.date(1987, 6, 5)
    columns = {
        "age": pa.array([77], pa.int64()),
        "body mass": pa.array([77.7654321]),
        "ward": pa.array(["secret"]).dictionary_encode(),
        "city": pa.array(["secret"]),
        "smoker": pa.array([True]),
        "seen": pa.array([day]),
        "at": pa.array([datetime.datetime(1987, 6, 5)]),
        "start": pa.array([datetime.time(7, 7)]),
        "stay": pa.array([datetime.timedelta(days=77)]),
        "visits": pa.array([[77]]),
    }
    fields = [pa.field(name, value.type, nullable=name != "body mass") for name, value in columns.items()]
    return pa.table(list(columns.values()), schema=pa.schema(fields))


@pytest.mark.parametrize("data", ["typed.parquet", "typed.feather"])
def test_types_come_from_the_file_and_nothing_from_its_values(tmp_path, monkeypatch, matrixdp, data):
    monkeypatch.chdir(tmp_path)
    (pq.write_table if data.endswith("parquet") else feather.write_feather)(typed_table(), data)
    done = matrixdp("schema", "new", data)
    assert done.code == 0
    header, _, columns = done.out.partition("A time of day.\n")
    assert columns == TEMPLATE
    assert data in header
    assert "77" not in done.out
    assert "secret" not in done.out
    assert matrixdp("schema", "new", data).out == done.out


def test_columns_of_csv_have_no_type_yet(clinic, matrixdp):
    done = matrixdp("schema", "new", "clinic.csv", "-o", "new.toml")
    assert done.code == 0
    text = (clinic.path / "new.toml").read_text()
    lines = text.partition("A time of day.\n#\n")[2].splitlines()
    assert lines == [f'{name} = {{ type = "" }}' for name in ("age", "bmi", "smoker", "outcome")]
    with pytest.raises(ParameterError, match="'age' has no type yet"):
        read_schema(clinic.path / "new.toml")


def test_the_examples_in_a_template_are_a_schema(clinic, matrixdp):
    text = matrixdp("schema", "new", "clinic.csv").out
    assert all(len(line) <= 120 for line in text.splitlines())
    lines = re.sub(r'(?m)^(\w+) = { type = "" }$', r'own_\1 = { type = "yes/no" }', text).splitlines()
    entries = [i for i, line in enumerate(lines) if re.match(r"# \w+ = ", line)]
    assert len(entries) == 13
    for chosen in (*([i] for i in entries), entries):  # each alone, and all together
        used = [line.removeprefix("# ") if i in chosen else line for i, line in enumerate(lines)]
        schema = read(clinic.path, "\n".join(used))
    assert schema.columns.names[:5] == ("age", "ward", "smoker", "born", "start")
    assert (schema.records, schema.person.column) == (10_000, "patient_id")
    assert (schema.rules.decimal, schema.rules.skip_lines) == (",", ("Total",))


@pytest.mark.parametrize("line", ["records = 100", "expected_correlation = 0.5"])
def test_what_belongs_above_the_columns_is_no_column(tmp_path, line):
    with pytest.raises(ParameterError, match=f"{line.split()[0]} must be above"):
        read(tmp_path, f"[columns]\na = {{ lower = 0, upper = 1 }}\n{line}\n")


GUESSES = """
expected_correlation = 0.6
[columns.age]
lower = 0
upper = 100
expected_mean = 40
expected_std = 10
[columns.bmi]
lower = 10
upper = 50
"""
TABLE_GUESSES = """
[columns.stay]
lower = 0
upper = 60
missing = true
expected_missing = 0.2
[columns.ward]
levels = ["north", "south", "west"]
expected_shares = {north = 0.5, south = 0.3}
[columns.smoker]
type = "yes/no"
expected_shares = {yes = 0.25}
"""


def test_guesses_describe_a_table_for_forecasts(tmp_path):
    found = read(tmp_path, GUESSES + TABLE_GUESSES).guesses
    assert (found.means, found.stds, found.correlation) == ({"age": 40}, {"age": 10}, 0.6)
    assert found.missing == {"stay": 0.2}
    assert found.shares == {"ward": {"north": 0.5, "south": 0.3}, "smoker": {"yes": 0.25}}


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("expected_missing = 0.2", "expected_missing = 20", "expected_missing must be a number from 0 to 1"),
        ("missing = true\n", "", "expected_missing needs missing = true"),
        ("{yes = 0.25}", "0.25", "expected_shares must be levels and shares"),
        ("{yes = 0.25}", '{yes = "often"}', "expected_shares must be a number for 'yes'"),
        ("{yes = 0.25}", "{maybe = 0.25}", "expected_shares must be of levels among no, yes"),
        ("south = 0.3", "south = 0.7", "expected_shares must sum to at most 1"),
        ("{yes = 0.25}", "{yes = 0.25, no = 0.25}", "expected_shares must sum to 1"),
        ("{yes = 0.25}", "{yes = -0.25}", "must be a number from 0 to 1"),
        ("expected_missing = 0.2", "expected_shares = {a = 1}", "unknown entry 'expected_shares'"),
    ],
)
def test_impossible_guesses_about_a_table_are_errors(tmp_path, before, after, message):
    with pytest.raises(ParameterError, match=message):
        read(tmp_path, GUESSES + TABLE_GUESSES.replace(before, after))


def test_guesses_describe_the_data_for_forecasts(tmp_path):
    schema = read(tmp_path, GUESSES)
    found = describe_data(schema, schema.number_bounds())
    assert found.position.tolist() == [0.4, Description().position]
    assert found.spread.tolist() == [0.1, Description().spread]
    assert found.correlation == 0.6


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("expected_mean = 40", "expected_mean = 140", "expected_mean must be a number from 0 to 100"),
        ("expected_std = 10", "expected_std = 60", "expected_std must be a number from 0 to 50"),
        ("expected_std = 10", 'expected_std = "wide"', "expected_std must be a number"),
        ("expected_correlation = 0.6", "expected_correlation = 2", "expected_correlation must be a number from 0 to 1"),
        ("upper = 100\n", "", "upper"),
    ],
)
def test_impossible_guesses_are_errors(tmp_path, before, after, message):
    with pytest.raises(ParameterError, match=message):
        read(tmp_path, GUESSES.replace(before, after))
