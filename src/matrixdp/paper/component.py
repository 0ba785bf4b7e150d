"""Exp. II: the first principal component of the Movement data, from their 4 x 4 second moment.

The error of a unit vector v is ``lambda_1 - v'Sv``, S the second moment of the data and lambda_1 its largest
eigenvalue. The paper's 2,021 records are the first 44 sequences in the order of their file names: of the readings
tried, the only one with both the paper's count and its random-guess figure.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from matrixdp.baselines.exponential import draw_directions
from matrixdp.datasets import load_table
from matrixdp.design import make_design, optimal
from matrixdp.domain.bounds import Bounds
from matrixdp.paper.experiment import Experiment, Row, Setting
from matrixdp.paper.mechanisms import CALIBRATIONS, design_simulation, mvg
from matrixdp.queries import SecondMoment
from matrixdp.types import Floats


class Spectrum(NamedTuple):
    """Records of shape (n, m), their second moment about the origin, and its eigenvalues, the largest first."""

    records: Floats
    moment: Floats
    values: Floats


def true_spectrum(records: Floats) -> Spectrum:
    """What the error of components is measured against."""
    moment = records.T @ records / len(records)
    return Spectrum(records, moment, np.asarray(np.linalg.eigvalsh(moment)[::-1], np.float64))


def components(moment: Floats) -> Floats:
    """Eigenvectors as columns, the largest eigenvalue's first, of shape (m, m)."""
    return np.linalg.eigh(moment)[1][:, ::-1]


ANCHORS = ("rss_anchor1", "rss_anchor2", "rss_anchor3", "rss_anchor4")
IMPORTANT = ("rss_anchor1", "rss_anchor4")
RECORDS = 2021
_SEQUENCES = 44
QUERY = SecondMoment(Bounds([-1.0] * 4, [1.0] * 4, names=ANCHORS), records=RECORDS)


@cache
def truth() -> Spectrum:
    """The data of the experiment, of shape (2021, 4)."""
    table = load_table("movement", simulate=True)
    numbers = table.take("sequence_id")[:, 0]
    names = sorted({int(n) for n in numbers}, key=lambda n: f"MovementAAL_RSS_{n}.csv")
    return true_spectrum(table.take(*ANCHORS)[np.isin(numbers, names[:_SEQUENCES])])


def error(direction: Floats) -> float:
    """``lambda_1 - v'Sv``, never negative."""
    known = truth()
    return max(0.0, float(known.values[0]) - float(direction @ known.moment @ direction))


MOMENT = Experiment(
    QUERY,
    RECORDS,
    records=lambda _trial: truth().records,
    score=lambda released, _trial: [error(components(released)[:, 0])],
    draws=(100, 500, RECORDS),
)
DIRECTION = replace(MOMENT, score=lambda released, _trial: [error(released[:, 0])])
# Mechanisms of others need not return unit vectors.
NORMALISED = replace(MOMENT, score=lambda released, _trial: [error(released[:, 0] / np.linalg.norm(released[:, 0]))])


def rows() -> list[Row]:
    """References, the paper's rows, and MVG in the other calibrations."""
    build = partial(mvg, QUERY, MOMENT.budget(), important=IMPORTANT)
    gaussian, classical = "Gaussian (Analyze Gauss, classical)", {"calibration": "classical"}
    return [
        MOMENT.reference(
            "non-private", "Non-private", lambda _trial, _stream: [error(components(truth().moment)[:, 0])]
        ),
        MOMENT.reference(
            "random guess",
            "Random guess (uniform direction)",
            lambda _trial, stream: [error(draw_directions(stream, 4, 1)[0])],
        ),
        *[MOMENT.mvg_row("mvg", calibration, build) for calibration in CALIBRATIONS],
        MOMENT.mechanism_row("gaussian", gaussian, "paper", "Analyze Gauss", **classical),
        MOMENT.jl_row("published"),
        MOMENT.mechanism_row("laplace", "Laplace", "paper", "Laplace"),
        DIRECTION.mechanism_row("exponential", "Exponential (PPCA)", "paper", "PPCA"),
    ]


def rows_beyond() -> list[Row]:
    """Optimal allocation, records clipped to a ball, the best rivals with exact calibration."""
    best = design_simulation(make_design(QUERY, MOMENT.budget(), allocation=optimal(), structured=False))
    label = "MVG, exact, optimal allocation (here: i.i.d.)"
    radii = tuple({"radius": radius} for radius in (1.75, 1.5, 1.25, 1.0))
    return [
        MOMENT.row("optimal", label, "beyond", lambda _setting: best),
        MOMENT.mechanism_row("gaussian/exact", "Gaussian (Analyze Gauss, exact)", "beyond", "Analyze Gauss"),
        MOMENT.jl_row("exact"),
        MOMENT.design_row("radius", "Optimal allocation, records cut to a ball", _ball, radii, allocation=optimal()),
    ]


def _ball(setting: Setting) -> Experiment:
    """Records clipped to a ball about the midpoint."""
    bounds = Bounds(QUERY.bounds.lower, QUERY.bounds.upper, radius=setting["radius"])
    return replace(MOMENT, query=SecondMoment(bounds, RECORDS))
