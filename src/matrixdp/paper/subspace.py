"""Sec. "Directional Noise as a Generalized Subspace Projection": Exp. I with the two important features alone.

Where directional noise perturbs the other features heavily, a projection drops them: one feature (ALT) and the target,
with all of the budget. The rows of MVG are those of Exp. I.
"""

from __future__ import annotations

from matrixdp.baselines import analytic_gaussian, classical_gaussian, johnson_lindenstrauss
from matrixdp.domain.bounds import Bounds
from matrixdp.noise import Stream
from matrixdp.paper.guarantee import Guarantee
from matrixdp.paper.mechanisms import Mechanism, rival
from matrixdp.paper.regression import COLUMNS, IMPORTANT, READINGS, TRAIN, budget, score, split
from matrixdp.paper.rows import Row, Runner, Setting, Trial
from matrixdp.queries import Identity

QUERY = Identity(Bounds([0.0, 0.0], [1.0, 1.0], names=IMPORTANT), records=TRAIN)
_CHOSEN = [COLUMNS.index(name) for name in IMPORTANT]
_DRAWS = (TRAIN // 4, TRAIN // 2, TRAIN)


def rows() -> list[Row]:
    """Gaussian and JL as published, and with exact calibration."""
    privacy = budget()
    column = Guarantee(privacy.epsilon, privacy.delta)
    classical = rival(classical_gaussian, QUERY, privacy)
    exact = rival(analytic_gaussian, QUERY, privacy)
    return [
        Row("non-private", "Non-private, two features", "reference", None, _plain, readings=READINGS),
        Row(
            "gaussian",
            "Gaussian (classical), two features",
            "paper",
            column,
            lambda _setting: _on_two(classical),
            readings=READINGS,
        ),
        _jl("jl", "JL transform (published threshold), two features", "paper", "published", column),
        Row(
            "gaussian/exact",
            "Gaussian (exact), two features",
            "beyond",
            column,
            lambda _setting: _on_two(exact),
            readings=READINGS,
        ),
        _jl("jl/exact", "JL transform (exact threshold), two features", "beyond", "exact", column),
    ]


def _jl(key: str, label: str, group: str, calibration: str, column: Guarantee) -> Row:
    def build(setting: Setting) -> Runner:
        options = {"draws": setting["draws"], "calibration": calibration}
        return _on_two(rival(johnson_lindenstrauss, QUERY, budget(), **options))

    return Row(key, label, group, column, build, tuple({"draws": draws} for draws in _DRAWS), READINGS)


def _on_two(mechanism: Mechanism) -> Runner:
    def run(trial: int, stream: Stream) -> Trial:
        train, test = split(trial)
        released = mechanism(train[:, _CHOSEN], stream)
        return Trial(score(released.matrix, test[:, _CHOSEN]), released.spent)

    return run


def _plain(_setting: Setting) -> Runner:
    def run(trial: int, _stream: Stream) -> Trial:
        train, test = split(trial)
        return Trial(score(train[:, _CHOSEN], test[:, _CHOSEN]), None)

    return run
