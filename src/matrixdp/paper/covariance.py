"""Exp. III: all principal components of the Cardiotocography data, from a noisy data set.

``RSS = sum_i (lambda_i - v_i'Sv_i)^2``: S the second moment of the data (about the origin, as the paper's formula has
it), lambda_i its eigenvalues, v_i the components of the noisy one, both in falling order. Features are scaled to [0, 1]
by the data's own range, as in the paper.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from matrixdp.baselines import (
    analytic_gaussian,
    analyze_gauss,
    classical_gaussian,
    exponential,
    johnson_lindenstrauss,
    laplace,
)
from matrixdp.datasets import CATALOGUE, load_table
from matrixdp.datasets.table import scale_to_unit
from matrixdp.design import make_design, optimal
from matrixdp.domain.bounds import Bounds
from matrixdp.noise import Stream, draw_normal
from matrixdp.paper.guarantee import Guarantee
from matrixdp.paper.mechanisms import CALIBRATIONS, TAUS, Mechanism, design_mechanism, mvg, rival
from matrixdp.paper.rows import Row, Runner, Setting, Trial
from matrixdp.privacy import Privacy
from matrixdp.queries import Identity, Moments, SecondMoment
from matrixdp.types import Floats

FEATURES = CATALOGUE["ctg"].columns[:21]
IMPORTANT = ("LB", "ASTV", "ALTV")
RECORDS = 2126
BOUNDS = Bounds([0.0] * 21, [1.0] * 21, names=FEATURES)
QUERY = Identity(BOUNDS, records=RECORDS)
_ORIGIN = SecondMoment(BOUNDS, RECORDS, centre=np.zeros(21))


class Truth(NamedTuple):
    """Records, their second moment and its eigenvalues, the largest first."""

    records: Floats
    moment: Floats
    values: Floats


def known(records: Floats) -> Truth:
    """What the error of components is measured against."""
    moment = records.T @ records / len(records)
    return Truth(records, moment, np.asarray(np.linalg.eigvalsh(moment)[::-1], np.float64))


@cache
def truth() -> Truth:
    """The data of the experiment, of shape (2126, 21)."""
    records = scale_to_unit(load_table("ctg", simulate=True).take(*FEATURES))
    return known(records)


def residual(directions: Floats, against: Truth | None = None) -> float:
    """RSS of components, one a column, of shape (21, 21)."""
    against = truth() if against is None else against
    captured = np.einsum("ij,ik,kj->j", directions, against.moment, directions, optimize=True)
    return float(np.square(against.values - captured).sum())


def components(moment: Floats) -> Floats:
    """Eigenvectors, the largest eigenvalue's first."""
    return np.linalg.eigh(moment)[1][:, ::-1]


def on_records(mechanism: Mechanism) -> Runner:
    """Trials of a mechanism that releases the records."""

    def run(_trial: int, stream: Stream) -> Trial:
        released = mechanism(truth().records, stream)
        matrix = released.matrix
        return Trial([residual(components(matrix.T @ matrix / RECORDS))], released.spent)

    return run


def on_moment(mechanism: Mechanism) -> Runner:
    """Trials of a mechanism that releases the second moment about the origin."""

    def run(_trial: int, stream: Stream) -> Trial:
        released = mechanism(truth().records, stream)
        return Trial([residual(components(released.matrix))], released.spent)

    return run


def budget(epsilon: float = 1.0) -> Privacy:
    """The paper's: delta is one over the number of records."""
    return Privacy(epsilon, 1 / RECORDS)


def rows() -> list[Row]:
    """References, the paper's rows, and MVG in the other calibrations."""
    privacy = budget()
    column, pure = Guarantee(privacy.epsilon, privacy.delta), Guarantee(privacy.epsilon, 0.0)
    rivals = [
        ("gaussian", "Gaussian (classical)", rival(classical_gaussian, QUERY, privacy), column),
        ("laplace", "Laplace", rival(laplace, QUERY, privacy), pure),
        ("exponential", "Exponential (textbook)", rival(exponential, QUERY, privacy, halved=True), pure),
    ]
    listed = [
        Row(
            "non-private",
            "Non-private",
            "reference",
            None,
            lambda _setting: lambda _trial, _stream: Trial([residual(components(truth().moment))], None),
        ),
        Row("random guess", "Random guess (uniform basis)", "reference", None, _guess),
        *[_mvg_row(calibration, name, column) for calibration, name in CALIBRATIONS.items()],
        *[Row(key, label, "paper", guarantee, _fixed(one)) for key, label, one, guarantee in rivals],
    ]
    listed.insert(-2, _jl_row("jl", "JL transform (published threshold)", "paper", "published"))
    return listed


def beyond() -> list[Row]:
    """Second moments in place of the records, and the best rivals with exact calibration."""
    privacy = budget()
    column = Guarantee(privacy.epsilon, privacy.delta)
    best = design_mechanism(make_design(QUERY, privacy, allocation=optimal()))
    fixed = [
        ("identity/optimal", "Identity query, optimal allocation", _fixed(best)),
        ("gaussian/exact", "Gaussian (exact)", _fixed(rival(analytic_gaussian, QUERY, privacy))),
        (
            "analyze gauss",
            "Second moment about the origin (Analyze Gauss, exact)",
            lambda _setting: on_moment(rival(analyze_gauss, _ORIGIN, privacy)),
        ),
    ]
    return [
        *[Row(key, label, "beyond", column, build) for key, label, build in fixed],
        _jl_row("jl/exact", "JL transform (exact threshold)", "beyond", "exact"),
        Row(
            "moments",
            "Moments about the midpoint, optimal allocation",
            "beyond",
            column,
            _moments,
            tuple({"radius": radius} for radius in (None, 2.0, 1.75, 1.5, 1.25)),
        ),
    ]


def _mvg_row(calibration: str, name: str, column: Guarantee) -> Row:
    def build(setting: Setting) -> Runner:
        return on_records(mvg(QUERY, budget(), important=IMPORTANT, tau=setting["tau"], calibration=calibration))

    printed = calibration == "theorem2"
    key, group = ("mvg", "paper") if printed else (f"mvg/{calibration}", "calibration")
    return Row(key, f"MVG, {name}", group, column, build, tuple({"tau": tau} for tau in TAUS))


def _jl_row(key: str, label: str, group: str, calibration: str) -> Row:
    def build(setting: Setting) -> Runner:
        options = {"draws": setting["draws"], "calibration": calibration}
        return on_moment(rival(johnson_lindenstrauss, _ORIGIN, budget(), **options))

    settings = tuple({"draws": draws} for draws in (100, 500, RECORDS))
    return Row(key, label, group, Guarantee(1.0, 1 / RECORDS), build, settings)


def _fixed(mechanism: Mechanism) -> Callable[[Setting], Runner]:
    return lambda _setting: on_records(mechanism)


def _moments(setting: Setting) -> Runner:
    bounds = Bounds(BOUNDS.lower, BOUNDS.upper, radius=setting["radius"])
    release = design_mechanism(make_design(Moments(bounds, RECORDS), budget(), allocation=optimal()))

    def run(_trial: int, stream: Stream) -> Trial:
        released = release(truth().records, stream)
        shift = np.hstack([np.full((21, 1), 0.5), np.eye(21)])  # from the midpoint back to the origin
        return Trial([residual(components(shift @ released.matrix @ shift.T))], released.spent)

    return run


def _guess(_setting: Setting) -> Runner:
    return lambda _trial, stream: Trial([residual(np.linalg.qr(draw_normal(stream, (21, 21)))[0])], None)
