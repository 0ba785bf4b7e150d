"""Small HTML for notebooks: a card with a title, warnings, facts and tables.

No scripts, and no colours of its own except for warnings: text and lines take the colours of the page, light or dark.
All text is escaped, also names of columns, which may come from a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape

import numpy as np

from matrixdp.display.numbers import format_estimate, format_number, make_visible, shorten
from matrixdp.types import Floats

MOST_ROWS, MOST_COLUMNS = 20, 12  # of a table
_LABEL_LENGTH = 40
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
_LINE = "1px solid rgba(128,128,128,.35)"
_STYLE = f"""<style>
.mdp{{font:13px/1.5 {FONT};color:inherit;max-width:100%}}
.mdp-title{{font-weight:600;font-size:14px}}
.mdp-soft{{opacity:.65}} .mdp-weak{{opacity:.5}} .mdp-weak .mdp-soft{{opacity:1}}
.mdp-warning{{border-left:4px solid #d9572b;padding:2px 8px;margin:4px 0;font-weight:600}}
.mdp-scroll{{overflow-x:auto;margin:6px 0}}
.mdp table{{border-collapse:collapse;border:0;margin:0;font:inherit;font-variant-numeric:tabular-nums}}
.mdp caption{{text-align:left;font-weight:600;padding:2px 8px;caption-side:top;color:inherit}}
.mdp tr,.mdp tr:hover{{background:none!important}}
.mdp th,.mdp td{{padding:2px 8px;border:0;border-bottom:{_LINE};text-align:right;white-space:nowrap;color:inherit}}
.mdp th{{font-weight:600}} .mdp th[scope=row],.mdp .mdp-text,.mdp .mdp-facts td{{text-align:left}}
.mdp .mdp-facts th{{font-weight:400;opacity:.65;vertical-align:top}} .mdp .mdp-facts td{{white-space:normal}}
</style>"""


def escape_text(words: str) -> str:
    r"""Text for SVG and HTML, with visible escapes for control characters, which neither of them may contain.

    Examples
    --------
    >>> escape_text("a<b\x07")
    'a&lt;b\\x07'
    """
    return escape(make_visible(words))


def render_card(title: str, *parts: str, warnings: Iterable[str] = ()) -> str:
    """A titled block for a notebook; `parts` are HTML from the functions below, all else is text."""
    marks = "".join(f'<div class="mdp-warning">{escape_text(words)}</div>' for words in warnings)
    head = f'<div class="mdp-title">{escape_text(title)}</div>' if title else ""
    return f'{_STYLE}<div class="mdp">{head}{marks}{"".join(parts)}</div>'


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
    """A table of texts; the first `texts` columns are aligned to the left. Of a long table, the first rows."""
    found = [list(row) for row in rows]
    lines = []
    for row in found[:MOST_ROWS]:
        cells = [f"<td{_align(j, texts)}>{escape_text(words)}</td>" for j, words in enumerate(row) if j]
        lines.append(f'<tr><th scope="row">{_label(row[0])}</th>{"".join(cells)}</tr>')
    names = "".join(f'<th scope="col"{_align(j, texts)}>{_label(name)}</th>' for j, name in enumerate(head))
    return _wrap(names, lines, "", len(found) - MOST_ROWS, 0)


def render_numbers(
    value: Floats,
    std: Floats | None,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    reason: Callable[[int, int], str] | None = None,
    caption: str = "",
) -> str:
    """A table of numbers with error bars; those within two error bars of zero fade. Of a large one, the first part.

    Parameters
    ----------
    value, std : float64 arrays of shape (rows, columns)
        `std` is None where the error bars are unknown.
    rows, columns : sequences of str
    reason : function of row and column, optional
        Why a number is NaN.
    caption : str
    """
    value = np.asarray(value[:MOST_ROWS, :MOST_COLUMNS])
    std = None if std is None else np.asarray(std[:MOST_ROWS, :MOST_COLUMNS])
    lines = []
    for i, line in enumerate(value):
        cells = [
            _number(float(x), 0.0 if std is None else float(std[i, j]), reason(i, j) if reason else "")
            for j, x in enumerate(line)
        ]
        lines.append(f'<tr><th scope="row">{_label(rows[i])}</th>{"".join(cells)}</tr>')
    names = "".join(f'<th scope="col">{_label(name)}</th>' for name in columns[:MOST_COLUMNS])
    return _wrap(f"<td></td>{names}", lines, caption, len(rows) - MOST_ROWS, len(columns) - MOST_COLUMNS)


def _number(value: float, std: float, reason: str) -> str:
    if not np.isfinite(value):
        return f'<td class="mdp-weak">{escape_text(reason or format_number(value))}</td>'
    text, bar = format_estimate(value, std)
    weak = ' class="mdp-weak"' if abs(value) < 2 * std else ""
    return f"<td{weak}>{text}" + (f'<span class="mdp-soft"> ± {bar}</span></td>' if bar else "</td>")


def _wrap(head: str, lines: list[str], caption: str, rows_left: int, columns_left: int) -> str:
    """The whole table, with a note on what is left out of it."""
    title = f"<caption>{escape_text(caption)}</caption>" if caption else ""
    left = [f"{count:,} more {word}" for count, word in ((rows_left, "rows"), (columns_left, "columns")) if count > 0]
    note = render_note(f"… {' and '.join(left)}") if left else ""
    body = f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    return f'<div class="mdp-scroll">{body}</div>{note}'


def _align(column: int, texts: int) -> str:
    return ' class="mdp-text"' if column < texts else ""


def _label(name: str) -> str:
    return escape_text(shorten(name, _LABEL_LENGTH))
