"""Tables of numbers with error bars as HTML: coloured ones for matrices, plain ones for lists of answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from matrixdp.answers.estimate import Estimate
from matrixdp.display.html import escape_text
from matrixdp.report.certainty import CERTAIN
from matrixdp.report.decimals import choose_decimals, write_estimate
from matrixdp.report.legend import list_legend, render_legend
from matrixdp.report.page import break_name, render_scroll
from matrixdp.report.shading import Shading, shade_entries
from matrixdp.types import Floats

# Text of a cell in place of its number, such as a date, and markup below it, such as a strip; empty for neither.
CellText = Callable[[int, int], str]


def _nothing(row: int, column: int) -> str:  # noqa: ARG001
    return ""


def never_fades(row: int, column: int) -> bool:  # noqa: ARG001
    """For tables of means, of which zero is one value among others."""
    return False


@dataclass(frozen=True, eq=False, kw_only=True)
class NumberTable:
    """Numbers with names and error bars, ready to be written.

    Attributes
    ----------
    value : float64 array of shape (rows, columns)
    std : float64 array of the same shape, or None
    rows, columns : sequences of str
    label : str
        What a screen reader calls the table.
    corner : tuple of str
        What the rows and the columns are; empty where their names say it.
    totals : bool
        Whether the last row and column are sums of the others.
    reason : function of row and column
        Why a number is not given.
    text, below : functions of row and column
        A text in place of the number, and markup below it.
    fades : function of row and column
        Whether a number fades that is within two error bars of zero; a mean that happens to be near zero does not.
    """

    value: Floats
    std: Floats | None
    rows: Sequence[str]
    columns: Sequence[str]
    label: str
    corner: tuple[str, str] = ("", "")
    totals: bool = False
    reason: CellText = field(default=lambda _row, _column: "–")
    text: CellText = _nothing
    below: CellText = _nothing
    fades: Callable[[int, int], bool] = field(default=lambda _row, _column: True)

    def bar(self, i: int, j: int) -> float:
        """The error bar of an entry; zero where it has none."""
        bar = 0.0 if self.std is None else float(self.std[i, j])
        return bar if math.isfinite(bar) else 0.0


def tabulate(estimate: Estimate, label: str, **options: object) -> NumberTable:
    """The table of an answer."""
    parts = {"value": estimate.value, "std": estimate.std, "rows": estimate.rows, "columns": estimate.columns}
    return NumberTable(**parts, label=label, reason=estimate.reason, **options)  # type: ignore[arg-type]


def render_matrix(
    table: NumberTable, meaning: str, *, shown: Floats | None = None, counts: bool = False, plain_rows: int = 0
) -> str:
    """A matrix with a colour for each entry and the same decimals in all of them, under a legend.

    Parameters
    ----------
    table : NumberTable
    meaning : str
        What the colours show.
    shown : float64 array of the shape of the table, optional
        The numbers that the colours show, as shares.
    counts : bool
        Whether colours are sequential.
    plain_rows : int
        Number of last rows without colours.
    """
    value, std = np.asarray(table.value), None if table.std is None else np.asarray(table.std)
    inner = (slice(None, -1), slice(None, -1)) if table.totals else (slice(None, len(value) - plain_rows), slice(None))
    parts = (None if array is None else np.asarray(array)[inner] for array in (std, shown))
    bars, shares = parts
    shading = shade_entries(value[inner], bars, shown=shares, counts=counts)
    decimals = choose_decimals(value, std, counts=counts)

    def cell(i: int, j: int) -> str:
        total = table.totals and (i == len(value) - 1 or j == value.shape[1] - 1)
        if total or i >= len(shading.hue):
            return _render_cell(table, i, j, decimals, ["total"] if total else [])
        return _render_shaded(table, i, j, decimals, shading)

    legend = render_legend(list_legend(shading, meaning, percent=shown is not None))
    return legend + _render(table, cell, "numbers matrix")


def render_numbers(table: NumberTable) -> str:
    """A table with the same decimals in each column, in which uncertain numbers fade."""
    value, std = np.asarray(table.value), None if table.std is None else np.asarray(table.std)
    decimals = []
    for j in range(value.shape[1]):
        kept = [i for i in range(len(value)) if not table.text(i, j)]
        decimals.append(choose_decimals(value[kept, j], None if std is None else std[kept, j]))
    return _render(table, lambda i, j: _render_cell(table, i, j, decimals[j], []), "numbers")


def _render_shaded(table: NumberTable, i: int, j: int, decimals: int | None, shading: Shading) -> str:
    hue = str(shading.hue[i, j])
    if hue == "hidden":
        return _render_cell(table, i, j, decimals, [])
    share = "" if hue == "fixed" else f' style="--s:{100 * shading.strength[i, j]:.0f}%"'
    mark = " weak" if shading.weak[i, j] else " doubtful" if shading.doubtful[i, j] else ""
    return f'<td class="{hue}{mark}"{share}>{_render_number(table, i, j, decimals)}</td>'


def _render_cell(table: NumberTable, i: int, j: int, decimals: int | None, classes: list[str]) -> str:
    value = float(table.value[i, j])
    if not math.isfinite(value):
        return f'<td class="note">{escape_text(table.reason(i, j))}</td>'
    if abs(value) < CERTAIN * table.bar(i, j) and table.fades(i, j):
        classes = [*classes, "weak"]
    mark = f' class="{" ".join(classes)}"' if classes else ""
    return f"<td{mark}>{_render_number(table, i, j, decimals)}</td>"


def _render_number(table: NumberTable, i: int, j: int, decimals: int | None) -> str:
    number, bar = write_estimate(float(table.value[i, j]), table.bar(i, j), decimals)
    if words := table.text(i, j):
        number, _, bar = words.partition(" ± ")
    error = f' <span class="bar">± {escape_text(bar)}</span>' if bar else ""
    return escape_text(number) + error + table.below(i, j)


def _render(table: NumberTable, cell: Callable[[int, int], str], kind: str) -> str:
    rows, columns = table.corner
    above = ""
    if columns:
        span = f'<th scope="colgroup" colspan="{len(table.columns)}" class="axis">{escape_text(columns)}</th>'
        above = f"<tr><td></td>{span}</tr>"
    first = f'<th scope="col" class="axis">{escape_text(rows)}</th>' if rows else "<td></td>"
    names = "".join(f'<th scope="col">{break_name(name)}</th>' for name in table.columns)
    lines = []
    for i, name in enumerate(table.rows):
        mark = ' class="total"' if table.totals and i == len(table.rows) - 1 else ""
        cells = "".join(cell(i, j) for j in range(len(table.columns)))
        lines.append(f'<tr{mark}><th scope="row">{break_name(name)}</th>{cells}</tr>')
    head = f"<thead>{above}<tr>{first}{names}</tr></thead>"
    return render_scroll(f'<table class="{kind}">{head}<tbody>{"".join(lines)}</tbody></table>', table.label)
