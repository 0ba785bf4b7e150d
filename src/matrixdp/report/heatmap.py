"""A heat map with named rows and columns, the numbers where they fit, and a legend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from matrixdp.display.html import escape_text
from matrixdp.display.numbers import format_number, shorten
from matrixdp.report.svg import (
    DIVERGING,
    SEQUENTIAL,
    Drawing,
    contrast_colour,
    element,
    group,
    mix_colour,
    text,
)
from matrixdp.types import Floats

MAX_SIDE = 60  # rows and columns of a square matrix, and columns of any other, that a picture shows
_MAX_ROWS = 30  # rows of a matrix that is not square
_LABEL_LENGTH = 22  # characters
_LEGEND_WIDTH = 260.0
_LEGEND_STEPS = 40
_UNDEFINED = "#9aa0aa"


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


@dataclass(frozen=True)
class _ColourScale:
    """Colours for the values from `low` to `high`; if these are equal, the colour in the middle."""

    low: float
    high: float
    colours: Sequence[str]

    def colour(self, value: float) -> str:
        """The colour of a value; that of `low` for NaN."""
        if self.high <= self.low:
            return mix_colour(0.5, self.colours)
        return mix_colour(0.0 if math.isnan(value) else (value - self.low) / (self.high - self.low), self.colours)


def draw_heatmap(
    values: Floats,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    shade: Floats,
    title: str,
    legend: str,
    std: Floats | None = None,
    diverging: bool = True,
    percent: bool = False,
) -> Drawing:
    """Heat map of a matrix; of a large one, its first rows and columns.

    Parameters
    ----------
    values : float64 array of shape (rows, columns)
        The numbers to write into the cells.
    rows, columns : sequences of str
        Labels.
    shade : float64 array of the same shape, or of the part that is shown
        The numbers that the colours show.
    title, legend : str
        The legend says what the colours mean.
    std : float64 array of the same shape, optional
        Standard deviations; an entry within two standard deviations of zero gets a dot.
    diverging : bool
        Whether zero is the middle of the colour scale.
    percent : bool
        Whether the numbers of the legend are percentages.
    """
    height = count_shown_rows(len(rows), len(columns))
    values, shade = np.asarray(values)[:height, :MAX_SIDE], np.asarray(shade)[:height, :MAX_SIDE]
    std = None if std is None else np.asarray(std)[:height, :MAX_SIDE]
    rows, columns = rows[:height], columns[:MAX_SIDE]
    layout, scale = _make_layout(rows, columns), _make_scale(shade, diverging=diverging)
    elements = [text(0, 18, title, size=15, font_weight=600), *_draw_labels(rows, columns, layout)]
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            value, bar = float(values[i, j]), None if std is None else float(std[i, j])
            fill = scale.colour(float(shade[i, j])) if math.isfinite(value) else _UNDEFINED
            elements.append(_draw_cell(f"{row} × {column}", value, bar, fill, (i, j), layout))
    right = layout.left + layout.cell_width * len(columns)
    bottom = layout.top + layout.cell_height * len(rows)
    elements.append(_draw_legend(scale, legend, layout.left, bottom + 18, percent=percent))
    overhang = layout.font_size * 0.62 * min(_LABEL_LENGTH, max(map(len, columns))) * 0.71
    width = max(right + overhang, layout.left + 6.2 * len(legend), 8.5 * len(title))
    return Drawing(tuple(elements), width, bottom + 74)


def count_shown_rows(height: int, width: int) -> int:
    """Number of rows of a matrix of shape (height, width) that a picture shows."""
    return min(height, MAX_SIDE if height == width else _MAX_ROWS)


def _make_layout(rows: Sequence[str], columns: Sequence[str]) -> _Layout:
    width, height = _cell_size(len(columns)), _cell_size(len(rows))
    if len(rows) == len(columns) or len(rows) <= 12:
        height = min(height, width)
    size = min(13.0, max(9.5, min(width, height) * 0.62))
    row_length, column_length = (min(_LABEL_LENGTH, max(map(len, names))) for names in (rows, columns))
    return _Layout(width, height, 14 + row_length * size * 0.62, 40 + column_length * size * 0.62 * 0.71 + size, size)


def _cell_size(count: int) -> float:
    return 54.0 if count <= 8 else 44.0 if count <= 12 else max(13.0, 560.0 / count)


def _make_scale(shade: Floats, *, diverging: bool) -> _ColourScale:
    finite = shade[np.isfinite(shade)]
    colours = DIVERGING if diverging else SEQUENTIAL
    if not finite.size:
        return _ColourScale(0.0, 0.0, colours)
    if diverging:
        limit = float(np.abs(finite).max())
        return _ColourScale(-limit, limit, colours)
    low, high = float(finite.min()), float(finite.max())
    if high - low <= 1e-6 * abs(high):
        return _ColourScale(low, low, colours)
    return _ColourScale(0.0 if low < 0.5 * high else low, high, colours)


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


def _draw_cell(name: str, value: float, std: float | None, fill: str, place: tuple[int, int], layout: _Layout) -> str:
    """A rectangle with a tooltip and, where they apply, the number and the dot of an entry that may be zero."""
    width, height, ink = layout.cell_width, layout.cell_height, contrast_colour(fill)
    x, y = layout.left + width * place[1], layout.top + height * place[0]
    bar = "" if std is None else f" ± {format_number(std)}"
    tooltip = element("title", escape_text(f"{name}: {format_number(value, 4)}{bar}"))
    size: dict[str, Any] = {"width": width - 1, "height": height - 1, "rx": 1.5}
    elements = [element("rect", tooltip, x=x + 0.5, y=y + 0.5, fill=fill, **size)]
    if layout.has_numbers:
        number = format_number(value)
        small = min(12.5, 0.62 * height, (width - 6) / (0.58 * max(len(number), 4)))
        middle = {"text_anchor": "middle", "fill": ink, "pointer_events": "none"}
        elements.append(text(x + width / 2, y + height / 2 + 0.36 * small, number, size=small, **middle))
    if std is not None and abs(value) < 2 * std:
        dot: dict[str, Any] = {"r": max(1.4, height * 0.045), "fill": ink, "fill_opacity": 0.6}
        right, top = (width - 6, 6.0) if layout.has_numbers else (width / 2, height / 2)
        elements.append(element("circle", cx=x + right, cy=y + top, **dot))
    return "".join(elements)


def _draw_legend(scale: _ColourScale, words: str, left: float, y: float, *, percent: bool) -> str:
    """A strip of the scale's colours, with its ends and its middle in numbers, above the words."""
    width, steps = _LEGEND_WIDTH, _LEGEND_STEPS

    def label(value: float) -> str:
        return f"{format_number(100 * value)} %" if percent else format_number(value)

    middle, single = (scale.low + scale.high) / 2, scale.high <= scale.low
    elements = []
    for k in range(steps):
        fill = mix_colour(0.5 if single else k / (steps - 1), scale.colours)
        elements.append(
            element("rect", x=left + width * k / steps, y=y, width=width / steps + 0.5, height=10, fill=fill)
        )
    if single:
        elements.append(text(left, y + 24, f"{label(scale.low)} everywhere", size=11))
    else:
        ends = ((scale.low, "start", 0.0), (middle, "middle", width / 2), (scale.high, "end", width))
        elements += [text(left + x, y + 24, label(value), size=11, text_anchor=anchor) for value, anchor, x in ends]
    elements.append(text(left, y + 42, words, size=11.5, opacity=0.8))
    return group(elements)
