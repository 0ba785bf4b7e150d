"""Gaussian noise of one size in every entry: the classical calibration and the exact one."""

from __future__ import annotations

import math
from typing import Any

from matrixdp.baselines.rival import RivalRelease, check_arguments
from matrixdp.design import Design, isotropic, make_design
from matrixdp.errors import ParameterError
from matrixdp.noise import Stream
from matrixdp.privacy import Privacy
from matrixdp.queries import MatrixQuery


def classical_gaussian(
    query: MatrixQuery,
    privacy: Privacy,
    data: Any,
    *,
    stream: Stream | None = None,
    simulation: bool = False,
) -> RivalRelease:
    """The answer with noise of standard deviation ``s2 sqrt(2 ln(1.25/delta))/epsilon`` (Dwork & Roth 2014, App. A).

    Parameters
    ----------
    query : MatrixQuery
        Carries the bounds.
    privacy : Privacy
        Epsilon at most 1, where the formula holds.
    data, stream, simulation
        As for `matrixdp.release.release`.

    Privacy
    -------
    The query's neighbours. `epsilon` of the result is what the noise really gives at the delta asked for: less than
    what was asked, since the formula adds more noise than it needs. Exact noise.

    Examples
    --------
    >>> from matrixdp.domain.bounds import Bounds
    >>> from matrixdp.queries import Identity
    >>> query = Identity(Bounds([0] * 6, [1] * 6), records=248)
    >>> round(classical_design(query, Privacy(1, 1 / 248)).rmse, 2)
    8.3
    """
    return release_design("classical Gaussian", classical_design(query, privacy), data, stream, simulation)


def analytic_gaussian(
    query: MatrixQuery,
    privacy: Privacy,
    data: Any,
    *,
    stream: Stream | None = None,
    simulation: bool = False,
) -> RivalRelease:
    """The answer with as little isotropic noise as (epsilon, delta) allows (Balle & Wang 2018).

    Parameters are those of `classical_gaussian`; epsilon may be any.

    Privacy
    -------
    (epsilon, delta)-DP for the query's neighbours, exactly where the query's sensitivity is exact. Exact noise.

    Examples
    --------
    >>> from matrixdp.domain.bounds import Bounds
    >>> from matrixdp.queries import Identity
    >>> result = analytic_gaussian(Identity(Bounds([0], [1]), records=2), Privacy(1, 1e-5), [[0.3], [0.6]])
    >>> round(result.parameters["std"], 4)
    3.7306
    """
    check_arguments(query, privacy)
    return release_design(
        "analytic Gaussian", make_design(query, privacy, allocation=isotropic()), data, stream, simulation
    )


def classical_design(query: MatrixQuery, privacy: Privacy) -> Design:
    """Isotropic noise as the classical formula sizes it; as Gaussian differential privacy ``epsilon/sqrt(2 ln ..)``."""
    check_arguments(query, privacy)
    if privacy.epsilon > 1:
        raise ParameterError(
            f"epsilon must be at most 1 for the classical Gaussian calibration, got {privacy.epsilon:g} instead; "
            "analytic_gaussian takes any."
        )
    mu = privacy.epsilon / math.sqrt(2 * math.log(1.25 / privacy.delta))
    return make_design(query, privacy, allocation=isotropic(), share=min(1.0, (mu / privacy.mu) ** 2))


def release_design(mechanism: str, design: Design, data: Any, stream: Stream | None, simulation: bool) -> RivalRelease:
    """A design's release under the name of a rival."""
    released = design.release(data, stream=stream, simulation=simulation)
    return RivalRelease(
        matrix=released.matrix,
        mechanism=mechanism,
        epsilon=min(design.epsilon, design.privacy.epsilon),
        delta=design.privacy.delta,
        neighbours=design.neighbours,
        comparison_only=False,
        simulation=simulation,
        parameters={"std": design.rmse, "mu": design.distance},
    )
