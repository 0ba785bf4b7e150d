"""Gaussian noise of one size in every entry, by the classical calibration."""

from __future__ import annotations

import math
from typing import Any

from matrixdp.design import Design, isotropic, make_design
from matrixdp.errors import ParameterError
from matrixdp.gdp import share_mu
from matrixdp.ledger import Gaussian
from matrixdp.noise import Stream
from matrixdp.privacy import Privacy
from matrixdp.queries import MatrixQuery
from matrixdp.release.mechanism_release import MechanismRelease
from matrixdp.release.registry import check_arguments, register_mechanism


def classical_share(privacy: Privacy) -> float:
    """The share of ``mu^2`` that the classical formula spends; its mu is ``epsilon/sqrt(2 ln(1.25/delta))``."""
    mu = privacy.epsilon / math.sqrt(2 * math.log(1.25 / privacy.delta))
    return min(1.0, (mu / privacy.mu) ** 2)


def classical_design(query: MatrixQuery, privacy: Privacy) -> Design:
    """Isotropic noise of the size that the classical formula gives."""
    check_arguments(query, privacy)
    if privacy.epsilon > 1:
        raise ParameterError(
            f"epsilon must be at most 1 for the classical Gaussian calibration, got {privacy.epsilon:g} instead; "
            "analytic_gaussian takes any."
        )
    return make_design(query, privacy, allocation=isotropic(), share=classical_share(privacy))


@register_mechanism(
    "classical Gaussian",
    cost=lambda privacy: Gaussian(share_mu(privacy.mu, classical_share(privacy))),
    tasks=("records", "second-moment"),
    check=classical_design,
)
def classical_gaussian(
    query: MatrixQuery, privacy: Privacy, data: Any, *, stream: Stream | None = None, simulation: bool = False
) -> MechanismRelease:
    """The answer with noise of standard deviation ``s2 sqrt(2 ln(1.25/delta))/epsilon`` (Dwork & Roth 2014, App. A).

    Parameters
    ----------
    query : MatrixQuery
        Any.
    privacy : Privacy
        Epsilon at most 1, where the formula holds.
    data, stream, simulation
        As for `matrixdp.release.release`.

    Privacy
    -------
    The query's neighbours. `epsilon` of the result is what the noise gives at `delta`: less than what was asked for,
    since the formula adds more noise than it needs. Exact noise.

    Examples
    --------
    >>> from matrixdp.domain.bounds import Bounds
    >>> from matrixdp.queries import Identity
    >>> query = Identity(Bounds([0] * 6, [1] * 6), records=248)
    >>> round(classical_design(query, Privacy(1, 1 / 248)).rmse, 2)
    8.3
    """
    released = classical_design(query, privacy).release(data, stream=stream, simulation=simulation)
    return MechanismRelease.from_release("classical Gaussian", released)
