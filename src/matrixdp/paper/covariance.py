"""Exp. III: all principal components of the Cardiotocography data, from a noisy data set.

``RSS = sum_i (lambda_i - v_i'Sv_i)^2``: S the second moment of the data (about the origin, as the paper's formula has
it), lambda_i its eigenvalues, v_i the components of the noisy one, both in falling order. Features are scaled to [0, 1]
by the data's own range, as in the paper.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

import numpy as np

from matrixdp.datasets import CATALOGUE, load_table, scale_to_unit
from matrixdp.design import optimal
from matrixdp.domain.bounds import Bounds
from matrixdp.noise import draw_normal
from matrixdp.paper.component import Spectrum, components, true_spectrum
from matrixdp.paper.experiment import Experiment, Row, Setting
from matrixdp.paper.mechanisms import CALIBRATIONS, mvg
from matrixdp.queries import Identity, Moments, SecondMoment
from matrixdp.types import Floats

FEATURES = CATALOGUE["ctg"].columns[:21]
IMPORTANT = ("LB", "ASTV", "ALTV")
RECORDS = 2126
BOUNDS = Bounds([0.0] * 21, [1.0] * 21, names=FEATURES)
QUERY = Identity(BOUNDS, records=RECORDS)


@cache
def truth() -> Spectrum:
    """The data of the experiment, of shape (2126, 21)."""
    return true_spectrum(scale_to_unit(load_table("ctg", simulate=True).take(*FEATURES)))


def residual(directions: Floats, against: Spectrum | None = None) -> float:
    """RSS of components, one a column, of shape (21, 21)."""
    against = truth() if against is None else against
    captured = np.einsum("ij,ik,kj->j", directions, against.moment, directions, optimize=True)
    return float(np.square(against.values - captured).sum())


NOISY_RECORDS = Experiment(
    QUERY,
    RECORDS,
    records=lambda _trial: truth().records,
    score=lambda released, _trial: [residual(components(released.T @ released / RECORDS))],
)
MOMENT = replace(
    NOISY_RECORDS,
    query=SecondMoment(BOUNDS, RECORDS, centre=np.zeros(21)),
    score=lambda released, _trial: [residual(components(released))],
    draws=(100, 500, RECORDS),
)


def rows() -> list[Row]:
    """References, the paper's rows, and MVG in the other calibrations."""
    build = partial(mvg, QUERY, NOISY_RECORDS.budget(), important=IMPORTANT)
    return [
        NOISY_RECORDS.reference(
            "non-private", "Non-private", lambda _trial, _stream: [residual(components(truth().moment))]
        ),
        NOISY_RECORDS.reference(
            "random guess",
            "Random guess (uniform basis)",
            lambda _trial, stream: [residual(np.linalg.qr(draw_normal(stream, (21, 21)))[0])],
        ),
        *[NOISY_RECORDS.mvg_row("mvg", calibration, build) for calibration in CALIBRATIONS],
        *NOISY_RECORDS.paper_rows(MOMENT),
    ]


def rows_beyond() -> list[Row]:
    """Second moments in place of the records, and the best rivals with exact calibration."""
    origin = "Second moment about the origin (Analyze Gauss, exact)"
    radii = tuple({"radius": radius} for radius in (None, 2.0, 1.75, 1.5, 1.25))
    return [
        *NOISY_RECORDS.exact_rows(),
        MOMENT.mechanism_row("analyze gauss", origin, "beyond", "Analyze Gauss"),
        MOMENT.jl_row("exact"),
        MOMENT.design_row(
            "moments", "Moments about the midpoint, optimal allocation", _moments, radii, allocation=optimal()
        ),
    ]


def _moments(setting: Setting) -> Experiment:
    """Moments of records in a ball about the midpoint."""
    bounds = Bounds(BOUNDS.lower, BOUNDS.upper, radius=setting["radius"])
    shift = np.hstack([np.full((21, 1), 0.5), np.eye(21)])  # from the midpoint back to the origin
    return replace(
        MOMENT,
        query=Moments(bounds, RECORDS),
        score=lambda released, _trial: [residual(components(shift @ released @ shift.T))],
    )
