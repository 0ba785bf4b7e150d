"""A small SVG writer: elements with escaped text, and images that a screen reader can describe.

Colours are classes of ``picture.css``, so that a picture follows the reader's colour scheme.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from matrixdp.display import FONT, escape_text
from matrixdp.report.stylesheet import write_picture_style

_MARGIN = 16.0


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


def text(x: float, y: float, words: str, *, size: float = 12, kind: str = "text", **attributes: object) -> str:
    """A line of text; `kind` is its colour, 'text' or 'soft', or both words of 'text bold'."""
    classes = " ".join(f"p-{word}" for word in kind.split())
    return element("text", escape_text(words), x=x, y=y, font_size=size, class_=classes, **attributes)


def group(elements: Sequence[str], **attributes: object) -> str:
    """Several elements as one."""
    return element("g", "".join(elements) or " ", **attributes)


def make_image(drawings: Sequence[Drawing], title: str, description: str = "", *, inline: bool = False) -> str:
    """A complete SVG image of drawings side by side.

    Parameters
    ----------
    drawings : sequence of Drawing
    title, description : str
        What a screen reader says; the description gives the content in words.
    inline : bool
        For an HTML page, which has the style.
    """
    groups, x = [], _MARGIN
    for drawing in drawings:
        groups.append(group(drawing.elements, transform=f"translate({x:.1f} {_MARGIN})"))
        x += drawing.width + 2 * _MARGIN
    width = _attribute(x)
    height = _attribute(max(drawing.height for drawing in drawings) + 2 * _MARGIN)
    name, words = escape_text(title), escape_text(description)
    label = f"{name}. {words}" if words else name
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{label}" font-family="{escape(FONT)}"><title>{name}</title>'
        + (f"<desc>{words}</desc>" if words else "")
        + ("" if inline else f"<style>{write_picture_style()}</style>")
        + "".join(groups)
        + "</svg>"
    )


def _attribute(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return str(value)
