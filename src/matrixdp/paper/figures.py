"""The figures of the report, as SVG that follows the colours of the page."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from matrixdp.design import Design, binary, isotropic, make_design
from matrixdp.design.explain import outline_ellipse
from matrixdp.design.theorem2 import VARIANTS, precision_budget
from matrixdp.domain.bounds import Bounds
from matrixdp.noise import Stream
from matrixdp.paper.components import FIRST, MOVEMENT
from matrixdp.paper.experiment import CALIBRATIONS
from matrixdp.paper.gains import EPSILONS, PANELS, direction_key
from matrixdp.paper.tables import SIMULATED
from matrixdp.paper.trials import EXPERIMENTS, CellResult, is_simulated
from matrixdp.privacy import Privacy
from matrixdp.queries import Identity
from matrixdp.release.output_folder import write_file
from matrixdp.report.svg import Curve, Drawing, Scale, draw_curves, make_image
from matrixdp.types import Floats

_KINDS = ("p-mark", "p-other", "p-green", "p-third", "p-grey")
_SAMPLES, _SHARE, _ANGLE = 250, 0.9, math.radians(35)


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
