"""The report: its sections in their order, what was found in words, and the page that holds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from matrixdp.paper import figures, tables
from matrixdp.paper.cells import Best, CellResult, origins, select_best, write_atomically
from matrixdp.paper.claims import LEVEL, MODES, Evidence, compare, count_verdicts, tabulate_claims
from matrixdp.paper.gains import IMPORTANCES, SHAPES, gain_key, weighted_task
from matrixdp.paper.measurements import Timings, load_timings, tabulate_readings, tabulate_runtime
from matrixdp.paper.tables import EXACT, EXPERIMENTS, RIVALS, SIMULATED, ReportTable, Rows, list_methods, number
from matrixdp.report.page import Block, Page, Section, fold, list_items, render_page, say
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
    """The parts that were requested and what was measured.

    Attributes
    ----------
    chosen : list of str
        Parts, with those that they need.
    results : dict
        Results of each part that has trials.
    out : Path
        Folder of the report.
    trials, seed : int
    """

    chosen: list[str]
    results: dict[str, list[CellResult]]
    out: Path
    trials: int
    seed: int

    @cached_property
    def best(self) -> dict[str, dict[str, Best]]:
        """The best setting of each row, by part and key."""
        return {part: select_best(part, results) for part, results in self.results.items()}

    @cached_property
    def timings(self) -> Timings:
        """Seconds of the runtime table; empty if it was not requested."""
        return load_timings(self.out / "cache", _TIMES) if "runtime" in self.chosen else {}

    @property
    def simulated(self) -> bool:
        """Whether any part ran on simulated data."""
        return tables.is_simulated(*self.results)

    @property
    def figures(self) -> Path:
        """Folder of the figures."""
        return self.out / "figures"

    @cached_property
    def claims(self) -> ReportTable | None:
        """The table of claims, or None if it was not requested."""
        if "claims" not in self.chosen:
            return None
        values = {(part, key): one.values for part, found in self.best.items() for key, one in found.items()}
        return tabulate_claims(Evidence(values, self.timings), simulated=self.simulated)


def write_report(run: Run) -> Path:
    """Write all files and return the path of the report."""
    sections = [*_show_experiments(run), *_show_discussion(run), *_show_background(run)]
    sources = ", ".join(dict.fromkeys(origins(part) for part in EXPERIMENTS if part in run.results))
    facts = [f"Trials: {run.trials}", f"Seed: {run.seed}"]
    facts += [f"Data: {sources}{'' if run.simulated else ', as published'}"] if sources else []
    page = make_page(facts, _list_results(run), sections, simulated=run.simulated)
    write_atomically(run.out / "report.html", render_page(page))
    return run.out / "report.html"


def make_page(facts: Sequence[str], results: Sequence[str], sections: Sequence[Section], *, simulated: bool) -> Page:
    """The page of the report."""
    return Page(
        title="MVG Mechanism, reproduced",
        heading="The experiments of “MVG Mechanism” (CCS 2018), reproduced",
        kicker=" · ".join([*facts, f"matrixdp {__version__}"]),
        banner=SIMULATED if simulated else "",
        contents=True,
        sections=[
            Section("Results", [list_items(results)], anchor="findings"),
            *sections,
            Section("Method", [say(*_METHOD)], anchor="method"),
        ],
        style=_STYLE,
    )


def _show_table(run: Run, table: ReportTable) -> Block:
    """A table, which is also written to its files."""
    table.write(run.out / "tables")
    return Block("words", table)


def show_picture(picture: figures.Picture) -> Block:
    """A figure with its caption."""
    return Block("picture", picture)


def _show_experiments(run: Run) -> list[Section]:
    """The three tables, each with its figure."""
    listed = []
    for part, (title, _, _) in EXPERIMENTS.items():
        if part in run.best:
            figure = figures.draw_comparison(part, run.best[part], run.figures)
            table = _show_table(run, tables.tabulate_experiment(part, run.best[part]))
            listed.append(Section(title, [table, show_picture(figure)], anchor=part))
    return listed


def _show_discussion(run: Run) -> list[Section]:
    """Where directional noise pays, directions, runtime, projection, and the claims."""
    listed, best = [], run.best
    if "gains" in best:
        drawn = [figures.draw_tasks(best, run.figures), figures.draw_weights(best["gains"], run.figures)]
        table = _show_table(run, tables.tabulate_gains(best))
        blocks = [list_items(describe_gains(best)), *map(show_picture, drawn), table]
        listed.append(Section(tables.GAINS, blocks, anchor="gains"))
    if "directions" in best:
        figure = show_picture(figures.draw_directions(best["directions"], run.figures))
        table = _show_table(run, tables.tabulate_directions(best["directions"]))
        listed.append(Section("Noise directions", [figure, table], anchor="directions"))
    if "subspace" in best:
        own = {key: best["exp1"][key] for key in ("random guess", "mvg-1", "mvg-1/exact")}
        table = _show_table(run, tables.tabulate_experiment("subspace", {**best["subspace"], **own}))
        listed.append(Section("Projection", [table], anchor="subspace"))
    if run.timings:
        listed.append(Section("Runtime", [_show_table(run, tabulate_runtime(run.timings))], anchor="runtime"))
    if run.claims is not None:
        listed.append(Section("Claims", [_show_table(run, run.claims)], anchor="claims"))
    return listed


def _show_background(run: Run) -> list[Section]:
    """Readings of the setup, figures, and all settings that were tried."""
    listed = []
    if "readings" in run.chosen:
        table = _show_table(run, tabulate_readings(run.best["exp1"]["non-private"].summary.mean))
        listed.append(Section("What the published figures fit", [table], anchor="readings"))
    if "pictures" in run.chosen:
        drawn = [figures.draw_noise(run.figures, run.seed), figures.draw_design_space(run.figures)]
        listed.append(Section("Noise and design space", [*map(show_picture, drawn)], anchor="pictures"))
    swept = {part: results for part, results in run.results.items() if part != "directions"}
    if swept:
        table = _show_table(run, tables.tabulate_sweeps(swept))
        listed.append(Section("Sweeps", [fold("Show", table)], anchor="sweeps"))
    return listed


# What was found, in words


def _list_results(run: Run) -> list[str]:
    """One or more sentences for each part that was run."""
    describe = {"exp1": _describe_regression, "exp2": _describe_component, "exp3": _describe_covariance}
    listed = [sentence for part, words in describe.items() if part in run.best for sentence in words(run.best[part])]
    counts = {} if run.claims is None else count_verdicts(run.claims)
    for mode in MODES if counts else ():
        words = ", ".join(f"{many} {verdict}" for verdict, many in counts[mode].items())
        listed.append(f"Claims, {_MODE_NAMES[mode]}: {words}.")
    return listed


def _show(best: Mapping[str, Best], key: str) -> str:
    return number(best[key].summary.mean)


def _describe_regression(best: Mapping[str, Best]) -> list[str]:
    part = best["constant 0"].summary.mean / best["random guess"].summary.mean
    return [
        f"Exp. I: with the noise that Theorem 2 requires, MVG-1 has an RMSE of {_show(best, 'mvg-1')}. That is about "
        f"what the constant 0 has ({_show(best, 'constant 0')}), which kernel ridge regression predicts from pure "
        f"noise. The target is skewed towards 0, so this alone is {part:.2f} of the random guess "
        f"({_show(best, 'random guess')}), near the published rows' 0.41 to 0.62: beating the random guess says "
        "nothing about the mechanism.",
        f"With the exact calibration MVG-1 reaches {_show(best, 'mvg-1/exact')} and i.i.d. noise "
        f"{_show(best, 'gaussian/exact')}. Releasing moments instead of records reaches {_show(best, 'moments')}, "
        f"and the JL transform with its exact threshold, which is nearly equivalent, {_show(best, 'jl/exact')}. "
        f"Without privacy it is {_show(best, 'non-private')}.",
    ]


def _describe_component(best: Mapping[str, Best]) -> list[str]:
    return [
        f"Exp. II: Theorem 2 as printed gives {_show(best, 'mvg')} (published: 0.238), the exact calibration with "
        f"the same anchors {_show(best, 'mvg/exact')}, and exact i.i.d. noise {_show(best, 'optimal')}. The best "
        f"share of the two anchors was {best['mvg/exact'].setting.removeprefix('tau ')}, of those from 0.55 to 0.95. "
        f"Even the classical Gaussian mechanism, published at 0.2485, measures {_show(best, 'gaussian')}."
    ]


def _describe_covariance(best: Mapping[str, Best]) -> list[str]:
    return [
        "Exp. III: a noisy data set has almost no information at epsilon = 1, with any mechanism: MVG as printed has "
        f"an RSS of {_show(best, 'mvg')}, exactly calibrated {_show(best, 'mvg/exact')}, a random basis "
        f"{_show(best, 'random guess')}. The rows differ by the eigenvectors of their noise, not by the data. "
        f"Releasing moments instead solves the task: {_show(best, 'moments')}."
    ]


def describe_gains(best: Rows) -> list[str]:
    """What was measured, in words; a difference is called one only where a test finds it at `LEVEL`."""
    tasks = [_describe_task(best, task) for task in EXPERIMENTS]
    return tasks + [_describe_weights(best["gains"], importance) for importance in IMPORTANCES]


def _describe_task(best: Rows, task: str) -> str:
    listed = list_methods(best, task)
    adaptive = listed["learned"][1]
    published = _least(listed, ("mvg", *RIVALS))
    exact = _least(listed, ("mvg/exact", *EXACT))
    others = {
        f"the best of the paper's methods as published ({published[0].removesuffix(', as published')})": published[1],
        f"the best of them exactly calibrated ({exact[0].removesuffix(', exact')})": exact[1],
        "moments with fixed noise at their best radius": listed["fixed"][1],
        "the same fit along standard directions": listed["standard"][1],
    }
    paired = task == "exp1"  # its trials have the same records in every row
    parts = [f"{_compare(adaptive, other, paired=paired)} that of {name}" for name, other in others.items()]
    title, error = EXPERIMENTS[task][0].replace(": ", ", "), number(adaptive.summary.mean)
    return f"{title}: the error of an adaptive fit, {error}, is {'; '.join(parts)}."


def _least(listed: Mapping[str, tuple[str, Best]], names: Sequence[str]) -> tuple[str, Best]:
    return min((listed[name] for name in names), key=lambda one: one[1].summary.mean)


def _describe_weights(gains: Mapping[str, Best], importance: int) -> str:
    found = {shape: gains[gain_key(weighted_task(importance), shape)] for shape in SHAPES}
    one, two = (_compare(found[shape], found["i.i.d."], paired=False) for shape in ("optimal", "binary"))
    what = f"three features count {importance:,} times as much as the others" if importance > 1 else "all count equally"
    return (
        f"Known weights, {what}: the weighted error with the optimal allocation is {one} that with i.i.d. noise; with "
        f"the paper's two groups it is {two} that with i.i.d. noise."
    )


def _compare(one: Best, other: Best, *, paired: bool) -> str:
    """How many times an error is smaller or larger, or that the trials do not show a difference."""
    ratio = other.summary.mean / one.summary.mean
    if compare(one.values, other.values, paired=paired).p < LEVEL:
        return f"{_times(ratio)} times smaller than"
    if compare(other.values, one.values, paired=paired).p < LEVEL:
        return f"{_times(1 / ratio)} times larger than"
    return "not distinguishable in these trials from"


def _times(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 10 else f"{float(f'{ratio:.2g}'):,.0f}"
