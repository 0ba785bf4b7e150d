"""The noise of two features as an ellipse that contains it with 95 % probability, beside that of i.i.d. noise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from matrixdp.design import Design
from matrixdp.design.public_total import adjusted_covariance
from matrixdp.errors import ParameterError
from matrixdp.noise.edges import EdgeNoise
from matrixdp.noise.structure import Squares
from matrixdp.report.numbers import format_number
from matrixdp.report.svg import Drawing, element, text
from matrixdp.types import Floats

_REACH = math.sqrt(-2 * math.log(0.05))  # radius of the disc that holds 95 % of a standard normal pair
_SIDE = 300.0
_LEFT, _TOP = 74.0, 44.0
_OURS, _OTHER = "#2b8cbe", "#d9572b"


def pair_covariance(design: Design, i: int, j: int) -> Floats:
    """Covariance of the noise in two released numbers, one for each of two features, of shape (2, 2).

    The numbers are the means for moments, the diagonal entries for other symmetric answers, and otherwise the entries
    of one row or column. Symmetric noise has ``cov(Z_ij, Z_kl) = (C_ik C_jl + C_il C_jk)/2``.
    """
    if design.flat:
        raise ParameterError("a noise ellipse needs a design with directions; this one has a covariance of its own.")
    side, other = (design.colcov, design.rowcov) if design.query.side != "rows" else (design.rowcov, design.colcov)
    matrix = side.matrix()
    if design.query.moment_bounds is not None:
        pair = np.array([i + 1, j + 1])
        return np.asarray(matrix[0, 0] * matrix[np.ix_(pair, pair)] / 2)
    if design.query.total is not None:
        return adjusted_covariance(design.noise, 0, [i, j])
    if isinstance(design.structure, Squares | EdgeNoise):
        return design.structure.diagonal_covariance(side)[np.ix_([i, j], [i, j])]
    block = matrix[np.ix_([i, j], [i, j])]
    return np.asarray(np.square(block) if design.query.symmetric else block * other.variances[0])


def draw_ellipse(design: Design, pair: tuple[int, int], names: tuple[str, str]) -> Drawing:
    """Noise of a design in two features, beside i.i.d. noise with the same guarantee."""
    ours, other = pair_covariance(design, *pair), pair_covariance(design.isotropic, *pair)
    reach = _REACH * np.sqrt(np.maximum(np.diagonal(ours), np.diagonal(other))) * 1.08
    title = f"Noise in {_describe_numbers(design)}{names[0]} and {names[1]}"
    elements = [text(0, 18, title, size=15, font_weight=600), *_draw_axes(reach, names)]
    elements.append(_draw_outline(other, reach, _OTHER, dashed=True))
    elements.append(_draw_outline(ours, reach, _OURS))
    base = _TOP + _SIDE + 62
    for k, (words, ink) in enumerate((("this design", _OURS), ("i.i.d. noise, same guarantee", _OTHER))):
        x = _LEFT + 118 * k
        dash: dict[str, Any] = {"stroke_dasharray": "5 4"} if k else {}
        elements.append(element("line", x1=x, x2=x + 22, y1=base, y2=base, stroke=ink, stroke_width=2.5, **dash))
        elements.append(text(x + 28, base + 4, words, size=11.5))
    elements.append(text(_LEFT, base + 24, "each contains the noise with 95 % probability", size=11.5, opacity=0.8))
    return Drawing(tuple(elements), max(_LEFT + _SIDE + 30, 8.5 * len(title)), base + 32)


def _describe_numbers(design: Design) -> str:
    if design.query.moment_bounds is not None:
        return "the means of "
    return "the diagonal entries of " if design.query.symmetric else ""


def _draw_axes(reach: Floats, names: tuple[str, str]) -> list[str]:
    frame: dict[str, Any] = {"fill": "none", "stroke": "currentColor", "stroke_opacity": 0.35}
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
            elements.append(element("line", stroke="currentColor", stroke_opacity=0.15, **ends))
    middle = _TOP + _SIDE / 2
    elements.append(text(_LEFT + _SIDE / 2, _TOP + _SIDE + 36, names[0], size=12.5, text_anchor="middle"))
    turned = {"transform": f"rotate(-90 18 {middle})", "text_anchor": "middle"}
    elements.append(text(18, middle, names[1], size=12.5, **turned))
    return elements


def _draw_outline(covariance: Floats, reach: Floats, ink: str, *, dashed: bool = False) -> str:
    values, vectors = np.linalg.eigh(covariance)
    angles = np.linspace(0, 2 * np.pi, 121)
    circle = np.stack([np.cos(angles), np.sin(angles)])
    points = _REACH * (vectors * np.sqrt(np.maximum(values, 0.0))) @ circle / reach[:, None]
    places = np.stack([_LEFT + _SIDE * (0.5 + points[0] / 2), _TOP + _SIDE * (0.5 - points[1] / 2)], axis=1)
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dash = {"stroke_dasharray": "5 4"} if dashed else {}
    return element("polygon", points=path, fill=ink, fill_opacity=0.1, stroke=ink, stroke_width=2, **dash)


def _round_down(value: float) -> float:
    """The largest of 1, 2 and 5 times a power of ten that is at most `value`."""
    power = 10.0 ** math.floor(math.log10(value))
    return max(factor * power for factor in (1, 2, 5) if factor * power <= value * (1 + 1e-9))
