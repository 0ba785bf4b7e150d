"""The report as one self-contained HTML page, without scripts or other files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from matrixdp.paper.plotting import FIGURE_STYLE, Picture
from matrixdp.paper.report_table import SIMULATED, ReportTable
from matrixdp.report import page as report
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

_METHOD = (
    "All noise here comes from seeded streams, so that every figure can be repeated: these are simulations, and "
    "they protect nobody. The data are public. Features are scaled by the data's own range, as in the paper; a "
    "real release must not do that, since the range is private.",
    "Every mechanism is run at epsilon = 1 and delta = 1/N for replace-one neighbours (delta = 0 where the table "
    "says so). Each trial's release states the guarantee that it was calibrated for and the one that it has; a "
    "run stops with an error where they are not those of the table's column. Intervals are Student's, at 95%, "
    "over the trials.",
    "MVG-2 learns its directions from a private second moment: with 0.2 epsilon and 0.2 delta for the paper's "
    "calibrations, as printed, and with a fifth of mu² for the exact one. “Corrected” fixes an error in Theorem 2 "
    "(the root of zeta), “psd” has the form of the authors' longer version. Kernel ridge regression has no "
    "intercept, so features and target are measured from 0, as the paper has them, and from 1/2; the better "
    "counts, for every row.",
)


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
    known = [*(f"{name}: {value}" for name, value in facts.items()), f"matrixdp {__version__}"]
    return report.render_page(
        report.Page(
            title="MVG Mechanism, reproduced",
            heading="The experiments of “MVG Mechanism” (CCS 2018), reproduced",
            kicker=" · ".join(known),
            banner=SIMULATED if simulated else "",
            contents=True,
            sections=[
                report.Section("Results", [report.list_items(results)], anchor="findings"),
                *map(_show_section, sections),
                report.Section("Method", [report.say(*_METHOD)], anchor="method"),
            ],
            style=_STYLE + FIGURE_STYLE,
        )
    )


def _show_section(section: Section) -> report.Section:
    blocks = [report.Block("words" if isinstance(part, ReportTable) else "picture", part) for part in section.parts]
    blocks = [report.list_items(section.sentences), *blocks] if section.sentences else blocks
    shown = [report.fold("Show", *blocks)] if section.folded else blocks
    return report.Section(section.title, shown, anchor=section.anchor)
