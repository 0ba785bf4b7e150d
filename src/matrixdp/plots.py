"""Plots with matplotlib: matrices in which uncertain entries fade, error bars, noise ellipses and curves.

Every function draws into `ax`, or into a new figure, and returns the axes.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from matrixdp.display import CERTAIN, Numbers, format_cells, make_visible, shorten
from matrixdp.errors import ParameterError, import_extra
from matrixdp.intervals import Pair
from matrixdp.types import Floats

MOST_SIDE = 60  # rows and columns of a matrix that a plot shows
_NUMBERS = 12  # rows and columns up to which numbers are written into the entries
_LABEL_LENGTH = 24
_PALEST = 0.12  # share of its colour that an entry of pure noise keeps
BLUE, ORANGE, GREY = "#2b8cbe", "#d9572b", "#9aa0aa"


def load_pyplot() -> Any:
    """The module matplotlib.pyplot, or a `MissingExtraError`."""
    import_extra("matplotlib", "plots need matplotlib", "plot")
    return import_module("matplotlib.pyplot")


def open_axes(ax: Any, width: float = 5.0, height: float = 4.0) -> Any:
    """The given axes, or those of a new figure of this size in inches."""
    if ax is not None:
        return ax
    return load_pyplot().subplots(figsize=(width, height), layout="constrained")[1]


def plot_matrix(
    numbers: Numbers,
    *,
    shade: Floats | None = None,
    limit: float | None = None,
    legend: str = "",
    title: str = "",
    ax: Any = None,
) -> Any:
    """Heat map in which entries within two error bars of zero fade; entries without noise and hidden ones are grey.

    The colours show `shade`, of the shape of the numbers, or else the values, up to `limit`, by default the largest one
    that is not grey; the legend says what they mean.
    """
    part = numbers.cut(MOST_SIDE, MOST_SIDE)
    value, bars, rows, columns = np.asarray(part.value, np.float64), part.bars, part.rows, part.columns
    known = part.std is not None
    shade = value if shade is None else np.asarray(shade[:MOST_SIDE, :MOST_SIDE])
    pyplot, count = load_pyplot(), max(len(rows), len(columns))
    cell = 0.7 if count <= _NUMBERS else max(0.16, 8.0 / count)
    ax = open_axes(ax, 2.6 + cell * len(columns), max(3.2, 1.6 + cell * len(rows)))
    grey = ~np.isfinite(value) | (known & ~(bars > 0))
    coloured = shade[~grey]
    limit = limit or float(np.abs(coloured).max(initial=0.0)) or 1.0
    negative = bool((coloured < 0).any())
    colours = pyplot.get_cmap("RdBu_r" if negative else "GnBu")
    norm = pyplot.Normalize(-limit if negative else 0.0, limit)
    with np.errstate(all="ignore"):  # pale below two error bars, in proportion
        alpha = np.clip(np.where(bars > 0, np.abs(value) / (CERTAIN * bars), 1.0), _PALEST, 1.0)[..., None]
    painted = colours(norm(np.nan_to_num(shade)))[..., :3] * alpha + (1 - alpha)
    painted[grey] = 0.85
    ax.imshow(painted, aspect="auto")
    ax.set_xticks(np.arange(len(columns)), [clean_label(name) for name in columns], rotation=45, ha="right")
    ax.set_yticks(np.arange(len(rows)), [clean_label(name) for name in rows])
    ax.tick_params(length=0)
    if count <= _NUMBERS:
        _write_numbers(ax, part, painted)
    mapped = pyplot.cm.ScalarMappable(norm=norm, cmap=colours)
    notes = ["pale: may be noise alone"] * known + ["grey: no noise, or hidden by it"] * bool(grey.any())
    ax.figure.colorbar(mapped, ax=ax).set_label(legend, fontsize="small")
    ax.set_xlabel("; ".join(notes), fontsize="small", loc="right")
    ax.set_title(title, loc="left")
    return ax


def plot_bars(value: Floats, ends: Pair, names: Sequence[str], *, title: str = "", ax: Any = None) -> Any:
    """Numbers as dots, one a line, with bars between the ends of their intervals."""
    value, low, high = (np.asarray(one)[:MOST_SIDE] for one in (value, *ends))
    names = names[:MOST_SIDE]
    ax = open_axes(ax, 5.0, 1.0 + 0.3 * len(names))
    places = np.arange(len(names))
    ax.errorbar(value, places, xerr=np.stack([value - low, high - value]), fmt="o", color=BLUE, capsize=3)
    ax.set_yticks(places, [clean_label(name) for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
    if np.nanmin(np.append(low, 0.0)) < 0 < np.nanmax(np.append(high, 0.0)):
        ax.axvline(0.0, color=GREY, linewidth=0.8, zorder=0)
    ax.set_title(title, loc="left")
    return ax


def plot_panels(numbers: Numbers, *, level: float = 0.95, axes: Any = None) -> Any:
    """One panel of error bars for each column, side by side; returns the axes as an array of shape (columns,)."""
    rows, columns = numbers.rows, numbers.columns
    low, high = numbers.interval(level)
    words = f"bars: {level:.0%} of the privacy noise" + ", or what is plausible" * bool(numbers.plausible.any())
    if axes is None:
        size = (1.6 + 2.6 * len(columns), 1.1 + 0.3 * min(len(rows), MOST_SIDE))
        axes = load_pyplot().subplots(1, len(columns), figsize=size, sharey=True, squeeze=False, layout="constrained")
        axes = axes[1][0]
    axes = np.atleast_1d(axes)
    if axes.shape != (len(columns),):
        raise ParameterError(f"ax must be {len(columns)} axes, one for each column, got {axes.size} instead.")
    for j, name in enumerate(columns):
        plot_bars(numbers.value[:, j], (low[:, j], high[:, j]), rows, title=clean_label(name), ax=axes[j])
        axes[j].set_xlabel(words)
    return axes


def plot_outlines(outlines: Mapping[str, Floats], names: tuple[str, str], *, title: str = "", ax: Any = None) -> Any:
    """Closed curves of shape (2, points) with their names; the first is drawn solid and the others dashed."""
    ax = open_axes(ax, 4.8, 4.8)
    inks = (BLUE, ORANGE, GREY)
    for k, (name, points) in enumerate(outlines.items()):
        style = {"color": inks[k % len(inks)], "linestyle": "--" if k else "-", "label": name}
        ax.plot(*points, **style)
        ax.fill(*points, color=style["color"], alpha=0.1)
    ax.set_xlabel(clean_label(names[0]))
    ax.set_ylabel(clean_label(names[1]))
    ax.set_title(title, loc="left", fontsize="medium")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), frameon=False)
    return ax


def clean_label(name: str) -> str:
    """A name as a label: short, printable, and not a formula of matplotlib."""
    return make_visible(shorten(name, _LABEL_LENGTH)).replace("$", r"\$")


def _write_numbers(ax: Any, part: Numbers, painted: Floats) -> None:
    cells, weak = format_cells(part), part.weak
    for i, j in np.ndindex(part.value.shape):
        dark = float(painted[i, j] @ (0.299, 0.587, 0.114)) < 0.55
        ink = "#ffffff" if dark else "#888888" if weak[i, j] else "#1c2330"
        words = cells[i][j][0] if np.isfinite(part.value[i, j]) else "–"
        ax.text(j, i, words, ha="center", va="center", color=ink, fontsize="small")
