"""A small SVG writer: elements with escaped text, and colour scales that colour-blind readers can distinguish."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from matrixdp.display.html import FONT, escape_text

# ColorBrewer's RdBu and YlGnBu.
DIVERGING = ("#2166ac", "#67a9cf", "#d1e5f0", "#f7f7f7", "#fddbc7", "#ef8a62", "#b2182b")
SEQUENTIAL = ("#f7fcf0", "#ccebc5", "#7bccc4", "#2b8cbe", "#084081")
_MARGIN = 16.0
_STANDALONE = (
    "<style>svg{background:#ffffff;color:#1c2330}"
    "@media (prefers-color-scheme:dark){svg{background:#14181f;color:#e6e9ef}}</style>"
)


@dataclass(frozen=True)
class Drawing:
    """SVG elements, and the width and height that they need."""

    elements: tuple[str, ...]
    width: float
    height: float


def element(name: str, content: str = "", **attributes: object) -> str:
    """One element; `content` is markup already, attributes are escaped.

    Examples
    --------
    >>> element("rect", x=1, stroke_width=0.5)
    '<rect x="1" stroke-width="0.5"/>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape_text(_attribute(value))}"' for key, value in attributes.items()
    )
    return f"<{name}{written}>{content}</{name}>" if content else f"<{name}{written}/>"


def text(x: float, y: float, words: str, *, size: float = 12, **attributes: object) -> str:
    """A line of text in the colour of its surroundings."""
    attributes = {"fill": "currentColor", **attributes}
    return element("text", escape_text(words), x=x, y=y, font_size=size, **attributes)


def group(elements: Sequence[str], **attributes: object) -> str:
    """Several elements as one."""
    return element("g", "".join(elements) or " ", **attributes)


def make_image(drawings: Sequence[Drawing], title: str, *, inline: bool = False) -> str:
    """A complete SVG image of drawings side by side; `inline` leaves out what an HTML page sets itself."""
    groups, x = [], _MARGIN
    for drawing in drawings:
        groups.append(group(drawing.elements, transform=f"translate({x:.1f} {_MARGIN})"))
        x += drawing.width + 2 * _MARGIN
    width = _attribute(x)
    height = _attribute(max(drawing.height for drawing in drawings) + 2 * _MARGIN)
    name = escape_text(title)
    size = f' style="width:100%;max-width:{width}px;height:auto"' if inline else f' width="{width}" height="{height}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"{size} '
        f'role="img" aria-label="{name}" font-family="{escape(FONT)}">'
        + ("" if inline else f"<title>{name}</title>{_STANDALONE}")
        + "".join(groups)
        + "</svg>"
    )


def mix_colour(position: float, scale: Sequence[str]) -> str:
    """The colour at `position`, from 0 to 1, of a colour scale.

    Examples
    --------
    >>> mix_colour(0.0, SEQUENTIAL), mix_colour(0.5, ["#000000", "#ffffff"])
    ('#f7fcf0', '#808080')
    """
    place = min(max(position, 0.0), 1.0) * (len(scale) - 1)
    low = min(int(place), len(scale) - 2)
    share = place - low
    mixed = (round(a + (b - a) * share) for a, b in zip(_channels(scale[low]), _channels(scale[low + 1]), strict=True))
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def contrast_colour(background: str) -> str:
    """The text colour, dark or light, that is readable on `background`.

    Examples
    --------
    >>> contrast_colour("#ffffff"), contrast_colour("#084081")
    ('#1c2330', '#ffffff')
    """
    red, green, blue = _channels(background)
    return "#1c2330" if 0.299 * red + 0.587 * green + 0.114 * blue > 140 else "#ffffff"


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _attribute(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return str(value)
