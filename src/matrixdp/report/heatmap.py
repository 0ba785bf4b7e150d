"""A heat map with named rows and columns, the numbers where they fit, and a legend that names every colour."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from matrixdp.display import (
    Shown,
    choose_decimals,
    cut_numbers,
    escape_text,
    format_estimate,
    format_number,
    join_estimate,
    shorten,
)
from matrixdp.report.shading import LegendItem, shade_entries
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
    numbers: Shown, *, title: str, meaning: str, shown: Floats | None = None, counts: bool = False
) -> Drawing:
    """Heat map of a matrix; of a large one, its first rows and columns.

    Parameters
    ----------
    numbers : Shown
        An entry within two error bars of zero fades, and one without noise is grey.
    title, meaning : str
        The title may be empty; the meaning says what the colours show. Without one there is no legend.
    shown : float64 array of the shape of the matrix, or of the part that is shown, optional
        The numbers that the colours show, as shares; by default the values.
    counts : bool
        Whether colours are sequential.
    """
    part = cut_numbers(numbers, count_shown_rows(len(numbers.rows), len(numbers.columns)), MAX_SIDE)
    height, width = part.value.shape
    layout = _make_layout(part.rows, part.columns, 40.0 if title else 10.0)
    share = None if shown is None else np.asarray(shown)[:height, :width]
    shading = shade_entries(part.value, part.std, shown=share, counts=counts)
    decimals = choose_decimals(part.value, part.std, counts=counts)
    elements = _draw_labels(part.rows, part.columns, layout)
    if title:
        elements.append(text(0, 18, title, size=15, kind="text bold"))
    for i in range(height):
        for j in range(width):
            hue, strength = str(shading.hue[i, j]), float(shading.strength[i, j])
            kind = "text" if shading.doubtful[i, j] else "text bold"
            kind = "soft" if shading.weak[i, j] or hue in ("fixed", "hidden") else kind
            elements.append(_draw_cell(part, (i, j), layout, decimals, (hue, strength, kind)))
    items = shading.list_legend(meaning) if meaning else []
    bottom = layout.top + layout.cell_height * height
    elements.append(_draw_legend(items, bottom + 18))
    overhang = layout.font_size * 0.62 * min(_LABEL_LENGTH, max(map(len, part.columns))) * 0.71
    right = layout.left + layout.cell_width * width + overhang
    needed = max(right, *(_RAMP + 12 + _LETTER * len(item.words) for item in items), 8.5 * len(title))
    return Drawing(tuple(elements), needed, bottom + 22 + 22 * len(items))


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
    part: Shown, place: tuple[int, int], layout: _Layout, decimals: int | None, look: tuple[str, float, str]
) -> str:
    """A rectangle with a tooltip and, where it fits, the number; `look` is hue, strength and kind of text."""
    (i, j), (hue, strength, kind), width, height = place, look, layout.cell_width, layout.cell_height
    value, std = float(part.value[place]), None if part.std is None else float(part.std[place])
    x, y = layout.left + width * j, layout.top + height * i
    words = format_number(value, 4) if std is None else join_estimate(value, std, decimals)
    words = words if math.isfinite(value) else part.reason(i, j)
    tooltip = element("title", escape_text(f"{part.rows[i]} × {part.columns[j]}: {words}"))
    size: dict[str, Any] = {"width": width - 1.5, "height": height - 1.5, "rx": 1.5}
    if hue not in ("fixed", "hidden"):
        size["fill_opacity"] = strength
    elements = [element("rect", tooltip, x=x + 0.75, y=y + 0.75, class_=f"p-{hue}", **size)]
    if layout.has_numbers:
        number = format_estimate(value, std or 0.0, decimals)[0] if math.isfinite(value) else "–"
        small = min(12.5, 0.62 * height, (width - 6) / (0.6 * max(len(number), 4)))
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
            falls = len(hues) == 2 and side == 0
            place = width * (steps - 1 - k if falls else side * steps + k)
            bar: dict[str, Any] = {"y": y, "width": width + 0.3, "height": 13, "class_": f"p-{hue}"}
            found.append(element("rect", x=place, fill_opacity=(k + 1) / steps, **bar))
    return found
