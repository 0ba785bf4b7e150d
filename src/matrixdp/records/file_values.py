"""Values in files, read by the rules of the schema: numbers, dates as numbers, levels, words for missing values.

Each value is read on its own. `read_values` also says which values cannot be read: for a release one of them is an
error, which does not show it; `checking` lists them.
"""

import contextlib
import datetime as dt
import math
import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain.file_rules import EPOCH, MICROSECONDS, ColumnRule, DateRule, FileRules
from matrixdp.errors import DataError
from matrixdp.records.tables import is_text_type, pa

Read: TypeAlias = tuple[Any, NDArray[np.bool_] | None]  # an Arrow array of values, and which are wrong; None if none is
_FIRST = 1000  # values of a column that are tried before all
_LARGEST = 1 << 61  # microseconds, some 70,000 years
_SPACES = " \t"  # around numbers, as Arrow's reader of CSV drops them
_LIST = "To list all such values: matrixdp check DATA --schema SCHEMA"
_PLAIN = "0123456789.-:T "  # of which most texts consist
_NUMBER = r"^[-+]?(?i:nan(\([0-9a-z_]*\))?|inf|infinity|[0-9]+\.?[0-9]*(e[-+]?[0-9]+)?|\.[0-9]+(e[-+]?[0-9]+)?)$"
_MOMENT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}(:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?)?)?$"


def apply_rules(rules: FileRules, batch: Any, texts: Collection[str] = ()) -> Any:
    """A record batch with its columns as the rules read them: `texts` as texts, all others as numbers.

    A value that cannot be read is a `DataError`, which does not show it.
    """
    for i, name in enumerate(batch.schema.names):
        values, wrong = read_values(rules, name, batch.column(i), as_text=name in texts)
        if wrong is not None and wrong.any():
            if (date := rules.date(name)) is None:
                raise not_a_number(name)
            raise DataError(
                f"column {name!r} must hold {date.kind}s, written as {date.example}, and a value is something else. "
                'Give its format in the schema, as in format = "%d.%m.%Y" or a list of several, or correct the value. '
                f"{_LIST}"
            )
        if values is not batch.column(i):
            batch = batch.set_column(i, name, values)
    return batch


def read_values(rules: FileRules, name: str, column: Any, *, as_text: bool) -> Read:
    """The values of a column, null where one is missing or wrong, and which are wrong."""
    rule, date = rules.of(name), rules.date(name)
    if pa.types.is_string_view(column.type):  # as polars writes them; few functions of Arrow take them
        column = column.cast(pa.large_string())
    if rule.aliases and pa.types.is_integer(column.type):
        column = column.cast(pa.string())
    if not is_text_type(column.type):
        return (column, None) if date is None else _count_dates(date, column)
    if not pa.types.is_dictionary(column.type):
        return _read_texts(rule, date, column, as_text=as_text)
    values, wrong = _read_texts(rule, date, column.dictionary, as_text=as_text)
    if is_text_type(values.type):  # in which aliases may be there twice
        encoded = values.dictionary_encode()
        return pa.DictionaryArray.from_arrays(encoded.indices.take(column.indices), encoded.dictionary), None
    return _spread(column, values, pa.array(np.zeros(len(values), bool) if wrong is None else wrong))


def _read_texts(rule: ColumnRule, date: DateRule | None, texts: Any, *, as_text: bool) -> Read:
    """An Arrow array of texts, without a dictionary, as levels, dates or numbers."""
    if rule.strip:
        texts = pa.compute.utf8_trim_whitespace(texts)
    if date is None and not as_text:
        return _parse_numbers(rule, texts)
    if rule.missing_words:
        texts = _without_words(texts, rule.missing_words)
    if rule.aliases:  # which stand for their levels
        keys = pa.compute.utf8_lower(pa.compute.utf8_trim_whitespace(texts)) if rule.fold else texts
        found = pa.compute.index_in(keys, pa.array(list(rule.meanings), texts.type))
        texts = pa.compute.coalesce(pa.array(list(rule.meanings.values()), texts.type).take(found), texts)
    return (texts, None) if date is None else _parse_dates(date, texts)


def _without_words(texts: Any, words: Sequence[str]) -> Any:
    missing = pa.compute.is_in(texts, pa.array(words, texts.type))
    return pa.compute.if_else(missing, pa.scalar(None, texts.type), texts) if missing.true_count else texts


def _parse_numbers(rule: ColumnRule, texts: Any) -> Read:
    usual = pa.csv.ConvertOptions().null_values
    words = usual if rule.missing_words is None else ["", *rule.missing_words]
    if not rule.thousands and rule.decimal != "," and not any(map(_is_finite, words)):
        with contextlib.suppress(pa.ArrowInvalid):  # as for most columns, which have numbers alone
            texts[:_FIRST].cast(pa.float64())  # a cast that fails takes as long as one that does not
            values = texts.cast(pa.float64())
            if not pa.compute.any(pa.compute.is_nan(values)).as_py():  # which words may mean
                return values, None
    texts = _without_words(texts, words)
    if rule.thousands:
        texts = pa.compute.utf8_trim(texts, _SPACES)
        mark, point = re.escape(rule.thousands), re.escape(rule.decimal or ".")
        grouped = pa.compute.match_substring_regex(texts, rf"^[+-]?\d{{1,3}}({mark}\d{{3}})+({point}\d*)?$")
        texts = pa.compute.if_else(grouped, pa.compute.replace_substring(texts, rule.thousands, ""), texts)
    if rule.decimal == ",":
        # A point is no digit here: "1.5" must not be read as 1.5.
        texts = pa.compute.replace_substring(pa.compute.replace_substring(texts, ".", "?"), ",", ".")
    return _cast(texts, pa.float64(), _NUMBER)


def _is_finite(word: str) -> bool:
    """Whether a word for missing values could be read as a number that is not NaN."""
    try:
        return not math.isnan(float(word))
    except ValueError:
        return False


def _cast(texts: Any, kind: Any, pattern: str) -> Read:
    """Texts as values of a type, without spaces around them.

    What Arrow can cast to it matches `pattern`, but not all that matches can be cast. Most texts are cast at once.
    """
    nothing = pa.scalar(None, texts.type)
    values, odd = pa.nulls(len(texts), kind), pa.repeat(pa.scalar(value=True), len(texts))
    plain = pa.compute.equal(pa.compute.ascii_trim(texts, _PLAIN), "").fill_null(fill_value=True)
    for spaces in ("", _SPACES):  # few columns have any, and trimming takes as long as casting
        some = pa.compute.utf8_trim(texts, spaces) if spaces else texts
        with contextlib.suppress(pa.ArrowInvalid):
            values, odd = pa.compute.if_else(plain, some, nothing).cast(kind), pa.compute.invert(plain)
            break
    encoded = texts.filter(odd).dictionary_encode()  # most of them are there more than once
    if not len(encoded):
        return values, None
    unique = pa.compute.utf8_trim(encoded.dictionary, _SPACES)
    likely = pa.compute.match_substring_regex(unique, pattern)
    found = pa.concat_arrays(_cast_halves(pa.compute.if_else(likely, unique, nothing), kind))
    rest, unread = _spread(encoded, found, found.is_null())
    wrong = np.asarray(odd)
    wrong[wrong] = unread
    return pa.compute.replace_with_mask(values, odd, rest), wrong


def _spread(encoded: Any, values: Any, wrong: Any) -> tuple[Any, NDArray[np.bool_]]:
    """Values of the texts of a dictionary, and which of them are wrong, for each row."""
    return values.take(encoded.indices), np.asarray(wrong.take(encoded.indices).fill_null(fill_value=False))


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


def not_a_number(name: str) -> DataError:
    """The error for a text in a column of numbers."""
    return DataError(
        f"column {name!r} must hold numbers, but it contains text. In the schema, give it the type of what it holds: "
        'type = "yes/no" for TRUE and FALSE or yes and no, "category" for names, "date" for dates; declare a decimal '
        "comma, thousands or words for missing values, in the column or under [files] (decimal, thousands, "
        f"missing_words); or delete the column there. {_LIST}"
    )


def _count_dates(rule: DateRule, column: Any) -> Read:
    """An Arrow array of dates, timestamps or times as an array of floats; all others are wrong."""
    kind, target = column.type, pa.time64("us") if rule.origin is None else pa.timestamp("us")
    fits = pa.types.is_time(kind) if rule.origin is None else pa.types.is_date(kind) or pa.types.is_timestamp(kind)
    try:
        if pa.types.is_timestamp(kind) and kind.tz is not None:  # zones are not in the number: UTC
            column = column.cast(pa.timestamp(kind.unit))
        if fits or pa.types.is_null(kind):
            return _count_units(rule, column.cast(target, safe=not str(kind).endswith("[ns]")).cast(pa.int64())), None
    except (pa.ArrowException, ValueError, OverflowError):
        pass
    return pa.nulls(len(column), pa.float64()), np.asarray(column.is_valid())


def _count_units(rule: DateRule, counted: Any) -> Any:
    """Microseconds since 1970, or midnight, as units since the origin."""
    missing = counted.is_null().to_numpy(zero_copy_only=False)
    since = np.clip(counted.fill_null(0).to_numpy(), -_LARGEST, _LARGEST) - rule.start
    return pa.array(since / MICROSECONDS[rule.unit], pa.float64(), mask=missing)


def _parse_dates(rule: DateRule, texts: Any) -> Read:
    """Texts as numbers; empty ones are missing."""
    wrong: NDArray[np.bool_] | None
    if rule.formats:
        encoded = texts.dictionary_encode()
        unique = pa.compute.utf8_trim_whitespace(encoded.dictionary)
        found = [parse_moment(text, rule.formats, rule.origin is None) for text in unique.to_pylist()]
        unread = pa.compute.and_(pa.array(found, pa.int64()).is_null(), pa.compute.not_equal(unique, ""))
        moments, wrong = _spread(encoded, pa.array(found, pa.int64()), unread)
    else:
        texts = _without_words(pa.compute.utf8_trim_whitespace(texts), [""])
        if rule.origin is None:
            day, space = (pa.scalar(text, texts.type) for text in ("1970-01-01", " "))
            texts = pa.compute.binary_join_element_wise(day, texts, space)
        moments, wrong = _cast(texts, pa.timestamp("us"), _MOMENT)
    return _count_units(rule, moments.cast(pa.int64())), wrong


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
