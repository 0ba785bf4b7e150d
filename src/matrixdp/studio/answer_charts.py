"""Pictures of answers as Vega-Lite specifications. Every picture stands beside a table with the same numbers.

Names of columns and levels are data of a picture, never a part of its specification.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from matrixdp.answers.estimate import relate_to_diagonal
from matrixdp.display import format_estimate, format_number, make_visible
from matrixdp.domain.bounds import Bounds
from matrixdp.queries import TableMoments
from matrixdp.release.adaptive_release import AdaptiveRelease
from matrixdp.report.answers import Answer, Answerable

_MOST_BARS = 60
_MOST_SIDE = 40  # rows or columns of a heat map
_MOST_PANELS = 6
_TOOLTIP = {"row": "row", "column": "column", "words": "value"}
_LEVEL = 1.96  # standard deviations of an error bar


@dataclass(frozen=True)
class Chart:
    """A picture.

    Attributes
    ----------
    spec : dict
        Vega-Lite, without colours and sizes of the page.
    summary : str
        What it shows, for those who do not see it.
    caption : str
        How to read it.
    """

    spec: dict[str, Any]
    summary: str
    caption: str


def draw_answer(release: Answerable, kind: str, answer: Answer) -> tuple[Chart, ...]:
    """The pictures of an answer; none where they would be too large to read."""
    estimate = answer.estimate
    if kind == "means":
        return tuple(_draw_means(answer, _find_bounds(release)))
    if kind == "means_by":
        panels = range(min(len(estimate.columns), _MOST_PANELS))
        return tuple(chart for j in panels for chart in _draw_levels(answer, j))
    if kind == "regression":
        return tuple(_draw_coefficients(answer))
    if max(estimate.value.shape) > _MOST_SIDE:
        return ()
    if kind == "table":
        return (_draw_counts(answer),)
    if kind == "components":
        caption = "Loadings from -1 to 1. Empty: not separated from another component by the noise."
        return (_draw_heat(answer, estimate.value, estimate.rows[:-1], caption),)
    shade, _ = relate_to_diagonal(estimate.value, estimate.std)
    caption = "From -1 to 1. Empty: hidden by noise."
    if kind == "covariance":
        caption = "Covariances relative to the variances of their columns, from -1 to 1. Empty: hidden by noise."
    return (_draw_heat(answer, shade, estimate.rows, caption),)


def _find_bounds(release: Answerable) -> Bounds | None:
    """Bounds of the numbers of a release."""
    if isinstance(release, AdaptiveRelease):
        return release.moment.bounds
    query = release.design.query
    return query.used.bounds if isinstance(query, TableMoments) else getattr(query, "bounds", None)


def _draw_means(answer: Answer, bounds: Bounds | None) -> Iterable[Chart]:
    """Means as places between their public bounds, so that columns with different units share an axis."""
    estimate = answer.estimate
    if bounds is None or len(estimate.rows) > _MOST_BARS:
        return
    rows = []
    for i, name in enumerate(estimate.rows):
        value, std = float(estimate.value[i, 0]), float(estimate.std[i, 0])
        if np.isfinite(value):
            lower, width = float(bounds.lower[i]), float(bounds.upper[i] - bounds.lower[i])
            middle, reach = (value - lower) / width, _LEVEL * std / width
            rows.append(_bar(i, name, middle, reach, _words(value, std)))
    axis = {"title": "mean, from the lower to the upper bound", "format": "%"}
    if rows:
        yield _bars(rows, axis, "Means", "Bars: 95% of the privacy noise, cut at the bounds.", domain=(0.0, 1.0))


def _draw_levels(answer: Answer, column: int) -> Iterable[Chart]:
    """The numbers of one column of a table, a bar to each level."""
    estimate = answer.estimate
    if len(estimate.rows) > _MOST_BARS:
        return
    rows = []
    for i, name in enumerate(estimate.rows):
        value, std = float(estimate.value[i, column]), float(estimate.std[i, column])
        if np.isfinite(value):
            rows.append(_bar(i, name, value, _LEVEL * std, _words(value, std)))
    title = estimate.columns[column]
    if rows:
        yield _bars(
            rows, {"title": None}, title, "Bars: 95% of the privacy noise. A level without a bar is hidden by it."
        )


def _draw_coefficients(answer: Answer) -> Iterable[Chart]:
    """Coefficients over their standard errors, so that columns with different units share an axis."""
    value = answer.estimate.value[1:]
    if len(value) > _MOST_BARS:
        return
    rows = []
    for i, name in enumerate(answer.estimate.rows[1:]):
        coefficient, error = float(value[i, 0]), float(np.hypot(value[i, 1], value[i, 2]))
        if error > 0 and np.isfinite(coefficient / error):
            rows.append(_bar(i, name, coefficient / error, _LEVEL, _words(coefficient, error)))
    axis = {"title": "coefficient, in standard errors"}
    caption = "A bar that reaches zero: the coefficient may be nothing but noise and sampling error."
    if rows:
        yield _bars(rows, axis, answer.title, caption, zero=True)


def _bar(i: int, name: str, value: float, reach: float, words: str) -> dict[str, Any]:
    reach = reach if np.isfinite(reach) else 0.0
    return {"place": i, "name": make_visible(name), "value": value, "low": value - reach, "high": value + reach} | {
        "words": words
    }


def _words(value: float, std: float) -> str:
    shown, bar = format_estimate(value, std, commas=False) if np.isfinite(std) else (format_number(value, 4), "")
    return f"{shown} ± {bar}" if bar else shown


def _bars(
    rows: list[dict[str, Any]],
    axis: dict[str, Any],
    title: str,
    caption: str,
    *,
    domain: tuple[float, float] | None = None,
    zero: bool = False,
) -> Chart:
    """Points with error bars, one to a line."""
    y = {"field": "name", "type": "nominal", "sort": {"field": "place"}, "axis": {"title": None, "grid": True}}
    scale: dict[str, Any] = {"domain": list(domain), "clamp": True} if domain else {"zero": zero}
    x = {"type": "quantitative", "scale": scale, "axis": {**axis, "tickCount": 5, "labelOverlap": True}}
    tip = [{"field": "name", "title": "name"}, {"field": "words", "title": "value"}]
    layers: list[dict[str, Any]] = [
        {
            "mark": {"type": "rule", "strokeWidth": 3, "style": "interval"},
            "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, "tooltip": tip},
        },
        {
            "mark": {"type": "point", "size": 70, "opacity": 1},
            "encoding": {"x": {**x, "field": "value"}, "y": y, "tooltip": tip},
        },
    ]
    if zero:
        layers.insert(0, {"mark": {"type": "rule", "strokeDash": [4, 4]}, "encoding": {"x": {"datum": 0}}})
    spec = {
        "width": "container",
        "height": 26 * max(len(rows), 1),
        "data": {"name": "bars"},
        "datasets": {"bars": rows},
        "layer": layers,
    }
    return Chart(spec, f"{make_visible(title)} with error bars; the table has the same numbers.", caption)


def _draw_counts(answer: Answer) -> Chart:
    """A table of counts as a heat map, without the totals."""
    estimate = answer.estimate
    cells = [
        _cell(answer, (i, j), (estimate.rows[i], estimate.columns[j]), float(estimate.value[i, j]))
        for i in range(len(estimate.rows) - 1)
        for j in range(len(estimate.columns) - 1)
    ]
    caption = "The stronger the colour, the larger the count."
    return _heat(cells, answer.title, caption, {"domainMin": 0, "range": "heatmap"})


def _draw_heat(answer: Answer, shade: Any, rows: tuple[str, ...], caption: str) -> Chart:
    """Numbers from -1 to 1 as a heat map."""
    columns = answer.estimate.columns
    cells = [
        _cell(answer, (i, j), (rows[i], columns[j]), float(np.clip(shade[i, j], -1, 1)))
        for i in range(len(rows))
        for j in range(len(columns))
    ]
    return _heat(cells, answer.title, caption, {"domain": [-1, 1], "range": "diverging"})


def _cell(answer: Answer, place: tuple[int, int], names: tuple[str, str], shade: float) -> dict[str, Any]:
    """One cell of a heat map; a hidden one keeps its place and has no colour."""
    value, std = float(answer.estimate.value[place]), float(answer.estimate.std[place])
    shown = bool(np.isfinite(value) and np.isfinite(shade))
    words = _words(value, std) if shown else answer.estimate.reason(*place)
    facts = {"i": place[0], "j": place[1], "row": make_visible(names[0]), "column": make_visible(names[1])}
    return {**facts, "shade": shade if shown else 0.0, "hidden": not shown, "words": words}


def _heat(cells: list[dict[str, Any]], title: str, caption: str, scale: dict[str, Any]) -> Chart:
    height, width = (len({cell[side] for cell in cells}) for side in ("i", "j"))
    turned = {"labelAngle": -45 if width > 4 else 0, "labelLimit": 90}
    x = {"field": "column", "type": "nominal", "sort": {"field": "j"}}
    y = {"field": "row", "type": "nominal", "sort": {"field": "i"}, "axis": {"title": None}}
    spec = {
        "width": "container",
        "height": height * (24 if height > 12 else 32),
        "data": {"name": "cells"},
        "datasets": {"cells": cells},
        "mark": {"type": "rect"},
        "encoding": {
            "x": {**x, "axis": {"title": None, "orient": "top", **turned}},
            "y": y,
            "color": {
                "field": "shade",
                "type": "quantitative",
                "scale": {**scale, "interpolate": "rgb"},
                "legend": None,
            },
            "opacity": {"condition": {"test": "datum.hidden", "value": 0}, "value": 1},
            "tooltip": [{"field": name, "title": title} for name, title in _TOOLTIP.items()],
        },
    }
    return Chart(spec, f"{make_visible(title)} as a heat map; the table has the same numbers.", caption)
