"""`reproduce` runs the experiments and writes the report."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TextIO

from matrixdp.checks import check_integer
from matrixdp.errors import ParameterError
from matrixdp.paper import figures, tables
from matrixdp.paper.claims import count_verdicts, tabulate_claims
from matrixdp.paper.tables import SIMULATED, ReportTable, Timings, measure_runtime
from matrixdp.paper.trials import (
    EXPERIMENTS,
    PARTS,
    CellResult,
    is_simulated,
    origins,
    part_cells,
    run_cells,
    select_best,
)
from matrixdp.release.output_folder import write_file
from matrixdp.release.registered import load_plugins
from matrixdp.report.page import Block, Page, Section, fold, say
from matrixdp.version import __version__

_TIMES = 20
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
    "Pure noise makes kernel ridge regression predict the constant 0, which is far better than the random guess, since "
    "the target is skewed: beating the random guess says nothing about a mechanism. The paper's absolute figures of "
    "Exp. I, 12 times smaller, and of Exp. III fit none of the readings of its setup that were tried.",
)
_MODE_NAMES = {
    "printed": "with MVG as printed",
    "exact": "with MVG exactly calibrated",
    "fair": "with Gaussian and JL exactly calibrated as well",
}


@dataclass(frozen=True, eq=False)
class Run:
    """The parts that were requested and what was measured."""

    chosen: list[str]  # with the parts that these need
    results: dict[str, list[CellResult]]  # of each part that has trials
    out: Path  # folder of the report
    trials: int
    seed: int

    @cached_property
    def best(self) -> dict[str, dict[str, CellResult]]:
        """The best setting of each row, by part and key."""
        return {part: select_best(results) for part, results in self.results.items()}

    @cached_property
    def timings(self) -> Timings:
        """Seconds of the runtime table; empty if it was not requested."""
        return measure_runtime(_TIMES) if "runtime" in self.chosen else {}

    @cached_property
    def claims(self) -> ReportTable:
        """The table of claims."""
        values = {(part, key): one.errors for part, found in self.best.items() for key, one in found.items()}
        return tabulate_claims(values, self.timings, simulated=is_simulated(*self.results))


def reproduce(
    parts: Sequence[str] = (),
    trials: int = 100,
    seed: int = 0,
    out: Path | str = "matrixdp-paper",
    *,
    processes: int = 2,
    progress: TextIO | None = None,
    plugins: Sequence[str] = (),
) -> Path:
    """Repeat the paper's experiments, write ``report.html``, figures and tables, and return the path of the report.

    `parts` are keys of `PARTS`, all by default; what these need is run as well. An error bar needs two `trials`. The
    same `seed` gives the same figures. Trials that are stored in the folder `out` are not run again, so an interrupted
    run resumes. If `progress`, by default standard error, is a terminal, it shows the time left. `plugins` are modules
    that register mechanisms to compare.

    Privacy
    -------
    Simulations on public data with seeded noise: they protect nothing.
    """
    load_plugins(plugins)
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        raise ParameterError(f"parts must be among {', '.join(PARTS)}, got {', '.join(unknown)} instead.")
    wanted = set(parts or PARTS)
    wanted |= {need for part in tuple(wanted) for need in PARTS[part].needs}
    chosen = [part for part in PARTS if part in wanted]
    check_integer(trials, "trials", at_least=2, rule="an integer of at least 2, since an error bar needs two trials")
    for name, value, least in (("seed", seed, 0), ("processes", processes, 1)):
        check_integer(value, name, at_least=least, rule=f"an integer of at least {least}")
    out = Path(out)
    measured = [part for part in chosen if PARTS[part].data]
    cells = [cell for part in measured for cell in part_cells(part, trials=trials, seed=seed)]
    if is_simulated(*measured):  # before the run, not only in the report
        where = sys.stderr if progress is None else progress
        where.write(f"{SIMULATED}. Set MATRIXDP_DATA to a folder with liver.csv, movement.csv and ctg.csv.\n")
    results = run_cells(cells, out / "cache", processes=processes, out=progress, plugins=plugins)
    by_part = {part: [result for result in results if result.cell.part == part] for part in measured}
    return write_report(Run(chosen, by_part, out, trials=trials, seed=seed))


def write_report(run: Run) -> Path:
    """Write all files and return the path of the report."""
    sections = [
        Section(part.title, [_write(one, run.out) for one in _show_part(name, run)], anchor=name)
        for name, part in PARTS.items()
        if name in run.chosen
    ]
    swept = {part: results for part, results in run.results.items() if part != "directions"}
    if swept:
        sections.append(Section("Sweeps", [fold("Show", _write(tables.tabulate_sweeps(swept), run.out))], "sweeps"))
    sources = ", ".join(dict.fromkeys(origins(part) for part in EXPERIMENTS if part in run.results))
    facts, simulated = [f"Trials: {run.trials}", f"Seed: {run.seed}"], is_simulated(*run.results)
    facts += [f"Data: {sources}{'' if simulated else ', as published'}"] if sources else []
    counts = count_verdicts(run.claims) if "claims" in run.chosen else {}
    words = {mode: ", ".join(f"{many} {verdict}" for verdict, many in found.items()) for mode, found in counts.items()}
    verdicts = [f"Claims, {_MODE_NAMES[mode]}: {words[mode]}." for mode in words]
    page = make_page(facts, verdicts, sections, simulated=simulated)
    write_file(run.out / "report.html", page.render())
    return run.out / "report.html"


def _write(shown: Shown, out: Path) -> Block:
    """A block of the page; the table or figure is also written to its files."""
    kind, folder = ("words", "tables") if isinstance(shown, ReportTable) else ("picture", "figures")
    shown.write(out / folder)
    return Block(kind, shown)


def make_page(facts: Sequence[str], results: Sequence[str], sections: Sequence[Section], *, simulated: bool) -> Page:
    """The page of the report."""
    return Page(
        title="MVG Mechanism, reproduced",
        heading="The experiments of “MVG Mechanism” (CCS 2018), reproduced",
        kicker=" · ".join([*facts, f"matrixdp {__version__}"]),
        banner=SIMULATED if simulated else "",
        contents=True,
        sections=[
            *([Section("Results", [Block("list", results)], anchor="findings")] if results else []),
            *sections,
            Section("Method", [say(*_METHOD)], anchor="method"),
        ],
        style=_STYLE,
    )


Shown = ReportTable | figures.Picture


def _show_part(part: str, run: Run) -> list[Shown]:
    """The tables and figures of a section."""
    best = run.best
    match part:
        case "gains":
            return [tables.tabulate_gains(best)]
        case "directions":
            return [figures.draw_directions(best[part])]
        case "subspace":
            own = {key: best["exp1"][key] for key in ("random guess", "mvg-1", "mvg-1/exact")}
            return [tables.tabulate_experiment(part, {**best[part], **own})]
        case "runtime":
            return [tables.tabulate_runtime(run.timings)]
        case "claims":
            return [run.claims]
        case "pictures":
            return [figures.draw_noise(run.seed), figures.draw_design_space()]
    return [tables.tabulate_experiment(part, best[part])]
