"""The schema as a form: what a browser sends, the TOML that commands read, and mistakes beside their fields."""

import datetime as dt
import re

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matrixdp.domain.columns import NO, YES
from matrixdp.domain.fields import (
    COLUMN_FIELDS,
    SECTIONS,
    join_lines,
    quote_key,
    quote_line,
    read_number,
    show_number,
    split_lines,
    unquote_line,
)
from matrixdp.domain.schema_file import parse_schema, read_schema
from matrixdp.errors import ParameterError
from matrixdp.studio.schema_page import (
    SchemaForm,
    find_mistakes,
    form_from_toml,
    form_to_toml,
    propose_columns,
    read_form,
)


def texts_of(name, kind="", **texts):
    """The texts of a column, without those that are empty; flags may be given as such."""
    given = {"name": name, "type": kind, **texts}
    return {key: "on" if text is True else text for key, text in given.items() if text or key == "name"}


def table(columns=(), **texts):
    """A form; names of fields have two underscores in place of a point."""
    return SchemaForm(tuple(columns), {key.replace("__", "."): text for key, text in texts.items() if text})


INTEGERS = re.compile(r"(0|-?[1-9]\d*)(\n(0|-?[1-9]\d*))*")
AGE = texts_of("age", "number", lower="0", upper="120")
WARD = texts_of("ward", "category", levels="north\nsouth")

texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
numbers = st.integers(-(10**6), 10**6) | st.floats(-1e9, 1e9)
dates = st.dates(dt.date(1, 1, 1), dt.date(9000, 1, 1))


def _show(value):
    return "" if value is None else show_number(value)


@st.composite
def columns(draw, name):
    """A column without mistakes, with the texts that `form_from_toml` writes."""
    flags = {"missing": draw(st.booleans())}
    kind = draw(st.sampled_from(["number", "category", "yes/no", "date", "time"]))
    if kind == "number":
        low, high = sorted(draw(st.tuples(numbers, numbers).filter(lambda pair: abs(pair[0] - pair[1]) > 1e-3)))
        mean = draw(st.none() | st.floats(low, high))
        std = draw(st.none() | st.floats(0, (high - low) / 2))
        gone = draw(st.none() | st.floats(0, 1)) if flags["missing"] else None
        guesses = {"expected_mean": mean, "expected_std": std, "expected_missing": gone}
        guesses = {guess: _show(value) for guess, value in guesses.items()}
        return texts_of(name, kind, lower=show_number(low), upper=show_number(high), **guesses, **flags)
    if kind == "category":
        integers = draw(st.booleans())
        levels = draw(st.lists(st.integers(-999, 999) if integers else texts, min_size=1, max_size=4, unique=True))
        levels = [level for level in levels if level not in ("other", "missing")] or ["a"]
        shares = f"{quote_key(str(levels[0]))} = {draw(st.integers(1, 9)) / 10}" if len(levels) > 1 else ""
        return texts_of(
            name,
            kind,
            levels="\n".join(str(one) if isinstance(one, int) else join_lines([one]) for one in levels),
            expected_shares=draw(st.sampled_from(["", shares])),
            other=draw(st.booleans()),
            **flags,
        )
    if kind == "yes/no":
        return texts_of(name, kind, expected_shares=draw(st.sampled_from(["", "yes = 0.3"])), **flags)
    rules = {"unit": draw(st.sampled_from(["", "hours", "days"])), "format": draw(st.sampled_from(["", "%d.%m.%Y"]))}
    if kind == "time":
        return texts_of(name, kind, lower="07:00:00", upper="19:30:00.500000", **rules, **flags)
    low = draw(dates)
    origin = draw(st.none() | dates)
    high = (low + dt.timedelta(days=draw(st.integers(1, 9999)))).isoformat()
    rules |= {"origin": "" if origin is None else origin.isoformat()}
    return texts_of(name, kind, lower=low.isoformat(), upper=high, **rules, **flags)


@st.composite
def forms(draw):
    names = draw(st.lists(texts, min_size=1, max_size=4, unique=True))
    found = tuple(draw(columns(name)) for name in names)
    levels = {level for column in found for level in split_lines(column.get("levels", ""))}
    words = [word for word in draw(st.lists(texts | st.just(""), max_size=2, unique=True)) if word not in levels]
    if any(column["type"] == "yes/no" for column in found):
        words = [word for word in words if word.strip().lower() not in (*YES, *NO)]
    person = draw(st.none() | texts.filter(lambda name: name not in names and name.isprintable()))
    return table(
        found,
        records=_show(draw(st.none() | st.integers(1, 10**9))),
        expected_correlation=_show(draw(st.none() | st.floats(0, 1))),
        person__column="" if person is None else quote_line(person),
        person__rows="" if person is None else _show(draw(st.none() | st.integers(1, 99))),
        files__decimal=draw(st.sampled_from(["", ","])),
        files__thousands=draw(st.sampled_from(["", " ", "'"])),
        files__sheet=draw(st.sampled_from(["", "Sheet 2"])),
        files__missing_words=join_lines(words),
    )


def sent(form):
    """The form as a browser sends it: line ends as CR LF."""
    fields = dict(form.texts)
    for number, column in enumerate(form.columns):
        fields |= {f"column.{number}.{name}": text for name, text in column.items()}
        fields[f"column.{number}.name"] = quote_line(column["name"])
    return {name: text.replace("\n", "\r\n") for name, text in fields.items()}


@settings(max_examples=40)
@given(forms())
def test_a_form_comes_back_from_its_toml_and_from_a_browser(form):
    assert find_mistakes(form) == {}
    text = form_to_toml(form)
    assert form_from_toml(text) == form
    browser = read_form(sent(form))
    assert find_mistakes(browser) == {}
    assert form_to_toml(browser) == text


@settings(max_examples=40)
@given(forms())
def test_the_toml_is_what_the_commands_read(form):
    schema = parse_schema(form_to_toml(form))
    assert schema.columns.names == tuple(column["name"] for column in form.columns)
    for column in form.columns:
        described = schema.columns[column["name"]]
        assert described.missing is ("missing" in column)
        if column["type"] == "number":
            assert (described.lower, described.upper) == (float(column["lower"]), float(column["upper"]))
        elif column["type"] == "category":
            assert [str(level) for level in described.levels] == split_lines(column["levels"])
            assert {type(level) for level in described.levels} == {int if INTEGERS.fullmatch(column["levels"]) else str}
        elif column["type"] == "date":
            assert schema.rules.date(column["name"]).format == column.get("format")
    assert schema.records == (int(form.texts["records"]) if "records" in form.texts else None)
    assert (schema.person is None) == ("person.column" not in form.texts)


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=6)))
def test_lines_keep_every_text(values):
    assert split_lines(join_lines(values).replace("\n", "\r\n")) == values
    assert [unquote_line(quote_line(value)) for value in values] == values


@given(
    st.text(max_size=12), st.text(max_size=12), st.sampled_from(["number", "category", "date", "time", "", "yes/no"])
)
def test_whatever_is_typed_is_a_mistake_in_a_field_or_a_schema(first, second, kind):
    column = texts_of("x", kind, lower=first, upper=second, levels=first, unit=second, origin=first)
    named = {"person__column": second, "person__rows": first, "files__thousands": second}
    form = table([column], records=second, radius=first, **named)
    mistakes = find_mistakes(form)
    fields = {one.name for one in COLUMN_FIELDS} | {"name", "type"}
    sections = {f"{name}.{one.name}".strip(".") for name, ones in SECTIONS.items() for one in ones}
    assert set(mistakes) <= {f"column.0.{name}" for name in fields} | sections | {""}
    if not mistakes:
        parse_schema(form_to_toml(form))


@pytest.mark.parametrize(
    ("column", "field", "message"),
    [
        (texts_of("x"), "type", "no type yet"),
        (texts_of("x", "text"), "type", "must be one of"),
        (texts_of("x", "number", upper="1"), "lower", "no lower bound yet. Fill it in from public knowledge"),
        (texts_of("x", "number", lower="1"), "upper", "no upper bound yet"),
        (texts_of("x", "number", lower="1,500", upper="2"), "lower", "lower must be a number, got '1,500'"),
        (texts_of("x", "number", lower="0", upper="inf"), "upper", "upper must be a number, got 'inf'"),
        (texts_of("x", "number", lower="2", upper="1"), "upper", "lower must be below upper, got 2 and 1"),
        (texts_of("x", "number", lower="0", upper="1e200"), "upper", "bounds must be at most"),
        (
            texts_of("x", "number", lower="0", upper="1", expected_mean="2"),
            "expected_mean",
            "must be a number from 0 to 1",
        ),
        (
            texts_of("x", "number", lower="0", upper="1", expected_std="2"),
            "expected_std",
            "must be a number from 0 to 0.5",
        ),
        (texts_of("x", "number", lower="0", upper="1", expected_missing="0.1"), "expected_missing", "missing = true"),
        (dict(WARD, expected_shares="0.6"), "expected_shares", "as in north = 0.6"),
        (dict(WARD, expected_shares="east = 0.6"), "expected_shares", "levels among north, south"),
        (dict(WARD, expected_shares="north = 'much'"), "expected_shares", "must be a number"),
        (texts_of("x", "category"), "levels", "no levels yet"),
        (texts_of("x", "category", levels="a\na"), "levels", "twice"),
        (texts_of("x", "category", levels="other", other=True), "levels", "twice"),
        (texts_of("x", "category", levels='""'), "levels", "must not have an empty text"),
        (texts_of("x", "category", levels='"a'), "levels", "quotation mark"),
        (texts_of("x", "date", lower="1.2.2000", upper="2001-01-01"), "lower", "must be a date, as in"),
        (texts_of("x", "date", lower="2000-01-01"), "upper", "no upper bound yet"),
        (texts_of("x", "date", lower="2000-01-01", upper="1999-01-01"), "upper", "lower must be below upper"),
        (texts_of("x", "date", lower="2000-01-01", upper="2001-01-01", origin="then"), "origin", "must be a date"),
        (texts_of("x", "date", lower="2000-01-01", upper="2001-01-01", unit="weeks"), "unit", "must be one of"),
        (texts_of("x", "date", lower="2000-01-01 00:00Z", upper="2001-01-01"), "lower", "no zone"),
        (texts_of("x", "time", lower="7 h", upper="12:00"), "lower", "must be a time, as in 07:30"),
    ],
)
def test_a_mistake_in_a_column_is_reported_beside_its_field(column, field, message):
    mistakes = find_mistakes(table([AGE, column]))
    assert list(mistakes) == [f"column.1.{field}"]
    assert message in mistakes[f"column.1.{field}"]
    assert "schema:" not in mistakes[f"column.1.{field}"]


@pytest.mark.parametrize(
    ("entries", "field", "message"),
    [
        ({"records": "0"}, "records", "positive integer"),
        ({"radius": "-1"}, "radius", "radius must be"),
        ({"expected_correlation": "2"}, "expected_correlation", "from 0 to 1"),
        ({"files__decimal": ";"}, "files.decimal", "must be '.' or ','"),
        ({"files__decimal": ",", "files__thousands": ","}, "files.thousands", "not the same as decimal"),
        ({"files__missing_words": "north"}, "files.missing_words", "also a level of column 'ward'"),
        ({"files__missing_words": "No"}, "files.missing_words", "means yes or no in column 'smoker'"),
        ({"person__column": "age"}, "person.column", "cannot be released as well"),
        ({"person__column": "id", "person__rows": "many"}, "person.rows", "positive integer"),
        ({"person__rows": "3"}, "person.column", "column must be given"),
    ],
)
def test_a_mistake_in_the_table_is_reported_beside_its_field(entries, field, message):
    mistakes = find_mistakes(table([AGE, WARD, texts_of("smoker", "yes/no")], **entries))
    assert list(mistakes) == [field]
    assert message.lower() in mistakes[field].lower()


def test_all_mistakes_are_reported_at_once():
    broken = (texts_of("a", "number"), texts_of("b"), AGE, AGE)
    assert list(find_mistakes(table(broken, radius="x"))) == [
        "column.0.lower",
        "column.0.upper",
        "column.1.type",
        "column.3.name",
        "radius",
    ]
    assert find_mistakes(SchemaForm())[""].startswith("There are no columns")


def test_a_radius_without_numbers_is_a_mistake():
    incomplete = texts_of("age", "number", lower="0")
    assert "radius" not in find_mistakes(table([WARD, incomplete], radius="1"))
    assert "there are none" in find_mistakes(table([WARD], radius="1"))["radius"]


def test_types_are_proposed_from_arrow_types_alone():
    kinds = {
        "n": (pa.float64(), "number"),
        "i": (pa.int32(), "number"),
        "s": (pa.string(), "category"),
        "d": (pa.dictionary(pa.int8(), pa.string()), "category"),
        "c": (pa.dictionary(pa.int8(), pa.int64()), "category"),
        "b": (pa.bool_(), "yes/no"),
        "t": (pa.timestamp("us"), "date"),
        "o": (pa.time64("us"), "time"),
    }
    table = {name: pa.field(name, kind) for name, (kind, _) in kinds.items()}
    table |= {"unknown": None, "": pa.field("", pa.int8()), "long": pa.field("long", pa.duration("s"))}
    columns, unusable = propose_columns(table)
    proposed = {name: texts_of(name, kind) for name, (_, kind) in kinds.items()}
    assert columns == {**proposed, "unknown": {"name": "unknown", "type": ""}}
    assert unusable == {"long": "lengths of time"}


def test_a_schema_in_the_short_form_is_understood(tmp_path):
    text = '[columns.age]\nlower = 0.0\nupper = 120\n[columns.ward]\nlevels = ["a", "b"]\n'
    form = form_from_toml(text)
    assert list(form.columns) == [
        texts_of("age", "number", lower="0", upper="120"),
        texts_of("ward", "category", levels="a\nb"),
    ]
    path = tmp_path / "schema.toml"
    path.write_text(form_to_toml(form), encoding="utf-8")
    assert read_schema(path).columns.names == ("age", "ward")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x =", "not a TOML file"),
        ("[graph]\nnodes = 3\n", r"\[graph\], which this form does not show"),
        ("[columns.a]\nlower = 0\n", "no upper bound yet"),
    ],
)
def test_a_schema_that_the_form_cannot_show_is_refused(text, message):
    with pytest.raises(ParameterError, match=message):
        form_from_toml(text)


def test_long_lists_of_levels_have_a_line_each():
    column = texts_of("ward", "category", levels="\n".join(f"ward number {i}" for i in range(20)))
    text = form_to_toml(SchemaForm((column,)))
    assert '  "ward number 7",\n' in text
    assert form_from_toml(text).columns[0] == column


def test_numbers_that_toml_cannot_hold_stay_texts():
    assert read_number(str(1 << 70)) == float(1 << 70)
    assert read_number("9" * 5000) == "9" * 5000
    assert read_number("nan") == "nan"


def test_a_name_that_was_tampered_with_is_a_mistake():
    form = read_form({"column.0.name": '"broken', "column.0.type": "yes/no", "column.0.nonsense": "x", "other": "y"})
    assert list(find_mistakes(form)) == ["column.0.name"]


def test_steps_and_impossible_pairs_have_fields():
    text = (
        'impossible = [{a = "x", "b c" = ["1", "2"]}]\n[columns]\na = {levels = ["x", "y"]}\n'
        '"b c" = {levels = [1, 2, 3]}\nn = {lower = 0, upper = 9, step = 1}\n'
    )
    form = form_from_toml(text)
    assert form.texts == {"impossible": 'a = "x", "b c" = ["1", "2"]'}
    assert form.columns[2]["step"] == "1"
    assert parse_schema(form_to_toml(form)).columns == parse_schema(text).columns
    for line in ("a = ", 'a = "x"', 'a = "x", d = "1"', 'a = "z", "b c" = "1"'):
        assert list(find_mistakes(SchemaForm(form.columns, {"impossible": line}))) == ["impossible"]
    without = SchemaForm((*form.columns[:1], {"name": "b c", "type": ""}), form.texts)
    assert list(find_mistakes(without)) == ["column.1.type"]  # not also that the pair has no such column
