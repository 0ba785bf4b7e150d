"""The noise of two features as an ellipse that contains it with 95% probability, beside that of i.i.d. noise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from matrixdp.design import Design
from matrixdp.design.noise_ellipse import REACH, describe_numbers, outline_ellipse, pair_covariance
from matrixdp.display import format_number
from matrixdp.report.svg import Drawing, element, text
from matrixdp.types import Floats

_SIDE = 300.0
_LEFT, _TOP = 74.0, 44.0
_OURS, _OTHER = "p-mark", "p-other"


def draw_ellipse(design: Design, pair: tuple[int, int], names: tuple[str, str]) -> Drawing:
    """Noise of a design in two features, beside i.i.d. noise with the same guarantee."""
    ours, other = pair_covariance(design, *pair), pair_covariance(design.isotropic, *pair)
    reach = REACH * np.sqrt(np.maximum(np.diagonal(ours), np.diagonal(other))) * 1.08
    title = f"Noise in {describe_numbers(design)}{names[0]} and {names[1]}"
    elements = [text(0, 18, title, size=15, kind="text bold"), *_draw_axes(reach, names)]
    elements.append(_draw_outline(other, reach, _OTHER, dashed=True))
    elements.append(_draw_outline(ours, reach, _OURS))
    base = _TOP + _SIDE + 62
    for k, (words, ink) in enumerate((("this design", _OURS), ("i.i.d. noise, same guarantee", _OTHER))):
        x = _LEFT + 118 * k
        dash: dict[str, Any] = {"stroke_dasharray": "5 4"} if k else {}
        elements.append(element("line", x1=x, x2=x + 22, y1=base, y2=base, class_=ink, stroke_width=2.5, **dash))
        elements.append(text(x + 28, base + 4, words, size=11.5))
    elements.append(text(_LEFT, base + 24, "each contains the noise with 95% probability", size=11.5, kind="soft"))
    return Drawing(tuple(elements), max(_LEFT + _SIDE + 30, 8.5 * len(title)), base + 32)


def _draw_axes(reach: Floats, names: tuple[str, str]) -> list[str]:
    frame: dict[str, Any] = {"class_": "p-frame"}
    elements = [element("rect", x=_LEFT, y=_TOP, width=_SIDE, height=_SIDE, **frame)]
    for axis in (0, 1):
        tick = _round_down(float(reach[axis]) * 0.8)
        for value in (-tick, 0.0, tick):
            place = _SIDE * (0.5 + value / (2 * float(reach[axis])))
            if axis == 0:
                x = _LEFT + place
                ends: dict[str, Any] = {"x1": x, "x2": x, "y1": _TOP, "y2": _TOP + _SIDE}
                elements.append(text(x, _TOP + _SIDE + 16, format_number(value), size=11, text_anchor="middle"))
            else:
                y = _TOP + _SIDE - place
                ends = {"x1": _LEFT, "x2": _LEFT + _SIDE, "y1": y, "y2": y}
                elements.append(text(_LEFT - 7, y + 4, format_number(value), size=11, text_anchor="end"))
            elements.append(element("line", class_="p-grid", **ends))
    middle = _TOP + _SIDE / 2
    elements.append(text(_LEFT + _SIDE / 2, _TOP + _SIDE + 36, names[0], size=12.5, text_anchor="middle"))
    turned = {"transform": f"rotate(-90 18 {middle})", "text_anchor": "middle"}
    elements.append(text(18, middle, names[1], size=12.5, **turned))
    return elements


def _draw_outline(covariance: Floats, reach: Floats, ink: str, *, dashed: bool = False) -> str:
    points = outline_ellipse(covariance) / reach[:, None]
    places = np.stack([_LEFT + _SIDE * (0.5 + points[0] / 2), _TOP + _SIDE * (0.5 - points[1] / 2)], axis=1)
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dash = {"stroke_dasharray": "5 4"} if dashed else {}
    return element("polygon", points=path, class_=ink, fill_opacity=0.1, stroke_width=2, **dash)


def _round_down(value: float) -> float:
    """The largest of 1, 2 and 5 times a power of ten that is at most `value`."""
    power = 10.0 ** math.floor(math.log10(value))
    return max(factor * power for factor in (1, 2, 5) if factor * power <= value * (1 + 1e-9))
