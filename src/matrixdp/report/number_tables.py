"""Tables of numbers with error bars as HTML: coloured ones for matrices, plain ones for lists of answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from matrixdp.answers.estimate import Estimate
from matrixdp.display import CellText, choose_decimals, write_table
from matrixdp.report.legend import list_legend, render_legend
from matrixdp.report.page import render_scroll
from matrixdp.report.shading import Shading, shade_entries
from matrixdp.types import Floats


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
    bars, shares = (None if array is None else np.asarray(array)[inner] for array in (std, shown))
    shading = shade_entries(value[inner], bars, shown=shares, counts=counts)
    decimals = [choose_decimals(value, std, counts=counts)] * value.shape[1]
    legend = render_legend(list_legend(shading, meaning, percent=shown is not None))
    return legend + _render(table, "numbers matrix", decimals, lambda i, j: _colour(shading, i, j))


def render_numbers(table: NumberTable) -> str:
    """A table with the same decimals in each column, in which uncertain numbers fade."""
    value, std = np.asarray(table.value), None if table.std is None else np.asarray(table.std)
    decimals = []
    for j in range(value.shape[1]):
        kept = [i for i in range(len(value)) if not table.text(i, j)]
        decimals.append(choose_decimals(value[kept, j], None if std is None else std[kept, j]))
    return _render(table, "numbers", decimals)


def _colour(shading: Shading, i: int, j: int) -> str:
    """Attributes of a coloured cell; none for one that noise hides, and outside of the coloured part."""
    if i >= shading.hue.shape[0] or j >= shading.hue.shape[1] or (hue := str(shading.hue[i, j])) == "hidden":
        return ""
    share = "" if hue == "fixed" else f' style="--s:{100 * shading.strength[i, j]:.0f}%"'
    mark = " weak" if shading.weak[i, j] else " doubtful" if shading.doubtful[i, j] else ""
    return f'class="{hue}{mark}"{share}'


def _render(table: NumberTable, kind: str, decimals: Sequence[int | None], colour: CellText | None = None) -> str:
    options: dict[str, Any] = {"corner": table.corner, "totals": table.totals, "decimals": decimals, "colour": colour}
    parts: dict[str, Any] = {"text": table.text, "below": table.below, "fades": table.fades}
    return render_scroll(write_table(table, kind=kind, **options, **parts), table.label)
