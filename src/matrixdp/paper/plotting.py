"""The style of all figures, each drawn twice: for wide pages and for phones."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matrixdp.errors import MissingExtraError, install_hint
from matrixdp.paper.files import write_atomically
from matrixdp.paper.report_table import SIMULATED

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

# Okabe and Ito's colours, which people with any colour vision can distinguish.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#555555", "#e69f00")
INK, PAPER, GRID, AXIS, WARNING = "#1c1c1e", "#ffffff", "#dddddd", "#999999", "#b00020"
# The colour of each in a page with a dark background.
_DARK = {
    INK: "#e8e8ea",
    PAPER: "#17181b",
    GRID: "#3a3b40",
    AXIS: "#7d7f87",
    WARNING: "#ff8a8a",
    COLOURS[0]: "#56b4e9",
    COLOURS[1]: "#ff8b4d",
    COLOURS[2]: "#2fc79a",
    COLOURS[3]: "#e39fc6",
    COLOURS[4]: "#b5b5b5",
    COLOURS[5]: "#f0b73c",
}
_STYLE: Any = {
    "font.family": "sans-serif",
    "font.size": 9.0,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.titlesize": 10.0,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "svg.hashsalt": "matrixdp",
    "figure.constrained_layout.use": True,
}
Paint = Callable[[list[Any], bool], None]


def _declare(colours: dict[str, str]) -> str:
    return ";".join(f"--c{light[1:]}:{shown}" for light, shown in colours.items())


# For a page that holds figures: their colours in both schemes, and which of the two drawings is shown.
FIGURE_STYLE = (
    f":root{{{_declare({light: light for light in _DARK})}}}"
    f"@media screen and (prefers-color-scheme:dark){{:root{{{_declare(_DARK)}}}}}"
    "figure .chart svg{width:100%;height:auto;background:none;border:0;padding:0;min-width:0}"
    "figure .narrow{display:none}"
    "@media screen and (max-width:640px){figure .wide{display:none}figure .narrow{display:block}}"
)


@dataclass(frozen=True)
class Picture:
    """A figure of the report: its drawings for wide and for narrow pages as SVG text."""

    name: str
    title: str
    caption: str
    wide: str
    narrow: str


def draw_picture(
    paint: Paint,
    folder: Path,
    name: str,
    *,
    title: str,
    caption: str,
    simulated: bool,
    wide: tuple[float, float],
    narrow: tuple[float, float],
    panels: int = 1,
    **options: Any,
) -> Picture:
    """Draw a figure, and write ``name.svg`` and ``name.png``.

    Parameters
    ----------
    paint : callable
        Draws on a list of axes; its second argument is whether they are for a narrow page.
    folder : Path
    name, title, caption : str
    simulated : bool
        Whether the data are simulated; the figure is then marked.
    wide, narrow : (width, height) in inches
        With several panels, side by side in a wide figure, one below the other in a narrow one.
    panels : int
    **options
        For matplotlib's ``subplots``.
    """
    try:
        import matplotlib as mpl
    except ImportError:
        raise MissingExtraError(f"figures need matplotlib. {install_hint('paper')}") from None
    with mpl.rc_context(_STYLE):
        figure = _paint(paint, wide, (1, panels), simulated=simulated, narrow=False, **options)
        write_atomically(folder / f"{name}.svg", _svg(figure, "path", PAPER))
        figure.savefig(folder / f"{name}.png", dpi=160, facecolor=PAPER, metadata={"Software": "matrixdp"})
        small = _paint(paint, narrow, (panels, 1), simulated=simulated, narrow=True, **options)
        drawn = [
            inline(_svg(one, "none", "none"), f"{name}{suffix}", title, caption)
            for one, suffix in ((figure, ""), (small, "-narrow"))
        ]
    return Picture(name, title, caption, *drawn)


def place_legend(ax: Any, *, narrow: bool, **options: Any) -> None:
    """A legend to the right of the axes, or below them in a narrow figure."""
    if narrow:
        height = ax.figure.get_size_inches()[1] / len(ax.figure.axes)
        options = {"loc": "upper left", "bbox_to_anchor": (0.0, -0.6 / height), **options}
    else:
        options = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5), **options}
    ax.legend(**options)


def label_rows(ax: Any, labels: list[str], *, narrow: bool) -> None:
    """Names of the rows of a plot, the first on top: beside the axes, or in a narrow figure above each row's mark."""
    ax.set_ylim(len(labels) - 0.4, -0.9)
    if not narrow:
        ax.set_yticks(range(len(labels)), labels)
        return
    ax.set_yticks(range(len(labels)), [""] * len(labels))
    for i, label in enumerate(labels):
        ax.text(0.0, i - 0.45, label, transform=ax.get_yaxis_transform(), fontsize=7.5, va="center")


def _paint(
    paint: Paint, size: tuple[float, float], grid: tuple[int, int], *, simulated: bool, narrow: bool, **options: Any
) -> Drawing:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size)
    FigureCanvasAgg(figure)
    paint(list(figure.subplots(*grid, squeeze=False, **options).ravel()), narrow)
    if simulated:
        text = SIMULATED.replace(", not", ",\nnot") if narrow else SIMULATED
        figure.suptitle(text, color=WARNING, fontsize=8 if narrow else 9)
    return figure


def _svg(figure: Drawing, text: str, background: str) -> str:
    """The figure as an SVG document, with text as 'path' or, with 'none', in the fonts of whoever reads it."""
    import matplotlib as mpl

    out = io.StringIO()
    with mpl.rc_context({"svg.fonttype": text}):
        figure.savefig(out, format="svg", facecolor=background, metadata={"Date": None, "Creator": "matrixdp"})
    return out.getvalue()


def inline(svg: str, name: str, title: str, caption: str) -> str:
    """An SVG document as an element of a page.

    No prolog, metadata or size, ids that no other figure has, colours that follow the page's scheme, and a title and a
    description for screen readers.
    """
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', body)
    body = re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", body)
    body = re.sub(r'(<svg[^>]*?) width="[^"]+"', r"\1", body, count=1)
    body = re.sub(r'(<svg[^>]*?) height="[^"]+"', r"\1", body, count=1)
    body = re.sub(r"#[0-9a-f]{6}(?=[;\"])", lambda found: _variable(found[0]), body)
    body = body.replace("<svg ", f'<svg role="img" aria-labelledby="{name}-title" aria-describedby="{name}-text" ', 1)
    words = f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-text">{escape(caption)}</desc>'
    return re.sub(r"(<svg[^>]*>)", lambda found: found[0] + words, body, count=1)


def _variable(colour: str) -> str:
    """A colour of this module as a CSS variable; matplotlib writes black and white where nothing was chosen."""
    colour = {"#000000": INK}.get(colour, colour)
    return f"var(--c{colour[1:]})" if colour in _DARK else colour
