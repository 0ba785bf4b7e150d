"""Exp. II: the first principal component of the Movement data, from their 4 x 4 second moment.

The error of a unit vector v is ``lambda_1 - v'Sv``, S the second moment of the data and lambda_1 its largest
eigenvalue. The paper's 2,021 records are the first 44 sequences in the order of their file names: of the readings
tried, the only one with both the paper's count and its random-guess figure.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from matrixdp.baselines import analyze_gauss, johnson_lindenstrauss, laplace, ppca
from matrixdp.baselines.float_samplers import draw_directions
from matrixdp.datasets import load_table
from matrixdp.design import make_design, optimal
from matrixdp.domain.bounds import Bounds
from matrixdp.noise import Stream
from matrixdp.paper.guarantee import Guarantee
from matrixdp.paper.mechanisms import (
    CALIBRATIONS,
    TAUS,
    Mechanism,
    design_mechanism,
    first_component,
    mvg,
    mvg_moment,
    rival,
)
from matrixdp.paper.rows import Row, Runner, Setting, Trial
from matrixdp.privacy import Privacy
from matrixdp.queries import SecondMoment
from matrixdp.types import Floats

ANCHORS = ("rss_anchor1", "rss_anchor2", "rss_anchor3", "rss_anchor4")
IMPORTANT = ("rss_anchor1", "rss_anchor4")
RECORDS = 2021
_SEQUENCES = 44
QUERY = SecondMoment(Bounds([-1.0] * 4, [1.0] * 4, names=ANCHORS), records=RECORDS)


class Truth(NamedTuple):
    """Records, their second moment and its largest eigenvalue."""

    records: Floats
    moment: Floats
    largest: float


@cache
def truth() -> Truth:
    """The data of the experiment, of shape (2021, 4)."""
    table = load_table("movement", simulate=True)
    numbers = table.take("sequence_id")[:, 0]
    names = sorted({int(n) for n in numbers}, key=lambda n: f"MovementAAL_RSS_{n}.csv")
    records = table.take(*ANCHORS)[np.isin(numbers, names[:_SEQUENCES])]
    moment = records.T @ records / len(records)
    return Truth(records, moment, float(np.linalg.eigvalsh(moment)[-1]))


def error(direction: Floats) -> float:
    """``lambda_1 - v'Sv``, never negative."""
    known = truth()
    return max(0.0, known.largest - float(direction @ known.moment @ direction))


def on_moment(mechanism: Mechanism, *, direct: bool = False) -> Runner:
    """Trials of a mechanism that releases the second moment, or (`direct`) the component itself."""

    def run(_trial: int, stream: Stream) -> Trial:
        released = mechanism(truth().records, stream)
        direction = released.matrix[:, 0] if direct else first_component(released.matrix)
        return Trial([error(direction)], released.spent)

    return run


def budget(epsilon: float = 1.0) -> Privacy:
    """The paper's: delta is one over the number of records."""
    return Privacy(epsilon, 1 / RECORDS)


def rows() -> list[Row]:
    """References, the paper's rows, and MVG in the other calibrations."""
    privacy = budget()
    column, pure = Guarantee(privacy.epsilon, privacy.delta), Guarantee(privacy.epsilon, 0.0)
    return [
        Row(
            "non-private",
            "Non-private",
            "reference",
            None,
            lambda _setting: lambda _trial, _stream: Trial([error(first_component(truth().moment))], None),
        ),
        Row("random guess", "Random guess (uniform direction)", "reference", None, _guess),
        *[mvg_row(calibration, name, column) for calibration, name in CALIBRATIONS.items()],
        Row(
            "gaussian",
            "Gaussian (Analyze Gauss, classical)",
            "paper",
            column,
            _fixed(rival(analyze_gauss, QUERY, privacy, calibration="classical")),
        ),
        jl_row("jl", "JL transform (published threshold)", "paper", "published"),
        Row("laplace", "Laplace", "paper", pure, _fixed(rival(laplace, QUERY, privacy))),
        Row("exponential", "Exponential (PPCA)", "paper", pure, _fixed(rival(ppca, QUERY, privacy), direct=True)),
    ]


def beyond() -> list[Row]:
    """Optimal allocation, records cut to a ball, the best rivals with exact calibration."""
    privacy = budget()
    column = Guarantee(privacy.epsilon, privacy.delta)
    return [
        Row(
            "optimal",
            "MVG, exact, optimal allocation (here: i.i.d.)",
            "beyond",
            column,
            _fixed(design_mechanism(make_design(QUERY, privacy, allocation=optimal()))),
        ),
        Row(
            "gaussian/exact",
            "Gaussian (Analyze Gauss, exact)",
            "beyond",
            column,
            _fixed(rival(analyze_gauss, QUERY, privacy)),
        ),
        jl_row("jl/exact", "JL transform (exact threshold)", "beyond", "exact"),
        Row(
            "radius",
            "Optimal allocation, records cut to a ball",
            "beyond",
            column,
            _ball,
            tuple({"radius": radius} for radius in (1.75, 1.5, 1.25, 1.0)),
        ),
    ]


def mvg_row(calibration: str, name: str, column: Guarantee) -> Row:
    """MVG with the paper's two anchors in one calibration."""

    def build(setting: Setting) -> Runner:
        tau = setting["tau"]
        if calibration == "exact":
            return on_moment(mvg(QUERY, budget(), important=IMPORTANT, tau=tau))
        return on_moment(mvg_moment(QUERY, budget(), important=IMPORTANT, tau=tau, calibration=calibration))

    printed = calibration == "theorem2"
    key, group = ("mvg", "paper") if printed else (f"mvg/{calibration}", "calibration")
    return Row(key, f"MVG, {name}", group, column, build, tuple({"tau": tau} for tau in TAUS))


def jl_row(key: str, label: str, group: str, calibration: str) -> Row:
    """The Johnson-Lindenstrauss transform with one threshold, over the dimension that is projected on."""

    def build(setting: Setting) -> Runner:
        options = {"draws": setting["draws"], "calibration": calibration}
        return on_moment(rival(johnson_lindenstrauss, QUERY, budget(), **options))

    settings = tuple({"draws": draws} for draws in (100, 500, RECORDS))
    return Row(key, label, group, Guarantee(1.0, 1 / RECORDS), build, settings)


def _fixed(mechanism: Mechanism, *, direct: bool = False) -> Callable[[Setting], Runner]:
    return lambda _setting: on_moment(mechanism, direct=direct)


def _ball(setting: Setting) -> Runner:
    bounds = Bounds(QUERY.bounds.lower, QUERY.bounds.upper, radius=setting["radius"])
    return on_moment(design_mechanism(make_design(SecondMoment(bounds, RECORDS), budget(), allocation=optimal())))


def _guess(_setting: Setting) -> Runner:
    return lambda _trial, stream: Trial([error(draw_directions(stream, 4, 1)[0])], None)
