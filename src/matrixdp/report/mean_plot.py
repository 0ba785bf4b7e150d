"""Means as dots with error bars: one panel for each number, from its lower to its upper bound."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matrixdp.answers.named import TOO_FEW
from matrixdp.display.numbers import format_number, shorten
from matrixdp.domain.columns import Number
from matrixdp.queries import TableMoments
from matrixdp.report.answer_tables import AnswerTable
from matrixdp.report.content import ReportContent
from matrixdp.report.svg import Drawing, element, make_image, text

_WIDTH, _LINE, _LEFT = 360.0, 22.0, 150.0
_INK = "#2b8cbe"
_MOST_LINES, _MOST_PANELS = 40, 12


def draw_means(content: ReportContent, answer: AnswerTable, *, inline: bool = False) -> str | None:
    """Picture of the means of all numbers, or of each number in all groups; None if there are none."""
    numbers = _list_numbers(content)
    estimate = answer.estimate
    if not numbers:
        return None
    if answer.name == "means":
        column = estimate.columns.index("mean")
        lines = [
            (number.name, number, float(estimate.value[i, column]), float(estimate.std[i, column]))
            for i, number in enumerate(numbers)
        ]
        drawings = [_draw_panel("", lines[:_MOST_LINES], ends=True)]
    else:
        drawings = []
        for number in numbers[:_MOST_PANELS]:
            j = estimate.columns.index(number.name)
            rows = zip(estimate.rows, estimate.value[:, j], estimate.std[:, j], strict=True)
            lines = [(name, number, float(value), float(std)) for name, value, std in rows]
            drawings.append(_draw_panel(number.name, lines[:_MOST_LINES], ends=False))
    return make_image([_stack(drawings)], f"{answer.title}, with error bars", inline=inline)


def _list_numbers(content: ReportContent) -> Sequence[Number]:
    """The numbers of a table, or those of the bounds."""
    query = content.mechanism.query
    if isinstance(query, TableMoments):
        return query.used.numbers
    bounds = query.moment_bounds
    assert bounds is not None  # otherwise there are no means
    limits = zip(content.feature_names, bounds.lower.tolist(), bounds.upper.tolist(), strict=True)
    return [Number(*one) for one in limits]


def _draw_panel(title: str, lines: Sequence[tuple[str, Number, float, float]], *, ends: bool) -> Drawing:
    """One line for each mean; `ends` writes the bounds on every line, otherwise once below."""
    top = 26.0 if title else 4.0
    elements = [text(0, 15, title, size=13.5, font_weight=600)] if title else []
    for k, (name, number, value, std) in enumerate(lines):
        y = top + _LINE * (k + 0.5)
        elements.append(text(_LEFT - 8, y + 4, shorten(name, 22), size=12, text_anchor="end"))
        end = _LEFT + _WIDTH
        if math.isfinite(value):
            elements.append(element("line", x1=_LEFT, x2=end, y1=y, y2=y, stroke="currentColor", stroke_opacity=0.2))
        if ends:
            elements.append(text(_LEFT, y - 4, format_number(number.lower), size=9.5, opacity=0.7))
            elements.append(text(end, y - 4, format_number(number.upper), size=9.5, opacity=0.7, text_anchor="end"))
        elements += _draw_mean(number, value, std, y)
    bottom = top + _LINE * len(lines)
    if not ends:
        number = lines[0][1]
        elements.append(text(_LEFT, bottom + 12, format_number(number.lower), size=11))
        elements.append(text(_LEFT + _WIDTH, bottom + 12, format_number(number.upper), size=11, text_anchor="end"))
    return Drawing(tuple(elements), _LEFT + _WIDTH + 40, bottom + (4 if ends else 16))


def _draw_mean(number: Number, value: float, std: float, y: float) -> list[str]:
    if not math.isfinite(value):
        return [text(_LEFT + _WIDTH / 2, y + 4, TOO_FEW, size=11, text_anchor="middle", opacity=0.7)]

    def place(x: float) -> float:
        share = (x - number.lower) / (number.upper - number.lower)
        return _LEFT + _WIDTH * min(max(share, 0.0), 1.0)

    low, high = (place(value + side * 2 * std) for side in (-1, 1))
    bar = element("line", x1=low, x2=high, y1=y, y2=y, stroke=_INK, stroke_width=3)
    return [bar, element("circle", cx=place(value), cy=y, r=4.5, fill=_INK)]


def _stack(drawings: Sequence[Drawing]) -> Drawing:
    elements, y = [], 0.0
    for drawing in drawings:
        elements.append(element("g", "".join(drawing.elements), transform=f"translate(0 {y:.1f})"))
        y += drawing.height + 10
    words = "scale: the bounds; bar: two error bars to each side"
    elements.append(text(_LEFT, y + 8, words, size=11, opacity=0.8))
    return Drawing(tuple(elements), max(drawing.width for drawing in drawings), y + 16)
