"""Exp. II and III: principal components of a second moment.

Exp. II: the first component of the Movement data, from their 4 x 4 second moment. The error of a unit vector v is
``lambda_1 - v'Sv``, S the second moment of the data and lambda_1 its largest eigenvalue. The paper's 2,021 records are
the first 44 sequences in the order of their file names: of the readings tried, the only one with both the paper's count
and its random-guess figure.

Exp. III: all components of the Cardiotocography data, from a noisy data set. ``RSS = sum_i (lambda_i - v_i'Sv_i)^2``: S
the second moment of the data (about the origin, as the paper's formula has it), lambda_i its eigenvalues, v_i the
components of the noisy one, both in falling order. Features are scaled to [0, 1] by the data's own range, as in the
paper.
"""

from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from matrixdp.baselines.pure import draw_directions
from matrixdp.datasets import CATALOGUE, load_table, scale_to_unit
from matrixdp.design import optimal
from matrixdp.domain.bounds import Bounds
from matrixdp.noise import draw_normal
from matrixdp.paper.experiment import Experiment, Row, design_noise, registered_rows
from matrixdp.queries import Identity, Moments, SecondMoment
from matrixdp.types import Floats


class Spectrum(NamedTuple):
    """Records of shape (n, m), their second moment about the origin, and its eigenvalues, the largest first."""

    records: Floats
    moment: Floats
    values: Floats


def find_spectrum(records: Floats) -> Spectrum:
    """The second moment and eigenvalues that the error of components is measured against."""
    moment = records.T @ records / len(records)
    return Spectrum(records, moment, np.asarray(np.linalg.eigvalsh(moment)[::-1], np.float64))


def find_components(moment: Floats) -> Floats:
    """Eigenvectors as columns, the largest eigenvalue's first, of shape (m, m)."""
    return np.linalg.eigh(moment)[1][:, ::-1]


ANCHORS = ("rss_anchor1", "rss_anchor2", "rss_anchor3", "rss_anchor4")
_SEQUENCES = 44
MOVEMENT = SecondMoment(Bounds([-1.0] * 4, [1.0] * 4, names=ANCHORS), records=2021)


@cache
def load_movement() -> Spectrum:
    """The data of Exp. II, of shape (2021, 4)."""
    table = load_table("movement", simulate=True)
    numbers = table.take("sequence_id")[:, 0]
    names = sorted({int(n) for n in numbers}, key=lambda n: f"MovementAAL_RSS_{n}.csv")
    return find_spectrum(table.take(*ANCHORS)[np.isin(numbers, names[:_SEQUENCES])])


def measure_variance(direction: Floats) -> float:
    """``lambda_1 - v'Sv``, never negative."""
    known = load_movement()
    return max(0.0, float(known.values[0]) - float(direction @ known.moment @ direction))


def _score_first(released: Floats, _trial: int = 0) -> list[float]:
    return [measure_variance(find_components(released)[:, 0])]


FIRST = Experiment(
    MOVEMENT,
    records=lambda _trial: load_movement().records,
    score=_score_first,
    important=("rss_anchor1", "rss_anchor4"),
    draws=(100, 500, MOVEMENT.records),
)
_DIRECTION = replace(  # mechanisms of others need not return unit vectors
    FIRST, score=lambda released, _trial: [measure_variance(released[:, 0] / np.linalg.norm(released[:, 0]))]
)


def first_rows() -> list[Row]:
    """References, the paper's rows, MVG in the other calibrations, and better designs."""

    def cut_to_ball(radius: float) -> Experiment:
        bounds = Bounds(MOVEMENT.bounds.lower, MOVEMENT.bounds.upper, radius=radius)
        return replace(FIRST, query=SecondMoment(bounds, MOVEMENT.records))

    best: dict[str, Any] = {"allocation": optimal()}
    radii = {"radius": (1.75, 1.5, 1.25, 1.0)}
    return [
        FIRST.exact_row(),
        FIRST.reference(
            "random guess",
            "Random guess (uniform direction)",
            lambda _trial, stream: measure_variance(draw_directions(stream, 4, 1)[0]),
        ),
        *FIRST.mvg_rows(),
        FIRST.row("gaussian", "Gaussian (Analyze Gauss, classical)", "classical Gaussian", group="paper"),
        *FIRST.common_rows("jl", "laplace"),
        _DIRECTION.row("exponential", "Exponential (PPCA)", "PPCA", group="paper"),
        FIRST.row("optimal", "MVG, exact, optimal allocation (here: i.i.d.)", design_noise, structured=False, **best),
        FIRST.row("gaussian/exact", "Gaussian (Analyze Gauss, exact)", "Analyze Gauss"),
        *FIRST.common_rows("jl/exact"),
        FIRST.row("radius", "Optimal allocation, records cut to a ball", design_noise, radii, vary=cut_to_ball, **best),
        *registered_rows(second_moment=FIRST, components=_DIRECTION),
    ]


FEATURES = CATALOGUE["ctg"].columns[:21]
BOUNDS = Bounds([0.0] * 21, [1.0] * 21, names=FEATURES)
RECORDS = 2126


@cache
def load_ctg() -> Spectrum:
    """The data of Exp. III, of shape (2126, 21)."""
    return find_spectrum(scale_to_unit(load_table("ctg", simulate=True).take(*FEATURES)))


def measure_residual(directions: Floats) -> float:
    """RSS of components, one a column, of shape (21, 21)."""
    against = load_ctg()
    captured = np.einsum("ij,ik,kj->j", directions, against.moment, directions, optimize=True)
    return float(np.square(against.values - captured).sum())


def _score_all(moment: Floats, _trial: int = 0) -> list[float]:
    return [measure_residual(find_components(moment))]


ALL = Experiment(
    Identity(BOUNDS, records=RECORDS),
    records=lambda _trial: load_ctg().records,
    score=lambda released, _trial: _score_all(released.T @ released / RECORDS),
    important=("LB", "ASTV", "ALTV"),
)
ALL_BY_MOMENT = replace(
    ALL, query=SecondMoment(BOUNDS, RECORDS, centre=np.zeros(21)), score=_score_all, draws=(100, 500, RECORDS)
)


def all_rows() -> list[Row]:
    """References, the paper's rows, MVG in the other calibrations, and second moments in place of the records."""
    return [
        ALL.exact_row(),
        ALL.reference(
            "random guess",
            "Random guess (uniform basis)",
            lambda _trial, stream: measure_residual(np.linalg.qr(draw_normal(stream, (21, 21)))[0]),
        ),
        *ALL.mvg_rows(),
        *ALL.common_rows("gaussian"),
        *ALL_BY_MOMENT.common_rows("jl"),
        *ALL.common_rows("laplace", "exponential", "identity/optimal", "gaussian/exact"),
        ALL_BY_MOMENT.row("analyze gauss", "Second moment about the origin (Analyze Gauss, exact)", "Analyze Gauss"),
        *ALL_BY_MOMENT.common_rows("jl/exact"),
        ALL_BY_MOMENT.row(
            "moments",
            "Moments about the midpoint, optimal allocation",
            design_noise,
            {"radius": (None, 2.0, 1.75, 1.5, 1.25)},
            vary=_measure_moments,
            allocation=optimal(),
        ),
        *registered_rows(records=ALL, second_moment=ALL_BY_MOMENT),
    ]


def _measure_moments(radius: float | None) -> Experiment:
    """Moments of records in a ball about the midpoint."""
    shift = np.hstack([np.full((21, 1), 0.5), np.eye(21)])  # from the midpoint back to the origin
    return replace(
        ALL_BY_MOMENT,
        query=Moments(Bounds(BOUNDS.lower, BOUNDS.upper, radius=radius), RECORDS),
        score=lambda released, _trial: _score_all(shift @ released @ shift.T),
    )
