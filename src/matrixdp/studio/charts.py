"""Pictures of forecasts and answers, as the SVG that reports have. Each stands beside a table with the same numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from matrixdp.answers.estimate import relate_to_diagonal
from matrixdp.design.explain import describe_numbers
from matrixdp.display import Numbers, format_number, join_estimate, make_visible, shorten
from matrixdp.domain.bounds import Bounds
from matrixdp.queries import Moments, TableMoments
from matrixdp.release.adaptive_release import AdaptiveRelease
from matrixdp.report.answers import Answer, Answerable
from matrixdp.report.pictures import draw_heatmap
from matrixdp.report.svg import (
    Curve,
    Dot,
    Drawing,
    Scale,
    draw_curves,
    draw_dots,
    element,
    make_area,
    make_image,
    round_up,
)
from matrixdp.studio.forecasts import EPSILONS, ErrorTable, Forecast
from matrixdp.types import Floats

MOST_CELLS = 40  # rows or columns of a heat map
_MOST_BARS, _MOST_PANELS = 60, 6
_LABEL = 24  # characters of a name
_LEVEL = 1.96  # standard deviations of an error bar
_SIZE = (360.0, 220.0)
_EPSILON_TICKS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
_BESIDE = "the table has the same numbers."


class Chart(NamedTuple):
    """A picture, how to read it, and whether it is too detailed for a narrow screen, where it scrolls."""

    svg: str
    caption: str = ""
    wide: bool = False


def _make(drawing: Drawing, summary: str, caption: str = "", *, wide: bool = False) -> Chart:
    """A picture with what it shows in words, for those who do not see it."""
    return Chart(make_image([drawing], make_visible(summary), inline=True), caption, wide)


def write_error(error: float, sign: str = "") -> str:
    """An error as short text."""
    return f"{sign}{format_number(error)}" if math.isfinite(error) else "hidden by noise"


# Forecasts


def draw_table(table: ErrorTable) -> Chart | None:
    """Errors as a heat map, or as bars if there is one column; None if they are too many to see, or noise hides all."""
    std, noisy = table.std, table.std[table.std != 0]
    if max(std.shape) > MOST_CELLS or not np.isfinite(noisy).any():
        return None
    summary = f"Predicted errors of: {table.title}"
    if len(table.columns) == 1:
        errors = [(name, error) for name, error in zip(table.rows, std[:, 0].tolist(), strict=True)]
        dots = [Dot(name, error, 0.0, error, write_error(error)) for name, error in errors if math.isfinite(error)]
        return _make(draw_dots(dots, Scale(0.0, 1.05 * max(dot.value for dot in dots) or 1.0), "error"), summary)
    shown = None if table.comparable else _shade_logarithms(std)  # otherwise entries have different units
    caption = f"The stronger the colour, the larger the error{'' if shown is None else ', on a logarithmic scale'}."
    numbers = Numbers(std, None, table.rows, table.columns, unknown="hidden by noise")
    return _make(draw_heatmap(numbers, title="", meaning="", shown=shown, counts=True), summary, caption, wide=True)


def _shade_logarithms(std: Floats) -> Floats:
    """Shares of the full colour on a logarithmic scale, from a tenth for the smallest error to one for the largest."""
    noisy = np.isfinite(std) & (std > 0)
    logs = np.log(np.where(noisy, std, 1.0))
    low, high = logs[noisy].min(), logs[noisy].max()
    return np.where(noisy, 0.1 + 0.9 * (logs - low) / max(high - low, 1e-9), 0.0)


def draw_curve(
    plain: Sequence[tuple[float, float]],
    simulated: Sequence[tuple[float, float, float, float]],
    epsilon: float,
    here: float | None,
    wanted: float | None = None,
) -> Chart:
    """Error against epsilon, both on logarithmic scales: a line for a plain release, a band for an adaptive fit.

    A rule marks `epsilon`, and a point the error `here`, if it is known; another rule marks the error that is wanted.
    """
    line = np.array([pair for pair in plain if 0 < pair[1] < math.inf]).reshape(-1, 2).T
    band = np.array([one for one in simulated if one[1] > 0 and one[3] < math.inf]).reshape(-1, 4).T
    here = here if here is not None and 0 < here < math.inf else None
    seen = [*line[1], *band[1:].ravel(), *([here] if here else [])]
    x = Scale(EPSILONS[0], EPSILONS[-1], log=True)
    y = Scale(min(seen) / 1.2, max(seen) * 1.2, log=True) if seen else Scale(0.1, 1.0, log=True)
    area = make_area(x, y, _SIZE)
    inside, extra, curves = x.low <= epsilon <= x.high, [], []
    if band.size:
        outline = np.concatenate([np.stack([band[0], np.minimum(band[1], band[2])]), band[[0, 3]][:, ::-1]], axis=1)
        extra.append(area.line(outline, "p-mark", closed=True, fill_opacity=0.22, stroke="none", stroke_width=0))
        curves.append(Curve(band[[0, 2]]))
    if line.size:
        curves.append(Curve(line, dashed=bool(band.size)))
    rules: list[dict[str, Any]] = []
    if inside:
        at = float(area.across(epsilon))
        rules.append({"x1": at, "x2": at, "y1": area.top, "y2": area.top + area.height})
    if wanted is not None and y.low < wanted < y.high:
        at = float(area.up(wanted))
        rules.append({"x1": area.left, "x2": area.left + area.width, "y1": at, "y2": at})
    extra += [element("line", class_="p-other", stroke_dasharray="3 4", stroke_opacity=0.8, **rule) for rule in rules]
    ticks = (_EPSILON_TICKS, y.ticks())
    drawing = draw_curves(curves, x, y, ("epsilon", "error"), size=_SIZE, extra=extra, ticks=ticks)
    if inside and here:
        words = element("title", f"epsilon {format_number(epsilon)}: error {format_number(here)}")
        place = {"cx": float(area.across(epsilon)), "cy": float(area.up(here))}
        dot = element("circle", words, r=5.5, class_="p-other", **place)
        drawing = Drawing((*drawing.elements, dot), drawing.width, drawing.height)
    return _make(drawing, "Predicted error against epsilon, both on logarithmic scales; errors fall as epsilon grows")


def draw_ellipse(forecast: Forecast, pair: tuple[int, int]) -> Chart | None:
    """The noise of two numbers, within the curve with 95 % probability; None if the design has none.

    Both axes have the same scale.
    """
    points = forecast.outline(*pair)
    if points is None:
        return None
    reach = round_up(float(np.abs(points).max()))  # so that a smaller ellipse looks smaller
    scale, subject = Scale(-reach, reach), describe_numbers(forecast.design)
    first, second = (f"noise in {subject}{make_visible(shorten(forecast.features[i], _LABEL))}" for i in pair)
    inner = make_area(scale, scale, _SIZE).line(points, "p-mark", closed=True, fill_opacity=0.15)
    drawing = draw_curves([Curve(points)], scale, scale, (first, second), size=_SIZE, extra=[inner])
    return _make(drawing, "An ellipse that contains the noise of two numbers with 95 percent probability")


# Answers


def draw_answer(release: Answerable, kind: str, answer: Answer) -> tuple[Chart, ...]:
    """The pictures of an answer; none where they would be too large to read."""
    estimate = answer.estimate
    if kind == "means":
        return _draw_means(release, answer)
    if kind == "means_by":
        return tuple(chart for j in range(len(estimate.columns))[:_MOST_PANELS] for chart in _draw_levels(answer, j))
    if kind == "regression":
        return _draw_coefficients(answer)
    height, width = estimate.value.shape
    if max(height, width) > MOST_CELLS:
        return ()
    caption, shown = "From -1 to 1. Pale: may be noise alone. Empty: hidden by noise.", None
    if kind == "table":
        caption = "The stronger the colour, the larger the count. Pale: may be noise alone."
        height, width = height - 1, width - 1  # without totals
    elif kind == "components":
        caption = "Loadings from -1 to 1. Empty: not separated from another component by the noise."
        height -= 1
    elif kind == "covariance":
        caption = "Colours: covariances relative to the variances of their columns. Empty: hidden by noise."
        shown = relate_to_diagonal(estimate.value, estimate.std)[0]
    part = estimate.cut(height, width)
    drawing = draw_heatmap(part, title="", meaning="", shown=shown, counts=kind == "table")
    return (_make(drawing, f"{answer.title} as a heat map; {_BESIDE}", caption, wide=True),)


def _make_dots(rows: Sequence[str], value: Floats, std: Floats, lower: Any = 0.0, unit: Any = 1.0) -> list[Dot]:
    """The numbers that are given, with 95 % of their errors, in units of `unit` above `lower`; of shape (rows,)."""
    std = np.where(np.isfinite(std), std, 0.0)
    with np.errstate(all="ignore"):
        places = np.stack([(value + side * _LEVEL * std - lower) / unit for side in (0, -1, 1)], axis=1)
    return [
        Dot(make_visible(rows[i]), middle, low, high, join_estimate(float(value[i]), float(std[i])))
        for i, (middle, low, high) in enumerate(places.tolist())
        if math.isfinite(low + middle + high)
    ]


def _draw_dots(
    dots: Sequence[Dot], name: str, title: str, caption: str, scale: Scale | None = None, guide: float | None = None
) -> tuple[Chart, ...]:
    """A line for each number, unless there are none or too many; by default the axis has room for all error bars."""
    if not 0 < len(dots) <= _MOST_BARS:
        return ()
    if scale is None:
        ends = [end for dot in dots for end in (dot.low, dot.high)] + ([] if guide is None else [guide])
        room = 0.05 * (max(ends) - min(ends)) or 1.0
        scale = Scale(min(ends) - room, max(ends) + room)
    drawing = draw_dots(dots, scale, name, guide=guide, longest=_LABEL)
    return (_make(drawing, f"{title} with error bars; {_BESIDE}", caption),)


def _draw_means(release: Answerable, answer: Answer) -> tuple[Chart, ...]:
    """Means as places between their public bounds, so that columns with different units share an axis."""
    bounds: Bounds | None
    if isinstance(release, AdaptiveRelease):
        bounds = release.moment.bounds
    else:
        query = release.design.query
        assert isinstance(query, TableMoments | Moments)  # as of all releases that answer questions
        bounds = query.used.bounds if isinstance(query, TableMoments) else query.bounds
        assert bounds is not None  # there are numbers
    found = answer.estimate
    dots = _make_dots(found.rows, found.value[:, 0], found.std[:, 0], bounds.lower, bounds.upper - bounds.lower)
    caption = "Bars: 95% of the privacy noise, cut at the bounds."
    return _draw_dots(dots, "mean, from the lower (0) to the upper bound (1)", "Means", caption, Scale(0.0, 1.0))


def _draw_levels(answer: Answer, column: int) -> tuple[Chart, ...]:
    """The numbers of one column of a table, a bar to each level."""
    found, title = answer.estimate, answer.estimate.columns[column]
    dots = _make_dots(found.rows, found.value[:, column], found.std[:, column])
    caption = "Bars: 95% of the privacy noise. A level without a bar is hidden by it."
    return _draw_dots(dots, make_visible(shorten(title, 40)), title, caption)


def _draw_coefficients(answer: Answer) -> tuple[Chart, ...]:
    """Coefficients over their standard errors, so that columns with different units share an axis."""
    found = answer.estimate
    error = np.hypot(found.value[:, 1], found.value[:, 2])  # of the noise and of the sample
    first = int(found.rows[0] == "intercept")
    dots = _make_dots(found.rows[first:], found.value[first:, 0], error[first:], unit=error[first:])
    caption = "A bar that reaches zero: the coefficient may be nothing but noise and sampling error."
    return _draw_dots(dots, "coefficient, in standard errors", answer.title, caption, guide=0.0)
