"""The schema as a form: what a browser sends, the TOML that commands read, and mistakes beside their fields."""

import datetime as dt
import tomllib
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matrixdp.cli.actions.schema_file import parse_schema, read_schema
from matrixdp.errors import ParameterError
from matrixdp.records.table_columns import NO, YES
from matrixdp.studio.field_text import join_lines, quote_line, read_number, show_number, split_lines, unquote_line
from matrixdp.studio.schema_checks import find_mistakes
from matrixdp.studio.schema_form import (
    ColumnForm,
    SchemaForm,
    form_from_toml,
    form_to_toml,
    list_unusable,
    propose_column,
    propose_form,
    read_form,
)

AGE = ColumnForm("age", "number", lower="0", upper="120")
WARD = ColumnForm("ward", "category", levels="north\nsouth")

texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
numbers = st.integers(-(10**6), 10**6) | st.floats(-1e9, 1e9)
dates = st.dates(dt.date(1, 1, 1), dt.date(9000, 1, 1))


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
        guesses = {guess: show_number(value) for guess, value in guesses.items()}
        return ColumnForm(name, kind, lower=show_number(low), upper=show_number(high), **guesses, **flags)
    if kind == "category":
        integers = draw(st.booleans())
        levels = draw(st.lists(st.integers(-999, 999) if integers else texts, min_size=1, max_size=4, unique=True))
        levels = [level for level in levels if level not in ("other", "missing")] or ["a"]
        what = "integer" if isinstance(levels[0], int) else "text"
        shares = f"{draw(st.integers(1, 9)) / 10} {quote_line(str(levels[0]))}" if len(levels) > 1 else ""
        return ColumnForm(
            name,
            kind,
            levels=join_lines(map(str, levels)),
            level_type=what,
            expected_shares=draw(st.sampled_from(["", shares])),
            other=draw(st.booleans()),
            **flags,
        )
    if kind == "yes/no":
        return ColumnForm(name, kind, expected_shares=draw(st.sampled_from(["", "0.3 yes"])), **flags)
    rules = {"unit": draw(st.sampled_from(["", "hours", "days"])), "format": draw(st.sampled_from(["", "%d.%m.%Y"]))}
    if kind == "time":
        return ColumnForm(name, kind, lower="07:00:00", upper="19:30:00.500000", **rules, **flags)
    low = draw(dates)
    origin = draw(st.none() | dates)
    high = (low + dt.timedelta(days=draw(st.integers(1, 9999)))).isoformat()
    rules |= {"origin": "" if origin is None else origin.isoformat()}
    return ColumnForm(name, kind, lower=low.isoformat(), upper=high, **rules, **flags)


@st.composite
def forms(draw):
    names = draw(st.lists(texts, min_size=1, max_size=4, unique=True))
    found = tuple(draw(columns(name)) for name in names)
    levels = {level for column in found for level in (split_lines(column.levels) if column.levels else ())}
    words = [word for word in draw(st.lists(texts | st.just(""), max_size=2, unique=True)) if word not in levels]
    if any(column.type == "yes/no" for column in found):
        words = [word for word in words if word.strip().lower() not in (*YES, *NO)]
    listed = draw(st.booleans())
    person = draw(st.none() | texts.filter(lambda name: name not in names and name.isprintable()))
    return SchemaForm(
        found,
        records=show_number(draw(st.none() | st.integers(1, 10**9))),
        expected_correlation=show_number(draw(st.none() | st.floats(0, 1))),
        person="" if person is None else quote_line(person),
        person_rows="" if person is None else show_number(draw(st.none() | st.integers(1, 99))),
        decimal=draw(st.sampled_from([".", ","])),
        thousands=draw(st.sampled_from(["", " ", "'"])),
        sheet=draw(st.sampled_from(["", "Sheet 2"])),
        missing_rule="listed" if listed else "default",
        missing_words=join_lines(words) if listed else "",
    )


def sent(form):
    """The form as a browser sends it: line ends as CR LF, boxes only if they are ticked."""
    fields = {name: value for name, value in vars(form).items() if name != "columns"}
    for number, column in enumerate(form.columns):
        for name, value in vars(column).items():
            if value is True:
                fields[f"column.{number}.{name}"] = "on"
            elif value is not False:
                fields[f"column.{number}.{name}"] = quote_line(value) if name == "name" else value
    return {name: value.replace("\n", "\r\n") for name, value in fields.items()}


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
    schema = parse_schema(Path("s"), tomllib.loads(form_to_toml(form)))
    assert schema.columns.names == tuple(column.name for column in form.columns)
    for column in form.columns:
        described = schema.columns[column.name]
        assert described.missing is column.missing
        if column.type == "number":
            assert (described.lower, described.upper) == (float(column.lower), float(column.upper))
        elif column.type == "category":
            given = split_lines(column.levels)
            assert [str(level) for level in described.levels] == given
            assert {type(level) for level in described.levels} == {int if column.level_type == "integer" else str}
        elif column.type == "date":
            assert schema.rules.date(column.name).format == (column.format or None)
    assert schema.records == (int(form.records) if form.records else None)
    assert (schema.person is None) == (form.person == "")


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=6)))
def test_lines_keep_every_text(values):
    assert split_lines(join_lines(values).replace("\n", "\r\n")) == values
    assert [unquote_line(quote_line(value)) for value in values] == values


@given(
    st.text(max_size=12), st.text(max_size=12), st.sampled_from(["number", "category", "date", "time", "", "yes/no"])
)
def test_whatever_is_typed_is_a_mistake_in_a_field_or_a_schema(first, second, kind):
    column = ColumnForm("x", kind, lower=first, upper=second, levels=first, unit=second, origin=first)
    form = SchemaForm((column,), records=second, radius=first, person=second, person_rows=first, thousands=second)
    mistakes = find_mistakes(form)
    named = {f"column.0.{name}" for name in vars(column)} | set(vars(form)) | {""}
    assert set(mistakes) <= named
    if not mistakes:
        parse_schema(Path("s"), tomllib.loads(form_to_toml(form)))


@pytest.mark.parametrize(
    ("column", "field", "message"),
    [
        (ColumnForm("x"), "type", "no type yet"),
        (ColumnForm("x", "text"), "type", "no column type|must be one of"),
        (ColumnForm("x", "number", upper="1"), "lower", "no lower bound yet. Fill it in from public knowledge"),
        (ColumnForm("x", "number", lower="1"), "upper", "no upper bound yet"),
        (ColumnForm("x", "number", lower="1,5", upper="2"), "lower", "lower must be a number, got '1,5'"),
        (ColumnForm("x", "number", lower="0", upper="inf"), "upper", "upper must be a number, got 'inf'"),
        (ColumnForm("x", "number", lower="2", upper="1"), "upper", "lower must be below upper, got 2 and 1"),
        (ColumnForm("x", "number", lower="0", upper="1e200"), "upper", "bounds must be at most"),
        (ColumnForm("x", "number", lower="0", upper="1", expected_mean="2"), "expected_mean", "within the bounds"),
        (ColumnForm("x", "number", lower="0", upper="1", expected_std="2"), "expected_std", "from 0 to 0.5"),
        (ColumnForm("x", "number", lower="0", upper="1", expected_missing="0.1"), "expected_missing", "missing = true"),
        (replace(WARD, expected_shares="0.6"), "expected_shares", "as in 0.6 north"),
        (replace(WARD, expected_shares="0.6 east"), "expected_shares", "levels among north, south"),
        (replace(WARD, expected_shares="much north"), "expected_shares", "must be a number"),
        (ColumnForm("x", "category"), "levels", "no levels yet"),
        (ColumnForm("x", "category", levels="a\na"), "levels", "twice"),
        (ColumnForm("x", "category", levels="other", other=True), "levels", "twice"),
        (ColumnForm("x", "category", levels='""'), "levels", "empty text among its levels"),
        (ColumnForm("x", "category", levels='"a'), "levels", "quotation mark"),
        (ColumnForm("x", "category", levels="1\nb", level_type="integer"), "levels", "integers, one to a line"),
        (ColumnForm("x", "date", lower="1.2.2000", upper="2001-01-01"), "lower", "must be a date, as in"),
        (ColumnForm("x", "date", lower="2000-01-01"), "upper", "no upper bound yet"),
        (ColumnForm("x", "date", lower="2000-01-01", upper="1999-01-01"), "upper", "lower must be below upper"),
        (ColumnForm("x", "date", lower="2000-01-01", upper="2001-01-01", origin="then"), "origin", "must be a date"),
        (ColumnForm("x", "date", lower="2000-01-01", upper="2001-01-01", unit="weeks"), "unit", "must be one of"),
        (ColumnForm("x", "date", lower="2000-01-01 00:00Z", upper="2001-01-01"), "lower", "no zone"),
        (ColumnForm("x", "time", lower="7 h", upper="12:00"), "lower", "must be a time, as in 07:30"),
    ],
)
def test_a_mistake_in_a_column_is_reported_beside_its_field(column, field, message):
    mistakes = find_mistakes(SchemaForm((AGE, column)))
    assert list(mistakes) == [f"column.1.{field}"]
    assert any(part in mistakes[f"column.1.{field}"] for part in message.split("|"))
    assert "schema:" not in mistakes[f"column.1.{field}"]


@pytest.mark.parametrize(
    ("entries", "field", "message"),
    [
        ({"records": "0"}, "records", "positive integer"),
        ({"radius": "-1"}, "radius", "radius must be"),
        ({"expected_correlation": "2"}, "expected_correlation", "from 0 to 1"),
        ({"decimal": ";"}, "decimal", "must be '.' or ','"),
        ({"decimal": ",", "thousands": ","}, "thousands", "not the same as decimal"),
        ({"missing_rule": "listed", "missing_words": "north"}, "missing_words", "also a level of column 'ward'"),
        ({"missing_rule": "listed", "missing_words": "No"}, "missing_words", "means yes or no in column 'smoker'"),
        ({"person": "age"}, "person", "cannot be released as well"),
        ({"person": "id", "person_rows": "many"}, "person_rows", "positive integer"),
        ({"person_rows": "3"}, "person_rows", "must have column"),
    ],
)
def test_a_mistake_in_the_table_is_reported_beside_its_field(entries, field, message):
    mistakes = find_mistakes(SchemaForm((AGE, WARD, ColumnForm("smoker", "yes/no")), **entries))
    assert list(mistakes) == [field]
    assert message.lower() in mistakes[field].lower()


def test_all_mistakes_are_reported_at_once():
    broken = (ColumnForm("a", "number"), ColumnForm("b"), AGE, AGE)
    assert list(find_mistakes(SchemaForm(broken, radius="x"))) == [
        "column.0.lower",
        "column.0.upper",
        "column.1.type",
        "column.3.name",
        "radius",
    ]
    assert find_mistakes(SchemaForm())[""].startswith("There are no columns")


def test_a_radius_without_numbers_is_a_mistake():
    assert "there are none" in find_mistakes(SchemaForm((WARD,), radius="1"))["radius"]


def test_types_are_proposed_from_arrow_types_alone():
    kinds = {
        "n": (pa.float64(), "number", "text"),
        "i": (pa.int32(), "number", "text"),
        "s": (pa.string(), "category", "text"),
        "d": (pa.dictionary(pa.int8(), pa.string()), "category", "text"),
        "c": (pa.dictionary(pa.int8(), pa.int64()), "category", "integer"),
        "b": (pa.bool_(), "yes/no", "text"),
        "t": (pa.timestamp("us"), "date", "text"),
        "o": (pa.time64("us"), "time", "text"),
    }
    table = {name: pa.field(name, kind) for name, (kind, _, _) in kinds.items()}
    table |= {"unknown": None, "": pa.field("", pa.int8()), "long": pa.field("long", pa.duration("s"))}
    form = propose_form(table)
    assert [(one.name, one.type, one.level_type) for one in form.columns] == [
        *((name, kind, level) for name, (_, kind, level) in kinds.items()),
        ("unknown", "", "text"),
    ]
    assert all(not column.lower and not column.levels for column in form.columns)
    assert list_unusable(table) == {"long": "lengths of time"}


def test_columns_are_added_once_and_removed():
    form = SchemaForm((AGE,)).with_column(WARD).with_column(propose_column("ward", None))
    assert form.columns == (AGE, WARD)
    assert form.without_column(0).columns == (WARD,)


def test_a_schema_in_the_short_form_is_understood(tmp_path):
    text = '[columns.age]\nlower = 0.0\nupper = 120\n[columns.ward]\ncategories = ["a", "b"]\n'
    form = form_from_toml(text)
    assert [(column.type, column.lower, column.levels) for column in form.columns] == [
        ("number", "0", ""),
        ("category", "", "a\nb"),
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
    column = ColumnForm("ward", "category", levels="\n".join(f"ward number {i}" for i in range(20)))
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
