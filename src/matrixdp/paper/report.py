"""`reproduce` runs the experiments, draws the figures as SVG that follows the page's colours, and writes the report."""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TextIO

import numpy as np

from matrixdp.checks import check_integer
from matrixdp.design import Design, binary, isotropic, make_design
from matrixdp.design.explain import outline_ellipse
from matrixdp.design.theorem2 import VARIANTS, precision_budget
from matrixdp.domain.bounds import Bounds
from matrixdp.errors import ParameterError
from matrixdp.noise import Stream
from matrixdp.paper import tables
from matrixdp.paper.claims import count_verdicts, tabulate_claims
from matrixdp.paper.components import FIRST, MOVEMENT
from matrixdp.paper.experiment import CALIBRATIONS
from matrixdp.paper.gains import EPSILONS, PANELS, direction_key
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
from matrixdp.privacy import Privacy
from matrixdp.queries import Identity
from matrixdp.release.output_folder import write_file
from matrixdp.release.registered import load_plugins
from matrixdp.report.page import Block, Page, Section, fold, say
from matrixdp.report.svg import Curve, Drawing, Scale, draw_curves, make_image
from matrixdp.types import Floats
from matrixdp.version import __version__

_KINDS = ("p-mark", "p-other", "p-green", "p-third", "p-grey")
_SAMPLES, _SHARE, _ANGLE = 250, 0.9, math.radians(35)
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


@dataclass(frozen=True)
class Picture:
    """A figure of the report, with its caption; one from simulated data is marked in its title and caption."""

    name: str
    title: str
    caption: str
    drawings: Sequence[Drawing]
    simulated: bool = False

    def write(self, folder: Path) -> None:
        """Write the image to a file that needs no page."""
        write_file(folder / f"{self.name}.svg", self.render(inline=False))

    def render(self, *, inline: bool = True) -> str:
        """The image; an inline one is for a page, which has the style."""
        mark = f"{SIMULATED}: " * self.simulated
        return make_image(self.drawings, mark + self.title, mark + self.caption, inline=inline)


def draw_directions(best: Mapping[str, CellResult]) -> Picture:
    """Three panels, as in the paper: solid lines are the exact calibration, dashed ones Theorem 2 as printed."""
    panels = []
    for panel, sets in PANELS.items():
        curves = []
        for kind, name in zip(_KINDS, sets, strict=False):
            for calibration in ("exact", "theorem2"):
                found = [best[direction_key(panel, calibration, name, at)].summary for at in EPSILONS]
                points = np.array([EPSILONS, [one.mean for one in found]], float)
                exact, kind = calibration == "exact", "p-grey" if name == "i.i.d." else kind
                halves = np.array([one.half for one in found]) if exact else None
                curves.append(Curve(points, name if exact else "", kind, dashed=not exact, halves=halves))
        names, title = ("epsilon", EXPERIMENTS[panel].error), EXPERIMENTS[panel].title
        log, errors = panel == "exp2", [float(y) for curve in curves for y in curve.points[1]]
        finite = [error for error in errors if math.isfinite(error) and (error > 0 or not log)]
        low, high = min(finite), max(finite)
        ends = Scale(low / 1.15, high * 1.15, log=True) if log else Scale(0.0, high * 1.05)
        panels.append(draw_curves(curves, Scale(0.09, 34.0, log=True), ends, names, title=title))
    caption = (
        "Error over epsilon, delta = 1/N, 95% of the budget on the named features, with 95% intervals. Solid: the "
        "exact calibration. Dashed: Theorem 2 as printed."
    )
    return Picture("directions", "Effect of noise directions", caption, panels, is_simulated("directions"))


def make_designs(angle: float) -> tuple[Design, Design]:
    """Directional and i.i.d. noise for two features in [-1, 1]; the utility direction lies at `angle`."""
    query, privacy = Identity(Bounds([-1.0, -1.0], [1.0, 1.0]), records=_SAMPLES), Privacy(1.0, 1e-3)
    basis = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    directional = make_design(query, privacy, allocation=binary(1, _SHARE), directions=basis)
    return directional, make_design(query, privacy, allocation=isotropic())


def draw_noise(seed: int) -> Picture:
    """Directional against i.i.d. noise of two features, at the same guarantee: samples, ellipses, directions."""
    panels = {"along a feature": 0.0, "along a rotated direction": _ANGLE}
    spread = [math.sqrt(float(make_designs(angle)[0].colcov.variances.min())) for angle in panels.values()]
    iid = math.sqrt(float(make_designs(0.0)[1].colcov.variances.min()))
    caption = (
        "Noise in one record of two features in [-1, 1], epsilon = 1, delta = 0.001, exactly calibrated, "
        f"{_SHARE:.0%} of the budget on the utility direction. Standard deviation along it: {spread[0]:.3g} "
        f"where it is a feature's axis, {spread[1]:.3g} where it is rotated, {iid:.3g} for i.i.d. noise. "
        "Ellipses contain 95%. The gain along the direction is offset by more noise across it."
    )
    title = "Directional and i.i.d. noise with the same guarantee"
    return Picture("noise", title, caption, [_draw_samples(name, at, seed) for name, at in panels.items()])


def _draw_samples(title: str, angle: float, seed: int) -> Drawing:
    stream, designs = Stream(seed=seed).child(77), make_designs(angle)
    zeros = np.zeros((_SAMPLES, 2))
    noise = [one.release(zeros, stream=stream.child(i), simulation=True).matrix for i, one in enumerate(designs)]
    reach = float(max(np.abs(one).max() for one in noise)) * 1.05
    scale, kinds = Scale(-reach, reach), {"directional": "p-other", "i.i.d.": "p-mark"}
    curves = [Curve(one.T, kind=kind, scattered=True) for one, kind in zip(noise, kinds.values(), strict=True)]
    for (name, kind), design in zip(kinds.items(), designs, strict=True):
        curves.append(Curve(outline_ellipse(design.colcov.matrix()), name, kind))
    ends = np.array([-reach, reach]) / max(abs(math.cos(angle)), abs(math.sin(angle)))
    direction = np.stack([math.cos(angle) * ends, math.sin(angle) * ends])
    curves.append(Curve(direction, "utility direction", "p-green", dashed=True))
    return draw_curves(curves, scale, scale, ("first feature", "second feature"), title=title, size=(300.0, 300.0))


def draw_design_space() -> Picture:
    """The design space of Exp. II, log-log: every condition on the product is a line, private on its lower left."""
    privacy, scale = FIRST.budget(), Scale(10**-2.5, 1e5, log=True)
    options = {"sensitivity": 2 * MOVEMENT.gamma / MOVEMENT.records, "gamma": MOVEMENT.gamma}
    found = {name: precision_budget(privacy, MOVEMENT.shape, variant=name, **options) for name in VARIANTS}
    # The exact condition is not about these norms. Up to 'exact, any' it holds whatever the covariances.
    largest = (privacy.mu / MOVEMENT.sensitivity.frobenius) ** 2
    found |= {"exact, any": largest, "exact, i.i.d.": largest * MOVEMENT.shape[0]}
    design = make_design(MOVEMENT, privacy, allocation=binary(FIRST.important, 0.95))
    norm = math.sqrt(float((1 / design.colcov.variances**2).sum()))
    below = np.concatenate([_bound_product(found["theorem2"], scale), [[scale.low], [scale.low]]], axis=1)
    kinds = ("p-other", "p-third", "p-green", "p-mark", "p-grey")
    curves = [
        Curve(below, kind="p-other", fill=0.15),
        *(
            Curve(_bound_product(limit, scale), f"{CALIBRATIONS.get(name, name)}: {limit:.3g}", kind)
            for kind, (name, limit) in zip(kinds, found.items(), strict=True)
        ),
        Curve(np.full((2, 1), norm), f"dot: exact, 95% on two anchors: {norm**2:.3g}", "p-text", halves=np.zeros(1)),
    ]
    names = ("norm of the singular values of Sigma's inverse", "norm of those of Psi's inverse")
    drawing = draw_curves(curves, scale, scale, names, size=(420.0, 420.0))
    caption = (
        "Each line bounds the product of the two norms, which measure precision, not noise: farther to the upper right "
        "is less noise. Shaded: what Theorem 2 as printed allows. The exact condition looks at the largest change in "
        "the noise's own units, not at norms; a directional design (dot) lies beyond the line that holds for every "
        "covariance, and is private all the same. The legend gives the limit on the product."
    )
    return Picture("design-space", "The design space of Exp. II", caption, [drawing])


def _bound_product(limit: float, scale: Scale) -> Floats:
    """The ends of the line on which the product of two numbers is `limit`, within the axes; of shape (2, 2)."""
    ends = np.clip([limit / scale.high, limit / scale.low], scale.low, scale.high)
    return np.stack([ends, limit / ends])


Shown = ReportTable | Picture


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


def _show_part(part: str, run: Run) -> list[Shown]:
    """The tables and figures of a section."""
    best = run.best
    match part:
        case "gains":
            return [tables.tabulate_gains(best)]
        case "directions":
            return [draw_directions(best[part])]
        case "subspace":
            own = {key: best["exp1"][key] for key in ("random guess", "mvg-1", "mvg-1/exact")}
            return [tables.tabulate_experiment(part, {**best[part], **own})]
        case "runtime":
            return [tables.tabulate_runtime(run.timings)]
        case "claims":
            return [run.claims]
        case "pictures":
            return [draw_noise(run.seed), draw_design_space()]
    return [tables.tabulate_experiment(part, best[part])]
