"""Gaussian noise of one size in every entry: the classical and the exact calibration, Analyze Gauss, and SuLQ."""

import math
from dataclasses import replace
from typing import Any

from matrixdp.checks import check_integer
from matrixdp.design import Design, isotropic, make_design
from matrixdp.errors import ParameterError, show
from matrixdp.gdp import share_mu
from matrixdp.ledger import Gaussian
from matrixdp.mechanisms.mechanism import check_stream
from matrixdp.noise import Stream
from matrixdp.privacy import Neighbours, Privacy
from matrixdp.queries import Identity, MatrixQuery, SecondMoment
from matrixdp.release.registered import MechanismRelease, check_arguments, gaussian_cost, register_mechanism
from matrixdp.release.result import principal_directions


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

    Parameters are those of `matrixdp.Design.release`, with epsilon at most 1, where the formula holds.

    Privacy
    -------
    The query's neighbours. `epsilon` of the result is what the noise gives at `delta`: less than what was asked for,
    since the formula adds more noise than it needs. Exact noise.
    """
    released = classical_design(query, privacy).release(data, stream=stream, simulation=simulation)
    return MechanismRelease.from_release("classical Gaussian", released)


@register_mechanism("analytic Gaussian", cost=gaussian_cost, tasks=("records", "second-moment"))
def analytic_gaussian(
    query: MatrixQuery, privacy: Privacy, data: Any, *, stream: Stream | None = None, simulation: bool = False
) -> MechanismRelease:
    """The answer with as little isotropic noise as (epsilon, delta) allows (Balle & Wang 2018).

    Parameters are those of `matrixdp.Design.release`.

    Privacy
    -------
    (epsilon, delta)-DP for the query's neighbours, tight where the query's sensitivity is exact. Exact noise.
    """
    check_arguments(query, privacy)
    released = make_design(query, privacy, allocation=isotropic()).release(data, stream=stream, simulation=simulation)
    return MechanismRelease.from_release("analytic Gaussian", released)


def _check_symmetric(query: MatrixQuery, privacy: Privacy) -> None:
    check_arguments(query, privacy)
    if not query.symmetric:
        raise ParameterError(
            f"query must be symmetric for Analyze Gauss, such as SecondMoment, got {type(query).__name__} instead."
        )


@register_mechanism("Analyze Gauss", cost=gaussian_cost, tasks=("second-moment",), check=_check_symmetric)
def analyze_gauss(
    query: MatrixQuery, privacy: Privacy, data: Any, *, stream: Stream | None = None, simulation: bool = False
) -> MechanismRelease:
    """A symmetric answer, such as a SecondMoment, with symmetric Gaussian noise, drawn for one triangle.

    The paper gives all entries of the triangle the same noise. An entry off the diagonal counts twice in the Frobenius
    norm, so a standard deviation smaller by sqrt(2) costs the same there; it is used here. `analytic_gaussian` draws
    the same for such answers, and `classical_gaussian` has the published constant.

    Parameters are those of `matrixdp.Design.release`.

    Privacy
    -------
    (epsilon, delta)-DP for the query's neighbours. Exact noise.
    """
    _check_symmetric(query, privacy)
    return replace(
        analytic_gaussian(query, privacy, data, stream=stream, simulation=simulation), mechanism="Analyze Gauss"
    )


def _check(query: Any, privacy: Any, components: int | None = None, share: float = 1.0) -> int:
    """The number of components, after a check of all arguments."""
    check_arguments(query, privacy)
    if not isinstance(query, Identity | SecondMoment) or getattr(query, "centre", None) is not None:
        raise ParameterError("query must be Identity or SecondMoment, about the midpoint of its bounds, for SuLQ.")
    if query.neighbours is not Neighbours.REPLACE:
        raise ParameterError(f"neighbours must be 'replace' for SuLQ, got {str(query.neighbours)!r} instead.")
    if not 0 < share <= 1:
        raise ParameterError(f"share must be greater than 0 and at most 1, got {show(share)} instead.")
    m = query.bounds.size
    return check_integer(m if components is None else components, "components", at_least=1, at_most=m)


@register_mechanism("SuLQ", cost=gaussian_cost, tasks=("components",), check=_check)
def sulq(
    query: Identity | SecondMoment,
    privacy: Privacy,
    data: Any,
    *,
    stream: Stream | None = None,
    simulation: bool = False,
    components: int | None = None,
    share: float = 1.0,
) -> MechanismRelease:
    """The first principal directions of the records about their bounds' midpoint, as columns, of shape (m, components).

    They are those of a noisy second moment (Blum, Dwork, McSherry, Nissim 2005).

    Parameters
    ----------
    query, privacy, data, stream, simulation
        As for `matrixdp.Design.release`; the query holds the bounds and the number of records.
    components : int, optional
        Number of directions; all m by default, at the same cost.
    share : float
        Part of ``mu^2`` to spend, which leaves ``share=1 - share`` for a design. The paper's MVG-2 spends parts of
        epsilon and of delta: that is ``Privacy(0.2 * epsilon, 0.2 * delta)``, with all of it spent here.

    Privacy
    -------
    Replace-one neighbours. The result's (epsilon, delta) is what the directions cost, `mu` the same as Gaussian
    differential privacy. Exact noise.
    """
    columns = _check(query, privacy, components, share)
    check_stream(stream, simulation=simulation)
    options: dict[str, Any] = {"records": query.records, "share": share, "stream": stream, "simulation": simulation}
    found = principal_directions(data, query.bounds, privacy, **options)
    parameters = {"components": columns, "std": found.release.design.rmse}
    released = MechanismRelease.from_release("SuLQ", found.release)
    directions = found.directions[:, :columns].copy()
    return replace(released, query=query, matrix=directions, std=None, parameters=parameters)
