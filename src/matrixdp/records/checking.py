"""`check_table`: all that a release could stumble over in a file, at once, for the eyes of its owner.

Values are read by the functions that a release uses, so that both agree on which of them cannot be read. What is found
shows values, and nothing of it may be part of a release.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain.columns import NO, YES, Category, Column, Number, YesNo
from matrixdp.domain.fields import quote_key, quote_text, write_value
from matrixdp.domain.file_rules import ColumnRule, FileRules
from matrixdp.domain.schema import Schema
from matrixdp.domain.schema_file import as_schema, find_ids
from matrixdp.errors import DataError
from matrixdp.records.file_values import parse_moment, read_values
from matrixdp.records.files import Files, open_files
from matrixdp.records.heads import find_total, propose_rules
from matrixdp.records.ids import IdHash
from matrixdp.records.parts import InMemoryPart, Threads, sanitise_errors, unwrap_results
from matrixdp.records.people import IdCounts
from matrixdp.records.tables import MISSING_CODE, factorise, find_codes, is_text_type, pa

_MOST_VALUES = 1000  # different values of a column that are counted apart
_MOST_COMPARED = 50  # values for which near levels are sought
_MOST_ASKED = 10  # words that may mean missing values
_FIRST_ROWS = 20
_FILES = "[files]"
_SHOWN = 3  # rows and examples of a problem
_ABSENT = {"na", "n/a", "n.a.", "#n/a", "nan", "nd", "n.d.", "null", "none", "nil", "missing", "unknown", "unbekannt"}
_ABSENT |= {"fehlt", "fehlend", "leer", "k.a.", "k. a.", "ka", "keine angabe", "inconnu", "desconocido", "s/d"}
_ABSENT |= {"-", "--", "---", "–", "—", ".", "..", "?", "??", "*", "/", "x"}
_NOT = re.compile(r"(not|nicht|kein\w*|pas|sans|sin|non?)\b\W*\w.*", re.IGNORECASE)  # begins another word for it
_CODES = r"-?([6-9])\1+([.,]0*)?|-[1-9]([.,]0*)?"  # numbers that often stand for missing values: 999, -1
_WORDS = {
    "yes": {*YES, "ja", "j", "oui", "o", "si", "sí", "sì", "s", "sim", "tak", "ano", "on", "wahr", "vrai", "x", "+"},
    "no": {*NO, "nein", "non", "nee", "nej", "nei", "nie", "não", "off", "falsch", "faux", "-"},
}
_DATES = ("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%Y/%m/%d",
          "%Y%m%d", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S", "%d %b %Y", "%Y-%m-%d %H:%M:%S")  # fmt: skip
_TIMES = ("%H:%M:%S", "%H:%M", "%H.%M", "%H%M", "%I:%M %p")
_GROUPED = {".": r"[+-]?\d{1,3}(\.\d{3})+(,\d*)?", ",": r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?"}
_GROUPED |= {mark: rf"[+-]?\d{{1,3}}({mark}\d{{3}})+([.,]\d*)?" for mark in (" ", "'", "_", "\u00a0", "\u202f")}


@dataclass(frozen=True)
class Problem:
    """Something in a file that does not fit the schema."""

    column: str  # empty for the file as a whole
    what: str
    rows: int | None = None  # that have it
    first: tuple[int, ...] = ()  # of these rows, counted from the top of the file, without empty lines
    examples: tuple[str, ...] = ()
    write: Mapping[str, Any] = field(default_factory=dict)  # what solves it, in the column or, for the file, in [files]
    advice: str = ""  # where no entry solves it
    stops: bool = True  # a release; what does not is worth a look


@dataclass(frozen=True)
class TableCheck:
    """What `check_table` found: the number of rows, facts in words, and the problems. It shows values of the data."""

    rows: int
    facts: tuple[str, ...]
    problems: tuple[Problem, ...]

    @property
    def stops(self) -> bool:
        """Whether a release would fail."""
        return any(problem.stops for problem in self.problems)

    def entries(self) -> dict[str, str]:
        """What to write in the schema, as TOML: by the column, in one line, or by ``[files]``, a line to an entry."""
        merged: dict[str, dict[str, Any]] = {}
        for one in (one for one in self.problems if one.write):
            _merge(merged.setdefault(quote_key(one.column) if one.column else _FILES, {}), one.write)
        return {
            place: ("\n" if place == _FILES else ", ").join(f"{key} = {write_value(one)}" for key, one in entry.items())
            for place, entry in merged.items()
        }


def _merge(entry: dict[str, Any], more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        old = entry.get(key)
        if isinstance(old, dict):
            _merge(old, value)
        else:
            entry[key] = [*dict.fromkeys([*old, *value])] if isinstance(old, list) else deepcopy(value)


def check_table(
    data: str | Path | Sequence[str | Path],
    schema: Any,
    *,
    sql: str | None = None,
    progress: Callable[[int], object] | None = None,
) -> TableCheck:
    """Read files and list all that does not fit their schema, in one pass and bounded memory.

    Arguments are those of `open_records`; `schema` is what `as_schema` takes.

    Privacy
    -------
    The result shows values, rows and counts of the data. It is for their owner, and must not be published.
    """
    table = as_schema(schema)
    source = open_files(data, rules=table.rules, sql=sql)
    try:
        return _Checker(table, source, progress).check()
    except DataError as error:  # nothing more can be read
        return TableCheck(0, (), (Problem("", "it cannot be read", advice=str(error)),))


# How often each text was found, and the block and the row in it of the first; None for those beyond `_MOST_VALUES`.
_Tally: TypeAlias = dict[str | None, tuple[int, int, int]]


@dataclass
class _Found:
    """What was found in the block of this number: tallies by column and kind, ids by column, the number of rows."""

    number: int = 0
    rows: int = 0
    tallies: dict[tuple[str, str], _Tally] = field(default_factory=dict)
    ids: dict[str, IdCounts] = field(default_factory=dict)

    def of(self, name: str, kind: str) -> _Tally:
        return self.tallies.get((name, kind), {})

    def add(self, other: _Found) -> None:
        self.rows += other.rows
        for (name, kind), tally in other.tallies.items():
            for text, seen in tally.items():
                self._keep(name, kind, text, *seen)
        for name, counts in other.ids.items():
            self.ids.setdefault(name, IdCounts(1 << 24)).merge(counts)

    def _keep(self, name: str, kind: str, text: str | None, count: int, block: int = 0, row: int = 0) -> None:
        tally = self.tallies.setdefault((name, kind), {})
        text = text if text in tally or len(tally) < _MOST_VALUES else None
        known, *place = tally.get(text, (0, block, row))
        tally[text] = (known + count, *min((block, row), (place[0], place[1])))

    def note(self, name: str, kind: str, column: Any, chosen: NDArray[np.bool_]) -> None:
        """Keep the rows that are chosen."""
        places = np.flatnonzero(chosen)
        if not len(places):
            return
        values, codes = factorise(column.take(pa.array(places)))
        unique, starts, counts = np.unique(codes, return_index=True, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        for i in order[:_MOST_VALUES]:
            text = "" if unique[i] < 0 else str(values[unique[i]])
            self._keep(name, kind, text, int(counts[i]), self.number, int(places[starts[i]]))
        if len(rest := order[_MOST_VALUES:]):
            self._keep(name, kind, None, int(counts[rest].sum()), self.number, int(places[starts[rest].min()]))

    def check(self, rules: FileRules, column: Column, written: Any) -> None:
        """Note the values of a column that are wrong, missing or out of bounds."""
        name = column.name
        values, wrong = read_values(rules, name, written, as_text=not isinstance(column, Number))
        if not isinstance(column, Number):
            codes = find_codes(column, values)
            missing, unread = codes == MISSING_CODE, (codes < 0) & (codes != MISSING_CODE)
        else:
            missing = np.asarray(values.is_null()) if values.null_count else np.zeros(len(values), bool)
            unread = np.zeros(len(values), bool) if wrong is None else wrong
            missing &= ~unread
            if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
                numbers = values.to_numpy(zero_copy_only=False)
                self.note(name, "below", written, numbers < column.lower)
                self.note(name, "above", written, numbers > column.upper)
                if unread.any():
                    read = numbers[~(missing | unread)]  # not whole, in blocks where others could not be read
                    self._keep(name, "fractions", None, int((np.isfinite(read) & (read != np.rint(read))).sum()))
        self._keep(name, "read", None, int((~(missing | unread)).sum()))
        self.note(name, "wrong", written, unread)
        self.note(name, "missing", written, missing)

    def count(self, rules: FileRules, key: IdHash, written: Any) -> None:
        """Count the ids of a column."""
        values, _ = read_values(rules, key.column, written, as_text=True)
        absent = values.is_null()
        if pa.types.is_string(values.type):
            empty = pa.compute.equal(pa.compute.utf8_trim_whitespace(values), "")
            absent = pa.compute.or_(absent, empty.fill_null(fill_value=True))
        missing = np.asarray(absent)
        self.note(key.column, "no id", written, missing)
        counts = self.ids.setdefault(key.column, IdCounts())
        counts.add(key(values.filter(pa.array(~missing)) if missing.any() else values))


@dataclass
class _Checker:
    """Reads the files of a source once, and puts what it finds into words."""

    schema: Schema
    source: Files
    progress: Callable[[int], object] | None
    problems: list[Problem] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)  # the first row of each block, in its file
    broken: list[int] = field(default_factory=list)  # lines that are no rows of the table

    def check(self) -> TableCheck:
        """All problems."""
        self._check_files()
        self._check_first_record()
        names = self.source.column_names()
        described = tuple(column for column in self.schema.columns or () if column.name in names)
        self._check_names(names)
        ids = tuple(IdHash(name) for name in self._id_columns(names))

        def check_block(number: int, blocks: Iterable[Any]) -> _Found:
            found = _Found(number)
            for block in blocks:
                found.rows += block.num_rows
                for column in described:
                    found.check(self.rules, column, block.column(column.name))
                for key in ids:
                    found.count(self.rules, key, block.column(key.column))
            return found

        found = _Found()
        columns = list(dict.fromkeys([*(column.name for column in described), *(key.column for key in ids)]))
        blocks = self._blocks(columns or list(names[:1]), [one.name for one in described if isinstance(one, Number)])
        for part in unwrap_results(Threads().run(check_block, blocks), self.progress):
            found.add(part)
        self._check_lines()
        self._check_repeated_names({one.name: found.of(one.name, "wrong") for one in described})
        for column in described:
            self.problems += self._describe(column, found)
        if not found.rows:
            self._note("", "there are no rows below the names of the columns", advice="Give a file that has records.")
        facts = self._check_people(found)
        return TableCheck(found.rows, tuple(facts), tuple(self.problems))

    @property
    def rules(self) -> FileRules:
        return self.source.files[0].rules

    def _check_files(self) -> None:
        """Find how the files are written where the schema does not say it, and go on with that."""
        wanted = self.schema.required_names()
        guessed: dict[str, Any] = {}
        for file in self.source.files:
            guessed = sanitise_errors(file.place, partial(propose_rules, file, wanted, whole=True)) | guessed
        said = {
            "encoding": f"the file is not {self.rules.encoding or 'UTF-8'}",
            "delimiter": "another character separates the columns",
            "header_row": "the names of the columns are in another row",
            "sheet": "the table is on another sheet",
        }
        for key, value in guessed.items():
            self._change_rules({key: value}, said[key])
        for file in self.source.files:
            if (last := sanitise_errors(file.place, find_total, file)) is not None:
                word, line, broken = last
                write = {"skip_lines": [*self.rules.skip_lines, word]}
                self._change_rules(write, "the last line seems to be no record", 1, examples=(line,), stops=broken)
                break

    def _note(self, column: str, what: str, rows: int | None = None, **found: Any) -> None:
        self.problems.append(Problem(column, what, rows, **found))

    def _change_rules(self, write: dict[str, Any], what: str, rows: int | None = None, **found: Any) -> None:
        """Note what the schema should say about the files, and go on as if it did."""
        self._note("", what, rows, write=write, **found)
        rules = replace(self.rules, **write)
        self.source = replace(self.source, files=tuple(replace(file, rules=rules) for file in self.source.files))

    def _check_first_record(self) -> None:
        """Find rows below the names that are no records, such as units: without digits where others have them."""
        file, stored = self.source.files[0], self.source.files[0].stored_names()
        columns = [one.name for one in self.schema.columns or () if isinstance(one, Number) and one.name in stored]
        if file.typed or len(columns) < 2:
            return
        batches = file.as_written(columns, columns, lambda _: "skip", count=True)
        batch = sanitise_errors(file.place, next, batches, None)
        rows = [] if batch is None else batch.slice(0, _FIRST_ROWS).to_pylist()
        digits = [[any(map(str.isdigit, row[name])) for name in columns] for row in rows]
        units = next((i for i, row in enumerate(digits) if any(row)), 0)
        if units and np.mean(digits[units:]) > 0.5:
            self._change_rules({"skip_rows": self.rules.skip_rows + units}, "rows below the names are no records")

    def _check_names(self, names: Sequence[str]) -> None:
        required = self.schema.required_names()
        unknown = [name for name in names if name not in required]
        folded = {name.strip().lower(): name for name in unknown}
        for name in required:
            if name not in names:
                near = get_close_matches(name.strip().lower(), folded, 1, 0.75)
                advice = "Delete its line, or correct the file."
                advice = f"Write {quote_key(folded[near[0]])} in its place." if near else advice
                examples = tuple(folded[one] for one in near)
                self._note(name, "there is no such column in the file", examples=examples, advice=advice)
        if unknown:
            what = "columns are not in the schema, and are not used"
            self._note("", what, examples=tuple(unknown), stops=False)
        for file in self.source.files[1:]:
            sanitise_errors(file.place, file.require_columns, [name for name in required if name in names])

    def _id_columns(self, names: Sequence[str]) -> list[str]:
        """The column that says whose a row is, and another one whose name looks like ids and that is not described."""
        person = [self.schema.person.column] if self.schema.person is not None else []
        kinds = {name: getattr(one, "type", pa.string()) for name, one in self.source.fields().items()}
        able = [name for name, kind in kinds.items() if pa.types.is_integer(kind) or is_text_type(kind)]
        other = find_ids(name for name in able if name not in self.schema.required_names())
        return [name for name in [*person, *other[:1]] if name in names]

    def _blocks(self, columns: Sequence[str], numbers: Sequence[str]) -> Iterator[InMemoryPart]:
        for file in self.source.files:
            keys = dict(file.keys)
            stored = [name for name in columns if name not in keys]
            batches = file.as_written(stored, [name for name in stored if name not in numbers], self._note_broken)
            row = (self.rules.header_row or 1) + self.rules.skip_rows + 1
            while (batch := sanitise_errors(file.place, next, batches, None)) is not None:
                for name in set(columns) & set(keys):
                    batch = batch.append_column(name, pa.repeat(keys[name], batch.num_rows))
                self.starts.append(row)
                row += batch.num_rows
                yield InMemoryPart(file.place, (batch,))

    def _note_broken(self, line: Any) -> str:
        self.broken.append(line.number)
        return "skip"

    def _tell(self, name: str, what: str, tally: _Tally, **more: Any) -> Problem:
        """The problem of all rows of a tally."""
        rows = sorted(self._row(*place) for _, *place in tally.values())
        return Problem(name, what, _count(tally), tuple(rows[:_SHOWN]), **more)

    def _row(self, block: int, place: int) -> int:
        row = self.starts[block] + place
        for line in sorted(self.broken) if len(self.source.files) == 1 else ():
            row += line <= row
        return row

    def _check_lines(self) -> None:
        if not self.broken:
            return
        self.broken.clear()  # of a reading that did not count lines
        for file in self.source.files:
            lines = file.as_written(file.stored_names()[:1], [], self._note_broken, count=True)
            sanitise_errors(file.place, partial(deque, maxlen=0), lines)
        advice = (
            "Correct these lines: a separator or a quotation mark is missing there, or there is one too many. If they "
            "are no records, write how they begin in skip_lines under [files]."
        )
        first, what = tuple(sorted(self.broken)[:_SHOWN]), "lines have more or fewer values than there are columns"
        self._note("", what, len(self.broken), first=first, advice=advice)

    def _check_repeated_names(self, wrong: Mapping[str, _Tally]) -> None:
        """Note rows that repeat the names of the columns: those with its own name in every column."""
        seen = [tally.get(name) for name, tally in wrong.items()]
        place = seen[0] if seen else None
        word = self.source.files[0].stored_names()[0]
        first = next((one for one in self.schema.columns or () if one.name == word), None)
        texts = [*first.level_names, *self.rules.of(word).meanings] if isinstance(first, Category) else ()
        if len(seen) < 2 or place is None or {*seen} != {place} or any(text.startswith(word) for text in texts):
            return
        (count, block, row), write = place, {"skip_lines": [*dict.fromkeys([*self.rules.skip_lines, word])]}
        for name, tally in wrong.items():
            del tally[name]
        self._note("", "rows repeat the names of the columns", count, first=(self._row(block, row),), write=write)

    def _describe(self, column: Column, found: _Found) -> Iterator[Problem]:
        name, rule, date = column.name, self.rules.of(column.name), self.rules.date(column.name)
        wrong, missing = found.of(name, "wrong"), found.of(name, "missing")
        left = sorted((text for text in wrong if text is not None), key=lambda text: -wrong[text][0])
        words = list(rule.missing_words or filter(None, missing))
        unread = _Texts(column, rule, left, words, read=_count(found.of(name, "read")) > 0)
        if isinstance(column, Category):
            _explain_levels(unread, column)
        elif isinstance(column, YesNo):
            _explain_yes_no(unread)
        elif date is not None:
            _explain_dates(unread, date.formats, of_day=date.origin is None)
        else:
            _explain_numbers(unread, mixed=_count(found.of(name, "fractions")) > 0)
        stops = not (isinstance(column, Category) and column.other)  # which counts them as one more level
        for what, texts, write, advice in unread.groups:
            tally: _Tally = {text: wrong[text] for text in texts}
            examples = _show_examples(tally, what.partition("like ")[2])
            yield self._tell(name, what, tally, examples=examples, write=write, advice=advice, stops=stops)
        if None in wrong:
            what = f"further values, beyond {_MOST_VALUES:,} different ones"
            advice = "Write the entries for the values that are listed, and check again."
            yield self._tell(name, what, {None: wrong[None]}, advice=advice, stops=stops)
        if missing and not column.missing:
            shown = tuple(text for text in missing if text)[:_SHOWN]
            yield self._tell(name, "values are missing", missing, examples=shown, write={"missing": True})
        for kind, end in (("below", "lower"), ("above", "upper")):
            if beyond := found.of(name, kind):
                advice = f"They are moved to {end}. Change it from public knowledge alone, if at all."
                codes = [text for text in beyond if text is not None and re.fullmatch(_CODES, text.strip())]
                if codes:
                    advice += f" If {', '.join(codes)} means that a value is missing, write {unread.ask(codes)}"
                examples, what = _show_examples(beyond), f"values are {kind} {end}"
                yield self._tell(name, what, beyond, examples=examples, advice=advice, stops=False)

    def _check_people(self, found: _Found) -> Iterator[str]:
        """Rows per person, in words; notes problems with ids and with the number of records."""
        person, counted = self.schema.person, found.rows
        for name, counts in found.ids.items():
            counts.count()
            ids, most = len(counts.rows), int(counts.rows.max(initial=0))
            several = int((counts.rows > 1).sum())
            each = "one row each" if most <= 1 else f"up to {most:,} rows each, {several:,} of them more than one"
            yield f"{ids:,} different ids in column {name!r}: {each}"
            if person is None or person.column != name:
                advice = "If each must be there once, delete the other rows."
                if person is None:
                    write = f"[person] column = {quote_text(name)}"
                    advice = f"If they say whose a row is, protect people with all their rows: {write}"
                if most > 1:
                    self._note(name, "ids are there more than once", several, advice=advice, stops=False)
                continue
            counted = found.rows if person.rows else ids
            if person.rows is not None and most > person.rows:
                what = f"people have more than {person.rows} rows; the others do not count in full"
                above = int((counts.rows > person.rows).sum())
                self._note(name, what, above, advice="Keep rows, or choose a larger one.", stops=False)
            if absent := found.of(name, "no id"):
                self.problems.append(
                    self._tell(name, "ids are missing", absent, advice="Drop these rows, or give them ids.")
                )
        said = self.schema.records
        if said is not None and said != counted:
            advice = (
                "Remove records from the schema: it is counted where it is public. If it is private, or a guess for "
                "forecasts, write expected_records in its place."
            )
            self._note("", f"the schema says records = {said}, and there are {counted}", advice=advice)


def _count(tally: _Tally) -> int:
    return sum(count for count, *_ in tally.values())


def _show_examples(tally: _Tally, near: str = "") -> tuple[str, ...]:
    """The first texts with their numbers, and a level that they are like."""
    shown = [f"{text!r} ({count:,})" for text, (count, *_) in tally.items() if text is not None]
    return tuple(one + (f": {near}?" if near else "") for one in shown[:_SHOWN])


@dataclass
class _Texts:
    """Texts of a column that cannot be read, and those that were explained."""

    column: Column
    rule: ColumnRule
    left: list[str]  # the most frequent first
    words: list[str]  # which mean missing values already
    read: bool  # whether others of the column can be read
    groups: list[tuple[str, list[str], dict[str, Any], str]] = field(default_factory=list)  # with their remedy

    def take(self, what: str, chosen: Sequence[str], write: Mapping[str, Any], advice: str = "") -> None:
        if chosen:
            self.groups.append((what, list(chosen), dict(write), advice))
            self.left = [text for text in self.left if text not in set(chosen)]

    def like(self, pattern: str) -> list[str]:
        """The texts that are left and match the pattern, but for spaces around them."""
        return [text for text in self.left if re.fullmatch(pattern, text.strip())]

    def take_absent(self) -> None:
        """Explain the words that usually mean that a value is missing."""
        words = [text for text in self.left if text.strip().lower() in _ABSENT or _NOT.fullmatch(text.strip())]
        write = {"missing_words": [*dict.fromkeys([*self.words, *words])]}
        self.take("words for missing values", words, write if self.column.missing else write | {"missing": True})
        self.words += words

    def take_rest(self, what: str) -> None:
        """Explain all others: they are mistakes, or words for missing values."""
        advice = f"Correct the file or, where they mean that a value is missing, write {self.ask(self.left)}"
        self.take(what, self.left, {}, advice)

    def ask(self, words: Sequence[str]) -> str:
        """What to write if these words mean that a value is missing."""
        return f"missing = true, missing_words = {write_value([*dict.fromkeys([*self.words, *words[:_MOST_ASKED]])])}"


def _explain_numbers(texts: _Texts, *, mixed: bool) -> None:
    texts.take_absent()
    decimal = texts.rule.decimal or "."
    before, other = len(texts.groups), "," if decimal == "." else "."
    marked = texts.like(rf"[+-]?\d*[{other}]\d+")
    if any(not re.fullmatch(_GROUPED[other], text.strip()) for text in marked):
        word, usual = ("commas", "points") if other == "," else ("points", "commas")
        mixed &= not any("." in text and "," in text for text in texts.left)  # else 1.250 may have been read as 1.25
        advice = f"Other values have decimal {usual}: correct the file." if mixed else ""
        texts.take(f"decimal {word}", marked, {} if mixed else {"decimal": other}, advice)
    for mark, pattern in _GROUPED.items():
        grouped = texts.like(pattern)
        point = "," if mark == "." or (mark != "," and any("," in text for text in grouped)) else "."
        write = {"thousands": mark, **({} if point == decimal else {"decimal": point})}
        texts.take("groups of three digits", grouped, write)
    texts.take("spaces around numbers", texts.like(r"[+-]?[\d.,]+"), {"strip": True})
    kind = "" if texts.read or len(texts.groups) > before else _name_type(texts.left)
    if kind:
        texts.take("texts that are no numbers", texts.left, {}, f'Perhaps it is of type "{kind}".')
    texts.take_rest("texts that are no numbers")


def _name_type(texts: Sequence[str]) -> str:
    """The type of a column that holds these texts, if they show it."""
    if all(text.strip().lower() in _WORDS["yes"] | _WORDS["no"] for text in texts):
        return "yes/no"
    if all(parse_moment(text.strip(), _DATES, False) is not None for text in texts):
        return "date"
    return "category" if len(texts) < _MOST_COMPARED else ""


def _explain_dates(texts: _Texts, formats: tuple[str, ...], *, of_day: bool) -> None:
    texts.take_absent()
    kept = list(formats) or ["%H:%M:%S" if of_day else "%Y-%m-%d"] * texts.read
    while texts.left:
        found = {
            one: [text for text in texts.left if parse_moment(text.strip(), (one,), of_day) is not None]
            for one in (_TIMES if of_day else _DATES)
        }
        best = max(found, key=lambda one: len(found[one]))
        if not found[best]:
            break
        texts.take(f"another format, {best}", found[best], {"format": [*kept, best]})
    texts.take_rest(f"texts that are no {'times' if of_day else 'dates'}")


def _explain_levels(texts: _Texts, column: Category) -> None:
    levels, known = list(map(str, column.levels)), {level: list(one) for level, one in texts.rule.aliases.items()}
    texts.take_absent()
    texts.take("spaces at the ends of levels", [text for text in texts.left if text.strip() in levels], {"strip": True})
    folded = {level.casefold(): level for level in levels}
    for text in texts.left[:_MOST_COMPARED]:
        if near := get_close_matches(text.strip().casefold(), folded, 1, 0.75):
            level = folded[near[0]]
            aliases = known | {level: [*known.get(level, []), text]}
            texts.take(f"not a level, like {level}", [text], {"aliases": aliases})
    advice = f"Add them to levels, or say which level they mean, as in aliases = {{ {quote_key(levels[0])} = [...] }}"
    rest = "they count as the level other" if column.other else "or write other = true: they are one more level"
    advice = f"{advice}; {rest}."
    texts.take("not among the levels", texts.left, {}, advice)


def _explain_yes_no(texts: _Texts) -> None:
    for word, known in _WORDS.items():
        found = [text for text in texts.left if text.strip().lower() in known]
        said = [*texts.rule.aliases.get(word, ()), *dict.fromkeys(text.strip().lower() for text in found)]
        texts.take(f"words for {word}", found, {word: said})
    texts.take_absent()
    advice = "Add them to yes or no, or make the column a category with levels."
    texts.take("neither yes nor no", texts.left, {}, advice)
