"""Where a mean lies between its bounds, with its error bar: a small picture for a cell of a table."""

from __future__ import annotations

import math

from matrixdp.domain.columns import Number
from matrixdp.report.svg import element

_WIDTH, _HEIGHT, _REACH = 96.0, 12.0, 5.0
STRIP = "Line under a mean: from the lower to the upper bound of its column; bar: two error bars to each side."


def draw_strip(number: Number, value: float, std: float) -> str:
    """The strip as SVG; empty where noise hides the mean. The cell has the numbers, so screen readers skip it."""
    if not (math.isfinite(value) and math.isfinite(std)):
        return ""

    def place(x: float) -> float:
        share = (x - number.lower) / (number.upper - number.lower)
        return _REACH + (_WIDTH - 2 * _REACH) * min(max(share, 0.0), 1.0)

    y = _HEIGHT / 2
    low, high = (place(value + side * 2 * std) for side in (-1, 1))
    parts = (
        element("line", x1=_REACH, x2=_WIDTH - _REACH, y1=y, y2=y, class_="p-grid"),
        element("line", x1=low, x2=high, y1=y, y2=y, class_="p-mark", stroke_width=4, stroke_opacity=0.55),
        element("circle", cx=place(value), cy=y, r=3.5, class_="p-mark"),
    )
    size = {"width": _WIDTH, "height": _HEIGHT, "viewBox": f"0 0 {_WIDTH:g} {_HEIGHT:g}"}
    return element("svg", "".join(parts), class_="strip", aria_hidden="true", focusable="false", **size)
