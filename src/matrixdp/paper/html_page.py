"""The report as one self-contained HTML page, without scripts or other files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from matrixdp.display import escape_text
from matrixdp.paper.plotting import FIGURE_STYLE, Picture
from matrixdp.paper.report_table import SIMULATED, ReportTable
from matrixdp.report.page import render_document, render_fold, render_heading, render_list, render_section
from matrixdp.version import __version__

_STYLE = """
@media screen {
  main { max-width: 74rem; }
  .words { font-size: .8rem; }
  .words td:first-child, .words td:last-child { min-width: 9rem; }
  #table-claims { min-width: 56rem; }
  #table-claims td:first-child { min-width: 0; }
  #table-claims td:nth-child(3) { min-width: 15rem; }
}
"""

_METHOD = """
<p>All noise here comes from seeded streams, so that every figure can be repeated: these are simulations, and they
protect nobody. The data are public. Features are scaled by the data's own range, as in the paper; a real release must
not do that, since the range is private.</p>
<p>Every mechanism is run at epsilon = 1 and delta = 1/N for replace-one neighbours (delta = 0 where the table says so).
Each trial's release states the guarantee that it was calibrated for and the one that it has; a run stops with an
error where they are not those of the table's column. Intervals are Student's, at 95%, over the trials.</p>
<p>MVG-2 learns its directions from a private second moment: with 0.2 epsilon and 0.2 delta for the paper's
calibrations, as printed, and with a fifth of mu&sup2; for the exact one. “Corrected” fixes an error in Theorem 2 (the
root of zeta), “psd” has the form of the authors' longer version. Kernel ridge regression has no intercept, so
features and target are measured from 0, as the paper has them, and from 1/2; the better counts, for every row.</p>
"""


@dataclass(frozen=True)
class Section:
    """A heading with sentences, tables and figures."""

    anchor: str
    title: str
    parts: Sequence[ReportTable | Picture]
    folded: bool = False
    sentences: Sequence[str] = ()


def page(*, facts: Mapping[str, str], results: Iterable[str], sections: Sequence[Section], simulated: bool) -> str:
    """The whole report as HTML."""
    links = "".join(f'<a href="#{section.anchor}">{escape_text(section.title)}</a>' for section in sections)
    known = " · ".join([*(f"{name}: {value}" for name, value in facts.items()), f"matrixdp {__version__}"])
    body = [
        render_heading("The experiments of “MVG Mechanism” (CCS 2018), reproduced", known),
        f'<p class="simulated">{SIMULATED}</p>' if simulated else "",
        f'<nav aria-label="Sections">{links}</nav>',
        render_section("Results", render_list(results), anchor="findings"),
        *map(_section, sections),
        render_section("Method", _METHOD, anchor="method"),
    ]
    return render_document("MVG Mechanism, reproduced", "".join(body), _STYLE + FIGURE_STYLE)


def _section(section: Section) -> str:
    body = "".join(part.to_html() for part in section.parts)
    if section.sentences:
        body = render_list(section.sentences) + body
    if section.folded:
        body = render_fold("Show", body)
    return render_section(section.title, body, anchor=section.anchor)
