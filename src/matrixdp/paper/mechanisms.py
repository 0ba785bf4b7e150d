"""The mechanisms of the tables, each as a function of records and a seeded stream, and the guarantees they state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from matrixdp.baselines import Mechanism, release_mechanism
from matrixdp.design import Allocation, Design, binary, equimodal, isotropic, make_design
from matrixdp.errors import MatrixDPError
from matrixdp.gdp import compose_mu, gdp_epsilon
from matrixdp.ledger import Pure
from matrixdp.noise import Stream
from matrixdp.privacy import Privacy
from matrixdp.queries import Identity, MatrixQuery, SecondMoment
from matrixdp.types import Floats

_ROUNDING = 1e-9


class GuaranteeMismatchError(MatrixDPError, RuntimeError):
    """A mechanism's guarantee is not the one that its row of a table states."""


@dataclass(frozen=True)
class Guarantee:
    """What a column states: (epsilon, delta)-DP, delta 0 for a pure guarantee."""

    epsilon: float
    delta: float


@dataclass(frozen=True)
class Spent:
    """The guarantee that a mechanism claims, and the epsilon that its noise gives.

    Attributes
    ----------
    claimed : Guarantee
        The budget that the mechanism was calibrated for.
    epsilon : float
        The smallest epsilon at the claimed delta; below the claimed one if the calibration adds more noise than needed.
    """

    claimed: Guarantee
    epsilon: float


def check_guarantee(row: str, column: Guarantee | None, spent: Spent | None) -> None:
    """Raise unless a mechanism was calibrated for the guarantee in its column and does not exceed it.

    Examples
    --------
    >>> one = Guarantee(1.0, 0.01)
    >>> check_guarantee("MVG", one, Spent(one, 0.3))
    >>> check_guarantee("MVG", one, Spent(Guarantee(1.0, 0.02), 0.3))
    Traceback (most recent call last):
    ...
    matrixdp.paper.mechanisms.GuaranteeMismatchError: the row 'MVG' states (1, 0.01); its mechanism claims (1, 0.02).
    """
    if column is None or spent is None:
        if column is None and spent is None:
            return
        raise GuaranteeMismatchError(f"the row {row!r} states {_show(column)}; its mechanism claims {_show(spent)}.")
    claimed = spent.claimed
    if not (_alike(claimed.epsilon, column.epsilon) and _alike(claimed.delta, column.delta)):
        raise GuaranteeMismatchError(f"the row {row!r} states {_show(column)}; its mechanism claims {_show(spent)}.")
    if not spent.epsilon <= column.epsilon * (1 + _ROUNDING):
        raise GuaranteeMismatchError(
            f"the row {row!r} states {_show(column)}; its mechanism costs epsilon {spent.epsilon:g}."
        )


def _alike(a: float, b: float) -> bool:
    return abs(a - b) <= _ROUNDING * max(a, b)


def _show(what: Guarantee | Spent | None) -> str:
    if what is None:
        return "no privacy"
    value = what.claimed if isinstance(what, Spent) else what
    return f"({value.epsilon:g}, {value.delta:g})"


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


Simulation = Callable[[Floats, Stream], Released]


def design_simulation(design: Design) -> Simulation:
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
) -> Simulation:
    """MVG with `tau` of the budget on the important features; i.i.d. noise where there are none.

    A second moment in the paper's calibrations is released by Algorithm 2 with the paper's own inputs.
    """
    allocation = isotropic() if important is None else binary(list(important), tau)
    if isinstance(query, SecondMoment) and calibration != "exact":
        return _algorithm2(query, privacy, allocation, calibration)
    return design_simulation(
        make_design(query, privacy, allocation=allocation, calibration=calibration, structured=False)
    )


def _algorithm2(query: SecondMoment, privacy: Privacy, allocation: Allocation, calibration: str) -> Simulation:
    """Algorithm 2 for the sensitivity 2 gamma/N that the paper prints (8/2021 in Exp. II)."""
    design = equimodal(
        epsilon=privacy.epsilon,
        delta=privacy.delta,
        sensitivity=2 * query.gamma / query.records,
        gamma=query.gamma,
        theta=allocation.precisions(query),
        calibration=calibration,
    )
    release = design_simulation(design)
    return lambda data, stream: release(query.evaluate(data, clip=True, missing="error"), stream)


def mvg_pca(query: Identity, privacy: Privacy, *, tau: float, calibration: str) -> Simulation:
    """MVG-2: the two first directions of a private PCA are the important ones.

    As in the paper for its own calibrations: 0.2 epsilon and 0.2 delta for the directions, the rest for the noise. With
    the exact calibration a fifth of ``mu^2``, and the rest.
    """
    exact = calibration == "exact"
    rest = privacy if exact else Privacy((1 - PCA_SHARE) * privacy.epsilon, (1 - PCA_SHARE) * privacy.delta)

    def release(data: Floats, stream: Stream) -> Released:
        found = release_mechanism(
            "SuLQ",
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


def mechanism_simulation(mechanism: Mechanism, query: MatrixQuery, privacy: Privacy, **options: Any) -> Simulation:
    """Releases of a registered mechanism."""

    def release(data: Floats, stream: Stream) -> Released:
        result = release_mechanism(mechanism, query, privacy, data, stream=stream, simulation=True, **options)
        return Released(result.matrix, Spent(stated_guarantee(mechanism, privacy), result.epsilon))

    return release


def stated_guarantee(mechanism: Mechanism, privacy: Privacy) -> Guarantee:
    """What a table states for a registered mechanism at a budget; `release_mechanism` checks that it holds."""
    return Guarantee(privacy.epsilon, 0.0 if isinstance(mechanism.cost(privacy), Pure) else privacy.delta)
