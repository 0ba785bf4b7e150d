"""What each colour of a matrix means, for pictures and tables alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matrixdp.display import escape_text, format_number
from matrixdp.report.shading import Shading
from matrixdp.report.stylesheet import DOUBTFUL, FADED

_WORDS = {"positive": "orange: positive", "negative": "blue: negative", "count": "green: the larger, the stronger"}


@dataclass(frozen=True)
class LegendItem:
    """One entry: a 'ramp' of one or two hues, or a swatch that is 'weak', 'fixed' or 'hidden', and its words."""

    kind: str
    hues: tuple[str, ...]
    words: str
    strength: float = 1.0


def list_legend(shading: Shading, meaning: str, *, percent: bool = False) -> list[LegendItem]:
    """The colours that a matrix has.

    Parameters
    ----------
    shading : Shading
    meaning : str
        What the colours show, such as "correlation".
    percent : bool
        Whether full colour is a percentage.
    """
    found = []
    hues = tuple(hue for hue in ("negative", "positive", "count") if shading.has(hue))
    if hues:
        limit = f"{format_number(100 * shading.limit)}%" if percent else format_number(shading.limit)
        limit = f"{shading.limit:,.0f}" if not percent and 1e3 <= shading.limit < 1e9 else limit
        words = ", ".join(_WORDS[hue] for hue in hues)
        found.append(LegendItem("ramp", hues, f"{words}; full colour at {'±' * (len(hues) > 1)}{limit} ({meaning})"))
    if shading.doubtful.any():
        hue = str(shading.hue[shading.doubtful][0])
        words = "light, number not bold: further from zero, but possible by chance among so many numbers"
        found.append(LegendItem("weak", (hue,), words, DOUBTFUL))
    if shading.weak.any():
        hue = str(shading.hue[shading.weak][0])
        words = "pale, number in grey: within two error bars of zero, may be noise alone"
        found.append(LegendItem("weak", (hue,), words, FADED))
    if (shading.hue == "fixed").any():
        found.append(LegendItem("fixed", ("fixed",), "grey: no noise, known from the definition"))
    if (shading.hue == "hidden").any():
        found.append(LegendItem("hidden", ("hidden",), "no number: hidden by noise"))
    return found


def render_legend(items: Sequence[LegendItem]) -> str:
    """A legend as HTML."""
    if not items:
        return ""
    return f'<ul class="legend">{"".join(map(_render_item, items))}</ul>'


def _render_item(item: LegendItem) -> str:
    if item.kind == "ramp":
        mark = f'<span class="ramp {"-".join(item.hues)}"></span>'
    else:
        style = f' style="--s:{100 * item.strength:.0f}%"' if item.kind == "weak" else ""
        mark = f'<span class="swatch {item.hues[0]}"{style}></span>'
    return f"<li>{mark}<span>{escape_text(item.words)}</span></li>"
