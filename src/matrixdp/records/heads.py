"""Guesses of how a file is written, for a new schema and for `checking`; a release uses none of them.

Of the first rows only the number of cells that are filled is used, and whether they are wanted names. The encoding is
guessed from the rows down to the names or, for `checking`, from all bytes; the last lines are looked at for it alone.
"""

import codecs
import csv
import math
import re
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np

from matrixdp.records.formats import SEPARATORS, CsvFile, ExcelFile, TableFile

_FIRST_ROWS = 20
_BLOCK = 1 << 22
_END, _LAST_ROWS = 1 << 16, 200
_MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_LATIN = ("latin-1", "latin1", "iso-8859-1")
_SINGLE = (*_LATIN, "cp1252")  # encodings of one byte, in which any UTF-8 can be read
_PLAIN = ("utf-8", *_SINGLE)  # in which a byte below 128 is a character of ASCII
_UNUSED = [0x81, 0x8D, 0x8F, 0x90, 0x9D]  # in cp1252


def propose_rules(file: TableFile, wanted: Collection[str] = (), *, whole: bool = False) -> dict[str, Any]:
    """The rules among encoding, delimiter, sheet and header_row by which the file can be read, if not by its own.

    `wanted` are names of columns, some of which are in the row of names. With `whole`, all bytes tell the encoding.
    """
    found: dict[str, Any] = {}
    if isinstance(file, CsvFile):
        encoding = guess_encoding(file, None if whole else 0)
        with file.open_bytes() as stream:
            text = codecs.getincrementaldecoder(encoding)("replace").decode(stream.read(1 << 20))
        lines = text.removeprefix("\ufeff").splitlines()[:_FIRST_ROWS]
        marks = file.separator or SEPARATORS if not wanted else [*filter(None, [file.separator]), *SEPARATORS]
        tables = {mark: list(csv.reader(lines, delimiter=mark)) for mark in marks}
    elif isinstance(file, ExcelFile):
        sheets = [file.rules.sheet] if file.rules.sheet is not None else file.sheet_names()
        rules = {name: replace(file.rules, sheet=name) for name in sheets}
        tables = {name: replace(file, rules=rule).read_rows()[:_FIRST_ROWS] for name, rule in rules.items()}
    else:
        return {}
    rows = {mark: _find_names(table, wanted) for mark, table in tables.items()}
    most = math.inf if isinstance(file, CsvFile) else 2  # the first sheet with a table

    def score(mark: str) -> tuple[int, float]:
        cells = tables[mark][rows[mark]] if rows[mark] < len(tables[mark]) else []
        return sum(cell in wanted for cell in cells), min(len(cells), most)

    mark = max(tables, key=score)  # the first in a tie
    given, first = file.rules.header_row, 0 if isinstance(file, CsvFile) else _first_filled(tables[mark])
    if rows[mark] != (first if given is None else given - 1):
        found["header_row"] = rows[mark] + 1
    if isinstance(file, ExcelFile) and len(tables) > 1 and not (wanted and mark == next(iter(tables))):
        found["sheet"] = mark
    if isinstance(file, CsvFile):
        encoding = encoding if whole else guess_encoding(file, rows[mark] + 1)
        found |= {} if encoding == (file.rules.encoding or "utf-8") else {"encoding": encoding}
    if isinstance(file, CsvFile) and mark != replace(file, rules=replace(file.rules, **found)).read_head()[0]:
        found["delimiter"] = mark
    return found


def find_total(file: TableFile) -> tuple[str, str, bool] | None:
    """The last line, if it has few values and begins with a word that no other has: word, line, and if it is short."""
    if isinstance(file, CsvFile):
        with file.open_bytes() as stream:
            if not stream.seekable():
                return None
            size = stream.size()
            stream.seek(max(size - _END, 0))
            text = stream.read().decode(file.rules.encoding or "utf-8", "replace")
        separator, names = file.read_head()
        rows, width = list(csv.reader(text.splitlines()[size > _END :], delimiter=separator)), len(names)
        rows = [row for row in rows if row]
    elif isinstance(file, ExcelFile):
        width = len(file.stored_names())
        rows = [row for row in file.read_rows()[-_LAST_ROWS:] if any(cell != "" for cell in row)]
    else:
        return None
    *others, last = rows[-_LAST_ROWS:] or [[]]
    first = str(last[0]).strip() if last else ""
    word = re.match(r"[^\W\d_]{2,}", first)
    short = isinstance(file, CsvFile) and len(last) != width
    few = 2 * sum(str(cell).strip() != "" for cell in last) <= width
    if word is None or not few or len(others) < 5 or file.rules.skips(first):
        return None
    known = any(str(row[0]).strip().startswith(word[0]) for row in others)
    return None if known else (word[0], " ".join(str(cell) for cell in last if cell != ""), short)


def _find_names(rows: list[list[Any]], wanted: Collection[str]) -> int:
    """The row with most of the wanted names or, where there are none, the first that is not a title."""
    known = [sum(cell in wanted for cell in row) for row in rows]
    if any(known):
        return known.index(max(known))
    filled = [sum(str(cell).strip() != "" for cell in row) for row in rows]
    enough = max(2, max(filled, default=0) / 2)
    return next((i for i, number in enumerate(filled) if number >= enough), _first_filled(rows))


def _first_filled(rows: list[list[Any]]) -> int:
    return next((i for i, row in enumerate(rows) if any(str(cell).strip() for cell in row)), 0)


def guess_encoding(file: CsvFile, rows: int | None) -> str:
    """The encoding of a file: that of its rules, unless the bytes of its first rows, or of all, show another one."""
    given = file.rules.encoding or "utf-8"
    decoders = {name: codecs.getincrementaldecoder(name)() for name in (given, "utf-8")}
    seen = np.zeros(256, bool)
    with file.open_bytes() as stream:
        block = stream.read(_BLOCK)
        if block[:2] in _MARKS and not given.startswith("utf-16"):
            return _MARKS[block[:2]]
        if rows is not None:
            block = b"".join(block.splitlines(keepends=True)[:rows])
        while block:
            following, plain = stream.read(_BLOCK) if rows is None else b"", block.isascii()
            if not plain:
                seen[np.frombuffer(block, np.uint8)] = True
            for name in list(decoders):
                if plain and name in _PLAIN and not decoders[name].getstate()[0]:
                    continue  # nothing can be wrong
                try:
                    decoders[name].decode(block, rows is None and not following)
                except UnicodeDecodeError:
                    del decoders[name]
            block = following
    if given in _SINGLE and "utf-8" in decoders and seen[0x80:].any():
        return "utf-8"
    windows = not seen[_UNUSED].any()  # it has all letters of latin-1, and signs where that has control characters
    if given in decoders and not (given in _LATIN and windows and seen[0x80:0xA0].any()):
        return given
    return "utf-8" if "utf-8" in decoders else "cp1252" if windows else "latin-1"
