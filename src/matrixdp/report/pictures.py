"""Whole pictures: a matrix, its standard deviations, and a design's noise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matrixdp.design.design import Design
from matrixdp.report.content import Result
from matrixdp.report.ellipse import ellipse
from matrixdp.report.heatmap import MOST, Drawing, heatmap, shown_rows
from matrixdp.report.svg import group, picture
from matrixdp.types import Floats

_MARGIN = 16.0


def matrix_picture(result: Result, *, inline: bool = False) -> str:
    """Heat map of the matrix; colours show each entry relative to the largest value that it can have."""
    relative = result.kind != "correlation"
    drawing = heatmap(
        result.matrix,
        result.rows,
        result.columns,
        shade=_relative(result.matrix, result.scale) if relative else result.matrix,
        std=result.std,
        title=f"Private {result.title}" + _part(result),
        legend="colour: share of the largest value possible; dot: within two error bars of zero"
        if relative
        else "colour: correlation; dot: within two error bars of zero",
        percent=relative,
    )
    return _frame([drawing], drawing_title(result), inline=inline)


def std_picture(result: Result, *, inline: bool = False) -> str:
    """Heat map of the error bars; colours show them relative to the largest value that the entry can have."""
    drawing = std_drawing(
        result.std,
        result.rows,
        result.columns,
        result.scale,
        "Error bars" + _part(result, alike=result.std.strides[0] == 0),
    )
    return _frame([drawing], f"Error bars of the {drawing_title(result)}", inline=inline)


def design_picture(
    design: Design,
    rows: Sequence[str],
    columns: Sequence[str],
    pair: tuple[int, int] | None,
    names: tuple[str, str] = ("", ""),
) -> str:
    """The noise ellipse of two features, beside the heat map of the standard deviations that a design predicts."""
    drawings = [] if pair is None else [ellipse(design, *pair, names)]
    scale = np.asarray(design.query.magnitude)
    drawings.append(std_drawing(design.std, rows, columns, scale, "Predicted standard deviations"))
    return _frame(drawings, "Predicted noise")


def drawing_title(result: Result) -> str:
    """The picture's name for those who cannot see it."""
    height, width = result.matrix.shape
    return f"Private {result.title}, {height} x {width}"


def std_drawing(std: Floats, rows: Sequence[str], columns: Sequence[str], scale: Floats, title: str) -> Drawing:
    """Heat map of standard deviations; rows that are alike are shown once."""
    if std.strides[0] == 0:
        std, rows = std[:1], ["all rows"]
    return heatmap(
        std,
        rows,
        columns,
        shade=_relative(std, scale),
        title=title,
        legend="colour: standard deviation as a share of the largest value possible",
        diverging=False,
        percent=True,
    )


def _part(result: Result, *, alike: bool = False) -> str:
    height, width = result.matrix.shape
    parts = []
    if shown_rows(height, width) < height and not alike:
        parts.append(f"{shown_rows(height, width)} of {height:,} rows")
    if width > MOST:
        parts.append(f"{MOST} of {width:,} columns")
    return ", the first " + " and ".join(parts) if parts else ""


def _relative(values: Floats, scale: Floats) -> Floats:
    shown = np.asarray(values)[:MOST, :MOST]
    return np.asarray(shown / np.broadcast_to(scale[:MOST, :MOST], shown.shape))


def _frame(drawings: Sequence[Drawing], title: str, *, inline: bool = False) -> str:
    parts, x = [], _MARGIN
    for drawing in drawings:
        parts.append(group(drawing.parts, transform=f"translate({x:.1f} {_MARGIN})"))
        x += drawing.width + 2 * _MARGIN
    height = max(drawing.height for drawing in drawings) + 2 * _MARGIN
    return picture(parts, x, height, title, inline=inline)
