"""The one renderer of numbers with names and error bars: text, HTML, CSV and data frames.

Everything that shows numbers goes through here, from a terminal to a report. No scripts, and no colours of its own
except for warnings; all text is escaped, also names of columns, which may come from a file.
"""

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from matrixdp.errors import import_extra
from matrixdp.intervals import LEVEL, interval
from matrixdp.types import Floats

PLAUSIBLE = "plausible range"
CERTAIN = 2.0  # error bars from zero from which on a number may be more than noise
_CHANCE = 0.05  # that noise alone lifts any of the numbers that stand out
MOST_ROWS, MOST_COLUMNS = 20, 12  # of a table in a notebook
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"

_MOST_DECIMALS = 6
_LARGEST = 1e9  # from which on a number is written with an exponent
_ROUNDING = 1e-9  # an error bar below this share of its number comes from rounding
_LABEL_LENGTH = 40
_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")  # how a cell begins that a spreadsheet runs
_BAR = re.compile(r" ([±\[])")
_PLAIN_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")

Texts = Sequence[Sequence[str]]  # text or markup of each entry, by rows; empty for none


@dataclass(frozen=True, eq=False)
class Numbers:
    """Numbers with names, such as predicted errors; the usual kind is `matrixdp.answers.Estimate`."""

    value: Floats  # of shape (rows, columns); NaN, as its error bar is, for a number that is not given
    std: Floats | None  # None where all error bars are unknown
    rows: Sequence[str]
    columns: Sequence[str]
    # Arrays of the same shape, or given as one for all numbers:
    reasons: Any = "–"  # why a number is not given
    least: Any = -np.inf  # the possible values, which the numbers are within
    most: Any = np.inf
    measured: Any = None  # the numbers before they were moved to what is possible; by default the same
    low: Any = np.nan  # ends of intervals of numbers without error bars, NaN for others
    high: Any = np.nan
    plausible: Any = False  # which of these are plausible ranges (`matrixdp.intervals`)

    def __post_init__(self) -> None:
        for name in ARRAYS:
            given = self.value if name == "measured" and self.measured is None else getattr(self, name)
            object.__setattr__(self, name, np.broadcast_to(given, self.value.shape))

    @property
    def bars(self) -> Floats:
        """The error bars, of the shape of the numbers; NaN where they are unknown."""
        return np.broadcast_to(np.nan if self.std is None else self.std, self.value.shape)

    @property
    def hidden(self) -> NDArray[np.bool_]:
        """Which numbers have an interval and no error bar, because noise hides them."""
        return np.asarray(np.isfinite(self.low))

    @property
    def weak(self) -> NDArray[np.bool_]:
        """Which numbers may be noise alone; they are shown pale."""
        return find_weak(self.value, self.std)

    def reason(self, row: int, column: int) -> str:
        """Why a number is not given; empty where it is."""
        return "" if np.isfinite(self.value[row, column]) else str(self.reasons[row, column])

    def cut(self, rows: int | slice, columns: int | slice) -> Self:
        """The first rows and columns, or those of slices."""
        i, j = (one if isinstance(one, slice) else slice(one) for one in (rows, columns))
        return self._each(lambda array: array[i, j], rows=self.rows[i], columns=self.columns[j])

    def pick(self, row: int, column: int) -> Self:
        """One of the numbers, as a table of its own."""
        return self.cut(slice(row, row + 1), slice(column, column + 1))

    def _each(self, change: Callable[[Any], Any], **names: Any) -> Self:
        """A change of all arrays alike."""
        arrays = {name: change(getattr(self, name)) for name in ("value", *ARRAYS)}
        return replace(self, std=None if self.std is None else change(self.std), **arrays, **names)

    @property
    def ranged(self) -> NDArray[np.bool_]:
        """Which numbers are shown with both ends of their intervals: those that are cut or have no error bar."""
        low, high = interval(self.measured, self.bars)
        with np.errstate(invalid="ignore"):
            return np.asarray(self.hidden | (((low < self.least) | (high > self.most)) & (self.bars > 0)))

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Bounds that contain the number without noise with probability `level`, or its plausible range.

        Numbers without error bars have intervals of 95% for all levels up to that, and for others all that is possible.
        """
        possible, found = (self.least, self.most), (self.low, self.high)
        if level > LEVEL:
            found = tuple(np.where(self.plausible, one, end) for one, end in zip(found, possible, strict=True))
        firm = interval(self.measured, self.bars, level, possible)
        low, high = (np.where(self.hidden, one, end) for one, end in zip(found, firm, strict=True))
        return low, high

    def to_frame(self, *, long: bool = False, level: float = 0.95) -> Any:
        """The values as a pandas data frame with the names of rows and columns.

        Parameters
        ----------
        long : bool
            One row for each number: row, column, value, std, low, high and plausible.
        level : float
            Probability that the number without noise is between `low` and `high`, unless these are a plausible range.
        """
        pandas = load_pandas()
        if not long:
            return pandas.DataFrame(np.array(self.value), index=list(self.rows), columns=list(self.columns))
        rows, columns = np.repeat(list(self.rows), len(self.columns)), np.tile(list(self.columns), len(self.rows))
        low, high = self.interval(level)
        arrays = {"value": self.value, "std": self.bars, "low": low, "high": high, "plausible": self.plausible}
        named = {name: np.ravel(array).copy() for name, array in arrays.items()}
        return pandas.DataFrame({"row": rows, "column": columns, **named})

    def render(self, caption: str = "") -> str:
        """The table as HTML, to be put into a card; of a large one, the first rows and columns."""
        table = write_table(self.cut(MOST_ROWS, MOST_COLUMNS), label=_label, caption=caption)
        rest = _say_rest(len(self.rows) - MOST_ROWS, len(self.columns) - MOST_COLUMNS)
        return f'<div class="mdp-scroll">{table}</div>{rest}'


ARRAYS = ("reasons", "least", "most", "measured", "low", "high", "plausible")


def find_weak(value: Floats, std: Floats | None) -> NDArray[np.bool_]:
    """Which numbers are within two error bars of zero, and may be noise alone."""
    with np.errstate(invalid="ignore"):
        return np.abs(value) < CERTAIN * (np.zeros(()) if std is None else std)


def find_firm(value: Floats, std: Floats, among: int) -> NDArray[np.bool_]:
    """Which numbers stand out: noise alone would lift none of so many as far from zero in 95 of 100 releases.

    The limit in error bars grows with their number (Bonferroni).
    """
    limit = max(CERTAIN, float(-ndtri(_CHANCE / (2 * max(among, 1)))))
    with np.errstate(invalid="ignore"):
        return np.isfinite(value) & (np.abs(value) > limit * std)


def say_parts(part: Numbers, whole: Numbers) -> str:
    """The rows and columns that a part of a table has, as in "24 of 500 rows"; nothing if it has all."""
    sides = ((part.rows, whole.rows, "rows"), (part.columns, whole.columns, "columns"))
    return " and ".join(f"{len(a)} of {len(b):,} {word}" for a, b, word in sides if len(a) < len(b))


def has_equal_rows(std: Floats) -> bool:
    """Whether an array repeats one row without storing it again, so that showing the first row is enough."""
    return std.strides[0] == 0


# Numbers and labels


def format_number(value: float, digits: int = 3) -> str:
    """A number with at most `digits` significant digits, as short as possible; a dash for NaN."""
    if math.isnan(value):
        return "–"
    mantissa, _, exponent = f"{value:.{digits}g}".partition("e")
    if not exponent:
        return mantissa
    return f"{value:.0f}" if 0 <= int(exponent) <= digits else f"{mantissa}e{int(exponent)}"


def format_estimate(value: float, std: float, decimals: int | None = None, *, commas: bool = True) -> tuple[str, str]:
    """A number and its error bar, which is empty where there is none, with `commas` between thousands.

    Without `decimals`, both are rounded to the second digit of the error bar.
    """
    comma = "," if commas else ""
    if not _ROUNDING * abs(value) < std < math.inf or math.isnan(value):
        whole = math.isfinite(value) and value == round(value) and abs(value) < _LARGEST
        if whole or decimals is None or not math.isfinite(value):
            return f"{value + 0.0:{comma}.0f}" if whole else format_number(value, 4), ""
        return f"{round(value, decimals) + 0.0:{comma}.{decimals}f}", ""
    if decimals is None:
        places = 1 - math.floor(math.log10(std))
        if places > _MOST_DECIMALS or max(abs(value), std) >= _LARGEST:
            return format_number(value, 4), format_number(std, 2)
        value, std, decimals = round(value, places), round(std, places), max(places, 0)
    return f"{round(value, decimals) + 0.0:{comma}.{decimals}f}", f"{round(std, decimals):{comma}.{decimals}f}"


def choose_decimals(value: Floats, std: Floats | None, *, counts: bool = False) -> int | None:
    """Decimals for a table or one of its columns; None where its error bars are too different for that.

    The smallest error bar keeps at least one digit, and two where all are of the same size. Counts have none.
    """
    widest, most, least_count = 2, 8, 0.5  # powers of ten between error bars, decimals, error bar of a count
    found = np.zeros(0) if std is None else np.asarray(std)[np.isfinite(value) & np.isfinite(std) & (std > 0)]
    if not found.size and not counts:  # three digits of numbers that are alike, none of whole ones
        finite = np.abs(value[np.isfinite(value) & (value != 0)])
        return None if (finite == np.round(finite)).all() else choose_decimals(finite, finite / 10)
    if not found.size or float(np.abs(value[np.isfinite(value)]).max(initial=0.0)) >= _LARGEST:
        return None
    places = 1 - np.floor(np.log10(found))
    low, high = int(places.min()), int(places.max())
    if high - low > widest or high > most:
        return None
    return 0 if counts and found.min() >= least_count else max(high if high == low else high - 1, 0)


def make_visible(text: str, *, keep: str = "") -> str:
    """Text with control characters, and other characters that are not printable, as visible escapes.

    They could send commands to a terminal or make an SVG image invalid. Characters in `keep` stay as they are.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in keep else char.encode("unicode_escape").decode("ascii") for char in text
    )


def shorten(label: str, length: int) -> str:
    """A label of at most `length` characters, with an ellipsis where it was cut."""
    return label if len(label) <= length else label[: length - 1] + "…"


def join_words(words: Sequence[str]) -> str:
    """Words as a list in a sentence."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


# Text for terminals


def align_columns(lines: Sequence[Sequence[str]]) -> list[str]:
    """Lines of cells, padded to the width of their columns: the first flush left, the others flush right."""
    first, *others = zip(*lines, strict=True)
    columns = [[cell.ljust(max(map(len, first))) for cell in first]]
    columns += [[cell.rjust(max(map(len, column))) for cell in column] for column in others]
    return ["  ".join(line).rstrip() for line in zip(*columns, strict=True)]


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Text with aligned columns under a header; the first column is flush left, the others flush right."""
    lines = [[make_visible(cell) for cell in line] for line in (header, *rows)]
    rule = ["─" * max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  " + line for line in align_columns([lines[0], rule, *lines[1:]]))


def format_numbers(numbers: Numbers, text: Texts | None = None) -> str:
    """Text of the first twelve rows and eight columns of a table, with `text` in place of some, such as dates."""
    part = numbers.cut(12, 8)
    more = [""] * (len(part.columns) < len(numbers.columns))
    cells = join_cells(part, text)
    body = [[shorten(name, 20), *line, *("…" for _ in more)] for name, line in zip(part.rows, cells, strict=True)]
    if len(part.rows) < len(numbers.rows):
        body.append(["…", *([""] * len(part.columns)), *more])
    return format_table(["", *(shorten(name, 18) for name in part.columns), *more], body)


def format_cells(
    numbers: Numbers,
    decimals: Sequence[int | None] | None = None,
    *,
    digits: int | None = 3,
    commas: bool = False,
    text: Texts | None = None,
) -> list[list[tuple[str, str]]]:
    """Each number, or the text in its place, or why it is not given; and its error bar or interval, which may be empty.

    A number with an error bar has it after ±; where it would leave what is possible, and for a plausible range, there
    are both ends in brackets. `decimals` are those of each column; `digits` those of numbers in a table without error
    bars.
    """
    width = numbers.value.shape[1]
    places = [None] * width if decimals is None else decimals
    bars, (low, high), ranged = numbers.bars, numbers.interval(), numbers.ranged

    def cell(i: int, j: int) -> tuple[str, str]:
        value, std = float(numbers.value[i, j]), float(bars[i, j])
        if not math.isfinite(value):
            return numbers.reason(i, j), ""
        if text is not None and text[i][j]:
            number, mark, bar = _BAR.split(text[i][j], 1) if _BAR.search(text[i][j]) else (text[i][j], "", "")
            return number, f"{mark}{bar}"
        if ranged[i, j]:
            ends = float(low[i, j]), float(high[i, j])
            return format_range(value, *ends, places[j], commas=commas, plausible=bool(numbers.plausible[i, j]))
        if numbers.std is None and digits is not None:
            return format_number(value, digits), ""
        number, bar = format_estimate(value, std, places[j], commas=commas)
        return number, f"± {bar}" if bar else ""

    return [[cell(i, j) for j in range(width)] for i in range(len(numbers.value))]


def format_range(
    value: float, low: float, high: float, decimals: int | None = None, *, plausible: bool, commas: bool = False
) -> tuple[str, str]:
    """A number and its interval, or its plausible range, which is marked by a tilde.

    They are rounded as if a quarter of the length were the error bar, or to one digit less if `decimals` are fewer.
    """
    places = 1 - math.floor(math.log10((high - low) / 4)) if 0 < high - low < math.inf else _MOST_DECIMALS
    places = places if decimals is None else max(min(places, decimals), places - 1, 0)

    def write(number: float) -> str:
        number = round(number, places) + 0.0
        if places > _MOST_DECIMALS or abs(number) >= _LARGEST:
            return format_number(number, 4)
        shown = f"{number:{',' if commas else ''}.{max(places, 0)}f}"
        return shown.rstrip("0").rstrip(".") if "." in shown else shown

    written = [write(one) for one in (value, low, high)]
    return f"{'~' * plausible}{written[0]}", f"[{written[1]}, {written[2]}]"


def join_cells(numbers: Numbers, text: Texts | None = None) -> list[list[str]]:
    """Each number with its error bar or interval in one string, or the text in its place, or why it is not given."""
    return [[" ".join(filter(None, cell)) for cell in line] for line in format_cells(numbers, text=text)]


# HTML


_STYLE = Path(__file__).with_name("display.css").read_text(encoding="utf-8").replace("FONT", FONT)


def escape_text(words: str) -> str:
    """Text for SVG and HTML, with visible escapes for control characters, which neither of them may contain."""
    return escape(make_visible(words))


def break_name(name: str) -> str:
    """A name as HTML that may be broken after underscores, points and hyphens, and in long words, to stay narrow."""
    return re.sub(r"[^\W_]{13}(?=[^\W_]{3})|[_./-](?=[^\W_]{2})", r"\g<0><wbr>", escape_text(name))


def render_card(title: str, *parts: str, warnings: Iterable[str] = ()) -> str:
    """A titled block for a notebook; `parts` are HTML from the functions below, all else is text."""
    marks = "".join(f'<div class="mdp-warning">{escape_text(words)}</div>' for words in warnings)
    head = f'<div class="mdp-title">{escape_text(title)}</div>' if title else ""
    return f'<style>{_STYLE}</style><div class="mdp">{head}{marks}{"".join(parts)}</div>'


def render_facts(facts: Iterable[tuple[str, str]]) -> str:
    """Names and what is to be said of each, one a line."""
    rows = "".join(
        f'<tr><th scope="row">{escape_text(name)}</th><td>{escape_text(words)}</td></tr>' for name, words in facts
    )
    return f'<div class="mdp-scroll"><table class="mdp-facts"><tbody>{rows}</tbody></table></div>'


def render_note(words: str) -> str:
    """A remark in a softer colour."""
    return f'<div class="mdp-soft">{escape_text(words)}</div>'


def render_table(head: Sequence[str], rows: Iterable[Sequence[str]], *, texts: int = 1) -> str:
    """A table of strings for a notebook; the first `texts` columns are aligned to the left. Of a long one, a part."""
    found = [list(row) for row in rows]
    aligned = [' class="mdp-text"' if j < texts else "" for j in range(len(head))]
    names = "".join(f'<th scope="col"{aligned[j]}>{_label(name)}</th>' for j, name in enumerate(head))
    lines = []
    for row in found[:MOST_ROWS]:
        cells = [f"<td{aligned[j]}>{escape_text(words)}</td>" for j, words in enumerate(row) if j]
        lines.append(f'<tr><th scope="row">{_label(row[0])}</th>{"".join(cells)}</tr>')
    body = f"<table><thead><tr>{names}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    return f'<div class="mdp-scroll">{body}</div>{_say_rest(len(found) - MOST_ROWS, 0)}'


def write_table(
    numbers: Numbers,
    *,
    kind: str = "",
    caption: str = "",
    corner: tuple[str, str] = ("", ""),
    totals: bool = False,
    align: str = "",
    counts: bool = False,
    label: Callable[[str], str] = break_name,
    text: Texts | None = None,
    below: Texts | None = None,
    fades: NDArray[np.bool_] | bool = True,
    colour: Texts | None = None,
) -> str:
    """Numbers with error bars as the HTML of a table, for notebooks and pages alike.

    `kind` are classes of the table; `corner` says what the rows and the columns are where their names do not; with
    `totals`, the last row and column are sums of the others. `align` says what has the same decimals and separated
    thousands, the 'columns' or the 'table'; by default each number has its own. `label` gives a name as HTML. There may
    be `text` in place of a number, and markup `below` it. A number without an error bar fades, and so does one within
    two error bars of zero, unless `fades` excludes it, as it does means: zero is one value among others.
    `colour` has attributes of coloured cells, such as ``class="positive"``; a cell without them fades.
    """
    height, width = numbers.value.shape
    weak = (numbers.weak & fades) | numbers.hidden
    decimals = _align_decimals(numbers, align, text, counts=counts)
    written = format_cells(numbers, decimals, digits=None, commas=bool(align), text=text)

    def cell(i: int, j: int) -> str:
        (number, bar), attributes = written[i][j], "" if colour is None else colour[i][j]
        if not attributes and not math.isfinite(numbers.value[i, j]):
            return f'<td class="note">{escape_text(number)}</td>'
        total = totals and (i == height - 1 or j == width - 1)
        marks = " ".join(["total"] * total + ["weak"] * bool(weak[i, j]))
        attributes = attributes or (f'class="{marks}"' if marks else "")
        error = f' <span class="bar">{escape_text(bar)}</span>' if bar else ""
        more = "" if below is None else below[i][j]
        return f"<td{' ' * bool(attributes)}{attributes}>{escape_text(number)}{error}{more}</td>"

    lines = []
    for i, name in enumerate(numbers.rows):
        mark = ' class="total"' if totals and i == height - 1 else ""
        cells = "".join(cell(i, j) for j in range(width))
        lines.append(f'<tr{mark}><th scope="row">{label(name)}</th>{cells}</tr>')
    above, beside = "", "<td></td>"
    if corner[1]:
        span = f'<th scope="colgroup" colspan="{width}" class="axis">{escape_text(corner[1])}</th>'
        above = f"<tr><td></td>{span}</tr>"
    if corner[0]:
        beside = f'<th scope="col" class="axis">{escape_text(corner[0])}</th>'
    names = "".join(f'<th scope="col">{label(name)}</th>' for name in numbers.columns)
    title = f"<caption>{escape_text(caption)}</caption>" if caption else ""
    start = f'<table class="{kind}">' if kind else "<table>"
    return f"{start}{title}<thead>{above}<tr>{beside}{names}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _align_decimals(numbers: Numbers, align: str, text: Texts | None, *, counts: bool) -> list[int | None]:
    """Decimals of each column; entries with a text do not count."""
    width = numbers.value.shape[1]
    if align != "columns":
        return [choose_decimals(numbers.value, numbers.std, counts=counts) if align else None] * width
    kept = [[i for i in range(len(numbers.rows)) if text is None or not text[i][j]] for j in range(width)]
    return [choose_decimals(numbers.value[rows, j], numbers.bars[rows, j]) for j, rows in enumerate(kept)]


def _label(name: str) -> str:
    return escape_text(shorten(name, _LABEL_LENGTH))


def _say_rest(rows: int, columns: int) -> str:
    """A note on what is left out of a table."""
    left = [f"{count:,} more {word}" for count, word in ((rows, "rows"), (columns, "columns")) if count > 0]
    return render_note(f"… {' and '.join(left)}") if left else ""


# CSV and data frames


def quote_formula(name: str) -> str:
    """A name for a CSV file; a single quote is put before one that a spreadsheet would run as a formula."""
    return f"'{name}" if name.startswith(_FORMULAS) and not _PLAIN_NUMBER.fullmatch(name) else name


def blank_hidden(numbers: Iterable[float]) -> list[Any]:
    """Numbers for a CSV file, empty where one is not given."""
    return [number if math.isfinite(number) else "" for number in numbers]


ENTRY = ("row", "column", "value", "std", "low", "high", "note")  # of a number in a CSV file


def list_entries(numbers: Numbers) -> list[tuple[int, list[Any]]]:
    """Each number for a CSV file, as named by `ENTRY`, with the row that it is in.

    The note says why a number is not given, or that `low` and `high` are a plausible range and no 95% interval.
    """
    rows, columns = ([quote_formula(name) for name in names] for names in (numbers.rows, numbers.columns))
    parts, plausible = np.stack([numbers.value, numbers.bars, *numbers.interval()], axis=-1), numbers.plausible
    found: list[tuple[int, list[Any]]] = []
    for i, j in np.ndindex(numbers.value.shape):
        note = PLAUSIBLE if plausible[i, j] else numbers.reason(i, j)
        found.append((i, [rows[i], columns[j], *blank_hidden(parts[i, j].tolist()), note]))
    return found


def write_csv(numbers: Numbers, more: Mapping[str, Sequence[str]] = MappingProxyType({})) -> str:
    """One number to a line, as in the files of a release; `more` columns have a text for each number."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*ENTRY, *more])
    for (_, entry), *texts in zip(list_entries(numbers), *more.values(), strict=True):
        writer.writerow([*entry, *texts])
    return text.getvalue()


def load_pandas() -> Any:
    """The module pandas, or a `MissingExtraError`."""
    return import_extra("pandas", "data frames need pandas", "plot")


# Representations


_MOST_ITEMS = 5  # of a list


def short_repr(value: Any) -> str:
    """Name and fields of a dataclass: long lists shortened, arrays by their shape, fields with defaults left out."""
    shown = []
    for one in fields(value) if is_dataclass(value) else ():
        found = getattr(value, one.name)
        default = one.default if one.default_factory is MISSING else one.default_factory()
        same = type(found) is type(default) and isinstance(found, str | tuple) and found == default
        if one.repr and found is not default and not same:
            shown.append(f"{one.name}={_show(found)}")
    return f"{type(value).__name__}({', '.join(shown)})"


def table_repr(value: Any, rows: int, columns: int) -> str:
    """The text of a table of numbers if it fits on a screen, else its size."""
    if rows <= 20 and columns <= 8:
        return str(value)
    return f"<{type(value).__name__} of {rows:,} x {columns:,} numbers; print shows them>"


def matrix_text(matrix: Any) -> str:
    """The text of a matrix, of a large one its corners."""
    with np.printoptions(threshold=144, edgeitems=3, precision=5):
        return str(matrix)


def _show(value: Any) -> str:
    shape = getattr(value, "shape", None)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return repr(value.item())
    if isinstance(value, np.ndarray) and value.ndim == 1:
        return f"[{_join([f'{number:.6g}' for number in value[: _MOST_ITEMS + 1].tolist()], value.size)}]"
    if isinstance(shape, tuple) and len(shape) > 1:
        return f"<{' x '.join(f'{size:,}' for size in shape)} numbers>"
    if isinstance(value, tuple):
        items = [_show(item) for item in value[: _MOST_ITEMS + 1]]
        return f"({_join(items, len(value))}{',' if len(items) == 1 else ''})"
    return repr(value)


def _join(items: Sequence[str], count: int) -> str:
    more = count - _MOST_ITEMS
    return ", ".join([*items[:_MOST_ITEMS], *([f"... {more:,} more"] if more > 0 else [])])
