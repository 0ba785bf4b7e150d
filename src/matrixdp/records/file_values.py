"""Values in files, read by the rules of the schema: numbers, dates as numbers, levels, words for missing values.

Each value is read on its own. `read_values` also says which values cannot be read: for a release one of them is an
error, which does not show it; `checking` lists them.
"""

import datetime as dt
import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from matrixdp.domain.file_rules import EPOCH, MICROSECONDS, ColumnRule, DateRule, FileRules
from matrixdp.errors import DataError
from matrixdp.records.tables import is_text_type, pa

Read: TypeAlias = tuple[Any, Any]  # an Arrow array of values, and one of booleans: which are wrong; None if none is
_LARGEST = 1 << 61  # microseconds, some 70,000 years
_MOST_KNOWN = 100  # texts that are known to be wrong
_SPACES = " \t"  # around numbers, as Arrow's reader of CSV drops them
_NUMBER = r"^[-+]?(?i:nan(\([0-9a-z_]*\))?|inf|infinity|[0-9]+\.?[0-9]*(e[-+]?[0-9]+)?|\.[0-9]+(e[-+]?[0-9]+)?)$"
_MOMENT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}(:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?)?)?$"


def apply_rules(rules: FileRules, batch: Any, texts: Collection[str] = ()) -> Any:
    """A record batch with its columns as the rules read them: `texts` as texts, all others as numbers.

    A value that cannot be read is a `DataError`, which does not show it.
    """
    for i, name in enumerate(batch.schema.names):
        values, wrong = read_values(rules, name, batch.column(i), as_text=name in texts)
        if wrong is not None and pa.compute.any(wrong).as_py():
            date = rules.date(name)
            raise not_a_number(name) if date is None else _not_a_date(date)
        if values is not batch.column(i):
            batch = batch.set_column(i, name, values)
    return batch


def read_values(rules: FileRules, name: str, column: Any, *, as_text: bool, known: set[str] | None = None) -> Read:
    """The values of a column, null where one is missing or wrong, and which are wrong.

    `known` are texts that were wrong before, which are found faster; others are added.
    """
    rule, date = rules.of(name), rules.date(name)
    if pa.types.is_string_view(column.type):  # as polars writes them; few functions of Arrow take them
        column = column.cast(pa.large_string())
    if rule.aliases and pa.types.is_integer(column.type):
        column = column.cast(pa.string())
    if not is_text_type(column.type):
        return (column, None) if date is None else _count_dates(date, column)
    if not pa.types.is_dictionary(column.type):
        return _read_texts(rule, date, column, as_text=as_text, known=known)
    values, wrong = _read_texts(rule, date, column.dictionary, as_text=as_text, known=known)
    if is_text_type(values.type):  # in which aliases may be there twice
        encoded = values.dictionary_encode()
        return pa.DictionaryArray.from_arrays(encoded.indices.take(column.indices), encoded.dictionary), None
    return values.take(column.indices), None if wrong is None else wrong.take(column.indices)


def _read_texts(rule: ColumnRule, date: DateRule | None, texts: Any, *, as_text: bool, known: set[str] | None) -> Read:
    """An Arrow array of texts, without a dictionary, as levels, dates or numbers."""
    if rule.strip:
        texts = pa.compute.utf8_trim_whitespace(texts)
    if date is None and not as_text:
        return _parse_numbers(rule, texts, known)
    if rule.missing_words:
        texts = _without_words(texts, rule.missing_words)
    if rule.aliases:
        texts = _translate(rule, texts)
    return (texts, None) if date is None else _parse_dates(date, texts, known)


def _without_words(texts: Any, words: Sequence[str]) -> Any:
    missing = pa.compute.is_in(texts, pa.array(words, texts.type))
    return pa.compute.if_else(missing, pa.scalar(None, texts.type), texts) if missing.true_count else texts


def _translate(rule: ColumnRule, texts: Any) -> Any:
    """The levels in place of their aliases."""
    keys = pa.compute.utf8_lower(pa.compute.utf8_trim_whitespace(texts)) if rule.fold else texts
    found = pa.compute.index_in(keys, pa.array(list(rule.meanings), texts.type))
    return pa.compute.coalesce(pa.array(list(rule.meanings.values()), texts.type).take(found), texts)


def _parse_numbers(rule: ColumnRule, texts: Any, known: set[str] | None) -> Read:
    if known and not rule.thousands and rule.decimal != ",":
        return _cast(texts, pa.float64(), _NUMBER, known, number_words(rule))
    texts = _without_words(texts, number_words(rule))
    if rule.thousands:
        texts = pa.compute.utf8_trim(texts, _SPACES)
        mark, point = re.escape(rule.thousands), re.escape(rule.decimal or ".")
        grouped = pa.compute.match_substring_regex(texts, rf"^[+-]?\d{{1,3}}({mark}\d{{3}})+({point}\d*)?$")
        plain = pa.compute.replace_substring(texts, rule.thousands, "")
        texts = pa.compute.if_else(grouped, plain, texts)
    if rule.decimal == ",":
        # A point is no digit here: "1.5" must not be read as 1.5.
        texts = pa.compute.replace_substring(pa.compute.replace_substring(texts, ".", "?"), ",", ".")
    return _cast(texts, pa.float64(), _NUMBER, known)


def _cast(texts: Any, kind: Any, pattern: str, known: set[str] | None, words: Sequence[str] = ()) -> Read:
    """Texts as values of a type, without spaces around them; `words` mean that a value is missing.

    What Arrow can cast to it matches `pattern`, but not all that matches can be cast.
    """
    wrong, right = None, texts
    if known:  # one look at each text, and another at those that are no values
        wrong = pa.compute.is_in(texts, pa.array([*known, *words], texts.type))
        right = pa.compute.if_else(wrong, pa.scalar(None, texts.type), texts)
    try:
        values = right.cast(kind)
        if words:
            found = pa.compute.is_in(texts.filter(wrong), pa.array(words, texts.type))
            wrong = pa.compute.replace_with_mask(wrong, wrong, pa.compute.invert(found))
        return values, wrong
    except pa.ArrowInvalid:
        texts = _without_words(texts, words) if words else texts
    encoded = texts.dictionary_encode()  # most texts are there more than once
    unique = pa.compute.utf8_trim(encoded.dictionary, _SPACES)
    likely = pa.compute.match_substring_regex(unique, pattern)
    likely = pa.compute.if_else(likely, unique, pa.scalar(None, texts.type))
    values = pa.concat_arrays(_cast_halves(likely, kind))
    if known is not None and len(known) < _MOST_KNOWN:
        known.update(encoded.dictionary.filter(values.is_null())[:_MOST_KNOWN].to_pylist())
    return values.take(encoded.indices), values.is_null().take(encoded.indices).fill_null(fill_value=False)


def _cast_halves(texts: Any, kind: Any) -> list[Any]:
    """Pieces of the cast texts, null where one cannot be cast."""
    try:
        return [texts.cast(kind)]
    except pa.ArrowInvalid:
        pass
    if len(texts) == 1:
        return [pa.nulls(1, kind)]
    middle = len(texts) // 2
    return [*_cast_halves(texts[:middle], kind), *_cast_halves(texts[middle:], kind)]


def number_words(rule: ColumnRule | FileRules) -> list[str]:
    """The words for missing values in columns of numbers."""
    return pa.csv.ConvertOptions().null_values if rule.missing_words is None else ["", *rule.missing_words]


def not_a_number(name: str) -> DataError:
    """The error for a text in a column of numbers."""
    return DataError(
        f"column {name!r} must hold numbers, but it contains text. In the schema, give it the type of what it holds: "
        'type = "yes/no" for TRUE and FALSE or yes and no, "category" for names, "date" for dates; declare a decimal '
        "comma, thousands or words for missing values, in the column or under [files] (decimal, thousands, "
        f"missing_words); or delete the column there. {_LIST}"
    )


_LIST = "To list all such values: matrixdp check DATA --schema SCHEMA"


def _not_a_date(rule: DateRule) -> DataError:
    return DataError(
        f"column {rule.name!r} must hold {rule.kind}s, written as {rule.example}, and a value is something else. "
        'Give its format in the schema, as in format = "%d.%m.%Y" or a list of several, or correct the value. '
        f"{_LIST}"
    )


def _count_dates(rule: DateRule, column: Any) -> Read:
    """An Arrow array of dates, timestamps or times as an array of floats; all others are wrong."""
    try:
        return _count_units(rule, _microseconds(rule, column)), None
    except (pa.ArrowException, ValueError, OverflowError):
        return pa.nulls(len(column), pa.float64()), column.is_valid()


def _count_units(rule: DateRule, counted: Any) -> Any:
    """Microseconds since 1970, or midnight, as units since the origin."""
    missing = counted.is_null().to_numpy(zero_copy_only=False)
    since = np.clip(counted.fill_null(0).to_numpy(), -_LARGEST, _LARGEST) - rule.start
    return pa.array(since / MICROSECONDS[rule.unit], pa.float64(), mask=missing)


def _microseconds(rule: DateRule, column: Any) -> Any:
    """Microseconds since 1970 or midnight, as an Arrow array of integers."""
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), pa.int64())
    dates = pa.types.is_date(column.type) or pa.types.is_timestamp(column.type)
    if not (pa.types.is_time(column.type) if rule.origin is None else dates):
        raise ValueError
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:  # zones are not in the number: UTC
        column = column.cast(pa.timestamp(column.type.unit))
    fine = str(column.type).endswith("[ns]")
    kind = pa.time64("us") if rule.origin is None else pa.timestamp("us")
    return column.cast(kind, safe=not fine).cast(pa.int64())


def _parse_dates(rule: DateRule, texts: Any, known: set[str] | None) -> Read:
    """Texts as numbers; empty ones are missing."""
    encoded = texts.dictionary_encode()  # most dates are there more than once
    unique = _without_words(pa.compute.utf8_trim_whitespace(encoded.dictionary), [""])
    if rule.formats:
        counted = _parse_formats(unique, rule.formats, rule.origin is None)
        wrong = pa.compute.and_(counted.is_null(), unique.is_valid())
    else:
        if rule.origin is None:
            unique = pa.compute.binary_join_element_wise(pa.scalar("1970-01-01", unique.type), unique, " ")
        moments, wrong = _cast(unique, pa.timestamp("us"), _MOMENT, known)
        counted = moments.cast(pa.int64())
    wrong = None if wrong is None or not wrong.true_count else wrong.take(encoded.indices)
    return _count_units(rule, counted).take(encoded.indices), wrong


def _parse_formats(texts: Any, formats: tuple[str, ...], of_day: bool) -> Any:
    """What `parse_moment` finds in each text, as an Arrow array of integers; Arrow reads days of fixed width faster."""
    found = pa.nulls(len(texts), pa.int64())
    for written in formats:
        if of_day or (fields := re.fullmatch(r"%([dmY])([-./])%([dmY])([-./])%([dmY])", written)) is None:
            break  # a later format must not be tried before
        first, mark, second, other, third = fields.groups()
        if {first, second, third} != set("dmY"):
            break
        digits = {"d": "([0-9]{2})", "m": "([0-9]{2})", "Y": "([1-9][0-9]{3})"}
        pattern = f"^{digits[first]}[{mark}]{digits[second]}[{other}]{digits[third]}$"
        ordered = "-".join(f"\\{(first, second, third).index(field) + 1}" for field in "Ymd")
        fits = pa.compute.and_(pa.compute.match_substring_regex(texts, pattern), found.is_null())
        days = pa.compute.replace_substring_regex(
            pa.compute.if_else(fits, texts, pa.scalar(None, texts.type)), pattern, ordered
        )
        days = pa.concat_arrays(_cast_halves(days, pa.timestamp("us")))
        found = pa.compute.coalesce(found, days.cast(pa.int64()))
    unread = pa.compute.and_(found.is_null(), texts.is_valid())
    left = [parse_moment(text, formats, of_day) for text in texts.filter(unread).to_pylist()]
    return pa.compute.replace_with_mask(found, unread, pa.array(left, pa.int64()))


@lru_cache(maxsize=1 << 17)
def parse_moment(text: str, formats: tuple[str, ...], of_day: bool) -> int | None:
    """Microseconds since 1970, or since midnight, in a text of one of the formats; None for others."""
    for written in formats:
        try:
            when = dt.datetime.strptime(text, written)
        except ValueError:
            continue
        when = when if when.tzinfo is None else when.astimezone(dt.UTC).replace(tzinfo=None)
        when = dt.datetime.combine(EPOCH.date(), when.time()) if of_day else when
        return (when - EPOCH) // dt.timedelta(microseconds=1)
    return None
