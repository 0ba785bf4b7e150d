"""Complete pictures, as SVG: a matrix, its standard deviations, and the noise of a design."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matrixdp.design import Design
from matrixdp.design.noise_ellipse import feature_names
from matrixdp.display import format_number
from matrixdp.errors import ParameterError
from matrixdp.report.answer_tables import AnswerTable
from matrixdp.report.content import ReportContent, has_equal_rows
from matrixdp.report.ellipse import draw_ellipse
from matrixdp.report.heatmap import MAX_SIDE, count_shown_rows, draw_heatmap
from matrixdp.report.svg import Drawing, make_image
from matrixdp.types import Floats

RELATIVE = "share of the largest value that an entry can have"


def name_colours(content: ReportContent) -> str:
    """What the colours of the matrix show."""
    if content.counts:
        return f"number of {content.mechanism.query.count_word}"
    return "correlation" if content.kind == "correlation" else RELATIVE


def draw_matrix(content: ReportContent, description: str = "", *, inline: bool = False) -> str:
    """Heat map of the matrix; colours show each entry relative to the largest value that it can have.

    Parameters
    ----------
    content : ReportContent
    description : str
        What a screen reader says about it besides its title.
    inline : bool
        For an HTML page.
    """
    relative = not (content.counts or content.kind == "correlation")
    drawing = draw_heatmap(
        content.matrix,
        content.rows,
        content.columns,
        std=content.std,
        shown=relate(content.matrix, content.scale) if relative else None,
        title="" if inline else f"Private {content.title}{describe_part(content)}",
        meaning=name_colours(content),
        counts=content.counts,
    )
    return make_image([drawing], _describe(content), description, inline=inline)


def draw_correlation(answer: AnswerTable, description: str = "", *, inline: bool = False) -> str:
    """Heat map of the correlations of a table's numbers."""
    estimate = answer.estimate
    drawing = draw_heatmap(
        estimate.value,
        estimate.rows,
        estimate.columns,
        std=estimate.std,
        title="" if inline else "Private correlation",
        meaning="correlation",
    )
    return make_image([drawing], "Private correlation", description, inline=inline)


def draw_std(content: ReportContent, *, inline: bool = False) -> str:
    """Heat map of the error bars; colours show them relative to the largest value that each entry can have."""
    if content.std is None:
        raise ParameterError("the error bars of this release are unknown; there is nothing to draw.")
    title = f"Error bars{describe_part(content, equal_rows=has_equal_rows(content.std))}"
    drawing = _draw_std(content.std, content.rows, content.columns, content.scale, "" if inline else title)
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
    low, high = (format_number(float(end)) for end in (design.std.min(), design.std.max()))
    return make_image(drawings, "Predicted noise", f"Standard deviations from {low} to {high}.")


def _draw_std(std: Floats, rows: Sequence[str], columns: Sequence[str], scale: Floats, title: str) -> Drawing:
    if has_equal_rows(std):
        std, rows = std[:1], ["all rows"]
    return draw_heatmap(
        std, rows, columns, shown=relate(std, scale), title=title, meaning=f"as a {RELATIVE}", counts=True
    )


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
