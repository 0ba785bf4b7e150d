"""Sec. "Directional Noise as a Generalized Subspace Projection": Exp. I with the two important features alone.

Where directional noise perturbs the other features heavily, a projection drops them: one feature (ALT) and the target,
with all of the budget. The rows of MVG are those of Exp. I.
"""

from __future__ import annotations

from dataclasses import replace

from matrixdp.domain.bounds import Bounds
from matrixdp.paper.regression import COLUMNS, EXPERIMENT, IMPORTANT, TRAIN, VARIANTS, score, split
from matrixdp.paper.rows import Row
from matrixdp.queries import Identity
from matrixdp.types import Floats

_CHOSEN = [COLUMNS.index(name) for name in IMPORTANT]


def _split(trial: int) -> tuple[Floats, Floats]:
    """Training and test records of a trial, two columns each."""
    train, test = split(trial)
    return train[:, _CHOSEN], test[:, _CHOSEN]


TWO_FEATURES = replace(
    EXPERIMENT,
    query=Identity(Bounds([0.0, 0.0], [1.0, 1.0], names=IMPORTANT), records=TRAIN),
    records=lambda trial: _split(trial)[0],
    score=lambda released, trial: score(released, _split(trial)[1]),
    suffix=", two features",
)


def rows() -> list[Row]:
    """Gaussian and JL as published, and with exact calibration."""
    return [
        TWO_FEATURES.reference("non-private", "Non-private", lambda trial, _stream: score(*_split(trial)), VARIANTS),
        TWO_FEATURES.mechanism_row("gaussian", "Gaussian (classical)", "paper", "classical Gaussian"),
        TWO_FEATURES.jl_row("published"),
        TWO_FEATURES.mechanism_row("gaussian/exact", "Gaussian (exact)", "beyond", "analytic Gaussian"),
        TWO_FEATURES.jl_row("exact"),
    ]
