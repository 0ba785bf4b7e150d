"""Entries of a schema on how values are written in files: ``[files]``, and columns of dates and times."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matrixdp.domain.columns import Number
from matrixdp.errors import ParameterError, show
from matrixdp.records.file_rules import DateRule, FileRules
from matrixdp.records.table_columns import NO, YES

DATE_TYPES = ("date", "time")
_EXAMPLES = {"date": "1900-01-01", "time": "07:30:00"}
_UNITS = {"date": "days", "time": "hours"}


def require_known(content: Mapping[str, Any], names: set[str], where: str) -> None:
    """Raise a `ParameterError` for an entry that is not among `names`."""
    unknown = sorted(set(content) - names)
    if unknown:
        raise ParameterError(f"{where}: unknown entry {unknown[0]!r}; it must be one of {', '.join(sorted(names))}.")


def parse_file_rules(path: Path, entry: Mapping[str, Any], columns: Mapping[str, Any]) -> FileRules:
    """The rules of ``[files]`` and of those `columns` that are dates or times."""
    where = f"{path}: [files]"
    require_known(entry, {"decimal", "thousands", "missing_words", "sheet"}, where)
    for name in ("decimal", "thousands", "sheet"):
        if not isinstance(entry.get(name, ""), str):
            raise ParameterError(f"{where} {name} must be a text, got {show(entry[name])} instead.")
    words = entry.get("missing_words")
    if words is not None and not (isinstance(words, list) and all(isinstance(word, str) for word in words)):
        raise ParameterError(f'{where} missing_words must be a list of texts, as in ["NA", "."].')
    dates = [_date_rule(path, name, one) for name, one in columns.items() if one.get("type") in DATE_TYPES]
    _check_words(where, words or (), columns)
    try:
        return FileRules(**{**entry, "dates": dates})
    except ParameterError as error:
        raise ParameterError(f"{where} {error}") from None


def _check_words(where: str, words: Sequence[str], columns: Mapping[str, Any]) -> None:
    """Raise a `ParameterError` for a word for missing values that has another meaning in a column."""
    for name, one in columns.items():
        levels = set(map(str, one.get("levels", one.get("categories", ()))))
        for word in words:
            if word in levels:
                raise ParameterError(
                    f"{where} missing_words has {show(word)}, which is also a level of column {name!r}. Remove one of "
                    "them."
                )
            if one.get("type") == "yes/no" and word.strip().lower() in (*YES, *NO):
                raise ParameterError(
                    f"{where} missing_words has {show(word)}, which means yes or no in column {name!r}. Remove the "
                    'word, or describe the column as type = "category" with its levels.'
                )


def parse_date_column(path: Path, name: str, entry: Mapping[str, Any]) -> Number:
    """A column of dates or times as one of numbers, with bounds in its unit since its origin."""
    rule = _date_rule(path, name, entry)
    lower, upper = (rule.number(_read_when(path, name, entry, end)) for end in ("lower", "upper"))
    return Number(name, lower, upper, missing=entry.get("missing", False))


def _date_rule(path: Path, name: str, entry: Mapping[str, Any]) -> DateRule:
    """The rule of a column; dates count from the lower bound unless there is an origin."""
    where, kind = f"{path}: column {name!r}", entry["type"]
    for option in ("unit", "format"):
        if not isinstance(entry.get(option, ""), str):
            raise ParameterError(f"{where}: {option} must be a text, got {show(entry[option])} instead.")
    if kind == "time" and "origin" in entry:
        raise ParameterError(f"{where}: times count from midnight. Remove origin.")
    origin = _read_when(path, name, entry, "origin" if "origin" in entry else "lower") if kind == "date" else None
    assert not isinstance(origin, dt.time)  # that would have been refused
    try:
        return DateRule(name, entry.get("unit", _UNITS[kind]), origin, entry.get("format") or None)
    except ParameterError as error:
        raise ParameterError(f"{path}: {error}") from None


def _read_when(path: Path, name: str, entry: Mapping[str, Any], key: str) -> dt.date | dt.time:
    value, kind = entry.get(key), entry["type"]
    if value is None or value == "":
        raise ParameterError(
            f"{path}: column {name!r} has no {key} bound yet. Fill it in from public knowledge, not from the data, as "
            f"in {key} = {_EXAMPLES[kind]}."
        )
    if not isinstance(value, dt.date if kind == "date" else dt.time):
        raise ParameterError(
            f"{path}: column {name!r}: {key} must be a {kind} without quotes, as in {key} = {_EXAMPLES[kind]}, got "
            f"{show(value)} instead."
        )
    return value
