"""Build the report from the results: its tables and figures, in their order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from matrixdp.paper import (
    claims_table,
    comparison_figure,
    design_space_figure,
    directions_figure,
    experiment_tables,
    gains_report,
    noise_figure,
    runtime,
    setup_readings,
)
from matrixdp.paper.best_setting import Best, select_best
from matrixdp.paper.cells import CellResult, origins
from matrixdp.paper.claim_checks import Evidence
from matrixdp.paper.files import write_atomically
from matrixdp.paper.html_page import Section, page
from matrixdp.paper.key_results import key_results
from matrixdp.paper.report_table import ReportTable

_TIMES = 20


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
    def timings(self) -> runtime.Timings:
        """Seconds of the runtime table; empty if it was not requested."""
        return runtime.load_or_measure(self.out / "cache", _TIMES) if "runtime" in self.chosen else {}

    @property
    def simulated(self) -> bool:
        """Whether any part ran on simulated data."""
        return any("simulated" in origins(part) for part in self.results)

    @cached_property
    def claims(self) -> ReportTable | None:
        """The table of claims, or None if it was not requested."""
        if "claims" not in self.chosen:
            return None
        values = {(part, key): one.values for part, found in self.best.items() for key, one in found.items()}
        return claims_table.table(Evidence(values, self.timings), simulated=self.simulated)


def write_report(run: Run) -> Path:
    """Write all files and return the path of the report."""
    sections = [*_experiments(run), *_discussion(run), *_background(run)]
    for part in (part for section in sections for part in section.parts):
        if isinstance(part, ReportTable):
            part.write(run.out / "tables")
    sources = ", ".join(dict.fromkeys(origins(part) for part in ("exp1", "exp2", "exp3") if part in run.results))
    facts = {"Trials": str(run.trials), "Seed": str(run.seed)} | (
        {"Data": sources if run.simulated else f"{sources}, as published"} if sources else {}
    )
    html = page(facts=facts, results=key_results(run.best, run.claims), sections=sections, simulated=run.simulated)
    write_atomically(run.out / "report.html", html)
    return run.out / "report.html"


def _experiments(run: Run) -> list[Section]:
    """The three tables, each with its figure."""
    names = {"exp1": "Exp. I: regression", "exp2": "Exp. II: first component", "exp3": "Exp. III: covariance"}
    listed = []
    for part, title in names.items():
        if part in run.best:
            figure = comparison_figure.draw(part, run.best[part], run.out / "figures")
            listed.append(Section(part, title, [experiment_tables.table(part, run.best[part]), figure]))
    return listed


def _discussion(run: Run) -> list[Section]:
    """Where directional noise pays, directions, runtime, projection, and the claims."""
    listed, best = [], run.best
    if "gains" in best:
        listed.append(gains_report.section(best, run.out / "figures"))
    if "directions" in best:
        figure = directions_figure.draw(best["directions"], run.out / "figures")
        listed.append(Section("directions", "Noise directions", [figure, directions_figure.table(best["directions"])]))
    if "subspace" in best:
        own = {key: best["exp1"][key] for key in ("random guess", "mvg-1", "mvg-1/exact")}
        listed.append(
            Section("subspace", "Projection", [experiment_tables.table("subspace", {**best["subspace"], **own})])
        )
    if run.timings:
        listed.append(Section("runtime", "Runtime", [runtime.table(run.timings)]))
    if run.claims is not None:
        listed.append(Section("claims", "Claims", [run.claims]))
    return listed


def _background(run: Run) -> list[Section]:
    """Readings of the setup, figures, and all settings that were tried."""
    listed = []
    if "readings" in run.chosen:
        table = setup_readings.table(run.best["exp1"]["non-private"].summary.mean)
        listed.append(Section("readings", "What the published figures fit", [table]))
    if "pictures" in run.chosen:
        drawn = [noise_figure.draw(run.out / "figures", run.seed), design_space_figure.draw(run.out / "figures")]
        listed.append(Section("pictures", "Noise and design space", drawn))
    swept = {part: results for part, results in run.results.items() if part != "directions"}
    if swept:
        listed.append(Section("sweeps", "Sweeps", [experiment_tables.sweep(swept)], folded=True))
    return listed
