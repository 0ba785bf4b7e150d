"""Directional against i.i.d. noise in two dimensions, at the same guarantee: samples, ellipses, utility direction."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from matrixdp.design import Design, binary, isotropic, make_design
from matrixdp.domain.bounds import Bounds
from matrixdp.noise import Stream
from matrixdp.paper.plotting import COLOURS, Picture, draw_picture, place_legend
from matrixdp.privacy import Privacy
from matrixdp.queries import Identity
from matrixdp.types import Floats

_SAMPLES = 250
_ANGLE = math.radians(35)
_SHARE = 0.9
_PRIVACY = Privacy(1.0, 1e-3)
_RADIUS = 2.4477  # contains 95% of a normal distribution in the plane


def designs(angle: float) -> tuple[Design, Design]:
    """Directional and i.i.d. noise for two features in [-1, 1]; the utility direction lies at `angle`."""
    query = Identity(Bounds([-1.0, -1.0], [1.0, 1.0]), records=_SAMPLES)
    basis = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    directional = make_design(query, _PRIVACY, allocation=binary(1, _SHARE), directions=basis)
    return directional, make_design(query, _PRIVACY, allocation=isotropic())


def draw(folder: Path, seed: int) -> Picture:
    """Left along a feature's axis, right along a rotated direction."""
    directional, plain = designs(0.0)
    rotated = designs(_ANGLE)[0]
    spread = [math.sqrt(float(one.colcov.variances.min())) for one in (directional, rotated)]
    iid = math.sqrt(float(plain.colcov.variances.min()))

    def paint(axes: list[Any], narrow: bool) -> None:
        for ax, angle, title in ((axes[0], 0.0, "along a feature"), (axes[1], _ANGLE, "along a rotated direction")):
            _panel(ax, angle, title, seed)
        place_legend(axes[1], narrow=narrow)

    return draw_picture(
        paint,
        folder,
        "noise",
        title="Directional and i.i.d. noise with the same guarantee",
        caption=(
            f"Noise in one record of two features in [-1, 1], epsilon = 1, delta = 0.001, exactly calibrated, "
            f"{_SHARE:.0%} of the budget on the utility direction. Standard deviation along it: {spread[0]:.3g} "
            f"where it is a feature's axis, {spread[1]:.3g} where it is rotated, {iid:.3g} for i.i.d. noise. "
            "Ellipses contain 95%. The gain along the direction is offset by more noise across it."
        ),
        simulated=False,
        wide=(9.0, 4.2),
        narrow=(4.4, 8.2),
        panels=2,
        sharex=True,
        sharey=True,
    )


def _panel(ax: Any, angle: float, title: str, seed: int) -> None:
    from matplotlib.patches import Ellipse

    stream = Stream(seed=seed).child(77)
    for i, (design, colour, name) in enumerate(
        zip(designs(angle), (COLOURS[1], COLOURS[0]), ("directional", "i.i.d."), strict=True)
    ):
        noise: Floats = design.release(np.zeros((_SAMPLES, 2)), stream=stream.child(i), simulation=True).matrix
        ax.plot(*noise.T, "o", color=colour, markersize=2.2, alpha=0.5, label=name)
        sizes = 2 * _RADIUS * np.sqrt(design.colcov.variances)
        ax.add_patch(Ellipse((0, 0), *sizes, angle=math.degrees(angle) if i == 0 else 0, fill=False, ec=colour, lw=1.6))
    ax.axline((0, 0), slope=math.tan(angle), color=COLOURS[2], linewidth=1.6, label="utility direction")
    ax.set_aspect("equal")
    ax.set_title(title)
    ax.set_xlabel("first feature")
    ax.set_ylabel("second feature")
