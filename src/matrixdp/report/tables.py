"""Tables for a terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from matrixdp.display.numbers import format_estimate, format_number, make_visible, shorten
from matrixdp.types import Floats


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Text with aligned columns under a header; the first column is flush left, the others flush right.

    Examples
    --------
    >>> print(format_table(["feature", "std"], [["age", "0.5"], ["weight", "12"]]))
      feature  std
      ───────  ───
      age      0.5
      weight    12
    """
    header, rows = [make_visible(cell) for cell in header], [[make_visible(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = [header, ["─" * width for width in widths], *rows]
    return "\n".join(
        "  "
        + "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def format_matrix(
    values: Floats,
    rows: Sequence[str],
    columns: Sequence[str],
    std: Floats | None = None,
    *,
    digits: int = 3,
    undefined: Callable[[int, int], str] = lambda _row, _column: "–",
    text: Callable[[int, int], str] = lambda _row, _column: "",
) -> str:
    """Text of the first twelve rows and eight columns of a matrix, with error bars where `std` is given.

    `undefined` gives what is shown for NaN in a row and column, and `text` what is shown in place of a number, such as
    a date; an empty text is none.

    Examples
    --------
    >>> import numpy as np
    >>> print(format_matrix(np.array([[1.0, 0.25]]), ["a"], ["x", "y"], np.array([[0.0, 0.1]])))
         x            y
      ─  ─  ───────────
      a  1  0.25 ± 0.10
    """
    height, width = min(len(rows), 12), min(len(columns), 8)

    def cell(i: int, j: int) -> str:
        if math.isnan(values[i, j]):
            return undefined(i, j)
        if words := text(i, j):
            return words
        if std is None:
            return format_number(float(values[i, j]), digits)
        number, bar = format_estimate(float(values[i, j]), float(std[i, j]))
        return f"{number} ± {bar}" if bar else number

    more = width < len(columns)
    body = [[shorten(rows[i], 20), *(cell(i, j) for j in range(width)), *(["…"] * more)] for i in range(height)]
    if height < len(rows):
        body.append(["…", *([""] * (width + more))])
    return format_table(["", *(shorten(name, 18) for name in columns[:width]), *([""] * more)], body)
