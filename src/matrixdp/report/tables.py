"""Tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from matrixdp.report.svg import clipped, short, with_bar
from matrixdp.types import Floats


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, indent: int = 2) -> str:
    """Aligned columns under a line; the first is flush left, the others flush right.

    Examples
    --------
    >>> print(table(["feature", "std"], [["age", "0.5"], ["weight", "12"]]))
      feature  std
      ───────  ───
      age      0.5
      weight    12
    """
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = [header, ["─" * width for width in widths], *rows]
    return "\n".join(
        " " * indent
        + "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def matrix_table(
    values: Floats, rows: Sequence[str], columns: Sequence[str], std: Floats | None = None, *, digits: int = 3
) -> str:
    """A matrix with its names and, where given, its error bars; the first twelve rows and eight columns.

    Examples
    --------
    >>> import numpy as np
    >>> print(matrix_table(np.array([[1.0, 0.25]]), ["a"], ["x", "y"], np.array([[0.0, 0.1]])))
         x            y
      ─  ─  ───────────
      a  1  0.25 ± 0.10
    """
    height, width = min(len(rows), 12), min(len(columns), 8)

    def cell(i: int, j: int) -> str:
        if std is None:
            return short(float(values[i, j]), digits)
        number, bar = with_bar(float(values[i, j]), float(std[i, j]))
        return f"{number} ± {bar}" if bar else number

    more = width < len(columns)
    body = [[clipped(rows[i], 20), *(cell(i, j) for j in range(width)), *(["…"] * more)] for i in range(height)]
    if height < len(rows):
        body.append(["…", *([""] * (width + more))])
    return table(["", *(clipped(name, 16) for name in columns[:width]), *([""] * more)], body)
