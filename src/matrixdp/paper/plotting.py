"""The style of all figures, and writing them as SVG and PNG."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matrixdp.errors import MissingExtraError, install_hint
from matrixdp.paper.files import write_atomically
from matrixdp.paper.report_table import SIMULATED

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

# Okabe and Ito's colours, which people with any colour vision can tell apart.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#555555", "#e69f00")
_STYLE: Any = {
    "font.family": "sans-serif",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.titlesize": 10.0,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "svg.fonttype": "path",
    "svg.hashsalt": "matrixdp",
    "figure.constrained_layout.use": True,
}


@dataclass(frozen=True)
class Picture:
    """A figure of the report, as SVG text."""

    name: str
    title: str
    caption: str
    svg: str


@contextmanager
def canvas(width: float, height: float, panels: int = 1, **options: Any) -> Iterator[tuple[Drawing, list[Any]]]:
    """A figure and its axes, side by side, drawn without a display."""
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError(f"figures need matplotlib. {install_hint('paper')}") from None
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(width, height))
        FigureCanvasAgg(figure)
        yield figure, list(figure.subplots(1, panels, squeeze=False, **options)[0])


def save(figure: Drawing, folder: Path, name: str, *, title: str, caption: str, simulated: bool) -> Picture:
    """Write ``name.svg`` and ``name.png``; a figure of simulated data is marked."""
    if simulated:
        figure.suptitle(SIMULATED, color="#b00020", fontsize=9)
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": "matrixdp"})
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / f"{name}.svg", text.getvalue())
    figure.savefig(folder / f"{name}.png", dpi=160, metadata={"Software": "matrixdp"})
    return Picture(name, title, caption, inline(text.getvalue(), name, title))


def inline(svg: str, name: str, title: str) -> str:
    """An SVG document as an element of a page: no prolog, no metadata, and ids that no other figure has."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', body)
    body = re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", body)
    body = re.sub(r'(<svg[^>]*?) width="[^"]+"', r"\1", body, count=1)
    body = re.sub(r'(<svg[^>]*?) height="[^"]+"', r"\1", body, count=1)
    return body.replace("<svg ", f'<svg role="img" aria-label="{title}" ', 1)
