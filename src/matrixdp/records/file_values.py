"""Values in files, read by the rules of the schema: numbers, dates as numbers, and words for missing values.

Each value is read on its own, and errors do not show it.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from matrixdp.domain.file_rules import EPOCH, MICROSECONDS, DateRule, FileRules
from matrixdp.errors import DataError
from matrixdp.records.tables import is_text_type, pa, value_type

_LARGEST = 1 << 61  # microseconds, some 70,000 years


def apply_rules(rules: FileRules, batch: Any) -> Any:
    """A record batch with null in place of the words for missing values, and numbers in place of dates."""
    for i, name in enumerate(batch.schema.names):
        column = batch.column(i)
        if pa.types.is_string_view(column.type):  # as polars writes them; few functions of Arrow take them
            column = column.cast(pa.large_string())
        if rules.missing_words is not None:
            column = _without_words(column, rules.missing_words)
        rule = rules.date(name)
        if rule is not None:
            column = count_dates(rule, column)
        if column is not batch.column(i):
            batch = batch.set_column(i, name, column)
    return batch


def parse_numbers(rules: FileRules, name: str, texts: Any) -> Any:
    """An Arrow array of texts as floats, null where one is missing."""
    missing = pa.compute.is_in(texts, pa.array(number_words(rules)))
    texts = pa.compute.utf8_trim_whitespace(pa.compute.if_else(missing, pa.scalar(None, pa.string()), texts))
    if rules.thousands:
        mark, point = re.escape(rules.thousands), re.escape(rules.decimal)
        grouped = pa.compute.match_substring_regex(texts, rf"^[+-]?\d{{1,3}}({mark}\d{{3}})+({point}\d*)?$")
        plain = pa.compute.replace_substring(texts, rules.thousands, "")
        texts = pa.compute.if_else(grouped, plain, texts)
    if rules.decimal != ".":
        # A point is no digit here: "1.5" must not be read as 1.5.
        texts = pa.compute.replace_substring(pa.compute.replace_substring(texts, ".", "?"), rules.decimal, ".")
    try:
        return texts.cast(pa.float64())
    except pa.ArrowInvalid:
        pass
    raise not_a_number(name)


def number_words(rules: FileRules) -> list[str]:
    """The words for missing values in columns of numbers."""
    return pa.csv.ConvertOptions().null_values if rules.missing_words is None else ["", *rules.missing_words]


def not_a_number(name: str) -> DataError:
    """The error for a text in a column of numbers."""
    return DataError(
        f"column {name!r} must hold numbers, but it contains text. In the schema, give it the type of what it holds: "
        'type = "yes/no" for TRUE and FALSE or yes and no, "category" for names, "date" for dates; declare a decimal '
        "comma, thousands or words for missing values under [files] (decimal, thousands, missing_words); or delete the "
        "column there."
    )


def _without_words(column: Any, words: Sequence[str]) -> Any:
    """Null in place of the words, in a column of texts, which may have a dictionary."""
    encoded, kind = pa.types.is_dictionary(column.type), value_type(column.type)
    if not is_text_type(kind) or not words:
        return column
    values = column.dictionary if encoded else column
    missing = pa.compute.is_in(values, pa.array(words, kind))
    if not encoded:
        return pa.compute.if_else(missing, pa.scalar(None, kind), column)
    indices = pa.compute.if_else(missing.take(column.indices), pa.scalar(None, column.type.index_type), column.indices)
    return pa.DictionaryArray.from_arrays(indices, column.dictionary)


def count_dates(rule: DateRule, column: Any) -> Any:
    """An Arrow array of dates, timestamps, times or texts as an array of floats; null where a value is missing."""
    try:
        counted = _microseconds(rule, column)
    except (pa.ArrowException, ValueError, OverflowError):
        counted = None
    if counted is None:  # not inside of `except`: the original error quotes the data
        raise DataError(
            f"column {rule.name!r} must hold {rule.kind}s, written as {rule.example}, and a value is something else. "
            'Correct it, or give the format in the schema, as in format = "%d.%m.%Y".'
        )
    missing = counted.is_null().to_numpy(zero_copy_only=False)
    since = np.clip(counted.fill_null(0).to_numpy(), -_LARGEST, _LARGEST) - rule.start
    return pa.array(since / MICROSECONDS[rule.unit], pa.float64(), mask=missing)


def _microseconds(rule: DateRule, column: Any) -> Any:
    """Microseconds since 1970 or midnight, as an Arrow array of integers."""
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), pa.int64())
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if is_text_type(column.type):
        return _parse_dates(rule, column).cast(pa.int64())
    dates = pa.types.is_date(column.type) or pa.types.is_timestamp(column.type)
    if not (pa.types.is_time(column.type) if rule.origin is None else dates):
        raise ValueError
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:  # zones are not in the number: UTC
        column = column.cast(pa.timestamp(column.type.unit))
    fine = str(column.type).endswith("[ns]")
    kind = pa.time64("us") if rule.origin is None else pa.timestamp("us")
    return column.cast(kind, safe=not fine).cast(pa.int64())


def _parse_dates(rule: DateRule, column: Any) -> Any:
    """Texts as timestamps, times as those of the first day, with empty ones missing."""
    column = pa.compute.utf8_trim_whitespace(column)
    column = pa.compute.if_else(pa.compute.equal(column, ""), pa.scalar(None, column.type), column)
    kind = pa.timestamp("us")
    if rule.format is None:
        if rule.origin is None:
            column = pa.compute.binary_join_element_wise(pa.scalar("1970-01-01", column.type), column, " ")
        return column.cast(kind)
    unique = column.dictionary_encode()
    parsed = [dt.datetime.strptime(text, rule.format) for text in unique.dictionary.to_pylist()]
    if rule.origin is None:
        parsed = [dt.datetime.combine(EPOCH.date(), when.time()) for when in parsed]
    return pa.array(parsed, kind).take(unique.indices)
