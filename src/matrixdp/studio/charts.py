"""Charts as Vega-Lite specifications. Colours come from the page's style; data are named, so that they can change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from matrixdp.display import format_number, make_visible, shorten
from matrixdp.studio.error_tables import ErrorTable
from matrixdp.studio.forecasts import EPSILONS, Ellipse

Spec = dict[str, Any]
_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_LABEL = 24  # characters of a name in a chart
_EPSILONS = [EPSILONS[0], EPSILONS[-1]]
MOST_CELLS = 40  # rows or columns of a heat map
_TICKS = {"format": ".4~g", "tickCount": 5}


def draw_table(table: ErrorTable) -> Spec | None:
    """Errors as a heat map, or as bars if there is one column; None if they are too many to see, or noise hides all."""
    if max(len(table.rows), len(table.columns)) > MOST_CELLS or not np.isfinite(table.std[table.std != 0]).any():
        return None
    if len(table.columns) == 1:
        return _draw_bars(table)
    cells = [
        {"row": row, "column": column, "error": _colour(table, i, j), "shown": _show(table.std[i, j])}
        for i, row in enumerate(_label(table.rows))
        for j, column in enumerate(_label(table.columns))
    ]
    side = max(12, min(34, 420 // max(len(table.rows), 1)))
    return _make(
        {"cells": cells},
        data={"name": "cells"},
        width="container",
        height={"step": side},
        mark={"type": "rect", "tooltip": True, "invalid": None},
        encoding={
            "x": {"field": "column", "type": "nominal", "sort": None, "title": None, "axis": _axis(-40)},
            "y": {"field": "row", "type": "nominal", "sort": None, "title": None, "axis": _axis(0)},
            "color": {
                "field": "error",
                "type": "quantitative",
                "title": "error",
                "scale": {"zero": True} if table.comparable else {"type": "log"},
                "legend": {"format": ".4~g", "tickCount": 3},
            },
            "opacity": {"condition": {"test": "datum.error === null", "value": 0}, "value": 1},
            "tooltip": [
                {"field": "row", "title": "row"},
                {"field": "column", "title": "column"},
                {"field": "shown", "title": "error"},
            ],
        },
    )


def _draw_bars(table: ErrorTable) -> Spec:
    bars = [
        {"row": row, "error": _finite(table.std[i, 0]), "shown": _show(table.std[i, 0])}
        for i, row in enumerate(_label(table.rows))
    ]
    return _make(
        {"bars": bars},
        data={"name": "bars"},
        width="container",
        height={"step": 22},
        mark={"type": "bar", "cornerRadiusEnd": 3, "tooltip": True},
        encoding={
            "y": {"field": "row", "type": "nominal", "sort": None, "title": None},
            "x": {"field": "error", "type": "quantitative", "title": "error", "axis": _TICKS},
            "tooltip": [{"field": "row", "title": table.title}, {"field": "shown", "title": "error"}],
        },
    )


def draw_curve(
    plain: Sequence[tuple[float, float]],
    simulated: Sequence[tuple[float, float, float, float]],
    epsilon: float,
    here: tuple[float, float] | None,
    wanted: float | None = None,
) -> Spec:
    """Error against epsilon, both on logarithmic scales: a line for a plain release, a band for an adaptive fit.

    A rule marks `epsilon`, and a point the error there, if it is known; another rule marks the error that is wanted.
    """
    lines = [{"epsilon": at, "error": error} for at, error in plain if 0 < error < math.inf]
    band = [
        {"epsilon": at, "friendly": min(low, middle), "error": middle, "hostile": high}
        for at, low, middle, high in simulated
        if low > 0 and high < math.inf
    ]
    inside = _EPSILONS[0] <= epsilon <= _EPSILONS[1]
    point = [{"epsilon": here[0], "error": here[1]}] if inside and here is not None and 0 < here[1] < math.inf else []
    aim = [{"wanted": wanted}] if wanted is not None and 0 < wanted < math.inf else []
    x = {"field": "epsilon", "type": "quantitative", "scale": {"type": "log", "domain": _EPSILONS}, "title": "epsilon"}
    x["axis"] = {"format": ".4~g", "labelOverlap": "greedy", "values": [0.01, 0.03, 0.1, 0.3, 1, 3, 10]}
    y = {"field": "error", "type": "quantitative", "scale": {"type": "log"}, "title": "error"}
    y["axis"] = _TICKS
    tips = [{"field": "epsilon", "format": ".3~g"}, {"field": "error", "format": ".3~g"}]
    layers: list[Spec] = [
        {
            "data": {"name": "band"},
            "mark": {"type": "area"},
            "encoding": {"x": x, "y": {**y, "field": "friendly"}, "y2": {"field": "hostile"}},
        },
        {"data": {"name": "band"}, "mark": {"type": "line"}, "encoding": {"x": x, "y": y, "tooltip": tips}},
        {
            "data": {"name": "plain"},
            "mark": {"type": "line", "strokeDash": [5, 4]} if band else {"type": "line"},
            "encoding": {"x": x, "y": y, "tooltip": tips},
        },
        {"data": {"name": "now"}, "mark": {"type": "rule", "opacity": 0.5}, "encoding": {"x": x}},
        {
            "data": {"name": "wanted"},
            "mark": {"type": "rule", "strokeDash": [2, 3]},
            "encoding": {"y": {"field": "wanted", "type": "quantitative"}},
        },
        {
            "data": {"name": "here"},
            "mark": {"type": "point", "style": "second", "size": 110},
            "encoding": {"x": x, "y": y, "tooltip": tips},
        },
    ]
    data = {"plain": lines, "band": band, "here": point, "wanted": aim, "now": [{"epsilon": epsilon}] if inside else []}
    return _make(data, width="container", height=230, layer=layers)


def draw_ellipse(ellipse: Ellipse) -> Spec:
    """The noise of two numbers, within the curve with 95 % probability; both axes have the same scale."""
    x, y = ellipse.points
    reach = _round_up(float(max(abs(x).max(), abs(y).max())))  # so that a smaller ellipse looks smaller
    points = [{"order": i, "x": float(a), "y": float(b)} for i, (a, b) in enumerate(zip(x, y, strict=True))]
    first, second = (f"noise in {ellipse.subject}{make_visible(shorten(name, _LABEL))}" for name in ellipse.names)
    scale = {"domain": [{"expr": "-reach"}, {"expr": "reach"}], "nice": False}
    return _make(
        {"ellipse": points},
        params=[{"name": "reach", "value": reach}],
        data={"name": "ellipse"},
        width="container",
        height=230,
        mark={"type": "line", "interpolate": "linear-closed", "fillOpacity": 0.15, "fill": "accent"},
        encoding={
            "x": {"field": "x", "type": "quantitative", "title": first, "scale": scale, "axis": _TICKS},
            "y": {"field": "y", "type": "quantitative", "title": second, "scale": scale, "axis": _TICKS},
            "order": {"field": "order"},
        },
    )


def _make(datasets: dict[str, list[dict[str, Any]]], **parts: Any) -> Spec:
    return {"$schema": _SCHEMA, "datasets": datasets, "autosize": {"type": "fit-x", "contains": "padding"}, **parts}


def _axis(angle: int) -> Spec:
    return {"labelAngle": angle, "labelLimit": 110, "ticks": False, "domain": False}


def _label(names: Sequence[str]) -> list[str]:
    """Short names, all different."""
    found: list[str] = []
    for name in names:
        short = make_visible(shorten(name, _LABEL))
        found.append(short if short not in found else f"{short} ({len(found) + 1})")
    return found


def _finite(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None


def _show(value: float) -> str:
    return format_number(float(value)) if math.isfinite(value) else "hidden by noise"


def _colour(table: ErrorTable, row: int, column: int) -> float | None:
    """What the colour of an entry stands for; none for entries without noise on a logarithmic scale."""
    value = _finite(table.std[row, column])
    return value if value or table.comparable else None


def _round_up(value: float) -> float:
    """The next number of 1, 2, 5, 10, 20, ..."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if value <= step * power)
