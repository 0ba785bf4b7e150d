"""A heat map with named rows and columns, the numbers where they fit, and a legend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from matrixdp.noise.covariance import Floats
from matrixdp.report.svg import DIVERGING, SEQUENTIAL, clipped, colour, element, group, ink_on, short, text

_LABEL = 22  # characters
MOST = 60  # rows or columns that a picture shows


@dataclass(frozen=True)
class Drawing:
    """Parts of a picture and the room that they take."""

    parts: tuple[str, ...]
    width: float
    height: float


@dataclass(frozen=True, eq=False)
class _Frame:
    """Where the cells are."""

    cell: float
    left: float
    top: float
    size: float


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
    values, shade, std = (None if a is None else np.asarray(a)[:MOST, :MOST] for a in (values, shade, std))  # type: ignore[assignment]
    rows, columns = rows[:MOST], columns[:MOST]
    frame = _frame(rows, columns)
    low, high = _range(shade, diverging=diverging)
    scale = DIVERGING if diverging else SEQUENTIAL
    # A single level sits in the middle of the scale.
    level = np.full(shade.shape, 0.5) if high <= low else (np.nan_to_num(shade, nan=low) - low) / (high - low)
    parts = [text(0, 18, title, size=15, font_weight=600)]
    parts += _labels(rows, columns, frame)
    parts += _cells(values, std, rows, columns, level, scale, frame)
    width = frame.left + frame.cell * len(columns)
    height = frame.top + frame.cell * len(rows)
    bar = _legend(low, high, scale, legend, frame, max(width, frame.left + 260), height + 18, percent=percent)
    overhang = frame.size * 0.62 * min(_LABEL, max(map(len, columns))) * 0.71
    return Drawing((*parts, bar), max(width + overhang, frame.left + 6.2 * len(legend), 8.5 * len(title)), height + 74)


def _frame(rows: Sequence[str], columns: Sequence[str]) -> _Frame:
    count = max(len(rows), len(columns))
    cell = 54.0 if count <= 8 else 44.0 if count <= 12 else max(13.0, 560.0 / count)
    size = min(13.0, max(9.5, cell * 0.62))
    longest_row, longest_column = (min(_LABEL, max(map(len, names))) for names in (rows, columns))
    return _Frame(cell, 14 + longest_row * size * 0.62, 40 + longest_column * size * 0.62 * 0.71 + size, size)


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
        y = frame.top + frame.cell * (i + 0.5) + frame.size * 0.35
        parts.append(text(frame.left - 7, y, clipped(name, _LABEL), size=frame.size, text_anchor="end"))
    for j, name in enumerate(columns):
        x, y = frame.left + frame.cell * (j + 0.5), frame.top - 7
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
            x, y = frame.left + frame.cell * j, frame.top + frame.cell * i
            bar = "" if std is None else f" ± {short(float(std[i, j]))}"
            spoken = element("title", escape(f"{row} × {column}: {short(float(values[i, j]), 4)}{bar}"))
            size = {"width": frame.cell - 1, "height": frame.cell - 1, "rx": 1.5}
            shape = [element("rect", spoken, x=x + 0.5, y=y + 0.5, fill=fill, **size)]
            if frame.cell >= 40:
                number = short(float(values[i, j]))
                small = min(12.5, (frame.cell - 6) / (0.58 * max(len(number), 4)))
                middle = {"text_anchor": "middle", "fill": ink_on(fill), "pointer_events": "none"}
                shape.append(text(x + frame.cell / 2, y + frame.cell / 2 + 4, number, size=small, **middle))
            if std is not None and abs(values[i, j]) < 2 * std[i, j]:
                dot: dict[str, Any] = {"r": max(1.4, frame.cell * 0.045), "fill": ink_on(fill), "fill_opacity": 0.6}
                corner = frame.cell * (0.86 if frame.cell >= 40 else 0.5)
                shape.append(element("circle", cx=x + corner, cy=y + frame.cell - corner, **dot))
            parts.append("".join(shape))
    return parts


def _legend(
    low: float, high: float, scale: Sequence[str], words: str, frame: _Frame, right: float, y: float, *, percent: bool
) -> str:
    width = min(260.0, right - frame.left)
    steps = 40
    single = high <= low

    def label(value: float) -> str:
        return f"{100 * value:.3g} %" if percent else short(value)

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
