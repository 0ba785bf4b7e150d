"""Gaussian noise of one size in every entry: the classical and the exact calibration, and Analyze Gauss."""

from __future__ import annotations

import math
from typing import Any

from matrixdp.design import Design, isotropic, make_design
from matrixdp.errors import ParameterError, show
from matrixdp.gdp import share_mu
from matrixdp.ledger import Gaussian
from matrixdp.noise import Stream
from matrixdp.privacy import Privacy
from matrixdp.queries import MatrixQuery
from matrixdp.release.registered import MechanismRelease, check_arguments, gaussian_cost, register_mechanism


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
        As for `matrixdp.release.matrix.release`.

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


def _design(query: MatrixQuery, privacy: Privacy, calibration: str = "exact") -> Design:
    """The design behind a release, after a check of the arguments."""
    check_arguments(query, privacy)
    if not query.symmetric:
        raise ParameterError(
            f"query must be symmetric for Analyze Gauss, such as SecondMoment, got {type(query).__name__} instead."
        )
    if calibration not in ("exact", "classical"):
        raise ParameterError(f"calibration must be 'exact' or 'classical', got {show(calibration)} instead.")
    exact = calibration == "exact"
    return make_design(query, privacy, allocation=isotropic()) if exact else classical_design(query, privacy)


@register_mechanism("Analyze Gauss", cost=gaussian_cost, tasks=("second-moment",), check=_design)
def analyze_gauss(
    query: MatrixQuery,
    privacy: Privacy,
    data: Any,
    *,
    stream: Stream | None = None,
    simulation: bool = False,
    calibration: str = "exact",
) -> MechanismRelease:
    """A symmetric answer with symmetric Gaussian noise, drawn for one triangle.

    The paper gives all entries of the triangle the same noise. An entry off the diagonal counts twice in the Frobenius
    norm, so a standard deviation smaller by sqrt(2) costs the same there; it is used here.

    Parameters
    ----------
    query : MatrixQuery
        A symmetric one, such as SecondMoment; it holds the bounds.
    privacy : Privacy
    data, stream, simulation
        As for `matrixdp.release.matrix.release`.
    calibration : 'exact' or 'classical'
        As small as possible, or the published ``sqrt(2 ln(1.25/delta))/epsilon``, for epsilon up to 1.

    Privacy
    -------
    (epsilon, delta)-DP for the query's neighbours. Exact noise.

    Examples
    --------
    >>> from matrixdp.domain.bounds import Bounds
    >>> from matrixdp.queries import SecondMoment
    >>> query = SecondMoment(Bounds([-1] * 2, [1] * 2), records=2)
    >>> analyze_gauss(query, Privacy(1, 1e-5), [[0.1, 0.2], [0.3, -0.4]]).matrix.shape
    (2, 2)
    """
    released = _design(query, privacy, calibration).release(data, stream=stream, simulation=simulation)
    return MechanismRelease.from_release("Analyze Gauss", released)
