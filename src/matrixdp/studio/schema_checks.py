"""What is wrong with the form of a schema, field by field, by the checks that read the schema's file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

from matrixdp.cli.actions.schema_file import TYPES, parse_schema
from matrixdp.cli.actions.schema_guesses import CATEGORY_GUESSES, NUMBER_GUESSES
from matrixdp.cli.actions.schema_rules import DATE_TYPES
from matrixdp.errors import ParameterError, show
from matrixdp.studio.field_text import read_date, unquote_line
from matrixdp.studio.schema_form import SCHEMA, ColumnForm, SchemaForm, column_entry, form_content

_EXAMPLES = {"date": "1900-01-01 or 1900-01-01 12:00:00", "time": "07:30 or 07:30:00"}
_DECIMALS = (".", ",")
_ALONE = ("records", "radius", "expected_correlation", "decimal", "thousands", "sheet")  # checked one at a time


def find_mistakes(form: SchemaForm) -> dict[str, str]:
    """Messages by the name of the field that they are about; those about the whole form have an empty name.

    Fields of columns are named ``column.NUMBER.FIELD``, by the place of the column in the form.

    Examples
    --------
    >>> form = SchemaForm((ColumnForm("age", "number", lower="0"),), records="many")
    >>> for field, message in find_mistakes(form).items():
    ...     print(f"{field}: {message}")
    column.0.upper: Column 'age' has no upper bound yet. Fill it in from public knowledge, not from the data.
    records: Records must be a positive integer, got 'many' instead.
    """
    mistakes: dict[str, str] = {}
    sound = []
    seen: set[str] = set()
    for number, column in enumerate(form.columns):
        found = dict(_check_column(column))
        if column.name in seen:
            found["name"] = f"Column {column.name!r} is described twice. Remove one of them."
        seen.add(column.name)
        mistakes |= {f"column.{number}.{field}": message for field, message in found.items()}
        sound += [] if found else [column]
    mistakes |= dict(_check_table(form, tuple(sound)))
    if not form.columns:
        mistakes[""] = "There are no columns. Add at least one."
    if not mistakes:
        mistakes |= dict(_report("", lambda: parse_schema(SCHEMA, form_content(form)).check()))
    return mistakes


def _check_column(column: ColumnForm) -> Iterator[tuple[str, str]]:
    """Fields of one column and what is wrong with them."""
    kind = column.type
    if not column.name or kind not in TYPES:
        yield from _report("type" if column.name else "name", lambda: _parse(column))
        return
    found = []
    if kind in DATE_TYPES:
        found = list(_check_dates(column))
    elif kind == "number":
        found = [one for end in ("lower", "upper") for one in _check_end(column, end)]
    if not found:
        guesses = NUMBER_GUESSES if kind == "number" else CATEGORY_GUESSES
        empty: dict[str, Any] = dict.fromkeys(guesses, "")
        bare = replace(column, **empty)
        field = "levels" if kind == "category" else "type" if kind == "yes/no" else "upper"
        found = list(_report(field, lambda: _parse(bare)))
        if not found and kind not in DATE_TYPES:
            for guess in guesses:
                if getattr(column, guess):
                    one = replace(bare, **{guess: getattr(column, guess)})
                    found += _report(guess, lambda one=one: _parse(one))
    yield from found


def _check_end(column: ColumnForm, end: str) -> Iterator[tuple[str, str]]:
    """A bound that is no number; with one, the other is looked at as well."""
    value = column_entry(column)[end]
    if isinstance(value, str):
        entry = {"type": "number", "lower": 0, "upper": 0, end: value}
        yield from _report(end, lambda: _parse_entry(column.name, entry))


def _check_dates(column: ColumnForm) -> Iterator[tuple[str, str]]:
    """Fields of dates and times that cannot be read."""
    entry, kind = column_entry(column), column.type
    for field in ("lower", "upper", "origin"):
        text = getattr(column, field).strip()
        if field == "origin" and (kind == "time" or not text):
            continue
        if text and isinstance(entry[field], str):
            wanted = f"{field} must be a {kind}, as in {_EXAMPLES[kind]}"
            yield field, f"Column {column.name!r}: {wanted}, got {show(text)} instead."
        elif not text or getattr(entry[field], "tzinfo", None) is not None:
            day = read_date("2000-01-01" if kind == "date" else "12:00", kind)
            alone = {"type": kind, "lower": day, "upper": day, "origin": day, field: entry.get(field, "")}
            if kind == "time":
                del alone["origin"]
            yield from _report(field, lambda alone=alone: _parse_entry(column.name, alone))
    if "unit" in entry:
        yield from _report("unit", lambda: _check_unit(column, entry["unit"]))


def _check_unit(column: ColumnForm, unit: str) -> None:
    lower, upper = ("2000-01-01", "2001-01-01") if column.type == "date" else ("00:00", "12:00")
    _parse(ColumnForm(column.name, column.type, lower=lower, upper=upper, unit=unit))


def _check_table(form: SchemaForm, sound: tuple[ColumnForm, ...]) -> Iterator[tuple[str, str]]:
    """Fields of the whole table, each with the columns that are sound and without the other fields."""
    empty: dict[str, Any] = {field.name: field.default for field in fields(SchemaForm)[1:]}
    kinds = [column.type for column in form.columns]
    if "number" in kinds and "number" not in [column.type for column in sound]:
        sound = (*sound, ColumnForm("x", "number", lower="0", upper="1"))  # for a check of the radius
    bare = replace(form, columns=sound, **empty)
    for name in _ALONE:
        given = {name: getattr(form, name)}
        if name == "thousands" and form.decimal in _DECIMALS:  # the two must differ
            given["decimal"] = form.decimal
        if given != {field: empty[field] for field in given}:
            yield from _report(name, lambda given=given: _check_form(replace(bare, **given)))
    if form.missing_rule == "listed":
        words = replace(bare, missing_rule="listed", missing_words=form.missing_words)
        yield from _report("missing_words", lambda: _check_form(words))
    if form.person.strip():
        yield from _report("person", lambda: _check_person(form, bare))
    if form.person_rows.strip():
        rows = replace(bare, person=form.person.strip(), person_rows=form.person_rows)
        yield from _report("person_rows", lambda: _check_form(rows))


def _check_person(form: SchemaForm, bare: SchemaForm) -> None:
    _check_form(replace(bare, person=form.person))
    name = unquote_line(form.person)
    if name in {column.name for column in form.columns}:
        raise ParameterError(
            f"column {name!r} says whose each row is, and cannot be released as well. Remove it from the columns."
        )


def _check_form(form: SchemaForm) -> None:
    schema = parse_schema(SCHEMA, form_content(form))
    if form.radius and schema.columns is not None:
        schema.check()


def _parse(column: ColumnForm) -> None:
    _parse_entry(column.name, column_entry(column))


def _parse_entry(name: str, entry: dict[str, Any]) -> None:
    parse_schema(SCHEMA, {"columns": {name: entry}})


def _report(field: str, check: Any) -> Iterator[tuple[str, str]]:
    """The field with the message of the error that `check` raises, if it does."""
    try:
        check()
    except ParameterError as error:
        text = str(error).removeprefix(f"{SCHEMA}: ").removeprefix(f"{SCHEMA}:").strip()
        text = text.removeprefix("[files] ").removeprefix("[person] ")
        yield field, text[:1].upper() + text[1:]
