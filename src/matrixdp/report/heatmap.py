"""Colours of a matrix, and a heat map with names, numbers where they fit, and a legend that names every colour.

What is certain is loud, and what may be noise alone fades.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from matrixdp.display import CERTAIN, Numbers, choose_decimals, format_number, label_cells, shorten
from matrixdp.report.stylesheet import DOUBTFUL, FADED, WEAKEST
from matrixdp.report.svg import Drawing, element, group, text
from matrixdp.types import Floats

CHANCE = 0.05  # that noise alone lifts any of the numbers that stand out
MAX_SIDE = 60  # rows and columns of a square matrix, and columns of any other, that a picture shows
_MAX_ROWS = 30  # rows of a matrix that is not square
_WORDS = {"positive": "orange: positive", "negative": "blue: negative", "count": "green: the larger, the stronger"}
_LABEL_LENGTH = 22  # characters
_RAMP = 120.0
_LETTER = 6.0  # mean width of a letter of the legend


def find_limit(numbers: int) -> float:
    """Error bars from zero from which on one of so many numbers stands out from noise (Bonferroni).

    Examples
    --------
    >>> round(find_limit(1), 2), round(find_limit(100), 2)
    (2.0, 3.48)
    """
    return max(CERTAIN, float(-ndtri(CHANCE / (2 * max(numbers, 1)))))


def count_different(value: Floats, noisy: NDArray[np.bool_]) -> int:
    """How many of the noisy entries are different numbers: of a symmetric matrix, those on one side of the diagonal."""
    if value.ndim == 2 and value.shape[0] == value.shape[1] and np.array_equal(value, value.T, equal_nan=True):
        noisy = np.triu(noisy)
    return int(noisy.sum())


@dataclass(frozen=True)
class LegendItem:
    """One entry: a 'ramp' of one or two hues, or a swatch that is 'weak', 'fixed' or 'hidden', and its words."""

    kind: str
    hues: tuple[str, ...]
    words: str
    strength: float = 1.0


@dataclass(frozen=True, eq=False)
class Shading:
    """Colours of the entries of a matrix, in arrays of shape (rows, columns).

    `hue` is 'positive', 'negative' or 'count'; 'fixed' for an entry without noise, 'hidden' for one that noise hides.
    `strength` is the share of the hue, from 0 to 1. A `weak` entry is within two error bars of zero; a `doubtful` one
    is further away, but not so far that it stands out among all entries. An entry of full colour is `limit`, in
    `percent` if it is a share of the largest value possible.
    """

    hue: NDArray[np.str_]
    strength: Floats
    weak: NDArray[np.bool_]
    doubtful: NDArray[np.bool_]
    limit: float
    percent: bool = False

    def attributes(self, height: int, width: int) -> list[list[str]]:
        """Attributes of the cells of an HTML table; none where noise hides an entry, or outside of the matrix."""
        found = [[""] * width for _ in range(height)]
        for (i, j), hue in np.ndenumerate(self.hue):
            share = "" if hue == "fixed" else f' style="--s:{100 * self.strength[i, j]:.0f}%"'
            mark = " weak" if self.weak[i, j] else " doubtful" if self.doubtful[i, j] else ""
            found[i][j] = "" if hue == "hidden" else f'class="{hue}{mark}"{share}'
        return found

    def list_legend(self, meaning: str) -> list[LegendItem]:
        """What each colour of the matrix means; `meaning` is what the colours show, such as "correlation"."""
        found, loud = [], self.hue[~self.weak]
        hues = tuple(hue for hue in ("negative", "positive", "count") if (loud == hue).any())
        if hues:
            limit = f"{format_number(100 * self.limit)}%" if self.percent else format_number(self.limit)
            limit = f"{self.limit:,.0f}" if not self.percent and 1e3 <= self.limit < 1e9 else limit
            words = ", ".join(_WORDS[hue] for hue in hues)
            words += f"; full colour at {'±' * (len(hues) > 1)}{limit} ({meaning})"
            found.append(LegendItem("ramp", hues, words))
        if self.doubtful.any():
            words = "light, number not bold: further from zero, but possible by chance among so many numbers"
            found.append(LegendItem("weak", (str(self.hue[self.doubtful][0]),), words, DOUBTFUL))
        if self.weak.any():
            words = "pale, number in grey: within two error bars of zero, may be noise alone"
            found.append(LegendItem("weak", (str(self.hue[self.weak][0]),), words, FADED))
        if (self.hue == "fixed").any():
            found.append(LegendItem("fixed", ("fixed",), "grey: no noise, known from the definition"))
        if (self.hue == "hidden").any():
            found.append(LegendItem("hidden", ("hidden",), "no number: hidden by noise"))
        return found


def shade_entries(value: Floats, std: Floats | None, *, shown: Floats | None = None, counts: bool = False) -> Shading:
    """Colours of a matrix with error bars, both of shape (rows, columns); nothing fades where these are unknown.

    The colours show the values themselves, or `shown`: shares of the largest value possible. Counts have one hue.

    Examples
    --------
    >>> shading = shade_entries(np.array([[1.0, -0.5, 0.1]]), np.array([[0.0, 0.1, 0.1]]))
    >>> shading.hue.tolist(), shading.weak.tolist(), shading.limit
    ([['fixed', 'negative', 'positive']], [[False, False, True]], 0.5)
    """
    percent, shown = shown is not None, value if shown is None else shown
    bars = np.zeros_like(value) if std is None else np.where(np.isfinite(std), std, 0.0)
    hidden = ~np.isfinite(value)
    fixed = np.zeros(value.shape, bool) if std is None else ~hidden & (np.asarray(std) == 0)
    with np.errstate(all="ignore"):
        weak = ~hidden & ~fixed & ((np.abs(value) < CERTAIN * bars) | (counts & (value <= 0) & (bars > 0)))
        limit = find_limit(count_different(value, ~hidden & (bars > 0)))
        doubtful = ~hidden & ~fixed & ~weak & (np.abs(value) < limit * bars)
        hue = np.where(counts, "count", np.where(value < 0, "negative", "positive"))
        pale = FADED * np.minimum(np.abs(np.nan_to_num(value)) / np.where(bars > 0, CERTAIN * bars, 1.0), 1.0)
    hue = np.where(hidden, "hidden", np.where(fixed, "fixed", hue))
    size = np.where(hidden | fixed, 0.0, np.abs(np.nan_to_num(shown)))
    full = float(size[~weak].max(initial=0.0)) or float(size.max(initial=0.0)) or 1.0
    full = min(full, 1.0) if percent else full
    strong = np.where(size > 0, WEAKEST + (1 - WEAKEST) * np.minimum(size / full, 1.0), 0.0)
    strong = np.where(doubtful, np.minimum(strong, DOUBTFUL), strong)
    strength = np.where(hidden | fixed, 0.0, np.where(weak, pale, strong))
    return Shading(hue, strength, weak, doubtful, full, percent)


@dataclass(frozen=True)
class _Layout:
    """Size of a cell, position of the first cell and font size of the labels, in pixels."""

    cell_width: float
    cell_height: float
    left: float
    top: float
    font_size: float


def draw_heatmap(
    numbers: Numbers, *, title: str, meaning: str, shown: Floats | None = None, counts: bool = False
) -> Drawing:
    """Heat map of a matrix; of a large one, its first rows and columns.

    An entry within two error bars of zero fades, and one without noise is grey. `shown` and `counts` are as for
    `shade_entries`; `meaning` says what the colours show, and without it there is no legend.
    """
    part = numbers.cut(count_shown_rows(len(numbers.rows), len(numbers.columns)), MAX_SIDE)
    height, width = part.value.shape
    layout = _make_layout(part.rows, part.columns, 40.0 if title else 10.0)
    share = None if shown is None else np.asarray(shown)[:height, :width]
    shading = shade_entries(part.value, part.std, shown=share, counts=counts)
    elements = _draw_labels(part.rows, part.columns, layout)
    if title:
        elements.append(text(0, 18, title, size=15, kind="text bold"))
    labels = label_cells(part, choose_decimals(part.value, part.std, counts=counts))
    elements += [_draw_cell(part, (i, j), layout, shading, labels[i][j]) for i in range(height) for j in range(width)]
    items = shading.list_legend(meaning) if meaning else []
    bottom = layout.top + layout.cell_height * height
    elements.append(_draw_legend(items, bottom + 18))
    overhang = layout.font_size * 0.62 * min(_LABEL_LENGTH, max(map(len, part.columns))) * 0.71
    right = layout.left + layout.cell_width * width + overhang
    needed = max(right, *(_RAMP + 12 + _LETTER * len(item.words) for item in items), 8.5 * len(title))
    return Drawing(tuple(elements), needed, bottom + 22 + 22 * len(items))


def count_shown_rows(height: int, width: int) -> int:
    """Number of rows of a matrix of shape (height, width) that a picture shows."""
    return min(height, MAX_SIDE if height == width else _MAX_ROWS)


def _make_layout(rows: Sequence[str], columns: Sequence[str], top: float) -> _Layout:
    counts = len(columns), len(rows)
    width, height = (58.0 if one <= 8 else 46.0 if one <= 12 else max(13.0, 560.0 / one) for one in counts)
    if len(rows) == len(columns) or len(rows) <= 12:
        height = min(height, width)
    size = min(13.0, max(9.5, min(width, height) * 0.62))
    row_length, column_length = (min(_LABEL_LENGTH, max(map(len, names))) for names in (rows, columns))
    above = top + column_length * size * 0.62 * 0.71 + size
    return _Layout(width, height, 14 + row_length * size * 0.62, above, size)


def _draw_labels(rows: Sequence[str], columns: Sequence[str], layout: _Layout) -> list[str]:
    elements = []
    for i, name in enumerate(_shorten_all(rows)):
        y = layout.top + layout.cell_height * (i + 0.5) + layout.font_size * 0.35
        elements.append(text(layout.left - 7, y, name, size=layout.font_size, text_anchor="end"))
    for j, name in enumerate(_shorten_all(columns)):
        x, y = layout.left + layout.cell_width * (j + 0.5), layout.top - 7
        elements.append(text(x, y, name, size=layout.font_size, transform=f"rotate(-45 {x:.2f} {y:.2f})"))
    return elements


def _shorten_all(names: Sequence[str]) -> list[str]:
    return [name if len(name) <= _LABEL_LENGTH else shorten(name, _LABEL_LENGTH) for name in names]


def _draw_cell(part: Numbers, place: tuple[int, int], layout: _Layout, shading: Shading, label: tuple[str, str]) -> str:
    """A rectangle with a tooltip and, where it fits, the number; `label` has the number and the tooltip's words."""
    (i, j), (number, words), hue = place, label, str(shading.hue[place])
    width, height = layout.cell_width, layout.cell_height
    x, y = layout.left + width * j, layout.top + height * i
    tooltip = element("title", escape(f"{part.rows[i]} × {part.columns[j]}: {words}"))
    size: dict[str, Any] = {"width": width - 1.5, "height": height - 1.5, "rx": 1.5}
    if hue not in ("fixed", "hidden"):
        size["fill_opacity"] = float(shading.strength[place])
    found = element("rect", tooltip, x=x + 0.75, y=y + 0.75, class_=f"p-{hue}", **size)
    if width < 40 or height < 16:
        return found
    kind = "text" if shading.doubtful[place] else "text bold"
    kind = "soft" if shading.weak[place] or hue in ("fixed", "hidden") else kind
    small = min(12.5, 0.62 * height, (width - 6) / (0.6 * max(len(number), 4)))
    middle = {"text_anchor": "middle", "pointer_events": "none", "kind": kind}
    return found + text(x + width / 2, y + height / 2 + 0.36 * small, number, size=small, **middle)


def _draw_legend(items: Sequence[LegendItem], y: float) -> str:
    """One line for each colour: a swatch or a ramp, and what it means."""
    elements = []
    for k, item in enumerate(items):
        box: dict[str, Any] = {"y": y + 22 * k, "height": 13}
        if item.kind == "ramp":
            elements += _draw_ramp(item.hues, box)
        else:
            style: dict[str, Any] = {"fill_opacity": item.strength} if item.kind == "weak" else {}
            box = {"x": _RAMP - 24, "y": y + 22 * k, "width": 24, "height": 13}
            elements.append(element("rect", **box, class_=f"p-{item.hues[0]}", **style))
            elements.append(element("rect", **box, class_="p-frame"))
        elements.append(text(_RAMP + 10, y + 22 * k + 11, item.words, size=11.5, kind="soft"))
    return group(elements)


def _draw_ramp(hues: Sequence[str], box: dict[str, Any]) -> list[str]:
    """Steps from full colour to none and to full colour of the other hue, or from none to full."""
    steps, found = 12, []
    width = _RAMP / (steps * len(hues))
    for side, hue in enumerate(hues):
        for k in range(steps):
            place = width * (steps - 1 - k if len(hues) == 2 and side == 0 else side * steps + k)
            bar = {"y": box["y"], "width": width + 0.3, "height": box["height"], "class_": f"p-{hue}"}
            found.append(element("rect", x=place, fill_opacity=(k + 1) / steps, **bar))
    return found
