"""Complete pictures, as SVG: a matrix, its standard deviations, and the noise of a design."""

from __future__ import annotations

from typing import Any

import numpy as np

from matrixdp.answers.estimate import Estimate
from matrixdp.design import Design
from matrixdp.design.explain import describe_numbers, feature_names, outline_ellipse, pair_covariance
from matrixdp.display import Numbers, format_number, has_equal_rows
from matrixdp.errors import ParameterError
from matrixdp.report.content import ReportContent
from matrixdp.report.heatmap import MAX_SIDE, count_shown_rows, draw_heatmap
from matrixdp.report.svg import Area, Drawing, Scale, draw_key, make_image, text
from matrixdp.types import Floats

RELATIVE = "share of the largest value that an entry can have"


def name_colours(content: ReportContent) -> str:
    """What the colours of the matrix show."""
    if content.counts:
        return f"number of {content.mechanism.query.count_word}"
    return "correlation" if content.kind == "correlation" else RELATIVE


def draw_matrix(content: ReportContent, description: str = "", *, inline: bool = False) -> str:
    """Heat map of the matrix; colours show each entry relative to the largest value that it can have.

    A screen reader says the description besides its title; `inline` is for an HTML page.
    """
    drawing = draw_heatmap(
        content.entries,
        shown=relate(content.matrix, content.scale) if content.relative else None,
        title="" if inline else f"Private {content.title}{describe_part(content)}",
        meaning=name_colours(content),
        counts=content.counts,
    )
    return make_image([drawing], _describe(content), description, inline=inline)


def draw_correlation(estimate: Estimate, description: str = "", *, inline: bool = False) -> str:
    """Heat map of the correlations of a table's numbers."""
    title = "Private correlation"
    drawing = draw_heatmap(estimate, title="" if inline else title, meaning="correlation")
    return make_image([drawing], title, description, inline=inline)


def draw_std(content: ReportContent, *, inline: bool = False) -> str:
    """Heat map of the error bars; colours show them relative to the largest value that each entry can have."""
    if content.std is None:
        raise ParameterError("the error bars of this release are unknown; there is nothing to draw.")
    title = f"Error bars{describe_part(content, equal_rows=has_equal_rows(content.std))}"
    bars = Numbers(content.std, None, content.rows, content.columns)
    drawing = _draw_bars(bars, content.scale, "" if inline else title)
    return make_image([drawing], f"Error bars of the {_describe(content)}", inline=inline)


def draw_design(design: Design, pair: tuple[int, int] | None = None) -> str:
    """Heat map of the standard deviations that a design predicts, beside the noise ellipse of a `pair` of features."""
    drawings = [] if pair is None else [_draw_ellipse(design, *pair)]
    bars = Numbers(design.std, None, *design.query.entry_names)
    drawings.append(_draw_bars(bars, np.asarray(design.query.magnitude), "Predicted standard deviations"))
    low, high = (format_number(float(end)) for end in (design.std.min(), design.std.max()))
    return make_image(drawings, "Predicted noise", f"Standard deviations from {low} to {high}.")


def _draw_bars(bars: Numbers, scale: Floats, title: str) -> Drawing:
    if len(bars.rows) > 1 and has_equal_rows(bars.value):
        bars = Numbers(bars.value[:1], None, ("all rows",), bars.columns)
    return draw_heatmap(bars, shown=relate(bars.value, scale), title=title, meaning=f"as a {RELATIVE}", counts=True)


def _draw_ellipse(design: Design, first: int, second: int) -> Drawing:
    """Noise of a design in two features, beside i.i.d. noise with the same guarantee."""
    names = feature_names(design.query)
    ours, other = (outline_ellipse(pair_covariance(one, first, second)) for one in (design, design.isotropic))
    reach = 1.08 * np.maximum(np.abs(ours).max(axis=1), np.abs(other).max(axis=1))
    across, up = (Scale(-float(end), float(end)) for end in reach)
    area = Area(across, up, left=74.0, top=44.0, width=300.0, height=300.0)
    title = f"Noise in {describe_numbers(design)}{names[first]} and {names[second]}"
    base = area.top + area.height + 62
    dashed: dict[str, Any] = {"stroke_dasharray": "5 4"}
    elements = [
        text(0, 18, title, size=15, kind="text bold"),
        *area.axes((names[first], names[second])),
        area.line(other, "p-other", closed=True, fill_opacity=0.1, stroke_width=2, **dashed),
        area.line(ours, "p-mark", closed=True, fill_opacity=0.1, stroke_width=2),
        *draw_key(area.left, base, "this design", "p-mark", stroke_width=2.5),
        *draw_key(area.left + 118, base, "i.i.d. noise, same guarantee", "p-other", stroke_width=2.5, **dashed),
        text(area.left, base + 20, "each contains the noise with 95% probability", size=11.5, kind="soft"),
    ]
    return Drawing(tuple(elements), max(area.left + area.width + 30, 8.5 * len(title)), base + 32)


def _describe(content: ReportContent) -> str:
    height, width = content.matrix.shape
    return f"Private {content.title}, {height} x {width}"


def describe_part(content: ReportContent, *, equal_rows: bool = False) -> str:
    """What part of a large matrix a picture shows; nothing if it shows all of it."""
    height, width = content.matrix.shape
    shown = count_shown_rows(height, width)
    parts = []
    if shown < height and not equal_rows:
        parts.append(f"{shown} of {height:,} rows")
    if width > MAX_SIDE:
        parts.append(f"{MAX_SIDE} of {width:,} columns")
    return ", the first " + " and ".join(parts) if parts else ""


def relate(values: Floats, scale: Floats) -> Floats:
    """The part of `values` that is shown, over the same part of `scale`."""
    shown = np.asarray(values)[:MAX_SIDE, :MAX_SIDE]
    return np.asarray(shown / np.broadcast_to(scale[:MAX_SIDE, :MAX_SIDE], shown.shape))
