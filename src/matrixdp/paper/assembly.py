"""From results to the report: which tables and figures stand in it, and in which order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from matrixdp.paper import claims, comparison_figure, design_space, directions_figure, experiments, noise_picture
from matrixdp.paper import readings as readings_table
from matrixdp.paper import runtime as runtime_table
from matrixdp.paper.findings import findings
from matrixdp.paper.points import Result, origins, write_atomically
from matrixdp.paper.report import Section, page
from matrixdp.paper.selection import Best, select_best
from matrixdp.paper.sheet import Sheet
from matrixdp.paper.verdicts import Evidence

_TIMES = 20


@dataclass(frozen=True, eq=False)
class Run:
    """What was asked for and what was measured.

    Attributes
    ----------
    chosen : list of str
        Parts, with all that they need.
    results : dict
        Of each part that has trials.
    out : Path
    trials, seed : int
    """

    chosen: list[str]
    results: dict[str, list[Result]]
    out: Path
    trials: int
    seed: int

    @cached_property
    def best(self) -> dict[str, dict[str, Best]]:
        """The best of each row, by part and key."""
        return {part: select_best(part, results) for part, results in self.results.items()}

    @cached_property
    def timings(self) -> runtime_table.Timings:
        """Seconds of the runtime table; empty where it was not asked for."""
        return runtime_table.load_or_measure(self.out / "cache", _TIMES) if "runtime" in self.chosen else {}

    @property
    def simulated(self) -> bool:
        """Whether any part ran on a stand-in."""
        return any("simulated" in origins(part) for part in self.results)

    @cached_property
    def claims(self) -> Sheet | None:
        """The table of claims."""
        if "claims" not in self.chosen:
            return None
        values = {(part, key): one.values for part, found in self.best.items() for key, one in found.items()}
        return claims.table(Evidence(values, self.timings), simulated=self.simulated)


def write_report(run: Run) -> Path:
    """Write all files; the report's path."""
    sections = [*_experiments(run), *_discussion(run), *_background(run)]
    for part in (part for section in sections for part in section.parts):
        if isinstance(part, Sheet):
            part.write(run.out / "tables")
    sources = ", ".join(dict.fromkeys(origins(part) for part in ("exp1", "exp2", "exp3") if part in run.results))
    facts = {"Trials": str(run.trials), "Seed": str(run.seed)} | (
        {"Data": sources if run.simulated else f"{sources}, as published"} if sources else {}
    )
    html = page(facts=facts, findings=findings(run.best, run.claims), sections=sections, simulated=run.simulated)
    write_atomically(run.out / "report.html", html)
    return run.out / "report.html"


def _experiments(run: Run) -> list[Section]:
    """The three tables, each with its figure."""
    names = {"exp1": "Exp. I: regression", "exp2": "Exp. II: first component", "exp3": "Exp. III: covariance"}
    listed = []
    for part, title in names.items():
        if part in run.best:
            figure = comparison_figure.draw(part, run.best[part], run.out / "figures")
            listed.append(Section(part, title, [experiments.table(part, run.best[part]), figure]))
    return listed


def _discussion(run: Run) -> list[Section]:
    """Directions, runtime, projection, and the claims."""
    listed, best = [], run.best
    if "directions" in best:
        figure = directions_figure.draw(best["directions"], run.out / "figures")
        listed.append(Section("directions", "Noise directions", [figure, directions_figure.table(best["directions"])]))
    if "subspace" in best:
        own = {key: best["exp1"][key] for key in ("random guess", "mvg-1", "mvg-1/exact")}
        listed.append(Section("subspace", "Projection", [experiments.table("subspace", {**best["subspace"], **own})]))
    if run.timings:
        listed.append(Section("runtime", "Runtime", [runtime_table.table(run.timings)]))
    if run.claims is not None:
        listed.append(Section("claims", "Claims", [run.claims]))
    return listed


def _background(run: Run) -> list[Section]:
    """Readings, pictures and sweeps."""
    listed = []
    if "readings" in run.chosen:
        table = readings_table.table(run.best["exp1"]["non-private"].summary.mean)
        listed.append(Section("readings", "What the published figures fit", [table]))
    if "pictures" in run.chosen:
        drawn = [noise_picture.draw(run.out / "figures", run.seed), design_space.draw(run.out / "figures")]
        listed.append(Section("pictures", "Noise and design space", drawn))
    swept = {part: results for part, results in run.results.items() if part != "directions"}
    if swept:
        listed.append(Section("sweeps", "Sweeps", [experiments.sweep(swept)], folded=True))
    return listed
