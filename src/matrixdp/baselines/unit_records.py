"""Records scaled to [-1, 1], and Gaussian releases that share one budget, for peers that take several steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from matrixdp.design import isotropic, make_design
from matrixdp.domain.bounds import Bounds
from matrixdp.errors import ParameterError
from matrixdp.noise import Stream
from matrixdp.privacy import Neighbours, Privacy
from matrixdp.queries import MatrixQuery, Query, SecondMoment
from matrixdp.release.mechanism_release import MechanismRelease
from matrixdp.release.registry import check_arguments
from matrixdp.sensitivity import FrobeniusBall
from matrixdp.types import Floats


def unit_records(query: Any, privacy: Any, data: Any, mechanism: str) -> tuple[SecondMoment, Floats]:
    """The query, and records of shape (n, m) in [-1, 1] about the midpoint of its box."""
    check_arguments(query, privacy)
    if not isinstance(query, SecondMoment) or query.centre is not None or query.neighbours is not Neighbours.REPLACE:
        raise ParameterError(f"query must be SecondMoment about the midpoint, for replace neighbours, for {mechanism}.")
    query.evaluate(data, clip=True, missing="error")  # raises every error of the data
    return query, np.clip(query.bounds.centre(data) / query.bounds.halfwidths, -1.0, 1.0)


class SharedBudget:
    """Releases with isotropic Gaussian noise, each for a share of one budget's ``mu^2``."""

    def __init__(self, privacy: Privacy, stream: Stream | None, simulation: bool) -> None:
        self.privacy, self.stream, self.simulation = privacy, stream, simulation

    def release(self, query: MatrixQuery, data: Any, share: float) -> tuple[Floats, float]:
        """The noisy answer, and the standard deviation of the noise in its first entry."""
        design = make_design(query, self.privacy, allocation=isotropic(), share=share)
        released = design.release(data, stream=self.stream, simulation=self.simulation)
        return released.matrix, float(design.std[0, 0])

    def second_moment(self, records: Floats, radius: float, share: float) -> tuple[Floats, float]:
        """Noisy second moment of records clipped to a ball, and the standard deviation on its diagonal."""
        d = records.shape[1]
        bounds = Bounds(np.full(d, -radius), np.full(d, radius), radius=radius)
        return self.release(SecondMoment(bounds, len(records)), records, share)

    def vector(self, value: Floats, sensitivity: float, bound: float, share: float) -> tuple[Floats, float]:
        """A noisy vector whose L2 sensitivity is known."""
        query = Query((1, value.size), FrobeniusBall(sensitivity * (1 + 1e-9)), bound=bound)
        matrix, std = self.release(query, value[None], share)
        return matrix[0], std


def moment_release(
    mechanism: str, query: SecondMoment, budget: SharedBudget, moment: Floats, **parameters: float
) -> MechanismRelease:
    """A release of the second moment of scaled records, of shape (m, m), in the data's units."""
    half = query.bounds.halfwidths
    return peer_release(mechanism, query, budget, np.asarray(moment * np.multiply.outer(half, half)), **parameters)


def peer_release(
    mechanism: str, query: SecondMoment, budget: SharedBudget, matrix: Floats, **parameters: float
) -> MechanismRelease:
    """The release of a mechanism that spends a whole budget. For comparison only: intermediate steps are in floats."""
    return MechanismRelease(
        query=query,
        matrix=matrix,
        mechanism=mechanism,
        privacy=budget.privacy,
        epsilon=budget.privacy.epsilon,
        delta=budget.privacy.delta,
        comparison_only=True,
        simulation=budget.simulation,
        mu=budget.privacy.mu,
        parameters=parameters,
    )


def clip_rows(records: Floats, radius: float) -> Floats:
    """Rows scaled into a ball about the origin."""
    lengths = np.linalg.norm(records, axis=1)
    return np.asarray(records * np.minimum(1.0, radius / np.maximum(lengths, radius))[:, None])
