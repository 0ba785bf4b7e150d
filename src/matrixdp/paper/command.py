"""The one command: run, tabulate, draw, report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from matrixdp.errors import MissingExtraError, ParameterError
from matrixdp.paper import claims, comparison_figure, design_space, directions_figure, experiments, noise_picture
from matrixdp.paper import readings as readings_table
from matrixdp.paper import runtime as runtime_table
from matrixdp.paper.findings import findings
from matrixdp.paper.points import DATA, Result, origins, points, write_atomically
from matrixdp.paper.report import Section, page
from matrixdp.paper.runner import run_points
from matrixdp.paper.selection import Best, select_best
from matrixdp.paper.sheet import Sheet
from matrixdp.paper.verdicts import Evidence

PARTS = ("exp1", "exp2", "exp3", "directions", "runtime", "subspace", "readings", "pictures", "claims")
_NEEDS = {
    "claims": ("exp1", "exp2", "exp3", "directions", "runtime", "subspace"),
    "readings": ("exp1",),
    "subspace": ("exp1",),
}
_TIMES = 20


def reproduce(
    parts: Sequence[str] = (),
    trials: int = 100,
    seed: int = 0,
    out: Path | str = Path("reproduction"),
    *,
    processes: int = 2,
    progress: TextIO | None = None,
) -> Path:
    """Repeat the paper's experiments and write ``report.html``, figures and tables.

    Parameters
    ----------
    parts : sequence of str
        Of `PARTS`; all by default. What a part needs is run as well.
    trials : int
        At least 2.
    seed : int
        Of the streams: the same seed gives the same figures.
    out : path
        Folder to write to. Trials that it already has are not run again, so an interrupted run goes on.
    processes : int
    progress : text stream, optional
        Where to say how far it is; standard error by default.

    Returns
    -------
    Path
        Of the report.

    Privacy
    -------
    Simulations on public data with seeded noise: they protect nothing.
    """
    chosen = _chosen(parts)
    for name, value, least in (("trials", trials, 2), ("seed", seed, 0), ("processes", processes, 1)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ParameterError(f"{name} must be an integer of at least {least}, got {value!r} instead.")
    _require_extra()
    out = Path(out)
    measured = [part for part in DATA if part in chosen]
    asked = [point for part in measured for point in points(part, trials=trials, seed=seed)]
    results = run_points(asked, out / "cache", processes=processes, out=progress)
    by_part = {part: [result for result in results if result.point.part == part] for part in measured}
    return _write(chosen, by_part, out, trials=trials, seed=seed)


def _chosen(parts: Sequence[str]) -> list[str]:
    """The parts asked for and what they need, in the report's order."""
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        raise ParameterError(f"parts must be among {', '.join(PARTS)}, got {', '.join(unknown)} instead.")
    wanted = set(parts or PARTS)
    wanted |= {need for part in tuple(wanted) for need in _NEEDS.get(part, ())}
    return [part for part in PARTS if part in wanted]


def _require_extra() -> None:
    try:
        import matplotlib  # noqa: F401
        import sklearn  # noqa: F401
    except ImportError:
        raise MissingExtraError(
            "the experiments need scikit-learn and matplotlib: pip install 'matrixdp[paper]'."
        ) from None


def _write(chosen: list[str], by_part: dict[str, list[Result]], out: Path, *, trials: int, seed: int) -> Path:
    figures, tables = out / "figures", out / "tables"
    best = {part: select_best(part, results) for part, results in by_part.items()}
    sections = [_experiment(part, best[part], figures) for part in ("exp1", "exp2", "exp3") if part in best]
    if "directions" in best:
        pictures = [directions_figure.draw(best["directions"], figures), directions_figure.table(best["directions"])]
        sections.append(Section("directions", "Effect of noise directions", "", pictures))
    if "subspace" in best:
        joined = {**best["subspace"], **{key: best["exp1"][key] for key in ("mvg-1", "mvg-1/exact")}}
        sections.append(Section("subspace", "Subspace projection", "", [experiments.table("subspace", joined)]))
    timings = runtime_table.load_or_measure(out / "cache", _TIMES) if "runtime" in chosen else {}
    if timings:
        sections.append(Section("runtime", "Runtime", "", [runtime_table.table(timings)]))
    if "pictures" in chosen:
        drawn = [noise_picture.draw(figures, seed), design_space.draw(figures)]
        sections.append(Section("pictures", "Noise and design space", "", drawn))
    if "readings" in chosen:
        table = readings_table.table(best["exp1"]["non-private"].summary.mean)
        sections.append(Section("readings", "What the published figures fit", "", [table]))
    simulated = any("simulated" in origins(part) for part in by_part)
    judged = None
    if "claims" in chosen:
        values = {(part, key): one.values for part, found in best.items() for key, one in found.items()}
        judged = claims.table(Evidence(values, timings), simulated=simulated)
        sections.insert(0, Section("claims", "Claims", "", [judged]))
    if by_part:
        swept = {part: results for part, results in by_part.items() if part != "directions"}
        sections.append(Section("sweeps", "Sweeps", "", [experiments.sweep(swept)], folded=True))
    for part in (part for section in sections for part in section.parts):
        if isinstance(part, Sheet):
            part.write(tables)
    sources = ", ".join(dict.fromkeys(origins(part) for part in ("exp1", "exp2", "exp3") if part in by_part))
    facts = {"Trials": str(trials), "Seed": str(seed)} | ({"Data": sources} if sources else {})
    html = page(facts=facts, findings=findings(best, judged), sections=sections, simulated=simulated)
    write_atomically(out / "report.html", html)
    return out / "report.html"


def _experiment(part: str, best: dict[str, Best], figures: Path) -> Section:
    title = experiments.TITLES[part].split(",")[0]
    return Section(part, title, "", [experiments.table(part, best), comparison_figure.draw(part, best, figures)])
