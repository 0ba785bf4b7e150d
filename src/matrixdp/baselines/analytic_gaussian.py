"""Gaussian noise of one size in every entry, exactly calibrated."""

from __future__ import annotations

from typing import Any

from matrixdp.design import isotropic, make_design
from matrixdp.noise import Stream
from matrixdp.privacy import Privacy
from matrixdp.queries import MatrixQuery
from matrixdp.release.mechanism_release import MechanismRelease
from matrixdp.release.registry import check_arguments, gaussian_cost, register_mechanism


@register_mechanism("analytic Gaussian", cost=gaussian_cost, tasks=("records", "second-moment"))
def analytic_gaussian(
    query: MatrixQuery, privacy: Privacy, data: Any, *, stream: Stream | None = None, simulation: bool = False
) -> MechanismRelease:
    """The answer with as little isotropic noise as (epsilon, delta) allows (Balle & Wang 2018).

    Parameters are those of `classical_gaussian`, for any epsilon.

    Privacy
    -------
    (epsilon, delta)-DP for the query's neighbours, tight where the query's sensitivity is exact. Exact noise.

    Examples
    --------
    >>> from matrixdp.domain.bounds import Bounds
    >>> from matrixdp.queries import Identity
    >>> result = analytic_gaussian(Identity(Bounds([0], [1]), records=2), Privacy(1, 1e-5), [[0.3], [0.6]])
    >>> round(result.parameters["std"], 4)
    3.7306
    """
    check_arguments(query, privacy)
    design = make_design(query, privacy, allocation=isotropic())
    return MechanismRelease.from_release(
        "analytic Gaussian", design.release(data, stream=stream, simulation=simulation)
    )
