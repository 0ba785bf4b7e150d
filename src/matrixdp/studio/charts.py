"""Pictures of forecasts and answers, as the SVG that reports have. Each stands beside a table with the same numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from matrixdp.answers.estimate import relate_to_diagonal
from matrixdp.display import Numbers, format_number, join_estimate, make_visible, shorten
from matrixdp.domain.bounds import Bounds
from matrixdp.queries import Moments, TableMoments
from matrixdp.release.adaptive_release import AdaptiveRelease
from matrixdp.report.answers import Answer, Answerable
from matrixdp.report.charts import Curve, Dot, draw_curves, draw_dots, make_area
from matrixdp.report.heatmap import draw_heatmap
from matrixdp.report.svg import Drawing, Scale, element, make_image, round_up
from matrixdp.studio.error_tables import ErrorTable
from matrixdp.studio.forecasts import EPSILONS, Ellipse
from matrixdp.types import Floats

MOST_CELLS = 40  # rows or columns of a heat map
_MOST_BARS, _MOST_PANELS = 60, 6
_LABEL = 24  # characters of a name
_LEVEL = 1.96  # standard deviations of an error bar
_SIZE = (360.0, 220.0)
_EPSILON_TICKS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
_BESIDE = "the table has the same numbers."


@dataclass(frozen=True)
class Chart:
    """A picture.

    Attributes
    ----------
    svg : str
        With what it shows in words, for those who do not see it.
    caption : str
        How to read it.
    wide : bool
        Whether it is too detailed for a narrow screen, where it scrolls.
    """

    svg: str
    caption: str = ""
    wide: bool = False


def _make(drawing: Drawing, summary: str, caption: str = "", *, wide: bool = False) -> Chart:
    return Chart(make_image([drawing], make_visible(summary), inline=True), caption, wide)


# Forecasts


def draw_table(table: ErrorTable) -> Chart | None:
    """Errors as a heat map, or as bars if there is one column; None if they are too many to see, or noise hides all."""
    std, noisy = table.std, table.std[table.std != 0]
    if max(len(table.rows), len(table.columns)) > MOST_CELLS or not np.isfinite(noisy).any():
        return None
    summary = f"Predicted errors of: {table.title}"
    if len(table.columns) == 1:
        errors = [(name, float(error)) for name, error in zip(table.rows, std[:, 0], strict=True)]
        dots = [Dot(name, error, 0.0, error, write_error(error)) for name, error in errors if math.isfinite(error)]
        return _make(draw_dots(dots, Scale(0.0, 1.05 * max(dot.value for dot in dots) or 1.0), "error"), summary)
    shown, caption = None, "The stronger the colour, the larger the error."
    if not table.comparable:  # entries have different units
        shown = _shade_logarithms(std)
        caption = "The stronger the colour, the larger the error, on a logarithmic scale."
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
    here: tuple[float, float] | None,
    wanted: float | None = None,
) -> Chart:
    """Error against epsilon, both on logarithmic scales: a line for a plain release, a band for an adaptive fit.

    A rule marks `epsilon`, and a point the error there, if it is known; another rule marks the error that is wanted.
    """
    line = np.array([pair for pair in plain if 0 < pair[1] < math.inf]).reshape(-1, 2).T
    band = np.array([one for one in simulated if one[1] > 0 and one[3] < math.inf]).reshape(-1, 4).T
    point = here if here is not None and 0 < here[1] < math.inf else None
    seen = [*line[1], *band[1:].ravel(), *([point[1]] if point else [])]
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
        rules.append(
            {"x1": (at := float(area.across(epsilon))), "x2": at, "y1": area.top, "y2": area.top + area.height}
        )
    if wanted is not None and y.low < wanted < y.high:
        rules.append({"x1": area.left, "x2": area.left + area.width, "y1": (at := float(area.up(wanted))), "y2": at})
    extra += [element("line", class_="p-other", stroke_dasharray="3 4", stroke_opacity=0.8, **rule) for rule in rules]
    drawing = draw_curves(
        curves, x, y, ("epsilon", "error"), size=_SIZE, extra=extra, ticks=(_EPSILON_TICKS, y.ticks())
    )
    if inside and point:
        place = {"cx": float(area.across(point[0])), "cy": float(area.up(point[1]))}
        words = element("title", f"epsilon {format_number(point[0])}: error {format_number(point[1])}")
        dot = element("circle", words, r=5.5, class_="p-other", **place)
        drawing = Drawing((*drawing.elements, dot), drawing.width, drawing.height)
    return _make(drawing, "Predicted error against epsilon, both on logarithmic scales; errors fall as epsilon grows")


def draw_ellipse(ellipse: Ellipse) -> Chart:
    """The noise of two numbers, within the curve with 95 % probability; both axes have the same scale."""
    reach = round_up(float(np.abs(ellipse.points).max()))  # so that a smaller ellipse looks smaller
    scale = Scale(-reach, reach)
    first, second = (f"noise in {ellipse.subject}{make_visible(shorten(name, _LABEL))}" for name in ellipse.names)
    area = make_area(scale, scale, _SIZE)
    inner = area.line(ellipse.points, "p-mark", closed=True, fill_opacity=0.15)
    drawing = draw_curves([Curve(ellipse.points)], scale, scale, (first, second), size=_SIZE, extra=[inner])
    return _make(drawing, "An ellipse that contains the noise of two numbers with 95 percent probability")


def write_error(error: float) -> str:
    """An error as short text."""
    return format_number(error) if math.isfinite(error) else "hidden by noise"


# Answers


def draw_answer(release: Answerable, kind: str, answer: Answer) -> tuple[Chart, ...]:
    """The pictures of an answer; none where they would be too large to read."""
    estimate = answer.estimate
    if kind == "means":
        return tuple(_draw_means(answer, _find_bounds(release)))
    if kind == "means_by":
        return tuple(
            chart for j in range(min(len(estimate.columns), _MOST_PANELS)) for chart in _draw_levels(answer, j)
        )
    if kind == "regression":
        return tuple(_draw_coefficients(answer))
    if max(estimate.value.shape) > MOST_CELLS:
        return ()
    height, width = estimate.value.shape
    if kind == "table":
        caption = "The stronger the colour, the larger the count. Pale: may be noise alone."
        return (_draw_heat(answer, caption, (height - 1, width - 1), counts=True),)
    if kind == "components":
        caption = "Loadings from -1 to 1. Empty: not separated from another component by the noise."
        return (_draw_heat(answer, caption, (height - 1, width)),)
    caption = "From -1 to 1. Pale: may be noise alone. Empty: hidden by noise."
    if kind == "covariance":
        caption = "Colours: covariances relative to the variances of their columns. Empty: hidden by noise."
        return (_draw_heat(answer, caption, shown=relate_to_diagonal(estimate.value, estimate.std)[0]),)
    return (_draw_heat(answer, caption),)


def _draw_heat(
    answer: Answer,
    caption: str,
    size: tuple[int, int] = (MOST_CELLS, MOST_CELLS),
    *,
    shown: Floats | None = None,
    counts: bool = False,
) -> Chart:
    drawing = draw_heatmap(answer.estimate.cut(*size), title="", meaning="", shown=shown, counts=counts)
    return _make(drawing, f"{answer.title} as a heat map; {_BESIDE}", caption, wide=True)


def _find_bounds(release: Answerable) -> Bounds | None:
    """Bounds of the numbers of a release."""
    if isinstance(release, AdaptiveRelease):
        return release.moment.bounds
    query = release.design.query
    if isinstance(query, TableMoments):
        return query.used.bounds
    return query.bounds if isinstance(query, Moments) else None


def _list_dots(answer: Answer, column: int) -> Iterator[tuple[int, Dot]]:
    """The numbers of a column that are given, with their places."""
    estimate = answer.estimate
    for i, name in enumerate(estimate.rows):
        value, std = float(estimate.value[i, column]), float(estimate.std[i, column])
        if math.isfinite(value):
            reach = _LEVEL * std if math.isfinite(std) else 0.0
            words = join_estimate(value, std if math.isfinite(std) else 0.0)
            yield i, Dot(make_visible(name), value, value - reach, value + reach, words)


def _draw_means(answer: Answer, bounds: Bounds | None) -> Iterator[Chart]:
    """Means as places between their public bounds, so that columns with different units share an axis."""
    if bounds is None or len(answer.estimate.rows) > _MOST_BARS:
        return
    dots = []
    for i, dot in _list_dots(answer, 0):
        lower, width = float(bounds.lower[i]), float(bounds.upper[i] - bounds.lower[i])
        middle, low, high = ((end - lower) / width for end in (dot.value, dot.low, dot.high))
        dots.append(Dot(dot.label, middle, low, high, dot.words))
    if dots:
        drawing = draw_dots(dots, Scale(0.0, 1.0), "mean, from the lower (0) to the upper bound (1)", longest=_LABEL)
        yield _make(drawing, f"Means with error bars; {_BESIDE}", "Bars: 95% of the privacy noise, cut at the bounds.")


def _draw_levels(answer: Answer, column: int) -> Iterator[Chart]:
    """The numbers of one column of a table, a bar to each level."""
    title, dots = answer.estimate.columns[column], [dot for _, dot in _list_dots(answer, column)]
    if dots and len(answer.estimate.rows) <= _MOST_BARS:
        drawing = draw_dots(dots, _fit_scale(dots), make_visible(shorten(title, 40)), longest=_LABEL)
        caption = "Bars: 95% of the privacy noise. A level without a bar is hidden by it."
        yield _make(drawing, f"{title} with error bars; {_BESIDE}", caption)


def _draw_coefficients(answer: Answer) -> Iterator[Chart]:
    """Coefficients over their standard errors, so that columns with different units share an axis."""
    dots = []
    for name, (coefficient, noise, sampling) in zip(answer.estimate.rows, answer.estimate.value[:, :3], strict=True):
        error = float(np.hypot(noise, sampling))
        if error > 0 and math.isfinite(ratio := float(coefficient) / error):
            words = join_estimate(float(coefficient), error)
            dots.append(Dot(make_visible(name), ratio, ratio - _LEVEL, ratio + _LEVEL, words))
    dots = dots[1:] if answer.estimate.rows[0] == "intercept" else dots
    if dots and len(dots) <= _MOST_BARS:
        scale, name = _fit_scale(dots, zero=True), "coefficient, in standard errors"
        drawing = draw_dots(dots, scale, name, guide=0.0, longest=_LABEL)
        caption = "A bar that reaches zero: the coefficient may be nothing but noise and sampling error."
        yield _make(drawing, f"{answer.title} with error bars; {_BESIDE}", caption)


def _fit_scale(dots: Sequence[Dot], *, zero: bool = False) -> Scale:
    """An axis with room for all error bars."""
    ends = [end for dot in dots for end in (dot.low, dot.high)] + [0.0] * zero
    room = 0.05 * (max(ends) - min(ends)) or 1.0
    return Scale(min(ends) - room, max(ends) + room)
