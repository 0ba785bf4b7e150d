"""A design in words: a dozen lines of text, one line, HTML; and its noise as a plot, or an ellipse for two features."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from matrixdp.display import Numbers, render_card, render_facts
from matrixdp.errors import ParameterError, show
from matrixdp.noise.matrix import adjusted_covariance
from matrixdp.noise.structure import EdgeNoise, Squares
from matrixdp.plots import MOST_SIDE, plot_matrix, plot_outlines
from matrixdp.queries import MatrixQuery, Moments
from matrixdp.types import Floats

if TYPE_CHECKING:
    from matrixdp.design.design import Design

REACH = math.sqrt(-2 * math.log(0.05))  # radius of the disc that holds 95 % of a standard normal pair
_ROWS = 8
_MOST_ENTRIES = 1_000_000  # of an answer whose noise is computed for one line


def summarise(design: Design) -> str:
    """The answer, its guarantee and its noise in words; looks at this design alone."""
    return "\n".join([design.query.subject, *_lines(list_facts(design)), *_table(design)])


def explain(design: Design) -> str:
    """The design in words, compared with isotropic noise and with the other calibrations.

    The comparisons make further designs; `str(design)` is the same text without them.
    """
    others = [(name, rmse) for name, rmse in design.alternatives().items() if name != design.calibration]
    ratios = ", ".join(f"{rmse / design.rmse:.3g} with {name}" for name, rmse in others)
    calibration = design.calibration + (f"; times this noise: {ratios}" if ratios else "")
    facts = {**dict(list_facts(design)), "calibration": calibration}
    last = [("gain", _gain(design)), ("limit", compare_to_limit(design))]
    return "\n".join([design.query.subject, *_lines(facts.items()), *_table(design, compare=True), *_lines(last)])


def compare_to_limit(design: Design) -> str:
    """The total squared error, in the query's units, beside that of the best Gaussian noise, in words."""
    if design.excess is None:
        return "not compared: the least error that Gaussian noise can have is unknown"
    if design.excess < 1.0005:
        return "the least total squared error that Gaussian noise of any covariance can have"
    alike = "" if design.allocation.rule == "uniform" else ", if all entries count alike"
    return f"at most {design.excess:.3g} times the least total squared error of Gaussian noise of any covariance{alike}"


def describe_in_a_line(design: Design) -> str:
    """Query, guarantee, noise and unit on one line."""
    query, privacy = design.query, design.privacy
    noise = f", noise std {_range(design.std[design.std > 0])}" if np.prod(query.shape) <= _MOST_ENTRIES else ""
    return (
        f"<Design of {query.summary}, ({privacy.epsilon:g}, {privacy.delta:.3g})-DP{noise}, protects "
        f"{query.protects}; print shows more>"
    )


def list_facts(design: Design) -> list[tuple[str, str]]:
    """Facts about a design, each with its name."""
    query, privacy, total, tight = design.query, design.privacy, design.query.total, "exactly"
    if not design.exact:
        known = f" (a known pair of neighbours attains {design.attained / design.distance:.2%} of it)"
        tight = f"an upper bound{known if design.attained else ''}"
    return [
        (
            "guarantee",
            f"({privacy.epsilon:g}, {privacy.delta:.3g})-DP, {query.neighbours} neighbours, protects {query.protects}",
        ),
        (
            "spends",
            f"mu {design.distance:.6g} of {design.mu:.6g}: epsilon {design.epsilon:.4g} at delta {privacy.delta:.3g}, "
            f"{tight}",
        ),
        ("calibration", design.calibration),
        (
            "noise",
            f"std {_range(design.std[design.std > 0])}{', after symmetrisation' if query.symmetric else ''}, root mean "
            f"square {design.rmse:.4g}; {design.relative_error:.2g} of the largest value possible",
        ),
        *([] if total is None else [("total", f"public: noisy entries are adjusted to sum to {total:,.12g}")]),
        ("directions", f"{_directions(design)}, allocation {design.allocation.rule}"),
    ]


def _lines(facts: Iterable[tuple[str, str]]) -> list[str]:
    return [f"  {name:<12} {words}" for name, words in facts]


def _range(values: Floats) -> str:
    low, high = float(values.min()), float(values.max())
    return f"{low:.4g}" if f"{low:.4g}" == f"{high:.4g}" else f"{low:.4g} to {high:.4g}"


def _directions(design: Design) -> str:
    if design.flat:
        return "one covariance for all entries"
    if isinstance(design.structure, EdgeNoise):
        return "none: the noise is on edges, and its rows sum to zero"
    if design.allocation.chooses_directions:
        return "the kernel's own"
    return "standard basis" if design.directions is None else "given basis"


def _side(design: Design) -> tuple[Floats, Floats]:
    """Variance along each direction, and the standard deviation of the noise there (of a symmetric diagonal entry)."""
    side = design.rowcov if design.query.side == "rows" else design.colcov
    variances = side.variances[-design.query.features :]
    if isinstance(design.structure, Squares):
        return variances, np.sqrt(design.structure.direction_variances(side))
    return variances, variances if design.query.side == "both" else np.sqrt(variances)


def _table(design: Design, *, compare: bool = False) -> list[str]:
    """Share and noise of each direction; of many, those with the largest and the smallest shares."""
    if design.flat or not design.directional:
        return []
    variances, std = _side(design)
    ratios = std / _side(design.isotropic)[1] if compare else None
    loss = design.query.extent(design.directions) ** 2 / variances
    shares = loss / loss.sum()
    chosen = list(range(std.size))
    if std.size > _ROWS:
        order = np.argsort(-shares.round(6), kind="stable").tolist()
        chosen = sorted([*order[: _ROWS - 3], *order[-3:]])
    names = design.query.names if design.directions is None else None
    rows = [
        f"    {names[i] if names else f'direction {i}':<24.24} {shares[i]:>6.1%} of the privacy loss, noise std "
        f"{std[i]:.4g}" + ("" if ratios is None else f", {ratios[i]:.3g} times isotropic")
        for i in chosen
    ]
    return rows + ([f"    ... and {std.size - _ROWS} between them"] if std.size > _ROWS else [])


def _gain(design: Design) -> str:
    if not design.directional and design.calibration == "exact" and design.structure is None:
        return "none: the noise is isotropic" + (
            ", and the changes form a ball, so that no other has less"
            if design.query.sensitivity.ball
            else "; the changes do not form a ball, so an allocation can favour some of them"
        )
    ratio = np.where(design.std > 0, design.std, np.nan) / design.isotropic.std
    over_all = f"{1 / design.gain:.3g} times isotropic noise over all entries, relative to their range"
    if design.query.sensitivity.ball:
        return f"none possible: the changes form a ball, so no directional noise beats isotropic noise; {over_all}"
    return f"{over_all}; {_range(ratio[~np.isnan(ratio)])} times entry by entry"


def render_design(design: Design) -> str:
    """Guarantee, price and noise, with a table of the predicted standard deviations."""
    table = _named_std(design).render("Standard deviation of the noise")
    return render_card(design.query.subject, render_facts(list_facts(design)), table)


def plot_design(design: Design, pair: tuple[str | int, str | int] | None = None, *, ax: Any = None) -> Any:
    """Heat map of the predicted standard deviations; returns matplotlib axes.

    Parameters
    ----------
    pair : two names or numbers of features, optional
        Draw ellipses in their place that contain 95 % of the noise in these features, for this design and for i.i.d.
        noise with the same guarantee.
    ax : matplotlib axes, optional
    """
    if pair is None:
        shown = _named_std(design)
        scale = np.broadcast_to(design.query.magnitude, design.query.shape)[: len(shown.rows)]
        shade = shown.value[:MOST_SIDE, :MOST_SIDE] / scale[:MOST_SIDE, :MOST_SIDE]
        return plot_matrix(shown, shade=shade, legend="share of the largest value possible", title="noise std", ax=ax)
    names = feature_names(design.query)
    if not isinstance(pair, tuple | list) or len(pair) != 2 or pair[0] == pair[1]:
        raise ParameterError("pair must be two different features, by name or number.")
    first, second = (_index(names, feature) for feature in pair)
    outlines = {
        "this design": outline_ellipse(pair_covariance(design, first, second)),
        "i.i.d. noise, same guarantee": outline_ellipse(pair_covariance(design.isotropic, first, second)),
    }
    title = f"95 % of the noise in {describe_numbers(design) or 'two features'}".removesuffix(" of ")
    return plot_outlines(outlines, (names[first], names[second]), title=title, ax=ax)


def _named_std(design: Design) -> Numbers:
    """Standard deviations with names; one row where all rows are alike."""
    std, (rows, columns) = design.distinct_std, design.query.entry_names
    return Numbers(std, None, rows if len(std) == len(rows) else ("each row",), columns)


def _index(names: tuple[str, ...], feature: Any) -> int:
    if isinstance(feature, str) and feature in names:
        return names.index(feature)
    if isinstance(feature, int) and not isinstance(feature, bool) and 0 <= feature < len(names):
        return feature
    known = ", ".join(names[:20])
    raise ParameterError(
        f"pair must be features by name ({known}) or by number from 0 to {len(names) - 1}, got {show(feature)} instead."
    )


def pair_covariance(design: Design, i: int, j: int) -> Floats:
    """Covariance of the noise in two released numbers, one for each of two features, of shape (2, 2).

    The numbers are the means for moments, the diagonal entries for other symmetric answers, and otherwise the entries
    of one row or column. Symmetric noise has ``cov(Z_ij, Z_kl) = (C_ik C_jl + C_il C_jk)/2``.
    """
    if design.flat:
        raise ParameterError("a noise ellipse needs a design with directions; this one has a covariance of its own.")
    side, other = (design.colcov, design.rowcov) if design.query.side != "rows" else (design.rowcov, design.colcov)
    matrix = side.matrix()
    if isinstance(design.query, Moments):
        pair = np.array([i + 1, j + 1])
        return np.asarray(matrix[0, 0] * matrix[np.ix_(pair, pair)] / 2)
    if design.query.total is not None:
        return adjusted_covariance(design.noise, 0, [i, j])
    if isinstance(design.structure, Squares | EdgeNoise):
        return design.structure.diagonal_covariance(side)[np.ix_([i, j], [i, j])]
    block = matrix[np.ix_([i, j], [i, j])]
    return np.asarray(np.square(block) if design.query.symmetric else block * other.variances[0])


def outline_ellipse(covariance: Floats) -> Floats:
    """Points of the curve that contains 95 % of noise with this covariance, of shape (2, 121)."""
    values, vectors = np.linalg.eigh(covariance)
    angles = np.linspace(0, 2 * np.pi, 121)
    circle = np.stack([np.cos(angles), np.sin(angles)])
    return np.asarray(REACH * (vectors * np.sqrt(np.maximum(values, 0.0))) @ circle)


def describe_numbers(design: Design) -> str:
    """The numbers of two features whose noise `pair_covariance` describes, to go before the names of the features."""
    if isinstance(design.query, Moments):
        return "the means of "
    return "the diagonal entries of " if design.query.symmetric else ""


def feature_names(query: MatrixQuery) -> tuple[str, ...]:
    """Names of the features of a query, as they are in its answer."""
    rows, columns = query.entry_names
    return rows if query.side == "rows" else columns[-query.features :]
