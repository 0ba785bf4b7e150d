"""Complete pictures, as SVG: a matrix, its standard deviations, and the noise of a design."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matrixdp.design import Design
from matrixdp.design.noise_ellipse import feature_names
from matrixdp.errors import ParameterError
from matrixdp.report.answer_tables import AnswerTable
from matrixdp.report.content import ReportContent, has_equal_rows
from matrixdp.report.ellipse import draw_ellipse
from matrixdp.report.heatmap import MAX_SIDE, count_shown_rows, draw_heatmap
from matrixdp.report.svg import Drawing, make_image
from matrixdp.types import Floats


def draw_matrix(content: ReportContent, *, inline: bool = False) -> str:
    """Heat map of the matrix; colours show each entry relative to the largest value that it can have."""
    relative = content.kind != "correlation"
    legend = "colour: share of the largest possible value" if relative else "colour: correlation"
    drawing = draw_heatmap(
        content.matrix,
        content.rows,
        content.columns,
        shade=_divide(content.matrix, content.scale) if relative else content.matrix,
        std=content.std,
        title=f"Private {content.title}{_describe_part(content)}",
        legend=legend if content.std is None else f"{legend}; dot: within two error bars of zero",
        percent=relative,
    )
    return make_image([drawing], _describe(content), inline=inline)


def draw_correlation(answer: AnswerTable, *, inline: bool = False) -> str:
    """Heat map of the correlations of a table's numbers."""
    estimate = answer.estimate
    drawing = draw_heatmap(
        estimate.value,
        estimate.rows,
        estimate.columns,
        shade=estimate.value,
        std=estimate.std,
        title="Private correlation",
        legend="colour: correlation; dot: within two error bars of zero",
    )
    return make_image([drawing], "Private correlation", inline=inline)


def draw_std(content: ReportContent, *, inline: bool = False) -> str:
    """Heat map of the error bars; colours show them relative to the largest value that each entry can have."""
    if content.std is None:
        raise ParameterError("the error bars of this release are unknown; there is nothing to draw.")
    title = f"Error bars{_describe_part(content, equal_rows=has_equal_rows(content.std))}"
    drawing = _draw_std(content.std, content.rows, content.columns, content.scale, title)
    return make_image([drawing], f"Error bars of the {_describe(content)}", inline=inline)


def draw_design(design: Design, pair: tuple[int, int] | None = None) -> str:
    """Heat map of the standard deviations that a design predicts, beside the noise ellipse of a pair of features.

    Parameters
    ----------
    design : Design
    pair : tuple of two int, optional
        Numbers of the features of the ellipse.
    """
    rows, columns = design.query.entry_names
    drawings = []
    if pair is not None:
        names = feature_names(design.query)
        drawings.append(draw_ellipse(design, pair, (names[pair[0]], names[pair[1]])))
    scale = np.asarray(design.query.magnitude)
    drawings.append(_draw_std(design.std, rows, columns, scale, "Predicted standard deviations"))
    return make_image(drawings, "Predicted noise")


def _draw_std(std: Floats, rows: Sequence[str], columns: Sequence[str], scale: Floats, title: str) -> Drawing:
    if has_equal_rows(std):
        std, rows = std[:1], ["all rows"]
    return draw_heatmap(
        std,
        rows,
        columns,
        shade=_divide(std, scale),
        title=title,
        legend="colour: standard deviation as a share of the largest possible value",
        diverging=False,
        percent=True,
    )


def _describe(content: ReportContent) -> str:
    height, width = content.matrix.shape
    return f"Private {content.title}, {height} x {width}"


def _describe_part(content: ReportContent, *, equal_rows: bool = False) -> str:
    """What part of a large matrix a picture shows; nothing if it shows all of it."""
    height, width = content.matrix.shape
    shown = count_shown_rows(height, width)
    parts = []
    if shown < height and not equal_rows:
        parts.append(f"{shown} of {height:,} rows")
    if width > MAX_SIDE:
        parts.append(f"{MAX_SIDE} of {width:,} columns")
    return ", the first " + " and ".join(parts) if parts else ""


def _divide(values: Floats, scale: Floats) -> Floats:
    """The part of `values` that is shown, over the same part of `scale`."""
    shown = np.asarray(values)[:MAX_SIDE, :MAX_SIDE]
    return np.asarray(shown / np.broadcast_to(scale[:MAX_SIDE, :MAX_SIDE], shown.shape))
