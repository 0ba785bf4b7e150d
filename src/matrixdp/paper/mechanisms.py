"""The mechanisms that the tables compare, each as a function of data and a seeded stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from matrixdp.baselines import sulq
from matrixdp.design import Allocation, Design, binary, equimodal, isotropic, make_design
from matrixdp.noise import Stream
from matrixdp.paper.guarantee import Guarantee, Spent
from matrixdp.privacy import Privacy, compose_mu, gdp_epsilon
from matrixdp.queries import Identity, MatrixQuery, SecondMoment
from matrixdp.release import MechanismRelease
from matrixdp.types import Floats

CALIBRATIONS = {
    "theorem2": "Theorem 2 as printed",
    "theorem2-corrected": "Theorem 2, corrected",
    "theorem2-psd": "Theorem 2, psd form",
    "exact": "exact",
}
TAUS = (0.55, 0.65, 0.75, 0.85, 0.95)
PCA_SHARE = 0.2


class Released(NamedTuple):
    """A noisy matrix and what it cost."""

    matrix: Floats
    spent: Spent


Mechanism = Callable[[Any, Stream], Released]


def design_mechanism(design: Design) -> Mechanism:
    """Releases of one design."""
    privacy = design.privacy
    spent = Spent(Guarantee(privacy.epsilon, privacy.delta), min(design.epsilon, privacy.epsilon))
    return lambda data, stream: Released(design.release(data, stream=stream, simulation=True).matrix, spent)


def mvg(
    query: MatrixQuery,
    privacy: Privacy,
    *,
    important: Sequence[str] | None,
    tau: float = 0.95,
    calibration: str = "exact",
) -> Mechanism:
    """MVG with `tau` of the budget on the important features; i.i.d. noise where there are none."""
    return design_mechanism(
        make_design(query, privacy, allocation=_allocation(important, tau), calibration=calibration)
    )


def mvg_moment(
    query: SecondMoment, privacy: Privacy, *, important: Sequence[str] | None, tau: float, calibration: str
) -> Mechanism:
    """Algorithm 2 with the paper's own inputs, for the sensitivity 2 gamma/N that it prints (8/2021 in Exp. II)."""
    theta = _allocation(important, tau).precisions(query)
    design = equimodal(
        epsilon=privacy.epsilon,
        delta=privacy.delta,
        sensitivity=2 * query.gamma / query.records,
        gamma=query.gamma,
        theta=theta,
        calibration=calibration,
    )
    release = design_mechanism(design)
    return lambda data, stream: release(query.evaluate(data, clip=True, missing="error"), stream)


def mvg_pca(query: Identity, privacy: Privacy, *, tau: float, calibration: str) -> Mechanism:
    """MVG-2: the two first directions of a private PCA are the important ones.

    As in the paper for its own calibrations: 0.2 epsilon and 0.2 delta for the directions, the rest for the noise. With
    the exact calibration a fifth of ``mu^2``, and the rest.
    """
    exact = calibration == "exact"
    rest = privacy if exact else Privacy((1 - PCA_SHARE) * privacy.epsilon, (1 - PCA_SHARE) * privacy.delta)

    def release(data: Any, stream: Stream) -> Released:
        found = sulq(
            query,
            privacy,
            data,
            stream=stream.child(0),
            simulation=True,
            share=PCA_SHARE,
            split="mu" if exact else "epsilon",
        )
        design = make_design(
            query,
            rest,
            allocation=binary(2, tau),
            directions=found.matrix,
            calibration=calibration,
            share=1 - PCA_SHARE if exact else 1.0,
        )
        released = design.release(data, stream=stream.child(1), simulation=True)
        assert found.mu is not None
        total = compose_mu([found.mu, design.distance])
        if exact:
            claimed = Guarantee(privacy.epsilon, privacy.delta)
        else:
            shares = (PCA_SHARE * privacy.epsilon, PCA_SHARE * privacy.delta)
            claimed = Guarantee(shares[0] + rest.epsilon, shares[1] + rest.delta)
        return Released(released.matrix, Spent(claimed, gdp_epsilon(mu=total, delta=privacy.delta)))

    return release


def rival(function: Callable[..., MechanismRelease], query: MatrixQuery, privacy: Privacy, **options: Any) -> Mechanism:
    """A rival's releases."""

    def release(data: Any, stream: Stream) -> Released:
        result = function(query, privacy, data, stream=stream, simulation=True, **options)
        return Released(result.matrix, Spent(Guarantee(privacy.epsilon, result.delta), result.epsilon))

    return release


def _allocation(important: Sequence[str] | None, tau: float) -> Allocation:
    return isotropic() if important is None else binary(list(important), tau)


def first_component(moment: Floats) -> Floats:
    """The eigenvector of the largest eigenvalue, of shape (m,)."""
    return np.asarray(np.linalg.eigh(moment)[1][:, -1])
