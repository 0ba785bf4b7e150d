"""The schema in Python: what it refuses, how it names an entry, and that a field is declared once for all its uses."""

from dataclasses import fields
from pathlib import Path

import pytest

from matrixdp import Bounds, Category, Columns, Number, YesNo
from matrixdp.domain.fields import COLUMN_FIELDS, SECTIONS, TYPES
from matrixdp.domain.file_rules import FileRules
from matrixdp.domain.person import Person
from matrixdp.domain.schema import Schema, TableDescription
from matrixdp.domain.schema_file import as_schema, parse_schema
from matrixdp.errors import ParameterError

COLUMNS = Columns([Number("age", 0, 120), Category("ward", ["north", "south"]), YesNo("smoker")])
TEXT = """
records = 9

[columns]
age = { lower = 0, upper = 120 }
ward = { levels = ["north", "south"] }
smoker = { type = "yes/no" }
"""
GUIDE = Path(__file__).parents[3] / "docs" / "formats.md"


@pytest.mark.parametrize(
    ("text", "parameter"),
    [
        ("records = 0", "records"),
        ("radius = -1", "radius"),
        ("expected_correlation = 2", "expected_correlation"),
        ("comma = 1", "comma"),
        ("[person]", "person.column"),
        ("[files]\nthousands = 7", "files.thousands"),
        ("[files]\nthousands = '.'", "files.thousands"),
        ("[graph]\nnodes = 1", "graph.nodes"),
        ("[columns]\nage = { lower = 0 }", "columns.age.upper"),
        ("[columns]\nage = { lower = 0, upper = -1 }", "columns.age.upper"),
        ("[columns]\nage = { lower = 0, upper = 1, expected_std = 2 }", "columns.age.expected_std"),
        ("[columns]\n'body mass' = { levels = ['a', 'a'] }", 'columns."body mass".levels'),
        ("[columns]\nage = { type = 'text' }", "columns.age.type"),
        (
            "impossible = [{a = ['x'], b = ['no', 'yes']}, {b = ['no', 'yes'], a = ['y']}]\n"
            "[columns]\na = { levels = ['x', 'y'] }\nb = { type = 'yes/no' }",
            "impossible",
        ),
    ],
)
def test_errors_name_the_entry_that_they_are_about(text, parameter):
    with pytest.raises(ParameterError) as caught:
        parse_schema(text)
    assert caught.value.parameter == parameter


@pytest.mark.parametrize(
    ("options", "parameter"),
    [
        ({"records": 0}, "records"),
        ({"radius": 0.0}, "radius"),
        ({"person": Person("ward")}, "person.column"),
        ({"rules": FileRules(missing_words=["north"])}, "files.missing_words"),
        ({"rules": FileRules(missing_words=["No"])}, "files.missing_words"),
        ({"guesses": TableDescription(means={"age": 130})}, "columns.age.expected_mean"),
        ({"guesses": TableDescription(missing={"age": 0.5})}, "columns.age.expected_missing"),
    ],
)
def test_a_schema_made_in_python_is_checked_as_one_from_a_file(options, parameter):
    with pytest.raises(ParameterError) as caught:
        Schema(COLUMNS, **options)
    assert caught.value.parameter == parameter


def test_each_rule_of_files_is_a_field():
    assert {one.name for one in SECTIONS["files"]} == {one.name for one in fields(FileRules)} - {"dates", "columns"}


def test_each_field_has_a_label_and_is_documented():
    guide = GUIDE.read_text(encoding="utf-8")
    for one in (*COLUMN_FIELDS, *(one for section in SECTIONS.values() for one in section)):
        assert one.label
        assert one.name in guide
    for column_type in TYPES:
        assert f'`"{column_type}"`' in guide


def test_a_table_is_described_in_several_forms(tmp_path):
    path = tmp_path / "schema.toml"
    path.write_text(TEXT, encoding="utf-8")
    assert as_schema(path) == as_schema(str(path)) == Schema(COLUMNS, records=9, path=path)
    assert as_schema(COLUMNS) == Schema(COLUMNS) == as_schema(Schema(COLUMNS))
    assert as_schema({"age": (0, 120), "ward": ["north", "south"], "smoker": bool}).columns == COLUMNS
    bounded = as_schema(Bounds([0], [120], names=["age"], radius=3))
    assert (bounded.columns.names, bounded.radius) == (("age",), 3.0)
    for wrong in (Bounds([0], [120]), 7, None):
        with pytest.raises(ParameterError, match="schema must be") as caught:
            as_schema(wrong)
        assert caught.value.parameter == "schema"
