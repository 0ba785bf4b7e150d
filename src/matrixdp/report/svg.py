"""A small writer of SVG: elements with escaped text, and colours that everybody can tell apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

# ColorBrewer's RdBu and YlGnBu, which colour-blind readers can tell apart.
DIVERGING = ("#2166ac", "#67a9cf", "#d1e5f0", "#f7f7f7", "#fddbc7", "#ef8a62", "#b2182b")
SEQUENTIAL = ("#f7fcf0", "#ccebc5", "#7bccc4", "#2b8cbe", "#084081")
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
_STANDALONE = (
    "<style>svg{background:#ffffff;color:#1c2330}"
    "@media (prefers-color-scheme:dark){svg{background:#14181f;color:#e6e9ef}}</style>"
)


def element(name: str, content: str = "", **attributes: object) -> str:
    """One element; `content` is markup already, attributes are escaped.

    Examples
    --------
    >>> element("rect", x=1, stroke_width=0.5)
    '<rect x="1" stroke-width="0.5"/>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_number(value))}"' for key, value in attributes.items()
    )
    return f"<{name}{written}>{content}</{name}>" if content else f"<{name}{written}/>"


def text(x: float, y: float, words: str, *, size: float = 12, **attributes: object) -> str:
    """A line of text in the colour of its surroundings."""
    attributes = {"fill": "currentColor", **attributes}
    return element("text", escape(words), x=x, y=y, font_size=size, **attributes)


def group(parts: Sequence[str], **attributes: object) -> str:
    """Several elements as one."""
    return element("g", "".join(parts) or " ", **attributes)


def picture(parts: Sequence[str], width: float, height: float, title: str, *, inline: bool = False) -> str:
    """A whole SVG image; `inline` leaves out what a page that holds it says already."""
    name = escape(title, quote=True)
    size = "" if inline else f' width="{_number(width)}" height="{_number(height)}"'
    style = f' style="width:100%;max-width:{_number(width)}px;height:auto"' if inline else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_number(width)} {_number(height)}"{size}{style} '
        f'role="img" aria-label="{name}" font-family="{escape(FONT)}">'
        + ("" if inline else f"<title>{name}</title>{_STANDALONE}")
        + "".join(parts)
        + "</svg>"
    )


def colour(position: float, scale: Sequence[str]) -> str:
    """The colour at `position`, from 0 to 1, of a scale of colours.

    Examples
    --------
    >>> colour(0.0, SEQUENTIAL), colour(0.5, ["#000000", "#ffffff"])
    ('#f7fcf0', '#808080')
    """
    place = min(max(position, 0.0), 1.0) * (len(scale) - 1)
    low = min(int(place), len(scale) - 2)
    share = place - low
    mixed = (round(a + (b - a) * share) for a, b in zip(_channels(scale[low]), _channels(scale[low + 1]), strict=True))
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def ink_on(background: str) -> str:
    """Dark or light, whichever can be read on `background`.

    Examples
    --------
    >>> ink_on("#ffffff"), ink_on("#084081")
    ('#1c2330', '#ffffff')
    """
    red, green, blue = _channels(background)
    return "#1c2330" if 0.299 * red + 0.587 * green + 0.114 * blue > 140 else "#ffffff"


def short(value: float, digits: int = 3) -> str:
    """A number in as few characters as `digits` digits need.

    Examples
    --------
    >>> short(1234567.0), short(0.04999), short(-12.0), short(0.0)
    ('1.23e6', '0.05', '-12', '0')
    """
    if value != value:
        return "–"
    written = f"{value:.{digits}g}"
    if "e" in written:
        mantissa, exponent = written.split("e")
        if "." in mantissa:
            mantissa = mantissa.rstrip("0").rstrip(".")
        return f"{value:.0f}" if -4 <= int(exponent) < digits + 1 and abs(value) >= 1 else f"{mantissa}e{int(exponent)}"
    return written.rstrip("0").rstrip(".") if "." in written else written


def with_bar(value: float, std: float) -> tuple[str, str]:
    """A number and its error bar, both to the bar's second digit.

    Examples
    --------
    >>> with_bar(12.3456, 0.0312), with_bar(158.2, 34.0), with_bar(1.0, 0.0)
    (('12.346', '0.031'), ('158', '34'), ('1', ''))
    """
    if not 0 < std < math.inf or value != value:
        return short(value, 4), ""
    places = 1 - math.floor(math.log10(std))
    if not -3 < places < 7 or abs(value) >= 1e7:
        return short(value, 4), short(std, 2)
    return f"{round(value, places):.{max(places, 0)}f}", f"{round(std, places):.{max(places, 0)}f}"


def clipped(name: str, length: int) -> str:
    """A label of at most `length` characters."""
    return name if len(name) <= length else name[: length - 1] + "…"


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _number(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return str(value)
