"""Charts as drawings: dots with error bars, one to a line, and curves over two axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from matrixdp.display import shorten
from matrixdp.report.svg import Area, Drawing, Scale, draw_key, element, text
from matrixdp.types import Floats

_LINE = 24.0  # pixels from one dot to the next
_LETTER = 6.6  # mean width of a letter


@dataclass(frozen=True)
class Dot:
    """A number with its error bar; `words` are those of a tooltip, and `kind`, a class of ``picture.css``, its colour.

    A number to compare with, `other`, is drawn as a hollow diamond.
    """

    label: str
    value: float
    low: float
    high: float
    words: str = ""
    kind: str = "p-mark"
    other: float | None = None


@dataclass(frozen=True, eq=False)
class Curve:
    """A line through points of shape (2, n), with error bars of shape (n,) if they are known."""

    points: Floats
    label: str = ""
    kind: str = "p-mark"
    dashed: bool = False
    halves: Floats | None = None


def draw_dots(
    dots: Sequence[Dot],
    scale: Scale,
    name: str,
    *,
    title: str = "",
    guide: float | None = None,
    keys: Sequence[tuple[str, str]] = (),
    width: float = 320.0,
    longest: int = 34,
) -> Drawing:
    """Numbers as dots with error bars, one to a line, on an axis of `width` pixels, at whose ends bars are cut.

    `name` is that of the axis, and `guide` where a line marks a special value, such as zero. `keys` are the words and
    kinds of the legend; the kind "hollow" is a diamond. Labels are cut after the `longest` number of characters.
    """
    left = 14 + _LETTER * min(longest, max(len(dot.label) for dot in dots))
    top = 30.0 if title else 6.0
    area = Area(scale, Scale(len(dots) - 0.5, -0.5), left, top, width, _LINE * len(dots))
    elements = [text(0, 14, title, size=14, kind="text bold")] if title else []
    elements += area.axes((name, ""), (scale.ticks(4), ()))
    if guide is not None:
        x = float(area.across(guide))
        elements.append(element("line", x1=x, x2=x, y1=top, y2=top + area.height, class_="p-guide"))
    for place, dot in enumerate(dots):
        y = float(area.up(place))
        elements.append(text(left - 8, y + 4, shorten(dot.label, longest), text_anchor="end"))
        elements += _draw_dot(area, dot, y)
    base = top + area.height + 56
    for words, kind in keys:
        circle = element("circle", cx=left + 5, cy=base - 4, r=4.5, class_=kind)
        elements.append(_draw_diamond(left + 5, base - 4) if kind == "hollow" else circle)
        elements.append(text(left + 16, base, words, size=11.5))
        base += 18
    return Drawing(tuple(elements), left + width + 24, base - 8)


def _draw_dot(area: Area, dot: Dot, y: float) -> list[str]:
    low, middle, high = area.across([dot.low, dot.value, dot.high]).tolist()
    tip = element("title", escape(f"{dot.label}: {dot.words}")) if dot.words else ""
    found = []
    if math.isfinite(low) and math.isfinite(high):
        found.append(element("line", x1=low, x2=high, y1=y, y2=y, class_=dot.kind, stroke_width=3, stroke_opacity=0.55))
    if dot.other is not None:
        found.append(_draw_diamond(float(area.across(dot.other)), y))
    return [*found, element("circle", tip, cx=middle, cy=y, r=4.5, class_=dot.kind)]


def _draw_diamond(x: float, y: float) -> str:
    points = " ".join(f"{x + a:.1f},{y + b:.1f}" for a, b in ((0, -5), (5, 0), (0, 5), (-5, 0)))
    return element("polygon", points=points, class_="p-other p-line")


def draw_curves(
    curves: Sequence[Curve],
    x: Scale,
    y: Scale,
    names: tuple[str, str],
    *,
    title: str = "",
    size: tuple[float, float] = (300.0, 230.0),
    extra: Sequence[str] = (),
    ticks: tuple[Sequence[float], Sequence[float]] | None = None,
) -> Drawing:
    """Lines over two axes, with a legend of those that have a label below them.

    `names` are those of the axes, and `size` that of the area between them in pixels; `extra` elements are drawn first.
    """
    area = make_area(x, y, size, title=title)
    elements = [text(0, 14, title, size=14, kind="text bold")] if title else []
    elements += [*area.axes(names, ticks), *extra]
    for curve in curves:
        dash: dict[str, Any] = {"stroke_dasharray": "5 4"} if curve.dashed else {}
        elements.append(area.line(curve.points, f"{curve.kind} p-line", **dash))
        elements += _draw_halves(area, curve)
    base = area.top + area.height + 56
    for curve in curves:
        if curve.label:
            dash = {"stroke_dasharray": "5 4"} if curve.dashed else {}
            elements += draw_key(area.left, base, curve.label, f"{curve.kind} p-line", **dash)
            base += 18
    return Drawing(tuple(elements), area.left + area.width + 12, base - 8)


def make_area(x: Scale, y: Scale, size: tuple[float, float], *, title: str = "") -> Area:
    """The area that `draw_curves` draws in."""
    return Area(x, y, 70.0, 28.0 if title else 8.0, *size)


def _draw_halves(area: Area, curve: Curve) -> list[str]:
    if curve.halves is None:
        return []
    found, small = [], area.y.low if area.y.log else -np.inf
    for (x, y), half in zip(curve.points.T.tolist(), curve.halves.tolist(), strict=True):
        place, ends = float(area.across(x)), area.up([max(y - half, small), y + half]).tolist()
        found.append(element("line", x1=place, x2=place, y1=ends[0], y2=ends[1], class_=curve.kind))
        found.append(element("circle", cx=place, cy=float(area.up(y)), r=2.5, class_=curve.kind))
    return found
