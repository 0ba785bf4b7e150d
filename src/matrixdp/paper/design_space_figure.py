"""The design space of Exp. II: how much precision the two covariances may have together."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from matrixdp.design import binary, make_design
from matrixdp.design.theorem2 import VARIANTS, precision_budget
from matrixdp.paper.component import IMPORTANT, MOMENT, QUERY
from matrixdp.paper.mechanisms import CALIBRATIONS
from matrixdp.paper.plotting import COLOURS, INK, Picture, draw_picture, place_legend


def limits() -> dict[str, float]:
    """Largest ``||sigma(Sigma^-1)|| ||sigma(Psi^-1)||`` that each calibration allows.

    The exact condition is not about these norms. For i.i.d. noise it allows the value under 'exact, i.i.d.'; up to
    'exact, any' it holds whatever the covariances.
    """
    privacy = MOMENT.budget()
    sensitivity = 2 * QUERY.gamma / QUERY.records
    found = {
        name: precision_budget(privacy, QUERY.shape, sensitivity=sensitivity, gamma=QUERY.gamma, variant=name)
        for name in VARIANTS
    }
    largest = (privacy.mu / QUERY.sensitivity.frobenius) ** 2
    return {**found, "exact, any": largest, "exact, i.i.d.": largest * QUERY.shape[0]}


def draw(folder: Path) -> Picture:
    """Log-log: every condition on the product is a straight line, private on its lower left."""
    axis, found = np.logspace(-2.5, 5, 50), limits()
    colours = dict(zip(found, (COLOURS[1], COLOURS[5], COLOURS[3], COLOURS[0], COLOURS[2]), strict=True))
    design = make_design(QUERY, MOMENT.budget(), allocation=binary(IMPORTANT, 0.95))
    norm = math.sqrt(float((1 / design.colcov.variances**2).sum()))

    def paint(axes: list[Any], narrow: bool) -> None:
        ax = axes[0]
        for name, limit in found.items():
            ax.plot(axis, limit / axis, color=colours[name], label=f"{CALIBRATIONS.get(name, name)}: {limit:.3g}")
        ax.fill_between(axis, 1e-9, found["theorem2"] / axis, color=COLOURS[1], alpha=0.15, linewidth=0)
        ax.plot(norm, norm, "*", color=INK, markersize=11, label=f"exact, 95% on two anchors: {norm**2:.3g}")
        ax.set(xscale="log", yscale="log", xlim=(axis[0], axis[-1]), ylim=(axis[0], axis[-1]))
        ax.set_xlabel("norm of the singular values of Sigma's inverse")
        ax.set_ylabel("norm of those of Psi's inverse")
        place_legend(ax, narrow=narrow, title="limit on the product")

    return draw_picture(
        paint,
        folder,
        "design-space",
        title="The design space of Exp. II",
        caption=(
            "Each line bounds the product of the two norms, which measure precision, not noise: farther to the upper "
            "right is less noise. Shaded: what Theorem 2 as printed allows. The exact condition looks at the largest "
            "change in the noise's own units, not at norms; a directional design (star) lies beyond the line that "
            "holds for every covariance, and is private all the same."
        ),
        simulated=False,
        wide=(9.0, 4.8),
        narrow=(4.4, 5.4),
    )
