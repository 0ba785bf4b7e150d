"""`reproduce` runs the experiments and writes the report: its sections, what was found in words, and the page."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TextIO

from matrixdp.checks import check_integer
from matrixdp.display import format_number
from matrixdp.errors import ParameterError
from matrixdp.paper import figures, tables
from matrixdp.paper.claims import LEVEL, MODES, compare, count_verdicts, tabulate_claims
from matrixdp.paper.experiment import RIVALS
from matrixdp.paper.gains import IMPORTANCES, SHAPES, gain_key
from matrixdp.paper.tables import EXACT, SIMULATED, ReportTable, Rows, Timings, list_methods, load_timings
from matrixdp.paper.trials import (
    EXPERIMENTS,
    PARTS,
    CellResult,
    is_simulated,
    origins,
    part_cells,
    part_rows,
    run_cells,
    select_best,
)
from matrixdp.release.output_folder import write_file
from matrixdp.release.registered import load_plugins
from matrixdp.report.page import Block, Page, Section, fold, render_page, say
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
        return load_timings(self.out / "cache", _TIMES) if "runtime" in self.chosen else {}

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
    run resumes. `progress` is written to standard error by default. `plugins` are modules that register mechanisms
    (`matrixdp.baselines.register_mechanism`), each of which gets a row in the tables of its tasks.

    Privacy
    -------
    Simulations on public data with seeded noise: they protect nothing.
    """
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        raise ParameterError(f"parts must be among {', '.join(PARTS)}, got {', '.join(unknown)} instead.")
    wanted = set(parts or PARTS)
    wanted |= {need for part in tuple(wanted) for need in PARTS[part].needs}
    chosen = [part for part in PARTS if part in wanted]
    check_integer(trials, "trials", at_least=2, rule="an integer of at least 2, since an error bar needs two trials")
    for name, value, least in (("seed", seed, 0), ("processes", processes, 1)):
        check_integer(value, name, at_least=least, rule=f"an integer of at least {least}")
    load_plugins(plugins)
    part_rows.cache_clear()
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
        blocks = [fold("Show", _write(tables.tabulate_sweeps(swept), run.out))]
        sections.append(Section("Sweeps", blocks, anchor="sweeps"))
    sources = ", ".join(dict.fromkeys(origins(part) for part in EXPERIMENTS if part in run.results))
    facts, simulated = [f"Trials: {run.trials}", f"Seed: {run.seed}"], is_simulated(*run.results)
    facts += [f"Data: {sources}{'' if simulated else ', as published'}"] if sources else []
    page = make_page(facts, _list_results(run), sections, simulated=simulated)
    write_file(run.out / "report.html", render_page(page))
    return run.out / "report.html"


def _write(shown: Shown, out: Path) -> Block:
    """A block of the page; tables and figures are also written to their files."""
    if isinstance(shown, Block):
        return shown
    shown.write(out / ("tables" if isinstance(shown, ReportTable) else "figures"))
    return Block("words" if isinstance(shown, ReportTable) else "picture", shown)


def make_page(facts: Sequence[str], results: Sequence[str], sections: Sequence[Section], *, simulated: bool) -> Page:
    """The page of the report."""
    return Page(
        title="MVG Mechanism, reproduced",
        heading="The experiments of “MVG Mechanism” (CCS 2018), reproduced",
        kicker=" · ".join([*facts, f"matrixdp {__version__}"]),
        banner=SIMULATED if simulated else "",
        contents=True,
        sections=[
            Section("Results", [Block("list", results)], anchor="findings"),
            *sections,
            Section("Method", [say(*_METHOD)], anchor="method"),
        ],
        style=_STYLE,
    )


Shown = ReportTable | figures.Picture | Block


def _show_part(part: str, run: Run) -> list[Shown]:
    """The tables and figures of a section."""
    best = run.best
    match part:
        case "gains":
            found = [_describe_task(best, task) for task in EXPERIMENTS]
            found += [_describe_weights(best[part], importance) for importance in IMPORTANCES]
            drawn = figures.draw_tasks(best), figures.draw_weights(best[part])
            return [Block("list", found), *drawn, tables.tabulate_gains(best)]
        case "directions":
            return [figures.draw_directions(best[part]), tables.tabulate_directions(best[part])]
        case "subspace":
            own = {key: best["exp1"][key] for key in ("random guess", "mvg-1", "mvg-1/exact")}
            return [tables.tabulate_experiment(part, {**best[part], **own})]
        case "runtime":
            return [tables.tabulate_runtime(run.timings)]
        case "claims":
            return [run.claims]
        case "readings":
            return [tables.tabulate_readings(best["exp1"]["non-private"].mean)]
        case "pictures":
            return [figures.draw_noise(run.seed), figures.draw_design_space()]
    return [tables.tabulate_experiment(part, best[part]), figures.draw_comparison(part, best[part])]


# What was found, in words

_FINDINGS = {  # names of rows stand for their errors
    "exp1": (
        "Exp. I: with the noise that Theorem 2 requires, MVG-1 has an RMSE of {mvg-1}. That is about what the "
        "constant 0 has ({constant 0}), which kernel ridge regression predicts from pure noise. The target is skewed "
        "towards 0, so this alone is {share} of the random guess ({random guess}), near the published rows' 0.41 to "
        "0.62: beating the random guess says nothing about the mechanism.",
        "With the exact calibration MVG-1 reaches {mvg-1/exact} and i.i.d. noise {gaussian/exact}. Releasing moments "
        "instead of records reaches {moments}, and the JL transform with its exact threshold, which is nearly "
        "equivalent, {jl/exact}. Without privacy it is {non-private}.",
    ),
    "exp2": (
        "Exp. II: Theorem 2 as printed gives {mvg} (published: 0.238), the exact calibration with the same anchors "
        "{mvg/exact}, and exact i.i.d. noise {optimal}. The best share of the two anchors was {tau}, of those from "
        "0.55 to 0.95. Even the classical Gaussian mechanism, published at 0.2485, measures {gaussian}.",
    ),
    "exp3": (
        "Exp. III: a noisy data set has almost no information at epsilon = 1, with any mechanism: MVG as printed has "
        "an RSS of {mvg}, exactly calibrated {mvg/exact}, a random basis {random guess}. The rows differ by the "
        "eigenvectors of their noise, not by the data. Releasing moments instead solves the task: {moments}.",
    ),
}


def _list_results(run: Run) -> list[str]:
    """One or more sentences for each part that was run."""
    listed = []
    for part, sentences in _FINDINGS.items():
        best = run.best.get(part)
        if best:
            facts = {key: format_number(one.mean) for key, one in best.items()}
            if part == "exp1":
                facts["share"] = f"{best['constant 0'].mean / best['random guess'].mean:.2f}"
            if part == "exp2":
                facts["tau"] = best["mvg/exact"].setting.removeprefix("tau ")
            listed += [sentence.format_map(facts) for sentence in sentences]
    counts = count_verdicts(run.claims) if "claims" in run.chosen else {}
    for mode in MODES if counts else ():
        words = ", ".join(f"{many} {verdict}" for verdict, many in counts[mode].items())
        listed.append(f"Claims, {_MODE_NAMES[mode]}: {words}.")
    return listed


def _describe_task(best: Rows, task: str) -> str:
    """The gain in words; a difference is called one only where a test finds it at `LEVEL`."""
    listed = list_methods(best, task)
    adaptive = listed["learned"][1]
    published, exact = (
        min((listed[name] for name in names), key=lambda one: one[1].mean)
        for names in (("mvg", *RIVALS), ("mvg/exact", *EXACT))
    )
    others = {
        f"the best of the paper's methods as published ({published[0].removesuffix(', as published')})": published[1],
        f"the best of them exactly calibrated ({exact[0].removesuffix(', exact')})": exact[1],
        "moments with fixed noise at their best radius": listed["fixed"][1],
        "the same fit along standard directions": listed["standard"][1],
    }
    paired = task == "exp1"  # its trials have the same records in every row
    parts = [f"{_compare(adaptive, other, paired=paired)} that of {name}" for name, other in others.items()]
    title, error = EXPERIMENTS[task].title.replace(": ", ", "), format_number(adaptive.mean)
    return f"{title}: the error of an adaptive fit, {error}, is {'; '.join(parts)}."


def _describe_weights(gains: Mapping[str, CellResult], importance: int) -> str:
    found = {shape: gains[gain_key(importance, shape)] for shape in SHAPES}
    one, two = (_compare(found[shape], found["i.i.d."], paired=False) for shape in ("optimal", "binary"))
    what = f"three features count {importance:,} times as much as the others" if importance > 1 else "all count equally"
    return (
        f"Known weights, {what}: the weighted error with the optimal allocation is {one} that with i.i.d. noise; with "
        f"the paper's two groups it is {two} that with i.i.d. noise."
    )


def _compare(one: CellResult, other: CellResult, *, paired: bool) -> str:
    """How many times an error is smaller or larger, or that the trials do not show a difference."""
    ratio = other.mean / one.mean
    for low, high, times, word in ((one, other, ratio, "smaller"), (other, one, 1 / ratio, "larger")):
        if compare(low.errors, high.errors, paired=paired).p < LEVEL:
            words = f"{times:.2f}" if times < 10 else f"{float(f'{times:.2g}'):,.0f}"
            return f"{words} times {word} than"
    return "not distinguishable in these trials from"
