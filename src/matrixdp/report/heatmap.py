"""A heat map with named rows and columns, the numbers where they fit, and a legend that names every colour."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from matrixdp.display import choose_decimals, escape_text, format_estimate, format_number, join_estimate, shorten
from matrixdp.report.legend import LegendItem, list_legend
from matrixdp.report.shading import Shading, shade_entries
from matrixdp.report.svg import Drawing, element, group, text
from matrixdp.types import Floats

MAX_SIDE = 60  # rows and columns of a square matrix, and columns of any other, that a picture shows
_MAX_ROWS = 30  # rows of a matrix that is not square
_LABEL_LENGTH = 22  # characters
_RAMP = 120.0
_LETTER = 6.0  # mean width of a letter of the legend


@dataclass(frozen=True)
class _Layout:
    """Size of a cell, position of the first cell and font size of the labels, in pixels."""

    cell_width: float
    cell_height: float
    left: float
    top: float
    font_size: float

    @property
    def has_numbers(self) -> bool:
        """Whether numbers fit into the cells."""
        return self.cell_width >= 40 and self.cell_height >= 16


def draw_heatmap(
    values: Floats,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    title: str,
    meaning: str,
    std: Floats | None = None,
    shown: Floats | None = None,
    counts: bool = False,
) -> Drawing:
    """Heat map of a matrix; of a large one, its first rows and columns.

    Parameters
    ----------
    values : float64 array of shape (rows, columns)
        The numbers to write into the cells.
    rows, columns : sequences of str
        Labels.
    title, meaning : str
        The title may be empty; the meaning says what the colours show.
    std : float64 array of the same shape, optional
        Standard deviations; an entry within two of them of zero fades, and one without noise is grey.
    shown : float64 array of the same shape, or of the part that is shown, optional
        The numbers that the colours show, as shares; by default the values.
    counts : bool
        Whether colours are sequential.
    """
    height = count_shown_rows(len(rows), len(columns))
    values = np.asarray(values)[:height, :MAX_SIDE]
    std = None if std is None else np.asarray(std)[:height, :MAX_SIDE]
    share = None if shown is None else np.asarray(shown)[:height, :MAX_SIDE]
    rows, columns = rows[:height], columns[:MAX_SIDE]
    layout = _make_layout(rows, columns, 40.0 if title else 10.0)
    shading = shade_entries(values, std, shown=share, counts=counts)
    decimals = choose_decimals(values, std, counts=counts)
    elements = _draw_labels(rows, columns, layout)
    if title:
        elements.append(text(0, 18, title, size=15, kind="text bold"))
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            numbers = float(values[i, j]), None if std is None else float(std[i, j])
            elements.append(_draw_cell(f"{row} × {column}", numbers, shading, (i, j), layout, decimals))
    right = layout.left + layout.cell_width * len(columns)
    bottom = layout.top + layout.cell_height * len(rows)
    items = list_legend(shading, meaning, percent=shown is not None)
    elements.append(_draw_legend(items, bottom + 18))
    overhang = layout.font_size * 0.62 * min(_LABEL_LENGTH, max(map(len, columns))) * 0.71
    width = max(right + overhang, *(_RAMP + 12 + _LETTER * len(item.words) for item in items), 8.5 * len(title))
    return Drawing(tuple(elements), width, bottom + 22 + 22 * len(items))


def count_shown_rows(height: int, width: int) -> int:
    """Number of rows of a matrix of shape (height, width) that a picture shows."""
    return min(height, MAX_SIDE if height == width else _MAX_ROWS)


def _make_layout(rows: Sequence[str], columns: Sequence[str], top: float) -> _Layout:
    width, height = _cell_size(len(columns)), _cell_size(len(rows))
    if len(rows) == len(columns) or len(rows) <= 12:
        height = min(height, width)
    size = min(13.0, max(9.5, min(width, height) * 0.62))
    row_length, column_length = (min(_LABEL_LENGTH, max(map(len, names))) for names in (rows, columns))
    above = top + column_length * size * 0.62 * 0.71 + size
    return _Layout(width, height, 14 + row_length * size * 0.62, above, size)


def _cell_size(count: int) -> float:
    return 58.0 if count <= 8 else 46.0 if count <= 12 else max(13.0, 560.0 / count)


def _draw_labels(rows: Sequence[str], columns: Sequence[str], layout: _Layout) -> list[str]:
    elements = []
    for i, name in enumerate(rows):
        y = layout.top + layout.cell_height * (i + 0.5) + layout.font_size * 0.35
        label = shorten(name, _LABEL_LENGTH)
        elements.append(text(layout.left - 7, y, label, size=layout.font_size, text_anchor="end"))
    for j, name in enumerate(columns):
        x, y = layout.left + layout.cell_width * (j + 0.5), layout.top - 7
        turned = {"transform": f"rotate(-45 {x:.2f} {y:.2f})"}
        elements.append(text(x, y, shorten(name, _LABEL_LENGTH), size=layout.font_size, **turned))
    return elements


def _draw_cell(
    name: str,
    numbers: tuple[float, float | None],
    shading: Shading,
    place: tuple[int, int],
    layout: _Layout,
    decimals: int | None,
) -> str:
    """A rectangle with a tooltip and, where it fits, the number."""
    (value, std), width, height = numbers, layout.cell_width, layout.cell_height
    x, y = layout.left + width * place[1], layout.top + height * place[0]
    hue, weak = str(shading.hue[place]), bool(shading.weak[place])
    words = format_number(value, 4) if std is None else join_estimate(value, std, decimals)
    tooltip = element("title", escape_text(f"{name}: {words}"))
    size: dict[str, Any] = {"width": width - 1.5, "height": height - 1.5, "rx": 1.5}
    if hue not in ("fixed", "hidden"):
        size["fill_opacity"] = float(shading.strength[place])
    elements = [element("rect", tooltip, x=x + 0.75, y=y + 0.75, class_=f"p-{hue}", **size)]
    if layout.has_numbers:
        number = format_estimate(value, std or 0.0, decimals)[0] if math.isfinite(value) else "–"
        small = min(12.5, 0.62 * height, (width - 6) / (0.6 * max(len(number), 4)))
        kind = "soft" if weak or hue in ("fixed", "hidden") else "text" if shading.doubtful[place] else "text bold"
        middle = {"text_anchor": "middle", "pointer_events": "none", "kind": kind}
        elements.append(text(x + width / 2, y + height / 2 + 0.36 * small, number, size=small, **middle))
    return "".join(elements)


def _draw_legend(items: Sequence[LegendItem], y: float) -> str:
    """One line for each colour: a swatch or a ramp, and what it means."""
    elements = []
    for k, item in enumerate(items):
        top = y + 22 * k
        if item.kind == "ramp":
            elements += _draw_ramp(item.hues, top)
        else:
            style: dict[str, Any] = {"class_": f"p-{item.hues[0]}"}
            if item.kind == "weak":
                style["fill_opacity"] = item.strength
            elements.append(element("rect", x=_RAMP - 24, y=top, width=24, height=13, **style))
            elements.append(element("rect", x=_RAMP - 24, y=top, width=24, height=13, class_="p-frame"))
        elements.append(text(_RAMP + 10, top + 11, item.words, size=11.5, kind="soft"))
    return group(elements)


def _draw_ramp(hues: Sequence[str], y: float) -> list[str]:
    """Steps from full colour to none and to full colour of the other hue, or from none to full."""
    steps, found = 12, []
    width = _RAMP / (steps * len(hues))
    for side, hue in enumerate(hues):
        for k in range(steps):
            share = (k + 1) / steps
            falls = len(hues) == 2 and side == 0
            place = width * (steps - 1 - k if falls else side * steps + k)
            bar: dict[str, Any] = {"y": y, "width": width + 0.3, "height": 13, "class_": f"p-{hue}"}
            found.append(element("rect", x=place, fill_opacity=share, **bar))
    return found
