"""A design as HTML, and its noise as a plot."""

from __future__ import annotations

from typing import Any

import numpy as np

from matrixdp.design.design import Design
from matrixdp.design.explain import describe_subject, list_facts
from matrixdp.design.noise_ellipse import describe_numbers, feature_names, outline_ellipse, pair_covariance
from matrixdp.display import Numbers, render_card, render_facts, render_numbers
from matrixdp.errors import ParameterError, show
from matrixdp.plots import MOST_SIDE, plot_matrix, plot_outlines


def render_design(design: Design) -> str:
    """Guarantee, price and noise, with a table of the predicted standard deviations."""
    table = render_numbers(_named_std(design), "Standard deviation of the noise")
    return render_card(describe_subject(design), render_facts(list_facts(design)), table)


def plot_design(design: Design, pair: tuple[str | int, str | int] | None = None, *, ax: Any = None) -> Any:
    """Heat map of the predicted standard deviations, or the noise ellipses of two features; `Design.plot` has more."""
    if pair is None:
        shown = _named_std(design)
        scale = np.broadcast_to(design.query.magnitude, design.query.shape)[: len(shown.rows)]
        shade = shown.value[:MOST_SIDE, :MOST_SIDE] / scale[:MOST_SIDE, :MOST_SIDE]
        return plot_matrix(shown, shade=shade, legend="share of the largest value possible", title="noise std", ax=ax)
    names = feature_names(design.query)
    first, second = (_index(names, feature) for feature in _check_pair(pair))
    outlines = {
        "this design": outline_ellipse(pair_covariance(design, first, second)),
        "i.i.d. noise, same guarantee": outline_ellipse(pair_covariance(design.isotropic, first, second)),
    }
    title = f"95 % of the noise in {describe_numbers(design) or 'two features'}".removesuffix(" of ")
    return plot_outlines(outlines, (names[first], names[second]), title=title, ax=ax)


def _named_std(design: Design) -> Numbers:
    """Standard deviations with names; one row where all rows are alike."""
    rows, columns = design.query.entry_names
    if len(rows) > 1 and design.std.strides[0] == 0:
        return Numbers(design.std[:1], None, ("each row",), columns)
    return Numbers(design.std, None, rows, columns)


def _check_pair(pair: Any) -> tuple[Any, Any]:
    if not isinstance(pair, tuple | list) or len(pair) != 2 or pair[0] == pair[1]:
        raise ParameterError("pair must be two different features, by name or number.")
    return pair[0], pair[1]


def _index(names: tuple[str, ...], feature: Any) -> int:
    if isinstance(feature, str) and feature in names:
        return names.index(feature)
    if isinstance(feature, int) and not isinstance(feature, bool) and 0 <= feature < len(names):
        return feature
    known = ", ".join(names[:20])
    raise ParameterError(
        f"pair must be features by name ({known}) or by number from 0 to {len(names) - 1}, got {show(feature)} instead."
    )
