"""A heat map with named rows and columns, the numbers where they fit, and a legend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from matrixdp.report.svg import DIVERGING, SEQUENTIAL, clipped, colour, element, group, ink_on, short, text
from matrixdp.types import Floats

_LABEL = 22  # characters
MOST = 60  # rows or columns that a picture shows
MOST_ROWS = 30  # where rows are records


@dataclass(frozen=True)
class Drawing:
    """Records of a picture and the room that they take."""

    parts: tuple[str, ...]
    width: float
    height: float


@dataclass(frozen=True, eq=False)
class _Frame:
    """Where the cells are, how large they are, and the size of the labels."""

    wide: float
    high: float
    left: float
    top: float
    size: float

    @property
    def numbered(self) -> bool:
        """Whether numbers fit into the cells."""
        return self.wide >= 40 and self.high >= 16


def heatmap(
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
    """Cells coloured by `shade`, labelled with `values`, of shape (rows, columns).

    Parameters
    ----------
    values : float64 array
        The numbers to write.
    shade : float64 array
        What the colour shows.
    std : float64 array, optional
        Standard deviations; an entry within two of them of zero gets a dot.
    legend : str
        What the colour means.
    diverging : bool
        Whether zero is the middle of the colours.
    percent : bool
        Whether the legend is in percent.
    """
    height = shown_rows(len(rows), len(columns))
    values, shade = np.asarray(values)[:height, :MOST], np.asarray(shade)[:height, :MOST]
    std = None if std is None else np.asarray(std)[:height, :MOST]
    rows, columns = rows[:height], columns[:MOST]
    frame = _frame(rows, columns)
    low, high = _range(shade, diverging=diverging)
    scale = DIVERGING if diverging else SEQUENTIAL
    # A single level sits in the middle of the scale.
    level = np.full(shade.shape, 0.5) if high <= low else (np.nan_to_num(shade, nan=low) - low) / (high - low)
    parts = [text(0, 18, title, size=15, font_weight=600)]
    parts += _labels(rows, columns, frame)
    parts += _cells(values, std, rows, columns, level, scale, frame)
    width = frame.left + frame.wide * len(columns)
    bottom = frame.top + frame.high * len(rows)
    bar = _legend(low, high, scale, legend, frame, max(width, frame.left + 260), bottom + 18, percent=percent)
    overhang = frame.size * 0.62 * min(_LABEL, max(map(len, columns))) * 0.71
    return Drawing((*parts, bar), max(width + overhang, frame.left + 6.2 * len(legend), 8.5 * len(title)), bottom + 74)


def shown_rows(height: int, width: int) -> int:
    """How many of a matrix's rows a picture shows."""
    return min(height, MOST if height == width else MOST_ROWS)


def _frame(rows: Sequence[str], columns: Sequence[str]) -> _Frame:
    wide, high = _cell(len(columns)), _cell(len(rows))
    if len(rows) == len(columns) or len(rows) <= 12:
        high = min(high, wide)
    size = min(13.0, max(9.5, min(wide, high) * 0.62))
    longest_row, longest_column = (min(_LABEL, max(map(len, names))) for names in (rows, columns))
    return _Frame(wide, high, 14 + longest_row * size * 0.62, 40 + longest_column * size * 0.62 * 0.71 + size, size)


def _cell(count: int) -> float:
    return 54.0 if count <= 8 else 44.0 if count <= 12 else max(13.0, 560.0 / count)


def _range(shade: Floats, *, diverging: bool) -> tuple[float, float]:
    finite = shade[np.isfinite(shade)]
    if not finite.size:
        return 0.0, 0.0
    if diverging:
        most = float(np.abs(finite).max())
        return -most, most
    low, high = float(finite.min()), float(finite.max())
    return (low, low) if high - low <= 1e-6 * abs(high) else (0.0 if low < 0.5 * high else low, high)


def _labels(rows: Sequence[str], columns: Sequence[str], frame: _Frame) -> list[str]:
    parts = []
    for i, name in enumerate(rows):
        y = frame.top + frame.high * (i + 0.5) + frame.size * 0.35
        parts.append(text(frame.left - 7, y, clipped(name, _LABEL), size=frame.size, text_anchor="end"))
    for j, name in enumerate(columns):
        x, y = frame.left + frame.wide * (j + 0.5), frame.top - 7
        turned = {"transform": f"rotate(-45 {x:.2f} {y:.2f})"}
        parts.append(text(x, y, clipped(name, _LABEL), size=frame.size, **turned))
    return parts


def _cells(
    values: Floats,
    std: Floats | None,
    rows: Sequence[str],
    columns: Sequence[str],
    level: Floats,
    scale: Sequence[str],
    frame: _Frame,
) -> list[str]:
    parts = []
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            fill = colour(float(level[i, j]), scale) if np.isfinite(values[i, j]) else "#9aa0aa"
            x, y = frame.left + frame.wide * j, frame.top + frame.high * i
            bar = "" if std is None else f" ± {short(float(std[i, j]))}"
            spoken = element("title", escape(f"{row} × {column}: {short(float(values[i, j]), 4)}{bar}"))
            size = {"width": frame.wide - 1, "height": frame.high - 1, "rx": 1.5}
            shape = [element("rect", spoken, x=x + 0.5, y=y + 0.5, fill=fill, **size)]
            if frame.numbered:
                number = short(float(values[i, j]))
                small = min(12.5, 0.62 * frame.high, (frame.wide - 6) / (0.58 * max(len(number), 4)))
                middle = {"text_anchor": "middle", "fill": ink_on(fill), "pointer_events": "none"}
                shape.append(text(x + frame.wide / 2, y + frame.high / 2 + 0.36 * small, number, size=small, **middle))
            if std is not None and abs(values[i, j]) < 2 * std[i, j]:
                dot: dict[str, Any] = {"r": max(1.4, frame.high * 0.045), "fill": ink_on(fill), "fill_opacity": 0.6}
                right, top = (frame.wide - 6, 6.0) if frame.numbered else (frame.wide / 2, frame.high / 2)
                shape.append(element("circle", cx=x + right, cy=y + top, **dot))
            parts.append("".join(shape))
    return parts


def _legend(
    low: float, high: float, scale: Sequence[str], words: str, frame: _Frame, right: float, y: float, *, percent: bool
) -> str:
    width = min(260.0, right - frame.left)
    steps = 40
    single = high <= low

    def label(value: float) -> str:
        return f"{short(100 * value)} %" if percent else short(value)

    parts = [
        element(
            "rect",
            x=frame.left + width * k / steps,
            y=y,
            width=width / steps + 0.5,
            height=10,
            fill=colour(0.5 if single else k / (steps - 1), scale),
        )
        for k in range(steps)
    ]
    if single:
        parts.append(text(frame.left, y + 24, f"{label(low)} everywhere", size=11))
    else:
        ends = ((low, "start", 0.0), ((low + high) / 2, "middle", width / 2), (high, "end", width))
        parts += [text(frame.left + x, y + 24, label(value), size=11, text_anchor=at) for value, at, x in ends]
    parts.append(text(frame.left, y + 42, words, size=11.5, opacity=0.8))
    return group(parts)
