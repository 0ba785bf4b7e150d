"""Pictures of matrices as SVG: heat maps of what was released, of its error bars, and of the noise of a design.

What is certain is loud, and what may be noise alone fades; a legend names every colour.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from matrixdp.answers.estimate import relate_to_diagonal
from matrixdp.design import Design
from matrixdp.design.explain import describe_numbers, feature_names, outline_ellipse, pair_covariance
from matrixdp.display import (
    CERTAIN,
    Numbers,
    choose_decimals,
    find_firm,
    find_weak,
    format_cells,
    format_number,
    has_equal_rows,
    say_parts,
    shorten,
)
from matrixdp.report.answers import Answer
from matrixdp.report.svg import DOUBTFUL, FADED, WEAKEST, Curve, Drawing, Scale, draw_curves, element, make_image, text
from matrixdp.types import Floats

MAX_SIDE = 60  # rows and columns of a square matrix, and columns of any other, that a picture shows
_MAX_ROWS = 30  # rows of a matrix that is not square
_WORDS = {"positive": "orange: positive", "negative": "blue: negative", "count": "green: the larger, the stronger"}
_LABEL_LENGTH = 22  # characters
_RAMP = 120.0
_LETTER = 6.0  # mean width of a letter of the legend
RELATIVE = "share of the largest value that an entry can have"
WITHIN = "share of the largest value that its two variances allow"


class LegendItem(NamedTuple):
    """A swatch of one hue or, without a strength, a ramp of one or two hues to full colour; and its words."""

    hues: tuple[str, ...]
    words: str
    strength: float | None = None


@dataclass(frozen=True, eq=False)
class Shading:
    """Colours of the entries of a matrix, in arrays of shape (rows, columns)."""

    hue: NDArray[np.str_]  # 'positive', 'negative', 'count'; 'fixed' without noise, 'hidden' where noise hides it
    strength: Floats  # share of the hue, from 0 to 1
    weak: NDArray[np.bool_]  # within two error bars of zero
    doubtful: NDArray[np.bool_]  # further away, but not so far that it stands out among all entries
    limit: float  # an entry of full colour
    percent: bool = False  # it is a share of the largest value possible

    def attributes(self, height: int, width: int) -> list[list[str]]:
        """Attributes of the cells of an HTML table; none where noise hides an entry, or outside of the matrix."""
        found = [[""] * width for _ in range(height)]
        for (i, j), hue in np.ndenumerate(self.hue):
            share = "" if hue == "fixed" else f" s{4 * round(25 * float(self.strength[i, j]))}"  # as in ``answers.css``
            mark = " weak" if self.weak[i, j] else " doubtful" if self.doubtful[i, j] else ""
            found[i][j] = "" if hue == "hidden" else f'class="{hue}{mark}{share}"'
        return found

    def list_legend(self, meaning: str) -> list[LegendItem]:
        """What each colour of the matrix means; `meaning` is what the colours show, such as "correlation"."""
        loud = self.hue[~self.weak]
        hues = tuple(hue for hue in ("negative", "positive", "count") if (loud == hue).any())
        limit = f"{self.limit:,.0f}" if 1e3 <= self.limit < 1e9 else format_number(self.limit)
        limit = f"{format_number(100 * self.limit)}%" if self.percent else limit
        words = ", ".join(_WORDS[hue] for hue in hues)
        words += f"; full colour at {'±' * (len(hues) > 1)}{limit} ({meaning})"
        swatches = (
            (
                self.doubtful,
                "light, number not bold: further from zero, but possible by chance among so many numbers",
                DOUBTFUL,
            ),
            (self.weak, "pale, number in grey: within two error bars of zero, may be noise alone", FADED),
            (self.hue == "fixed", "grey: no noise, known from the definition", 1.0),
            (self.hue == "hidden", "no colour: hidden by noise; the brackets say what it may be", 1.0),
        )
        return [
            *([LegendItem(hues, words)] if hues else []),
            *(LegendItem((str(self.hue[at][0]),), words, strength) for at, words, strength in swatches if at.any()),
        ]


def shade_entries(value: Floats, std: Floats | None, *, shown: Floats | None = None, counts: bool = False) -> Shading:
    """Colours of a matrix with error bars, both of shape (rows, columns); nothing fades where these are unknown.

    The colours show the values themselves, or `shown`: shares of the largest value possible. Counts have one hue.
    """
    percent, shown = shown is not None, value if shown is None else shown
    bars = np.zeros_like(value) if std is None else np.where(np.isfinite(std), std, 0.0)
    hidden = ~np.isfinite(value) if std is None else ~np.isfinite(value + std)
    fixed = np.zeros(value.shape, bool) if std is None else ~hidden & (np.asarray(std) == 0)
    with np.errstate(all="ignore"):
        weak = ~hidden & ~fixed & (find_weak(value, bars) | (counts & (value <= 0) & (bars > 0)))
        noisy = ~hidden & (bars > 0)
        if value.shape[0] == value.shape[1] and np.array_equal(value, value.T, equal_nan=True):
            noisy = np.triu(noisy)  # of a symmetric matrix, one side of the diagonal has different numbers
        firm = find_firm(value, bars, int(noisy.sum()))
        doubtful = ~hidden & ~weak & ~firm & (bars > 0)
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


class Look(NamedTuple):
    """How colours show a matrix."""

    meaning: str  # what they show
    shown: Floats | None = None  # shares of full colour, of the shape of the matrix, in place of the values
    counts: bool = False  # one hue
    plain_rows: int = 0  # the last rows, without colours


def draw_heatmap(numbers: Numbers, look: Look, title: str) -> Drawing:
    """Heat map of a matrix; of a large one, its first rows and columns."""
    part = cut_shown(numbers)
    height, width = part.value.shape
    grid, letters = _make_grid(part, 40.0 if title else 10.0)
    share = None if look.shown is None else look.shown[:height, :width]
    shading = shade_entries(part.value, part.std, shown=share, counts=look.counts)
    elements = []
    for i, name in enumerate(part.rows):
        y = grid.top + grid.height * (i + 0.5) + grid.size * 0.35
        elements.append(text(grid.left - 7, y, shorten(name, _LABEL_LENGTH), size=grid.size, text_anchor="end"))
    for j, name in enumerate(part.columns):
        x, y = grid.left + grid.width * (j + 0.5), grid.top - 7
        turned = f"rotate(-45 {x:.2f} {y:.2f})"
        elements.append(text(x, y, shorten(name, _LABEL_LENGTH), size=grid.size, transform=turned))
    elements += [text(0, 18, title, size=15, kind="text bold")] if title else []
    places = [choose_decimals(part.value, part.std, counts=look.counts)] * width
    cells = format_cells(part, places, digits=None, commas=True)
    for i, j in np.ndindex(height, width):
        elements.append(_draw_cell(part, (i, j), grid, shading, *cells[i][j]))
    items = shading.list_legend(look.meaning)
    bottom = grid.top + grid.height * height
    elements += _draw_legend(items, bottom + 18)
    right = grid.left + grid.width * width + grid.size * 0.44 * letters
    needed = max(right, *(_RAMP + 12 + _LETTER * len(item.words) for item in items), 8.5 * len(title))
    return Drawing(tuple(elements), needed, bottom + 22 + 22 * len(items))


def cut_shown(numbers: Numbers) -> Numbers:
    """The rows and columns of a matrix that a picture shows."""
    height, width = numbers.value.shape
    return numbers.cut(min(height, MAX_SIDE if height == width else _MAX_ROWS), MAX_SIDE)


class _Grid(NamedTuple):
    """Size of a cell, position of the first cell and font size of the labels, in pixels."""

    width: float
    height: float
    left: float
    top: float
    size: float


def _make_grid(part: Numbers, top: float) -> tuple[_Grid, int]:
    """The cells of a heat map below `top`, and the letters of the longest label above them."""
    rows, columns = part.value.shape
    height, width = (58.0 if one <= 8 else 46.0 if one <= 12 else max(13.0, 560.0 / one) for one in (rows, columns))
    if rows == columns or rows <= 12:
        height = min(height, width)
    size = min(13.0, max(9.5, min(width, height) * 0.62))
    beside, above = (min(_LABEL_LENGTH, max(map(len, names))) for names in (part.rows, part.columns))
    return _Grid(width, height, 14 + beside * size * 0.62, top + above * size * 0.44 + size, size), above


def _draw_cell(part: Numbers, place: tuple[int, int], grid: _Grid, shading: Shading, number: str, bar: str) -> str:
    """A rectangle with a tooltip and, where it fits, the number."""
    (i, j), hue = place, str(shading.hue[place])
    x, y = grid.left + grid.width * j, grid.top + grid.height * i
    words = " ".join(filter(None, (number, bar)))
    tooltip = element("title", escape(f"{part.rows[i]} × {part.columns[j]}: {words}"))
    box: dict[str, Any] = {"width": grid.width - 1.5, "height": grid.height - 1.5, "rx": 1.5}
    plain = hue in ("fixed", "hidden")
    if not plain:
        box["fill_opacity"] = float(shading.strength[place])
    found = element("rect", tooltip, x=x + 0.75, y=y + 0.75, class_=f"p-{hue}", **box)
    if grid.width < 40 or grid.height < 16:
        return found
    number = number if np.isfinite(part.value[place]) else "–"
    kind = "soft" if plain or shading.weak[place] else "text" if shading.doubtful[place] else "text bold"
    small = min(12.5, 0.62 * grid.height, (grid.width - 6) / (0.6 * max(len(number), 4)))
    middle = {"text_anchor": "middle", "pointer_events": "none", "kind": kind}
    return found + text(x + grid.width / 2, y + grid.height / 2 + 0.36 * small, number, size=small, **middle)


def _draw_legend(items: Sequence[LegendItem], top: float) -> list[str]:
    """One line for each colour: a swatch or a ramp, and what it means."""
    elements = []
    for k, item in enumerate(items):
        y = top + 22 * k
        if item.strength is None:  # from full colour to none and to full colour of the other hue, or from none to full
            ramp = [(item.hues[-1], step / 12) for step in range(1, 13)]
            ramp = [*((item.hues[0], share) for _, share in reversed(ramp)), *ramp] if len(item.hues) == 2 else ramp
            width = _RAMP / len(ramp)
            for step, (hue, share) in enumerate(ramp):
                box = {"x": width * step, "y": y, "width": width + 0.3, "height": 13}
                elements.append(element("rect", fill_opacity=share, class_=f"p-{hue}", **box))
        else:
            box = {"x": _RAMP - 24, "y": y, "width": 24, "height": 13}
            elements.append(element("rect", **box, class_=f"p-{item.hues[0]}", fill_opacity=item.strength))
            elements.append(element("rect", **box, class_="p-frame"))
        elements.append(text(_RAMP + 10, y + 11, item.words, size=11.5, kind="soft"))
    return elements


# Complete pictures


def choose_look(answer: Answer, counted: str = "records") -> Look | None:
    """How colours show the numbers of an answer; None for other tables than matrices. `counted` is what is counted."""
    value = answer.estimate.value
    match answer.name:
        case "correlation":
            return Look("correlation")
        case "components":
            return Look("loading", plain_rows=1)
        case "covariance":
            return Look(WITHIN, relate_to_diagonal(value, answer.estimate.std)[0])
        case "table" | "counts":
            return Look(f"number of {counted}", counts=True)
        case "matrix":
            return Look(RELATIVE, None if answer.scale is None else value / answer.scale)
    return None


def draw_matrix(answer: Answer, description: str = "", counted: str = "records", *, inline: bool = False) -> str:
    """Heat map of the matrix that an answer is, as an image.

    A screen reader says the description besides the title; an `inline` image is for an HTML page, which has the title.
    """
    title = answer.title + describe_part(answer.estimate)
    drawing = draw_heatmap(answer.estimate, choose_look(answer, counted) or Look("value"), "" if inline else title)
    return make_image([drawing], title, description, inline=inline)


def draw_design(design: Design, pair: tuple[int, int] | None = None) -> str:
    """Heat map of the standard deviations that a design predicts, beside the noise ellipse of a `pair` of features."""
    std, (rows, columns), title = design.std, design.query.entry_names, "Predicted standard deviations"
    low, high = (format_number(float(end)) for end in (std.min(), std.max()))
    if len(std) > 1 and has_equal_rows(std):
        std, rows = std[:1], ("all rows",)
    bars, shown = Numbers(std, None, rows, columns), std / np.asarray(design.query.magnitude)[: len(std)]
    title += describe_part(bars)
    drawing = draw_heatmap(bars, Look(f"as a {RELATIVE}", shown, counts=True), title)
    beside = [] if pair is None else [_draw_ellipse(design, *pair)]
    return make_image([*beside, drawing], title, f"Standard deviations from {low} to {high}.")


def _draw_ellipse(design: Design, first: int, second: int) -> Drawing:
    """Noise of a design in two features, beside i.i.d. noise with the same guarantee."""
    names = feature_names(design.query)
    ours, other = (outline_ellipse(pair_covariance(one, first, second)) for one in (design, design.isotropic))
    across, up = (Scale(-end, end) for end in (1.08 * np.abs([ours, other]).max(axis=(0, 2))).tolist())
    curves = [
        Curve(ours, "95% of the noise of this design", fill=0.1),
        Curve(other, "95% of i.i.d. noise with the same guarantee", "p-other", dashed=True, fill=0.1),
    ]
    title = f"Noise in {describe_numbers(design)}{names[first]} and {names[second]}"
    drawing = draw_curves(curves, across, up, (names[first], names[second]), title=title, size=(300.0, 300.0))
    return Drawing(drawing.elements, max(drawing.width, 8.5 * len(title)), drawing.height)


def describe_part(numbers: Numbers) -> str:
    """What part of a large matrix a picture shows; nothing if it shows all of it."""
    parts = say_parts(cut_shown(numbers), numbers)
    return f", the first {parts}" if parts else ""
