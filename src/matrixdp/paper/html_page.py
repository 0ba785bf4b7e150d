"""The report as one self-contained HTML page, without scripts or other files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from matrixdp.paper.plotting import FIGURE_STYLE, Picture
from matrixdp.paper.report_table import SIMULATED, ReportTable
from matrixdp.version import __version__

_STYLE = """
:root { color-scheme: light dark; --ink: #1c1c1e; --paper: #fdfdfb; --soft: #5c5c66; --rule: #d9d9d6;
  --tint: #f2f2ee; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8e8ea; --paper: #17181b; --soft: #a5a7b0; --rule: #3a3b40; --tint: #222327; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.25rem 5rem; max-width: 72rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 Georgia, "Times New Roman", serif; }
h1, h2, caption, th, td, nav, figcaption, .notes, .facts { font-family: system-ui, Arial, sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.3rem; margin: 3rem 0 .75rem; padding-top: .75rem; border-top: 1px solid var(--rule); }
p, ul { max-width: 46rem; }
a { color: inherit; }
nav { font-size: .88rem; margin: 1rem 0; } nav a { margin-right: 1rem; }
.facts { color: var(--soft); font-size: .9rem; }
.scroll { overflow-x: auto; margin: 1rem 0 .5rem; }
table { border-collapse: collapse; font-size: .8rem; font-variant-numeric: tabular-nums; width: 100%; }
caption { text-align: left; font-weight: 600; padding-bottom: .5rem; font-size: .95rem; }
th, td { text-align: left; padding: .3rem .55rem; border-bottom: 1px solid var(--rule); vertical-align: top; }
thead th { border-bottom: 2px solid var(--ink); font-weight: 600; }
td.number { text-align: right; white-space: nowrap; }
tr.group th { background: var(--tint); font-weight: 600; color: var(--soft); }
.notes { color: var(--soft); font-size: .82rem; } .notes p { margin: .3rem 0; }
figure { margin: 1.5rem 0; }
figcaption { color: var(--soft); font-size: .85rem; max-width: 46rem; }
.simulated { color: #fff; background: #b00020; padding: .4rem .7rem; border-radius: 4px; font-weight: 600;
  max-width: none;  font-family: system-ui, Arial, sans-serif; font-size: .85rem; }
.verdict { white-space: nowrap; font-weight: 600; }
.reproduced { color: #1a7f37; } .not-reproduced { color: #c4320a; } .cannot-be { color: var(--soft); }
@media (prefers-color-scheme: dark) { .reproduced { color: #4ac26b; } .not-reproduced { color: #ff8b60; } }
td small { display: block; color: var(--soft); font-size: .72rem; margin-top: .15rem; }
#table-claims { min-width: 56rem; } #table-claims td:nth-child(3) { min-width: 15rem; }
details { margin: 1rem 0; } summary { cursor: pointer; font-family: system-ui, Arial, sans-serif; }
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
    links = "".join(f'<a href="#{section.anchor}">{escape(section.title)}</a>' for section in sections)
    mark = f'<p class="simulated">{SIMULATED}</p>' if simulated else ""
    known = " · ".join(f"{escape(name)}: {escape(value)}" for name, value in facts.items())
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,"><title>MVG Mechanism, reproduced</title>'
        f"<style>{_STYLE}{FIGURE_STYLE}</style></head><body>"
        "<h1>The experiments of “MVG Mechanism” (CCS 2018), reproduced</h1>"
        f'<p class="facts">{known} · matrixdp {__version__}</p>{mark}<nav>{links}</nav>'
        f'<h2 id="findings">Results</h2>{_list(results)}'
        f"{''.join(map(_section, sections))}"
        f'<h2 id="method">Method</h2>{_METHOD}</body></html>\n'
    )


def _section(section: Section) -> str:
    body = "".join(part.to_html() for part in section.parts)
    if section.sentences:
        body = _list(section.sentences) + body
    if section.folded:
        body = f"<details><summary>Show</summary>{body}</details>"
    return f'<h2 id="{section.anchor}">{escape(section.title)}</h2>{body}'


def _list(sentences: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(sentence)}</li>' for sentence in sentences)}</ul>"
