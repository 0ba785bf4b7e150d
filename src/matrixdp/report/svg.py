"""Pictures as SVG: elements with escaped text, axes, dots with error bars, curves, and images with descriptions.

Colours are classes of ``picture.css``, so that pictures and pages follow the reader's colour scheme; paper is always
light. A coloured cell is the colour of the page with a share of one hue over it, so that text of one colour is readable
on all of them (`tests/unit/report/test_stylesheet.py`).
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from matrixdp.display import FONT, format_number, make_visible
from matrixdp.domain.columns import Number
from matrixdp.types import Floats

_MARGIN = 16.0
STRIP = "Line under a mean: from the lower to the upper bound of its column; bar: its 95% interval."
WEAKEST = 0.14  # share of its hue that the palest certain entry has
DOUBTFUL = 0.30  # the most that an entry has that may be chance among so many
FADED = 0.08  # and the most that an entry has that may be noise alone


@dataclass(frozen=True)
class Drawing:
    """SVG elements, and the width and height that they need."""

    elements: tuple[str, ...]
    width: float
    height: float


def element(name: str, content: str = "", /, **attributes: object) -> str:
    """One element; `content` is markup already, attributes are escaped."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_attribute(value)}"' for key, value in attributes.items()
    )
    return f"<{name}{written}>{content}</{name}>" if content else f"<{name}{written}/>"


def _attribute(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return escape(str(value))


def text(x: float, y: float, words: str, *, size: float = 12, kind: str = "text", **attributes: object) -> str:
    """A line of text; `kind` is its colour, 'text' or 'soft', or both words of 'text bold'."""
    classes = " ".join(f"p-{word}" for word in kind.split())
    return element("text", escape(words), x=x, y=y, font_size=size, class_=classes, **attributes)


def make_image(drawings: Sequence[Drawing], title: str, description: str = "", *, inline: bool = False) -> str:
    """A complete SVG image of drawings side by side.

    A screen reader says the title and the description, which gives the content in words. An `inline` image has no style
    of its own: its HTML page has it. Characters that are not printable are shown as escapes.
    """
    groups, x = [], _MARGIN
    for drawing in drawings:
        groups.append(element("g", "".join(drawing.elements), transform=f"translate({x:.1f} {_MARGIN})"))
        x += drawing.width + 2 * _MARGIN
    width, height = _attribute(x), _attribute(max(drawing.height for drawing in drawings) + 2 * _MARGIN)
    name, words = escape(title), escape(description)
    label = f"{name}. {words}" if words else name
    start = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{label}" font-family="{escape(FONT)}"><title>{name}</title>'
    )
    start += f"<desc>{words}</desc>" if words else ""
    style = "" if inline else f"<style>{write_picture_style()}</style>"
    return f"{make_visible(start)}{style}{make_visible(''.join(groups))}</svg>"


@dataclass(frozen=True)
class Scale:
    """An axis from `low` to `high`, linear or logarithmic; `label` writes its numbers, such as dates."""

    low: float
    high: float
    log: bool = False
    label: Callable[[float], str] | None = None

    def share(self, values: ArrayLike) -> Floats:
        """Places on the axis, 0 at its low end and 1 at its high one; values beyond it stay at its ends."""
        low, high, inner = (np.log(one) if self.log else np.asarray(one) for one in (self.low, self.high, values))
        return np.asarray(np.clip((inner - low) / (high - low), 0.0, 1.0))

    def ticks(self, count: int = 5) -> list[float]:
        """At most about `count` round numbers on the axis: steps of 1, 2 or 5, or powers of ten and what is between."""
        if not self.log:
            step = round_up((self.high - self.low) / (count + 1))
            places = np.arange(math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9) + 1)
            return [float(f"{place * step:.10g}") + 0.0 for place in places]
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for factors in ((1, 2, 5), (1, 3), (1,)):
            found = [float(f"{one}e{power}") for power in powers for one in factors]
            found = [one for one in found if self.low * (1 - 1e-9) <= one <= self.high * (1 + 1e-9)]
            if len(found) <= count:
                break
        return found[:: math.ceil(len(found) / count)]


def _write_tick(value: float) -> str:
    """A round number on an axis."""
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e7 and value == round(value) else format_number(value)


def round_up(value: float) -> float:
    """The next number of 1, 2, 5, 10, 20, ..."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if value <= step * power * (1 + 1e-9))


@dataclass(frozen=True)
class Area:
    """A rectangle with two axes, in which lines and points are drawn at their values."""

    x: Scale
    y: Scale
    left: float
    top: float
    width: float
    height: float

    def across(self, values: ArrayLike) -> Any:
        """Places from the left, in pixels."""
        return self.left + self.width * self.x.share(values)

    def up(self, values: ArrayLike) -> Any:
        """Places from the top, in pixels."""
        return self.top + self.height * (1 - self.y.share(values))

    def line(self, points: Floats, kind: str, *, closed: bool = False, **attributes: object) -> str:
        """A line through points of shape (2, n); `kind` are its classes."""
        places = zip(self.across(points[0]), self.up(points[1]), strict=True)
        written = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        return element("polygon" if closed else "polyline", points=written, class_=kind, **attributes)

    def axes(self, names: tuple[str, str], ticks: tuple[Sequence[float], Sequence[float]] | None = None) -> list[str]:
        """The frame, lines at the ticks with their numbers, and the names of both axes."""
        right, bottom = self.left + self.width, self.top + self.height
        found = [element("rect", x=self.left, y=self.top, width=self.width, height=self.height, class_="p-frame")]
        across, up = ticks or (self.x.ticks(), self.y.ticks())
        small: dict[str, Any] = {"size": 11, "kind": "soft"}
        for value in across:
            x = float(self.across(value))
            found.append(element("line", x1=x, x2=x, y1=self.top, y2=bottom, class_="p-grid"))
            found.append(text(x, bottom + 16, (self.x.label or _write_tick)(value), text_anchor="middle", **small))
        for value in up:
            y = float(self.up(value))
            found.append(element("line", x1=self.left, x2=right, y1=y, y2=y, class_="p-grid"))
            found.append(text(self.left - 7, y + 4, _write_tick(value), text_anchor="end", **small))
        middle = self.top + self.height / 2
        turned: dict[str, Any] = {"transform": f"rotate(-90 12 {middle:.1f})", "text_anchor": "middle"}
        found.append(text(self.left + self.width / 2, bottom + 34, names[0], text_anchor="middle"))
        return [*found, text(12, middle, names[1], **turned)] if names[1] else found


def draw_strip(number: Number, value: float, *ends: float) -> str:
    """Where a mean and the ends of its interval lie between its bounds, beside its numbers; empty if not given."""
    if not math.isfinite(value + sum(ends)):
        return ""
    scale, places = Scale(number.lower, number.upper), [value, *ends]
    middle, low, high = (5.0 + 86.0 * scale.share(places)).tolist()
    parts = (
        element("line", x1=5, x2=91, y1=6, y2=6, class_="p-grid"),
        element("line", x1=low, x2=high, y1=6, y2=6, class_="p-mark", stroke_width=4, stroke_opacity=0.55),
        element("circle", cx=middle, cy=6, r=3.5, class_="p-mark"),
    )
    size = {"width": 96, "height": 12, "viewBox": "0 0 96 12"}
    return element("svg", "".join(parts), class_="strip", aria_hidden="true", focusable="false", **size)


@dataclass(frozen=True, eq=False)
class Curve:
    """A line through points of shape (2, n), with error bars of shape (n,) if they are known."""

    points: Floats
    label: str = ""
    kind: str = "p-mark"
    dashed: bool = False
    halves: Floats | None = None  # of the error bars
    fill: float = 0.0  # the opacity of a closed curve
    scattered: bool = False  # points without the line, small ones if they have no error bars
    band: bool = False  # a filled area without its line
    words: str = ""  # the tooltip of its points

    def draw(self, area: Area) -> list[str]:
        """The line, or the points, and the error bars."""
        if self.scattered and self.halves is None:
            places = zip(area.across(self.points[0]).tolist(), area.up(self.points[1]).tolist(), strict=True)
            return [element("circle", cx=x, cy=y, r=1.6, class_=self.kind, opacity=0.5) for x, y in places]
        lined = not (self.scattered or self.band)
        found = [area.line(self.points, f"{self.kind} p-line", **self.dash)] if lined else []
        if self.fill:
            found.insert(0, area.line(self.points, self.kind, closed=True, fill_opacity=self.fill, stroke_width=0))
        small = area.y.low if area.y.log else -np.inf
        halves = () if self.halves is None else self.halves.tolist()
        tip = element("title", escape(self.words)) if self.words else ""
        radius = 2.5 if len(halves) > 1 else 4.5  # a single point marks a place
        for (x, y), half in zip(self.points.T.tolist(), halves, strict=False):
            place, ends = float(area.across(x)), area.up([max(y - half, small), y + half]).tolist()
            found.append(element("line", x1=place, x2=place, y1=ends[0], y2=ends[1], class_=self.kind))
            found.append(element("circle", tip, cx=place, cy=float(area.up(y)), r=radius, class_=self.kind))
        return found

    @property
    def dash(self) -> dict[str, Any]:
        """The attributes of a dashed line; none for others."""
        return {"stroke_dasharray": "5 4"} if self.dashed else {}


def draw_curves(
    curves: Sequence[Curve],
    x: Scale,
    y: Scale,
    names: tuple[str, str],
    *,
    title: str = "",
    size: tuple[float, float] = (300.0, 230.0),
    ticks: tuple[Sequence[float], Sequence[float]] | None = None,
) -> Drawing:
    """Lines over two axes, with a legend of those that have a label below them.

    `names` are those of the axes, and `size` that of the area between them in pixels.
    """
    area = Area(x, y, 70.0, 28.0 if title else 8.0, *size)
    elements = [text(0, 14, title, size=14, kind="text bold")] if title else []
    elements += area.axes(names, ticks)
    for curve in curves:
        elements += curve.draw(area)
    left, base = area.left, area.top + area.height + 56
    for curve in curves:
        if curve.label:
            place = {"x1": left, "x2": left + 24, "y1": base - 4, "y2": base - 4}
            elements.append(element("line", **place, class_=f"{curve.kind} p-line", **curve.dash))
            elements.append(text(left + 32, base, curve.label, size=11.5))
            base += 18
    return Drawing(tuple(elements), left + area.width + 12, base - 8)


# Styles


def _read(name: str) -> str:
    return files("matrixdp.report").joinpath("styles", name).read_text(encoding="utf-8")


LIGHT, DARK = (dict(re.findall(r"--(\w+): (#\w+)", part)) for part in _read("colours.css").split("@media"))


def write_page_style() -> str:
    """The stylesheet of a page."""
    styles = map(_read, ("colours.css", "picture.css", "answers.css", "page.css"))
    return "\n".join([*styles, f":root{{--font:{FONT}}}"])


def write_picture_style() -> str:
    """The style of a picture in a file of its own, with its colours written out: many programs know no variables."""
    light = dark = f"{_read('picture.css')}svg{{background:var(--card)}}"
    for name in LIGHT:
        light, dark = light.replace(f"var(--{name})", LIGHT[name]), dark.replace(f"var(--{name})", DARK[name])
    return f"{light}@media screen and (prefers-color-scheme:dark){{{dark}}}"
